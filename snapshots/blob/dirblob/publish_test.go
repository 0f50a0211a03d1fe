package dirblob_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// TestPublishOnAFailingDisk publishes a version to a directory in which one sync fails, each in turn, one object at a time
// and in groups. Publish then returns an error. Readers keep the old version, except after the last sync: the
// pointer is visible by then. With the disk back, the same draft is published whole.
func TestPublishOnAFailingDisk(t *testing.T) {
	for _, workers := range []int{1, 32} {
		for failing := int32(1); ; failing++ {
			store := open(t, t.TempDir())
			publish := func(day int) error {
				base, err := snapshots.LoadBase(t.Context(), store, nil)
				if err != nil {
					t.Fatal(err)
				}
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
			current := func() int64 {
				v, err := snapshots.Open(t.Context(), store, nil)
				if err != nil {
					t.Fatalf("after sync %d failed: %v", failing, err)
				}
				return v.Pointer.Version
			}
			if err := publish(1); err != nil {
				t.Fatal(err)
			}
			var syncs atomic.Int32
			sync := func(*os.File) error {
				if syncs.Add(1) == failing {
					return syscall.EIO
				}
				return nil
			}
			store.SetDisk(sync, sync)
			err := publish(2)
			all, now := syncs.Load(), current()
			if all < failing {
				if err != nil || now != 2 || failing < 12 {
					t.Errorf("%d syncs, none failed: version %d, %v", all, now, err)
				}
				break
			}
			pointed := errors.Is(err, blob.ErrUnsynced) && now == 2
			if !errors.Is(err, syscall.EIO) || now != 1 && !pointed {
				t.Errorf("%d workers, sync %d of %d failed: version %d is current, %v", workers, failing, all, now, err)
			}
			if err := publish(3); err != nil || current() <= now {
				t.Errorf("%d workers, after sync %d failed: version %d is current, %v", workers, failing, current(), err)
			}
		}
	}
}
