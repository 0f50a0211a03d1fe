package laps_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/lab/laps"
	"gridcast/deploy/must"
)

func seconds(s ...float64) []time.Duration {
	d := make([]time.Duration, len(s))
	for i := range s {
		d[i] = time.Duration(s[i] * float64(time.Second))
	}
	return d
}

// race has ann ahead, bob close, cat with a stop on lap 2, dan a lap down and eve out on lap 2.
func race() *laps.Race {
	return &laps.Race{
		Year: 2020, GrandPrix: "one",
		Completed: map[season.DriverID][]time.Duration{
			"ann": seconds(100, 190, 280, 370, 460),
			"bob": seconds(101, 192, 283, 374, 459),
			"cat": seconds(103, 215, 306, 397, 480),
			"dan": seconds(150, 300, 450),
			"eve": seconds(104),
		},
		Stops: map[season.DriverID][]int{"cat": {2}},
	}
}

func TestAt(t *testing.T) {
	car := func(d season.DriverID, gap float64, stops int) predict.Car {
		return predict.Car{Driver: d, Gap: seconds(gap)[0], Stops: stops}
	}
	for _, tc := range []struct {
		lap  int
		want []predict.Car
	}{
		// A driver on the lead lap has the gap of the timing screens, also at the moment of crossing the line.
		{1, []predict.Car{car("ann", 0, 0), car("bob", 1, 0), car("cat", 3, 0), car("eve", 4, 0), car("dan", 50, 0)}},
		// eve is out, but the timing cannot know it yet.
		{2, []predict.Car{car("ann", 0, 0), car("bob", 2, 0), car("eve", 4.001, 0), car("cat", 25, 0), car("dan", 50.001, 0)}},
		{4, []predict.Car{car("ann", 0, 0), car("bob", 4, 0), car("cat", 27, 1), car("dan", 110.001, 0)}},
		// bob has passed.
		{5, []predict.Car{car("bob", 0, 0), car("ann", 1, 0), car("cat", 21, 1), car("dan", 167.001, 0)}},
	} {
		got, ok := race().At(tc.lap, 60)
		must.Require(t, ok, "lap %d was not reached", tc.lap)
		must.Equal(t, fmt.Sprintf("lap %d", tc.lap), predict.RaceState{Laps: tc.lap, Scheduled: 60, Cars: tc.want}, got)
	}
	if _, ok := race().At(6, 60); ok {
		t.Error("lap 6 was reached by nobody")
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("races.csv", "raceId,year,round,name,date\n7,2020,1,\"One Grand Prix\",2020-03-02\n8,2020,9,Unknown,2020-09-01\n")
	write("drivers.csv", "driverId,code,forename,surname\n1,\\N,\"Sergio\",\"Pérez\"\n2,BOB,Bob,Young\n3,OUT,Not,Here\n")
	lapTimes := "raceId,driverId,lap,position,time,milliseconds\n7,1,1,1,\"1:30.000\",90000\n7,2,1,2,x,91000\n7,1,2,1,x,90500\n8,3,1,1,x,90000\n"
	write("lap_times.csv", lapTimes)
	archive := archiveOfOneRace(t)

	got := must.Get(laps.Read(dir, archive))(t)
	want := []*laps.Race{{
		Year: 2020, GrandPrix: "one",
		Completed: map[season.DriverID][]time.Duration{"sergio-perez": seconds(90, 180.5), "bob-young": seconds(91)},
		Stops:     map[season.DriverID][]int{"bob-young": {1}},
	}}
	must.Equal(t, "got", want, got)

	for _, tc := range []struct{ name, old, new string }{
		{"a lap left out", "7,1,2", "7,1,3"}, {"a stranger", "7,2,1", "7,3,1"}, {"a time that is none", "91000", "fast"}, {"a column left out", "milliseconds", "ms"},
	} {
		write("lap_times.csv", strings.Replace(lapTimes, tc.old, tc.new, 1))
		golden.Sentence(t, tc.name, must.Err(laps.Read(dir, archive)), dir, "DIR")
	}
	must.Fail(t, "an empty folder: got no error", must.Err(laps.Read(t.TempDir(), archive)))
}

func archiveOfOneRace(t *testing.T) *season.Archive {
	t.Helper()
	date := time.Date(2020, 3, 1, 0, 0, 0, 0, time.UTC)
	result := func(d season.DriverID, position int) season.Result {
		return season.Result{Driver: d, Team: "team", Engine: "engine", Position: position, Laps: 2}
	}
	a := must.Get(season.New(season.Facts{
		Drivers: map[season.DriverID]season.Driver{
			"sergio-perez": {ID: "sergio-perez", Name: "Sergio Perez"}, "bob-young": {ID: "bob-young", Name: "Bob Young"},
		},
		Teams:    map[season.TeamID]season.Team{"team": {ID: "team"}},
		Engines:  map[season.EngineID]season.Engine{"engine": {ID: "engine"}},
		Circuits: map[season.CircuitID]season.Circuit{"circuit": {ID: "circuit"}},
		Seasons: []season.Season{{Year: 2020, Rounds: []season.Round{{
			Number: 1, GrandPrix: "one", Name: "One Grand Prix", Circuit: "circuit", ScheduledLaps: 2, Date: date,
			Results:  []season.Result{result("sergio-perez", 1), result("bob-young", 2)},
			PitStops: []season.PitStop{{Driver: "bob-young", Stop: 1, Lap: 1}},
		}}}},
	}))(t)
	return a
}
