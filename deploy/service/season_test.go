package service_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/proof"
	"gridcast/builder/season"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/service"
	"gridcast/deploy/terminal"
	"gridcast/scheduler"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// raceTime is a clock set by a test.
type raceTime struct{ at atomic.Pointer[time.Time] }

func (c *raceTime) Now() time.Time   { return *c.at.Load() }
func (c *raceTime) Speed() float64   { return 1 }
func (c *raceTime) set(at time.Time) { at = at.UTC(); c.at.Store(&at) }

// pass sets the clock to just after an instant. At the very instant of an interval gocron may run its job again and again,
// until the clock goes on, and this clock stands still.
func (c *raceTime) pass(at time.Time) { c.set(at.Add(time.Nanosecond)) }

// unattended is the whole service without an operator, on a store in memory and a code host of its own. Its race
// clock jumps from one due instant to the next. Timers run on the fake clock of a synctest bubble, so
// nothing waits.
type unattended struct {
	*raceTime
	host    *codehosttest.Host
	store   *memblob.Store
	ledger  *ledger.Ledger
	facts   *archive.Store
	sources *ingest.Ingest
	service *service.Service
	wake    []time.Time     // when held news may be applied
	faults  map[string]bool // of jobs
	last    *snapshots.Version
	metrics *prometheus.Registry
}

// The policy of a service without an operator.
const (
	verifyAfter = 2 * time.Hour
	reviseAfter = 2 * time.Hour
)

// part names seasons of a release.
type part struct {
	file     string
	from, to int
}

// imported holds the parts of releases that the tests began with. They never change.
var imported = map[part]archive.Stored{}

// release returns the seasons of a release from one year to another as an archive.
func release(t *testing.T, file string, from, to int) archive.Stored {
	t.Helper()
	p := part{file, from, to}
	if _, ok := imported[p]; !ok {
		base, _ := must.Get2(f1db.Import(sourcetest.Path(t, file), f1db.Options{From: from, To: to}))(t)
		imported[p] = archivetest.Stored(t, base.Facts())
	}
	return imported[p]
}

// newsFrom returns F1DB's repository with its history on loopback, and the clock by which it is served.
func newsFrom(t *testing.T, begin time.Time) (*codehosttest.Host, *raceTime) {
	t.Helper()
	clock := &raceTime{}
	clock.set(begin)
	return codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), clock.Now), clock
}

// begin starts the service in a bubble, with an archive. derived says whether it also makes title odds and track
// record.
func begin(t *testing.T, host *codehosttest.Host, clock *raceTime, base archive.Stored, derived bool) *unattended {
	t.Helper()
	u := &unattended{raceTime: clock, host: host, faults: make(map[string]bool), metrics: prometheus.NewRegistry()}
	store := memblob.New()
	s := testseason.New(t, testseason.Config{
		Stored: base, Opened: clock.Now(), Store: store,
		Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: verifyAfter, AutoReviseAfter: reviseAfter},
	})
	u.store, u.facts, u.ledger = store, s.Archives, s.Ledger
	upstream := must.Get(f1db.NewRepository(host.URL, "gridcast-test (operator@example.org)", media.Default()))(t)
	if os.Getenv("GRIDCAST_SEASONS") == "log" {
		s.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	u.sources = &ingest.Ingest{
		Store: store, Facts: u.facts, Ledger: u.ledger, Log: s.Log,
		Sources:  []ingest.Source{{Upstream: upstream}},
		Interval: func(time.Time) time.Duration { return 50 * time.Second },
	}
	u.service = service.New(s.Builder, clock, s.Log, u.metrics)
	u.service.Ingest(u.sources)
	if derived {
		s.TitleRuns = 0 // published odds, because the reproducer makes those again
	} else {
		u.service.WithoutDerived()
	}
	must.Do(t, u.service.Start(t.Context(), nil))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		must.Succeed(t, "the service ended with", u.service.Run(ctx))
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	u.settle(t)
	return u
}

// settle waits until every job has finished its due work, and records failures.
func (u *unattended) settle(t *testing.T) {
	t.Helper()
	idle := func(job *scheduler.JobStatus) bool { return !job.Running && !job.Pending }
	for quiet := 0; quiet < 2; {
		must.Advance(1100 * time.Millisecond) // until the schedule has looked at the clock
		quiet++
		for _, job := range u.service.Jobs() {
			if !idle(&job) {
				quiet = 0
			}
			if job.LastError != "" {
				u.faults[job.Name+": "+job.LastError] = true
			}
		}
	}
}

// step moves the clock to the next due instant before end and runs the work; false if there is none. Polls
// are due more often than news arrives. Of polls, step takes the last before a commit, the first after it,
// and those at which held news may be applied.
func (u *unattended) step(t *testing.T, end time.Time) bool {
	t.Helper()
	now, next := u.Now(), end
	due := func(at time.Time) {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	var poll time.Time
	for _, job := range u.service.Jobs() {
		switch job.Name {
		case "poll":
			poll = job.Next
		case "freeze", "build":
			due(job.Next)
		}
	}
	for _, commit := range u.host.Instants() {
		if !commit.After(now) {
			continue
		}
		if before := commit.Truncate(time.Minute); before.After(now) {
			due(before)
		} else {
			due(poll)
		}
		break
	}
	u.wake = slices.DeleteFunc(u.wake, func(at time.Time) bool { return !at.After(now) })
	for _, at := range u.wake {
		due(at)
	}
	if !next.After(now) || next.Equal(end) && now.Equal(end) {
		return false
	}
	before := must.Get(u.facts.Load(t.Context()))(t)
	u.pass(next)
	u.settle(t)
	after := must.Get(u.facts.Load(t.Context()))(t)
	if after.SHA256 != before.SHA256 {
		u.wake = append(u.wake, next.Add(verifyAfter), next.Add(25*time.Hour))
	}
	return true
}

// version is the published one. Of the one before it the bodies that have not changed are used again.
func (u *unattended) version(t *testing.T) *snapshots.Version {
	t.Helper()
	version := must.Get(snapshots.Open(t.Context(), u.store, u.last))(t)
	u.last = version
	return version
}

// published returns the data of a variant as readers get it.
func published[T any](t *testing.T, u *unattended, path string) T {
	t.Helper()
	version := u.version(t)
	body, ok := version.Body(path)
	if !ok {
		t.Fatalf("at %s version %d has no %s", u.Now().Format(time.RFC3339), version.Pointer.Version, path)
	}
	var envelope struct {
		Data T `json:"data"`
	}
	if err := json.Unmarshal(body.Identity, &envelope); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return envelope.Data
}

// entryOf returns the row of a Grand Prix in a published calendar.
func (u *unattended) entryOf(t *testing.T, year int, gp season.GrandPrixID) wire.CalendarEntry {
	t.Helper()
	key, ok := u.ledger.Fold().Key(year, gp)
	must.Require(t, ok, "%d %s has no session key", year, gp)
	entries := published[[]wire.CalendarEntry](t, u, fmt.Sprintf("calendar/%d", year))
	i := slices.IndexFunc(entries, func(e wire.CalendarEntry) bool { return e.SessionKey == key })
	must.Require(t, i >= 0, "the calendar of %d has no round %d", year, key)
	return entries[i]
}

// TestSeason2026 runs without an operator through the recorded races of 2026, and through a further fortnight with invented
// commits. TestWinter has the months before.
func TestSeason2026(t *testing.T) {
	must.Long(t, "runs half a season")
	host, clock := newsFrom(t, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	base := release(t, sourcetest.F1DB2026, 2025, 2025)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, false)
		before := u.sizes(t)
		liveThrough(t, u)
		u.wantGrowth(t, before)
		u.reproduce(t)
	})
}

// reproduce makes the published versions again from the store: all of them, or every twentieth in make test.
func (u *unattended) reproduce(t *testing.T) {
	t.Helper()
	r := must.Get(proof.NewReproducer(t.Context(), u.store))(t)
	h := must.Get(snapshots.LoadHistory(t.Context(), u.store))(t)
	made, documents := 0, 0
	for i, version := range h.Versions {
		if i%20 > 0 && os.Getenv("GRIDCAST_SEASONS") == "" {
			continue
		}
		again := must.Get(r.Version(t.Context(), version))(t)
		must.Hold(t, again.FirstDifference == nil && again.Equal == again.Documents, "version %d: %d of %d documents are equal; %+v", version, again.Equal, again.Documents, again.FirstDifference)
		made, documents = made+1, documents+again.Documents
	}
	t.Logf("%d of %d versions were made again, %d documents", made, len(h.Versions), documents)
}

// TestSeasons2025And2026 does the same from the end of 2024: the 31 rounds of both years.
func TestSeasons2025And2026(t *testing.T) {
	if os.Getenv("GRIDCAST_SEASONS") == "" {
		t.Skip("runs a season and a half, some minutes; make season does")
	}
	host, clock := newsFrom(t, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	base := release(t, sourcetest.F1DB2024, 2016, 2024)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, true)
		liveThrough(t, u)
		u.cadence(t)
		u.reproduce(t)
	})
}

// Real events of 2026, and invented ones.
var (
	miamiMoved  = time.Date(2026, 5, 3, 8, 49, 2, 0, time.UTC) // three hours earlier, on the day itself
	miamiStart  = time.Date(2026, 5, 3, 17, 0, 0, 0, time.UTC)
	vegasStart  = time.Date(2025, 11, 23, 4, 0, 0, 0, time.UTC)
	lastWord    = time.Date(2026, 6, 14, 23, 0, 0, 0, time.UTC) // F1DB's history ends
	firstAppeal = time.Date(2026, 6, 18, 9, 30, 10, 0, time.UTC)
	lastAppeal  = time.Date(2026, 6, 22, 9, 30, 10, 0, time.UTC)
	bahrainBack = time.Date(2026, 6, 24, 9, 30, 10, 0, time.UTC)
	theEnd      = time.Date(2026, 6, 26, 12, 0, 0, 0, time.UTC)
)

const races2026 = "src/data/seasons/2026/races/"

// appealed swaps the third and the fourth of Monaco, as a decision of the stewards would.
func appealed(t *testing.T) func(map[string][]byte) {
	const (
		name   = races2026 + "06-monaco/race-results.yml"
		gasly  = "driverNumber: 10\n  driverId: pierre-gasly\n  constructorId: alpine\n  engineManufacturerId: mercedes\n"
		hadjar = "driverNumber: 6\n  driverId: isack-hadjar\n  constructorId: red-bull\n  engineManufacturerId: red-bull-ford\n"
	)
	return func(files map[string][]byte) {
		content := string(files[name])
		must.Show(t, name, content, gasly, hadjar)
		rows := strings.Split(content, "\n- ")
		at := func(driver string) int {
			return slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, driver) })
		}
		one, other := at(gasly), at(hadjar)
		rows[one], rows[other] = strings.Replace(rows[one], gasly, hadjar, 1), strings.Replace(rows[other], hadjar, gasly, 1)
		// What belongs to a driver's weekend goes along.
		for _, key := range []string{"gridPosition", "gridPositionNumber", "gridPositionText", "qualificationPositionNumber", "qualificationPositionText", "pitStops"} {
			field := regexp.MustCompile(`(?m)^  ` + key + `: .*$`)
			first, second := field.FindString(rows[one]), field.FindString(rows[other])
			rows[one], rows[other] = field.ReplaceAllLiteralString(rows[one], second), field.ReplaceAllLiteralString(rows[other], first)
		}
		files[name] = []byte(strings.Join(rows, "\n- "))
	}
}

// bahrainInOctober moves the Grand Prix cancelled in March to another circuit as round 16, and renumbers the
// later rounds.
func bahrainInOctober(files map[string][]byte) {
	for n := 22; n >= 16; n-- {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			rest, ok := strings.CutPrefix(name, fmt.Sprintf("%s%d-", races2026, n))
			if !ok {
				continue
			}
			content := files[name]
			delete(files, name)
			content = bytes.Replace(content, fmt.Appendf(nil, "round: %d\n", n), fmt.Appendf(nil, "round: %d\n", n+1), 1)
			files[fmt.Sprintf("%s%d-%s", races2026, n+1, rest)] = content
		}
	}
	files[races2026+"16-bahrain/race.yml"] = []byte(`id: 1999
round: 16
date: 2026-10-04
time: 07:00
grandPrixId: bahrain
officialName: Formula 1 Gulf Air Bahrain Grand Prix 2026
qualifyingFormat: KNOCKOUT
circuitId: sepang
circuitType: RACE
courseLength: 5.543
laps: 56
qualifyingDate: 2026-10-03
qualifyingTime: 08:00
`)
}

// liveThrough runs the service to the end of the recorded history and checks the published versions.
func liveThrough(t *testing.T, u *unattended) {
	first := u.Now().Year()
	u.host.Edit(
		codehosttest.Edit{At: firstAppeal, Change: appealed(t)},
		codehosttest.Edit{At: lastAppeal, Change: appealed(t)}, // reverts the first edit
		codehosttest.Edit{At: bahrainBack, Change: bahrainInOctober},
	)
	keys := make(map[int64]string) // session keys to names of rounds
	vegasBelieved, offBahrain, miamiRight := false, false, time.Time{}
	var miamiPick wire.Prediction
	miamiLive := false
	// The appeals leave the source's standings as they were, so that the rule waits twice as long.
	u.wake = append(u.wake, firstAppeal.Add(5*time.Hour))
	for u.step(t, theEnd) {
		now := u.Now().Truncate(time.Second)
		for year := first; year <= now.Year(); year++ {
			for _, e := range published[[]wire.CalendarEntry](t, u, fmt.Sprintf("calendar/%d", year)) {
				if was, ok := keys[e.SessionKey]; ok && was != e.GPName {
					t.Errorf("at %s session %d is the %s, it was the %s", now.Format(time.RFC3339), e.SessionKey, e.GPName, was)
				}
				keys[e.SessionKey] = e.GPName
			}
		}
		if first == 2025 && now.After(vegasStart.AddDate(0, 0, -14)) && !time.Time(u.entryOf(t, 2025, "las-vegas").DateStart).Equal(vegasStart) {
			vegasBelieved = true
		}
		if miamiRight.IsZero() && now.Year() == 2026 && time.Time(u.entryOf(t, 2026, "miami").DateStart).Equal(miamiStart) {
			miamiRight = u.Now()
		}
		if now.Before(miamiMoved) && now.After(miamiMoved.Add(-12*time.Hour)) {
			if next, _ := u.nextRace(t); next.Name == "Miami Grand Prix" && next.Prediction != nil {
				miamiPick = *next.Prediction
			}
		}
		if now.Equal(miamiStart) {
			miamiLive = u.entryOf(t, 2026, "miami").Status == wire.Live
		}
		if now.Year() == 2026 && u.entryOf(t, 2026, "bahrain").Status == wire.Postponed {
			offBahrain = true
		}
		if now.Equal(firstAppeal.Add(5 * time.Hour)) {
			u.lookAtAppeal(t)
		}
	}
	for fault := range u.faults {
		t.Errorf("a job failed: %s", fault)
	}
	must.Hold(t, !vegasBelieved, "Las Vegas 2025 was believed to be held a day early")
	if late := miamiRight.Sub(miamiMoved); late < 0 || late > 5*time.Minute {
		t.Errorf("the start of Miami 2026 was right %s after the source had it, want within the five minutes between polls", late)
	}
	must.Hold(t, miamiLive, "Miami 2026 was not live at its earlier start")
	u.lookAtMiami(t, miamiPick)
	must.Hold(t, offBahrain, "Bahrain 2026 was never postponed, though the source had deleted it")
	if back := u.entryOf(t, 2026, "bahrain"); back.SessionKey != 2026004 || back.Status != wire.Scheduled || back.Country != "Malaysia" ||
		!time.Time(back.DateStart).Equal(time.Date(2026, 10, 4, 7, 0, 0, 0, time.UTC)) {
		t.Errorf("Bahrain is back as %+v, want scheduled in October in Malaysia under its old key", back)
	}
	if e := u.entryOf(t, 2026, "saudi-arabia"); e.Status != wire.Postponed {
		t.Errorf("Saudi Arabia is %s, want postponed", e.Status)
	}
	key, _ := u.ledger.Fold().Key(2026, "monaco")
	if monaco, _ := u.ledger.Fold().Record(key); len(monaco.Revisions) != 4 {
		t.Errorf("Monaco 2026 has %d revisions, want the first, the correction that happened, and two appeals", len(monaco.Revisions))
	}
	for year := first; year <= 2026; year++ {
		u.sameStandings(t, year)
	}
	if requests, archives := u.host.Served(); archives > len(u.host.Instants()) {
		t.Errorf("%d requests took %d archives for %d commits", requests, archives, len(u.host.Instants()))
	}
	basis := u.report(t, first)
	if want := map[int]map[ledger.Basis]int{
		2025: {ledger.OnQualifying: 19, ledger.OnForm: 12},
		2026: {ledger.OnQualifying: 7},
	}[first]; !maps.Equal(basis, want) {
		t.Errorf("the picks rest on %v, want %v", basis, want)
	}
	log := must.Get(ingest.LoadFactsLog(t.Context(), u.store))(t)
	if origin, ok := log.Origin(2026, "miami", assemble.Start); !ok || origin.Source != "f1db" || !origin.At.Equal(miamiRight) {
		t.Errorf("by the facts log the start of Miami came from %+v, want f1db at %s", origin, miamiRight)
	}
}

// lookAtMiami checks a round whose start moved by three hours on race day: the pick from before stays. The penalties of the
// next morning came with positions that contradict the points. They count since the source has both right, two days later.
func (u *unattended) lookAtMiami(t *testing.T, pick wire.Prediction) {
	t.Helper()
	key, _ := u.ledger.Fold().Key(2026, "miami")
	u.checkScored(t, int(key), pick, wire.Podium{P1: "ANT", P2: "NOR", P3: "PIA"}, 2)
	miami, _ := u.ledger.Fold().Record(key)
	for i, sixth := range []season.DriverID{"charles-leclerc", "lewis-hamilton"} {
		must.Equal(t, fmt.Sprintf("sixth of revision %d", i+1), sixth, miami.Revisions[i].Rows[5].Driver)
	}
}

// lookAtAppeal checks that the decision moved the third of Monaco and the points, and that operators see
// that the source's standings did not follow.
func (u *unattended) lookAtAppeal(t *testing.T) {
	t.Helper()
	for _, row := range published[[]wire.DriverStanding](t, u, "standings/drivers/2026") {
		must.Hold(t, row.Driver != "GAS" || row.Points == 38, "after the appeal Gasly has %g points, want 38", row.Points)
	}
	told := fmt.Sprint(u.sources.PollStates()[0].Standings)
	golden.Sentence(t, "standings that do not follow a decision", told)
}

// reported returns the seasons as the source last reported them.
func (u *unattended) reported(t *testing.T) season.Facts {
	t.Helper()
	packed, _ := must.Get2(u.host.Archive(lastWord))(t)
	tree := must.Get(f1db.ReadTree(bytes.NewReader(packed), 2025, 2026))(t)
	d, err := tree.Document(media.Default())
	if err != nil || len(d.Unread) > 0 {
		t.Fatal(err, d.Unread)
	}
	return d.Facts
}

// sameStandings compares the published standings with the source's last ones.
func (u *unattended) sameStandings(t *testing.T, year int) {
	t.Helper()
	facts := u.reported(t)
	i := slices.IndexFunc(facts.Seasons, func(s season.Season) bool { return s.Year == year })
	last := facts.Seasons[i].LatestResult()
	want, got := make(map[string]string), make(map[string]string)
	for _, row := range last.DriverStandings {
		want[facts.Drivers[row.Driver].Name] = fmt.Sprintf("P%d %g", row.Position, row.Points)
	}
	for _, row := range published[[]wire.DriverStanding](t, u, fmt.Sprintf("standings/drivers/%d", year)) {
		if _, ok := got[row.Name]; ok {
			t.Errorf("%s stands twice in the standings of %d", row.Name, year)
		}
		got[row.Name] = fmt.Sprintf("P%d %g", row.Position, row.Points)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("drivers' standings of %d (-source's last word +published):\n%s", year, diff)
	}
	clear(want)
	clear(got)
	for _, row := range last.TeamStandings {
		want[facts.Teams[row.Team].Name] = fmt.Sprintf("P%d %g", row.Position, row.Points)
	}
	for _, row := range published[[]wire.ConstructorStanding](t, u, fmt.Sprintf("standings/constructors/%d", year)) {
		got[row.Team] = fmt.Sprintf("P%d %g", row.Position, row.Points)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("constructors' standings of %d (-source's last word +published):\n%s", year, diff)
	}
}

// report prints the picks of finished rounds, and counts them by basis.
func (u *unattended) report(t *testing.T, first int) map[ledger.Basis]int {
	t.Helper()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "round\tpick frozen\tbefore the start\tbasis\tpicked\twon\trevisions")
	basis := make(map[ledger.Basis]int)
	sessions := slices.SortedFunc(u.ledger.Fold().Records(), func(a, b ledger.RoundRecord) int { return cmp.Compare(a.Key, b.Key) })
	for _, s := range sessions {
		if s.Year < first || s.Result() == nil {
			continue
		}
		if s.Pick == nil {
			t.Errorf("%d %s has no pick", s.Year, s.GrandPrix)
			continue
		}
		basis[s.Pick.Basis]++
		named := make(map[season.DriverID]bool)
		for _, c := range s.Pick.Chances {
			must.Hold(t, !named[c.Driver] && c.Driver != "andrea-kimi-antonelli", "%d %s: the chances name %s twice, or by a name of old", s.Year, s.GrandPrix, c.Driver)
			named[c.Driver] = true
		}
		fmt.Fprintf(w, "%d %s\t%s\t%s\t%s\t%s\t%s\t%d\n", s.Year, s.GrandPrix, s.Pick.FrozenAt.Format("2 Jan 15:04:05"),
			s.Pick.Start.Sub(s.Pick.FrozenAt).Round(time.Second), s.Pick.Basis, s.Pick.P1, s.Result().Winner(), len(s.Revisions))
	}
	_ = w.Flush()
	t.Logf("picks by basis: %v\n%s", basis, &table)
	return basis
}

// TestGrowth runs through the weeks from the first race of 2026 on a store of all seasons.
func TestGrowth(t *testing.T) {
	if os.Getenv("GRIDCAST_SEASONS") == "" {
		t.Skip("runs some weeks on all seasons, some minutes; make season does")
	}
	host, clock := newsFrom(t, time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))
	base := release(t, sourcetest.F1DB2026, 1950, 2025)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, true)
		before := u.sizes(t)
		for u.step(t, lastWord) {
		}
		u.wantGrowth(t, before)
		if size := u.sizes(t)[""].bytes; size > 22<<20 {
			t.Errorf("the store has %d bytes, want at most 22 MB", size)
		}
	})
}

// folderSize is the content of a folder of a store.
type folderSize struct {
	bytes   int64
	objects int
}

// sizes returns the sizes of the folders, and of the whole store under the empty name.
func (u *unattended) sizes(t *testing.T) map[string]folderSize {
	t.Helper()
	sizes := map[string]folderSize{}
	for info, err := range u.store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		folder, _, _ := strings.Cut(info.Key, "/")
		for _, name := range []string{folder, ""} {
			size := sizes[name]
			sizes[name] = folderSize{size.bytes + info.Size, size.objects + 1}
		}
	}
	return sizes
}

// wantGrowth checks that a revision of the source adds at most 60 KB of archive and documents to the store, and
// prints the growth by folder. The documents of a source are the last two, beside its state.
func (u *unattended) wantGrowth(t *testing.T, before map[string]folderSize) {
	t.Helper()
	after := u.sizes(t)
	_, revisions := u.host.Served()
	rows := make([][]any, 0, len(after))
	for _, folder := range slices.Sorted(maps.Keys(after)) {
		was, is := before[folder], after[folder]
		rows = append(rows, []any{folder, is.objects, was.bytes >> 10, is.bytes >> 10, fmt.Sprintf("%.1f", float64(is.bytes-was.bytes)/float64(revisions)/(1<<10))})
	}
	t.Logf("%d revisions\n%s", revisions, terminal.Table([]any{"folder", "objects", "KB before", "KB after", "KB a revision"}, rows, 0))
	if kept := after["archives"].bytes - before["archives"].bytes + after["sources"].bytes; kept > int64(revisions)*60<<10 {
		t.Errorf("%d revisions added %d bytes of archives and documents, want at most 60 KB each", revisions, kept)
	}
	if n := after["sources"].objects; n != 3 {
		t.Errorf("the source has %d objects in the store, want its state and its last two documents", n)
	}
}

// shown is the visible state at an instant, in short.
type shown struct {
	Season   int      // the default season of /standings, /calendar and /predictions
	Next     string   // /next-race: name, start, and the winner of the pick; 404 if there is none
	Calendar int      // rounds of 2026; -1: the season is not known
	Leader   string   // leader of the standings; none if nobody has points
	Drivers  string   // their number, and the first with the team
	Picks    int      // of 2026
	Missing  []string // overdue facts on /status
	Source   string   // the operator's view: the revision's first digits, its faults and held changes
}

// nextRace is the published next race; false if there is none.
func (u *unattended) nextRace(t *testing.T) (wire.NextRace, bool) {
	t.Helper()
	version := u.version(t)
	body, ok := version.Body("next-race")
	must.Require(t, ok, "there is no /next-race")
	var countdown wire.Countdown
	must.Do(t, json.Unmarshal(body.Identity, &countdown))
	round := countdown.Next(u.Now())
	if round == nil {
		return wire.NextRace{}, false
	}
	var envelope struct{ Data wire.NextRace }
	must.Do(t, json.Unmarshal(round.Append(nil, u.Now()), &envelope))
	return envelope.Data, true
}

func (u *unattended) shown(t *testing.T) shown {
	t.Helper()
	version := u.version(t)
	m := &version.Manifest
	got := shown{Season: m.CurrentSeason, Next: "404", Calendar: -1}
	if next, ok := u.nextRace(t); ok {
		got.Next = fmt.Sprintf("%s, %s", next.Name, time.Time(next.DateStart).UTC().Format("2006-01-02 15:04"))
		if next.Prediction != nil {
			got.Next += ", " + next.Prediction.Winner
		}
	}
	if _, known := version.Body("calendar/2026"); known {
		got.Calendar = len(published[[]wire.CalendarEntry](t, u, "calendar/2026"))
		got.Picks = len(published[[]wire.PredictionRecord](t, u, "predictions/2026"))
	}
	if rows := published[[]wire.DriverStanding](t, u, fmt.Sprintf("standings/drivers/%d", cmp.Or(m.DefaultYears["standings"], m.CurrentSeason))); len(rows) > 0 {
		got.Leader = fmt.Sprintf("%s %g", rows[0].Driver, rows[0].Points)
	}
	drivers := published[[]wire.Driver](t, u, "drivers")
	got.Drivers = fmt.Sprintf("%d, %s of %s", len(drivers), drivers[0].Driver, drivers[0].Team)
	for _, fact := range m.Missing {
		if fact.OverdueAt(u.Now()) {
			got.Missing = append(got.Missing, fact.Code+": "+fact.Text)
		}
	}
	state := u.sources.PollStates()[0]
	got.Source = strings.TrimSpace(fmt.Sprintf("%.8s %s", state.Revision, state.Fault))
	if n := len(state.Held); n > 0 {
		got.Source += fmt.Sprintf(", %d wait", n)
	}
	return got
}

// TestWinter goes from the end of 2025 to the first qualifying of 2026 with F1DB's files of each day: for a
// fortnight nothing of the new season, its calendar on 19 December, and its cars not before March.
func TestWinter(t *testing.T) {
	must.Long(t, "a winter takes some seconds")
	host, clock := newsFrom(t, time.Date(2025, 12, 10, 12, 0, 0, 0, time.UTC))
	base := release(t, sourcetest.F1DB2026, 2024, 2025)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, false)
		const (
			australia = "Australian Grand Prix, 2026-03-08 04:00"
			lastGrid  = "20, GAS of Alpine"
		)
		// The start of Las Vegas 2025 is held all the time, because F1DB has it a day early.
		old := func(next string, calendar int, source string, missing ...string) shown {
			return shown{2025, next, calendar, "NOR 423", lastGrid, 0, missing, source}
		}
		ahead := func(drivers string, next string, picks int, source string) shown {
			return shown{2026, next, 24, "NOR 423", drivers, picks, nil, source}
		}
		for _, step := range []struct {
			at   string
			want shown
		}{
			// The last season is over, and no further race is known.
			{"2025-12-10T13:00:00Z", old("404", -1, "1b21db66, 1 wait", "no_future_round: no race to come is known")},
			// The new line-up arrived a quarter of an hour before the calendar, and is not asked for.
			{"2025-12-19T21:05:00Z", old("404", -1, "17655f9c, 1 wait", "no_future_round: no race to come is known")},
			{"2025-12-19T22:00:00Z", ahead(lastGrid, australia, 0, "c30d8518, 1 wait")},
			{"2025-12-31T23:59:00Z", ahead(lastGrid, australia, 0, "204d2823, 1 wait")},
			// The calendar of the next season is the one to look ahead to; the standings look back at the last. The cars
			// are those of the last race until the first qualifying.
			{"2026-01-01T01:00:00Z", ahead(lastGrid, australia, 0, "204d2823, 1 wait")},
			{"2026-03-06T12:00:00Z", ahead(lastGrid, australia, 0, "4963b202, 1 wait")},
			// Three of 22 set no time in qualifying: they are entered with the race.
			{"2026-03-07T16:10:00Z", ahead("19, GAS of Alpine", australia, 0, "0d14b5db, 1 wait")},
			{"2026-03-07T18:10:00Z", ahead("19, GAS of Alpine", australia+", RUS", 1, "0d14b5db, 1 wait")},
		} {
			at := must.Get(time.Parse(time.RFC3339, step.at))(t)
			u.pass(at)
			u.settle(t)
			got := u.shown(t)
			if diff := gocmp.Diff(step.want, got); diff != "" {
				t.Errorf("at %s (-want +got):\n%s", step.at, diff)
			}
		}
		for fault := range u.faults {
			t.Errorf("a job failed: %s", fault)
		}
		log := must.Get(ingest.LoadFactsLog(t.Context(), u.store))(t)
		announced := time.Date(2025, 12, 19, 21, 12, 19, 0, time.UTC)
		if origin, ok := log.Origin(2026, "australia", assemble.Start); !ok || origin.At.Before(announced) || origin.At.After(announced.Add(time.Hour)) {
			t.Errorf("by the facts log the start of Australia came from %+v, want within an hour of %s", origin, announced)
		}
	})
}
