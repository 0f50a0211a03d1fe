package builder_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/proof"
	"gridcast/builder/season"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// running is the Austrian race of 2024 as a builder sees it, lap by lap.
type running struct {
	t *testing.T
	*builder.Builder
	round *season.Round
}

// austriaRuns builds after qualifying, so that the pick is frozen.
func austriaRuns(t *testing.T, p builder.Policy) *running {
	b := service(t, austriaQualified.Add(-time.Hour), p)
	build(t, b, austriaQualified)
	facts := must.Get(b.Facts(t.Context()))(t)
	r, ok := facts.Archive.AsOf(austriaStart.AddDate(0, 0, 1)).Round(2024, austria)
	must.Require(t, ok, "no Austrian Grand Prix of 2024")
	return &running{t: t, Builder: b, round: r}
}

// of is the race of the observations.
func (r *running) of() live.Fixture {
	of := live.Fixture{Session: austriaKey, Start: austriaStart, Laps: r.round.ScheduledLaps}
	slots := slices.Clone(r.round.Grid)
	season.SortGrid(slots)
	for _, slot := range slots {
		of.Grid = append(of.Grid, slot.Driver)
	}
	return of
}

// ends is the instant at which the leader completes a lap.
func ends(lap int) time.Time { return austriaStart.Add(time.Duration(lap) * 70 * time.Second) }

// lap is the observation of a lap: the drivers in the order of the result, 2 s apart.
func (r *running) lap(n int) live.Observation {
	o := live.Observation{Session: austriaKey, At: ends(n), Received: ends(n).Add(time.Second), Source: "test", Lap: n}
	for i, row := range r.round.Results {
		gap, stops := 2000*i, n/24
		o.Cars = append(o.Cars, live.Car{Driver: row.Driver, GapMS: &gap, Stops: &stops})
	}
	return o
}

// sees appends observations and builds two seconds after the last one.
func (r *running) sees(all ...live.Observation) builder.Outcome {
	r.t.Helper()
	for _, o := range all {
		if _, _, err := r.Observed().Append(r.t.Context(), r.of(), o); err != nil && !errors.Is(err, live.ErrHeld) {
			r.t.Fatal(err)
		}
	}
	return build(r.t, r.Builder, all[len(all)-1].Received.Add(time.Second))
}

// drives appends observations as they come. It builds after those that may make a live pick, and after the last.
func (r *running) drives(all ...live.Observation) {
	r.t.Helper()
	from := 0
	for i, o := range all {
		if o.Phase != "" || slices.Contains([]int{1, 18, 19, 36, 37, 54, 55, 64, 65}, o.Lap) || i == len(all)-1 {
			r.sees(all[from : i+1]...)
			from = i + 1
		}
	}
}

func (r *running) phase(p live.Phase, at time.Time) live.Observation {
	return live.Observation{Session: austriaKey, At: at, Received: at, Source: "test", Phase: p}
}

// data returns the data of a published document.
func (r *running) data(path string, into any) {
	r.t.Helper()
	body, ok := must.Get(snapshots.Open(r.t.Context(), r.Store, nil))(r.t).Body(path)
	must.Require(r.t, ok, "%s is not published", path)
	must.Do(r.t, json.Unmarshal(body.Identity, &struct {
		Data any `json:"data"`
	}{into}))
}

// checkpoints describes the checkpoints of /live: the lap of each that is frozen, the reason of each that is not.
func (r *running) checkpoints() string {
	var now wire.LiveRace
	r.data("live", &now)
	var all []string
	for _, c := range now.Checkpoints {
		all = append(all, fmt.Sprint(c.Percent, " ", c.Status, " ", c.Reason))
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.Join(all, "; "), " ;", ";"))
}

// TestRunningRace publishes a whole race: a version a lap in which only /live changes, five live picks, the timeline at
// the flag, and the verified result after it.
func TestRunningRace(t *testing.T) {
	must.Long(t, "builds some versions, one after the other")
	r := austriaRuns(t, policy())
	var now wire.LiveRace
	r.data("live", &now)
	if now.State != wire.LiveWaiting || len(now.Order) != 20 || now.Order[0].WinPct == nil {
		t.Errorf("before the race: got %s with %d cars, want the grid with chances", now.State, len(now.Order))
	}
	build(t, r.Builder, austriaStart) // the calendar says live
	before, bytes := r.versions(), r.bytes()
	entries := r.manifest().Entries
	for n := 1; n <= 71; n++ {
		outcome := r.sees(r.lap(n))
		if n > 1 && n < 71 {
			if changed := changedPaths(entries, outcome.Base.Manifest.Entries); !slices.Equal(changed, []string{"live"}) {
				t.Fatalf("lap %d changes %v, want /live alone", n, changed)
			}
		}
		entries = outcome.Base.Manifest.Entries
	}
	over := r.sees(r.phase(live.Over, ends(71).Add(time.Second)))
	added := r.versions() - before
	must.Hold(t, added <= 71+20, "the race added %d versions, want at most its laps and 20", added)
	if added := r.bytes() - bytes; added > 500_000 {
		t.Errorf("the race added %d bytes to the store, want half a megabyte at most", added)
	} else {
		t.Logf("the race added %d bytes to the store", added)
	}
	if head := r.Observed().Known(austriaKey).Head; head.Seq != 72 || over.Base.Manifest.Live != head.Hash {
		t.Errorf("the manifest names %q, want observation 72, %+v", over.Base.Manifest.Live, head)
	}
	must.Equal(t, "r.checkpoints()", "0 frozen; 25 frozen; 50 frozen; 75 frozen; 90 frozen", r.checkpoints())
	var timeline wire.LiveRace
	r.data("live/session/2024011", &timeline)
	if len(timeline.Timeline) != 71 || !timeline.Provisional || timeline.State != wire.LiveOver {
		t.Errorf("the timeline has %d laps, provisional %t, %s", len(timeline.Timeline), timeline.Provisional, timeline.State)
	}
	verified := build(t, r.Builder, austriaStart.Add(4*time.Hour))
	r.data("live/session/2024011", &timeline)
	var accuracy wire.Accuracy
	r.data("accuracy/2024", &accuracy)
	if timeline.Provisional || timeline.Result == nil || timeline.Result.Winner != "RUS" || timeline.Order[0].Driver != "RUS" || len(timeline.Timeline) != 71 {
		t.Errorf("version %d: the timeline does not show the verified result: %+v", verified.Version, timeline.Result)
	}
	must.Hold(t, accuracy.Live.WinnerHitRatePct == 1000, "got %v %% live hits, want 100", accuracy.Live.WinnerHitRatePct)
	if !testing.Short() {
		r.hasLiveRecord(austriaStart.Add(4 * time.Hour))
	}
	again := must.Get(proof.NewReproducer(t.Context(), r.Store))(t)
	for _, version := range []int64{over.Version - 36, over.Version, verified.Version} {
		made, err := again.Version(t.Context(), version)
		must.Hold(t, err == nil && made.FirstDifference == nil, "version %d is not reproduced: %+v, %v", version, made.FirstDifference, err)
	}
	audit, err := proof.AuditStore(t.Context(), r.Store)
	if err != nil || !audit.Green() {
		t.Errorf("the audit says %v, %v", audit.Err(), err)
	}
	pruned, err := snapshots.Prune(t.Context(), r.Store, 3, time.Now().Add(48*time.Hour), true)
	must.Hold(t, err == nil && len(pruned.Kept) >= 70, "prune keeps %d versions, %v; want the laps uncounted", len(pruned.Kept), err)
}

// changedPaths lists the paths whose bytes differ.
func changedPaths(old, now []snapshots.ManifestEntry) (changed []string) {
	hashes := map[string]string{}
	for _, e := range old {
		hashes[e.Path] = e.SHA256
	}
	for _, e := range now {
		if hashes[e.Path] != e.SHA256 {
			changed = append(changed, e.Path)
		}
	}
	return changed
}

func (r *running) manifest() snapshots.Manifest {
	r.t.Helper()
	return must.Get(snapshots.LoadManifest(r.t.Context(), r.Store, 0))(r.t)
}

// hasLiveRecord derives the track record, and compares the live picks in it with the race, which its winner led from the
// first lap to the last.
func (r *running) hasLiveRecord(at time.Time) {
	r.t.Helper()
	made, err := r.Derive(r.t.Context(), at)
	must.Require(r.t, err == nil && made, "derive: %t, %v", made, err)
	build(r.t, r.Builder, at)
	var record wire.TrackRecord
	r.data("track-record/2024", &record)
	var rows []int
	for _, row := range record.Real.Live {
		rows = append(rows, row.Percent)
		if row.Races != 1 || row.ByHand || row.Leader.WinnerHitPct.Value != 1000 || row.Leader.PodiumPct.Value != 1000 || row.Leader.LogLoss != nil ||
			!cmp.Equal(row.Before, record.Real.Picks) || len(row.Reliability) != 1 {
			r.t.Errorf("at %d %%: got %+v", row.Percent, row)
		}
	}
	must.Hold(r.t, slices.Equal(rows, predict.Checkpoints), "the track record has live picks at %v, want %v", rows, predict.Checkpoints)
}

// bytes is the size of the store.
func (r *running) bytes() (total int64) {
	r.t.Helper()
	for info, err := range r.Store.List(r.t.Context(), "") {
		if err != nil {
			r.t.Fatal(err)
		}
		total += info.Size
	}
	return total
}

func (r *running) versions() int { return int(r.manifest().Version) }

// TestCheckpoints decides for disturbed races which live picks are made.
func TestCheckpoints(t *testing.T) {
	must.Long(t, "runs a race a row")
	laps := func(r *running, from, to int) (all []live.Observation) {
		for n := from; n <= to; n++ {
			all = append(all, r.lap(n))
		}
		return all
	}
	for _, tc := range []struct {
		name string
		run  func(r *running)
		want string
	}{
		{"half distance was lost, the lap after it was not", func(r *running) {
			r.drives(append(laps(r, 1, 35), laps(r, 37, 40)...)...)
		}, "0 frozen; 25 frozen; 50 frozen; 75 pending; 90 pending"},
		{"silence from lap 30 to 40", func(r *running) {
			r.drives(append(laps(r, 1, 30), laps(r, 40, 54)...)...)
		}, "0 frozen; 25 frozen; 50 missed no complete line of lap 36 or 37 arrived within 180 seconds; 75 frozen; 90 pending"},
		{"the laps arrive all at once", func(r *running) { r.sees(laps(r, 1, 40)...) }, "0 missed no complete line of lap 1 or 2 arrived within 180 seconds; 25 missed no complete line of lap 18 or 19 arrived within 180 seconds; 50 missed no complete line of lap 36 or 37 arrived within 180 seconds; 75 pending; 90 pending"},
		{"laps 36 to 38 arrive while a build of lap 35 runs", func(r *running) {
			r.drives(laps(r, 1, 35)...)
			for _, o := range laps(r, 36, 38) {
				must.Get2(r.Observed().Append(r.t.Context(), r.of(), o))(r.t)
			}
			build(r.t, r.Builder, ends(35).Add(10*time.Second))
		}, "0 frozen; 25 frozen; 50 pending; 75 pending; 90 pending"},
		{"lap 36 arrives after four minutes", func(r *running) {
			r.drives(laps(r, 1, 35)...)
			late := r.lap(36)
			late.Received = late.At.Add(4 * time.Minute)
			r.sees(late)
		}, "0 frozen; 25 frozen; 50 missed no complete line of lap 36 or 37 arrived within 180 seconds; 75 pending; 90 pending"},
		{"red flag after lap 36, resumed", func(r *running) {
			r.drives(append(laps(r, 1, 36), r.phase(live.Suspended, ends(36).Add(5*time.Second)))...)
			again := laps(r, 37, 54)
			for i := range again {
				again[i].At, again[i].Received = again[i].At.Add(time.Hour), again[i].Received.Add(time.Hour)
			}
			r.drives(again...)
		}, "0 frozen; 25 frozen; 50 frozen; 75 frozen; 90 pending"},
		{"ended at 60 %", func(r *running) {
			r.drives(append(laps(r, 1, 43), r.phase(live.Over, ends(43).Add(2*time.Second)))...)
		}, "0 frozen; 25 frozen; 50 frozen; 75 missed the race ended after lap 43 of 71; 90 missed the race ended after lap 43 of 71"},
		{
			"never started", func(r *running) {
				r.sees(r.phase(live.Over, ends(0).Add(time.Hour)), r.phase(live.Over, ends(0).Add(time.Hour+time.Minute)))
			},
			"0 missed the race ended before its first lap; 25 missed the race ended before its first lap; 50 missed the race ended before its first lap; 75 missed the race ended before its first lap; 90 missed the race ended before its first lap",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := austriaRuns(t, builder.Policy{Model: predict.GridFrequency()})
			tc.run(r)
			got := r.checkpoints()
			must.Hold(t, got == tc.want, "got  %q\nwant %q", got, tc.want)
		})
	}
}

// TestLivePicksWhileHeld: a hold stops publishing, and live picks are frozen all the same.
func TestLivePicksWhileHeld(t *testing.T) {
	r := austriaRuns(t, policy())
	r.sees(r.lap(1))
	publisher := snapshots.Publisher{Store: r.Store}
	must.Get(publisher.Rollback(t.Context(), 1, "test", "a test", time.Now()))(t)
	for n := 2; n <= 18; n++ {
		o := r.lap(n)
		must.Get2(r.Observed().Append(t.Context(), r.of(), o))(t)
		_, _ = r.Build(t.Context(), builder.Request{At: o.Received})
	}
	record, _ := r.Ledger.Fold().Record(austriaKey)
	if len(record.Live) != 2 || record.Live[1].Checkpoint != 25 || record.Live[1].Observation.Lap != 18 {
		t.Errorf("got live picks %+v, want those of laps 1 and 18", record.Live)
	}
	if p := record.Live[1]; p.Actor != ledger.BuilderActor || len(p.Chances) != 20 || p.Model != predict.LiveName || p.FrozenAt.Sub(p.Observation.At) > live.Fresh {
		t.Errorf("got %+v", p)
	}
}

// TestAuditOfLivePicks: the audit names a live pick whose observation is gone.
func TestAuditOfLivePicks(t *testing.T) {
	r := austriaRuns(t, policy())
	r.sees(r.lap(1))
	must.Do(t, r.Store.Delete(t.Context(), "live/2024011/00000001.json"))
	audit, err := proof.AuditStore(t.Context(), r.Store)
	must.Hold(t, err == nil && !audit.Green() && audit.Faults[0].Key == "live/2024011/", "got %v, %v; want the observation missed", audit.Faults, err)
}

// TestPoorLinesFreezeNothing: lines with few cars are shown without chances, freeze nothing, and fail no build. The pick is
// made from the next line that names the cars, and the reason of a missed one stays the same.
func TestPoorLinesFreezeNothing(t *testing.T) {
	few := func(o live.Observation, n int) live.Observation {
		o.Cars = o.Cars[:n]
		return o
	}
	r := austriaRuns(t, builder.Policy{Model: predict.GridFrequency()})
	r.sees(few(r.lap(1), 3))
	var now wire.LiveRace
	r.data("live", &now)
	carried := 0
	for _, c := range now.Order {
		if c.Carried {
			carried++
		}
		must.Hold(t, c.WinPct == nil && c.PodiumPct == nil, "a line with 3 of 20 cars shows chances of %s", c.Driver)
	}
	must.Hold(t, len(now.Order) == 20 && carried == 17, "after a line with 3 of 20 cars: %d cars, %d of them carried on", len(now.Order), carried)
	must.Equal(t, "after a poor lap 1", "0 pending; 25 pending; 50 pending; 75 pending; 90 pending", r.checkpoints())
	r.sees(few(r.lap(2), 19))
	must.Equal(t, "after a whole lap 2", "0 frozen; 25 pending; 50 pending; 75 pending; 90 pending", r.checkpoints())
	for n := 3; n < 18; n++ {
		must.Get2(r.Observed().Append(t.Context(), r.of(), r.lap(n)))(t)
	}
	for _, n := range []int{18, 19, 20, 21, 22} { // build fails the test if a pick that cannot be made fails it
		r.sees(few(r.lap(n), 1))
		want := "0 frozen; 25 missed no complete line of lap 18 or 19 arrived within 180 seconds; 50 pending; 75 pending; 90 pending"
		if n < 19 {
			want = "0 frozen; 25 pending; 50 pending; 75 pending; 90 pending"
		}
		must.Equal(t, fmt.Sprintf("lap %d with one car", n), want, r.checkpoints())
	}
}

// TestVerifiedEndsTheRace: over never comes. The verified result ends the race, and its timeline is what was observed. Later laps
// of the feed freeze nothing.
func TestVerifiedEndsTheRace(t *testing.T) {
	r := austriaRuns(t, policy())
	for _, n := range []int{1, 18, 36} {
		r.sees(r.lap(n))
	}
	verified := austriaStart.Add(4 * time.Hour)
	build(t, r.Builder, verified) // by the rule
	over := func(path string, laps int) {
		t.Helper()
		var now wire.LiveRace
		r.data(path, &now)
		if now.State != wire.LiveOver || now.Provisional || len(now.Timeline) != laps || now.Result == nil || now.Result.Winner != "RUS" {
			t.Errorf("%s is %s with %d laps, provisional %t, with the result %+v", path, now.State, len(now.Timeline), now.Provisional, now.Result)
		}
	}
	over("live/session/2024011", 3)
	again := must.Get(proof.NewReproducer(t.Context(), r.Store))(t)
	made, err := again.Version(t.Context(), r.manifest().Version)
	must.Hold(t, err == nil && made.FirstDifference == nil, "the version is not reproduced: %+v, %v", made.FirstDifference, err)
	for n := 37; n <= 55; n++ {
		o := r.lap(n)
		o.At, o.Received = verified.Add(time.Duration(n)*time.Minute), verified.Add(time.Duration(n)*time.Minute)
		if n < 54 {
			must.Get2(r.Observed().Append(t.Context(), live.Fixture{}, o))(t)
			continue
		}
		r.sees(o)
	}
	over("live", 0)
	record, _ := r.Ledger.Fold().Record(austriaKey)
	must.Hold(t, len(record.Live) == 3, "got %d live picks, want the three from before the verification", len(record.Live))
}

// TestReleasedOrderIsMarked: an order by hand is marked for as long as it is shown, also after its release.
func TestReleasedOrderIsMarked(t *testing.T) {
	r := austriaRuns(t, builder.Policy{Model: predict.GridFrequency()})
	byHand, release := r.lap(2), live.Observation{Session: austriaKey, At: ends(2).Add(time.Minute), Received: ends(2).Add(time.Minute), Source: "operator:anna", Hand: true, Released: true}
	byHand.Hand, byHand.Source = true, "operator:anna"
	for _, tc := range []struct {
		line   live.Observation
		byHand bool
	}{{r.lap(1), false}, {byHand, true}, {release, true}, {r.lap(3), false}} {
		r.sees(tc.line)
		var now wire.LiveRace
		if r.data("live", &now); now.ByHand != tc.byHand {
			t.Errorf("after lap %d, released %t: by hand %t, want %t", tc.line.Lap, tc.line.Released, now.ByHand, tc.byHand)
		}
	}
}

// TestDamagedObservations: damage in the log of one race costs the documents of /live of that race, and no live pick comes from it.
// Everything else is published. The mended log is shown again.
func TestDamagedObservations(t *testing.T) {
	r := austriaRuns(t, policy())
	shown, _ := r.sees(r.lap(1)).Base.Entry("live")
	const first, last, timeline = "live/2024011/00000001.json", "live/2024011/00000003.json", "live/session/2024011"
	must.Get2(r.Observed().Append(t.Context(), r.of(), r.lap(18)))(t) // of which a live pick is due
	must.Get(r.Store.Create(t.Context(), last, []byte("{}")))(t)
	refuses := func(at time.Time, object string, paths ...string) {
		t.Helper()
		outcome := build(t, r.Builder, at)
		kept, _ := outcome.Base.Entry("live")
		must.Equal(t, "/live", shown.Object, kept.Object)
		var refused []string
		for _, d := range outcome.Refused {
			refused = append(refused, d.Path)
			must.Show(t, d.Path, d.Err.Error(), "of 2024011", object, "gridcast store restore")
		}
		must.Equal(t, "the refused documents", paths, refused)
		must.Equal(t, "the observations of the version", "", outcome.Base.Manifest.Live)
	}
	refuses(ends(18).Add(2*time.Second), last, "live")
	must.Fail(t, "a line for a damaged log", must.Err2(r.Observed().Append(t.Context(), r.of(), r.lap(19))))
	object := must.Get(r.Store.Get(t.Context(), first, 1<<20))(t)
	must.Do(t, r.Store.Delete(t.Context(), first))
	refuses(ends(19), first, "live")
	record, _ := r.Ledger.Fold().Record(austriaKey)
	must.Hold(t, len(record.Live) == 1, "live picks of a damaged log: %+v", record.Live)
	must.Get(r.Store.Create(t.Context(), first, object.Data))(t)
	refuses(austriaStart.Add(4*time.Hour), last, "live", timeline)
	refuses(austriaStart.Add(5*time.Hour), last, "live", timeline)
	var accuracy wire.Accuracy
	r.data("accuracy/2024", &accuracy)
	must.Hold(t, accuracy.RacesEvaluated > 0, "the verified result is not published: %+v", accuracy)
	must.Do(t, r.Store.Delete(t.Context(), last))
	var now wire.LiveRace
	mended := build(t, r.Builder, austriaStart.Add(6*time.Hour))
	r.data("live", &now)
	must.Hold(t, len(mended.Refused) == 0 && mended.Base.Manifest.Live != "" && !now.Provisional && now.Lap == 18, "after the mend: %+v, refused %v", now, mended.Refused)
	r.data(timeline, &now)
	must.Hold(t, len(now.Timeline) == 2, "the timeline after the mend: %+v", now)
	for _, version := range []int64{mended.Version, mended.Version - 1} {
		made := must.Get(again(t, r.Store, version))(t)
		must.Hold(t, made.FirstDifference == nil, "version %d made again differs: %+v", version, made.FirstDifference)
	}
}
