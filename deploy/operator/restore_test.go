package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// backedUp returns an operator whose store has a version and a list of keys, and a backup of it.
func backedUp(t *testing.T) (*operator.Operator, *memblob.Store) {
	t.Helper()
	o := desk(t)
	const record = `{"kind":"real"}`
	must.Get(o.Store.Create(t.Context(), "ledger/00000001.json", []byte(record)))(t)
	publisher := snapshots.Publisher{Store: o.Store}
	packed, at := must.Get(snapshots.Pack([]byte("{}")))(t), time.Date(2026, 7, 5, 12, 0, 0, 0, time.UTC)
	must.Get(publisher.Publish(t.Context(), snapshots.Draft{
		Base:     must.Get(snapshots.LoadBase(t.Context(), o.Store, nil))(t),
		About:    snapshots.About{Builder: "test", BuiltAt: at, CurrentSeason: 2026, Seasons: []int{2026}, Ledger: snapshots.Ledger{Kind: "real", Seq: 1, Hash: snapshots.Digest([]byte(record))}},
		Variants: []snapshots.Variant{snapshots.New("calendar/2026", []byte("{}"), packed, at)},
	}))(t)
	done(t, o, operator.CreateKey{Client: "a client", Tier: "pro"}, operator.Request{Reason: "to restore it"})
	place := memblob.New()
	must.Get(backup.Make(t.Context(), o.Store, place, at, nil))(t)
	return o, place
}

// restored restores a backup into a store with faults.
func restored(t *testing.T, store, place blob.Store, fate func(context.Context, faultblob.Call) faultblob.Fate) error {
	t.Helper()
	faulty := faultblob.Wrap(store, fate)
	action := operator.RestoreStore{From: place, Open: func(context.Context) (blob.Store, error) { return faulty, nil }}
	_, err := (&operator.Operator{Store: faulty, Name: "test", Now: time.Now}).Do(t.Context(), action, operator.Request{Actor: "operator:anna", Reason: "lost"})
	return err
}

func noFault(context.Context, faultblob.Call) faultblob.Fate { return faultblob.Fate{} }

// TestRestoreThatBreaksOff kills a restore at each of its writes and runs it again. The restored keys have a serial number
// above that of each list that an edge may have, because an edge refuses an older one.
func TestRestoreThatBreaksOff(t *testing.T) {
	o, place := backedUp(t)
	copied, _ := must.Get2(keys.Load(t.Context(), o.Store))(t)
	for last := 1; ; last++ {
		store, writes := memblob.New(), atomic.Int64{}
		err := restored(t, store, place, func(_ context.Context, c faultblob.Call) faultblob.Fate {
			if c.Op.Writes() && writes.Add(1) > int64(last) || writes.Load() > int64(last) {
				return faultblob.Fate{Err: faultblob.ErrKilled}
			}
			return faultblob.Fate{}
		})
		if err == nil {
			return
		}
		if err := restored(t, store, place, noFault); !errors.Is(err, backup.ErrNotLost) {
			must.Do(t, err)
		}
		list, _ := must.Get2(keys.Load(t.Context(), store))(t)
		must.Hold(t, list.Serial > copied.Serial+1_000_000, "killed after %d writes: the list has the serial number %d, the backup %d", last, list.Serial, copied.Serial)
	}
}

// TestRestoreReadsInOrder: a restore reads the documents of the store in one sequence, so that a simulated seed replays.
func TestRestoreReadsInOrder(t *testing.T) {
	place := memblob.New() // a pointer alone is no complete backup
	must.Get(place.Create(t.Context(), snapshots.PointerKey, fmt.Appendf(nil, `{"version":1,"manifest":%q}`, snapshots.Digest(nil))))(t)
	for range 20 {
		var read []string
		store := faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) faultblob.Fate {
			read = append(read, c.Key)
			return faultblob.Fate{}
		})
		action := operator.RestoreStore{From: place, Open: func(context.Context) (blob.Store, error) { return store, nil }}
		_, err := (&operator.Operator{Store: store, Name: "test", Now: time.Now}).Do(t.Context(), action, operator.Request{Actor: "operator:anna", Reason: "lost"})
		must.Fail(t, "a restore from an incomplete backup", err, blob.ErrNotFound)
		must.Equal(t, "the reads", "keys/keys.json copies/keys/keys.json operators/operators.json copies/operators/operators.json settings.json copies/settings.json", strings.Join(read, " "))
	}
}

// TestRestoreKeepsWholeDocuments: a list of keys that cannot be read once, or has damaged bytes once, stays. In the older one of
// the backup a revoked key would work.
func TestRestoreKeepsWholeDocuments(t *testing.T) {
	for name, fate := range map[string]faultblob.Fate{
		"no answer":     {Err: errors.New("503")},
		"damaged bytes": {Mangle: func(data []byte) []byte { return append([]byte("x"), data...) }},
	} {
		t.Run(name, func(t *testing.T) {
			o, place := backedUp(t)
			done(t, o, operator.CreateKey{Client: "another client", Tier: "pro"}, operator.Request{Reason: "after the backup"})
			newer := must.Get(o.Store.Get(t.Context(), keys.Object, blob.MaxDocument))(t)
			must.Do(t, o.Store.Delete(t.Context(), snapshots.PointerKey))
			var once atomic.Bool
			err := restored(t, o.Store, place, func(_ context.Context, c faultblob.Call) faultblob.Fate {
				if c.Op == faultblob.Get && c.Key == keys.Object && once.CompareAndSwap(false, true) {
					return fate
				}
				return faultblob.Fate{}
			})
			must.Hold(t, once.Load() && errors.Is(err, fate.Err), "got the error %v, want %v", err, fate.Err)
			if err != nil {
				must.Do(t, restored(t, o.Store, place, noFault))
			}
			kept := must.Get(o.Store.Get(t.Context(), keys.Object, blob.MaxDocument))(t)
			must.Equal(t, "the list of keys", string(newer.Data), string(kept.Data))
		})
	}
}
