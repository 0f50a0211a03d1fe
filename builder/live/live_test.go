package live_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/memblob"
)

var start = time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)

// monza is the race of the observations: four cars over 50 laps.
var monza = live.Fixture{Session: 2024022, Start: start, Laps: 50, Grid: []season.DriverID{"ann", "bob", "cat", "dan"}}

// lap is the observation of a lap, received a second later. The laps of odd number swap the first two cars.
func lap(n int) live.Observation {
	at := start.Add(time.Duration(n) * 90 * time.Second)
	o := live.Observation{Session: 2024022, At: at, Received: at.Add(time.Second), Source: "feed", Lap: n, Laps: 50}
	for i, driver := range []season.DriverID{"ann", "bob", "cat", "dan"} {
		gap := i * 1500
		o.Cars = append(o.Cars, live.Car{Driver: driver, GapMS: &gap})
	}
	if n%2 == 1 {
		o.Cars[0].Driver, o.Cars[1].Driver = o.Cars[1].Driver, o.Cars[0].Driver
	}
	return o
}

// phase is a phase that was seen seconds after the leader completed a lap.
func phase(p live.Phase, afterLap, seconds int) live.Observation {
	at := start.Add(time.Duration(90*afterLap+seconds) * time.Second)
	return live.Observation{Session: 2024022, At: at, Received: at.Add(time.Second), Source: "feed", Phase: p}
}

func hand(o live.Observation) live.Observation {
	o.Hand, o.Source = true, "operator:anna"
	return o
}

// race is a race of 50 laps with a red flag after lap 20.
func race() []live.Stored {
	all := []live.Observation{phase(live.Started, 0, 2), phase(live.Suspended, 20, 10), phase(live.Resumed, 20, 60), phase(live.Over, 50, 0)}
	for n := 1; n <= 50; n++ {
		all = append(all, lap(n))
	}
	return stored(all...)
}

func stored(all ...live.Observation) []live.Stored {
	var s []live.Stored
	for _, o := range all {
		s = append(s, live.Stored{Observation: o})
	}
	return s
}

// TestReduceIsAFunctionOfTheSet shuffles and doubles the observations of a race.
func TestReduceIsAFunctionOfTheSet(t *testing.T) {
	want := live.Reduce(race(), monza)
	if want.State != live.Ended || want.Lap != 50 || want.Laps != 50 || len(want.Moments) != 50 || len(want.Turns) != 4 {
		t.Fatalf("got %s at lap %d of %d with %d moments and %d turns", want.State, want.Lap, want.Laps, len(want.Moments), len(want.Turns))
	}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := race()
		for range all {
			again := all[random.IntN(len(all))]
			if random.IntN(2) == 0 {
				again.Received = again.Received.Add(time.Duration(random.IntN(30)) * time.Second)
			}
			all = append(all, again)
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if diff := cmp.Diff(want, live.Reduce(all, monza)); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// TestReduceWithLoss: every lap that arrives is the lap of the undisturbed race, and laps ascend.
func TestReduceWithLoss(t *testing.T) {
	whole := live.Reduce(race(), monza)
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		some := slices.DeleteFunc(race(), func(live.Stored) bool { return random.IntN(20) == 0 })
		got := live.Reduce(some, monza)
		for i, m := range got.Moments {
			if diff := cmp.Diff(whole.Moments[m.Lap-1], m); diff != "" {
				t.Fatalf("seed %d, lap %d (-want +got):\n%s", seed, m.Lap, diff)
			}
			if i > 0 && m.Lap <= got.Moments[i-1].Lap {
				t.Fatalf("seed %d: lap %d follows lap %d", seed, m.Lap, got.Moments[i-1].Lap)
			}
		}
	}
}

func TestStates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		seen  []live.Observation
		state live.State
		lap   int
		hand  bool
	}{
		{name: "nothing", state: live.Waiting},
		{name: "started", seen: []live.Observation{phase(live.Started, 0, 0)}, state: live.Running},
		{name: "a lap without a start", seen: []live.Observation{lap(1)}, state: live.Running, lap: 1},
		{name: "red flag", seen: []live.Observation{lap(3), phase(live.Suspended, 3, 5)}, state: live.Stopped, lap: 3},
		{name: "the lap to the pits after a red flag", seen: []live.Observation{lap(3), phase(live.Suspended, 3, 5), lap(4)}, state: live.Stopped, lap: 4},
		{name: "the restart was lost", seen: []live.Observation{lap(3), phase(live.Suspended, 3, 5), lap(4), lap(5)}, state: live.Running, lap: 5},
		{name: "an earlier lap later", seen: []live.Observation{lap(4), {Session: 2024022, At: lap(5).At, Lap: 3, Cars: lap(3).Cars}}, state: live.Running, lap: 4},
		{name: "the last lap comes after the flag", seen: []live.Observation{lap(49), phase(live.Over, 50, -1), lap(50)}, state: live.Ended, lap: 50},
		{name: "laps after the end", seen: []live.Observation{lap(40), phase(live.Over, 40, 0), lap(43)}, state: live.Ended, lap: 40},
		{name: "a resumption after the end", seen: []live.Observation{lap(40), phase(live.Over, 40, 0), phase(live.Resumed, 41, 0)}, state: live.Ended, lap: 40},
		{name: "by hand", seen: []live.Observation{lap(3), hand(lap(5)), lap(6)}, state: live.Running, lap: 5, hand: true},
		{name: "released", seen: []live.Observation{hand(lap(5)), {Session: 2024022, At: lap(6).At, Received: lap(6).At, Hand: true, Released: true}, lap(7)}, state: live.Running, lap: 7},
	} {
		got := live.Reduce(stored(tc.seen...), monza)
		if got.State != tc.state || got.Lap != tc.lap || got.Hand != tc.hand {
			t.Errorf("%s: got %s at lap %d, by hand %t; want %s at lap %d, %t", tc.name, got.State, got.Lap, got.Hand, tc.state, tc.lap, tc.hand)
		}
	}
}

func TestValidUntil(t *testing.T) {
	r := live.Reduce(stored(lap(1), lap(2)), monza)
	must.Equal(t, "laps of 90 s", lap(2).At.Add(live.Fresh), r.ValidUntil())
	slow := lap(3)
	slow.At, slow.Received = lap(1).At.Add(2*time.Minute), lap(1).At.Add(2*time.Minute)
	slow.Lap = 2
	if got, want := live.Reduce(stored(lap(1), slow), monza), slow.At.Add(4*time.Minute); !got.ValidUntil().Equal(want) {
		t.Errorf("laps of 2 min: got %s, want %s", got.ValidUntil(), want)
	}
	first, ahead := lap(1), lap(2)
	first.At, ahead.At = first.At.Add(30*time.Second), ahead.At.Add(30*time.Second)
	if got, want := live.Reduce(stored(first, ahead), monza), ahead.Received.Add(live.Fresh); !got.ValidUntil().Equal(want) {
		t.Errorf("the clock of the source is 30 s ahead: got %s, want %s after the arrival", got.ValidUntil(), want)
	}
}

func TestParseLine(t *testing.T) {
	const at = `"session_key":2024022,"at":"2024-11-24T06:41:10Z"`
	said := make(map[string]string)
	for _, line := range []string{
		`{` + at + `,"lap":25,"laps":50,"cars":[{"driver":"RUS","gap_ms":0,"stops":1},{"driver":"HAM","gap_ms":6100},{"driver":"GAS","out":true}]}`,
		`{` + at + `,"phase":"over"}`,
		`{` + at + `,"phase":"finished"}`,
		`{` + at + `}`,
		`{` + at + `,"lap":2,"cars":[]}`,
		`{` + at + `,"lap":0,"cars":[{"driver":"RUS"}]}`,
		`{` + at + `,"lap":51,"laps":50,"cars":[{"driver":"RUS"}]}`,
		`{` + at + `,"lap":2,"cars":[{"driver":"RUS"},{"driver":"RUS"}]}`,
		`{` + at + `,"lap":2,"cars":[{"driver":"RUS","out":true},{"driver":"HAM"}]}`,
		`{` + at + `,"lap":2,"cars":[{"driver":"RUS"},{"driver":"HAM","gap_ms":9},{"driver":"LEC","gap_ms":8}]}`,
		`{` + at + `,"lap":2,"cars":[{"driver":"RUS"},{"driver":"HAM","gap_ms":-9}]}`,
		`{` + at + `,"lap":2,"cars":[{"driver":"RUS","stops":4}]}`,
		`{"lap":2,"cars":[{"driver":"RUS"}]}`,
		`{` + at + `,"laptime":2}`,
		`[]`,
	} {
		said[line] = fmt.Sprint(must.Err(live.ParseLine([]byte(line))))
	}
	golden.Inputs(t, "testdata/lines.txt", said)
}

// TestLog writes a race from two processes at once. Both get the same files, and none twice.
func TestLog(t *testing.T) {
	store := memblob.New()
	logs := []*live.Log{{Store: store}, {Store: store}}
	done := make(chan error, len(logs))
	for i, log := range logs {
		go func() {
			for _, s := range race() {
				s.Received = s.Received.Add(time.Duration(i) * time.Second)
				if _, _, err := log.Append(t.Context(), monza, s.Observation); err != nil && !errors.Is(err, live.ErrHeld) { // over comes first
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range logs {
		must.Do(t, <-done)
	}
	first := must.Get((&live.Log{Store: store}).Refresh(t.Context(), 2024022))(t)
	got := len(first.Observations)
	must.Hold(t, got == 54 && first.Head.Seq == 54, "got %d files up to %d, want 50 laps and 4 phases", got, first.Head.Seq)
	for _, log := range logs {
		again, err := log.Refresh(t.Context(), 2024022)
		must.Hold(t, err == nil && again.Head == first.Head, "got head %v, %v; want %v", again.Head, err, first.Head)
	}
}

// TestLogRefuses names what the log leaves out, and what it calls a fault.
func TestLogRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		seen  []live.Observation
		last  live.Observation
		news  bool
		fault error
	}{
		{name: "a missing lap comes late", seen: []live.Observation{lap(1), lap(3)}, last: lap(2), news: true},
		{name: "a lap again", seen: []live.Observation{lap(1)}, last: lap(1)},
		{name: "a phase again", seen: []live.Observation{phase(live.Started, 0, 0)}, last: phase(live.Started, 0, 9)},
		{name: "a lap too far", seen: []live.Observation{lap(1)}, last: func() live.Observation { o := lap(2); o.Lap = 30; return o }(), fault: live.ErrImplausible},
		{name: "eight minutes of silence", seen: []live.Observation{lap(1)}, last: lap(7), news: true},
		{name: "a source while a person's order counts", seen: []live.Observation{hand(lap(1))}, last: lap(2), news: true},
		{name: "a phase while a person's order counts", seen: []live.Observation{hand(lap(1))}, last: phase(live.Suspended, 1, 5), news: true},
		{name: "a person corrects a source", seen: []live.Observation{lap(1)}, last: hand(lap(1)), news: true},
		{name: "a release without an order by hand", seen: []live.Observation{lap(1)}, last: live.Observation{Session: 2024022, At: start, Received: start, Released: true, Hand: true}, fault: live.ErrNoEffect},
	} {
		log := live.Log{Store: memblob.New()}
		for _, o := range tc.seen {
			if _, news, err := log.Append(t.Context(), monza, o); err != nil || !news {
				t.Fatalf("%s: %t, %v", tc.name, news, err)
			}
		}
		_, news, err := log.Append(t.Context(), monza, tc.last)
		must.Hold(t, news == tc.news && errors.Is(err, tc.fault), "%s: got news %t, %v; want %t, %v", tc.name, news, err, tc.news, tc.fault)
	}
}

// TestLogDamaged: a file that was replaced is reported and not read.
func TestLogDamaged(t *testing.T) {
	store := memblob.New()
	log := live.Log{Store: store}
	for n := 1; n < 4; n++ {
		must.Get2(log.Append(t.Context(), monza, lap(n)))(t)
	}
	const key = "live/2024022/00000002.json"
	object := must.Get(store.Get(context.Background(), key, 1<<20))(t)
	must.Get(store.Swap(t.Context(), key, object.Tag, []byte(strings.Replace(string(object.Data), "cat", "dog", 1))))(t)
	golden.Sentence(t, "a file was replaced", regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(fmt.Sprint(must.Err((&live.Log{Store: store}).Refresh(t.Context(), 2024022))), "HASH"))
}

// TestLogDamagedFile: a file that is no observation is damage, which an audit lists. It is no failure of the store.
func TestLogDamagedFile(t *testing.T) {
	for name, data := range map[string][]byte{
		"another form": []byte(`{"seq":1,"previous":"","format":1, "observation":{}}`),
		"too large":    make([]byte, blob.MaxDocument+1),
		"no JSON":      []byte("{"),
	} {
		store := memblob.New()
		must.Get(store.Create(t.Context(), "live/2024022/00000001.json", data))(t)
		_, err := (&live.Log{Store: store}).Refresh(t.Context(), 2024022)
		damage := (*chain.DamageError)(nil)
		must.Hold(t, errors.As(err, &damage) && damage.Key == "live/2024022/00000001.json", "%s: got %v, want the damage of the file", name, err)
	}
}
