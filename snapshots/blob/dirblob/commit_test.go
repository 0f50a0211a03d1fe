package dirblob_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

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
			if err := s.Sync(f); err != nil {
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

// TestGroupFails shows that each writer of a group learns that the common sync failed, and that none of their objects
// becomes visible.
func TestGroupFails(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	fails := func(*os.File) error { return syscall.EIO }
	s.SetDisk(fails, fails)
	var writers sync.WaitGroup
	for i := range 4 * dirblob.MinGroup {
		writers.Go(func() {
			if _, err := s.Create(t.Context(), fmt.Sprintf("a/%d", i), []byte("x")); !errors.Is(err, syscall.EIO) {
				t.Errorf("object %d: got %v, want %v", i, err, syscall.EIO)
			}
		})
	}
	writers.Wait()
	if _, err := os.Stat(filepath.Join(root, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the objects: got %v, want none", err)
	}
}
