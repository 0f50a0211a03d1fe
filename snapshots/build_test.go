package snapshots_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// TestVersionOfAnotherBuild: a version in another format is not damaged, so no command repairs it, no build follows it, and no
// edge serves it. No release had the format 0.
func TestVersionOfAnotherBuild(t *testing.T) {
	texts := map[string]string{}
	for i, format := range []string{`"format":0`, `"format":1`, `"format":4`, `"format":4,"weather":true`, `"format":6`, `"format":6,"parts":7`} {
		synctest.Test(t, func(t *testing.T) {
			s, want := memblob.New(), snapshots.ErrBuild
			publish(t, s, decades())
			s.Corrupt(snapshots.ManifestKey(1), edited(read(t, s, snapshots.ManifestKey(1)), `"format":5`, format))
			movePointer(t, s, 1, func(p *snapshots.Pointer) { p.Signed = false })
			err := must.Err(snapshots.LoadBase(t.Context(), s, nil))
			texts[format] = hashes.ReplaceAllString(fmt.Sprint(err), "HASH")
			if i == 0 {
				want = snapshots.ErrDamaged
			} else {
				must.Hold(t, !errors.Is(err, snapshots.ErrDamaged) && !errors.Is(err, snapshots.ErrNoBase), "%s: a build may repair it: %v", format, err)
				must.Fail(t, format+": the history", must.Err(snapshots.LoadHistory(t.Context(), s)), want)
				must.Fail(t, format+": a publisher", must.Err((&snapshots.Publisher{Store: s}).LoadBase(t.Context(), nil)), want)
			}
			must.Fail(t, format+": a build", err, want)
			must.Fail(t, format+": a reader", must.Err(snapshots.Open(t.Context(), s, nil)), want)
			e := follow(t, s, nil)
			must.Hold(t, e.lastReport().State == snapshots.Refused, "%s: an edge: got %+v, want it refused", format, e.lastReport())
			_ = e.stop()
		})
	}
	golden.Inputs(t, "testdata/builds.txt", texts)
}

// TestImpossibleManifests: a manifest with one fault is damaged. The rows that begin with "good" have the least or the most that
// is possible.
func TestImpossibleManifests(t *testing.T) {
	s, hash := memblob.New(), snapshots.Digest(nil)
	publish(t, s, bodies{"drivers": "d", "next-race": "n"})
	var changed *memblob.Store
	part := func(name, named string, m *snapshots.Manifest) snapshots.Part {
		data := packed(string(must.Get(json.Marshal(map[string]any{"name": named, "entries": m.Entries[:1]}))(t)))
		p := snapshots.Part{Name: name, SHA256: snapshots.Digest(data), Size: int64(len(data))}
		must.Get(changed.Create(t.Context(), fmt.Sprintf("manifests/parts/%s-%s.json.gz", name, p.SHA256), data))(t)
		return p
	}
	for name, change := range map[string]func(*snapshots.Manifest){
		"good":                   func(*snapshots.Manifest) {},
		"good: an empty body":    func(m *snapshots.Manifest) { m.Entries[0].Size = 0 },
		"good: the largest body": func(m *snapshots.Manifest) { m.Entries[0].Size = 256 << 20 },
		"good: the first delta":  func(m *snapshots.Manifest) { m.Deltas = []snapshots.Delta{{1, hash, 1, 2}} },
		"good: a part":           func(m *snapshots.Manifest) { m.Parts = []snapshots.Part{part("all", "all", m)} },
		"a part of another name": func(m *snapshots.Manifest) { m.Parts = []snapshots.Part{part("all", "2026", m)} },
		"an entry in two parts": func(m *snapshots.Manifest) {
			m.Parts = []snapshots.Part{part("all", "all", m), part("2026", "2026", m)}
		},
		"good: the last version":   func(m *snapshots.Manifest) { m.Version = 1 << 53 },
		"beyond the last version":  func(m *snapshots.Manifest) { m.Version = 1<<53 + 1 },
		"based on itself":          func(m *snapshots.Manifest) { m.Base = 1 },
		"no entries":               func(m *snapshots.Manifest) { m.Entries = nil },
		"entries out of order":     func(m *snapshots.Manifest) { slices.Reverse(m.Entries) },
		"an entry twice":           func(m *snapshots.Manifest) { m.Entries = append(m.Entries, m.Entries[1]) },
		"an entry without a hash":  func(m *snapshots.Manifest) { m.Entries[0].SHA256 = "" },
		"a size below zero":        func(m *snapshots.Manifest) { m.Entries[0].Size = -1 },
		"a packed size below zero": func(m *snapshots.Manifest) { m.Entries[0].Packed.Size = -1 },
		"a size without a bound":   func(m *snapshots.Manifest) { m.Entries[0].Size = 1 << 40 },
		"a key outside":            func(m *snapshots.Manifest) { m.Entries[0].Object = "../keys" },
		"the tag of other bytes":   func(m *snapshots.Manifest) { m.Entries[0].ETag = hash[:32] },
		"a delta of no version":    func(m *snapshots.Manifest) { m.Deltas = []snapshots.Delta{{0, hash, 1, 2}} },
		"a delta of one body":      func(m *snapshots.Manifest) { m.Deltas = []snapshots.Delta{{1, hash, 1, 1}} },
		"a delta without a hash":   func(m *snapshots.Manifest) { m.Deltas = []snapshots.Delta{{1, "", 1, 2}} },
		"a part without a hash":    func(m *snapshots.Manifest) { m.Parts = []snapshots.Part{{Name: "all", Size: 1}} },
	} {
		m, _, _ := written(t, s, 1)
		changed = memblob.New()
		change(&m)
		point(t, changed, m)
		err := must.Err(snapshots.LoadManifest(t.Context(), changed, m.Version))
		must.Hold(t, errors.Is(err, snapshots.ErrDamaged) != strings.HasPrefix(name, "good"), "%s: got %v", name, err)
	}
	s.Corrupt(snapshots.ManifestKey(1), endless)
	must.Fail(t, "an endless manifest", must.Err(snapshots.LoadManifest(t.Context(), s, 1)), snapshots.ErrDamaged)
	golden.Sentence(t, "publish below the base", must.Err((&snapshots.Publisher{Store: s}).Republish(t.Context(), snapshots.Manifest{Base: 9}, 0, "", false, "")))
}
