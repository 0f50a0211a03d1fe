package dirblob_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/dirblob"
)

func TestStore(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, t.TempDir()) })
}

func TestOpenMakesTheFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, root)
	must.Get(s.Create(t.Context(), "c/d.json", []byte("x")))(t)
	data, err := os.ReadFile(filepath.Join(root, "c", "d.json"))
	must.Hold(t, err == nil && string(data) == "x", "file of the object: got %q, %v; want the bytes as they are", data, err)
}

func TestOpenRefusesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	must.Fail(t, "a file was opened as a store", must.Err(dirblob.Open(path)))
}

// A killed writer leaves its unfinished file in @new. No reader sees it, and Open removes it when it is
// old enough to belong to no living writer.
func TestAbandonedFiles(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	young, old := filepath.Join(root, "@new", "object-1"), filepath.Join(root, "@new", "object-2")
	for _, path := range []string{young, old} {
		must.Do(t, os.WriteFile(path, []byte("half"), 0o600))
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	must.Do(t, os.Chtimes(old, yesterday, yesterday))
	for info, err := range s.List(t.Context(), "") {
		t.Errorf("listed %v, %v in an empty store", info, err)
	}
	open(t, root)
	_, err := os.Stat(old)
	must.Hold(t, os.IsNotExist(err), "the old file: got %v, want it removed", err)
	_, err = os.Stat(young)
	must.Hold(t, err == nil, "the young file: %v, want it kept", err)
}

func TestDeleteRemovesEmptyFolders(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	must.Get(s.Create(t.Context(), "objects/1/a.json", []byte("x")))(t)
	must.Fail(t, "a folder is deleted", s.Delete(t.Context(), "objects/1"))
	must.Do(t, s.Delete(t.Context(), "objects/1/a.json"))
	_, err := os.Stat(filepath.Join(root, "objects"))
	must.Hold(t, os.IsNotExist(err), "folder objects: got %v, want it removed with its last object", err)
	must.Succeed(t, "the root", must.Err(os.Stat(root)))
}

// TestModes: another user may read every object, and only the owner may take the lock.
func TestModes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s := open(t, root)
	tag := must.Get(s.Create(t.Context(), "a/b/c", []byte("1")))(t)
	must.Get(s.Swap(t.Context(), "a/b/c", tag, []byte("2")))(t)
	for path, want := range map[string]string{
		"": "drwxr-xr-x", "a": "drwxr-xr-x", "a/b": "drwxr-xr-x", "a/b/c": "-rw-r--r--", "@new": "drwxr-xr-x", "@lock": "-rw-------",
	} {
		must.Equal(t, "mode of "+path, want, must.Get(os.Stat(filepath.Join(root, path)))(t).Mode().String())
	}
}

// hooked is a context that calls a function whenever a listing asks it for its error.
type hooked struct {
	context.Context
	asked func()
}

func (h hooked) Err() error { h.asked(); return nil }

// TestListWhileFilesVanish: a listing leaves out a file and a folder that another process removes while it looks at them.
func TestListWhileFilesVanish(t *testing.T) {
	root := t.TempDir()
	s, asked, got := open(t, root), 0, []string(nil)
	for _, key := range []string{"a", "b", "c/d", "e"} {
		must.Get(s.Create(t.Context(), key, nil))(t)
	}
	for info, err := range s.List(hooked{t.Context(), func() {
		if asked++; asked > 1 { // it has read the names at the root
			_, _ = os.Remove(filepath.Join(root, "b")), os.RemoveAll(filepath.Join(root, "c"))
		}
	}}, "") {
		must.Do(t, err)
		got = append(got, info.Key)
	}
	must.Equal(t, "listed", []string{"a", "e"}, got)
}

// TestOpenFiles: no operation leaves a file open.
func TestOpenFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "store")
	must.Hold(t, filepath.IsAbs(strings.TrimPrefix(s.String(), "dir:")), "the store %s moves with the working directory", s)
	s.SetPatience(time.Millisecond)
	must.Do(t, syscall.Mkfifo("store/pipe", 0o600))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector closes forgotten files
	before := len(must.Get(os.ReadDir("/proc/self/fd"))(t))
	for range 3 {
		tag := must.Get(s.Create(t.Context(), "a", []byte("1")))(t)
		must.Get(s.Swap(t.Context(), "a", tag, []byte("2")))(t)
		must.Get(s.Get(t.Context(), "a", 1))(t)
		must.Fail(t, "too large", must.Err(s.Get(t.Context(), "a", 0)), blob.ErrTooLarge)
		must.Get(s.Watch(t.Context(), "a", tag, 1))(t)
		must.Do(t, s.Delete(t.Context(), "a"))
		must.Fail(t, "no file", must.Err(s.Get(t.Context(), "pipe", 1)))
		lock := heldLock(t, "store")
		must.Fail(t, "a lock that another process holds", s.Delete(t.Context(), "b"))
		must.Do(t, lock.Close())
		must.Fail(t, "deleted", must.Err(s.Get(t.Context(), "a", 1)), blob.ErrNotFound)
	}
	must.Equal(t, "open files", before, len(must.Get(os.ReadDir("/proc/self/fd"))(t)))
}

func open(t *testing.T, root string) *dirblob.Store {
	t.Helper()
	return must.Get(dirblob.Open(root))(t)
}
