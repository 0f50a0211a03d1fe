package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/s3test"
)

// record appends a file to the ledger of a store, and returns it as the head.
func record(t *testing.T, s blob.Store, seq int64) snapshots.Ledger {
	t.Helper()
	data := fmt.Appendf(nil, `{"seq":%d,"kind":"real"}`, seq)
	create(t, s, fmt.Sprintf("ledger/%08d.json", seq), string(data))
	return snapshots.Ledger{Kind: "real", Seq: seq, Hash: snapshots.Digest(data)}
}

func create(t *testing.T, s blob.Store, key, data string) {
	t.Helper()
	must.Get(s.Create(t.Context(), key, []byte(data)))(t)
}

// publishWith publishes on a ledger that ends at head.
func publishWith(t *testing.T, s blob.Store, head snapshots.Ledger, content bodies) int64 {
	t.Helper()
	d := draftOf(loadBase(t, s), content)
	d.Ledger = head
	r := must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
	return r.Version
}

// partKey is the key of a part of an archive. It names the content of the zstd frame.
var partKey = "archives/parts/" + snapshots.Digest([]byte("a part")) + ".zst"

// zipped returns the part as a zstd frame.
func zipped(t *testing.T) string {
	t.Helper()
	z := must.Get(zstd.NewWriter(nil))(t)
	return string(z.EncodeAll([]byte("a part"), nil))
}

// furnish adds the objects of a service that belong to no version.
func furnish(t *testing.T, s blob.Store) {
	t.Helper()
	archive := "the archive"
	create(t, s, "archives/"+snapshots.Digest([]byte(archive)), archive)
	create(t, s, partKey, zipped(t))
	create(t, s, "archive.json", `{"sha256":"…"}`)
	create(t, s, "keys/keys.json", `{"keys":["one"]}`)
	create(t, s, "settings.json", `{"auto_verify_after":"1h"}`)
	create(t, s, "audit/00000001.json", `{"seq":1}`)
	create(t, s, "probe/left", "x")
	create(t, s, "sandbox/current.json", `{"version":7}`)
	create(t, s, "sandbox/12/ledger/00000001.json", `{"seq":1,"kind":"simulated"}`)
}

func backUp(t *testing.T, s, to blob.Store) backup.Info {
	t.Helper()
	info := must.Get(backup.Make(t.Context(), s, to, raceDay, nil))(t)
	if len(info.Faults) > 0 {
		t.Fatalf("faults: %v", info.Faults)
	}
	return info
}

func restoreFrom(t *testing.T, s, from blob.Store, above int64, since snapshots.Ledger) backup.Restored {
	t.Helper()
	p := snapshots.Publisher{Store: s}
	return must.Get(backup.Restore(t.Context(), backup.Restoring{Store: p.Store, Backup: from, Builder: "operator", Above: above, Since: since}))(t)
}

// TestDisasterDrill backs a store up, publishes two more versions, loses the store and restarts an edge that has
// served the last version. One restore makes that edge, and one that ran all the time, serve again.
func TestDisasterDrill(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T) (s blob.Store, lose func()){
		"directory": func(t *testing.T) (blob.Store, func()) {
			root := filepath.Join(t.TempDir(), "store")
			s := openDirectory(t, root)
			return s, func() {
				must.Do(t, os.RemoveAll(root))
				openDirectory(t, root)
			}
		},
		"versitygw": func(t *testing.T) (blob.Store, func()) {
			config := s3test.Versity(t).Config(t)
			config.Poll = 100 * time.Millisecond
			s := s3test.Store(t, config)
			return s, func() {
				for _, key := range keysOf(t, s) {
					must.Do(t, s.Delete(t.Context(), key))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, lose := lose(t)
			furnish(t, s)
			record(t, s, 1)
			publishWith(t, s, record(t, s, 2), bodies{"drivers": "d1", "calendar/2024": "c1"})
			kept := bodies{"drivers": "d2", "calendar/2024": "c1"}
			head := record(t, s, 3)
			publishWith(t, s, head, kept)
			place := openDirectory(t, t.TempDir())
			info := backUp(t, s, place)
			must.Hold(t, info.Version == 2 && info.Versions == 2 && info.Ledger == head, "backup: %+v, want 2 versions and the ledger %+v", info, head)

			publishWith(t, s, record(t, s, 4), bodies{"drivers": "d3", "calendar/2024": "c1"})
			last := bodies{"drivers": "d4", "calendar/2024": "c2"}
			noted := record(t, s, 5)
			publishWith(t, s, noted, last)
			cache, otherCache := openDirectory(t, t.TempDir()), openDirectory(t, t.TempDir())
			running, stopped := followReal(t, s, cache), followReal(t, s, otherCache)
			running.wantVersion(t, 4, last)
			stopped.wantVersion(t, 4, last)
			if _, err := otherCache.Watch(t.Context(), snapshots.PointerKey, "", blob.MaxDocument); err != nil { // until it is kept
				t.Fatal(err)
			}
			stopped.stop()

			lose()
			restarted := followReal(t, s, otherCache)
			restarted.wantVersion(t, 4, last)
			running.wantState(t, snapshots.Refused)
			got := restoreFrom(t, s, place, 4, noted)
			must.Hold(t, got.Version == 5 && got.Ledger == head && len(got.Kept) == 0, "restored: %+v, want version 5 on the ledger %+v", got, head)
			must.Equal(t, "documents as of the backup", []string{"archive.json", "keys/keys.json", "settings.json"}, got.Older)
			want := []string{"ledger files 4 to 5: picks frozen, results verified and rounds moved in them", "versions 3 to 4"}
			must.Equal(t, "lost", want, got.Lost)
			running.wantVersion(t, 5, kept)
			restarted.wantVersion(t, 5, kept)

			// All other objects are restored, and publishing goes on.
			restored := map[string]bool{}
			for _, key := range keysOf(t, s) {
				restored[key] = true
			}
			for _, key := range keysOf(t, place) {
				must.Hold(t, restored[key] || key == "backup.json", "%s was not restored", key)
			}
			publishWith(t, s, record(t, s, 4), bodies{"drivers": "d6", "calendar/2024": "c1"})
			running.wantVersion(t, 6, bodies{"drivers": "d6"})
			must.Succeed(t, "the next backup into the same place", must.Err(backup.Make(t.Context(), s, place, raceDay, nil)))
		})
	}
}

// TestBackupWhileOthersPublish makes backups while builders publish and the ledger grows. Each of them restores
// to a whole store, and its ledger has no hole and the head that its manifest names.
func TestBackupWhileOthersPublish(t *testing.T) {
	s := openDirectory(t, t.TempDir())
	furnish(t, s)
	publishWith(t, s, record(t, s, 1), bodies{"count": "1", "drivers": "the same"})
	ctx, stop := context.WithCancel(t.Context())
	var builder sync.WaitGroup
	builder.Go(func() {
		for seq := int64(2); ctx.Err() == nil; seq++ {
			publishWith(t, s, record(t, s, seq), bodies{"count": strconv.FormatInt(seq, 10), "drivers": "the same"})
		}
	})
	place := openDirectory(t, t.TempDir())
	for range 8 {
		info := backUp(t, s, place)
		fresh := memblob.New()
		got := restoreFrom(t, fresh, place, 0, snapshots.Ledger{})
		must.Hold(t, got.Ledger == info.Ledger && len(got.Lost) == 0, "ledger %+v restored, %+v backed up; lost %v", got.Ledger, info.Ledger, got.Lost)
		_, content := served(t, fresh)
		m := must.Get(snapshots.LoadManifest(t.Context(), fresh, 0))(t)
		if content["count"] != strconv.FormatInt(m.Ledger.Seq, 10) || m.Ledger.Seq > info.Ledger.Seq {
			t.Errorf("count %s on the ledger up to %d; the backup's ends at %d", content["count"], m.Ledger.Seq, info.Ledger.Seq)
		}
		for seq := int64(1); seq <= info.Ledger.Seq; seq++ {
			must.Succeed(t, "a hole", must.Err(fresh.Get(t.Context(), fmt.Sprintf("ledger/%08d.json", seq), blob.MaxDocument)))
		}
	}
	stop()
	builder.Wait()
}

// dying lets a number of calls through and fails all later ones.
func dying(s blob.Store, calls int64) (store blob.Store, died func() bool) {
	var made atomic.Int64 // several at a time
	return faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate {
		if made.Add(1) > calls {
			return faultblob.Fate{Err: faultblob.ErrKilled}
		}
		return faultblob.Fate{}
	}), func() bool { return made.Load() > calls }
}

// TestBackupBreaksOff shows that a backup which breaks off leaves the earlier one, or none, and that the next
// run completes it.
func TestBackupBreaksOff(t *testing.T) {
	for calls := int64(0); ; calls++ {
		s, place := memblob.New(), memblob.New()
		furnish(t, s)
		publishWith(t, s, record(t, s, 1), bodies{"drivers": "d1"})
		backUp(t, s, place)
		publishWith(t, s, record(t, s, 2), bodies{"drivers": "d2"})
		broken, died := dying(place, calls)
		if _, err := backup.Make(t.Context(), s, broken, raceDay, nil); (err == nil) == died() {
			t.Fatalf("broken off after %d calls: %v", calls, err)
		}
		fresh := memblob.New()
		restoreFrom(t, fresh, place, 0, snapshots.Ledger{})
		_, content := served(t, fresh)
		must.Hold(t, content["drivers"] == "d1" || content["drivers"] == "d2", "after %d calls the backup holds %q", calls, content["drivers"])
		backUp(t, s, place)
		fresh = memblob.New()
		restoreFrom(t, fresh, place, 0, snapshots.Ledger{})
		_, content = served(t, fresh)
		must.Hold(t, content["drivers"] == "d2", "after %d calls and another run the backup holds %q, want d2", calls, content["drivers"])
		if !died() {
			t.Logf("%d calls", calls)
			return
		}
	}
}

// TestOneCallFails lets one call of a backup or a restore fail, each in turn, and all others succeed. The job reports the
// error, or has copied everything that an undisturbed one copies.
func TestOneCallFails(t *testing.T) {
	failed := errors.New("one call failed")
	s, place := memblob.New(), memblob.New()
	furnish(t, s)
	publishWith(t, s, record(t, s, 1), bodies{"drivers": "d1"})
	backUp(t, s, place)
	publishWith(t, s, record(t, s, 2), bodies{"drivers": "d2"})
	s.Corrupt("keys/keys.json", []byte(`{"keys":2}`))
	restore := func(store, place blob.Store) error {
		return must.Err(backup.Restore(t.Context(), backup.Restoring{Store: store, Backup: place, Builder: "operator"}))
	}
	backUpTo := func(place, store blob.Store) error {
		return must.Err(backup.Make(t.Context(), store, place, raceDay, nil))
	}
	for _, test := range []struct {
		name     string
		job      func(to, from blob.Store) error
		from, to *memblob.Store // what the job finds; to is copied
		source   bool           // a call to the source fails, and not one to the target
	}{
		{"back up: the store", backUpTo, s, place, true},
		{"back up: the place", backUpTo, s, place, false},
		{"restore: the place", restore, place, memblob.New(), true},
		{"restore: the store", restore, place, memblob.New(), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var undisturbed map[string]string
			for n := int64(0); ; n++ {
				to, calls := copyOf(t, test.to), atomic.Int64{}
				failing := func(s blob.Store) blob.Store {
					return faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate {
						if calls.Add(1) == n {
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
				err := test.job(target, from)
				switch {
				case n == 0:
					must.Do(t, err)
					undisturbed = lastingBytes(t, to)
				case err == nil:
					must.Equal(t, fmt.Sprintf("call %d failed, and there is no error", n), undisturbed, lastingBytes(t, to))
				default:
					must.Fail(t, fmt.Sprintf("call %d failed", n), err, failed)
				}
				if n > calls.Load() {
					t.Logf("%d calls", n-1)
					return
				}
			}
		})
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

// TestRestoreBreaksOff shows that a restore which breaks off can be run again, and that no reader sees half of it.
func TestRestoreBreaksOff(t *testing.T) {
	s, place := memblob.New(), memblob.New()
	furnish(t, s)
	publishWith(t, s, record(t, s, 1), bodies{"drivers": "d1"})
	backUp(t, s, place)
	for calls := int64(0); ; calls++ {
		fresh := memblob.New()
		broken, died := dying(fresh, calls)
		p := snapshots.Publisher{Store: broken, Workers: 1}
		if _, err := backup.Restore(t.Context(), backup.Restoring{Store: p.Store, Backup: place, Builder: "operator"}); (err == nil) == died() && err == nil {
			t.Fatalf("broken off after %d calls without an error", calls)
		}
		switch v, err := snapshots.Open(t.Context(), fresh, nil); {
		case err == nil:
			checkWhole(t, v)
		case !errors.Is(err, snapshots.ErrNone):
			t.Errorf("after %d calls readers meet %v", calls, err)
		default:
			restoreFrom(t, fresh, place, 0, snapshots.Ledger{})
		}
		_, content := served(t, fresh)
		must.Hold(t, content["drivers"] == "d1", "after %d calls and another run %q is served", calls, content["drivers"])
		if !died() {
			t.Logf("%d calls", calls)
			return
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	s, place := memblob.New(), memblob.New()
	furnish(t, s)
	head := record(t, s, 1)
	publishWith(t, s, head, bodies{"drivers": "d1"})
	backUp(t, s, place)
	p := snapshots.Publisher{Store: s}
	must.Fail(t, "into the store itself", must.Err(backup.Restore(t.Context(), backup.Restoring{Store: p.Store, Backup: place})), backup.ErrNotLost)

	other := memblob.New()
	create(t, other, "ledger/00000001.json", `{"seq":1,"of":"another service"}`)
	before := keysOf(t, other)
	p.Store = other
	must.Fail(t, "over another ledger", must.Err(backup.Restore(t.Context(), backup.Restoring{Store: p.Store, Backup: place})), backup.ErrOtherRecord)
	must.Equal(t, "and yet something was written", before, keysOf(t, other))

	p.Store = memblob.New()
	_, err := backup.Restore(t.Context(), backup.Restoring{Store: p.Store, Backup: place, Above: 1 << 40})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "cannot have been served"), "above a number that cannot be: %v", err)
	must.Fail(t, "restored from nothing", must.Err(backup.Restore(t.Context(), backup.Restoring{Store: p.Store, Backup: memblob.New()})))
	place.Corrupt("objects/1/drivers.json.gz", []byte("dX"))
	must.Fail(t, "from a damaged backup", must.Err(backup.Restore(t.Context(), backup.Restoring{Store: p.Store, Backup: place})), snapshots.ErrDamaged)
	keys := keysOf(t, p.Store)
	must.Hold(t, len(keys) == 0, "refused, and yet there is %v", keys)
	must.Fail(t, "a backup was written over a store", must.Err(backup.Make(t.Context(), s, other, raceDay, nil)))
}

// TestRestoreIntoWhatIsLeft shows that a restore keeps a longer ledger and newer keys, repairs damaged objects,
// and publishes under a number above every claim in the store.
func TestRestoreIntoWhatIsLeft(t *testing.T) {
	s, place := memblob.New(), memblob.New()
	furnish(t, s)
	publishWith(t, s, record(t, s, 1), bodies{"drivers": "d1", "calendar/2024": "c1"})
	backUp(t, s, place)
	newer := record(t, s, 2)
	for version := 2; version <= 4; version++ {
		create(t, s, fmt.Sprintf("versions/%d.json", version), `{"builder":"killed"}`)
	}
	keys := must.Get(s.Get(t.Context(), "keys/keys.json", blob.MaxDocument))(t)
	must.Get(s.Swap(t.Context(), "keys/keys.json", keys.Tag, []byte(`{"keys":[]}`)))(t)
	s.Corrupt("objects/1/drivers.json.gz", []byte("dX"))
	s.Corrupt("settings.json", []byte("{"))
	s.Corrupt("archives/"+snapshots.Digest([]byte("the archive")), nil)
	s.Corrupt(partKey, []byte("no frame"))

	got := restoreFrom(t, s, place, 0, newer)
	must.Hold(t, got.Version == 5 && got.Ledger == newer && len(got.Lost) == 0, "restored: %+v, want version 5 and nothing lost", got)
	must.Equal(t, "kept", []string{"keys/keys.json"}, got.Kept)
	must.Equal(t, "documents as of the backup", []string{"settings.json"}, got.Older)
	wantServed(t, s, 5, "d1")
	for key, want := range map[string]string{"settings.json": `{"auto_verify_after":"1h"}`, "keys/keys.json": `{"keys":[]}`, partKey: zipped(t)} {
		o, err := s.Get(t.Context(), key, blob.MaxDocument)
		must.Hold(t, err == nil && string(o.Data) == want, "%s holds %q, %v; want %q", key, o.Data, err, want)
	}
}

// TestRestoreSinceAHash shows that a noted hash without a number is searched for in the whole ledger.
func TestRestoreSinceAHash(t *testing.T) {
	s, place := memblob.New(), memblob.New()
	first := record(t, s, 1)
	publishWith(t, s, record(t, s, 2), bodies{"drivers": "d1"})
	backUp(t, s, place)
	lost := record(t, s, 3)
	for _, test := range []struct {
		hash string
		lost int
	}{{first.Hash, 0}, {lost.Hash, 1}} {
		got := restoreFrom(t, memblob.New(), place, 0, snapshots.Ledger{Hash: test.hash})
		if len(got.Lost) != test.lost || test.lost > 0 && !strings.Contains(got.Lost[0], test.hash) {
			t.Errorf("since %s: lost %q, want %d", test.hash, got.Lost, test.lost)
		}
	}
}

// TestRestoreOfALog shows that a restore names the end of the public log as lost if it lacks files of the ledger.
func TestRestoreOfALog(t *testing.T) {
	s, place, key := memblob.New(), memblob.New(), signers(t, keyFile(t, origin))
	d := draftOf(loadBase(t, s), bodies{"drivers": "d1", "log/checkpoint": "1"})
	d.Ledger = record(t, s, 1)
	publisher := snapshots.Publisher{Store: s, Signers: key}
	must.Get(publisher.Publish(t.Context(), d))(t)
	backUp(t, s, place)
	for seq, lost := range map[int64]int{1: 0, 2: 2} {
		got, err := backup.Restore(t.Context(), backup.Restoring{Store: memblob.New(), Backup: place, Signers: key, Since: snapshots.Ledger{Seq: seq}})
		if err != nil || len(got.Lost) != lost || lost > 0 && !strings.HasPrefix(got.Lost[1], "the end of the public log") {
			t.Errorf("since file %d: lost %q, %v; want %d", seq, got.Lost, err, lost)
		}
	}
}

// TestRestoreOfARecord shows that a store with a whole version gets back its lost ledger files, and no version.
func TestRestoreOfARecord(t *testing.T) {
	s, place := memblob.New(), memblob.New()
	furnish(t, s)
	record(t, s, 1)
	head := record(t, s, 2)
	publishWith(t, s, head, bodies{"drivers": "d1"})
	backUp(t, s, place)
	publishWith(t, s, head, bodies{"drivers": "d2"})
	for _, key := range []string{"ledger/00000001.json", "ledger/00000002.json", "keys/keys.json"} {
		must.Do(t, s.Delete(t.Context(), key))
	}
	got := restoreFrom(t, s, place, 0, head)
	if got.Version != 2 || !got.Unchanged || got.ObjectsWritten != 3 || got.Ledger != head || len(got.Lost) > 0 {
		t.Errorf("restored: %+v, want three objects and version 2 as it was", got)
	}
	wantServed(t, s, 2, "d2")
}

// TestBackupOfADamagedStore shows that a fault of the store is in the result, and every other object in the backup.
func TestBackupOfADamagedStore(t *testing.T) {
	s, place := memblob.New(), memblob.New()
	furnish(t, s)
	record(t, s, 1)
	publishWith(t, s, record(t, s, 2), bodies{"drivers": "d1", "calendar/2024": "c1"})
	backUp(t, s, place)
	record(t, s, 3)
	record(t, s, 4)
	s.Corrupt("objects/1/drivers.json.gz", []byte("dX"))
	must.Do(t, s.Delete(t.Context(), "ledger/00000003.json"))
	info := must.Get(backup.Make(t.Context(), s, place, raceDay, nil))(t)
	// The object is good in the backup, so only the hole is a fault.
	must.Hold(t, len(info.Faults) == 1 && strings.Contains(info.Faults[0], "ledger/00000003.json"), "faults %q, want the hole in the ledger", info.Faults)
	fresh := memblob.New()
	restoreFrom(t, fresh, place, 0, snapshots.Ledger{})
	wantServed(t, fresh, 0, "d1")
}
