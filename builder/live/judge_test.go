package live_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/memblob"
)

// ten is a race of ten cars over 53 laps.
var ten = live.Fixture{Session: 2024022, Start: start, Laps: 53, Grid: cars("abcdefghij")}

// cars returns the drivers of a text, one a letter.
func cars(text string) (drivers []season.DriverID) {
	for _, c := range text {
		drivers = append(drivers, season.DriverID(c))
	}
	return drivers
}

// order is the line of a lap with the drivers of a text, one a letter. Upper case is out.
func order(n int, text string) live.Observation {
	at := start.Add(time.Duration(n) * 90 * time.Second)
	o := live.Observation{Session: 2024022, At: at, Received: at.Add(time.Second), Source: "feed", Lap: n}
	for _, c := range text {
		id := season.DriverID(strings.ToLower(string(c)))
		o.Cars = append(o.Cars, live.Car{Driver: id, Out: string(id) != string(c)})
	}
	return o
}

// show writes the cars of a moment as a text for order. A car that is carried on has a dash.
func show(m *live.Moment) string {
	var text strings.Builder
	for _, c := range m.Cars {
		letter := string(c.Driver)
		if c.Out {
			letter = strings.ToUpper(letter)
		}
		text.WriteString(letter)
		if c.Carried {
			text.WriteString("-")
		}
	}
	return text.String()
}

// TestJudged feeds lines to a log and shows the race after them: its state, its cars, and the verdicts.
func TestJudged(t *testing.T) {
	const all = "abcdefghij"
	gap := func(ms int) live.Observation {
		o := order(3, all)
		o.Cars[9].GapMS = &ms
		return o
	}
	release := live.Observation{Session: 2024022, At: start.Add(10 * time.Minute), Received: start.Add(10 * time.Minute), Source: "operator:anna", Hand: true, Released: true}
	again := phase(live.Over, 6, 20)
	told := make(map[string]string)
	for _, tc := range []struct {
		name  string
		lines []live.Observation
	}{
		{"whole lines", []live.Observation{order(1, all), order(2, "bacdefghij")}},
		{"the first line lacks a car of the grid", []live.Observation{order(1, "acdefghij")}},
		{"a car is missing for two laps", []live.Observation{order(1, all), order(2, "abdefghij"), order(3, "abdefghij")}},
		{"a car is missing for three laps", []live.Observation{order(1, all), order(2, "abdefghij"), order(3, "abdefghij"), order(4, "abdefghij")}},
		{"a missing car comes back", []live.Observation{order(1, all), order(2, "abdefghij"), order(3, "abdefghij"), order(4, "abdefghij"), order(5, "abdecfghij")}},
		{"three of ten cars", []live.Observation{order(1, all), order(2, "abc")}},
		{"three cars in the first line", []live.Observation{order(1, "abc")}},
		{"three cars for ever", []live.Observation{order(1, "abc"), order(2, "abc"), order(3, "abc"), order(4, "abc"), order(5, "abc")}},
		{"seven of ten cars", []live.Observation{order(1, all), order(2, "abcdefg"), order(3, "abcdefg"), order(4, "abcdefg")}},
		{"six of ten cars for ever", []live.Observation{order(1, all), order(2, "abcdef"), order(3, "abcdef"), order(4, "abcdef"), order(5, "abcdef")}},
		{"one car", []live.Observation{order(1, all), order(2, "a")}},
		{"a whole line of a lap after a poor one", []live.Observation{order(1, all), order(2, "abc"), func() live.Observation { o := order(2, all); o.At = o.At.Add(time.Second); return o }()}},
		{"nine of ten out at once", []live.Observation{order(1, all), order(2, "aBCDEFGHIJ")}},
		{"nine of ten out in two lines", []live.Observation{order(1, all), order(2, "aBCDEFGHIJ"), order(3, "aBCDEFGHIJ")}},
		{"upside down", []live.Observation{order(1, all), order(2, "jihgfedcba")}},
		{"upside down against the grid", []live.Observation{order(1, "jihgfedcba")}},
		{"upside down in two lines", []live.Observation{order(1, all), order(2, "jihgfedcba"), order(3, "jihgfedcba")}},
		{"upside down once", []live.Observation{order(1, all), order(2, "jihgfedcba"), order(3, all)}},
		{"a person says upside down", []live.Observation{order(1, all), hand(order(2, "jihgfedcba"))}},
		{"a car that was out runs", []live.Observation{order(1, "abcdefghiJ"), order(2, all)}},
		{"a car that was out runs by hand", []live.Observation{order(1, "abcdefghiJ"), hand(order(2, all))}},
		{"a car that was out restarts", []live.Observation{order(1, "abcdefghiJ"), phase(live.Suspended, 1, 9), phase(live.Resumed, 1, 60), order(2, all)}},
		{"a driver twice", []live.Observation{order(1, all), order(2, "abcdefghii")}},
		{"laps fall", []live.Observation{order(9, all), func() live.Observation { o := order(12, all); o.Lap = 5; return o }()}},
		{"beyond the distance", []live.Observation{order(53, all), order(54, all)}},
		{"before lights out", []live.Observation{func() live.Observation { o := order(1, all); o.At = start.Add(-time.Hour); return o }()}},
		{"lap 30 two minutes after lights out", []live.Observation{func() live.Observation { o := order(2, all); o.Lap = 30; return o }()}},
		{"a gap of 146 million years", []live.Observation{order(2, all), gap(1 << 62)}},
		{"a gap longer than the race", []live.Observation{order(2, all), gap(3_600_000)}},
		{"a source with the name of a person", []live.Observation{order(1, all), func() live.Observation { o := order(2, all); o.Source = "operator:ada"; return o }()}},
		{"over at lap 6", []live.Observation{order(6, all), phase(live.Over, 6, 5)}},
		{"over at lap 6 by two lines", []live.Observation{order(6, all), phase(live.Over, 6, 5), again}},
		{"over at lap 6 by a person", []live.Observation{order(6, all), hand(phase(live.Over, 6, 5))}},
		{"over at lap 6 and the race goes on", []live.Observation{order(6, all), phase(live.Over, 6, 5), order(7, all), phase(live.Over, 7, 5)}},
		{"over at lap 40", []live.Observation{order(40, all), phase(live.Over, 40, 5)}},
		{"a source goes on after the end", []live.Observation{order(40, all), phase(live.Over, 40, 5), order(43, all)}},
		{"a person reopens", []live.Observation{order(40, all), phase(live.Over, 40, 5), hand(phase(live.Resumed, 41, 0)), order(42, all)}},
		{"the source repeats itself after a person reopened", []live.Observation{order(40, all), phase(live.Over, 40, 5), hand(phase(live.Resumed, 41, 0)), phase(live.Over, 41, 5)}},
		{"the flag after a person reopened", []live.Observation{order(40, all), phase(live.Over, 40, 5), hand(phase(live.Resumed, 41, 0)), order(42, all), phase(live.Over, 42, 5)}},
		{"resumed without a suspension", []live.Observation{order(1, all), phase(live.Resumed, 1, 5)}},
		{"suspended after the end", []live.Observation{order(40, all), phase(live.Over, 40, 5), phase(live.Suspended, 40, 9)}},
		{"started again after a suspension", []live.Observation{order(3, all), phase(live.Suspended, 3, 5), phase(live.Started, 3, 60)}},
		{"a person resumes a race that runs", []live.Observation{order(3, all), hand(phase(live.Resumed, 3, 5))}},
		{"a person orders an ended race", []live.Observation{order(40, all), phase(live.Over, 40, 5), hand(order(45, all))}},
		{"a release shows the source's order", []live.Observation{order(1, all), hand(order(2, "bacdefghij")), order(3, "cabdefghij"), release}},
	} {
		log, said := live.Log{Store: memblob.New()}, ""
		for _, o := range tc.lines {
			said = ""
			if _, _, err := log.Append(t.Context(), ten, o); err != nil {
				said = err.Error()
			}
		}
		tape := must.Get(log.Refresh(t.Context(), 2024022))(t)
		r := live.Reduce(tape.Observations, ten)
		got := fmt.Sprintf("%s %d ", r.State, r.Lap)
		if m := r.Latest(); m != nil {
			got += show(m)
			if !m.Complete() {
				got += " partial"
			}
		}
		told[tc.name] = strings.TrimSpace(got + "\n" + said)
	}
	golden.Inputs(t, "testdata/judged.txt", told)
}

// TestSuspendedStaysValid: a suspended race is valid for ten minutes after the last line, and a repeated line renews that.
func TestSuspendedStaysValid(t *testing.T) {
	log := live.Log{Store: memblob.New()}
	var tape *live.Tape
	for _, tc := range []struct {
		line  live.Observation
		news  bool
		until time.Time
	}{
		{lap(3), true, lap(3).At.Add(live.Fresh)},
		{phase(live.Suspended, 3, 10), true, lap(3).At.Add(10*time.Second + 10*time.Minute)},
		{phase(live.Suspended, 3, 70), false, lap(3).At.Add(10*time.Second + 10*time.Minute)},
		{phase(live.Suspended, 3, 400), true, lap(3).At.Add(400*time.Second + 10*time.Minute)},
		{phase(live.Resumed, 3, 500), true, lap(3).At.Add(500*time.Second + live.Fresh)},
	} {
		var news bool
		var err error
		if tape, news, err = log.Append(t.Context(), monza, tc.line); err != nil || news != tc.news {
			t.Fatalf("%s: got news %t, %v; want %t", tc.line.Phase, news, err, tc.news)
		}
		r := live.Reduce(tape.Observations, monza)
		got := r.ValidUntil()
		must.Hold(t, got.Equal(tc.until), "%s at %s: valid until %s, want %s", tc.line.Phase, tc.line.At, got, tc.until)
	}
}

// TestFlood: a source that changes its mind without end fills no store, and a person and the next lap are heard.
func TestFlood(t *testing.T) {
	const all = "abcdefghij"
	for name, flood := range map[string]func(n int) live.Observation{
		"phases": func(n int) live.Observation {
			return phase([]live.Phase{live.Suspended, live.Resumed}[n%2], 3, n%50)
		},
		"phases dated back": func(n int) live.Observation {
			o := phase([]live.Phase{live.Suspended, live.Resumed}[n%2], 1, n)
			o.Received = order(3, all).Received.Add(time.Duration(n) * 30 * time.Millisecond)
			return o
		},
		"orders of one lap, set aside": func(n int) live.Observation {
			o := order(3, "bacdefghij")
			o.At, o.Hand = o.At.Add(time.Duration(n+1)*time.Millisecond), n == 0
			o.Cars[1].GapMS = &n
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := live.Log{Store: memblob.New()}
			add := func(o live.Observation) (bool, error) {
				_, news, err := log.Append(t.Context(), ten, o)
				return news, err
			}
			for n := 1; n <= 3; n++ {
				must.Get(add(order(n, all)))(t)
			}
			stored, refused := 0, map[string]int{}
			for n := range 200 {
				news, err := add(flood(n))
				if news {
					stored++
				}
				if err != nil {
					refused[err.Error()]++
				}
			}
			must.Hold(t, stored >= 5 && stored <= 11, "200 lines: stored %d, want 5 to 11", stored)
			golden.Sentence(t, "refused of a flood: "+name, slices.Sorted(maps.Keys(refused)))
			hand := phase(live.Over, 3, 60)
			hand.Hand = true
			news, err := add(hand)
			must.Hold(t, news && err == nil, "a person: news %t, %v", news, err)
			hand.Phase, hand.At, hand.Received = live.Resumed, hand.At.Add(time.Second), hand.Received.Add(time.Second)
			if news, err := add(hand); !news || err != nil {
				t.Errorf("a person reopens: news %t, %v", news, err)
			}
			if news, err := add(order(4, all)); !news || err != nil {
				t.Errorf("the next lap: news %t, %v", news, err)
			}
			if news, err := add(phase(live.Suspended, 5, 60)); !news || err != nil {
				t.Errorf("a phase minutes later: news %t, %v", news, err)
			}
		})
	}
}

// TestLinesGoOn: a line that is too long is a fault, and the lines after it are read.
func TestLinesGoOn(t *testing.T) {
	const line = `{"session_key":2024022,"at":"2024-11-24T06:41:10Z","phase":"over"}`
	for _, long := range []int{64 << 10, 65 << 10, 200 << 10} {
		var read, faults []int
		err := live.Lines(strings.NewReader(line+"\n"+strings.Repeat("x", long)+"\n\n"+line), func(n int, _ live.Observation, err error) error {
			if err != nil {
				faults = append(faults, n)
			} else {
				read = append(read, n)
			}
			return nil
		})
		if err != nil || !slices.Equal(read, []int{1, 4}) || !slices.Equal(faults, []int{2}) {
			t.Errorf("%d bytes: read lines %v, faults %v, %v; want 1 and 4, and a fault in 2", long, read, faults, err)
		}
	}
}
