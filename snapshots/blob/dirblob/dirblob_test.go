package dirblob_test

import (
	"os"
	"path/filepath"
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
	must.Do(t, s.Delete(t.Context(), "objects/1/a.json"))
	_, err := os.Stat(filepath.Join(root, "objects"))
	must.Hold(t, os.IsNotExist(err), "folder objects: got %v, want it removed with its last object", err)
	must.Succeed(t, "the root", must.Err(os.Stat(root)))
}

func open(t *testing.T, root string) *dirblob.Store {
	t.Helper()
	return must.Get(dirblob.Open(root))(t)
}
