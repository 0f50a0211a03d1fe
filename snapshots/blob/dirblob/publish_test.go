package dirblob_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// TestPublishOnAFailingDisk publishes a version to a directory in which one sync fails, each in turn, one object at a time
// and in groups. Publish then returns an error. Readers keep the old version, except after the last sync: the
// pointer is visible by then. With the disk back, the next draft is published whole, and survives a crash: the disk has
// confirmed the name of each of its objects and folders.
func TestPublishOnAFailingDisk(t *testing.T) {
	for _, workers := range []int{1, 32} {
		for failing := int32(1); ; failing++ {
			root := t.TempDir()
			store := open(t, root)
			publish := func(day int) error {
				base, err := snapshots.LoadBase(t.Context(), store, nil)
				must.Do(t, err)
				at := time.Date(2026, 7, day, 14, 0, 0, 0, time.UTC)
				draft := snapshots.Draft{Base: base, About: snapshots.About{
					Builder: "test", BuiltAt: at, CurrentSeason: 2026, Seasons: []int{2026}, Ledger: snapshots.Ledger{Kind: "real"},
				}}
				for i := range 12 {
					draft.Variants = append(draft.Variants, snapshots.New(fmt.Sprintf("test/%d", i), fmt.Appendf(nil, `"of day %d"`, day), nil, at))
				}
				p := snapshots.Publisher{Store: store, Workers: workers}
				_, err = p.Publish(t.Context(), draft)
				return err
			}
			current := func(store blob.Store) int64 {
				v, err := snapshots.Open(t.Context(), store, nil)
				if err != nil {
					t.Fatalf("after sync %d failed: %v", failing, err)
				}
				return v.Pointer.Version
			}
			must.Do(t, publish(1))
			var syncs atomic.Int32
			var confirmed names
			confirmed.below(t, root)
			store.SetDisk(func(f *os.File) error {
				if syncs.Add(1) == failing {
					return syscall.EIO
				}
				confirmed.in(t, f)
				return nil
			}, func(*os.File) error {
				if syncs.Add(1) == failing {
					return syscall.EIO
				}
				confirmed.below(t, root)
				return nil
			})
			err := publish(2)
			all, now := syncs.Load(), current(store)
			if all < failing {
				must.Hold(t, err == nil && now == 2 && failing >= 12, "%d syncs, none failed: version %d, %v", all, now, err)
				break
			}
			pointed := errors.Is(err, blob.ErrUnsynced) && now == 2
			if !errors.Is(err, syscall.EIO) || now != 1 && !pointed {
				t.Errorf("%d workers, sync %d of %d failed: version %d is current, %v", workers, failing, all, now, err)
			}
			if err := publish(3); err != nil || current(store) <= now {
				t.Errorf("%d workers, after sync %d failed: version %d is current, %v", workers, failing, current(store), err)
			}
			if got, want := current(open(t, confirmed.copy(t, root))), current(store); got != want {
				t.Errorf("%d workers, after sync %d failed, and a crash: version %d is current, want %d", workers, failing, got, want)
			}
		}
	}
}

// names are the paths of the files and folders that survive a crash.
type names struct{ paths sync.Map }

// in adds the content of f if it is a folder.
func (n *names) in(t *testing.T, f *os.File) {
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return
	}
	entries, err := os.ReadDir(f.Name())
	if err != nil {
		t.Error(err)
	}
	for _, entry := range entries {
		n.paths.Store(filepath.Join(f.Name(), entry.Name()), true)
	}
}

// below adds everything below root.
func (n *names) below(t *testing.T, root string) {
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		n.paths.Store(path, true)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another writer has removed its file in @new
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// copy returns a copy of root without the names that a crash undoes.
func (n *names) copy(t *testing.T, root string) string {
	to := t.TempDir()
	must.Do(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, root))
		_, survives := n.paths.Load(path)
		switch {
		case !survives && entry.IsDir():
			return fs.SkipDir
		case !survives:
			return nil
		case entry.IsDir():
			return os.Mkdir(name, 0o700)
		}
		data, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(name, data, 0o600))
	}))
	return to
}
