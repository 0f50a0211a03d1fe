package backup_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

var at = time.Date(2026, 7, 5, 14, 0, 0, 0, time.UTC)

// holding returns a store with objects, given as pairs of key and content.
func holding(t *testing.T, objects ...string) blob.Store {
	t.Helper()
	s := memblob.New()
	for pair := range slices.Chunk(objects, 2) {
		must.Get(s.Create(t.Context(), pair[0], []byte(pair[1])))(t)
	}
	return s
}

// publish publishes a version into a store with a ledger of one file.
func publish(t *testing.T, store blob.Store, ledger string) {
	t.Helper()
	publisher := snapshots.Publisher{Store: store}
	packed := must.Get(snapshots.Pack([]byte("{}")))(t)
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	must.Get(publisher.Publish(t.Context(), snapshots.Draft{
		Base: base,
		About: snapshots.About{
			Builder: "test", BuiltAt: at, CurrentSeason: 2026, Seasons: []int{2026},
			Ledger: snapshots.Ledger{Kind: "real", Seq: 1, Hash: snapshots.Digest([]byte(ledger))},
		},
		Variants: []snapshots.Variant{snapshots.New("calendar/2026", []byte("{}"), packed, at)},
	}))(t)
}

// TestOrderOfWrites checks that a backup writes what the pointer refers to before the pointer, and its
// description last, so that a run that breaks off leaves the earlier backup.
func TestOrderOfWrites(t *testing.T) {
	store := holding(t, "ledger/00000001.json", `{"kind":"real"}`, "settings.json", "{}", "keys/keys.json", "{}", "probe/left", "x", "gone.json", "{}", "audit/1", "{}")
	publish(t, store, `{"kind":"real"}`)
	bad := map[string]error{"gone.json": blob.ErrNotFound, "audit/1": blob.ErrTooLarge}
	store = faultblob.Wrap(store, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
		if err := bad[c.Key]; err != nil {
			fate.Err = fmt.Errorf("read: %w", err)
		}
		return fate
	})
	var (
		mu      sync.Mutex // Make copies several objects at a time
		written []string
	)
	place := faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if c.Op.Writes() {
			mu.Lock()
			defer mu.Unlock()
			written = append(written, c.Key)
		}
		return faultblob.Fate{}
	})
	info, err := backup.Make(t.Context(), store, place, at, nil)
	must.Require(t, err == nil && info.Version == 1, "%+v, %v", info, err)
	must.Equal(t, "faults", []string{"read audit/1: read: " + blob.ErrTooLarge.Error()}, info.Faults)
	must.Show(t, "the description", string(must.Get(place.Get(t.Context(), "backup.json", blob.MaxDocument))(t).Data), "\n  \"at\"", "\n}")
	must.Fail(t, "in a year without JSON", must.Err(backup.Make(t.Context(), store, memblob.New(), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), nil)))
	written = slices.Compact(written) // a Swap follows the Create that found an object
	must.Equal(t, "the last writes", []string{"keys/keys.json", "settings.json", snapshots.PointerKey, "backup.json"}, written[max(0, len(written)-4):])
	must.Equal(t, "the first write of the pointer", len(written)-2, slices.Index(written, snapshots.PointerKey))
	must.Hold(t, written[0] == "backup.json" && !slices.Contains(written, "probe/left"),
		"got the writes %q, want first the mark of the place, and no probe", written)
}

// TestUnknownPlace: a backup ends at one call without an answer, if it does not know then whether the place is its own.
func TestUnknownPlace(t *testing.T) {
	for _, test := range []struct {
		store, place []string
		ofPlace      bool // the place does not answer
		call         faultblob.Call
	}{
		{ofPlace: true, call: faultblob.Call{Op: faultblob.Get, Key: "backup.json"}},
		{ofPlace: true, call: faultblob.Call{Op: faultblob.List}},
		{ofPlace: true, call: faultblob.Call{Op: faultblob.Create, Key: "backup.json"}},
		{ofPlace: true, call: faultblob.Call{Op: faultblob.Swap, Key: "backup.json"}}, // at the end
		{[]string{"ledger/00000001.json", "1"}, []string{"backup.json", "{}", "ledger/00000001.json", "2"}, true, faultblob.Call{Op: faultblob.Get, Key: "ledger/00000001.json"}},
		{[]string{"ledger/00000001.json", "1"}, []string{"backup.json", "{}", "ledger/00000001.json", "2"}, false, faultblob.Call{Op: faultblob.Get, Key: "ledger/00000001.json"}},
		{[]string{"settings.json", "{}"}, []string{"backup.json", "{}", "ledger/00000001.json", "2"}, false, faultblob.Call{Op: faultblob.List, Key: "ledger/"}},
	} {
		silent := errors.New("no answer")
		var failed sync.Once
		once := func(inner blob.Store) blob.Store {
			return faultblob.Wrap(inner, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
				if c == test.call {
					failed.Do(func() { fate.Err = silent })
				}
				return fate
			})
		}
		store, place := holding(t, test.store...), holding(t, test.place...)
		if test.ofPlace {
			place = once(place)
		} else {
			store = once(store)
		}
		must.Fail(t, fmt.Sprint(test.call), must.Err(backup.Make(t.Context(), store, place, at, nil)), silent)
	}
}

// TestBadReads: reads that damage an object leave no gap in the log of the backup, and no damaged copy, unless all do.
func TestBadReads(t *testing.T) {
	files := []string{"ledger/00000001.json", `{"seq":1}`, "ledger/00000002.json", `{"seq":2}`, "facts/log/00000001.json", `{"seq":1}`}
	var count atomic.Int64
	for _, bad := range []int{0, 1, 4, 5} { // the first reads of each object that are bad
		for name, mangle := range map[string]func([]byte) []byte{
			"half":  func(data []byte) []byte { return data[:len(data)/2] },
			"other": func(data []byte) []byte { return fmt.Appendf(data[:len(data)-1], `,"a":%d}`, count.Add(1)) },
		} {
			var mu sync.Mutex
			reads := map[string]int{}
			store := faultblob.Wrap(holding(t, files...), func(_ context.Context, c faultblob.Call) faultblob.Fate {
				mu.Lock()
				defer mu.Unlock()
				if reads[c.Key]++; c.Op == faultblob.Get && reads[c.Key] <= bad {
					return faultblob.Fate{Mangle: mangle}
				}
				return faultblob.Fate{}
			})
			place, faults, copied := memblob.New(), 0, files
			if bad == 5 { // of six
				faults, copied = len(files)/2, nil
			}
			for range 2 { // a later run compares the copies
				info := must.Get(backup.Make(t.Context(), store, place, at, nil))(t)
				must.Equal(t, fmt.Sprintf("faults by %d bad reads, %s", bad, name), faults, len(info.Faults))
				clear(reads)
			}
			for pair := range slices.Chunk(copied, 2) {
				must.Equal(t, pair[0], pair[1], string(must.Get(place.Get(t.Context(), pair[0], blob.MaxDocument))(t).Data))
			}
		}
	}
}

// threeLogs are three logs of nine files, as pairs of key and content.
func threeLogs() (files []string) {
	for _, folder := range []string{"audit/", "facts/log/", "ledger/"} {
		for seq := range 9 {
			files = append(files, fmt.Sprintf("%s%08d.json", folder, seq+1), fmt.Sprintf(`{"seq":%d}`, seq+1))
		}
	}
	return files
}

// TestBrokenOffBackup: a backup that breaks off at a file of a log has copied no later file of that log. An earlier backup in
// the same place could not be restored otherwise.
func TestBrokenOffBackup(t *testing.T) {
	files := append(threeLogs(), "ledger/00000003.text", "between two files")
	fails := func(inner blob.Store, op faultblob.Op) blob.Store { // after a minute, in which the other files are copied
		return faultblob.Wrap(inner, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
			if c.Op == op && path.Base(c.Key) == "00000003.json" {
				time.Sleep(time.Minute)
				fate.Err = errors.New("the storage answered 503")
			}
			return fate
		})
	}
	for _, op := range []faultblob.Op{faultblob.Get, faultblob.Create} {
		synctest.Test(t, func(t *testing.T) {
			store, place := holding(t, files...), memblob.New()
			var err error
			if op == faultblob.Get {
				_, err = backup.Make(t.Context(), fails(store, op), place, at, nil)
			} else {
				_, err = backup.Make(t.Context(), store, fails(place, op), at, nil)
			}
			must.Fail(t, "a backup that breaks off", err)
			for i := 0; i < len(files); i += 2 {
				_, err := place.Get(t.Context(), files[i], blob.MaxDocument)
				must.Hold(t, (err == nil) == ((i/2)%9 < 2), "%v fails: %s: %v; want the first two files of each log", op, files[i], err)
			}
		})
	}
}

// TestBrokenOffRestore: a restore that breaks off at any file leaves no log that begins and is not whole, because a scheduler
// would begin with that part. A log of which the store still has a part gets a gap. A second restore completes all.
func TestBrokenOffRestore(t *testing.T) {
	files := threeLogs()
	whole := holding(t, files...)
	publish(t, whole, files[slices.Index(files, "ledger/00000001.json")+1])
	place := memblob.New()
	must.Get(backup.Make(t.Context(), whole, place, at, nil))(t)
	for left := range 3 { // files of each log that the store still has
		for broken := left; broken < 9; broken++ {
			store := memblob.New()
			for i := 0; i < len(files); i += 2 {
				if i/2%9 < left {
					must.Get(store.Create(t.Context(), files[i], []byte(files[i+1])))(t)
				}
			}
			down := faultblob.Wrap(store, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
				if c.Op.Writes() && path.Base(c.Key) == fmt.Sprintf("%08d.json", broken+1) {
					fate.Err = errors.New("the storage answered 503")
				}
				return fate
			})
			_, err := backup.Restore(t.Context(), backup.Restoring{Store: down, Backup: place, Builder: "test"})
			must.Fail(t, "a restore that breaks off", err)
			for _, folder := range []string{"audit/", "facts/log/", "ledger/"} {
				records, rest, err := chain.Chain{Store: store, Prefix: folder}.Load(t.Context())
				must.Hold(t, err == nil && (len(records) == left || rest.Gap != nil), "%d left, file %d fails: %s has %d files and no gap, %v", left, broken+1, folder, len(records), err)
			}
			large := faultblob.Wrap(store, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
				if c == (faultblob.Call{Op: faultblob.Get, Key: "audit/00000009.json"}) {
					fate.Err = fmt.Errorf("read: %w", blob.ErrTooLarge)
				}
				return fate
			})
			got := must.Get(backup.Restore(t.Context(), backup.Restoring{Store: large, Backup: place, Builder: "test"}))(t)
			must.Hold(t, got.Seconds > 0, "the restore took %v seconds", got.Seconds)
			for i := 0; i < len(files); i += 2 {
				must.Equal(t, files[i], files[i+1], string(must.Get(store.Get(t.Context(), files[i], blob.MaxDocument))(t).Data))
			}
		}
	}
}
