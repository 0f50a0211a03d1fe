package dirblob_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// TestSyncCoversEarlierWrites shows that one sync of the file system serves a group of writers, and not a writer that
// comes when that sync has begun.
func TestSyncCoversEarlierWrites(t *testing.T) {
	s := open(t, t.TempDir())
	var writers sync.WaitGroup
	begin := func(f *os.File) {
		writers.Go(func() {
			if err := s.SyncFile(f); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor := func(n int) {
		for s.Waiting() < n {
			runtime.Gosched()
		}
	}
	first, late := &os.File{}, &os.File{}
	began, release := make(chan struct{}), make(chan struct{})
	var synced []*os.File // one after the other
	groups := 0
	s.SetDisk(func(f *os.File) error {
		if synced = append(synced, f); f == first {
			close(began)
			<-release
		}
		return nil
	}, func(*os.File) error {
		groups++
		before := s.Waiting()
		begin(late)
		waitFor(before + 1)
		return nil
	})
	begin(first)
	<-began
	for range dirblob.MinGroup {
		begin(&os.File{})
	}
	waitFor(dirblob.MinGroup)
	close(release)
	writers.Wait()
	if groups != 1 || !slices.Equal(synced, []*os.File{first, late}) {
		t.Errorf("%d syncs of the file system and %d of a file; want 1, and one each of the first writer and the late one", groups, len(synced))
	}
}

// TestCreateWaitsForTheDisk shows that an object becomes visible when its bytes are on disk, and that Create returns
// when its name is, too. It loses neither a failed sync of the file nor that of its folder.
func TestCreateWaitsForTheDisk(t *testing.T) {
	for _, failing := range []int{0, 1, 2} {
		root := t.TempDir()
		must.Do(t, os.Mkdir(filepath.Join(root, "a"), 0o700))
		s := open(t, root)
		var synced []string
		s.SetDisk(func(f *os.File) error {
			info, err := f.Stat()
			if err != nil {
				return err
			}
			_, visible := os.Stat(filepath.Join(root, "a", "b"))
			synced = append(synced, fmt.Sprintf("folder %t, visible %t", info.IsDir(), visible == nil))
			if len(synced) == failing {
				return syscall.EIO
			}
			return nil
		}, nil)
		_, err := s.Create(t.Context(), "a/b", []byte("x"))
		want := []string{"folder false, visible false", "folder true, visible true"}
		if failing == 1 {
			want = want[:1]
		}
		if fmt.Sprint(synced) != fmt.Sprint(want) || (failing == 0) != (err == nil) || (failing == 2) != errors.Is(err, blob.ErrUnknown) {
			t.Errorf("sync %d fails: got %v, %v; want %v", failing, synced, err, want)
		}
	}
}

// TestCreateAfterAnother shows that an object is not replaced that another writer makes while Create waits for the disk, and
// that a folder is made again that another writer removes.
func TestCreateAfterAnother(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	s.SetDisk(func(*os.File) error { return os.WriteFile(filepath.Join(root, "a"), nil, 0o600) }, nil)
	must.Fail(t, "the second", must.Err(s.Create(t.Context(), "a", []byte("x"))), blob.ErrConflict)
	deleted := false
	s.SetDisk(func(f *os.File) error {
		if f.Name() != root || deleted {
			return nil
		}
		deleted = true
		return os.Remove(filepath.Join(root, "b")) // another writer deletes its last object
	}, nil)
	must.Succeed(t, "an object in a folder that was deleted", must.Err(s.Create(t.Context(), "b/c/d", nil)))
	must.Hold(t, deleted, "no folder was deleted")
	for release, want := range map[string]bool{"6.1.0-13-amd64": true, "5.8.0": true, "5.7.19": false, "4.19.0": false, "": false} {
		must.Equal(t, "Linux "+release, want, dirblob.Reliable(release))
	}
}

// TestRepeatWaitsForTheDisk repeats a write whose object is visible but not confirmed by the disk. Each repetition fails
// until the disk confirms the object, and then writes nothing.
func TestRepeatWaitsForTheDisk(t *testing.T) {
	for name, write := range map[string]func(*dirblob.Store) (bool, error){
		"claim": func(s *dirblob.Store) (bool, error) { return blob.Claim(t.Context(), s, "a/b", []byte(`"x"`)) },
		"put":   func(s *dirblob.Store) (bool, error) { return blob.Put(t.Context(), s, "a/b", 9, []byte(`"x"`)) },
		"update": func(s *dirblob.Store) (bool, error) {
			d := blob.Document[string]{Store: s, Key: "a/b"}
			_, err := d.Update(t.Context(), func(content *string) error { *content = "x"; return nil })
			return err == nil, err
		},
	} {
		for _, before := range []string{"", `"old"`} {
			if name == "claim" && before != "" {
				continue // a claim replaces nothing
			}
			root := t.TempDir()
			s := open(t, root)
			if before != "" {
				must.Get(s.Create(t.Context(), "a/b", []byte(before)))(t)
			} else if err := os.Mkdir(filepath.Join(root, "a"), 0o700); err != nil {
				t.Fatal(err)
			}
			broken, syncs := true, 0
			s.SetDisk(func(f *os.File) error {
				syncs++
				if broken && filepath.Base(f.Name()) == "a" {
					return syscall.EIO
				}
				return nil
			}, nil)
			for attempt := range 2 {
				must.Fail(t, fmt.Sprintf("%s over %q, attempt %d on a failing disk", name, before, attempt), must.Err(write(s)), blob.ErrUnsynced)
			}
			broken, syncs = false, 0
			_, err := write(s)
			must.Hold(t, err == nil && syncs == 1, "%s over %q, with the disk back: got %v after %d syncs, want that of the folder", name, before, err, syncs)
		}
	}
}

// TestUnsyncedFolderIsMadeAgain shows that a folder is made and synced again if the disk did not confirm it.
func TestUnsyncedFolderIsMadeAgain(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	var synced []string
	s.SetDisk(func(f *os.File) error {
		name, err := filepath.Rel(root, f.Name())
		if err != nil || strings.HasPrefix(name, "@new") {
			return err
		}
		if synced = append(synced, name); len(synced) == 2 {
			return syscall.EIO
		}
		return nil
	}, nil)
	_, err := s.Create(t.Context(), "a/b/c", []byte("x"))
	must.Hold(t, errors.Is(err, syscall.EIO) && !errors.Is(err, blob.ErrUnknown),
		"on a failing disk: got %v, want %v and no doubt", err, syscall.EIO)
	if _, err := s.Create(t.Context(), "a/b/c", []byte("x")); err != nil {
		t.Error(err)
	}
	want := []string{".", "a", "a", "a/b"}
	must.Hold(t, slices.Equal(synced, want), "synced %q, want %q", synced, want)
}
