package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/memblob"
)

// feed has a start, two laps with messages between them, a car that retires, a flag without a phase, and a red flag.
const feed = `{"time":"2024-11-24T06:00:01Z","flag":"GREEN"}
{"time":"2024-11-24T06:01:40Z","lap":1,"cars":[{"driver":"63","gap_ms":0,"stops":0},{"driver":"44","gap_ms":900},{"driver":"16","gap_ms":1800},{"driver":"10","gap_ms":2600}]}
{"time":"2024-11-24T06:02:10Z","lap":1,"cars":[{"driver":"44","gap_ms":0},{"driver":"63","gap_ms":100},{"driver":"16","gap_ms":1800},{"driver":"10","gap_ms":2600}]}
{"time":"2024-11-24T06:02:20Z","flag":"YELLOW"}
{"time":"2024-11-24T06:03:15Z","lap":2,"cars":[{"driver":"44","gap_ms":0},{"driver":"63","gap_ms":700},{"driver":"16","gap_ms":2400},{"driver":"10","out":true}]}
{"time":"2024-11-24T06:03:40Z","flag":"RED"}
`

// TestAdapter sends the lines of the adapter through gridcast's own reader and log. Each must count.
func TestAdapter(t *testing.T) {
	var lines strings.Builder
	if err := adapt(2024022, strings.NewReader(feed), &lines); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	drivers := map[string]season.DriverID{"63": "george-russell", "44": "lewis-hamilton", "16": "charles-leclerc", "10": "pierre-gasly"}
	race := live.Fixture{
		Session: 2024022, Start: time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC), Laps: 50,
		Grid: []season.DriverID{"george-russell", "lewis-hamilton", "charles-leclerc", "pierre-gasly"},
	}
	log := live.Log{Store: memblob.New()}
	must.Do(t, live.Lines(strings.NewReader(lines.String()), func(n int, o live.Observation, err error) error {
		if err != nil {
			return err
		}
		if err := o.Resolve(func(number string) (season.DriverID, error) { return drivers[number], nil }); err != nil {
			return err
		}
		o.Source, o.Received = "adapter", o.At.Add(time.Second)
		if _, news, err := log.Append(t.Context(), race, o); err != nil || !news {
			t.Errorf("line %d: new %t, %v", n, news, err)
		}
		return nil
	}))
	tape := must.Get(log.Refresh(t.Context(), race.Session))(t)
	now := live.Reduce(tape.Observations, race)
	if now.Lap != 2 || len(now.Moments) != 2 || now.State != live.Stopped || now.Latest().Cars[0].Driver != "lewis-hamilton" || !now.Latest().Cars[3].Out {
		t.Errorf("got lap %d of %d, %s, %+v; want lap 2, suspended, behind Hamilton and without Gasly", now.Lap, len(now.Moments), now.State, now.Latest())
	}
}

// TestPageShowsTheAdapter compares the program in the page with the program that is tested.
func TestPageShowsTheAdapter(t *testing.T) {
	program := must.Get(os.ReadFile("main.go"))(t)
	page := must.Get(os.ReadFile("../live.md"))(t)
	from, to := strings.Index(string(program), "// adapt reads"), strings.Index(string(program), "\nfunc main()")
	must.Show(t, "live.md", string(page), "```go\n"+string(program)[from:to]+"```\n")
}
