package builder_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/snapshots"
)

// A builder that remembers seasons publishes the same bytes as a new builder on the same store, after all
// kinds of changes between its builds.
func TestRememberedIsAsRendered(t *testing.T) {
	must.Long(t, "builds some thirty versions")
	facts := archivetest.Seasons(t, 2023, 2024)
	facts.Seasons[1].Rounds = facts.Seasons[1].Rounds[:14] // of which eleven are run
	asItIs := archivetest.Stored(t, facts).Archive
	inUse := asItIs
	day := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 12, 0, 0, 0, time.UTC)
	}
	opened := day(2023, time.July, 1) // the archive vouches for the first half of that season
	b := onArchive(t, &inUse, opened, builder.Policy{Model: predict.GridFrequency()})
	decide := func(year int, gp season.GrandPrixID, decide func(*almanac.Round) ([]ledger.Event, error)) func(time.Time) {
		return func(at time.Time) {
			session, _ := b.Ledger.Fold().Key(year, gp)
			must.Get((almanac.Decider{Ledger: testseason.Fresh(t, b.Ledger), View: inUse.AsOf(at), Actor: "operator:test"}).Decide(t.Context(), session, decide))(t)
		}
	}
	use := func(a *season.Archive) func(time.Time) { return func(time.Time) { inUse = a } }
	// edited is the archive with one race otherwise.
	edited := func(year int, gp season.GrandPrixID, edit func(*season.Round)) *season.Archive {
		facts := asItIs.Facts()
		facts.Seasons = slices.Clone(facts.Seasons)
		i := slices.IndexFunc(facts.Seasons, func(s season.Season) bool { return s.Year == year })
		facts.Seasons[i].Rounds = slices.Clone(facts.Seasons[i].Rounds)
		r, _ := facts.Seasons[i].Round(gp)
		edit(r)
		return must.Get(season.New(facts))(t)
	}
	// changed is the archive with other tables.
	changed := func(change func(*season.Facts)) *season.Archive {
		facts := asItIs.Facts()
		facts.Drivers, facts.Circuits = maps.Clone(facts.Drivers), maps.Clone(facts.Circuits)
		change(&facts)
		return must.Get(season.New(facts))(t)
	}
	portraits := changed(func(f *season.Facts) {
		f.Headshots = season.Headshots{Template: "https://example.org/{driver}.png", Drivers: []season.DriverID{"max-verstappen", "lando-norris"}}
	})
	otherCode := changed(func(f *season.Facts) {
		sargeant := f.Drivers["logan-sargeant"]
		sargeant.Abbreviation = "LOG"
		f.Drivers[sargeant.ID] = sargeant
	})
	nameless := changed(func(f *season.Facts) {
		ring := f.Circuits["silverstone"]
		ring.Name = ""
		f.Circuits[ring.ID] = ring
	})
	slower := func(r *season.Round) { // the tenth driver has one lap less; places and points stay
		r.Results = slices.Clone(r.Results)
		r.Results[9].Laps--
	}
	swapped := func(r *season.Round) {
		r.Results = slices.Clone(r.Results)
		r.Results[0].Driver, r.Results[1].Driver = r.Results[1].Driver, r.Results[0].Driver
		r.Results[0].Team, r.Results[1].Team = r.Results[1].Team, r.Results[0].Team
		r.DriverStandings, r.TeamStandings = nil, nil
	}
	nothing := func(time.Time) {}
	release, refused := false, false
	overtaken := false // another builder publishes while objects are uploaded
	remembered := 0    // builds that rendered less than half of the documents
	for _, step := range []struct {
		what string
		at   time.Time
		do   func(at time.Time)
	}{
		{"the first", opened, nothing},
		{"the last race of a season is over", time.Date(2023, time.November, 26, 16, 0, 0, 0, time.UTC), nothing},
		{"its result is awaited", time.Date(2023, time.November, 26, 18, 0, 0, 0, time.UTC), nothing},
		{"all results are verified", day(2023, time.December, 10), func(time.Time) { b.Policy.AutoVerifyAfter = time.Hour }},
		{"once more", day(2023, time.December, 10), nothing},
		{"time passes", day(2024, time.January, 10), nothing},
		{"a result of last season is corrected", day(2024, time.January, 11), decide(2023, "united-states", disqualified("lando-norris"))},
		{"drivers are seen for the first time", day(2024, time.March, 4), nothing},
		{"in the middle of a race", time.Date(2024, time.March, 9, 17, 30, 0, 0, time.UTC), nothing},
		{"after it", time.Date(2024, time.March, 9, 22, 0, 0, 0, time.UTC), nothing},
		{"a round is postponed", day(2024, time.March, 12), decide(2024, "australia", func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("storms") })},
		{"and put back", day(2024, time.March, 13), decide(2024, "australia", func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "no storms") })},
		{"another is moved", day(2024, time.March, 14), decide(2024, "japan", func(r *almanac.Round) ([]ledger.Event, error) { return r.Move(r.Start.Add(time.Hour), "television") })},
		{"another is cancelled", day(2024, time.March, 15), decide(2024, "china", func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("a strike") })},
		{"the archive changes details of last season", day(2024, time.March, 16), use(edited(2023, "belgium", slower))},
		{"time passes on it", day(2024, time.March, 17), nothing},
		{"the archive differs from a result of last season", day(2024, time.March, 18), use(edited(2023, "belgium", swapped))},
		{"time passes while they differ", day(2024, time.March, 19), nothing},
		{"that result is corrected", day(2024, time.March, 20), decide(2023, "belgium", func(r *almanac.Round) ([]ledger.Event, error) { return r.Correct(r.Source(), nil, "an appeal") })},
		{"the archive is as it was", day(2024, time.March, 21), use(asItIs)},
		{"another model picks", day(2024, time.March, 22), func(time.Time) { b.Policy.Model = predict.NewV2(predict.DefaultParams()) }},
		{"a weekend later", day(2024, time.March, 25), nothing},
		{"it is rolled back", day(2024, time.March, 26), func(at time.Time) {
			base := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
			publisher := snapshots.Publisher{Store: b.Store}
			must.Get(publisher.Rollback(t.Context(), base.Pointer.Version-3, "test", "to look", at))(t)
			release = true
		}},
		{"another builder was there, on an archive of its own", day(2024, time.March, 28), func(at time.Time) {
			theirs := edited(2023, "belgium", slower)
			other := &builder.Builder{Store: b.Store, Ledger: b.Ledger, Policy: b.Policy, Name: "other", Log: b.Log, Facts: func(context.Context) (archive.Stored, error) {
				return archive.Stored{Archive: theirs, SHA256: sum}, nil
			}}
			must.Get(other.Build(t.Context(), builder.Request{At: at.Add(-time.Hour)}))(t)
		}},
		{"a driver has another name in the ledger", day(2024, time.March, 29), func(at time.Time) {
			must.Get(testseason.Fresh(t, b.Ledger).Append(t.Context(), at, "operator:test", func(*ledger.Fold) ([]ledger.Event, error) {
				return []ledger.Event{ledger.Rename("max-verstappen", "max-emilian-verstappen")}, nil
			}))(t)
		}},
		{"and time passes again", day(2024, time.March, 30), nothing},
		{"the settings name another model", day(2024, time.April, 1), func(time.Time) {
			must.Get(settings.Update(t.Context(), b.Store, false, func(s *settings.Settings) { s.Model = "r2" }))(t)
		}},
		{"a pick is made by it", day(2024, time.April, 6), nothing},
		{"drivers have portraits", day(2024, time.April, 8), use(portraits)},
		{"a driver has another code", day(2024, time.April, 9), use(otherCode)},
		{"documents are refused", day(2024, time.April, 10), func(time.Time) { inUse, refused = nameless, true }},
		{"time passes while they are refused", day(2024, time.April, 11), nothing},
		{"they are published again", day(2024, time.April, 12), func(time.Time) { inUse, refused = asItIs, false }},
		{"another builder publishes during the build", day(2024, time.April, 13), func(time.Time) { inUse, overtaken = otherCode, true }},
		{"the last", day(2024, time.July, 1), nothing},
	} {
		step.do(step.at)
		for range 2 { // a driver whom a pick has just named may be one who does not start
			must.Get(b.Rules(t.Context()).Settle(t.Context(), testseason.Fresh(t, b.Ledger), archive.Stored{Archive: inUse, SHA256: sum}, step.at))(t)
		}
		store := clone(t, b.Store)
		l := must.Get(ledger.Load(t.Context(), store, ledger.Simulated))(t)
		fresh := &builder.Builder{Store: store, Ledger: l, Policy: b.Policy, Name: b.Name, Log: b.Log, Facts: b.Facts}
		rendered := map[*builder.Builder]*atomic.Int64{fresh: {}, b: {}}
		for _, each := range []*builder.Builder{fresh, b} {
			var overtake sync.Once
			progress := func(phase string, _, _ int) {
				if phase == builder.Render {
					rendered[each].Add(1)
				}
				if phase == snapshots.Upload && overtaken {
					overtake.Do(func() {
						other := &builder.Builder{Store: each.Store, Ledger: each.Ledger, Policy: b.Policy, Name: "other", Log: b.Log, Facts: func(context.Context) (archive.Stored, error) {
							return archive.Stored{Archive: portraits, SHA256: sum}, nil
						}}
						if receipt, err := other.Build(t.Context(), builder.Request{At: step.at.Add(time.Second)}); err != nil || receipt.Unchanged {
							t.Errorf("%s: %+v, %v", step.what, receipt, err)
						}
					})
				}
			}
			outcome, err := each.Build(t.Context(), builder.Request{At: step.at, Release: release, Progress: progress})
			if err != nil || refused != (len(outcome.Refused) > 0) {
				t.Fatalf("%s: refused %v, %v", step.what, outcome.Refused, err)
			}
		}
		release, overtaken = false, false
		if 2*rendered[b].Load() < rendered[fresh].Load() {
			remembered++
		}
		for _, folder := range []string{"objects/", "manifests/"} {
			if diff := cmp.Diff(testseason.Objects(t, store, folder), testseason.Objects(t, b.Store, folder)); diff != "" {
				t.Fatalf("%s: %s (-of a new builder +of one that remembers)\n%.4000s", step.what, folder, diff)
			}
		}
	}
	must.Hold(t, remembered >= 12, "%d builds remembered most documents; want 12 or more", remembered)
}
