package ingest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/predict"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/dirblob"
)

// lie is one change of a good tree of the source, and the outcome that it must have.
type lie struct {
	what   string
	change func(files map[string][]byte)
	// The outcome: waits GATES, applied (the archive changed), notice (the operator is told), refused (the
	// document is not stored), nothing; several are joined.
	want      string
	committed time.Duration // from the time of the commit in use; 0: now
	answer    func(http.ResponseWriter, *http.Request) bool
	archive   func(packed []byte) []byte // changes the tar.gz after change
}

// zeros is a gzip stream of 8 MiB.
func zeros() []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(make([]byte, 8<<20)) // to memory
	_ = w.Close()
	return packed.Bytes()
}

// plain changes the tar in a tar.gz.
func plain(change func(tar []byte) []byte) func([]byte) []byte {
	return func(packed []byte) []byte {
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			panic(err)
		}
		unpacked, err := io.ReadAll(r)
		if err != nil {
			panic(err)
		}
		var again bytes.Buffer
		w := gzip.NewWriter(&again)
		_, _ = w.Write(change(unpacked)) // to memory
		_ = w.Close()
		return again.Bytes()
	}
}

// entry is the offset of the header of a file in a tar.
func entry(tar []byte, name string) int {
	at := bytes.Index(tar, []byte("f1db-main/"+name+"\x00"))
	if at < 0 || at%512 != 0 {
		panic(name)
	}
	return at
}

// The changes of a tree.
func put(name string, content []byte) func(map[string][]byte) {
	return func(files map[string][]byte) { files[name] = content }
}

func without(names ...string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		for name := range files {
			if slices.ContainsFunc(names, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				delete(files, name)
			}
		}
	}
}

func swap(name, was, is string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		if !bytes.Contains(files[name], []byte(was)) {
			panic(fmt.Sprintf("%s has no %q", name, was))
		}
		files[name] = bytes.Replace(files[name], []byte(was), []byte(is), 1)
	}
}

func all(changes ...func(map[string][]byte)) func(map[string][]byte) {
	return func(files map[string][]byte) {
		for _, change := range changes {
			change(files)
		}
	}
}

// another returns race.yml of a round that the small world does not have.
func another(gp, date string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		files["src/data/grands-prix/"+gp+".yml"] = fmt.Appendf(nil, "id: %s\nfullName: Grand Prix of %s\n", gp, gp)
		files["src/data/seasons/"+date[:4]+"/races/09-"+gp+"/race.yml"] = fmt.Appendf(nil,
			"id: 3000\nround: 9\ndate: %s\ntime: 13:00\ngrandPrixId: %s\nqualifyingFormat: KNOCKOUT\ncircuitId: ring\ncircuitType: RACE\ncourseLength: 4.5\nlaps: 60\n", date, gp)
	}
}

// page answers every request with a body.
func page(status int, contentType, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

var (
	alpsResult, bayResult, capeResult = raceFolder("alps") + "race-results.yml", raceFolder("bay") + "race-results.yml", raceFolder("cape") + "race-results.yml"
	alpsQualifying, capeQualifying    = raceFolder("alps") + "qualifying-results.yml", raceFolder("cape") + "qualifying-results.yml"
	good                              = string(raced("anna-arno", "bert-berg", "carl-coda"))
	bayStops                          = raceFolder("bay") + "pit-stops.yml"
	stops                             = []byte(smallRow(1, "anna-arno", "rosso", "  stop: 1\n  lap: 20\n  time: \"23.000\"\n"))
	anna, bert, carl                  = "src/data/drivers/anna-arno.yml", "src/data/drivers/bert-berg.yml", "src/data/drivers/carl-coda.yml"
)

// of returns the good result with replaced texts.
func of(pairs ...string) []byte { return []byte(strings.NewReplacer(pairs...).Replace(good)) }

// lies are the changes, each made alone in the afternoon after the third race: the results of the first two
// are verified, and the qualifying of the third was applied the day before.
var lies = []lie{
	// Real life passes.
	{what: "the result", change: put(capeResult, raced("bert-berg", "anna-arno", "carl-coda")), want: "applied"},
	{what: "penalties move two places", change: put(bayResult, raced("anna-arno", "carl-coda", "bert-berg")), want: "applied"},
	{what: "the winner is disqualified", change: put(bayResult, of("position: 1\n", "position: DSQ\n", "  points: 25\n", "", "position: 2\n", "position: 1\n", "points: 18", "points: 25", "position: 3\n", "position: 2\n", "points: 15", "points: 18")), want: "applied"},
	{what: "a driver retires", change: put(capeResult, of("position: 3\n", "position: DNF\n", "  points: 15\n", "  reasonRetired: Engine\n")), want: "applied"},
	{what: "a substitute", change: all(put("src/data/drivers/dora-dorn.yml", driverFile("dora-dorn", "Dora", "Dorn")), put(capeResult, of("carl-coda", "dora-dorn", "driverNumber: 3", "driverNumber: 4"))), want: "applied"},
	{what: "a substitute with the number of the absent driver", change: all(put("src/data/drivers/dora-dorn.yml", driverFile("dora-dorn", "Dora", "Dorn")), put(capeResult, of("carl-coda", "dora-dorn"))), want: "waits identity"},
	{what: "a start from the pit lane", change: all(put(raceFolder("cape")+"starting-grid-positions.yml", []byte(strings.Replace(string(qualified()), "position: 3\n", "position: PL\n", 1))), put(capeResult, raced("carl-coda", "anna-arno", "bert-berg"))), want: "applied"},
	{what: "an unknown number", change: put(capeResult, of("  driverNumber: 1\n", "")), want: "applied"},
	{what: "the number 0", change: put(capeResult, of("driverNumber: 1\n", "driverNumber: 0\n")), want: "applied"},
	{what: "a race of half the distance", change: put(capeResult, of("points: 25", "points: 13", "points: 18", "points: 10", "points: 15", "points: 8")), want: "applied"},
	{what: "a start is an hour later", change: swap(raceFolder("dale")+"race.yml", "time: 13:00", "time: 14:00"), want: "applied"},
	{what: "a round is postponed by a day", change: swap(raceFolder("dale")+"race.yml", "date: 2030-04-21", "date: 2030-04-22"), want: "applied"},
	{what: "a round to come is off", change: without(raceFolder("fjord")), want: "nothing"},
	{what: "a new round to come", change: another("gulf", "2030-07-07"), want: "applied"},
	{what: "the next season", change: another("alps-again", "2031-03-10"), want: "applied"},
	{what: "a rebase", change: all(), want: "nothing"},
	{what: "a first name is corrected", change: swap(anna, "firstName: Anna", "firstName: Anne"), want: "applied"},
	{what: "a team has another name", change: swap("src/data/constructors/rosso.yml", "name: Rosso", "name: Rosso Corse"), want: "applied"},
	{what: "a key that nobody knows", change: swap(raceFolder("dale")+"race.yml", "round: 4", "round: 4\nsponsor: none"), want: "nothing"},
	{what: "lines with carriage returns", change: swap(alpsResult, "\n", "\r\n"), want: "nothing"},
	{what: "a time that is none", change: put(capeResult, of("time: \"1:30:01.000\"", "time: soon")), want: "applied notice"},
	{what: "a longer course", change: swap(raceFolder("dale")+"race.yml", "courseLength: 4.5", "courseLength: 4.6"), want: "applied"},
	{what: "every pit stop twice", change: put(bayStops, slices.Concat(stops, stops)), want: "nothing"},
	// Rounds.
	{what: "a new round in the past", change: another("gulf", "2030-04-01"), want: "waits past"},
	{what: "a new round in the past with a result", change: all(another("gulf", "2030-04-01"), put("src/data/seasons/2030/races/09-gulf/race-results.yml", []byte(good))), want: "waits past"},
	{what: "a start moves into the past", change: swap(raceFolder("dale")+"race.yml", "date: 2030-04-21", "date: 2030-04-06"), want: "waits start"},
	{what: "a past start moves", change: swap(raceFolder("alps")+"race.yml", "date: 2030-03-10", "date: 2030-03-12"), want: "waits start"},
	{what: "a start moves by three days", change: swap(raceFolder("dale")+"race.yml", "date: 2030-04-21", "date: 2030-04-24"), want: "waits start"},
	{what: "a start moves onto another round", change: swap(raceFolder("dale")+"race.yml", "date: 2030-04-21", "date: 2030-05-05"), want: "waits start"},
	{what: "a start moves into another year", change: swap(raceFolder("dale")+"race.yml", "date: 2030-04-21", "date: 2031-04-21"), want: "waits unread"},
	{what: "a start of 900", change: swap(raceFolder("dale")+"race.yml", "time: 13:00", "time: 900"), want: "waits unread"},
	{what: "a date that is none", change: swap(raceFolder("dale")+"race.yml", "date: 2030-04-21", "date: 2030-02-31"), want: "waits unread"},
	{what: "a round under another name", change: all(without(raceFolder("fjord")), another("fiord", "2030-05-19")), want: "waits renamed_round"},
	{what: "five rounds are gone", change: without(raceFolder("bay"), raceFolder("cape"), raceFolder("dale"), raceFolder("east"), raceFolder("fjord")), want: "waits shrunken"},
	{what: "the outcome of a race to come", change: put(raceFolder("dale")+"race-results.yml", []byte(good)), want: "waits derived early"},
	{what: "the qualifying of a round to come", change: put(raceFolder("dale")+"qualifying-results.yml", qualified()), want: "waits derived early"},
	// Drivers and cars.
	{what: "two drivers of two teams are exchanged", change: put(capeResult, of("anna-arno", "bert-berg", "bert-berg", "anna-arno")), want: "waits cars"},
	{what: "two drivers of one team are exchanged", change: put(capeResult, of("bert-berg", "carl-coda", "carl-coda", "bert-berg")), want: "waits cars"},
	{what: "two drivers of a verified result are exchanged", change: put(bayResult, of("anna-arno", "bert-berg", "bert-berg", "anna-arno")), want: "waits cars"},
	{what: "a driver has another team", change: put(capeResult, of("anna-arno\n  constructorId: rosso", "anna-arno\n  constructorId: verde")), want: "waits cars"},
	{what: "a driver has another number", change: put(capeResult, of("driverNumber: 1\n", "driverNumber: 7\n")), want: "waits cars"},
	{what: "the standings differ from the result", change: all(put(capeResult, raced("bert-berg", "anna-arno", "carl-coda")), put(raceFolder("cape")+"driver-standings.yml", []byte("- position: 1\n  driverId: anna-arno\n  points: 75\n"))), want: "applied notice"},
	{what: "an abbreviation changes", change: swap(anna, "abbreviation: ARN", "abbreviation: XYZ"), want: "waits code"},
	{what: "the contents of two driver files are exchanged", change: all(put(anna, driverFile("anna-arno", "Bert", "Berg")), put(bert, driverFile("bert-berg", "Anna", "Arno"))), want: "waits code"},
	{what: "a driver file is gone", change: without(carl), want: "waits unread"},
	{what: "a driver file has another id", change: put(carl, driverFile("anna-arno", "Anna", "Arno")), want: "waits unread"},
	{what: "a result with an unknown driver", change: put(capeResult, of("carl-coda", "nobody")), want: "waits unread"},
	{what: "a result with an unknown team", change: put(capeResult, of("constructorId: rosso", "constructorId: nobody")), want: "waits unread"},
	{what: "a driver has another identifier and another code", change: all(put(bayResult, of("carl-coda", "dora-dorn")), put(alpsResult, of("carl-coda", "dora-dorn")), put(alpsQualifying, of("carl-coda", "dora-dorn")), without(raceFolder("cape")+"qualifying-results.yml", raceFolder("bay")+"qualifying-results.yml"), put("src/data/drivers/dora-dorn.yml", driverFile("dora-dorn", "Dora", "Dorn"))), want: "waits code applied notice"},
	{what: "a driver is gone from every round", change: all(put(bayResult, raced("anna-arno", "bert-berg")), put(alpsResult, raced("anna-arno", "bert-berg")), without(alpsQualifying, raceFolder("cape")+"qualifying-results.yml", raceFolder("bay")+"qualifying-results.yml")), want: "waits derived verified notice"},
	{what: "a name of a team ends before it begins", change: put("src/data/constructors/rosso.yml", []byte("id: rosso\nname: Rosso\ncountryId: italy\nchronology:\n- constructorId: verde\n  yearFrom: 2025\n  yearTo: 2020\n- constructorId: rosso\n  yearFrom: 2026\n")), want: "waits unread"},
	{what: "a new team with a file that cannot be read and a former name", change: all(
		put("src/data/constructors/nero.yml", []byte("id: nero\nname: [\n")),
		put("src/data/constructors/rosso.yml", []byte("id: rosso\nname: Rosso\ncountryId: italy\nchronology:\n- constructorId: rosso\n  yearFrom: 2020\n  yearTo: 2029\n- constructorId: nero\n  yearFrom: 2030\n")),
		put(capeResult, of("constructorId: rosso", "constructorId: nero"))), want: "waits unread"},
	// Rows.
	{what: "infinite points", change: put(capeResult, of("points: 25", "points: .inf")), want: "waits unread"},
	{what: "points that are no number", change: put(capeResult, of("points: 25", "points: .nan")), want: "waits unread"},
	{what: "a word for points", change: put(capeResult, of("points: 25", "points: many")), want: "waits unread"},
	{what: "negative points", change: put(capeResult, of("points: 25", "points: -25")), want: "waits points"},
	{what: "points of another place", change: put(capeResult, of("points: 15", "points: 12")), want: "waits points"},
	{what: "a million points", change: put(capeResult, of("points: 25", "points: 1000000")), want: "waits points"},
	{what: "a place is missing", change: put(capeResult, of("position: 3", "position: 4")), want: "waits points positions"},
	{what: "a place is there twice", change: put(capeResult, of("position: 3", "position: 2")), want: "waits points positions"},
	{what: "a driver is there twice", change: put(capeResult, of("carl-coda", "bert-berg")), want: "waits cars derived once"},
	{what: "a negative place", change: put(capeResult, of("position: 3", "position: -3")), want: "waits unread"},
	{what: "a course without a length", change: swap(raceFolder("dale")+"race.yml", "courseLength: 4.5", "courseLength: .nan"), want: "waits unread"},
	{what: "a verified result is cut off", change: put(bayResult, raced("anna-arno", "bert-berg")), want: "waits derived verified"},
	{what: "a verified result is empty", change: put(bayResult, nil), want: "notice"},
	{what: "a verified result is gone", change: without(bayResult), want: "notice"},
	{what: "a season is gone", change: all(without("src/data/seasons/2030/"), another("alps-again", "2031-03-10")), want: "applied notice"},
	{what: "points with a comma", change: put(capeResult, of("points: 25", "points: 12,5")), want: "waits unread"},
	{what: "a word for a place", change: put(capeResult, of("position: 3", "position: third")), want: "waits unread"},
	{what: "a word for a number", change: put(capeResult, of("driverNumber: 2", "driverNumber: two")), want: "waits unread"},
	{what: "a disqualified driver who keeps the points", change: put(capeResult, of("position: 3\n", "position: DSQ\n")), want: "waits outcome"},
	{what: "a place in qualifying that nobody has", change: put(capeQualifying, []byte(strings.Replace(string(qualified()), "position: 3", "position: 9", 1))), want: "waits positions"},
	{what: "markup in the reason of a retirement", change: put(capeResult, of("position: 3\n", "position: DNF\n", "  points: 15\n", "  reasonRetired: \"<img src=x>\"\n")), want: "waits unread"},
	{what: "a name that turns the writing around", change: swap(anna, "name: Anna Arno", `name: "Anna \u202eArno"`), want: "waits unread"},
	{what: "a list for a first name", change: swap(anna, "firstName: Anna", "firstName: [Anna]"), want: "waits unread"},
	{what: "a round below zero", change: swap(raceFolder("dale")+"race.yml", "round: 4", "round: -4"), want: "waits unread"},
	{what: "a calendar entry that is no YAML", change: swap(raceFolder("dale")+"race.yml", "id: ", "id: ["), want: "waits unread"},
	{what: "an unknown circuit", change: swap(raceFolder("alps")+"race.yml", "circuitId: ring", "circuitId: nowhere"), want: "waits unread"},
	// Whole documents.
	{what: "the source steps back", change: without(capeResult), committed: -time.Hour, want: "waits back"},
	{what: "the source steps back to an earlier result", change: put(bayResult, raced("carl-coda", "bert-berg", "anna-arno")), committed: -24 * time.Hour, want: "waits back"},
	{what: "no season at all", change: without("src/data/seasons/"), want: "refused"},
	{what: "an alias of YAML", change: put(capeResult, []byte("- &a {position: 1}\n- *a\n")), want: "waits unread"},
	{what: "a tag of YAML", change: put(capeResult, []byte("- !!binary aGk=\n")), want: "waits unread"},
	{what: "two documents in one file", change: put(capeResult, []byte(good+"---\n"+good)), want: "waits unread"},
	{what: "a result that is no YAML", change: put(capeResult, []byte("<html>{{{</html>")), want: "waits unread"},
	{what: "bytes that are no UTF-8", change: put(capeResult, of("carl-coda", "c\xff\xfe")), want: "waits unread"},
	{what: "a file of two megabytes", change: put(capeResult, bytes.Repeat([]byte("#\n"), 1<<20)), want: "refused"},
	{what: "a page of HTML", answer: page(200, "text/html", "<html>maintenance</html>"), want: "refused"},
	{what: "a page of HTML as an archive", answer: page(200, "application/x-gzip", "<html>maintenance</html>"), want: "refused"},
	{what: "a bomb", archive: func(packed []byte) []byte { return append(packed, bytes.Repeat(zeros(), 65)...) }, want: "refused"},
	{what: "an archive that is cut off", archive: func(packed []byte) []byte { return packed[:len(packed)/2] }, want: "refused"},
	{what: "an archive without its last bytes", archive: func(packed []byte) []byte { return packed[:len(packed)-4] }, want: "refused"},
	{what: "a tar that is cut off", archive: plain(func(tar []byte) []byte { return tar[:entry(tar, carl)+600] }), want: "refused"},
	{what: "a tar without one block", archive: plain(func(tar []byte) []byte { return slices.Delete(tar, entry(tar, carl), entry(tar, carl)+512) }), want: "refused"},
	{what: "a tar with a gap of zeros", archive: plain(func(tar []byte) []byte {
		clear(tar[entry(tar, capeQualifying):][:1024])
		return tar
	}), want: "refused"},
	{what: "a tar with a gap of a whole file", archive: plain(func(tar []byte) []byte {
		at := entry(tar, bayResult)
		return slices.Delete(tar, at, entry(tar, raceFolder("bay")+"race.yml"))
	}), want: "notice"},
	{what: "nothing at all", answer: page(200, "application/x-gzip", ""), want: "refused"},
}

// TestLies tells every lie to an ingest that polls it over loopback. The golden file has the sentences that the operator
// reads. Nobody can accept a value that cannot be read, and the next good revision ends it. With GRIDCAST_LIES, the path of
// the program, it tells the lies to gridcast serve instead.
func TestLies(t *testing.T) {
	must.Hold(t, len(lies) >= 60, "there are %d lies, want at least 60", len(lies))
	truth := newSmall(t)
	files := smallFiles()
	tell := func(at time.Time, more map[string][]byte) {
		for name, content := range more {
			files[name] = content
		}
		truth.commit(more)
		truth.poll(t, at)
	}
	truth.poll(t, truth.now)
	for _, gp := range []string{"alps", "bay"} {
		tell(smallStart(gp).Add(-20*time.Hour), map[string][]byte{raceFolder(gp) + "qualifying-results.yml": qualified()})
		tell(smallStart(gp).Add(4*time.Hour), map[string][]byte{raceFolder(gp) + "race-results.yml": []byte(good)})
	}
	tell(truth.now.Add(time.Hour), map[string][]byte{bayStops: stops})
	tell(smallStart("cape").Add(-20*time.Hour), map[string][]byte{raceFolder("cape") + "qualifying-results.yml": qualified()})
	stored := must.Get(truth.Facts.Load(t.Context()))(t)
	policy := builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: time.Hour, Stability: truth.Stability}
	events, err := policy.Settle(t.Context(), testseason.Fresh(t, truth.Ledger), stored, truth.now)
	must.Require(t, err == nil && len(events) >= 2, "the first two results: got %d events, %v", len(events), err)
	latest := truth.state(t).Committed
	now := smallStart("cape").Add(4 * time.Hour)
	said := make(map[string]string)
	for _, l := range lies {
		t.Run(l.what, func(t *testing.T) {
			s := &small{now: now}
			s.host = codehosttest.Of(t, latest, files, func() time.Time { return s.now })
			edit := codehosttest.Edit{At: now, Change: l.change}
			if l.committed != 0 {
				edit.Committed = latest.Add(l.committed)
			}
			s.host.Edit(edit)
			s.host.Misbehave(l.answer)
			if l.archive != nil {
				packed, _ := must.Get2(s.host.Archive(now))(t)
				s.host.Misbehave(page(200, "application/x-gzip", string(l.archive(packed))))
			}
			if program := os.Getenv("GRIDCAST_LIES"); program != "" {
				s.serveLie(t, program, truth.store, stored.SHA256, l.want)
				return
			}
			s.restart(t, truth.store)
			outcome := s.poll(t, now)
			if got := s.outcome(t, stored.SHA256); got != l.want {
				t.Errorf("got %q, want %q: %s; %s", got, l.want, summary(outcome), s.state(t).Reason)
			}
			said[l.what] = brief(s.state(t))
			if l.want != "waits unread" {
				return
			}
			for _, p := range s.state(t).Held {
				must.Fail(t, p.ID+" was accepted", must.Err(s.Accept(t.Context(), s.now, "operator:ada", p.ID, "why not")))
			}
			s.host.Edit(codehosttest.Edit{At: now.Add(time.Second), Change: func(tree map[string][]byte) {
				clear(tree)
				maps.Copy(tree, files)
			}})
			if s.next(t); len(s.state(t).Held) > 0 {
				t.Errorf("after a good revision there waits %+v", s.state(t).Held)
			}
		})
	}
	if os.Getenv("GRIDCAST_LIES") == "" {
		golden.Inputs(t, "testdata/lies.txt", said)
	}
}

// serveLie has the program serve a copy of a store until the lie has the wanted outcome. make lies names the program.
func (s *small) serveLie(t *testing.T, program string, truth blob.Store, archived, want string) {
	t.Helper()
	dir := t.TempDir()
	store := must.Get(dirblob.Open(dir))(t)
	s.store = store
	blobtest.Copy(t, store, truth)
	var log bytes.Buffer
	service := exec.Command(program, "serve", "--store", "dir:"+dir, "--now", s.now.Format(time.RFC3339), "--source", "f1db="+s.host.URL,
		"--model", "grid-frequency", "--listen", "127.0.0.1:0")
	service.Dir, service.Stdout, service.Stderr = dir, &log, &log
	must.Do(t, service.Start())
	defer func() {
		_ = service.Process.Signal(os.Interrupt)
		_ = service.Wait()
		if t.Failed() {
			t.Logf("%s", &log)
		}
	}()
	got := "no answer"
	reached := must.Within(2*time.Minute, func() bool {
		if state := s.state(t); state.Polled.Before(s.now) || state.Answered.Before(s.now) && state.Fault == "" {
			return false
		}
		got = s.outcome(t, archived)
		return got == want
	})
	must.Hold(t, reached, "got %q, want %q", got, want)
}

// outcome describes the last poll of the source in the words of lie.
func (s *small) outcome(t *testing.T, archived string) string {
	t.Helper()
	state := s.state(t)
	var got, gates []string
	for _, p := range state.Held {
		for _, r := range p.Refused {
			if !slices.Contains(gates, string(r.Gate)) {
				gates = append(gates, string(r.Gate))
			}
		}
	}
	if slices.Sort(gates); len(gates) > 0 {
		got = append(got, "waits "+strings.Join(gates, " "))
	}
	if state.Fault != "" && state.Gate == "" {
		got = append(got, "refused")
	}
	if s.inUse(t) != archived {
		got = append(got, "applied")
	}
	if len(state.Lost)+len(state.Standings) > 0 {
		got = append(got, "notice")
	}
	if len(got) == 0 {
		return "nothing"
	}
	return strings.Join(got, " ")
}
