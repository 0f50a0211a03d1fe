package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// backUp makes a backup without a fault.
func backUp(t *testing.T, s, to blob.Store) {
	t.Helper()
	info := must.Get(backup.Make(t.Context(), s, to, raceDay, nil))(t)
	must.Hold(t, len(info.Faults) == 0, "faults: %v", info.Faults)
}

// TestFailingCalls lets one call of a backup or a restore fail, each in turn, and all others succeed, or all later ones fail
// too. The job reports the error, or has copied everything that an undisturbed one copies. A backup that breaks off leaves the
// earlier one, a restore no half version, and another run completes both.
func TestFailingCalls(t *testing.T) {
	failed := errors.New("one call failed")
	s, place, archive := memblob.New(), memblob.New(), "archives/"+snapshots.Digest([]byte("the archive"))
	for key, text := range map[string]string{
		"ledger/00000001.json": `{"seq":1}`, "ledger/00000002.json": `{"seq":2}`, "ledger/00000003.json": `"ledger"`, archive: "the archive", "archive.json": "{}", "keys/keys.json": `{"keys":1}`, "audit/1": "{}", "own.json": "{}",
	} {
		must.Get(s.Create(t.Context(), key, []byte(text)))(t)
	}
	publish(t, s, bodies{"drivers": "d1"})
	backUp(t, s, place)
	publish(t, s, bodies{"drivers": "d2"})
	s.Corrupt("keys/keys.json", []byte(`{"keys":2}`))
	must.Get(s.Create(t.Context(), "ledger/00000004.json", []byte(`{"kind":"real"}`)))(t)
	restore := func(since string) func(store, place blob.Store) (backup.Info, error) {
		return func(store, place blob.Store) (backup.Info, error) {
			got, err := backup.Restore(t.Context(), backup.Restoring{
				Store: store, Backup: place, Builder: "operator", Since: snapshots.Ledger{Hash: since}, Own: map[string]func(context.Context) error{
					"own.json": func(ctx context.Context) error { return must.Err(blob.Put(ctx, store, "own.json", 9, []byte("[]"))) },
				},
			})
			if err == nil && strings.Contains(fmt.Sprint(got.Lost), failed.Error()) {
				err = failed // the record since then is not known
			}
			return backup.Info{Ledger: got.Ledger, Faults: got.Lost}, err
		}
	}
	backUpTo := func(place, store blob.Store) (backup.Info, error) {
		info, err := backup.Make(t.Context(), store, place, raceDay, nil)
		return backup.Info{Ledger: info.Ledger, Version: info.Version}, err
	}
	latest := copyOf(t, place)
	must.Get(backUpTo(latest, s))(t)
	damaged := copyOf(t, s)
	damaged.Corrupt("objects/2/drivers.json.gz", []byte("{}"))
	lacking := copyOf(t, s)
	lacking.Corrupt(archive, nil)
	must.Do(t, lacking.Delete(t.Context(), "ledger/00000004.json"))
	earlier := func(to *memblob.Store) {
		fresh := memblob.New()
		must.Get(restore("")(fresh, to))(t)
		_, content := served(t, fresh)
		must.Hold(t, content["drivers"] == "d1" || content["drivers"] == "d2", "the backup holds %v", content)
	}
	none := func(to *memblob.Store) {
		switch v, err := snapshots.Open(t.Context(), to, nil); {
		case err == nil:
			checkWhole(t, v)
		case !errors.Is(err, snapshots.ErrNone):
			t.Errorf("readers meet %v", err)
		}
	}
	for _, test := range []struct {
		name     string
		job      func(to, from blob.Store) (backup.Info, error)
		from, to *memblob.Store // what the job finds; to is copied
		source   bool           // a call to the source fails, and not one to the target
		left     func(to *memblob.Store)
		serves   string // afterwards
	}{
		{"back up: the store", backUpTo, s, place, true, earlier, "d2"},
		{"back up: the place", backUpTo, s, place, false, earlier, "d2"},
		{"back up a damaged version: the place", backUpTo, damaged, place, false, earlier, "d1"},
		{"back up to an empty place: the place", backUpTo, s, memblob.New(), false, none, "d2"},
		{"restore: the place", restore(""), latest, memblob.New(), true, none, "d2"},
		{"restore: the store", restore(snapshots.Digest([]byte(`"ledger"`))), latest, memblob.New(), false, none, "d2"},
		{"restore without the record since then: the store", restore("none"), latest, memblob.New(), false, none, "d2"},
		{"restore what is missing: the place", restore(""), latest, lacking, true, none, "d2"},
		{"restore what is missing: the store", restore(""), latest, lacking, false, none, "d2"},
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies %t", test.name, dies), func(t *testing.T) {
				undisturbed, said := map[string]string{}, backup.Info{}
				for n, all := int64(0), int64(1); n <= all; n++ {
					to, calls := copyOf(t, test.to), atomic.Int64{}
					failing := func(s blob.Store) blob.Store {
						return faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate {
							if made := calls.Add(1); n > 0 && (made == n || dies && made > n) {
								return faultblob.Fate{Err: failed}
							}
							return faultblob.Fate{}
						})
					}
					var from, target blob.Store = test.from, to
					if test.source {
						from = failing(from)
					} else {
						target = failing(target)
					}
					info, err := test.job(target, from)
					switch {
					case n == 0:
						must.Do(t, err)
						undisturbed, said, all = lastingBytes(t, to), info, calls.Load()
						must.Equal(t, "head of the ledger", snapshots.Ledger{Kind: "real", Seq: 4, Hash: snapshots.Digest([]byte(`{"kind":"real"}`))}, info.Ledger)
					case err == nil:
						must.Equal(t, fmt.Sprintf("the outcome after call %d failed", n), said, info)
						must.Equal(t, fmt.Sprintf("call %d failed, and there is no error", n), undisturbed, lastingBytes(t, to))
					default:
						must.Fail(t, fmt.Sprintf("call %d failed", n), err, failed)
						test.left(to)
						if _, err := test.job(to, test.from); !errors.Is(err, backup.ErrNotLost) {
							must.Do(t, err)
						}
						must.Equal(t, "the object that a restore does not copy", undisturbed["own.json"], string(read(t, to, "own.json")))
					}
					wantServed(t, to, 0, test.serves)
				}
			})
		}
	}
}

// lastingBytes returns the objects of a store by their key, without the bytes of those that name a random number, real
// time, or a fault.
func lastingBytes(t *testing.T, s *memblob.Store) map[string]string {
	t.Helper()
	objects := map[string]string{}
	for _, key := range keysOf(t, s) {
		if objects[key] = string(read(t, s, key)); strings.HasPrefix(key, "versions/") || key == snapshots.PointerKey || key == "backup.json" {
			objects[key] = ""
		}
	}
	return objects
}

// copyOf returns a store with the same objects.
func copyOf(t *testing.T, s *memblob.Store) *memblob.Store {
	t.Helper()
	same := memblob.New()
	for _, key := range keysOf(t, s) {
		must.Get(same.Create(t.Context(), key, read(t, s, key)))(t)
	}
	return same
}
