package snapshots_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// decades returns three variants of each season from 1950 to 2026 and two of no season.
func decades() bodies {
	content := bodies{"drivers": "d", "next-race": "n"}
	for year := 1950; year <= 2026; year++ {
		for _, path := range []string{"calendar/%d", "standings/drivers/%d", "predictions/%d"} {
			content[fmt.Sprintf(path, year)] = fmt.Sprintf(path+" as it was", year)
		}
	}
	return content
}

// with returns the content with other bodies for some paths; an empty body removes a path.
func (b bodies) with(changes bodies) bodies {
	changed := maps.Clone(b)
	maps.Copy(changed, changes)
	maps.DeleteFunc(changed, func(_, body string) bool { return body == "" })
	return changed
}

// written returns the manifest's own file of a version, and the parts that are in the store.
func written(t *testing.T, s blob.Store, version int64) (own snapshots.Manifest, size int, parts []string) {
	t.Helper()
	o := must.Get(s.Get(t.Context(), snapshots.ManifestKey(version), blob.MaxDocument))(t)
	text, err := decoders[snapshots.GZ](o.Data)
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	must.Do(t, err)
	for _, key := range keysOf(t, s) {
		if strings.HasPrefix(key, "manifests/parts/") {
			parts = append(parts, key)
		}
	}
	return own, len(o.Data), parts
}

// A publish with few changes writes few entries, and every reader sees all of them.
func TestManifestInParts(t *testing.T) {
	s := strict(t)
	all := decades().with(bodies{"live": "lap 1"})
	publish(t, s, all)
	own, first, parts := written(t, s, 1)
	if own.Format != 5 || len(own.Parts) != 8+4+1 || len(parts) != 8+4+1 || len(own.Entries) != 1 {
		t.Errorf("format %d, %d parts, %d files, %d entries beside them; want format 5, 8 decades, 2023 to 2026, a part of no season, and the running race",
			own.Format, len(own.Parts), len(parts), len(own.Entries))
	}

	few := bodies{}
	for n := range 64 {
		few[fmt.Sprintf("calendar/%d", 1950+n)] = "c"
		small := memblob.New()
		publish(t, small, few)
		own, _, _ := written(t, small, 1)
		must.Hold(t, len(own.Parts) > 0 == (n == 63), "%d entries: %d parts, want parts of 64 entries", n+1, len(own.Parts))
	}

	verified := bodies{"drivers": "d2", "calendar/2026": "verified", "standings/drivers/2026": "verified", "predictions/session/2026011": "new"}
	all = all.with(verified)
	publish(t, s, all)
	own, size, after := written(t, s, 2)
	must.Equal(t, "parts after four changes", parts, after)
	// The manifest's own file shows a person the new entries.
	must.Hold(t, slices.IsSortedFunc(own.Entries, func(a, b snapshots.ManifestEntry) int { return strings.Compare(a.Path, b.Path) }), "the entries are not sorted")
	shown := bodies{}
	for _, e := range own.Entries {
		shown[e.Path] = ""
	}
	must.Equal(t, "entries in the manifest's own file", bodies{"calendar/2026": "", "predictions/session/2026011": "", "drivers": "", "live": "", "standings/drivers/2026": ""}, shown)
	must.Hold(t, size <= first+3*800, "the manifest has %d bytes after %d: too many for three entries more", size, first)
	if version, got := served(t, s); version != 2 || !cmp.Equal(all, got) {
		t.Errorf("version %d is served with (-want +got):\n%s", version, cmp.Diff(all, got))
	}

	// The next version has exactly the entries of its draft after any change of a season's variants.
	for i, change := range []bodies{
		{"calendar/2026": ""},
		{"predictions/1950": "p", "predictions/1951": "p", "predictions/2020": "p"},
		{"predictions/session/2026011": "", "drivers": "", "calendar/2027": "new"},
		func() bodies {
			change := bodies{}
			for year := 1960; year < 1970; year++ {
				change[fmt.Sprintf("calendar/%d", year)], change[fmt.Sprintf("predictions/%d", year)] = "c", "p"
			}
			return change
		}(),
		{"drivers": "back", "calendar/1949": "older", "calendar/2026": "back"},
	} {
		all = all.with(change)
		publish(t, s, all)
		if _, got := served(t, s); !cmp.Equal(all, got) {
			t.Errorf("change %d is served as (-want +got):\n%s", i, cmp.Diff(all, got))
		}
	}
	rollback(t, s, 2)
	if _, got := served(t, s); got["calendar/2026"] != "verified" || got["predictions/session/2026011"] != "new" {
		t.Errorf("after a rollback %q and %q are served", got["calendar/2026"], got["predictions/session/2026011"])
	}
	found, err := snapshots.Verify(t.Context(), s, 0, nil)
	must.Hold(t, err == nil && len(found.Faults) == 0, "verify: %v, %v", found.Faults, err)
}

// TestPartsGrow checks that a manifest does not repeat entries that stopped changing, and that the store grows by a few
// KB a version.
func TestPartsGrow(t *testing.T) {
	s := strict(t)
	all, seasons := decades(), []int{}
	p := snapshots.Publisher{Store: s}
	next := func(changes bodies) {
		d := draftOf(loadBase(t, s), all.with(changes))
		d.CurrentSeason, d.Seasons = 2026, seasons
		must.Get(p.Publish(t.Context(), d))(t)
	}
	for year := 1950; year <= 2026; year++ {
		seasons = append(seasons, year)
	}
	next(nil)
	manifests := func() (bytes int64) {
		for info, err := range s.List(t.Context(), "manifests/") {
			must.Do(t, err)
			bytes += info.Size
		}
		return bytes
	}
	for _, year := range seasons {
		all[fmt.Sprintf("title-odds/%d", year)] = "derived after the first version"
	}
	before := manifests()
	const versions = 20
	for i := range versions {
		next(bodies{"calendar/2026": strconv.Itoa(i), "standings/drivers/2026": strconv.Itoa(i)})
	}
	own, size, _ := written(t, s, 1+versions)
	must.Hold(t, len(own.Entries) <= 10 && size <= 2000,
		"the manifest's own file has %d bytes, with %d entries; want those that changed lately", size, len(own.Entries))
	grown := (manifests() - before) / versions
	must.Hold(t, grown <= 3000, "a version adds %d bytes of manifests, want at most 3,000", grown)
	found, err := snapshots.Verify(t.Context(), s, 0, nil)
	must.Hold(t, err == nil && len(found.Faults) == 0 && found.Objects >= len(all), "verify: %+v, %v", found, err)
}

// An edge reads a part once, keeps it in its copy, and refuses one that is damaged.
func TestFollowParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := memblob.New(), memblob.New()
		var mu sync.Mutex
		reads, down := 0, false
		store := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(call.Key, "manifests/parts/") {
				reads++
			}
			if down {
				return faultblob.Fate{Err: faultblob.ErrKilled}
			}
			return faultblob.Fate{}
		})
		publish(t, s, decades())
		e := follow(t, store, cache)
		next := decades().with(bodies{"calendar/2026": "verified"})
		publish(t, s, next)
		must.Advance(time.Second)
		must.Hold(t, reads == 8+4+1, "%d reads of parts for two versions that share 13", reads)
		_ = e.stop()
		mu.Lock()
		down = true
		mu.Unlock()
		e = follow(t, store, cache)
		must.Equal(t, "from the copy", next, e.lastContent())
		_ = e.stop()

		mu.Lock()
		down = false
		mu.Unlock()
		_, _, parts := written(t, s, 1)
		whole := must.Get(s.Get(t.Context(), parts[0], blob.MaxDocument))(t)
		s.Corrupt(parts[0], []byte(`{"name":"1950s","entries":[]}`))
		e = follow(t, store, nil)
		last := e.lastReport()
		must.Hold(t, last.State == snapshots.Refused && last.Public() == "version 2 is damaged",
			"a damaged part: %+v, want it refused", last)
		s.Corrupt(parts[0], whole.Data)
		must.Advance(10 * time.Second)
		must.Equal(t, "when the part is whole again", next, e.lastContent())
		_ = e.stop()
	})
}

func TestPruneParts(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(c.Now))
	publish(t, s, decades())
	_, _, before := written(t, s, 1)
	publish(t, s, decades().with(bodies{"calendar/1950": ""})) // the part of the 1950s is written anew
	c.now = c.now.Add(48 * time.Hour)
	must.Get(snapshots.Prune(t.Context(), s, 1, c.now, false))(t)
	_, _, after := written(t, s, 2)
	if len(before) != 8+4+1 || len(after) != 8+4+1 || cmp.Equal(before, after) {
		t.Errorf("parts before %v\nafter %v\nwant the 1950s of version 1 gone and no other", before, after)
	}
	_, got := served(t, s)
	must.Hold(t, cmp.Equal(decades().with(bodies{"calendar/1950": ""}), got), "the current version is not what was published")
	place := memblob.New()
	for i, text := range []string{"{}", "{}", `"ledger"`} {
		must.Get(s.Create(t.Context(), fmt.Sprintf("ledger/%08d.json", i+1), []byte(text)))(t)
	}
	backUp(t, s, place)
	fresh := memblob.New()
	must.Get(backup.Restore(t.Context(), backup.Restoring{Store: fresh, Backup: place}))(t)
	_, got = served(t, fresh)
	must.Hold(t, cmp.Equal(decades().with(bodies{"calendar/1950": ""}), got), "the restored version is not what was published")
}
