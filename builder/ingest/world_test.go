package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/memblob"
)

// The small world: a season of six rounds in 2030, every second Sunday at 13:00 UTC, with three
// drivers. It needs no real data, so that these tests run on every machine.
var smallRounds = []string{"alps", "bay", "cape", "dale", "east", "fjord"}

// opening is the week before the first round.
var opening = time.Date(2030, 3, 4, 12, 0, 0, 0, time.UTC)

// smallStart is the start of a round.
func smallStart(gp string) time.Time {
	for i, name := range smallRounds {
		if name == gp {
			return time.Date(2030, 3, 10+14*i, 13, 0, 0, 0, time.UTC)
		}
	}
	panic("no round " + gp)
}

func raceFolder(gp string) string {
	for i, name := range smallRounds {
		if name == gp {
			return fmt.Sprintf("src/data/seasons/2030/races/%02d-%s/", i+1, gp)
		}
	}
	panic("no round " + gp)
}

// smallFiles is the calendar of the season in the format of F1DB's repository.
func smallFiles() map[string][]byte {
	files := map[string][]byte{
		"src/data/countries/italy.yml":               []byte("id: italy\nname: Italy\nalpha3Code: ITA\n"),
		"src/data/engine-manufacturers/vee.yml":      []byte("id: vee\nname: Vee\n"),
		"src/data/circuits/ring.yml":                 []byte("id: ring\nfullName: Alpenring\nplaceName: Alpdorf\ncountryId: italy\n"),
		"src/data/drivers/anna-arno.yml":             driverFile("anna-arno", "Anna", "Arno"),
		"src/data/drivers/bert-berg.yml":             driverFile("bert-berg", "Bert", "Berg"),
		"src/data/drivers/carl-coda.yml":             driverFile("carl-coda", "Carl", "Coda"),
		"src/data/seasons/2030/driver-standings.yml": []byte("[]\n"),
	}
	for _, team := range []string{"rosso", "verde"} {
		files["src/data/constructors/"+team+".yml"] = fmt.Appendf(nil, "id: %s\nname: %s\ncountryId: italy\n", team, strings.ToUpper(team[:1])+team[1:])
	}
	for i, gp := range smallRounds {
		files["src/data/grands-prix/"+gp+".yml"] = fmt.Appendf(nil, "id: %s\nfullName: Grand Prix of %s\n", gp, gp)
		start := smallStart(gp)
		files[raceFolder(gp)+"race.yml"] = fmt.Appendf(nil,
			"id: %d\nround: %d\ndate: %s\ntime: 13:00\ngrandPrixId: %s\nqualifyingFormat: KNOCKOUT\ncircuitId: ring\ncircuitType: RACE\ncourseLength: 4.5\nlaps: 60\nqualifyingDate: %s\nqualifyingTime: 14:00\n",
			2000+i, i+1, start.Format(time.DateOnly), gp, start.AddDate(0, 0, -1).Format(time.DateOnly))
	}
	return files
}

func driverFile(id, first, last string) []byte {
	return fmt.Appendf(nil, "id: %s\nname: %s %s\nfirstName: %s\nlastName: %s\nabbreviation: %s\nnationalityCountryId: italy\n",
		id, first, last, first, last, strings.ToUpper(last[:3]))
}

// smallRow is a row of a table of F1DB.
func smallRow(position int, driver, team, rest string) string {
	return fmt.Sprintf("- position: %d\n  driverNumber: %d\n  driverId: %s\n  constructorId: %s\n  engineManufacturerId: vee\n%s", position, driver[0]-'a'+1, driver, team, rest)
}

// qualified is the qualifying of a round: Arno, Berg, Coda.
func qualified() []byte {
	return []byte(smallRow(1, "anna-arno", "rosso", "  q1: \"1:30.000\"\n") + smallRow(2, "bert-berg", "verde", "  q1: \"1:30.500\"\n") + smallRow(3, "carl-coda", "verde", "  q1: \"1:31.000\"\n"))
}

// raced is the result of a round, by driver in order.
func raced(order ...string) []byte {
	team := map[string]string{"anna-arno": "rosso", "bert-berg": "verde", "carl-coda": "verde", "carlo-coda": "verde"}
	points := []int{25, 18, 15}
	var rows strings.Builder
	for i, driver := range order {
		rows.WriteString(smallRow(i+1, driver, team[driver], fmt.Sprintf("  laps: 60\n  time: \"1:30:%02d.000\"\n  points: %d\n", i, points[i])))
	}
	return []byte(rows.String())
}

// small is a scheduler on a store that knows the calendar of the small world, with its source.
type small struct {
	*ingest.Ingest
	host  *codehosttest.Host
	store blob.Store
	now   time.Time
}

func newSmall(t testing.TB) *small { return newSmallOpened(t, opening) }

// newSmallOpened has a ledger that is opened at an instant; zero: opening.
func newSmallOpened(t testing.TB, opened time.Time) *small {
	t.Helper()
	if opened.IsZero() {
		opened = opening
	}
	s := &small{now: opening, store: memblob.New()}
	s.host = codehosttest.Of(t, opening.Add(-time.Hour), smallFiles(), func() time.Time { return s.now })
	packed, _ := must.Get2(s.host.Archive(s.now))(t)
	tree := must.Get(f1db.ReadTree(bytes.NewReader(packed), 2029, 2031))(t)
	d := must.Get(tree.Document(media.Media{}))(t)
	testseason.New(t, testseason.Config{Stored: archivetest.Stored(t, d.Facts), Store: s.store, Opened: opened, Until: testseason.Scheduled})
	s.Ingest = s.scheduler(t, s.store)
	return s
}

// scheduler opens one more scheduler, on the store of the world or on one that wraps it.
func (s *small) scheduler(t testing.TB, store blob.Store) *ingest.Ingest {
	t.Helper()
	upstream := must.Get(f1db.NewRepository(s.host.URL, "gridcast-test (operator@example.org)", media.Media{}))(t)
	l := must.Get(ledger.Load(t.Context(), store, ledger.Simulated))(t)
	return &ingest.Ingest{
		Store: store, Facts: archive.NewStore(store), Ledger: l, Log: slog.New(slog.DiscardHandler),
		Sources:  []ingest.Source{{Upstream: upstream}},
		Interval: func(time.Time) time.Duration { return time.Minute },
	}
}

// restart opens a scheduler on a copy of a store.
func (s *small) restart(t testing.TB, store blob.Store) {
	t.Helper()
	s.store = memblob.New()
	blobtest.Copy(t, s.store, store)
	s.Ingest = s.scheduler(t, s.store)
}

// commit has the source change files with the next poll. A nil file is removed.
func (s *small) commit(files map[string][]byte) {
	s.host.Edit(codehosttest.Edit{At: s.now.Add(time.Second), Change: func(all map[string][]byte) {
		for name, content := range files {
			if content == nil {
				delete(all, name)
			} else {
				all[name] = content
			}
		}
	}})
}

// poll polls at an instant.
func (s *small) poll(t testing.TB, at time.Time) ingest.Outcome {
	t.Helper()
	s.now = at
	return must.Get(s.Poll(t.Context(), at, false))(t)
}

// next polls two minutes later.
func (s *small) next(t testing.TB) ingest.Outcome {
	t.Helper()
	return s.poll(t, s.now.Add(2*time.Minute))
}

func (s *small) state(t testing.TB) ingest.PollState {
	t.Helper()
	return must.Get(ingest.LoadPollState(t.Context(), s.store, "f1db"))(t)
}

// round is a round of the archive in use.
func (s *small) round(t testing.TB, gp season.GrandPrixID) *season.Round {
	t.Helper()
	stored := must.Get(archive.NewStore(s.store).Load(context.Background()))(t)
	facts := stored.Archive.Facts()
	r, ok := facts.Round(2030, gp)
	must.Require(t, ok, "the archive has no round %s", gp)
	return r
}

// summary writes an outcome in short: "applied alps result; held bay start (start)".
func summary(o ingest.Outcome) string {
	var parts []string
	add := func(word string, list []assemble.Proposal) {
		for _, p := range list {
			words := []string{word, string(p.GrandPrix), string(p.Block)}
			for _, r := range p.Refused {
				words = append(words, fmt.Sprintf("(%s)", r.Gate))
			}
			parts = append(parts, strings.Join(words, " "))
		}
	}
	add("applied", o.Applied)
	add("held", o.Held)
	add("disputed", o.Disputed)
	for _, c := range o.Confirmed {
		parts = append(parts, fmt.Sprintf("confirmed %s %s", c.GrandPrix, c.Block))
	}
	for _, e := range o.Events {
		parts = append(parts, fmt.Sprintf("event %s", e.Type))
	}
	for name := range maps.Keys(o.Faults) {
		parts = append(parts, "fault "+name)
	}
	return strings.Join(parts, "; ")
}

func wantSummary(t *testing.T, what string, got ingest.Outcome, want string) {
	t.Helper()
	text := summary(got)
	must.Hold(t, text == want, "%s:\ngot  %s\nwant %s", what, text, want)
}
