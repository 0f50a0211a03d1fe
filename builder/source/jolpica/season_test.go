package jolpica_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridcast/builder"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/builder/source/sourcetest"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/snapshots"
)

// explained lists the published differences between Jolpica and F1DB in 2024: facts that Jolpica lacks,
// other names, and its errors.
var explained = []struct{ where, why string }{
	{`Mexican Grand Prix`, "Jolpica names the race for the city"},
	{`ours 2024-11-03T1|theirs 2024-11-0[23]|2024110[23]T`, "Jolpica kept the plan of the weekend in São Paulo, which the weather overthrew"},
	{`2024-11-2[1-4]|2024112[1-4]T`, "Jolpica gives the local day of Las Vegas with the hour in UTC"},
	{`^live\.data\.laps: `, "Jolpica has no scheduled distance"},
	{`^sessions.*\.(practice|pit_stops|drivers)`, "Jolpica has neither practice nor pit stops"},
	{`^sessions.*\.sprint_(qualifying|grid)`, "Jolpica has no sprint qualifying"},
	{`^sessions.*\.(qualifying|grid)\[[0-9]+\]|^head-to-head|^overview.*\.team_mates`, "Jolpica ranks every driver in qualifying and on the grid"},
	{`^circuits/.*\.(layouts|layout_id|length_km|turns|direction|street|lap_record)`, "Jolpica has no layouts"},
	{`^identifiers/drivers`, "F1DB names test drivers too, and Jolpica's archive only those of a weekend"},
	{`\.reason: `, "Jolpica says of a retirement only that there was one"},
	{`\.grid: ours <nil>, theirs (1[7-9]|20)$`, "Jolpica gives who starts from the pit lane the last places of the grid"},
}

// TestSeason2024 publishes the season 2024 from F1DB, and from Jolpica on top of the seasons before, and
// compares every byte.
func TestSeason2024(t *testing.T) {
	must.Long(t, "publishes two seasons twice")
	d := must.Get(fetched(t, sourcetest.Jolpica(t), 2023, 2025))(t)
	before := archivetest.Seasons(t, 2022, 2023)
	named := make(map[season.DriverID]bool) // drivers of earlier rounds
	for _, s := range before.Seasons {
		for _, r := range s.Rounds {
			for _, e := range r.Entries {
				named[e.Driver] = true
			}
			for _, practice := range r.Practice {
				for _, row := range practice {
					named[row.Driver] = true
				}
			}
		}
	}
	before.Drivers = maps.Clone(before.Drivers)
	maps.DeleteFunc(before.Drivers, func(id season.DriverID, _ season.Driver) bool { return !named[id] })
	out := must.Get(assemble.Assemble(assemble.Input{
		Current: before, Now: after2024,
		Documents: []assemble.Document{{Source: d.Source, Revision: d.Revision, From: 2024, To: 2024, Kind: assemble.Sparse, Facts: d.Facts}},
		Decided:   func(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} },
	}))(t)
	for _, c := range out.Held {
		t.Errorf("%s of %s %d waits: %v", c.Block, c.GrandPrix, c.Year, c.Refused)
	}
	ours, theirs := publish(t, archivetest.Seasons(t, 2022, 2024)), publish(t, out.Facts)
	compared, equal := 0, 0
	used := make(map[string]int)
	for _, path := range slices.Sorted(maps.Keys(ours)) {
		if year := regexp.MustCompile(`\d{4}`).FindString(path); year != "" && year != "2024" {
			continue // of the seasons before
		}
		compared++
		if bytes.Equal(ours[path], theirs[path]) {
			equal++
			continue
		}
		for _, line := range differences(path, decoded(ours[path]), decoded(theirs[path])) {
			why := ""
			for _, e := range explained {
				if regexp.MustCompile(e.where).MatchString(line) {
					why = e.why
					break
				}
			}
			if used[why]++; why == "" {
				t.Errorf("%s", line)
			} else if used[why] <= 3 {
				t.Logf("%s: %s", why, line)
			}
		}
	}
	for path := range theirs {
		must.Hold(t, ours[path] != nil, "%s is published from Jolpica alone", path)
	}
	for _, e := range explained {
		must.Hold(t, used[e.why] != 0, "nothing differs any more by this: %s", e.why)
	}
	t.Logf("%d of %d documents are the same to the byte; differences by reason: %v", equal, compared, used)
	must.Hold(t, compared >= 60, "only %d documents were compared", compared)
}

// publish returns the published bodies of the facts by path.
func publish(t *testing.T, facts season.Facts) map[string][]byte {
	t.Helper()
	b := testseason.New(t, testseason.Config{Stored: archivetest.Stored(t, facts), Opened: after2024})
	outcome := must.Get(b.Build(t.Context(), builder.Request{At: after2024}))(t)
	must.Require(t, len(outcome.Refused) == 0, "refused %v", outcome.Refused)
	base := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
	bodies := make(map[string][]byte)
	for _, e := range base.Manifest.Entries {
		bodies[e.Path] = must.Get(base.Body(t.Context(), e))(t)
	}
	return bodies
}

func decoded(body []byte) any {
	var v any
	if body == nil {
		return nil
	}
	if err := json.Unmarshal(body, &v); err != nil { // a feed: its lines
		var lines []any
		for line := range strings.SplitSeq(string(body), "\n") {
			lines = append(lines, line)
		}
		return lines
	}
	return v
}

// differences lists where two values differ, a line each.
func differences(path string, a, b any) []string {
	var lines []string
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Collect(maps.Keys(x))
		for key := range y {
			if _, both := x[key]; !both {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			lines = append(lines, differences(path+"."+key, x[key], y[key])...)
		}
		return lines
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			lines = append(lines, differences(fmt.Sprintf("%s[%d]", path, i), x[i], y[i])...)
		}
		return lines
	}
	if fmt.Sprint(a) == fmt.Sprint(b) {
		return nil
	}
	return []string{fmt.Sprintf("%s: ours %.120v, theirs %.120v", path, a, b)}
}
