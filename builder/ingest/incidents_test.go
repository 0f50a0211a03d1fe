package ingest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/provenance"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/builder/source"
	"gridcast/builder/source/codehosttest"
	"gridcast/deploy/golden"
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
		if !ok {
			t.Fatalf("version %d has no %s", version.Pointer.Version, path)
		}
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
	if testing.Short() {
		t.Skip("reads commits of a season")
	}
	s := newService(t, begin)
	for _, at := range []time.Time{begin, begin.Add(2 * time.Minute)} {
		if faults := s.step(t, at).Faults; len(faults) > 0 {
			t.Fatal(faults)
		}
	}
	return s
}

// TestOutagesOfTheSource: during an outage readers see the last version, and the operator sees the
// fault. The source is polled again later, and one good answer ends the fault.
func TestOutagesOfTheSource(t *testing.T) {
	t.Parallel()
	s := inMonaco(t, time.Date(2026, 6, 5, 21, 0, 0, 0, time.UTC)) // a night in which nothing falls due
	before := s.published(t)
	page := func(status int, contentType, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	now := s.now
	for _, test := range []struct {
		incident string
		fault    func(http.ResponseWriter, *http.Request) bool
		want     source.FaultKind
	}{
		{"everybody gets 429 far below the limit (2025-04-04)", page(429, "application/json", `{"error":"ratelimited"}`), source.Throttled},
		{"connections are refused at once (2025-08-02)", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, source.Unreachable},
		{"503 in plain text for days (2025-11-02)", page(503, "text/plain", "upstream request timeout"), source.Unreachable},
		{"401 long after the session (2025-11-07)", page(401, "application/json", `{"detail":"Session in progress"}`), source.Refused},
		{"504 of nginx on race day (2025-11-09)", page(504, "text/html", "<html>504</html>"), source.Unreachable},
		{"502 while it is said to be mended (2025-12-05)", page(502, "text/html", "<html>502</html>"), source.Unreachable},
		{"403 under the load of Monaco (2026-06-07)", page(403, "text/html", "<html>403</html>"), source.Refused},
		{"404 where there was data (2026-03-07)", page(404, "application/json", `{"detail":"No results found."}`), source.Refused},
		{"a page that says 200", page(200, "text/html", "<html>maintenance</html>"), source.Malformed},
		{"nothing at all, as an archive (2025-10-18)", page(200, "application/x-gzip", ""), source.Malformed},
		{"an archive that is cut off", func(w http.ResponseWriter, _ *http.Request) bool {
			packed, _, err := s.host.Archive(s.now)
			if err != nil {
				t.Error(err)
			}
			return page(200, "application/x-gzip", string(packed[:len(packed)/2]))(w, nil)
		}, source.Malformed},
	} {
		t.Run(test.incident, func(t *testing.T) {
			now = now.Add(2 * time.Minute)
			s.host.Misbehave(test.fault)
			report := s.step(t, now)
			if len(report.Faults) != 1 {
				t.Errorf("faults: got %v, want one", report.Faults)
			}
			state, err := ingest.LoadPollState(t.Context(), s.Store, "f1db")
			must.Do(t, err)
			if state.Fault != test.want || state.Failures == 0 || !state.Next.After(now) || state.Reason == "" {
				t.Errorf("the operator sees %q after %d failures, next at %s: %s; want %q", state.Fault, state.Failures, state.Next, state.Reason, test.want)
			}
			if diff := cmp.Diff(before, s.published(t)); diff != "" {
				t.Errorf("readers see something else (-before +now):\n%s", diff)
			}
			asked, _ := s.host.Served()
			s.step(t, now.Add(time.Second))
			if again, _ := s.host.Served(); again != asked {
				t.Error("a source that failed was asked again a second later")
			}
			s.host.Misbehave(nil)
			if report := s.step(t, state.Next); len(report.Faults) > 0 {
				t.Errorf("once it is honest again: %v", report.Faults)
			}
			state, err = ingest.LoadPollState(t.Context(), s.Store, "f1db")
			if err != nil || state.Fault != "" || state.Failures != 0 {
				t.Errorf("once it is honest again the operator sees %q after %d failures, %v", state.Fault, state.Failures, err)
			}
			now = s.now
		})
	}
}

var raceMorning = time.Date(2026, 6, 7, 6, 0, 0, 0, time.UTC)

const inMiami = "src/data/seasons/2026/races/04-miami/"

// replacing returns a change of one file that must hold the old text.
func replacing(t *testing.T, name, old, with string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		content := string(files[name])
		must.Show(t, name, content, old)
		files[name] = []byte(strings.Replace(content, old, with, 1))
	}
}

// TestWrongData: wrong facts of a source wait with a reason, and cost their own block or the whole commit. Readers see
// the last version.
func TestWrongData(t *testing.T) {
	s := inMonaco(t, raceMorning)
	s.step(t, raceMorning.Add(3*time.Hour)) // by then the results have verified themselves
	before := s.published(t)
	now := s.now
	said := map[string]string{}
	for _, test := range []struct {
		incident string
		change   func(map[string][]byte)
		gate     assemble.Gate // of the one change that waits; empty: the whole commit is refused
	}{
		{"two drivers in P9, one of them disqualified (2026-05-03)", replacing(t, inMiami+"race-results.yml", "- position: 10\n", "- position: 9\n"), assemble.PositionsGate},
		{"a grid with two cars in one slot (2025-09)", replacing(t, inMiami+"starting-grid-positions.yml", "- position: 19\n", "- position: 18\n"), assemble.PositionsGate},
		{"a position that nobody has", replacing(t, inMiami+"qualifying-results.yml", "- position: 5\n", "- position: 50\n"), assemble.PositionsGate},
		{"P6 with nine points (2026-06-12)", replacing(t, inMiami+"race-results.yml", "points: 8\n", "points: 9\n"), assemble.PointsGate},
		{"a disqualified driver who keeps the points (2025-08-05)", replacing(t, inMiami+"race-results.yml", "- position: 1\n", "- position: DSQ\n"), assemble.OutcomeGate},
		{"a driver twice in a session (2026-08-21)", func(files map[string][]byte) {
			rows := string(files[inMiami+"race-results.yml"])
			second := rows[strings.Index(rows, "- position: 2\n"):strings.Index(rows, "- position: 3\n")]
			files[inMiami+"race-results.yml"] = []byte(rows + strings.Replace(second, "- position: 2\n", "- position: DNF\n", 1))
		}, assemble.OnceGate},
		{"somebody of a result gone", func(files map[string][]byte) {
			rows := string(files[inMiami+"race-results.yml"])
			files[inMiami+"race-results.yml"] = []byte(rows[:strings.LastIndex(rows, "- position:")])
		}, assemble.VerifiedGate},
		{"a start moved onto another round (2026-05-04)", replacing(t, "src/data/seasons/2026/races/08-austria/race.yml", "\ndate: 2026-06-28", "\ndate: 2026-07-06"), assemble.StartGate},
		{"a result before its race", func(files map[string][]byte) {
			files["src/data/seasons/2026/races/08-austria/race-results.yml"] = files[inMiami+"race-results.yml"]
		}, assemble.EarlyGate},
		{"a time of 900 (2025-04-13)", replacing(t, "src/data/seasons/2026/races/08-austria/race.yml", "time: 13:00", "time: 900"), assemble.UnreadGate},
		{"a season without most of its races (2025-10-18)", func(files map[string][]byte) {
			for name := range maps.Clone(files) {
				if strings.HasPrefix(name, "src/data/seasons/2026/races/1") {
					delete(files, name)
				}
			}
		}, ""},
		{"markup in the reason of a retirement", replacing(t, inMiami+"race-results.yml", "reasonRetired: Accident", `reasonRetired: "<img src=x>"`), assemble.UnreadGate},
		{"a driver's name that turns the writing around", replacing(t, "src/data/drivers/alexander-albon.yml", "name: Alexander Albon", `name: "Alexander \u202eAlbon"`), assemble.UnreadGate},
		{"a driver whom no file describes (2026-03)", replacing(t, inMiami+"race-results.yml", "driverId: alexander-albon", "driverId: alex-albon"), assemble.UnreadGate},
	} {
		t.Run(test.incident, func(t *testing.T) {
			now = now.Add(2 * time.Minute)
			var whole map[string][]byte
			s.host.Edit(codehosttest.Edit{At: now, Change: func(files map[string][]byte) { whole = maps.Clone(files); test.change(files) }})
			report := s.step(t, now)
			switch test.gate {
			case "":
				state, err := ingest.LoadPollState(t.Context(), s.Store, "f1db")
				if fault := report.Faults["f1db"]; err != nil || state.Fault != source.Malformed || fault == nil || state.Reason != fault.Error() {
					t.Errorf("the operator sees %q, %q, %v; want the fault %v", state.Fault, state.Reason, err, fault)
				}
				said[test.incident] = state.Reason
			default:
				i := slices.IndexFunc(report.Held, func(c assemble.Proposal) bool {
					return slices.ContainsFunc(c.Refused, func(r assemble.Refusal) bool { return r.Gate == test.gate })
				})
				if i < 0 {
					t.Fatalf("there wait %+v; want a change refused by %s", report.Held, test.gate)
				}
				said[test.incident] = fmt.Sprint(report.Held[i].Refused)
			}
			if diff := cmp.Diff(before, s.published(t)); diff != "" {
				t.Errorf("readers see something else (-before +now):\n%s", diff)
			}
			// The next commit mends it. After a refused one the source is asked on a slower clock.
			now = now.Add(time.Minute)
			s.host.Edit(codehosttest.Edit{At: now, Change: func(files map[string][]byte) {
				clear(files)
				maps.Copy(files, whole)
			}})
			now = now.Add(time.Minute)
			if report := s.step(t, now); len(report.Faults) > 0 || len(report.Held) > 0 {
				t.Errorf("once it is mended: faults %v, waiting %+v", report.Faults, report.Held)
			}
			if state, err := ingest.LoadPollState(t.Context(), s.Store, "f1db"); err != nil || state.Fault != "" || state.Gate != "" {
				t.Errorf("once it is mended the operator sees %q at gate %q, %v", state.Fault, state.Gate, err)
			}
		})
	}
	golden.Inputs(t, "testdata/wrong_data.golden", said)
}

// TestHarmlessOddities: additions, gaps and repetitions without an effect on results change nothing
// for readers.
func TestHarmlessOddities(t *testing.T) {
	s := inMonaco(t, raceMorning)
	before := s.published(t)
	for i, test := range []struct {
		incident string
		change   func(map[string][]byte)
	}{
		{"four keys that no schema had (2026-07-02)", replacing(t, "src/data/seasons/2026/races/08-austria/race.yml", "round: 8\n", "round: 8\nturnCount: 10\nlapRecord: {time: 1:05.619}\nscheduled: true\nnotes: []\n")},
		{"every pit stop twice (2026-06-29)", func(files map[string][]byte) {
			files[inMiami+"pit-stops.yml"] = append(slices.Clone(files[inMiami+"pit-stops.yml"]), files[inMiami+"pit-stops.yml"]...)
		}},
		{"the time of a retirement without sense (2026-03-06)", func(files map[string][]byte) {
			rows := string(files[inMiami+"race-results.yml"])
			at := strings.LastIndex(rows, "  time:")
			end := at + strings.Index(rows[at:], "\n")
			files[inMiami+"race-results.yml"] = []byte(rows[:at] + "  time: \"+-1:38:49.328\"" + rows[end:])
		}},
		{"no pit stops, no fastest laps (2026-03-08)", func(files map[string][]byte) {
			delete(files, inMiami+"pit-stops.yml")
			delete(files, inMiami+"fastest-laps.yml")
		}},
		{"no grid (2026-03-08)", func(files map[string][]byte) { delete(files, inMiami+"starting-grid-positions.yml") }},
		{"standings that are behind the results (2026-09-13)", replacing(t, "src/data/seasons/2026/races/05-canada/driver-standings.yml", "points: ", "points: 1")},
	} {
		t.Run(test.incident, func(t *testing.T) {
			now := s.now.Add(2 * time.Minute)
			s.host.Edit(codehosttest.Edit{At: now, Change: test.change})
			if report := s.step(t, now); len(report.Faults) > 0 || len(report.Held) > 0 {
				t.Errorf("faults %v, waiting %+v", report.Faults, report.Held)
			}
			after := s.published(t)
			if i == 5 {
				// Points are those of the results: the difference is reported, and not published.
				state, err := ingest.LoadPollState(t.Context(), s.Store, "f1db")
				if err != nil || len(state.Standings) == 0 {
					t.Errorf("nobody is told that the standings differ: %v, %v", state.Standings, err)
				}
				return
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("readers see something else (-before +now):\n%s", diff)
			}
		})
	}
}

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
		var countdown wire.Countdown
		must.Do(t, json.Unmarshal([]byte(s.bodies(t, "next-race")["next-race"]), &countdown))
		round := countdown.Next(now)
		if round == nil {
			t.Fatalf("at %s there is no next race", now)
		}
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
	t.Run("portraits", func(t *testing.T) {
		// Lindblad was in no archive before; of Norris there is none, and nobody knows the other.
		must.Get(settings.Update(t.Context(), s.Store, false, func(settings *settings.Settings) {
			settings.Headshots = &season.Headshots{
				Template: "https://images.example/{year}/{driver}/{code}.png", Drivers: []season.DriverID{"arvid-lindblad", "kimi-antonelli", "nobody-yet"},
			}
		}))(t)
		s.step(t, s.now.Add(time.Minute))
		published := func() map[string]string {
			got := make(map[string]string)
			for _, d := range decoded[[]wire.Driver](t, s.bodies(t, "drivers")["drivers"]) {
				if !strings.HasPrefix(d.HeadshotURL, "/portraits/") { // drawn, for everybody else
					got[d.Driver] = d.HeadshotURL
				}
			}
			return got
		}
		want := map[string]string{"LIN": "https://images.example/2026/arvid-lindblad/LIN.png", "ANT": "https://images.example/2026/kimi-antonelli/ANT.png"}
		must.Equal(t, "published portraits", want, published())
		if report := s.step(t, s.now.Add(time.Minute)); report.Changed {
			t.Error("nothing is new, and the archive changed")
		}
		must.Get(settings.Update(t.Context(), s.Store, false, func(settings *settings.Settings) {
			settings.Headshots = &season.Headshots{}
		}))(t)
		s.step(t, s.now.Add(time.Minute))
		if got := published(); len(got) != 0 {
			t.Errorf("portraits were taken away, and %v are published", got)
		}
	})
	t.Run("a race on a Saturday (2026-09-26)", func(t *testing.T) {
		start := time.Date(2026, 9, 26, 11, 0, 0, 0, time.UTC)
		baku := calendar()["Azerbaijan Grand Prix"]
		if baku.Date != "2026-09-26" || !time.Time(baku.DateStart).Equal(start) {
			t.Errorf("the calendar has %+v, want Saturday at 11:00 UTC", baku)
		}
		for _, w := range decoded[[]wire.Weekend](t, s.bodies(t, "weekends/2026")["weekends/2026"]) {
			if w.SessionKey == baku.SessionKey && (len(w.Sessions) == 0 || !strings.HasPrefix(time.Time(w.Sessions[0].DateStart).Format(time.DateOnly), "2026-09-24")) {
				t.Errorf("its weekend is %+v, want it to begin on Thursday", w)
			}
		}
		if got := next(start); got.Name != "Singapore Grand Prix" {
			t.Errorf("at its lights out the next race is %s", got.Name)
		}
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
		if diff := cmp.Diff(verified, results()); diff != "" {
			t.Errorf("%s later, while the correction waits, published results are (-verified +seen):\n%s", wait, diff)
		}
	}
	s.step(t, morning.Add(5*time.Hour))
	after, order, laps, revisions := seen()
	if want := "12 HUL, 13 COL, 14 PER, 15 RUS, 16 SAI, "; order != want || revisions != 2 || after != pick || laps[3] != 77 {
		t.Errorf("five hours later published are %s with %v laps in %d revisions beside %+v; want %s RUS with 77, in two, beside %+v", order, laps, revisions, after, want, pick)
	}
}

// TestRoundTakenOffAndBack: a round that a source drops is postponed a day and a revision later. It keeps
// its key while others are renumbered, and is scheduled again when the source has it.
func TestRoundTakenOffAndBack(t *testing.T) {
	s := inMonaco(t, raceMorning)
	key, _ := s.Ledger.Fold().Key(2026, "hungary")
	const folder = "src/data/seasons/2026/races/"
	hungary := make(map[string][]byte)
	renumbered := map[string]string{folder + "12-netherlands": folder + "11-netherlands"}
	gone, again := s.now.Add(2*time.Minute), s.now.Add(72*time.Hour)
	s.host.Edit(
		codehosttest.Edit{At: gone, Rename: renumbered, Change: func(files map[string][]byte) {
			for name, content := range maps.Clone(files) {
				if strings.HasPrefix(name, folder+"11-hungary/") {
					hungary[name] = content
					delete(files, name)
				}
			}
			race := folder + "11-netherlands/race.yml"
			files[race] = []byte(strings.Replace(string(files[race]), "round: 12\n", "round: 11\n", 1))
		}},
		codehosttest.Edit{At: s.now.Add(4 * time.Hour), Change: func(files map[string][]byte) { // another revision, still without it
			files["src/data/countries/italy.yml"] = append(slices.Clone(files["src/data/countries/italy.yml"]), '\n')
			delete(files, "src/data/drivers/never.yml")
			name := folder + "11-netherlands/race.yml"
			files[name] = []byte(strings.Replace(string(files[name]), "circuitType", "# later\ncircuitType", 1))
		}},
		codehosttest.Edit{At: again, Change: func(files map[string][]byte) { maps.Copy(files, hungary) }},
	)
	status := func() wire.Status {
		for _, entry := range decoded[[]wire.CalendarEntry](t, s.published(t)["calendar/2026"]) {
			if entry.SessionKey == key {
				return entry.Status
			}
		}
		t.Fatalf("the calendar has no round %d", key)
		return ""
	}
	for _, test := range []struct {
		at   time.Time
		want wire.Status
	}{
		{gone, wire.Scheduled},                     // one revision: it may be a mistake
		{gone.Add(5 * time.Hour), wire.Scheduled},  // two, but for some hours only
		{gone.Add(25 * time.Hour), wire.Postponed}, // a day
		{again.Add(time.Minute), wire.Scheduled},   // it is back
		{again.Add(48 * time.Hour), wire.Scheduled},
	} {
		s.step(t, test.at)
		if got := status(); got != test.want {
			t.Errorf("at %s Hungary is %s, want %s", test.at.Format(time.RFC3339), got, test.want)
		}
	}
	if still, _ := s.Ledger.Fold().Key(2026, "hungary"); still != key {
		t.Errorf("its key was %d and is %d", key, still)
	}
	said, _ := s.Ledger.Fold().Record(key)
	for _, change := range said.Override.Changes {
		if !strings.HasPrefix(change.Actor, "source:f1db@") {
			t.Errorf("%s by %s, want by the source", change.Type, change.Actor)
		}
	}
}

// TestTwoSchedulers: two schedulers on one store poll once, and neither undoes a change of the other.
func TestTwoSchedulers(t *testing.T) {
	s := inMonaco(t, raceMorning)
	other := s.ingest
	two := &ingest.Ingest{Store: other.Store, Facts: other.Facts, Ledger: other.Ledger, Sources: other.Sources, Interval: other.Interval, Log: other.Log}
	race := time.Date(2026, 6, 7, 20, 0, 0, 0, time.UTC)
	requests, _ := s.host.Served()
	s.now = race
	done := make(chan error, 2)
	for _, g := range []*ingest.Ingest{s.ingest, two} {
		go func() {
			_, err := g.Poll(t.Context(), race, false)
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if now, _ := s.host.Served(); now != requests+1 {
		t.Errorf("two schedulers asked %d times, want once", now-requests)
	}
	// The other scheduler applies the document with the next run, and finds it applied.
	for i := range 4 {
		g := []*ingest.Ingest{s.ingest, two}[i%2]
		report := must.Get(g.Poll(t.Context(), race.Add(time.Duration(i+1)*10*time.Second), false))(t)
		if i > 0 && report.Changed {
			t.Errorf("run %d changed the archive again: %v", i, report.Applied)
		}
	}
	facts := must.Get(s.Archives.Load(t.Context()))(t)
	known := facts.Archive.Facts()
	i := slices.IndexFunc(known.Seasons[len(known.Seasons)-1].Rounds, func(r season.Round) bool { return r.GrandPrix == "monaco" })
	if len(known.Seasons[len(known.Seasons)-1].Rounds[i].Results) == 0 {
		t.Error("the result of Monaco was not taken")
	}
	log := must.Get(ingest.LoadFactsLog(t.Context(), s.ingest.Store))(t)
	seen := make(map[string]bool)
	for _, e := range log.Entries {
		if seen[e.Archive] {
			t.Errorf("archive %.12s was taken into use twice", e.Archive)
		}
		seen[e.Archive] = true
	}
}

// TestIdlePollsCostNothing: a poll without news is one conditional request, without an archive, an
// assembly or a version. A change that waits for the clock is judged again in time.
func TestIdlePollsCostNothing(t *testing.T) {
	s := inMonaco(t, raceMorning)
	s.step(t, s.now.Add(time.Minute))
	requests, archives := s.host.Served()
	assembled := s.ingest.Assembled()
	const polls = 10
	for range polls {
		s.step(t, s.now.Add(time.Minute))
	}
	nowRequests, nowArchives := s.host.Served()
	if nowRequests-requests != polls || nowArchives != archives || s.ingest.Assembled() != assembled {
		t.Errorf("%d idle polls sent %d requests, took %d archives and assembled %d times; want %d, 0 and 0",
			polls, nowRequests-requests, nowArchives-archives, s.ingest.Assembled()-assembled, polls)
	}

	// The result of a race that is to start in seven hours, as far as anybody here knows.
	monaco := "src/data/seasons/2026/races/06-monaco/race-results.yml"
	s.host.Edit(codehosttest.Edit{At: s.now.Add(time.Second), Change: func(files map[string][]byte) {
		files[monaco] = files["src/data/seasons/2026/races/05-canada/race-results.yml"]
	}})
	if report := s.step(t, s.now.Add(time.Minute)); len(report.Held) != 1 || report.Held[0].Refused[0].Gate != assemble.EarlyGate {
		t.Fatalf("there wait %+v, want the result of a race that has not begun", report.Held)
	}
	if report := s.step(t, time.Date(2026, 6, 7, 13, 0, 30, 0, time.UTC)); len(report.Held) != 0 || len(report.Applied) != 1 {
		t.Errorf("after lights out there wait %+v and %d changes are taken, want none and one", report.Held, len(report.Applied))
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
	if stood := <-asked; stood.Contested || stood.Since.IsZero() {
		t.Errorf("the result of Canada stood %+v, want since when and uncontested", stood)
	}
	if stood := <-asked; !stood.Contested {
		t.Errorf("in an archive that no run has seen the result of Canada stood %+v, want contested", stood)
	}
}

// TestStartWithoutASource: the service starts although the source refuses, and the first good answer
// brings all facts.
func TestStartWithoutASource(t *testing.T) {
	if testing.Short() {
		t.Skip("reads commits of a season")
	}
	s := newService(t, raceMorning)
	s.host.Misbehave(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "forbidden", http.StatusForbidden)
		return true
	})
	if report := s.step(t, raceMorning); report.Faults["f1db"] == nil {
		t.Error("the source refuses, and nobody is told")
	}
	version := s.version(t)
	if body, ok := version.Body("standings/drivers/2025"); !ok || !strings.Contains(string(body.Identity), `"driver":"NOR"`) {
		t.Error("the season that the store has is not published")
	}
	if _, ok := version.Body("calendar/2026"); ok {
		t.Error("a season of which nothing is known is published")
	}
	s.host.Misbehave(nil)
	state := must.Get(ingest.LoadPollState(t.Context(), s.Store, "f1db"))(t)
	if report := s.step(t, state.Next); len(report.Faults) > 0 {
		t.Errorf("once it answers: %v", report.Faults)
	}
	if calendar := s.published(t)["calendar/2026"]; !strings.Contains(calendar, "Monaco") {
		t.Errorf("once it answers the calendar is %.200s", calendar)
	}
}
