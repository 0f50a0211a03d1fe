package snapshots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

func rollback(t *testing.T, s blob.Store, to int64) snapshots.Receipt {
	t.Helper()
	p := snapshots.Publisher{Store: s}
	return must.Get(p.Rollback(t.Context(), to, "operator", "wrong result", raceDay.Add(time.Hour)))(t)
}

func TestDiff(t *testing.T) {
	const rendered = `"meta":{"api":"gridcast-v1","generated_at":"2024-11-24T06:00:00+00:00"}}`
	standings := func(rows string) string { return `{"ok":true,"data":[` + rows + `],` + rendered }
	s := strict(t)
	publish(t, s, bodies{
		"standings/drivers/2024": standings(`{"position":1,"driver":"VER","points":403},{"position":2,"driver":"NOR","points":340}`),
		"calendar/2024":          `{"data":{"sessions":[1,2]}}`,
		"drivers":                `{"data":[],` + rendered,
		"gone":                   "1",
		"next-race":              strings.Repeat("no JSON...", 6),
		"teams":                  `{"a":[{"driver":"VER"}],"b":[{"round":1},{"round":2}],"c":"\u0041"}`,
		"same":                   "1",
	})
	publish(t, s, bodies{
		"standings/drivers/2024": standings(`{"position":1,"driver":"NOR","points":410},{"position":2,"driver":"VER","points":403},{"position":3,"driver":"P&A","points":1}`),
		"calendar/2024":          `{"data":{"sessions":[1,3,4],"winner":"VER"}}`,
		"drivers":                `{"data":[],"meta":{"api":"gridcast-v1","generated_at":"2025-01-01T00:00:00+00:00"}}`,
		"here":                   "1",
		"next-race":              strings.Repeat("no JSON...", 6) + "!",
		"teams":                  `{"a":[{"team":"RBR"}],"b":[{"round":2,"winner":"VER"},{"round":1}],"c":"A"}`,
		"same":                   "1",
	})
	from := must.Get(snapshots.LoadManifest(t.Context(), s, 1))(t)
	to := must.Get(snapshots.LoadManifest(t.Context(), s, 0))(t)
	got := must.Get(snapshots.Diff(t.Context(), s, from, to))(t)
	want := []snapshots.Difference{
		{Path: "calendar/2024", Kind: snapshots.Changed, Values: []snapshots.ValueChange{
			{At: "data.sessions[1]", Old: "2", New: "3"},
			{At: "data.sessions[2]", New: "4"},
			{At: "data.winner", New: `"VER"`},
		}},
		{Path: "drivers", Kind: snapshots.Changed},
		{Path: "gone", Kind: snapshots.Removed},
		{Path: "here", Kind: snapshots.Added},
		{Path: "next-race", Kind: snapshots.Changed, Values: []snapshots.ValueChange{{
			At: "(not JSON)", Old: `"` + strings.Repeat("no JSON...", 6) + `"`, New: `"` + strings.Repeat("no JSON...", 6) + `"… (61 bytes)`,
		}}},
		{Path: "standings/drivers/2024", Kind: snapshots.Changed, Values: []snapshots.ValueChange{
			{At: "data[driver=VER].position", Old: "1", New: "2"},
			{At: "data[driver=NOR].position", Old: "2", New: "1"},
			{At: "data[driver=NOR].points", Old: "340", New: "410"},
			{At: "data[driver=P&A]", New: `{"position":3,"driver":"P&A","points":1}`},
		}},
		{Path: "teams", Kind: snapshots.Changed, Values: []snapshots.ValueChange{
			{At: "a[0].driver", Old: `"VER"`}, {At: "a[0].team", New: `"RBR"`}, {At: "b[round=2].winner", New: `"VER"`},
		}},
	}
	must.Equal(t, "changes", want, got)
}

// TestCompare compares stored bodies, whole and damaged ones, with bodies that were made elsewhere.
func TestCompare(t *testing.T) {
	lines := "first,1\nsecond,2\nthird,3\n"
	table := `{"rows":[` + strings.TrimSuffix(string(rows(40, 7)), ",") + `]}`
	for i, tt := range []struct {
		name         string
		body, made   string
		packed       bool
		stored       []byte // nil: the body, packed if packed
		at, old, new string // empty: equal; old and new are beginnings
	}{
		{"the same", table, table, true, nil, "", "", ""},
		{"a line that is not the first", lines, "first,1\nsecond,3\nthird,3\n", false, nil, "line 2", `"second,2"`, `"second,3"`},
		{"fewer lines", lines, "first,1\nsecond,2", false, nil, "(length)", "4 lines", "2 lines"},
		{"another spelling", `{"a":1}`, `{ "a": 1 }`, false, nil, "(bytes)", "", ""},
		{"the made body in the place of another", lines, "first,2\n", false, []byte("first,2\n"), "(bytes)", "", ""},
		{"another body in the place of a packed one", table, table, true, packs(t, []byte(strings.Replace(table, "D07", "X07", 1))), "rows[driver=X07]", "{", ""},
		{"a packed body cut off", table, table, true, packs(t, []byte(table))[:60], "line 1", `"\x1f\x8b`, `"{\"rows\"`},
		{"a packed body overwritten", table, table, true, []byte("nothing packed"), "line 1", `"nothing packed"`, `"{\"rows\"`},
		{"a plain body overwritten", lines, lines, false, []byte("first,1\nsecond,9\nthird,3\n"), "line 2", `"second,9"`, `"second,2"`},
	} {
		s := memblob.New()
		entry := snapshots.ManifestEntry{Object: fmt.Sprintf("v/%d/body", i+1), SHA256: snapshots.Digest([]byte(tt.body)), Size: int64(len(tt.body))}
		stored := []byte(tt.body)
		if tt.packed {
			stored = packs(t, stored)
			entry.Packed = snapshots.Packed{SHA256: snapshots.Digest(stored), Size: int64(len(stored))}
		}
		if tt.stored != nil {
			stored = tt.stored
		}
		must.Get(s.Create(t.Context(), entry.Object, stored))(t)
		must.Fail(t, tt.name+": without an object", must.Err2(entry.Compare(t.Context(), memblob.New(), []byte(tt.body))), blob.ErrNotFound)
		got, equal, err := entry.Compare(t.Context(), s, []byte(tt.made))
		must.Succeed(t, tt.name, err)
		must.Hold(t, equal == (tt.at == "") && got.At == tt.at && strings.HasPrefix(got.Old, tt.old) && strings.HasPrefix(got.New, tt.new), "%s: got %q, equal %t", tt.name, got, equal)
	}
}

// clock is the store's; tests move it.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// TestPruneKeepsPartsOfDerivedFiles has each derived file name a part that is older than the latest one, as when two
// schedulers share a store. A version that shows bytes of another keeps that one, with its files.
func TestPruneKeepsPartsOfDerivedFiles(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(c.Now))
	create := func(key, text string) {
		t.Helper()
		packed := bytes.NewBuffer(nil)
		z := must.Get(zstd.NewWriter(packed))(t)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		must.Get(s.Create(t.Context(), key, packed.Bytes()))(t)
		c.now = c.now.Add(time.Hour)
	}
	part := func(n int) string { return fmt.Sprintf("%s%d", snapshots.SharedFolder, n) }
	for n := range 6 {
		create(part(n), "{}")
	}
	for n, body := range []string{"d0", "d1", "d2"} { // the version n names the part n
		base := loadBase(t, s)
		d := draftOf(base, bodies{"drivers": body})
		d.Derived = fmt.Sprintf("%s%d.zst", snapshots.DerivedFolder, n)
		d.Refused = []snapshots.RefusedEntry{{Path: "calendar/2024", Version: base.Pointer.Version / 2}}
		create(d.Derived, fmt.Sprintf(`{"data":{},"shared":%q}`, part(n)))
		must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
	}
	create(snapshots.DerivedFolder+"-latest.zst", fmt.Sprintf(`{"shared":%q}`, part(3)))
	c.now = c.now.Add(48 * time.Hour)
	golden.Sentence(t, "prune without a listing", must.Err(snapshots.Prune(t.Context(), unlisted{s, new(bool)}, 2, c.now, false)))
	must.Fail(t, "prune without a derived file", must.Err(snapshots.Prune(t.Context(), faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
		if c.Key == snapshots.DerivedFolder+"1.zst" {
			fate.Err = errStopped
		}
		return fate
	}), 2, c.now, false)), errStopped)
	must.Get(snapshots.Prune(t.Context(), s, 1, c.now, false))(t)
	left := keysOf(t, s, snapshots.DerivedFolder)
	want := []string{"derived/-latest.zst", "derived/0.zst", "derived/2.zst", part(0), part(2), part(3), part(5)}
	must.Equal(t, "derived files left", want, left)
}

// unlisted is a store that lists no manifests after the first listing.
type unlisted struct {
	blob.Store
	listed *bool
}

func (u unlisted) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	if prefix == "manifests/" && *u.listed {
		prefix = "none"
	}
	*u.listed = *u.listed || prefix == "manifests/"
	return u.Store.List(ctx, prefix)
}

// TestPruneSandbox stops the removal after each of its deletions: the pointer is the first object that goes, the next run
// removes the rest, and the real world stays.
func TestPruneSandbox(t *testing.T) {
	s := memblob.New()
	publish(t, s, bodies{"drivers": "real"})
	real := keysOf(t, s)
	sandbox := blob.Under(s, snapshots.SandboxFolder)
	for deletions := 0; ; deletions++ {
		publish(t, sandbox, bodies{"drivers": "simulated"})
		all := keysOf(t, s, snapshots.SandboxFolder)
		looked := must.Get(snapshots.PruneSandbox(t.Context(), s, true))(t)
		must.Equal(t, "a dry run", all, keysOf(t, s, snapshots.SandboxFolder))
		var left atomic.Int64
		left.Store(int64(deletions))
		stopped := faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) faultblob.Fate {
			if c.Op == faultblob.Delete && left.Add(-1) < 0 {
				return faultblob.Fate{Err: faultblob.ErrKilled}
			}
			return faultblob.Fate{}
		})
		pruned, err := snapshots.PruneSandbox(t.Context(), stopped, false)
		if err == nil {
			must.Equal(t, "objects", len(all), len(pruned.Removed))
			must.Equal(t, "objects of the dry run", len(all), len(looked.Removed))
			must.Equal(t, "deletions", len(all), deletions)
			break
		}
		must.Fail(t, "stopped", err, faultblob.ErrKilled)
		_, _, err = snapshots.LoadPointer(t.Context(), sandbox)
		must.Equal(t, fmt.Sprintf("the pointer is gone after %d deletions", deletions), deletions > 0, errors.Is(err, snapshots.ErrNone))
		must.Get(snapshots.PruneSandbox(t.Context(), s, false))(t)
		must.Equal(t, "the real world", real, keysOf(t, s))
	}
	must.Equal(t, "the real world", real, keysOf(t, s))
}

// TestFailedCalls lets one call of an operation fail, each in turn, alone or with all after it, with a key and without. The
// operation returns that error, or it has its usual result: a store that does not answer is not a lost version.
func TestFailedCalls(t *testing.T) {
	ctx, failed, year := t.Context(), errors.New("one call failed"), time.Now().AddDate(1, 0, 0)
	var s *memblob.Store // without the failing call
	stranger := signers(t, keyFile(t, origin))
	left := func(err error) (any, error) {
		if err != nil {
			return nil, err
		}
		version, content := served(t, s)
		return []any{version, content, loadBase(t, s).Manifest.Base, keysOf(t, s, "manifests/", "objects/", "notes/"), len(keysOf(t, s, snapshots.DerivedFolder))}, nil
	}
	base := func(p *snapshots.Publisher) (any, error) {
		b, err := p.LoadBase(ctx, nil)
		if err == nil {
			b, err = b.Heal(ctx, nil, nil)
		}
		if err != nil {
			return nil, err
		}
		_, _, lost := snapshots.LoadPointer(ctx, s)
		return []any{b.Pointer.Version, b.Manifest.Entries, b.Damage != nil, b.Repaired, lost == nil, p.Signers != nil && b.SignedByAll(p.Signers)}, nil
	}
	high := func(p *snapshots.Publisher) {
		must.Get(s.Create(ctx, "versions/1000000.json", nil))(t)
		must.Get((&snapshots.Publisher{Store: s, Signers: p.Signers}).Publish(ctx, draftOf(ownBase(t, &snapshots.Publisher{Store: s, Signers: p.Signers}), bodies{"drivers": "d6"})))(t)
	}
	for _, test := range []struct {
		name    string
		damaged []string
		do      func(p *snapshots.Publisher) (any, error)
	}{
		{"base", nil, base},
		{"base without the pointer", []string{snapshots.PointerKey}, base},
		{"base without the manifest", []string{snapshots.ManifestKey(4)}, base},
		{"base without two manifests", []string{snapshots.ManifestKey(3), snapshots.ManifestKey(4)}, base},
		{"publish above an abandoned number", nil, func(p *snapshots.Publisher) (any, error) {
			must.Get(s.Create(ctx, "versions/9.json", nil))(t)
			b, err := p.LoadBase(ctx, nil)
			if err == nil {
				_, err = p.Publish(ctx, draftOf(b, bodies{"drivers": "d5", "calendar/2024": "c5"}))
			}
			return left(err)
		}},
		{"publish, and another builder follows at once", nil, func(p *snapshots.Publisher) (any, error) {
			b, err := p.LoadBase(ctx, nil)
			if err != nil {
				return nil, err
			}
			var swapped atomic.Bool // a publish makes several calls at a time
			p.Store = faultblob.Wrap(p.Store, func(_ context.Context, c faultblob.Call) faultblob.Fate {
				if c.Op == faultblob.Get && swapped.CompareAndSwap(true, false) {
					must.Get((&snapshots.Publisher{Store: s, Signers: p.Signers}).Publish(ctx, draftOf(ownBase(t, &snapshots.Publisher{Store: s, Signers: p.Signers}), bodies{"drivers": "d6"})))(t)
				}
				if c.Op == faultblob.Swap && c.Key == snapshots.PointerKey {
					swapped.Store(true)
				}
				return faultblob.Fate{}
			})
			r, err := p.Publish(ctx, draftOf(b, bodies{"drivers": "d5"}))
			if errors.Is(err, snapshots.ErrBaseChanged) && loadBase(t, s).Manifest.Base == 4 { // the failed call was the swap, so the other builder was first
				err = errors.Join(err, failed)
			}
			must.Hold(t, err != nil || r.Base == nil, "the base for the next draft is not the current version")
			return r.Version, err
		}},
		{"base of a high number that was reached", nil, func(p *snapshots.Publisher) (any, error) { high(p); return base(p) }},
		{"base of a high number", nil, func(p *snapshots.Publisher) (any, error) {
			high(p)
			movePointer(t, s, 1_000_001, func(at *snapshots.Pointer) { at.Version, at.Signed = 1_000_002, p.Signers != nil })
			return base(p)
		}},
		{"base below a version of another key", nil, func(p *snapshots.Publisher) (any, error) {
			publishSigned(t, s, stranger, bodies{"drivers": "stolen"})
			b, err := p.LoadBase(ctx, nil)
			if errors.Is(err, snapshots.ErrNewKey) {
				return "new key", nil
			} else if err != nil {
				return nil, err
			}
			return b.Pointer.Version, nil
		}},
		{"roll back", nil, func(p *snapshots.Publisher) (any, error) {
			return left(must.Err(p.Rollback(ctx, 2, "operator", "wrong", year)))
		}},
		{"freshen", nil, func(p *snapshots.Publisher) (any, error) {
			err := p.Freshen(ctx, nil)
			return keysOf(t, s, snapshots.FreshKey), err
		}},
		{"target", nil, func(p *snapshots.Publisher) (any, error) { m, err := p.Target(ctx, 2); return m.Version, err }},
		{"prune", nil, func(p *snapshots.Publisher) (any, error) {
			return left(must.Err(snapshots.Prune(ctx, p.Store, 2, year, false)))
		}},
		{"verify", nil, func(p *snapshots.Publisher) (any, error) {
			v, err := snapshots.Verify(ctx, p.Store, 0, nil)
			return []any{v.Bytes, len(v.Faults)}, err
		}},
		{"compare", nil, func(p *snapshots.Publisher) (any, error) {
			from, err := snapshots.LoadManifest(ctx, p.Store, 2)
			to, toErr := snapshots.LoadManifest(ctx, p.Store, 4)
			if err = errors.Join(err, toErr); err != nil {
				return nil, err
			}
			return snapshots.Diff(ctx, p.Store, from, to)
		}},
		{"list", nil, func(p *snapshots.Publisher) (any, error) { return snapshots.List(ctx, p.Store) }},
	} {
		for _, files := range [][]string{nil, {keyFile(t, origin)}} {
			template := memblob.New()
			for _, body := range []string{"d1", "d2", "d3", "d4"} {
				p := snapshots.Publisher{Store: template, Signers: signers(t, files...)}
				must.Get(p.Publish(ctx, draftOf(ownBase(t, &p), bodies{"drivers": body, "calendar/2024": body})))(t)
				must.Get(template.Create(ctx, snapshots.DerivedFolder+body+".zst", packed(body)))(t)
			}
			for _, key := range test.damaged {
				template.Corrupt(key, []byte("{"))
			}
			var want any
			for n, all := int64(0), int64(1); n <= 2*all; n++ { // with an even n, all calls after n/2 fail, too
				s = memblob.New()
				blobtest.Copy(t, s, template)
				var calls atomic.Int64
				p := &snapshots.Publisher{Signers: signers(t, files...), Store: faultblob.Wrap(s, func(context.Context, faultblob.Call) (fate faultblob.Fate) {
					if made := calls.Add(1); n > 0 && (made == (n+1)/2 || n%2 == 0 && made > n/2) {
						fate.Err = failed
					}
					return fate
				})}
				got, err := test.do(p)
				if n == 0 {
					must.Do(t, err)
					want, all = got, calls.Load()
				}
				what := fmt.Sprintf("%s, keys %d, call %d failed, all after it %t", test.name, len(files), (n+1)/2, n%2 == 0)
				if err == nil {
					must.Equal(t, what, want, got)
				} else {
					must.Fail(t, what, err, failed)
				}
			}
		}
	}
}

// keysOf lists the keys of a store, or those below some prefixes.
func keysOf(t *testing.T, s blob.Store, prefixes ...string) (keys []string) {
	t.Helper()
	for _, prefix := range append(prefixes, "")[:max(1, len(prefixes))] {
		for info, err := range s.List(t.Context(), prefix) {
			must.Do(t, err)
			keys = append(keys, info.Key)
		}
	}
	return keys
}
