package builder_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/predict/laps"
	"gridcast/builder/season"
	"gridcast/schemas/wire"
)

// TestTwoBuildersOfARace: two schedulers read the same source and build at the same time. The race has each lap once, and
// one live pick at each checkpoint.
func TestTwoBuildersOfARace(t *testing.T) {
	r := austriaRuns(t, policy())
	l, err := ledger.Open(t.Context(), r.Store, ledger.Simulated, austriaStart, "second", "")
	if err != nil {
		t.Fatal(err)
	}
	second := &builder.Builder{Store: r.Store, Ledger: l, Facts: archive.NewStore(r.Store).Load, Policy: policy(), Name: "second", Log: r.Log}
	seen := []int{1, 2, 18, 19, 36, 37, 54, 55, 64, 65, 71}
	for _, n := range seen {
		var both sync.WaitGroup
		at := r.lap(n).Received.Add(2 * time.Second) // of both builds, because no version may be earlier than its base
		for i, b := range []*builder.Builder{r.Builder, second} {
			o := r.lap(n)
			o.Received = o.Received.Add(time.Duration(i) * time.Second)
			both.Go(func() {
				if _, _, err := b.Observed().Append(t.Context(), live.Fixture{}, o); err != nil {
					t.Error(err)
				}
				if _, err := b.Build(t.Context(), builder.Request{At: at}); err != nil {
					t.Errorf("lap %d: %v", n, err)
				}
			})
		}
		both.Wait()
	}
	r.sees(r.phase(live.Over, ends(71).Add(3*time.Second)))
	var timeline wire.LiveRace
	r.data("live/session/2024011", &timeline)
	if len(timeline.Timeline) != len(seen) || timeline.State != wire.LiveOver {
		t.Errorf("the timeline has %d laps, %s", len(timeline.Timeline), timeline.State)
	}
	record, _ := r.Ledger.Fold().Record(austriaKey)
	var made []int
	for _, p := range record.Live {
		made = append(made, p.Checkpoint)
	}
	if !slices.Equal(made, predict.Checkpoints) {
		t.Errorf("the ledger has live picks at %v, want one at each of %v", made, predict.Checkpoints)
	}
	audit, err := builder.AuditStore(t.Context(), r.Store)
	if err != nil || !audit.Green() {
		t.Errorf("the audit says %v, %v", audit.Err(), err)
	}
}

// TestVerifiedWhileTheFeedRuns: once the result is verified, /live shows it, and later laps of the feed freeze nothing.
func TestVerifiedWhileTheFeedRuns(t *testing.T) {
	r := austriaRuns(t, policy())
	for _, n := range []int{1, 18, 36} {
		r.sees(r.lap(n))
	}
	verified := austriaStart.Add(4 * time.Hour)
	build(t, r.Builder, verified)
	for n := 37; n <= 55; n++ {
		o := r.lap(n)
		o.At, o.Received = verified.Add(time.Duration(n)*time.Minute), verified.Add(time.Duration(n)*time.Minute)
		if n < 54 {
			if _, _, err := r.Observed().Append(t.Context(), live.Fixture{}, o); err != nil {
				t.Fatal(err)
			}
			continue
		}
		r.sees(o)
	}
	var now wire.LiveRace
	r.data("live", &now)
	if now.State != wire.LiveOver || now.Provisional || now.Result == nil || now.Result.Winner != "RUS" {
		t.Errorf("/live is %s, provisional %t, with the result %+v", now.State, now.Provisional, now.Result)
	}
	if record, _ := r.Ledger.Fold().Record(austriaKey); len(record.Live) != 3 {
		t.Errorf("got %d live picks, want the three from before the verification", len(record.Live))
	}
}

// TestCheckpointsOfSeasons runs the races of 2023 and 2024 by lap times of the Ergast database, of which one in twenty laps is
// lost: at least 99 of 100 checkpoints are frozen. Without GRIDCAST_SEASONS it runs one race.
func TestCheckpointsOfSeasons(t *testing.T) {
	const ergast = "../../shared/data/ergast-laps"
	if _, err := os.Stat(ergast); err != nil {
		t.Skipf("no lap times at %s", ergast)
	}
	stored := archivetest.Stored(t, archivetest.Seasons(t, 2023, 2024))
	races, err := laps.Read(ergast, stored.Archive)
	if err != nil {
		t.Fatal(err)
	}
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
	if due < 5*len(races)-10 || 100*made < 99*due {
		t.Errorf("%d races: %d of %d checkpoints are frozen, want 99 of 100", len(races), made, due)
	}
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
	b := serviceOf(t, stored, round.GridKnownAt().Add(-time.Hour), builder.Policy{Model: predict.GridFrequency()})
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
	at := builder.LiveRound(stored.Archive.AsOf(round.StartsAt()), b.Ledger.Fold())
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
