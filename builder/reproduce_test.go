package builder_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/proof"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// again makes a version of a store again.
func again(t *testing.T, store blob.Store, version int64) (proof.Reproduction, error) {
	t.Helper()
	r, err := proof.NewReproducer(t.Context(), store)
	if err != nil {
		return proof.Reproduction{}, err
	}
	return r.Version(t.Context(), version)
}

// versionKey makes a key that signs versions.
func versionKey(t *testing.T) *notes.Signers {
	t.Helper()
	file := filepath.Join(t.TempDir(), "version.key")
	must.Do(t, notes.MakeKey(file, "example.com/gridcast"))
	return must.Get(notes.ReadSigners(file))(t)
}

// livedThrough is a store with signed versions of every kind: with and without derived documents, with
// refused documents, rolled back and released. It also returns the version with the refused documents.
func livedThrough(t *testing.T) (store *memblob.Store, refused int64) {
	t.Helper()
	facts := testseason.ShortFacts(t, testseason.Austria)
	qualified := time.Date(2024, 6, 29, 16, 0, 0, 0, time.UTC) // of Austria, the eleventh round
	verified := time.Date(2024, 6, 30, 17, 0, 0, 0, time.UTC)
	store = memblob.New()
	whole := archivetest.Stored(t, facts)
	b := testseason.New(t, testseason.Config{
		Stored: whole, Opened: qualified.Add(-time.Hour), Store: store, Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: time.Hour},
	})
	b.Release, b.Signers = "v1.0.0", versionKey(t)
	b.TitleRuns = 0 // published odds, because the reproducer makes those again
	facts.Circuits = maps.Clone(facts.Circuits)
	nameless := facts.Circuits["silverstone"] // of the next race
	nameless.Name = ""
	facts.Circuits[nameless.ID] = nameless
	faulty := archivetest.Stored(t, facts)
	build(t, b.Builder, qualified)
	testseason.Derive(t, b.Builder, qualified, true)
	earlier := build(t, b.Builder, qualified).Version
	austria, _ := whole.Archive.AsOf(verified).Round(2024, "austria")
	race := &running{t: t, Builder: b.Builder, round: austria}
	race.drives(race.lap(1), race.lap(2), race.lap(18), race.lap(54), race.lap(71), race.phase(live.Over, ends(71).Add(time.Second)))
	b.Use(faulty)
	first := build(t, b.Builder, verified)
	must.Require(t, len(first.Refused) != 0, "no document is refused")
	refused = build(t, b.Builder, verified.Add(20*time.Hour)).Version // refused once more
	testseason.Derive(t, b.Builder, verified.Add(20*time.Hour), true)
	build(t, b.Builder, verified.Add(21*time.Hour))
	b.Use(whole)
	build(t, b.Builder, verified.Add(22*time.Hour))
	publisher := snapshots.Publisher{Store: store, Signers: b.Signers}
	must.Get(publisher.Rollback(t.Context(), earlier, "test", "a test", verified.AddDate(0, 0, 2)))(t)
	must.Get(b.Build(t.Context(), builder.Request{At: verified.AddDate(0, 0, 3), Release: true}))(t)
	next := time.Date(2024, 7, 6, 20, 0, 0, 0, time.UTC) // after the qualifying of Silverstone
	build(t, b.Builder, next)
	b.Decide(next, austriaKey, testseason.Exchange)
	build(t, b.Builder, next.Add(time.Minute)) // the timeline of Austria shows the correction
	facts.Seasons = slices.Clone(facts.Seasons)
	facts.Seasons[1].Rounds = slices.Clone(facts.Seasons[1].Rounds)
	silverstone := &facts.Seasons[1].Rounds[11]
	kept := silverstone.Grid
	silverstone.Grid = slices.Clone(kept[1:])
	facts.Circuits = whole.Archive.Facts().Circuits
	b.Use(archivetest.Stored(t, facts))
	build(t, b.Builder, next.Add(2*time.Minute))
	if s, _ := b.Ledger.Fold().Record(2024012); !s.Withdrawn(kept[0].Driver) {
		t.Fatalf("%s left the grid, and the ledger has no withdrawal", kept[0].Driver)
	}
	b.Use(whole)
	build(t, b.Builder, next.Add(3*time.Minute)) // the driver is back
	build(t, b.Builder, next.AddDate(0, 0, 1))
	return store, refused
}

// TestEveryVersionIsMadeAgain makes each version of a store again, and names what differs or is missing if a byte of
// the store is altered or lost.
func TestEveryVersionIsMadeAgain(t *testing.T) {
	must.Long(t, "makes fifteen versions twice")
	store, refused := livedThrough(t)
	r := must.Get(proof.NewReproducer(t.Context(), store))(t)
	h := must.Get(snapshots.LoadHistory(t.Context(), store))(t)
	must.Require(t, len(h.Versions) >= 15, "there are the versions %v, want fifteen", h.Versions)
	for _, version := range h.Versions {
		got := must.Get(r.Version(t.Context(), version))(t)
		if got.FirstDifference != nil || got.Equal != got.Documents || got.Documents != len(h.Manifests[version].Entries) || got.Release != "v1.0.0" {
			t.Errorf("version %d: %+v, first difference %+v", version, got, got.FirstDifference)
		}
	}
	derived := func(v int64) snapshots.Derivation { return h.Manifests[v].DerivedFrom }
	if last := h.Versions[0]; derived(last).Model != predict.V2 || derived(last).Ledger.Seq == 0 || derived(refused) != derived(refused-1) {
		t.Errorf("version %d names %+v for its derived documents, version %d %+v", last, derived(last), refused, derived(refused))
	}

	kept := clone(t, store)
	before := h.Manifests[refused].Refused[0].Version
	for _, version := range h.Versions { // as if the version with refused documents were the last
		if version > refused {
			must.Do(t, kept.Delete(t.Context(), snapshots.ManifestKey(version)))
		}
	}
	pointer := must.Get(json.Marshal(snapshots.Pointer{Version: refused, Manifest: h.Manifests[refused+1].BaseManifest}))(t)
	kept.Corrupt(snapshots.PointerKey, pointer)
	pruned, err := snapshots.Prune(t.Context(), kept, 1, time.Now().AddDate(0, 0, 2), false)
	if err != nil || slices.Contains(pruned.Kept, before) || len(pruned.Removed) == 0 {
		t.Errorf("prune: kept %v and removed %d objects, %v", pruned.Kept, len(pruned.Removed), err)
	}
	if got, err := again(t, kept, refused); err != nil || got.FirstDifference != nil || got.Equal != got.Documents {
		t.Errorf("after the prune: %+v, %v", got, err)
	}

	current := h.Manifests[h.Versions[0]]
	at := func(m snapshots.Manifest, path string) snapshots.ManifestEntry {
		return m.Entries[slices.IndexFunc(m.Entries, func(e snapshots.ManifestEntry) bool { return e.Path == path })]
	}
	hashes := regexp.MustCompile(`[0-9a-f]{64}`)
	first := h.Manifests[1] // without derived documents, which take longest
	for _, test := range []struct {
		what    string
		alter   func(t *testing.T, store *memblob.Store)
		version int64
		want    *proof.DocDifference
		fails   bool
	}{
		{what: "a field of a body", version: 1, want: &proof.DocDifference{
			Endpoint: "standings", Variant: "standings/drivers/2024", Field: "data[driver=VER].points", Published: "999", Made: "219",
		}, alter: func(t *testing.T, store *memblob.Store) {
			edit(t, store, at(first, "standings/drivers/2024").Object, `"points":219`, `"points":999`)
		}},
		{what: "a line of a feed", version: 1, want: &proof.DocDifference{
			Endpoint: "/calendar.ics", Variant: "feeds/calendar.ics", Field: "line 3", Published: `"PRODID:-//fraud//calendar//EN"`, Made: `"PRODID:-//gridcast//calendar//EN"`,
		}, alter: func(t *testing.T, store *memblob.Store) {
			edit(t, store, at(first, "feeds/calendar.ics").Object, "-//gridcast//", "-//fraud//")
		}},
		{what: "a leaf of the public log", version: 1, want: &proof.DocDifference{
			Endpoint: "/log/tile/entries/000", Variant: "log/tile/entries/000", Field: "line 1", // and hashes
		}, alter: func(t *testing.T, store *memblob.Store) {
			edit(t, store, at(first, "log/tile/entries/000").Object, "ledger 1 sha256", "ledger 9 sha256")
		}},
		{what: "the size of the public log", version: 1, fails: true, alter: func(t *testing.T, store *memblob.Store) {
			edit(t, store, at(first, "log/checkpoint").Object, fmt.Sprintf("\n%d\n", first.Ledger.Seq), "\n1\n")
		}},
		{what: "a derived body", want: &proof.DocDifference{
			Endpoint: "title-odds", Variant: "title-odds/2023", Field: "data.drivers[driver=VER].title_pct", Published: "99.9", Made: "100.0",
		}, alter: func(t *testing.T, store *memblob.Store) {
			edit(t, store, at(current, "title-odds/2023").Object, `"title_pct":100.0`, `"title_pct":99.9`)
		}},
		{what: "the observations are lost", fails: true, version: refused, alter: func(t *testing.T, store *memblob.Store) {
			must.Do(t, store.Delete(t.Context(), chain.Chain{Prefix: "live/2024011/"}.Key(6)))
		}},
		{what: "the archive is lost", fails: true, version: refused, alter: func(t *testing.T, store *memblob.Store) {
			must.Do(t, store.Delete(t.Context(), "archives/"+h.Manifests[refused].Archive))
		}},
		{what: "the opening archive is lost", fails: true, alter: func(t *testing.T, store *memblob.Store) {
			must.Do(t, store.Delete(t.Context(), "archives/"+current.Archive))
		}},
		{what: "the ledger is shorter", fails: true, alter: func(t *testing.T, store *memblob.Store) {
			must.Do(t, store.Delete(t.Context(), ledgerKey(current.Ledger.Seq)))
		}},
		{what: "a kept version is lost", fails: true, version: refused, alter: func(t *testing.T, store *memblob.Store) {
			must.Do(t, store.Delete(t.Context(), snapshots.ManifestKey(h.Manifests[refused].Refused[0].Version)))
		}},
	} {
		t.Run(test.what, func(t *testing.T) {
			altered := clone(t, store)
			test.alter(t, altered)
			got, err := again(t, altered, test.version)
			if test.fails {
				golden.Sentence(t, test.what, hashes.ReplaceAllString(fmt.Sprint(err), "HASH"))
				return
			}
			if got.FirstDifference != nil && test.want.Made == "" {
				got.FirstDifference.Published, got.FirstDifference.Made = "", ""
			}
			if err != nil || got.FirstDifference == nil || *got.FirstDifference != *test.want || got.Equal != got.Documents-1 {
				t.Errorf("got %+v, first difference %+v, %v; want %+v", got, got.FirstDifference, err, test.want)
			}
		})
	}
}

// edit replaces a text in a body, packed or not, behind the program's back.
func edit(t *testing.T, store *memblob.Store, key, old, new string) {
	t.Helper()
	o := must.Get(store.Get(t.Context(), key, 1<<20))(t)
	body := o.Data
	z, err := gzip.NewReader(bytes.NewReader(body))
	packed := err == nil
	if packed {
		body = must.Get(io.ReadAll(z))(t)
	}
	must.Require(t, bytes.Contains(body, []byte(old)), "%s has no %s", key, old)
	body = bytes.Replace(body, []byte(old), []byte(new), 1)
	if packed {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(body)
		_ = w.Close()
		body = out.Bytes()
	}
	store.Corrupt(key, body)
}
