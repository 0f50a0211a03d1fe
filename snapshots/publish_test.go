package snapshots_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

var raceDay = time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)

// strict returns a store that fails the test if an immutable object is written twice.
func strict(t *testing.T) *memblob.Store {
	return memblob.New(memblob.Strict(t, snapshots.Immutable))
}

// bodies are the identity bytes of a version by path.
type bodies map[string]string

// draftOf returns a draft with these bodies, each packed.
func draftOf(base *snapshots.Base, content bodies) snapshots.Draft {
	d := snapshots.Draft{Base: base, About: snapshots.About{
		Builder: "test", BuiltAt: raceDay, DueAt: raceDay.Add(time.Hour),
		CurrentSeason: 2024, Seasons: []int{2023, 2024},
		Archive: snapshots.Digest([]byte("archive")),
		Ledger:  snapshots.Ledger{Kind: "simulated", Seq: 3, Hash: snapshots.Digest([]byte(`"ledger"`))},
	}}
	for path, body := range content {
		d.Variants = append(d.Variants, variant(path, body))
	}
	return d
}

func variant(path, body string) snapshots.Variant {
	return snapshots.New(path, []byte(body), packed(body), raceDay)
}

// packed is a body as gzip, however small it is.
func packed(body string) []byte {
	w, _ := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	return b.Bytes()
}

var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func packedSize(bodies ...string) (size int64) {
	for _, body := range bodies {
		size += int64(len(packed(body)))
	}
	return size
}

func loadBase(t *testing.T, s blob.Store) *snapshots.Base {
	t.Helper()
	return must.Get(snapshots.LoadBase(t.Context(), s, nil))(t)
}

func publish(t *testing.T, s blob.Store, content bodies) snapshots.Receipt {
	t.Helper()
	return must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), draftOf(loadBase(t, s), content)))(t)
}

// served reads the current version as an edge does.
func served(t *testing.T, s blob.Store) (int64, bodies) {
	t.Helper()
	v := must.Get(snapshots.Open(t.Context(), s, nil))(t)
	return v.Pointer.Version, contentOf(v)
}

// wantServed checks the version that readers see, and its drivers; 0 and an empty text: any.
func wantServed(t *testing.T, s blob.Store, version int64, drivers string) {
	t.Helper()
	got, content := served(t, s)
	if version > 0 && got != version || drivers != "" && content["drivers"] != drivers {
		t.Errorf("version %d with %q is current, want %d with %q", got, content["drivers"], version, drivers)
	}
}

func contentOf(v *snapshots.Version) bodies {
	content := bodies{}
	for path, b := range v.All() {
		content[path] = string(b.Identity)
	}
	return content
}

func TestEntriesOfAVersion(t *testing.T) {
	s := strict(t)
	must.Equal(t, "bytes written", packedSize("d1"), publish(t, s, bodies{"drivers": "d1"}).BytesWritten)
	base := loadBase(t, s)
	got, _ := base.Entry("drivers")
	digest := snapshots.Digest([]byte("d1"))
	want := snapshots.ManifestEntry{
		Path: "drivers", Object: "objects/1/drivers.json.gz", SHA256: digest, Size: 2, ETag: digest[:32], GeneratedAt: raceDay,
		Packed: snapshots.Packed{SHA256: snapshots.Digest(packed("d1")), Size: packedSize("d1")},
	}
	must.Equal(t, "entry", want, got)
	base.Manifest.Refused = []snapshots.RefusedEntry{{Path: "calendar/2024", Version: 7}}
	must.Equal(t, "versions whose bytes stay", [3]int64{1, 7, 0}, [3]int64{base.Keeps("drivers"), base.Keeps("calendar/2024"), base.Keeps("next-race")})
	body, err := base.Body(t.Context(), got)
	must.Hold(t, err == nil && string(body) == "d1", "body of the entry: got %q, %v", body, err)
}

// TestDrafts changes a draft of the current version. A change that no reader could notice publishes nothing, and a refused
// draft leaves nothing behind.
func TestDrafts(t *testing.T) {
	unchanged, invalid := errors.New("unchanged"), errors.New("invalid")
	for _, test := range []struct {
		name   string
		change func(*snapshots.Draft)
		want   error // nil: it is published
	}{
		{"nothing", func(*snapshots.Draft) {}, unchanged},
		{"builder, reason and time of the build", func(d *snapshots.Draft) {
			d.Builder, d.Reason, d.BuiltAt = "another", "because", d.BuiltAt.Add(time.Minute)
		}, unchanged},
		{"the same bytes, rendered later", func(d *snapshots.Draft) {
			d.Variants[0] = snapshots.New("drivers", []byte("d1"), nil, raceDay.Add(time.Minute))
		}, unchanged},
		{"a body", func(d *snapshots.Draft) { d.Variants[0] = variant("drivers", "d2") }, nil},
		{"a body loses its tag", func(d *snapshots.Draft) { d.Variants[0] = snapshots.Unfinished("drivers", []byte("d1")) }, nil},
		{"a new variant", func(d *snapshots.Draft) { d.Variants = append(d.Variants, variant("calendar/2024", "c")) }, nil},
		{"due time", func(d *snapshots.Draft) { d.DueAt = d.DueAt.Add(time.Minute) }, nil},
		{"ledger head", func(d *snapshots.Draft) { d.Ledger.Seq++ }, nil},
		{"archive", func(d *snapshots.Draft) { d.Archive = snapshots.Digest(nil) }, nil},
		{"current season", func(d *snapshots.Draft) { d.CurrentSeason = 2023 }, nil},
		{"a default season", func(d *snapshots.Draft) { d.DefaultYears = map[string]int{"drivers": 2023} }, nil},
		{"a season more", func(d *snapshots.Draft) { d.Seasons = append(d.Seasons, 2025) }, nil},
		{"clock", func(d *snapshots.Draft) { d.Clock = "a clock" }, nil},
		{"state", func(d *snapshots.Draft) { d.State = []byte(`{}`) }, nil},
		{"a refused entry", func(d *snapshots.Draft) { d.Refused = []snapshots.RefusedEntry{{Path: "drivers"}} }, nil},
		{"another missing fact", func(d *snapshots.Draft) { d.Missing[0].Code = "grid" }, nil},
		{"since another instant", func(d *snapshots.Draft) { d.Missing[0].Since = raceDay.Add(time.Minute) }, nil},
		{"until another instant", func(d *snapshots.Draft) { d.Missing[0].Until = raceDay.Add(time.Minute) }, nil},
		{"another expected season", func(d *snapshots.Draft) { d.Expected[0].Year = 2023 }, nil},
		{"expected at another instant", func(d *snapshots.Draft) { d.Expected[0].At = raceDay.Add(time.Minute) }, nil},
		{"instants in another time zone", func(d *snapshots.Draft) {
			for _, at := range []*time.Time{&d.DueAt, &d.Missing[0].Since, &d.Missing[0].Until, &d.Expected[0].At} {
				*at = at.In(time.FixedZone("", 1800))
			}
		}, unchanged},

		{"an earlier time", func(d *snapshots.Draft) { d.BuiltAt = d.BuiltAt.Add(-time.Second) }, snapshots.ErrMayNotFollow},
		{"a season lost", func(d *snapshots.Draft) { d.Seasons = []int{2024} }, snapshots.ErrMayNotFollow},
		{"another kind of ledger", func(d *snapshots.Draft) { d.Ledger.Kind = "real" }, snapshots.ErrMayNotFollow},
		{"a shorter ledger", func(d *snapshots.Draft) { d.Ledger.Seq-- }, snapshots.ErrMayNotFollow},
		{"another ledger of that size", func(d *snapshots.Draft) { d.Ledger.Hash = snapshots.Digest(nil) }, snapshots.ErrMayNotFollow},

		{"no base", func(d *snapshots.Draft) { d.Base = nil }, invalid},
		{"no variants", func(d *snapshots.Draft) { d.Variants = nil }, invalid},
		{"a path twice", func(d *snapshots.Draft) { d.Variants = append(d.Variants, d.Variants[0]) }, invalid},
		{"a path outside", func(d *snapshots.Draft) { d.Variants = append(d.Variants, variant("../keys", "x")) }, invalid},
		{"no time", func(d *snapshots.Draft) { d.BuiltAt = time.Time{} }, invalid},
		{"no kind", func(d *snapshots.Draft) { d.Ledger.Kind = "" }, invalid},
		{"unknown season", func(d *snapshots.Draft) { d.CurrentSeason = 1949 }, invalid},
		{"unknown default season", func(d *snapshots.Draft) { d.DefaultYears = map[string]int{"drivers": 1949} }, invalid},
		{"seasons unsorted", func(d *snapshots.Draft) { d.Seasons = []int{2024, 2023} }, invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := strict(t)
			draft := func() snapshots.Draft {
				d := draftOf(loadBase(t, s), bodies{"drivers": "d1"})
				d.Missing = []snapshots.Missing{{Code: "qualifying", Since: raceDay, Until: raceDay.Add(time.Hour)}}
				d.Expected = []snapshots.Expected{{Year: 2024, At: raceDay}}
				return d
			}
			must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), draft()))(t)
			before, d := keysOf(t, s), draft()
			test.change(&d)
			r, err := (&snapshots.Publisher{Store: s}).Publish(t.Context(), d)
			switch {
			case test.want == nil:
				must.Hold(t, err == nil && !r.Unchanged && r.Version == 2,
					"got version %d, unchanged %t, %v; want version 2", r.Version, r.Unchanged, err)
				wantServed(t, s, 2, "")
				for _, e := range loadBase(t, s).Manifest.Entries {
					must.Equal(t, "the object is a gzip", e.Packed.Size > 0, strings.HasSuffix(e.Object, "."+snapshots.GZ))
				}
				return
			case errors.Is(test.want, unchanged):
				must.Hold(t, err == nil && r.Unchanged && r.Version == 1 && r.Base == d.Base,
					"got version %d, unchanged %t, %v; want nothing published", r.Version, r.Unchanged, err)
			case errors.Is(test.want, invalid):
				golden.Sentence(t, "draft with "+test.name, err)
			default:
				golden.Sentence(t, "draft with "+test.name, err)
				must.Fail(t, "a draft that may not follow", err, test.want)
			}
			wantServed(t, s, 1, "d1")
			must.Equal(t, "objects", before, keysOf(t, s))
		})
	}
}

// TestCycles: a version of the sandbox follows a version of an earlier cycle in its number alone.
func TestCycles(t *testing.T) {
	base := &snapshots.Base{Manifest: snapshots.Manifest{Version: 7, Base: 6}}
	must.Equal(t, "the first cycle", snapshots.Manifest{Version: 7}, must.Get(base.OfCycle(1))(t).Manifest)
	base.Manifest.Sandbox = &snapshots.Sandbox{Cycle: 2}
	golden.Sentence(t, "a build of an earlier cycle", must.Err(base.OfCycle(1)))
	must.Hold(t, must.Get(base.OfCycle(2))(t) == base, "the same cycle has another base")
	must.Equal(t, "the next cycle", snapshots.Manifest{Version: 7}, must.Get(base.OfCycle(3))(t).Manifest)
}

func TestReuse(t *testing.T) {
	s := strict(t)
	publish(t, s, bodies{"drivers": "d1", "calendar/2024": "c1"})
	base := loadBase(t, s)
	entry, _ := base.Entry("drivers")

	d, elsewhere := draftOf(base, bodies{"calendar/2024": "c2"}), entry
	elsewhere.GeneratedAt = entry.GeneratedAt.In(time.FixedZone("", 1800))
	d.Variants = append(d.Variants, snapshots.Reused(elsewhere))
	p := snapshots.Publisher{Store: s}
	must.Get(p.Publish(t.Context(), d))(t)
	if got, _ := loadBase(t, s).Entry("drivers"); !cmp.Equal(got, entry) {
		t.Errorf("reused entry (-want +got):\n%s", cmp.Diff(entry, got))
	}

	forged := entry
	forged.Object = "objects/9/drivers.json"
	d = draftOf(loadBase(t, s), bodies{"calendar/2024": "c3"})
	d.Variants = append(d.Variants, snapshots.Reused(forged))
	must.Fail(t, "an entry that the base does not have was published", must.Err(p.Publish(t.Context(), d)))
}

// TestSwapAttempts: a publisher repeats a swap of unknown outcome, and the removal of a pointer that is too large, three times.
func TestSwapAttempts(t *testing.T) {
	for _, size := range []int{0, blob.MaxDocument + 1} {
		s, swaps := memblob.New(), 0
		p := &snapshots.Publisher{Store: faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
			if c.Op == faultblob.Swap {
				swaps++
				fate.Err = fmt.Errorf("answer %d lost: %w", swaps, blob.ErrUnknown)
			}
			if fate.Err != nil && size > 0 {
				s.Corrupt(snapshots.PointerKey, make([]byte, size))
			}
			return fate
		})}
		golden.Sentence(t, fmt.Sprintf("every answer lost, a pointer of %d bytes", size), must.Err(p.Publish(t.Context(), draftOf(ownBase(t, p), bodies{"drivers": "d1"}))))
		must.Equal(t, "swaps", 4, swaps)
	}
	for _, c := range []struct { // a pointer that a crash may take back, and one that the store takes and does not return
		op   faultblob.Op
		fate faultblob.Fate
		want error
	}{{faultblob.Swap, faultblob.Fate{Err: blob.ErrUnsynced, Applied: true}, blob.ErrUnsynced}, {faultblob.Get, faultblob.Fate{Err: blob.ErrNotFound}, snapshots.ErrDamaged}} {
		p := &snapshots.Publisher{Store: faultblob.Wrap(memblob.New(), func(_ context.Context, call faultblob.Call) faultblob.Fate {
			return map[faultblob.Call]faultblob.Fate{{Op: c.op, Key: snapshots.PointerKey}: c.fate}[call]
		})}
		must.Fail(t, "publish", must.Err(p.Publish(t.Context(), draftOf(ownBase(t, p), bodies{"drivers": "d1"}))), c.want)
	}
	s := memblob.New()
	s.Corrupt(snapshots.PointerKey, make([]byte, blob.MaxDocument+1))
	p := &snapshots.Publisher{Store: faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
		if c.Op == faultblob.Delete && c.Key == snapshots.PointerKey {
			fate.Err = errStopped
		}
		return fate
	})}
	must.Fail(t, "a pointer that cannot be removed", must.Err(p.Publish(t.Context(), draftOf(ownBase(t, p), bodies{"drivers": "d1"}))), errStopped)
}

// TestDraftsWithoutJSON: a state that is no JSON, and an instant after the year 9999, of a claim, a pointer or a document, are published nowhere.
func TestDraftsWithoutJSON(t *testing.T) {
	for instants := range 4 {
		ofClaim, s := instants == 1, memblob.New()
		p := &snapshots.Publisher{Store: s, Now: func() time.Time {
			instants--
			return map[bool]time.Time{true: raceDay.AddDate(8000, 0, 0)}[instants == 0]
		}}
		d := draftOf(ownBase(t, p), bodies{"drivers": "d1"})
		switch instants {
		case 0:
			d.State = []byte("{")
		case 3:
			for year := range 64 { // its entries are in a part of the manifest
				d.Variants = append(d.Variants, snapshots.New(fmt.Sprintf("results/%d", 1950+year), nil, nil, raceDay.AddDate(8000, 0, 0)))
			}
		}
		must.Fail(t, "a draft without JSON", must.Err(p.Publish(t.Context(), d)))
		must.Hold(t, !ofClaim || keysOf(t, s) == nil, "a builder without a claim wrote %v", keysOf(t, s))
		must.Fail(t, "the pointer", must.Err2(snapshots.LoadPointer(t.Context(), s)), snapshots.ErrNone)
	}
}

// TestRefusedEntries shows the sentences about refused documents, and the numbers of an entry and of an overdue version.
func TestRefusedEntries(t *testing.T) {
	m := snapshots.Manifest{About: snapshots.About{Refused: []snapshots.RefusedEntry{{Path: "drivers", Reason: "no rows"}, {Path: "calendar/2024", Version: 1, Reason: "no rounds"}}}}
	must.Equal(t, "overdue without an instant, and with one", [2]time.Duration{0, 1}, [2]time.Duration{m.OverdueBy(raceDay), (&snapshots.Manifest{About: snapshots.About{DueAt: raceDay}}).OverdueBy(raceDay.Add(1))})
	must.Equal(t, "the version of an object", int64(12), snapshots.ManifestEntry{Object: "objects/12/drivers.json"}.WrittenIn())
	for _, path := range []string{"drivers", "calendar/2024", "next-race"} {
		refused, ok := m.RefusedAt(path)
		golden.Sentence(t, path+" is refused", fmt.Sprint(ok, " ", refused))
	}
}

// TestProgress: a publish reports each step, and waits for the store as long as its caller does.
func TestProgress(t *testing.T) {
	s := faultblob.Wrap(strict(t), func(ctx context.Context, c faultblob.Call) (none faultblob.Fate) {
		_, limited := ctx.Deadline()
		must.Hold(t, !limited, "%s %s has a deadline", c.Op, c.Key)
		return none
	})
	var got []string
	p := snapshots.Publisher{Store: s, Workers: 4, Progress: func(phase string, done, total int) {
		got = append(got, fmt.Sprintf("%s %d/%d", phase, done, total))
	}}
	must.Get(p.Publish(t.Context(), draftOf(loadBase(t, s), bodies{"drivers": "d1", "calendar/2024": "c1", "calendar/2023": "c0"})))(t)
	want := []string{"upload 0/3", "upload 1/3", "upload 2/3", "upload 3/3", "check 0/3", "check 1/3", "check 2/3", "check 3/3", "swap 0/1", "swap 1/1"}
	must.Equal(t, "progress", want, got)
	must.Do(t, snapshots.Each(t.Context(), "nothing", nil, 1, p.Progress, func(context.Context, int) error { return errStopped }))
	must.Fail(t, "each", snapshots.Each(t.Context(), "one", []int{1, 2}, 1, nil, func(context.Context, int) error { got = append(got, "one"); return errStopped }), errStopped)
	must.Equal(t, "steps until the first error", append(want, "one"), got)
}
