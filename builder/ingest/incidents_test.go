package ingest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/ingest"
	"gridcast/builder/provenance"
	"gridcast/builder/source/codehosttest"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// published returns the bodies of the season 2026 as readers get them.
func (s *service) published(t *testing.T) map[string]string {
	t.Helper()
	return s.bodies(t, "calendar/2026", "standings/drivers/2026", "standings/constructors/2026", "predictions/2026", "drivers")
}

// version is the published one. Of the one before it the bodies that have not changed are used again.
func (s *service) version(t *testing.T) *snapshots.Version {
	t.Helper()
	version := must.Get(snapshots.Open(t.Context(), s.Store, s.last))(t)
	s.last = version
	return version
}

// bodies returns bodies as readers get them.
func (s *service) bodies(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	version := s.version(t)
	bodies := make(map[string]string)
	for _, path := range paths {
		body, ok := version.Body(path)
		must.Require(t, ok, "version %d has no %s", version.Pointer.Version, path)
		bodies[path] = string(body.Identity)
	}
	return bodies
}

// decoded is the data of a body.
func decoded[T any](t *testing.T, body string) T {
	t.Helper()
	var envelope struct {
		Data T `json:"data"`
	}
	must.Do(t, json.Unmarshal([]byte(body), &envelope))
	return envelope.Data
}

// inMonaco is a service in the week of the Grand Prix of Monaco 2026 with all facts of that time.
func inMonaco(t *testing.T, begin time.Time) *service {
	t.Helper()
	must.Long(t, "reads commits of a season")
	s := newService(t, begin)
	for _, at := range []time.Time{begin, begin.Add(2 * time.Minute)} {
		if faults := s.step(t, at).Faults; len(faults) > 0 {
			t.Fatal(faults)
		}
	}
	return s
}

var raceMorning = time.Date(2026, 6, 7, 6, 0, 0, 0, time.UTC)

// TestCalendarAsItIs: two races in one country differ by their circuit, a race may be on a Saturday, and
// the countdown goes on to the next race at lights out.
func TestCalendarAsItIs(t *testing.T) {
	s := inMonaco(t, raceMorning)
	monaco := time.Date(2026, 6, 7, 13, 0, 0, 0, time.UTC)
	calendar := func() map[string]wire.CalendarEntry {
		t.Helper()
		byName := make(map[string]wire.CalendarEntry)
		for _, e := range decoded[[]wire.CalendarEntry](t, s.bodies(t, "calendar/2026")["calendar/2026"]) {
			byName[e.GPName] = e
		}
		return byName
	}
	next := func(now time.Time) wire.NextRace {
		t.Helper()
		countdown := must.JSON[wire.Countdown](t, []byte(s.bodies(t, "next-race")["next-race"]))
		round := countdown.Next(now)
		must.Require(t, round != nil, "at %s there is no next race", now)
		return decoded[wire.NextRace](t, string(round.Append(nil, now)))
	}
	t.Run("Catalunya and Madrid (2026-09-06)", func(t *testing.T) {
		spain, catalunya := calendar()["Spanish Grand Prix"], calendar()["Barcelona-Catalunya Grand Prix"]
		if spain.Circuit != "Circuito de Madring" || spain.Locality != "Madrid" || catalunya.Circuit != "Circuit de Barcelona-Catalunya" || catalunya.Locality != "Montmeló" {
			t.Errorf("the calendar has %+v and %+v", spain, catalunya)
		}
	})
	t.Run("five minutes late at lights out (2025-09-21)", func(t *testing.T) {
		for _, test := range []struct {
			at      time.Time
			name    string
			seconds int64
		}{
			{monaco.Add(-time.Second), "Monaco Grand Prix", 1},
			{monaco, "Barcelona-Catalunya Grand Prix", 7 * 24 * 3600},
			{monaco.Add(3*time.Minute + 55*time.Second), "Barcelona-Catalunya Grand Prix", 7*24*3600 - 235},
		} {
			if got := next(test.at); got.Name != test.name || got.SecondsToLights != test.seconds {
				t.Errorf("at %s: %d seconds to the %s, want %d to the %s", test.at.Format(time.TimeOnly), got.SecondsToLights, got.Name, test.seconds, test.name)
			}
		}
	})
	t.Run("a race on a Saturday (2026-09-26)", func(t *testing.T) {
		start := time.Date(2026, 9, 26, 11, 0, 0, 0, time.UTC)
		baku := calendar()["Azerbaijan Grand Prix"]
		must.Hold(t, baku.Date == "2026-09-26" && time.Time(baku.DateStart).Equal(start), "the calendar has %+v, want Saturday at 11:00 UTC", baku)
		for _, w := range decoded[[]wire.Weekend](t, s.bodies(t, "weekends/2026")["weekends/2026"]) {
			if w.SessionKey == baku.SessionKey && (len(w.Sessions) == 0 || !strings.HasPrefix(time.Time(w.Sessions[0].DateStart).Format(time.DateOnly), "2026-09-24")) {
				t.Errorf("its weekend is %+v, want it to begin on Thursday", w)
			}
		}
		got := next(start)
		must.Hold(t, got.Name == "Singapore Grand Prix", "at its lights out the next race is %s", got.Name)
	})
}

// TestOvernightCorrection: a driver loses three places and a lap in the night after the race. The
// correction is a revision once it is stable, with every place that changes, and the pick stays.
func TestOvernightCorrection(t *testing.T) {
	s := inMonaco(t, raceMorning)
	const monaco = "src/data/seasons/2026/races/06-monaco/race-results.yml"
	s.step(t, time.Date(2026, 6, 7, 12, 55, 0, 0, time.UTC))
	s.step(t, time.Date(2026, 6, 7, 19, 45, 0, 0, time.UTC)) // the result is there
	s.step(t, time.Date(2026, 6, 7, 23, 50, 0, 0, time.UTC)) // and has stood twice as long, because a retired car has a lap behind its last one
	seen := func() (pick wire.Prediction, order string, laps []int, revisions int) {
		t.Helper()
		bodies := s.bodies(t, "predictions/2026", "results/2026")
		for _, p := range decoded[[]wire.PredictionRecord](t, bodies["predictions/2026"]) {
			if p.GPName == "Monaco Grand Prix" {
				pick = p.Prediction
			}
		}
		for _, r := range decoded[[]wire.ResultRecord](t, bodies["results/2026"]) {
			if r.GPName == "Monaco Grand Prix" {
				var places strings.Builder
				for _, row := range r.Race[11:16] {
					fmt.Fprintf(&places, "%d %s, ", row.Position, row.Driver)
					laps = append(laps, *row.Laps)
				}
				order = places.String()
				revisions = len(r.Revisions)
			}
		}
		return pick, order, laps, revisions
	}
	results := func() any { return decoded[any](t, s.bodies(t, "results/2026")["results/2026"]) }
	pick, before, _, revisions := seen()
	verified := results()
	if want := "12 RUS, 13 HUL, 14 COL, 15 PER, 16 SAI, "; before != want || revisions != 1 || pick.Winner == "" {
		t.Fatalf("published are %s in %d revisions beside the pick %+v, want %s in one", before, revisions, pick, want)
	}
	morning := time.Date(2026, 6, 8, 7, 0, 0, 0, time.UTC)
	s.host.Edit(codehosttest.Edit{At: morning, Change: func(files map[string][]byte) {
		rows := strings.SplitAfter(string(files[monaco]), "\n- position: ")
		russell := strings.Replace(strings.Replace(rows[11], "12\n", "15\n", 1), "laps: 78", "laps: 77", 1)
		russell = regexp.MustCompile(`(?m)^  time: .*$`).ReplaceAllString(russell, "  time:")
		russell = regexp.MustCompile(`(?m)^  gap: .*$`).ReplaceAllString(russell, `  gap: "+1 lap"`)
		copy(rows[11:], rows[12:15])
		for i := 11; i < 14; i++ {
			rows[i] = strings.Replace(rows[i], strconv.Itoa(i+2)+"\n", strconv.Itoa(i+1)+"\n", 1)
		}
		rows[14] = russell
		for i := 11; i < 16; i++ {
			rows[i] = regexp.MustCompile(`(?m)^  interval: .*$`).ReplaceAllString(rows[i], "  interval:")
		}
		files[monaco] = []byte(strings.Join(rows, ""))
	}})
	// While it waits nothing of it is seen, however often a version is built: no lap, no gap, no reason.
	for _, wait := range []time.Duration{time.Minute, 30 * time.Minute} {
		s.step(t, morning.Add(wait))
		must.Get(s.Build(t.Context(), builder.Request{At: s.now, Reason: "again"}))(t)
		if _, order, _, revisions := seen(); order != before || revisions != 1 {
			t.Errorf("%s later published are %s in %d revisions, want %s as before", wait, order, revisions, before)
		}
		diff := cmp.Diff(verified, results())
		must.Hold(t, diff == "", "%s later, while the correction waits, published results are (-verified +seen):\n%s", wait, diff)
	}
	s.step(t, morning.Add(5*time.Hour))
	after, order, laps, revisions := seen()
	if want := "12 HUL, 13 COL, 14 PER, 15 RUS, 16 SAI, "; order != want || revisions != 2 || after != pick || laps[3] != 77 {
		t.Errorf("five hours later published are %s with %v laps in %d revisions beside %+v; want %s RUS with 77, in two, beside %+v", order, laps, revisions, after, want, pick)
	}
}

// TestNobodyWaitsForASource: Stability answers while a source is slow, under the ledger's lock that the
// poll needs next. A result of an archive from another scheduler counts as contested.
func TestNobodyWaitsForASource(t *testing.T) {
	s := inMonaco(t, raceMorning)
	facts := must.Get(s.Archives.Load(t.Context()))(t)
	asked := make(chan provenance.Stability, 2)
	s.host.Misbehave(func(http.ResponseWriter, *http.Request) bool {
		done := make(chan struct{})
		go func() {
			asked <- s.ingest.Stability(facts.SHA256, 2026, "canada")
			asked <- s.ingest.Stability("another", 2026, "canada")
			s.ingest.PollStates()
			s.ingest.Arrived(2026, "canada")
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("whoever asks since when a result has stood waits for the source")
		}
		return false
	})
	s.step(t, s.now.Add(2*time.Minute))
	stood := <-asked
	must.Hold(t, !stood.Contested && !stood.Since.IsZero(), "the result of Canada stood %+v, want since when and uncontested", stood)
	if stood := <-asked; !stood.Contested {
		t.Errorf("in an archive that no run has seen the result of Canada stood %+v, want contested", stood)
	}
}

// TestStartWithoutASource: the service starts although the source refuses, and the first good answer
// brings all facts.
func TestStartWithoutASource(t *testing.T) {
	must.Long(t, "reads commits of a season")
	s := newService(t, raceMorning)
	s.host.Misbehave(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "forbidden", http.StatusForbidden)
		return true
	})
	report := s.step(t, raceMorning)
	must.Hold(t, report.Faults["f1db"] != nil, "the source refuses, and nobody is told")
	version := s.version(t)
	champions := decoded[[]wire.DriverStanding](t, s.bodies(t, "standings/drivers/2025")["standings/drivers/2025"])
	must.Equal(t, "the champion of the season that the store has", "NOR", champions[0].Driver)
	_, ok := version.Body("calendar/2026")
	must.Hold(t, !ok, "a season of which nothing is known is published")
	s.host.Misbehave(nil)
	state := must.Get(ingest.LoadPollState(t.Context(), s.Store, "f1db"))(t)
	if report := s.step(t, state.Next); len(report.Faults) > 0 {
		t.Errorf("once it answers: %v", report.Faults)
	}
	calendar := decoded[[]wire.CalendarEntry](t, s.published(t)["calendar/2026"])
	must.Hold(t, slices.ContainsFunc(calendar, func(e wire.CalendarEntry) bool { return e.GPName == "Monaco Grand Prix" }), "once it answers the calendar is %+v", calendar)
}
