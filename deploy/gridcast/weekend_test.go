package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/deploy/servers"
	"gridcast/deploy/terminal"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
	"gridcast/snapshots/clock"
)

// house is a scheduler and two edges on one store, each a process of its own, on one race clock.
type house struct {
	dir, store, key string
	schedulerArgs   []string

	scheduler *process
	token     string
	edges     []*client
	processes []*process // of edges
}

func startHouse(t testing.TB, race clock.Clock, schedulerArgs ...string) *house {
	t.Helper()
	return startHouseOpened(t, race, race.Now(), schedulerArgs...)
}

// startHouseOpened is startHouse with a ledger that was opened earlier: the results since then
// are for operators to verify.
func startHouseOpened(t testing.TB, race clock.Clock, opened time.Time, schedulerArgs ...string) *house {
	t.Helper()
	return startHouseIn(t, "dir:store", seasons(t, 2023, 2024), race, opened, schedulerArgs...)
}

// startHouseIn is startHouseOpened on a store and an archive of the caller's.
func startHouseIn(t testing.TB, store, archive string, race clock.Clock, opened time.Time, schedulerArgs ...string) *house {
	t.Helper()
	h := newHouse(t, store, archive, opened, schedulerArgs...)
	h.run(t, race)
	return h
}

// newHouse makes the store of an archive, and a key. Nothing runs yet.
func newHouse(t testing.TB, store, archive string, opened time.Time, schedulerArgs ...string) *house {
	t.Helper()
	dir := t.TempDir()
	gridcast(t, dir, "build", "--store", store, "--now", opened.Format(time.RFC3339), "--model", "grid-frequency", "--archive", archive)
	return &house{dir: dir, store: store, key: newKey(t, dir, store, "pro"), schedulerArgs: schedulerArgs}
}

// run starts the processes on a race clock, in place of those that run on another one.
func (h *house) run(t testing.TB, race clock.Clock) {
	t.Helper()
	if h.scheduler != nil {
		for _, p := range append(h.processes, h.scheduler) {
			p.end(t)
		}
	}
	common := []string{"--store", h.store, "--race-clock", race.String()}
	admin := []string{porttest.Address(t), porttest.Address(t)}
	h.scheduler = startScheduler(t, h.dir, append(append(common, "--edges", strings.Join(admin, ",")), h.schedulerArgs...)...)
	h.edges, h.processes = nil, nil
	for _, address := range admin {
		edge := startServer(t, h.dir, append([]string{"edge", "--admin-listen", address}, common...)...)
		h.edges, h.processes = append(h.edges, newClient(edge.url, h.key)), append(h.processes, edge)
	}
	token := must.Get(os.ReadFile(filepath.Join(h.dir, "token")))(t)
	h.token = strings.TrimSpace(string(token))
}

// await waits until the condition holds at every edge.
func (h *house) await(t testing.TB, what string, condition func(c *client) bool) {
	t.Helper()
	began := time.Now()
	for i, edge := range h.edges {
		must.Until(t, fmt.Sprintf("edge %d: %s", i+1, what), func() bool { return condition(edge) })
	}
	t.Logf("after %5.1f s: %s", time.Since(began).Seconds(), what)
}

// entry is the calendar's row of a session.
func entry(t testing.TB, c *client, session int64) wire.CalendarEntry {
	t.Helper()
	rows := data[[]wire.CalendarEntry](t, c.get(t, "/calendar"))
	i := slices.IndexFunc(rows, func(e wire.CalendarEntry) bool { return e.SessionKey == session })
	must.Require(t, i >= 0, "no session %d in the calendar", session)
	return rows[i]
}

// replayedWeekend returns the weekend of the demo.
func replayedWeekend(t testing.TB) servers.Weekend {
	t.Helper()
	binary(t) // built before the race clock runs
	a := archivetest.Embedded(t)
	return must.Get(servers.DemoWeekend(a))(t)
}

// raceClock is one that has just begun.
func raceClock(t testing.TB, from time.Time, speed float64) clock.Clock {
	t.Helper()
	return must.Get(clock.At(from, time.Now(), speed))(t)
}

// TestWeekend lives through a race weekend with the real binaries: from before qualifying until
// both edges serve the result that an operator has verified in the console. The hours between the
// pick and lights out are left out, and so are most of the race: the processes are told to end, and started again
// with a later race clock, slow enough for a busy machine to see every state.
func TestWeekend(t *testing.T) {
	t.Parallel() // most of it waits
	must.Long(t, "a weekend takes a minute")
	const session = 2024022 // Las Vegas
	w := replayedWeekend(t)
	race := raceClock(t, w.Round.GridKnownAt().Add(-40*time.Minute), 200) // 12 s, for three processes to start
	h := startHouse(t, race)
	nextRace := func(c *client) wire.NextRace { return data[wire.NextRace](t, c.get(t, "/next-race")) }

	next := nextRace(h.edges[0])
	if now := race.Now(); now.Before(w.Round.GridKnownAt()) {
		if next.Name != w.Round.Name || next.Prediction != nil {
			t.Errorf("before qualifying: got %+v, want %s without a pick", next, w.Round.Name)
		}
	} else {
		t.Logf("the processes took until %s to start: what is before qualifying was not looked at", now)
	}
	h.await(t, "qualifying has ended, the pick is frozen", func(c *client) bool { return nextRace(c).Prediction != nil })
	pick := *nextRace(h.edges[0]).Prediction
	h.run(t, raceClock(t, w.Round.StartsAt().Add(-2*time.Minute), 20)) // live for twelve minutes of real time
	h.await(t, "lights out, the round is live", func(c *client) bool { return entry(t, c, session).Status == wire.Live })
	if next = nextRace(h.edges[0]); next.Name == w.Round.Name || next.Prediction != nil {
		t.Errorf("after lights out: got %+v, want the next round without a pick", next)
	}
	h.run(t, raceClock(t, w.Round.StartsAt().Add(4*time.Hour-2*time.Minute), 60))
	h.await(t, "the race is over, its result is awaited", func(c *client) bool { return entry(t, c, session).Status == wire.AwaitingResult })
	before := data[[]wire.DriverStanding](t, h.edges[0].get(t, "/standings"))
	record := func(c *client) wire.PredictionRecord {
		rows := data[[]wire.PredictionRecord](t, c.get(t, "/predictions?session_key=2024022"))
		must.Require(t, len(rows) == 1, "got %d prediction records of session %d, want 1", len(rows), session)
		return rows[0]
	}
	if r := record(h.edges[0]); r.Result != nil || r.Prediction != pick {
		t.Errorf("before the verification: got %+v, want the frozen pick %+v and no result", r, pick)
	}

	verified := false
	t.Run("verify in the browser", func(t *testing.T) {
		b := browsertest.Open(t)
		h.verifyInBrowser(b)
		verified = true
	})
	if !verified && !t.Failed() {
		if _, err := browsertest.Path(); err == nil {
			t.Fatal("the browser did not verify the result")
		}
		t.Log("no chromium: the result is verified by requests instead")
		if run := h.verify(t, session); run.Last.Phase != console.Done {
			t.Fatalf("verify: got %+v", run.Last)
		}
	}

	winner := w.Round.Winner()
	for i, c := range h.edges {
		r := record(c)
		if r.Result == nil || r.WinnerHit == nil || *r.WinnerHit != (r.Result.Winner == pick.Winner) || r.Prediction != pick {
			t.Fatalf("edge %d: got %+v, want the result beside the pick that was frozen", i+1, r)
		}
		if e := entry(t, c, session); e.Status != wire.Finished || e.Winner != r.Result.Winner {
			t.Errorf("edge %d: got %+v, want it finished and won by %s", i+1, e, r.Result.Winner)
		}
		after := data[[]wire.DriverStanding](t, c.get(t, "/standings"))
		if got := points(after, r.Result.Winner) - points(before, r.Result.Winner); got != winner.Points {
			t.Errorf("edge %d: the winner's points grew by %v, want %v", i+1, got, winner.Points)
		}
		if accuracy := data[wire.Accuracy](t, c.get(t, "/accuracy")); accuracy.RacesEvaluated != 1 {
			t.Errorf("edge %d: %d races evaluated, want 1", i+1, accuracy.RacesEvaluated)
		}
	}
	dir := h.scheduler.cmd.Dir
	gridcast(t, dir, "ledger", "audit", "--store", "dir:store")
	must.Until(t, "the title odds count the verified race", func() bool {
		odds := h.edges[0].do(t, http.MethodGet, "/api/v1/title-odds", nil) // the builder derives the first odds beside other builds
		return odds.status == http.StatusOK && data[wire.TitleOdds](t, odds).RacesCounted == w.Round.Number
	})
	h.rebuildByCommand(t, dir)
}

// rebuildByCommand asks the scheduler from the command line: there is nothing new to build.
func (h *house) rebuildByCommand(t *testing.T, dir string) {
	t.Helper()
	rebuild := []string{
		"rebuild", "--wait", "--store", "dir:store", "--operator-token-file", "token", "--reason", "by hand", "--by", "anna",
		"--operator-listen", strings.TrimPrefix(h.scheduler.url, "http://"),
	}
	var result console.Result
	must.Do(t, json.Unmarshal([]byte(gridcast(t, dir, append(rebuild, "--json")...)), &result))
	if !result.Unchanged || len(result.Edges) != len(h.edges) || slices.ContainsFunc(result.Edges, func(e console.EdgeResult) bool { return e.Problem != "" }) {
		t.Errorf("rebuild: got %+v, want nothing changed and every edge asked", result)
	}
	gridcast(t, dir, rebuild...)
	must.Show(t, "the console's audit log", h.ask(t, http.MethodGet, "/", nil), "by hand")
}

func points(rows []wire.DriverStanding, driver string) float64 {
	for _, r := range rows {
		if r.Driver == driver {
			return r.Points
		}
	}
	return 0
}

// verifyInBrowser signs in, verifies the one result that waits, and looks at the progress.
func (h *house) verifyInBrowser(b *browsertest.Browser) {
	b.Do(
		chromedp.Navigate(h.scheduler.url), chromedp.WaitVisible(chromedp.CSS(`input[name=token]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "anna"), chromedp.SendKeys(chromedp.CSS(`input[name=token]`), h.token),
		chromedp.Submit(chromedp.CSS(`input[name=token]`)), chromedp.WaitVisible(chromedp.CSS(`#waiting form button`)),
	)
	b.Picture("waiting")
	b.Do(
		browsertest.Press(chromedp.CSS(`#waiting form button`)), chromedp.WaitVisible(chromedp.CSS(`#ask[open]`)),
		browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)),
		chromedp.WaitVisible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)),
	)
	b.Await(`document.getElementById("run").dataset.state`, "done")
	b.Await(`document.querySelectorAll("#run-edges .good").length`, strconv.Itoa(len(h.edges)))
	b.Picture("served")
}

// startedRun is a run of the operator's port that has ended.
type startedRun struct{ Last console.Event }

// verify verifies the result of a session by requests, and waits until the edges serve it.
func (h *house) verify(t testing.TB, session int64) startedRun {
	t.Helper()
	return h.post(t, session, h.form(t, session))
}

// form holds the fields that the console's button sends to verify the result of a session.
func (h *house) form(t testing.TB, session int64) url.Values {
	t.Helper()
	_, form, found := strings.Cut(h.ask(t, http.MethodGet, "/", nil), verifyPath(session))
	_, after, _ := strings.Cut(form, `name="seen" value="`)
	seen, _, _ := strings.Cut(after, `"`)
	must.Require(t, found && seen != "", "the console does not offer to verify the result of %d", session)
	return url.Values{"seen": {seen}, "confirm": {"yes"}}
}

func verifyPath(session int64) string { return "/results/" + terminal.Number(session) + "/verify" }

// post sends the form and waits until the run has ended.
func (h *house) post(t testing.TB, session int64, form url.Values) startedRun {
	t.Helper()
	var run struct{ ID string }
	must.Do(t, json.Unmarshal([]byte(h.ask(t, http.MethodPost, verifyPath(session), form)), &run))
	c := console.Client{Address: strings.TrimPrefix(h.scheduler.url, "http://"), Token: h.token, Operator: "anna"}
	last, err := c.Follow(t.Context(), run.ID, func(console.Event) {})
	must.Do(t, err)
	return startedRun{last}
}

// ask asks the operator's port and returns the body of the answer, which must be good.
func (h *house) ask(t testing.TB, method, path string, form url.Values) string {
	t.Helper()
	request := must.Get(http.NewRequestWithContext(t.Context(), method, h.scheduler.url+path, strings.NewReader(form.Encode())))(t)
	request.Header = http.Header{
		"Authorization": {"Bearer " + h.token}, "X-Operator": {"anna"}, "Content-Type": {"application/x-www-form-urlencoded"},
	}
	response := must.Get(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: got %s, %v: %s", method, path, response.Status, err, body)
	}
	return string(body)
}

var verifyStore = flag.String("verify-store", "s3", "the store of that measurement: dir or s3")

var verifyRuns = flag.Int("verify-runs", 0, "measure so many times how long a verified result takes to be served")

// TestVerifyToServed measures the time from the request that verifies a result until the API
// of both edges answers with it. It asks the API, and does not rely on the status of an edge.
func TestVerifyToServed(t *testing.T) {
	if *verifyRuns == 0 {
		t.Skip("a measurement: give -verify-runs 50")
	}
	a := archivetest.Embedded(t)
	// The service was down for the last seasons of the archive: their results all wait.
	seasons := a.Facts().Seasons
	opened := seasons[len(seasons)-3].Rounds[0].StartsAt().AddDate(0, 0, -1)
	last := seasons[len(seasons)-1].Rounds
	after := last[len(last)-1].ResultKnownAt().AddDate(0, 0, 1)
	race := must.Get(clock.At(after, time.Now(), 1))(t)
	store := "dir:store"
	if *verifyStore == "s3" {
		store = onServer(t, s3test.Versity(t)).name
	}
	h := startHouseIn(t, store, archiveFile(t, archivetest.Seasons(t, 2023, 2024)), race, opened)

	var took []time.Duration
	for _, year := range seasons[len(seasons)-3:] {
		for _, r := range year.Rounds {
			if len(took) == *verifyRuns {
				break
			}
			took = append(took, h.timeVerify(t, year.Year, int64(year.Year)*1000+int64(r.Number)))
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(len(took)-1, int(share*float64(len(took))))].Round(time.Millisecond)
	}
	t.Logf("verify pressed to served by both edges, %d runs: median %s, p99 %s, fastest %s, slowest %s", len(took), at(0.5), at(0.99), at(0), at(1))
}

// timeVerify verifies a result and returns the time until both edges serve it. It waits until everything
// after the earlier result is published, because no operator verifies two results within a second.
func (h *house) timeVerify(t *testing.T, year int, session int64) time.Duration {
	t.Helper()
	for before := int64(0); before != statusOf(t, h.edges[0].url).Version; {
		before = statusOf(t, h.edges[0].url).Version
		time.Sleep(2 * time.Second) // real processes: there is no clock to inject
	}
	form := h.form(t, session)
	began := time.Now()
	type version struct {
		number int64
		after  time.Duration
	}
	versions := make([][]version, len(h.edges)) // that an edge served, in order
	pressed := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range h.edges {
		wg.Go(func() {
			for over := false; !over; {
				select {
				case <-pressed:
					over = true // after one more look
				case <-time.After(2 * time.Millisecond):
				}
				versions[i] = append(versions[i], version{statusOf(t, c.url).Version, time.Since(began)})
			}
		})
	}
	run := h.post(t, session, form) // until both edges say that they serve it
	close(pressed)
	wg.Wait()
	must.Require(t, run.Last.Phase == console.Done, "verify %d: got %+v", session, run.Last)
	last := time.Duration(0)
	for i, c := range h.edges {
		served := slices.IndexFunc(versions[i], func(v version) bool { return v.number >= run.Last.Result.Version })
		if served < 0 {
			t.Fatalf("edge %d serves version %d, the result of %d is in %d", i+1, versions[i][len(versions[i])-1].number, session, run.Last.Result.Version)
		}
		last = max(last, versions[i][served].after)
		rows := data[[]wire.CalendarEntry](t, c.get(t, "/calendar?year="+terminal.Number(int64(year))))
		if !slices.ContainsFunc(rows, func(e wire.CalendarEntry) bool { return e.SessionKey == session && e.Status == wire.Finished }) {
			t.Fatalf("edge %d does not serve the result of %d", i+1, session)
		}
	}
	return last
}
