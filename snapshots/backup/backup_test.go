package backup_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
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

// TestPlace checks which places accept a backup. A place that Make refuses stays as it was.
func TestPlace(t *testing.T) {
	const first, info = "ledger/00000001.json", "backup.json"
	other := errors.New("any error")
	for _, test := range []struct {
		name  string
		place []string
		want  error
	}{
		{name: "an empty place"},
		{name: "an earlier backup", place: []string{info, "{}", first, `{"kind":"real"}`}},
		{name: "a backup that broke off at its start", place: []string{info, "{}"}},
		{name: "a backup of another ledger", place: []string{info, "{}", first, `{"kind":"simulated"}`}, want: backup.ErrOtherRecord},
		{name: "a folder with other content", place: []string{"letters/1", "x"}, want: other},
		{name: "a store", place: []string{first, `{"kind":"real"}`}, want: other},
	} {
		t.Run(test.name, func(t *testing.T) {
			place := holding(t, test.place...)
			_, err := backup.Make(t.Context(), holding(t, first, `{"kind":"real"}`, "settings.json", "{}"), place, at, nil)
			must.Hold(t, (err == nil) == (test.want == nil) && (errors.Is(test.want, other) || errors.Is(err, test.want)),
				"got %v, want %v", err, test.want)
			_, found := place.Get(t.Context(), "settings.json", blob.MaxDocument)
			must.Hold(t, (found == nil) == (test.want == nil), "after %v the settings in the place: %v", err, found)
		})
	}
}

// TestLostStore checks that a store without a ledger does not replace the backup of a ledger: the disk of the store may
// not be mounted, and keys that were made since would replace all others.
func TestLostStore(t *testing.T) {
	const first, kept = "ledger/00000001.json", `{"at":"2026-07-05T12:00:00Z","version":7}`
	unreachable := faultblob.Wrap(holding(t, first, `{"kind":"real"}`), func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if c.Op == faultblob.Get && c.Key == first {
			return faultblob.Fate{Err: errUnreachable}
		}
		return faultblob.Fate{}
	})
	for _, test := range []struct {
		name  string
		store blob.Store
		want  error
	}{
		{"an empty store", memblob.New(), backup.ErrOtherRecord},
		{"a store with new keys alone", holding(t, "keys/keys.json", "{}"), backup.ErrOtherRecord},
		{"a store whose ledger cannot be read", unreachable, errUnreachable},
		{"a store that has lost the first file of its ledger", holding(t, "ledger/00000002.json", "{}"), nil},
	} {
		place := holding(t, "backup.json", kept, first, `{"kind":"real"}`, "keys/keys.json", `{"keys":1}`)
		must.Fail(t, test.name, must.Err(backup.Make(t.Context(), test.store, place, at, nil)), test.want)
		o, err := place.Get(t.Context(), "backup.json", blob.MaxDocument)
		must.Hold(t, err == nil && (string(o.Data) == kept) == (test.want != nil),
			"%s: the place describes its backup by %s, %v", test.name, o.Data, err)
	}
}

var errUnreachable = errors.New("unreachable")

// TestOrderOfWrites checks that a backup writes what the pointer refers to before the pointer, and its
// description last, so that a run that breaks off leaves the earlier backup.
func TestOrderOfWrites(t *testing.T) {
	store := holding(t, "ledger/00000001.json", `{"kind":"real"}`, "settings.json", "{}", "keys/keys.json", "{}", "probe/left", "x")
	publisher := snapshots.Publisher{Store: store}
	packed := must.Get(snapshots.Pack([]byte("{}")))(t)
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	must.Get(publisher.Publish(t.Context(), snapshots.Draft{
		Base: base,
		About: snapshots.About{
			Builder: "test", BuiltAt: at, CurrentSeason: 2026, Seasons: []int{2026},
			Ledger: snapshots.Ledger{Kind: "real", Seq: 1, Hash: snapshots.Digest([]byte(`{"kind":"real"}`))},
		},
		Variants: []snapshots.Variant{snapshots.New("calendar/2026", []byte("{}"), packed, at)},
	}))(t)
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
	if err != nil || info.Version != 1 || len(info.Faults) > 0 {
		t.Fatalf("%+v, %v", info, err)
	}
	written = slices.Compact(written) // a Swap follows the Create that found an object
	must.Equal(t, "the last writes", []string{"keys/keys.json", "settings.json", snapshots.PointerKey, "backup.json"}, written[max(0, len(written)-4):])
	must.Hold(t, written[0] == "backup.json" && !slices.Contains(written, "probe/left"),
		"got the writes %q, want first the mark of the place, and no probe", written)
}
