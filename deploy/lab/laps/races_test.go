package laps_test

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/running"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/lab/laps"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/memblob"
)

// TestTrueRaces: no line of the true races with lap times is held, and none is refused. A source names the cars that run.
func TestTrueRaces(t *testing.T) {
	must.Long(t, "reduces all laps of 500 races")
	archive, _ := must.Get2(f1db.Import(sourcetest.Path(t, "f1db/f1db-json-splitted.zip"), f1db.Options{}))(t)
	races := must.Get(laps.Read(sourcetest.Path(t, "ergast-laps"), archive))(t)
	start := time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC) // of each race
	lines, partial := 0, 0
	for _, race := range races {
		v := archive.AsOf(time.Date(race.Year+1, 1, 1, 0, 0, 0, 0, time.UTC))
		round, ok := v.Round(race.Year, race.GrandPrix)
		if !ok {
			t.Fatalf("%d %s is no round", race.Year, race.GrandPrix)
		}
		of := live.Fixture{Session: 1, Start: start, Laps: round.ScheduledLaps}
		slots := slices.Clone(round.Grid)
		season.SortGrid(slots)
		for _, slot := range slots {
			of.Grid = append(of.Grid, slot.Driver)
		}
		var seen []live.Stored
		for lap := 1; ; lap++ {
			state, ok := race.At(lap, round.ScheduledLaps)
			if !ok {
				break
			}
			at := start.Add(time.Duration(lap) * 100 * time.Second)
			o := live.Observation{Session: 1, At: at, Received: at, Lap: lap}
			for _, c := range state.Cars {
				o.Cars = append(o.Cars, live.Car{Driver: c.Driver})
			}
			lines++
			seen = append(seen, live.Stored{Observation: o})
		}
		r := live.Reduce(seen, of)
		for _, m := range r.Moments {
			if m.Partial {
				partial++
			}
		}
		if len(r.Moments) != len(seen) || r.Held != "" {
			t.Errorf("%d %s: %d of %d lines count, %s", race.Year, race.GrandPrix, len(r.Moments), len(seen), r.Held)
		}
	}
	t.Logf("%d lines of %d races, %d of them without chances", lines, len(races), partial)
}

// TestCheckpointsOfSeasons runs the races of 2023 and 2024 by lap times of the Ergast database, of which one in twenty laps is
// lost: at least 99 of 100 checkpoints are frozen. Without GRIDCAST_SEASONS it runs one race.
func TestCheckpointsOfSeasons(t *testing.T) {
	ergast := sourcetest.Path(t, "ergast-laps")
	stored := archivetest.Stored(t, archivetest.Seasons(t, 2023, 2024))
	races := must.Get(laps.Read(ergast, stored.Archive))(t)
	if os.Getenv("GRIDCAST_SEASONS") == "" {
		races = races[len(races)-1:]
	}
	made, due := 0, 0
	for _, race := range races {
		m, d := checkpointsOf(t, stored, race)
		if made, due = made+m, due+d; m < d {
			t.Logf("%d %s: %d of %d checkpoints", race.Year, race.GrandPrix, m, d)
		}
	}
	t.Logf("%d races: %d of %d checkpoints", len(races), made, due)
	must.Hold(t, due >= 5*len(races)-10 && 100*made >= 99*due,
		"%d races: %d of %d checkpoints are frozen, want 99 of 100", len(races), made, due)
}

// checkpointsOf runs a race lap by lap, received ten seconds late. It returns the number of frozen live picks, and of
// checkpoints that the race reached.
func checkpointsOf(t *testing.T, stored archive.Stored, race *laps.Race) (made, due int) {
	t.Helper()
	view := season.View{Facts: stored.Archive.Facts()}
	round, ok := view.Round(race.Year, race.GrandPrix)
	if !ok {
		t.Fatalf("no %s of %d", race.GrandPrix, race.Year)
	}
	store := memblob.New()
	facts := archive.NewStore(store)
	archivetest.Put(t, facts, stored)
	l := must.Get(ledger.Open(t.Context(), store, ledger.Simulated, round.GridKnownAt().Add(-time.Hour), "test", ""))(t)
	b := &builder.Builder{
		Store: store, Ledger: l, Facts: facts.Load, Policy: builder.Policy{Model: predict.GridFrequency()}, Name: "test", Log: slog.New(slog.DiscardHandler),
	}
	rules := b.Rules(t.Context())
	settle := func(at time.Time) {
		t.Helper()
		fresh, err := b.Ledger.Refresh(t.Context())
		if err == nil {
			_, err = rules.Settle(t.Context(), fresh, stored, at)
		}
		if err != nil {
			t.Fatalf("%s %d at %s: %v", race.GrandPrix, race.Year, at, err)
		}
	}
	settle(round.GridKnownAt().Add(-time.Minute))
	settle(round.GridKnownAt().Add(time.Minute))
	settle(round.StartsAt().Add(-time.Minute))
	at := running.Round(stored.Archive.AsOf(round.StartsAt()), b.Ledger.Fold())
	random := rand.New(rand.NewPCG(uint64(at.Session), 5))
	for lap := 1; ; lap++ {
		state, ok := race.At(lap, round.ScheduledLaps)
		if !ok {
			break
		}
		for _, percent := range predict.Checkpoints {
			if predict.CheckpointLap(percent, round.ScheduledLaps) == lap {
				due++
			}
		}
		if random.IntN(20) == 0 {
			continue // lost
		}
		o := live.Observation{Session: at.Session, At: round.StartsAt().Add(race.Completed[state.Cars[0].Driver][lap-1]), Source: "ergast", Lap: lap}
		o.Received = o.At.Add(10 * time.Second)
		for _, c := range state.Cars {
			gap, stops := int(c.Gap.Milliseconds()), c.Stops
			o.Cars = append(o.Cars, live.Car{Driver: c.Driver, GapMS: &gap, Stops: &stops})
		}
		if _, _, err := b.Observed().Append(t.Context(), live.Fixture{}, o); err != nil {
			t.Fatalf("%s %d: %v", race.GrandPrix, race.Year, err)
		}
		settle(o.Received.Add(time.Second))
	}
	record, _ := b.Ledger.Fold().Record(at.Session)
	return len(record.Live), due
}
