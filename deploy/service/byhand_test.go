package service_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/predict/score"
	"gridcast/builder/season"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// answersIn is the time from the notice about missing qualifying to the entry of a person.
const answersIn = 10 * time.Minute

// TestQualifyingByHand lives through 2025 with an operator who enters qualifying when the notice asks for it,
// because F1DB has it late. Nearly every pick then rests on qualifying, and the picks as frozen are as good as
// forecasts from qualifying. Without GRIDCAST_SEASONS the test lives through one weekend.
func TestQualifyingByHand(t *testing.T) { liveThrough2025(t, true) }

// TestQualifyingLate lives through 2025 with F1DB alone. deploy/docs/predictions.md shows the picks as frozen.
func TestQualifyingLate(t *testing.T) {
	if os.Getenv("GRIDCAST_SEASONS") == "" {
		t.Skip("runs a season, some minutes; make season does")
	}
	liveThrough2025(t, false)
}

func liveThrough2025(t *testing.T, byHand bool) {
	must.Long(t, "a weekend takes some seconds")
	whole := os.Getenv("GRIDCAST_SEASONS") != ""
	from, first, end := time.Date(2025, 4, 19, 0, 0, 0, 0, time.UTC), 2024, time.Date(2025, 4, 21, 0, 0, 0, 0, time.UTC)
	if whole {
		from, first, end = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), 2010, time.Date(2025, 12, 12, 0, 0, 0, 0, time.UTC)
	}
	host, clock := newsFrom(t, from)
	base, happened := release(t, sourcetest.F1DB2024, first, 2024), release(t, sourcetest.F1DB2026, first, 2025)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, false)
		person := u.person(t)
		v := happened.Archive.AsOf(end)
		year, _ := v.Season(2025)
		for i := range year.Rounds {
			u.wake = append(u.wake, year.Rounds[i].QualifyingKnownAt().Add(30*time.Minute+answersIn))
		}
		entered := 0
		for u.step(t, end) {
			for _, fact := range u.service.Missing() {
				if !byHand || fact.Code != almanac.QualifyingMissed || u.Now().Before(fact.Since.Add(answersIn)) {
					continue
				}
				u.enterQualifying(t, person, fact, v, year)
				entered++
			}
		}
		for fault := range u.faults {
			t.Errorf("a job failed: %s", fault)
		}
		for _, p := range u.sources.PollStates()[0].Held {
			must.Hold(t, p.Block != assemble.Result, "the result of %d %s waits for a person", p.Year, p.GrandPrix)
		}
		races, onQualifying := 0, 0
		var frozen, qualifying float64
		var scores []score.Score
		for _, r := range almanac.Rounds(happened.Archive.AsOf(end), u.ledger.Fold(), 2025) {
			if r.Year != 2025 || r.Start.Before(from) || r.Pick == nil {
				continue
			}
			races++
			if r.Pick.Basis != ledger.OnForm {
				onQualifying++
			}
			podium := r.Facts.Podium()
			f := predict.Forecast{Podium: almanac.Picked(r.Pick)}
			for _, c := range r.Pick.Chances {
				f.Candidates = append(f.Candidates, predict.Candidate{Driver: c.Driver, Win: float64(c.Win) / ledger.Certain, Podium: float64(c.Podium) / ledger.Certain})
			}
			scores = append(scores, score.Of(f, podium))
			as := scores[len(scores)-1].LogLoss
			could := onQualifyingAlone(t, happened, r)
			frozen, qualifying = frozen+as, qualifying+could
			t.Logf("%s: %s %s, log-loss %.3f, from qualifying alone %.3f", r.Facts.Name, r.Pick.Basis, r.Pick.FrozenAt.Format("2 Jan 15:04"), as, could)
		}
		n := float64(races)
		t.Logf("%d of %d picks on qualifying or better, %d entered by hand; log-loss as frozen %.3f, from qualifying %.3f", onQualifying, races, entered, frozen/n, qualifying/n)
		must.Hold(t, races == map[bool]int{true: 24, false: 1}[whole] && (entered == 0) != byHand, "%d races with a pick, %d entries by hand", races, entered)
		if whole {
			m, service := score.NewMetrics(scores), map[bool]string{true: "qualifying by hand where F1DB is late", false: "F1DB alone"}[byHand]
			row := fmt.Sprintf(`{"name":"as frozen in 2025, with %s","races":%d,"winner_hit_pct":%.4g,"podium_pct":%.4g,"log_loss":%.4g}`, service, races, m.WinnerHitPct.Value, m.PodiumPct.Value, m.LogLoss.Value)
			must.Show(t, "deploy/docs/predictions.json", string(must.Get(os.ReadFile("../docs/predictions.json"))(t)), row)
		}
		if !byHand {
			return
		}
		must.Hold(t, 100*onQualifying >= 95*races, "%d of %d picks rest on qualifying or better, want 95 %%", onQualifying, races)
		if whole && math.Abs(frozen-qualifying)/n > .03 { // one race alone says little
			t.Errorf("log-loss as frozen is %.3f, from qualifying %.3f; want them within .03", frozen/n, qualifying/n)
		}
	})
}

// onQualifyingAlone returns the log-loss of the forecast of a race from qualifying, without the grid.
func onQualifyingAlone(t *testing.T, facts archive.Stored, r *almanac.Round) float64 {
	t.Helper()
	v := facts.Archive.AsOf(r.Facts.GridKnownAt())
	year, _ := v.Season(r.Year)
	year.Rounds = slices.Clone(year.Rounds)
	for i := range year.Rounds {
		if year.Rounds[i].GrandPrix == r.Facts.GrandPrix {
			year.Rounds[i].Grid = nil
		}
	}
	f := must.Get(hindsightModel.Predict(v, r.Year, r.Facts.GrandPrix))(t)
	return score.Of(f, r.Facts.Podium()).LogLoss
}

var hindsightModel = predict.NewV2(predict.DefaultParams())

// person returns the actions of an operator on the running service.
func (u *unattended) person(t *testing.T) *operator.Operator {
	t.Helper()
	log := must.Get(auditlog.Load(t.Context(), u.store))(t)
	return &operator.Operator{
		Store: u.store, Audit: log, Name: "test", Now: u.Now, Ledger: u.ledger, Facts: u.facts.Load, Archives: u.facts, Ingest: u.sources, Build: u.service.Build,
	}
}

// enterQualifying enters qualifying as it was, with its times, and describes drivers and cars where the service does not know them.
func (u *unattended) enterQualifying(t *testing.T, person *operator.Operator, fact almanac.MissingFact, happened *season.View, year *season.Season) {
	t.Helper()
	roster, r, err := person.Roster(t.Context(), fact.Session)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(year.Rounds, func(o season.Round) bool { return o.GrandPrix == r.Facts.GrandPrix })
	codes := happened.Codes(year.Year) // F1DB renames drivers between releases, and codes stay
	facts := must.Get(u.facts.Load(t.Context()))(t)
	served := facts.Archive.AsOf(u.Now()).Teams
	var order strings.Builder
	for _, row := range year.Rounds[i].Qualifying {
		code, team := codes[row.Driver], string(row.Team)
		if named := happened.Team(row.Team); served[row.Team].Name == "" {
			team = fmt.Sprintf("%s (%s)", named.Name, named.Country) // F1DB has the team after its first race
		}
		car := year.Rounds[i].Entries[slices.IndexFunc(year.Rounds[i].Entries, func(e season.Entry) bool { return e.Driver == row.Driver })]
		fmt.Fprint(&order, code)
		for _, lap := range row.Segments {
			if lap > 0 {
				fmt.Fprintf(&order, " %d:%06.3f", lap/time.Minute, (lap % time.Minute).Seconds())
			}
		}
		s, err := roster.Find(code)
		switch {
		case err != nil:
			d := happened.Driver(row.Driver)
			if d.ID == "kimi-antonelli" {
				d.Name = "Andrea Kimi Antonelli" // as on the entry list and in F1DB of 2025
			}
			fmt.Fprintf(&order, " = %s, %s, %s, %d", d.Name, d.Country, team, car.Number)
		case s.Team != row.Team || s.Number != car.Number: // a substitute of last year had the number of a reserve
			fmt.Fprintf(&order, " = %s, %d", team, car.Number)
		}
		order.WriteByte('\n')
	}
	_, err = person.Do(t.Context(), operator.EnterDrivers{Key: fact.Session, Block: assemble.Qualifying, Text: order.String()}, operator.Request{Actor: "operator:anna", Reason: "F1DB is late"})
	must.Hold(t, err == nil, "%s: %v", fact.Name, err)
	u.settle(t)
}
