package stewards_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// points of a race since 2010.
var points = []float64{25, 18, 15, 12, 10, 8, 6, 4, 2, 1}

// onTheRoad is the Belgian classification as it was before Russell, who had won, was
// disqualified; the fastest lap was Pérez's.
func onTheRoad(r *almanac.Round) []ledger.Row {
	rows := slices.Clone(r.Source())
	i := slices.IndexFunc(rows, func(row ledger.Row) bool { return row.Driver == "george-russell" })
	winner := rows[i]
	rows = slices.Insert(slices.Delete(rows, i, i+1), 0, winner)
	place := 0
	for i := range rows {
		if i > 0 && rows[i].Position == 0 {
			continue
		}
		place++
		rows[i].Position, rows[i].Points = place, 0
		if place <= len(points) {
			rows[i].Points = points[place-1]
		}
		if rows[i].Driver == "sergio-perez" {
			rows[i].Points++
		}
	}
	return rows
}

func TestDisqualificationAsItHappened(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return []ledger.Event{r.Record.Verify(onTheRoad(r), r.Start, "")}, nil
	})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	must.Hold(t, r.Differs(), "the source does not differ from the order on the road")
	got := must.Get(stewards.Ruling{Disqualified: []season.DriverID{"george-russell"}}.Apply(stewards.Session{Round: r}))(t)
	for _, p := range almanac.Compare(r.Source(), got) {
		must.Hold(t, !p.Changed(), "%s: the ruling gives %+v, the source says %+v", p.Driver, p.After, p.Before)
	}
	// Hamilton +7, Piastri +3, Leclerc +3, Verstappen +2, Norris +2, Sainz +2, Pérez +2, Alonso +2,
	// Ocon +1, Ricciardo +1, Russell -25.
	want := []almanac.TeamPoints{
		{Team: "ferrari", Points: 5},
		{Team: "mclaren", Points: 5},
		{Team: "red-bull", Points: 4},
		{Team: "aston-martin", Points: 2},
		{Team: "alpine", Points: 1},
		{Team: "rb", Points: 1},
		{Team: "mercedes", Points: -18},
	}
	must.Equal(t, "teams", want, almanac.CompareTeams(onTheRoad(r), got))
}

// TestShortenedRace: after a race of less than half of the distance, in a season with tables for that, the places give the
// points of their table.
func TestShortenedRace(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	short := []float64{13, 10, 8, 6, 5, 4, 3, 2, 1}
	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := slices.Clone(r.Source())
		for i := range rows {
			if rows[i].Points = 0; i < len(short) && rows[i].Position > 0 {
				rows[i].Points = short[i]
			}
		}
		return []ledger.Event{r.Record.Verify(rows, r.Start, "")}, nil
	})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	rows := must.Get(stewards.Ruling{Disqualified: []season.DriverID{"lewis-hamilton"}}.Apply(stewards.Session{Round: r}))(t)
	for i, want := range append(short, 0) {
		if rows[i].Points != want {
			t.Errorf("place %d has %v points, want %v", i+1, rows[i].Points, want)
		}
	}
}

// After a ruling every gap is measured from the new winner, with the penalties.
func TestGapsAfterARuling(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	rows := must.Get(stewards.Ruling{
		Disqualified: []season.DriverID{"lewis-hamilton"}, Penalties: map[season.DriverID]time.Duration{"charles-leclerc": time.Second},
	}.Apply(stewards.Session{Round: r}))(t)
	const winner = 4797566 + 647 // Piastri was 647 ms behind Hamilton, Leclerc 8023 ms, Verstappen 8700 ms
	want := map[season.DriverID]ledger.Details{
		"oscar-piastri":   {TimeMS: winner},
		"max-verstappen":  {GapMS: 8700 - 647},
		"charles-leclerc": {GapMS: 8023 + 1000 - 647},
		"lewis-hamilton":  {Status: season.Disqualified},
	}
	for _, row := range rows {
		details, ok := want[row.Driver]
		got := ledger.Details{TimeMS: row.TimeMS, GapMS: row.GapMS, Status: row.Status}
		if ok && got != details {
			t.Errorf("%s: got %+v, want %+v", row.Driver, got, details)
		}
	}
}

func TestTimePenalty(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	times := map[season.DriverID]time.Duration{}
	for _, row := range r.Facts.Results {
		times[row.Driver] = row.Time
	}
	// The first two, Hamilton and Piastri, were less than a second apart.
	gap := times["oscar-piastri"] - times["lewis-hamilton"]
	must.Require(t, gap > 0 && gap <= time.Second, "the gap between the first two is %s", gap)
	for _, tt := range []struct {
		penalty time.Duration
		first   season.DriverID
	}{
		{gap - time.Millisecond, "lewis-hamilton"},
		{gap + time.Millisecond, "oscar-piastri"},
	} {
		rows := must.Get(stewards.Ruling{Penalties: map[season.DriverID]time.Duration{"lewis-hamilton": tt.penalty}}.Apply(stewards.Session{Round: r}))(t)
		if rows[0].Driver != tt.first || rows[0].Position != 1 || rows[0].Points != 25 || rows[1].Position != 2 || rows[1].Points != 18 {
			t.Errorf("penalty of %s: first two %+v and %+v, want %s in front", tt.penalty, rows[0], rows[1], tt.first)
		}
	}
	// An hour: last of those on the lead lap.
	rows := must.Get(stewards.Ruling{Penalties: map[season.DriverID]time.Duration{"lewis-hamilton": time.Hour}}.Apply(stewards.Session{Round: r}))(t)
	last := 0
	for i, row := range rows {
		if row.Position > 0 && times[row.Driver] > 0 {
			last = i
		}
	}
	if rows[last].Driver != "lewis-hamilton" {
		t.Errorf("after an hour's penalty %s is last on the lead lap, want Hamilton", rows[last].Driver)
	}
}

func TestRulingsThatAreRefused(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	penalty := func(driver season.DriverID, d time.Duration) stewards.Ruling {
		return stewards.Ruling{Penalties: map[season.DriverID]time.Duration{driver: d}}
	}
	sentences := make(map[string]string)
	for what, ruling := range map[string]stewards.Ruling{
		"an absent driver":            {Disqualified: []season.DriverID{"ayrton-senna"}},
		"a penalty for a retired car": penalty("guanyu-zhou", 5*time.Second),
		"a penalty of no time":        penalty("lewis-hamilton", 0),
		"a negative penalty":          penalty("lewis-hamilton", -time.Second),
	} {
		rows, err := ruling.Apply(stewards.Session{Round: r})
		if err == nil {
			t.Errorf("%s: got %d rows, want an error", what, len(rows))
			continue
		}
		sentences[what] = err.Error()
	}
	t.Run("points that do not follow from the places", func(t *testing.T) {
		rows := slices.Clone(r.Source())
		rows[4].Points = 3
		w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Correct(rows, nil, "an odd one") })
		_, err := stewards.Ruling{Disqualified: []season.DriverID{"lewis-hamilton"}}.Apply(stewards.Session{Round: w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)})
		must.Require(t, err != nil, "got no error, want one that asks for a file")
		sentences["points that do not follow from the places"] = err.Error()
	})
	golden.Inputs(t, "testdata/ruling.golden", sentences)
}

// In every race of the embedded seasons a disqualified winner leaves a classification with the
// same drivers, places without a gap, and the points of the places.
func TestDisqualifiedWinnerOfEveryRace(t *testing.T) {
	w := testseason.New(t, testseason.Config{Opened: time.Date(2006, 10, 1, 0, 0, 0, 0, time.UTC), Until: testseason.Scheduled})
	rounds := w.Almanac(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	ruled := 0
	for year := 2007; year <= 2024; year++ {
		for _, r := range rounds.Rounds(year) {
			before := r.Source()
			rows, err := stewards.Ruling{Disqualified: []season.DriverID{r.Facts.Winner().Driver}}.Apply(stewards.Session{Round: r})
			if err != nil {
				t.Errorf("%s of %d: %v", r.Facts.Name, year, err)
				continue
			}
			ruled++
			var placed []float64
			for _, row := range before {
				if row.Position > 0 {
					placed = append(placed, row.Points)
				}
			}
			for i, row := range rows[:len(placed)-1] {
				if row.Position != i+1 || row.Points < placed[i]-1 || row.Points > placed[i]+1 {
					t.Errorf("%s of %d: place %d has %+v, before it gave %v", r.Facts.Name, year, i+1, row, placed[i])
				}
			}
			if diff := cmp.Diff(drivers(before), drivers(rows)); diff != "" {
				t.Errorf("%s of %d: drivers (-before +after)\n%s", r.Facts.Name, year, diff)
			}
		}
	}
	must.Hold(t, ruled >= 350, "ruled on %d races, want all of 18 seasons", ruled)
}

// So it is in every sprint, but for the points of its season.
func TestDisqualifiedWinnerOfEverySprint(t *testing.T) {
	w := testseason.New(t, testseason.Config{Opened: time.Date(2020, 12, 31, 0, 0, 0, 0, time.UTC), Until: testseason.Scheduled})
	rounds := w.Almanac(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	ruled := 0
	for year := 2021; year <= 2024; year++ {
		want := []float64{8, 7, 6, 5, 4, 3, 2, 1, 0}
		if year == 2021 {
			want = []float64{3, 2, 1, 0}
		}
		for _, r := range rounds.Rounds(year) {
			before := r.SourceSprint()
			if before == nil {
				continue
			}
			sprint := stewards.Session{Round: r, Sprint: true}
			rows, err := stewards.Ruling{Disqualified: []season.DriverID{before[0].Driver}}.Apply(sprint)
			if err != nil {
				t.Errorf("%s of %d: %v", r.Facts.Name, year, err)
				continue
			}
			ruled++
			for i, points := range want {
				if got := rows[i]; got.Position != i+1 || got.Points != points || got.Driver != before[i+1].Driver {
					t.Errorf("%s of %d: place %d has %+v, want %s with %g points", r.Facts.Name, year, i+1, got, before[i+1].Driver, points)
				}
			}
			if last := rows[len(rows)-1]; last.Driver != before[0].Driver || last.Position != 0 || last.Points != 0 {
				t.Errorf("%s of %d: the disqualified winner has %+v", r.Facts.Name, year, last)
			}
			if diff := cmp.Diff(drivers(before), drivers(rows)); diff != "" {
				t.Errorf("%s of %d: drivers (-before +after)\n%s", r.Facts.Name, year, diff)
			}
			// Their times decide the places after a penalty.
			second := r.Facts.SprintResults[1].Time - r.Facts.SprintResults[0].Time + time.Millisecond
			if rows, err = (stewards.Ruling{Penalties: map[season.DriverID]time.Duration{before[0].Driver: second}}).Apply(sprint); err != nil || rows[0].Driver != before[1].Driver {
				t.Errorf("%s of %d: a penalty of %s on the winner: got %+v in front, error %v", r.Facts.Name, year, second, rows[0], err)
			}
		}
	}
	must.Hold(t, ruled == 18, "ruled on %d sprints, want the 3 of 2021 and 2022 and the 6 of 2023 and 2024", ruled)
}

func drivers(rows []ledger.Row) []string {
	var ids []string
	for _, row := range rows {
		ids = append(ids, string(row.Driver))
	}
	slices.Sort(ids)
	return ids
}
