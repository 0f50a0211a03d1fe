package ledger_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/memblob"
)

const anArchive = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// chances fit the pick of these tests.
var chances = []ledger.Chance{
	{Driver: "leclerc", Win: 410_000, Podium: 900_000},
	{Driver: "norris", Win: 300_000, Podium: 850_000},
	{Driver: "russell", Win: 200_000, Podium: 750_000},
	{Driver: "hamilton", Win: 90_000, Podium: 500_000},
}

// wholeChances are chances with the whole vectors.
var wholeChances = whole(nil)

func whole(edit func([]ledger.Chance)) []ledger.Chance {
	all := []ledger.Chance{
		{Driver: "leclerc", Win: 410_000, Podium: 900_000, Positions: []int{410_000, 300_000, 190_000, 50_000}, Points: 19_500_000, DNF: 50_000},
		{Driver: "norris", Win: 300_000, Podium: 850_000, Positions: []int{300_000, 300_000, 250_000, 80_000}, Points: 17_000_000, DNF: 70_000},
		{Driver: "russell", Win: 200_000, Podium: 750_000, Positions: []int{200_000, 250_000, 300_000, 180_000}, Points: 15_000_000, DNF: 70_000},
		{Driver: "hamilton", Win: 90_000, Podium: 500_000, Positions: []int{90_000, 150_000, 260_000, 400_000}, Points: 11_000_000, DNF: 100_000},
	}
	if edit != nil {
		edit(all)
	}
	return all
}

func fullFreeze(basis ledger.Basis) ledger.Event {
	e := ledger.Freeze(monaco, pick, start, basis == ledger.OnGrid)
	e.Archive, e.Basis, e.Chances = anArchive, basis, chances
	return e
}

// everyEvent has one event of each type with all the fields that the type may use.
func everyEvent() []ledger.Event {
	round := &ledger.RoundRecord{Key: monaco}
	evening := start.Add(8 * time.Hour)
	laps := []int{78, 77, 0}
	verified := round.Verify([]ledger.Row{
		{Driver: "leclerc", Team: "ferrari", Engine: "ferrari", Position: 1, Points: 25, Details: ledger.Details{Number: 16, Grid: 1, Laps: &laps[0], TimeMS: 8435123}},
		{Driver: "norris", Team: "mclaren", Engine: "mercedes", Position: 2, Points: 18, Details: ledger.Details{Number: 4, Grid: 2, Laps: &laps[0], GapMS: 2345}},
		{Driver: "russell", Team: "mercedes", Engine: "mercedes", Position: 3, Points: 15, Shared: true, Details: ledger.Details{Number: 63, Laps: &laps[1], GapLaps: 1}},
		{Driver: "stroll", Team: "aston-martin", Details: ledger.Details{Number: 18, Grid: 20, Laps: &laps[2], Status: season.DidNotFinish, Reason: "Accident"}},
	}, start, "appeal")
	verified.Result.Sprint = rows("norris")
	freeze := fullFreeze(ledger.OnQualifying)
	freeze.Chances = wholeChances
	freeze.Made = opened.Add(-time.Minute)
	seen, abroad := lap39, time.FixedZone("CEST", 2*3600) // the file has UTC
	seen.At = seen.At.In(abroad)
	live := ledger.FreezeLive(monaco, pick, start.In(abroad), 50, seen)
	live.Archive, live.Chances = anArchive, wholeChances
	onGrid := fullFreeze(ledger.OnGrid)
	onGrid.Chances = chances
	return []ledger.Event{
		{Type: ledger.Opened, Kind: ledger.Real, Archive: anArchive},
		keyEvent(monaco, 2026, "monaco"),
		{Type: ledger.ForecastNoted, Session: monaco, Step: season.Practice2, Model: "r2/1", Chances: chances, Archive: anArchive},
		freeze,
		onGrid,
		{Type: ledger.PickVoided, Session: monaco, Reason: "cancelled"},
		live,
		verified,
		{Type: ledger.ResultsVouched, Archive: anArchive, Rounds: []int64{2024001, 2024002}, Reason: "seasons before 2025"},
		{Type: ledger.RoundPostponed, Session: monaco, Was: start, Reason: "flood"},
		round.Cancel("flood")[0],
		round.Move(start, evening, "storm"),
		round.Reinstate(evening, "dry"),
		round.Release(evening, evening, "the source is right"),
		ledger.Rename("antonelli", "kimi-antonelli"),
		{Type: ledger.CodeChanged, Year: 2026, Driver: "kimi-antonelli", From: "ANT", To: "KIM", Reason: "the source changed it"},
		{Type: ledger.ChampionshipDecided, Year: 2026, Session: monaco, Reason: "fuel", Championship: &ledger.Championship{Constructors: true, Competitor: "lotus", Engine: "climax", Points: -7.5}},
		{Type: ledger.ChampionshipDecided, Year: 2026, Session: monaco, Reason: "collision", Championship: &ledger.Championship{Competitor: "leclerc", Excluded: true}},
		{Type: ledger.ChampionshipDecided, Year: 2026, Session: monaco, Reason: "sold", Championship: &ledger.Championship{Constructors: true, Competitor: "lotus", NewEntry: true}},
		{Type: ledger.ChampionshipDecided, Year: 2026, Session: monaco, Reason: "appeal", Championship: &ledger.Championship{Competitor: "leclerc", Restores: "A1"}},
		{Type: ledger.DriverWithdrawn, Session: monaco, Driver: "hamilton", Start: start},
		{Type: ledger.DriverReturned, Session: monaco, Driver: "hamilton", Start: start},
	}
}

// The bytes of a file never change, because outsiders hold us to them. The golden files have a file a type of event.
func TestBytesOfEveryEvent(t *testing.T) {
	var want []string
	for _, name := range []string{"testdata/format-3.jsonl", "testdata/format-4.jsonl"} {
		golden := must.Get(os.ReadFile(name))(t)
		want = append(want, strings.Split(strings.TrimSuffix(string(golden), "\n"), "\n")...)
	}
	types := map[ledger.Type]bool{}
	for i, e := range everyEvent() {
		e.ID, e.At, e.Actor = "A1", opened, "operator:anna"
		types[e.Type] = true
		file := ledger.File{Seq: 3, Previous: "ab12", Kind: ledger.Real, Events: one(e)}
		got := must.Get(file.Encode())(t)
		if i >= len(want) || string(got) != want[i] {
			t.Errorf("line %d of the golden file should be\n%s", i+1, got)
			continue
		}
		back := must.Get(ledger.DecodeFile(got))(t)
		must.Equal(t, fmt.Sprintf("%s read back", e.Type), file.Events, back.Events)
	}
	if len(want) != len(everyEvent()) || len(types) != 18 {
		t.Errorf("the golden files have %d lines and the test %d events of %d types, want 22 of 18", len(want), len(everyEvent()), len(types))
	}
}

// sealed gives bytes that were changed their right checksum again.
func sealed(text string) []byte {
	before, _, _ := strings.Cut(text, `"checksum":"`)
	sum := chain.Hash([]byte(before + `"checksum":""}`))
	return []byte(before + `"checksum":"` + sum + `"}`)
}

func TestOtherFormats(t *testing.T) {
	store := memblob.New()
	l := openWith(t, store)
	mustAppend(t, l, opened, fullFreeze(ledger.OnGrid))
	object := must.Get(store.Get(t.Context(), ledger.Key(3), blob.MaxDocument))(t)
	for name, tt := range map[string]struct {
		old, new string
		want     error // nil: damage
	}{
		"a later format":              {`"format":3`, `"format":5`, ledger.ErrNewer},
		"a later format's new fields": {`"format":3`, `"format":5,"weather":{"rain":true}`, ledger.ErrNewer},
		"a format without need":       {`"format":3`, `"format":4`, nil},
		"an earlier format":           {`"format":3`, `"format":2`, ledger.ErrEarlier},
		"the first format":            {`"format":3`, `"format":1`, ledger.ErrEarlier},
		"an earlier format's fields":  {`"format":3`, `"format":2,"at":7`, ledger.ErrEarlier},
		"no format":                   {`"format":3,`, ``, nil},
	} {
		store.Corrupt(ledger.Key(3), sealed(strings.Replace(string(object.Data), tt.old, tt.new, 1)))
		_, err := ledger.Load(t.Context(), store, ledger.Real)
		var damage *ledger.DamageError
		if tt.want != nil && !errors.Is(err, tt.want) || errors.As(err, &damage) != (tt.want == nil) {
			t.Errorf("%s: got %v, want %v, or damage for nil", name, err, tt.want)
		}
	}
}

// TestEventsAlone: the golden file has the refusal of each event by itself, or <nil>. The parts of a freeze agree with each
// other, and a live pick names the observation that it was made from.
func TestEventsAlone(t *testing.T) {
	said := make(map[string]string)
	try := func(kind, name, actor string, at time.Time, e ledger.Event) ledger.RoundRecord {
		l := openWith(t, newStore(t))
		err := appendBy(t, l, at, actor, e)
		said[kind+": "+name] = fmt.Sprint(err)
		must.Hold(t, kind != "code" || err != nil || l.Fold().Recoded(e.Year, e.Driver) == e.To, "%s: the code is %q", name, l.Fold().Recoded(e.Year, e.Driver))
		return session(t, l.Fold())
	}
	edit := func(change func(e *ledger.Event)) ledger.Event {
		e := fullFreeze(ledger.OnGrid)
		e.Chances = append([]ledger.Chance{}, e.Chances...)
		p := *e.Pick
		e.Pick = &p
		change(&e)
		return e
	}
	for name, e := range map[string]ledger.Event{
		"on the grid":                fullFreeze(ledger.OnGrid),
		"on qualifying":              fullFreeze(ledger.OnQualifying),
		"on form":                    fullFreeze(ledger.OnForm),
		"without chances":            edit(func(e *ledger.Event) { e.Chances = nil }),
		"rounded":                    edit(func(e *ledger.Event) { e.Chances[3].Win += 4; e.Chances[3].Podium -= 4 }),
		"on nothing known":           edit(func(e *ledger.Event) { e.Basis = "stars" }),
		"on form, with the grid":     edit(func(e *ledger.Event) { e.Basis = ledger.OnForm }),
		"on the grid, without it":    edit(func(e *ledger.Event) { e.GridKnown = false }),
		"an archive that is no hash": edit(func(e *ledger.Event) { e.Archive = "latest" }),
		"an archive in upper case":   edit(func(e *ledger.Event) { e.Archive = strings.ToUpper(anArchive) }),
		"half an archive":            edit(func(e *ledger.Event) { e.Archive = anArchive[:32] }),
		"another probability":        edit(func(e *ledger.Event) { e.Pick.WinProbability = 0.42 }),
		"a better driver than P1":    edit(func(e *ledger.Event) { e.Pick.P1, e.Pick.P2, e.Pick.WinProbability = "norris", "leclerc", 0.3 }),
		"without one who is picked":  edit(func(e *ledger.Event) { e.Pick.P3 = "verstappen" }),
		"a driver twice":             edit(func(e *ledger.Event) { e.Chances[3].Driver = "norris" }),
		"no chance of a podium":      edit(func(e *ledger.Event) { e.Chances[3].Podium = 1 }),
		"a certain podium":           edit(func(e *ledger.Event) { e.Chances[0].Podium += 100_000; e.Chances[3].Podium -= 100_000 }),
		"less than no failure":       edit(func(e *ledger.Event) { e.Chances[3].DNF = -1 }),
		"less than nothing":          edit(func(e *ledger.Event) { e.Chances[3].Win, e.Chances[2].Win = -1, 290_001 }),
		"more wins than one":         edit(func(e *ledger.Event) { e.Chances[3].Win += 5 }),
		"fewer podiums than three":   edit(func(e *ledger.Event) { e.Chances[3].Podium -= 5 }),
		"an observation":             edit(func(e *ledger.Event) { e.Observation = &lap39 }),
		"whole vectors":              edit(func(e *ledger.Event) { e.Chances = whole(nil) }),
		"positions of one driver":    edit(func(e *ledger.Event) { e.Chances[0].Positions = []int{410_000, 300_000, 190_000} }),
		"two positions": edit(func(e *ledger.Event) {
			e.Chances = whole(func(c []ledger.Chance) { c[2].Positions = c[2].Positions[:2] })
		}),
		"a win apart from its place": edit(func(e *ledger.Event) { e.Chances = whole(func(c []ledger.Chance) { c[2].Positions[0]++ }) }),
		"a podium of other places":   edit(func(e *ledger.Event) { e.Chances = whole(func(c []ledger.Chance) { c[2].Positions[1] -= 4 }) }),
		"a place below nothing":      edit(func(e *ledger.Event) { e.Chances = whole(func(c []ledger.Chance) { c[2].Positions[3] = -1 }) }),
		"a place for too many": edit(func(e *ledger.Event) {
			e.Chances = whole(func(c []ledger.Chance) {
				for i, chance := range []int{100_004, 150_004, 250_004, 500_004} {
					c[i].Positions[3], c[i].DNF = chance, 0
				}
			})
		}),
		"in too many places": edit(func(e *ledger.Event) { e.Chances = whole(func(c []ledger.Chance) { c[3].DNF += 6 }) }),
		"rounded in all places": edit(func(e *ledger.Event) {
			e.Chances = whole(func(c []ledger.Chance) { c[3].DNF += 5; c[2].Podium -= 3 })
		}),
		"one who cannot start": edit(func(e *ledger.Event) {
			e.Chances = append(whole(nil), ledger.Chance{Driver: "stroll", Positions: make([]int, 4), DNF: ledger.Certain})
		}),
		"a certain last": edit(func(e *ledger.Event) {
			e.Chances = append(whole(func(c []ledger.Chance) {
				for i := range c {
					c[i].Positions[3] = min(i, 2) // 5 in all, the most by rounding
				}
			}), ledger.Chance{Driver: "stroll", Positions: []int{0, 0, 0, ledger.Certain}})
		}),
		"fewer points than none": edit(func(e *ledger.Event) { e.Chances = whole(func(c []ledger.Chance) { c[0].Points = -1 }) }),
		"an empty list":          edit(func(e *ledger.Event) { e.Chances = []ledger.Chance{} }),
	} {
		if got := try("freeze", name, "builder", start.Add(-time.Hour), e).Pick; got != nil && (got.Archive != anArchive || got.Basis != e.Basis || !cmp.Equal(got.Chances, e.Chances)) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	try("freeze", "by nobody", "", start.Add(-time.Hour), fullFreeze(ledger.OnGrid))
	at := start.Add(time.Hour)
	for name, seen := range map[string]ledger.Observation{
		"during the race":      lap39,
		"at this instant":      {Lap: 1, SHA256: anArchive, At: at},
		"without a lap":        {SHA256: anArchive, At: at},
		"without an instant":   {Lap: 39, SHA256: anArchive},
		"without a digest":     {Lap: 39, At: at},
		"with another digest":  {Lap: 39, SHA256: "latest", At: at},
		"at the start":         {Lap: 1, SHA256: anArchive, At: start},
		"from the future":      {Lap: 39, SHA256: anArchive, At: at.Add(1)},
		"of a lap before zero": {Lap: -1, SHA256: anArchive, At: at},
	} {
		try("live pick", name, "builder", at, ledger.FreezeLive(monaco, pick, start, 50, seen))
	}
	for name, c := range map[string][2]string{
		"another code": {"ANT", "KIM"}, "the same": {"ANT", "ANT"}, "two letters": {"ANT", "AN"}, "lower case": {"ant", "KIM"}, "a digit": {"ANT", "AN1"},
	} {
		try("code", name, "builder", opened, ledger.Event{Type: ledger.CodeChanged, Year: 2026, Driver: "kimi-antonelli", From: c[0], To: c[1]})
	}
	try("code", "by a source", ledger.SourceActor("f1db", "abc"), opened, ledger.Event{Type: ledger.CodeChanged, Year: 2026, Driver: "kimi-antonelli", From: "ANT", To: "KIM"})
	golden.Inputs(t, "testdata/events.txt", said)
	t.Run("live", func(t *testing.T) {
		l := openWith(t, newStore(t))
		e := ledger.FreezeLive(monaco, pick, start, 50, lap39)
		e.Chances = chances
		mustAppend(t, l, start.Add(time.Hour), e)
		s := session(t, l.Fold())
		if got := s.LivePick(50); got.Observation != lap39 || !cmp.Equal(got.Chances, chances) {
			t.Errorf("got %+v", got)
		}
	})
}

// A forecast is noted once for each session of the weekend, until the result is verified.
func TestRulesOfForecasts(t *testing.T) {
	forecast := func(step season.SessionKind, chances []ledger.Chance) ledger.Event {
		return ledger.Event{Type: ledger.ForecastNoted, Session: monaco, Step: step, Model: "r2/1", Chances: chances}
	}
	store := newStore(t)
	l := openWith(t, store)
	for _, tt := range []struct {
		name  string
		event ledger.Event
		want  error
	}{
		{"after practice", forecast(season.Practice1, chances), nil},
		{"after practice again", forecast(season.Practice1, wholeChances), ledger.ErrUnchanged},
		{"after qualifying", forecast(season.Qualifying, wholeChances), nil},
		{"after no session", forecast("warm-up", chances), errAny},
		{"with chances that do not add up", forecast(season.Sprint, chances[:2]), errAny},
		{"without a model", ledger.Event{Type: ledger.ForecastNoted, Session: monaco, Step: season.Sprint, Chances: chances}, errAny},
	} {
		ends(t, tt.name, tt.want, appendEvents(t.Context(), l, opened, tt.event))
	}
	mustAppend(t, l, opened, ledger.Rename("leclerc", "charles-leclerc"))
	s := session(t, l.Fold())
	if got := s.Forecasts; len(got) != 2 || got[1].Step != season.Qualifying || got[1].Model != "r2/1" || got[1].Chances[0].Driver != "charles-leclerc" {
		t.Errorf("got %+v, want those after practice and qualifying, with the current id", got)
	}
	mustAppend(t, l, start.Add(time.Hour), s.Verify(rows("leclerc"), start, ""))
	must.Fail(t, "after the result", appendEvents(t.Context(), l, start.Add(time.Hour), forecast(season.Sprint, chances)), ledger.ErrAlreadyVerified)
	mustBeGreen(t, store)
}

// A person decides on a championship from a round of its season on; a decision is restored once.
func TestRulesOfChampionships(t *testing.T) {
	store := newStore(t)
	l := openWith(t, store)
	decide := func(c ledger.Championship) ledger.Event {
		return ledger.Event{Type: ledger.ChampionshipDecided, Year: 2026, Session: monaco, Reason: "stewards", Championship: &c}
	}
	taken := ledger.Championship{Competitor: "leclerc", Points: -5.5}
	mustAppend(t, l, opened, decide(taken))
	id := l.Fold().Championship(2026)[0].EventID
	restore := ledger.Championship{Competitor: "leclerc", Restores: id}
	for _, tt := range []struct {
		name  string
		event ledger.Event
		want  error
	}{
		{"points added", decide(ledger.Championship{Competitor: "leclerc", Points: 3}), nil},
		{"the same points again", decide(taken), nil},
		{"an exclusion", decide(ledger.Championship{Competitor: "norris", Excluded: true}), nil},
		{"an exclusion again", decide(ledger.Championship{Competitor: "norris", Excluded: true}), ledger.ErrUnchanged},
		{"a team of that name", decide(ledger.Championship{Constructors: true, Competitor: "norris", Excluded: true}), nil},
		{"an entry anew", decide(ledger.Championship{Constructors: true, Competitor: "lotus", NewEntry: true}), nil},
		{"another's entry anew", decide(ledger.Championship{Constructors: true, Competitor: "brabham", NewEntry: true}), nil},
		{"an entry anew from the same round", decide(ledger.Championship{Constructors: true, Competitor: "lotus", NewEntry: true}), ledger.ErrUnchanged},
		{"a driver anew", decide(ledger.Championship{Competitor: "norris", NewEntry: true}), errAny},
		{"nothing", decide(ledger.Championship{Competitor: "norris"}), errAny},
		{"two things", decide(ledger.Championship{Competitor: "norris", Points: 1, NewEntry: true}), errAny},
		{"nobody", decide(ledger.Championship{Points: 1}), errAny},
		{"points of no number", decide(ledger.Championship{Competitor: "norris", Points: math.Inf(-1)}), errAny},
		{"another season", func() ledger.Event { e := decide(taken); e.Year = 2025; return e }(), errAny},
		{"an unknown round", func() ledger.Event { e := decide(taken); e.Session++; return e }(), ledger.ErrUnknownSession},
		{"without a reason", func() ledger.Event { e := decide(taken); e.Reason = ""; return e }(), errAny},
		{"somebody else's restored", decide(ledger.Championship{Competitor: "norris", Restores: id}), errAny},
		{"restored", decide(restore), nil},
		{"restored again", decide(restore), ledger.ErrUnchanged},
	} {
		ends(t, tt.name, tt.want, appendEvents(t.Context(), l, opened, tt.event))
	}
	_, err := decideOn(t.Context(), l, opened, ledger.SourceActor("f1db", "abc"), func(*ledger.Fold) ([]ledger.Event, error) { return []ledger.Event{decide(taken)}, nil })
	if err == nil {
		t.Error("a source decided on a championship, want it refused")
	}
	mustAppend(t, l, opened, ledger.Rename("leclerc", "charles-leclerc"), ledger.Rename("norris", "lando-norris"))
	stand := l.Fold().Championship(2026)
	must.Fail(t, "a trial of no number", must.Err(l.Fold().Trial(opened, one(decide(ledger.Championship{Competitor: "norris", Points: math.NaN()})))))
	must.Fail(t, "an exclusion of that team again", appendEvents(t.Context(), l, opened, decide(ledger.Championship{Constructors: true, Competitor: "norris", Excluded: true})), ledger.ErrUnchanged)
	if len(stand) != 6 || stand[0].Points != 3 || stand[1].Competitor != "charles-leclerc" || stand[3].Competitor != "norris" || len(l.Fold().AllChampionship(2026)) != 8 {
		t.Errorf("got %+v, want six decisions that stand, of drivers with their current ids, and of the team norris", stand)
	}
	mustAppend(t, l, opened, decide(ledger.Championship{Competitor: "leclerc", Restores: stand[1].EventID})) // by an earlier id
	mustBeGreen(t, store)
}

// An imported archive vouches for the rounds that the event names, also if the opening archive had no results.
func TestImportedArchiveVouches(t *testing.T) {
	vouch := func(rounds ...int64) ledger.Event {
		return ledger.Event{Type: ledger.ResultsVouched, Archive: anArchive, Rounds: rounds}
	}
	store := newStore(t)
	l := must.Get(ledger.Open(t.Context(), store, ledger.Real, opened, "builder", anArchive))(t)
	mustAppend(t, l, opened, keysEvent(key(2024001, 2024, "bahrain"), key(2025001, 2025, "australia"), key(monaco, 2026, "monaco"), key(2027001, 2027, "china")))
	mustAppend(t, l, start.Add(time.Hour), (&ledger.RoundRecord{Key: monaco}).Verify(rows("leclerc"), opened.Add(-time.Hour), ""))
	earlier := l.Fold()
	l.Vouch(&season.View{Facts: season.Facts{Seasons: []season.Season{calendar(2024, "bahrain")}}}) // the opening archive had no results
	must.Hold(t, earlier.Vouches(2024, "bahrain", opened.Add(-1)), "a fold has changed")
	must.Hold(t, !l.UpTo(2).Vouches(2024, "bahrain", opened.Add(-1)), "the past forgets the results of the opening archive")
	must.Equal(t, "the first result as a change, of one that the archive may have had", []int{1, 0}, []int{len(earlier.Log()), len(l.Fold().Log())})
	for _, tt := range []struct {
		name, actor string
		event       ledger.Event
		want        error
	}{
		{"by a source", ledger.SourceActor("f1db", "3f2a"), vouch(2024001), errAny},
		{"for no round", "operator:anna", vouch([]int64{}...), errAny},
		{"for an unknown round", "operator:anna", vouch(2024009), ledger.ErrUnknownSession},
		{"in another order", "operator:anna", vouch(2025001, 2024001), errAny},
		{"for a round twice", "operator:anna", vouch(2024001, 2024001), errAny},
		{"for a verified result", "operator:anna", vouch(monaco), ledger.ErrAlreadyVerified},
		{"for a later season", "operator:anna", vouch(2027001), errAny},
		{"without an archive", "operator:anna", ledger.Event{Type: ledger.ResultsVouched, Rounds: []int64{2024001}}, errAny},
		{"for a season before", "operator:anna", vouch(2024001), nil},
	} {
		if got := l.Fold().Vouches(2024, "bahrain", opened.Add(-1)); got {
			t.Errorf("before the case %s it vouches", tt.name)
		}
		ends(t, tt.name, tt.want, appendBy(t, l, start.Add(2*time.Hour), tt.actor, tt.event))
	}
	for _, tt := range []struct {
		gp    season.GrandPrixID
		year  int
		known time.Time
		want  bool
	}{
		{"bahrain", 2024, opened.Add(-1), true},
		{"bahrain", 2024, opened, false}, // known when the ledger was open already
		{"australia", 2025, opened.Add(-1), false},
	} {
		must.Equal(t, fmt.Sprintf("vouches for %s of %d, known at %s", tt.gp, tt.year, tt.known), tt.want, l.Fold().Vouches(tt.year, tt.gp, tt.known))
	}
	mustBeGreen(t, store)
	unnamed := openWith(t, newStore(t)) // the instant alone decides
	unnamed.Vouch(&season.View{})
	must.Hold(t, unnamed.Fold().Vouches(2024, "bahrain", opened.Add(-1)), "a ledger that names no archive vouches for no result")
}

// Details travel with a row, and no decision depends on them.
func TestDetailsOfRows(t *testing.T) {
	laps, none := 78, -1
	edit := func(row int, change func(*ledger.Row)) []ledger.Row {
		classified := append(rows("leclerc", "norris", "russell"), ledger.Row{Driver: "stroll", Team: "aston-martin"})
		change(&classified[row])
		return classified
	}
	for name, tt := range map[string]struct {
		rows []ledger.Row
		ok   bool
	}{
		"none":                       {edit(0, func(*ledger.Row) {}), true},
		"the winner's":               {edit(0, func(r *ledger.Row) { r.TimeMS, r.Laps, r.Grid, r.Number = 8435123, &laps, 1, 16 }), true},
		"a gap":                      {edit(1, func(r *ledger.Row) { r.GapMS = 2345 }), true},
		"a lapped car":               {edit(1, func(r *ledger.Row) { r.GapLaps = 1 }), true},
		"a retirement":               {edit(3, func(r *ledger.Row) { r.Status, r.Reason = season.DidNotFinish, "Accident" }), true},
		"a status with a place":      {edit(0, func(r *ledger.Row) { r.Status = season.DidNotFinish }), false},
		"a status nobody knows":      {edit(3, func(r *ledger.Row) { r.Status = "tired" }), false},
		"the second with a time":     {edit(1, func(r *ledger.Row) { r.TimeMS = 8435123 }), false},
		"a retirement with a gap":    {edit(3, func(r *ledger.Row) { r.GapLaps = 2 }), false},
		"a gap in time and laps":     {edit(1, func(r *ledger.Row) { r.GapMS, r.GapLaps = 1, 1 }), false},
		"out on the first lap":       {edit(3, func(r *ledger.Row) { r.Laps = new(int) }), true},
		"laps below zero":            {edit(1, func(r *ledger.Row) { r.Laps = &none }), false},
		"a gap to somebody behind":   {edit(1, func(r *ledger.Row) { r.GapMS = -1 }), false},
		"a number below zero":        {edit(1, func(r *ledger.Row) { r.Number = -1 }), false},
		"a place on the grid before": {edit(1, func(r *ledger.Row) { r.Grid = -1 }), false},
	} {
		l := openWith(t, newStore(t))
		s := session(t, l.Fold())
		err := appendEvents(t.Context(), l, start.Add(time.Hour), s.Verify(tt.rows, start, ""))
		must.Hold(t, (err == nil) == tt.ok, "%s: got %v, want accepted: %t", name, err, tt.ok)
		if !tt.ok {
			golden.Sentence(t, t.Name()+"/"+name, err)
			continue
		}
		s = session(t, l.Fold())
		must.Equal(t, name, tt.rows, s.Result().Rows)
		bare := edit(0, func(*ledger.Row) {})
		must.Fail(t, name+": a revision of the details alone", appendEvents(t.Context(), l, start.Add(time.Hour), s.Verify(bare, start, "again")), ledger.ErrUnchanged)
	}
}

// A pick on qualifying outlasts a postponement, one on form does not.
func TestPostponedByBasis(t *testing.T) {
	for basis, stands := range map[ledger.Basis]bool{ledger.OnGrid: true, ledger.OnQualifying: true, ledger.OnForm: false} {
		l := openWith(t, newStore(t))
		mustAppend(t, l, start.Add(-2*time.Hour), fullFreeze(basis))
		s := session(t, l.Fold())
		mustAppend(t, l, start.Add(-time.Hour), s.Postpone(time.Time{}, "flood")...)
		s = session(t, l.Fold())
		must.Equal(t, "the start until then, which the pick has", start, s.Override.Changes[0].Valid)
		if (s.Pick != nil) != stands || (len(s.Voided) == 0) != stands {
			t.Errorf("%s: pick %+v, voided %+v; want it to stand: %t", basis, s.Pick, s.Voided, stands)
		}
	}
}

func appendBy(t *testing.T, l *ledger.Ledger, at time.Time, actor string, events ...ledger.Event) error {
	t.Helper()
	_, err := decideOn(t.Context(), l, at, actor, func(*ledger.Fold) ([]ledger.Event, error) { return events, nil })
	return err
}

// A driver keeps the first id through every renaming by a source, but not by a person. An id in between is free for another driver.
func TestLasting(t *testing.T) {
	l := openWith(t, newStore(t))
	for _, renamed := range [][2]season.DriverID{{"max", "max-v"}, {"max-v", "verstappen"}} {
		must.Get(decideOn(t.Context(), l, opened, ledger.SourceActor("f1db", "3f2a"), func(*ledger.Fold) ([]ledger.Event, error) {
			return one(ledger.Rename(renamed[0], renamed[1])), nil
		}))(t)
	}
	mustAppend(t, l, opened, ledger.Rename("checo", "perez"))
	for id, want := range map[season.DriverID]season.DriverID{"verstappen": "max", "max-v": "max-v", "perez": "perez", "norris": "norris"} {
		must.Hold(t, l.Fold().Lasting(id) == want, "%s: got %s, want %s", id, l.Fold().Lasting(id), want)
	}
}

// Sources move and postpone. They change a person's decision only after its release.
func TestSourcesAndPersons(t *testing.T) {
	source, revision, ok := ledger.SourceOf(ledger.SourceActor("f1db", "abc"))
	must.Hold(t, ok && source == "f1db" && revision == "abc", "got the source %q at %q, %t", source, revision, ok)
	const anna = "operator:anna"
	f1db := ledger.SourceActor("f1db", "3f2a")
	later, evening := start.Add(3*time.Hour), start.Add(8*time.Hour)
	type act struct {
		actor  string
		events func(s ledger.RoundRecord) []ledger.Event
		want   error
	}
	move := func(was, to time.Time) func(ledger.RoundRecord) []ledger.Event {
		return func(s ledger.RoundRecord) []ledger.Event { return one(s.Move(was, to, "the calendar says so")) }
	}
	postpone := func(s ledger.RoundRecord) []ledger.Event {
		return s.Postpone(time.Time{}, "it is gone from the calendar")
	}
	reinstate := func(to time.Time) func(ledger.RoundRecord) []ledger.Event {
		return func(s ledger.RoundRecord) []ledger.Event { return one(s.Reinstate(to, "it is back")) }
	}
	release := func(was, to time.Time) func(ledger.RoundRecord) []ledger.Event {
		return func(s ledger.RoundRecord) []ledger.Event { return one(s.Release(was, to, "the source is right now")) }
	}
	cancel := func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") }
	for name, acts := range map[string][]act{
		"a source moves, and again":                   {{f1db, move(start, later), nil}, {f1db, move(later, evening), nil}},
		"a source postpones and reinstates":           {{f1db, postpone, nil}, {f1db, reinstate(later), nil}, {f1db, move(later, evening), nil}},
		"a source cancels":                            {{f1db, cancel, errAny}},
		"a source moves what a person moved":          {{anna, move(start, later), nil}, {f1db, move(later, evening), ledger.ErrByPerson}},
		"a source postpones it":                       {{anna, move(start, later), nil}, {f1db, postpone, ledger.ErrByPerson}},
		"a source reinstates what a person cancelled": {{anna, cancel, nil}, {f1db, reinstate(later), ledger.ErrByPerson}},
		"a person moves what a source moved":          {{f1db, move(start, later), nil}, {anna, move(later, evening), nil}},
		"released, the source moves it":               {{anna, move(start, later), nil}, {anna, release(later, later), nil}, {f1db, move(later, evening), nil}},
		"released to another start":                   {{anna, move(start, later), nil}, {anna, release(later, evening), nil}, {f1db, move(evening, later), nil}},
		"released to the past":                        {{anna, move(start, later), nil}, {anna, release(later, opened), ledger.ErrPast}},
		"released from where it is not":               {{anna, move(start, later), nil}, {anna, release(start, evening), errAny}},
		"released by a source":                        {{anna, move(start, later), nil}, {f1db, release(later, later), errAny}},
		"released, but nobody held it":                {{anna, release(start, start), ledger.ErrUnchanged}},
		"released, but a source moved it":             {{f1db, move(start, later), nil}, {anna, release(later, later), ledger.ErrUnchanged}},
		"reinstated by a person without a start":      {{anna, postpone, nil}, {anna, reinstate(time.Time{}), nil}, {f1db, move(start, later), nil}},
		"cancelled after a move, reinstated without a start": {
			{f1db, move(start, later), nil}, {anna, cancel, nil}, {anna, reinstate(time.Time{}), nil}, {f1db, move(start, evening), nil},
		},
		"reinstated by a person with one": {{anna, postpone, nil}, {anna, reinstate(later), nil}, {f1db, move(later, evening), ledger.ErrByPerson}},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			l := openWith(t, store)
			for i, a := range acts {
				ends(t, fmt.Sprint("act ", i+1), a.want, appendBy(t, l, start.Add(-time.Hour), a.actor, a.events(session(t, l.Fold()))...))
			}
			mustBeGreen(t, store)
		})
	}
	t.Run("freezes go by it", func(t *testing.T) {
		l := openWith(t, newStore(t))
		s := session(t, l.Fold())
		must.Do(t, appendBy(t, l, opened, f1db, s.Move(start, later, "the calendar says so")))
		must.Fail(t, "a pick was frozen for the start of before", appendEvents(t.Context(), l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true)))
		mustAppend(t, l, start.Add(time.Hour), ledger.Freeze(monaco, pick, later, true))
	})
}

// Drivers keep their ids in the files, and have the current ones in the state.
func TestRenamedDriver(t *testing.T) {
	store := newStore(t)
	l := openWith(t, store)
	mustAppend(t, l, start.Add(-5*time.Hour), ledger.Freeze(monaco, pick, start, false))
	s := session(t, l.Fold())
	mustAppend(t, l, start.Add(-4*time.Hour), s.Postpone(start, "flood")...) // voids the pick
	mustAppend(t, l, start.Add(-4*time.Hour), s.Reinstate(start, "dry"))
	mustAppend(t, l, start.Add(-3*time.Hour), fullFreeze(ledger.OnGrid))
	mustAppend(t, l, start.Add(-2*time.Hour), ledger.Event{Type: ledger.DriverWithdrawn, Session: monaco, Driver: "leclerc", Start: start})
	mustAppend(t, l, start.Add(time.Hour), ledger.FreezeLive(monaco, pick, start, 50, lap39))
	s = session(t, l.Fold())
	before := l.Fold()
	mustAppend(t, l, start.Add(2*time.Hour), s.Verify(rows("leclerc", "norris", "russell"), start, ""))
	mustAppend(t, l, start.Add(3*time.Hour), ledger.Rename("leclerc", "charles-leclerc"))

	check := func(state *ledger.Fold, want season.DriverID) {
		t.Helper()
		s := session(t, state)
		if s.Pick.P1 != want || s.Pick.Chances[0].Driver != want || s.Live[0].P1 != want {
			t.Errorf("picks: got %s, %s, %s; want %s", s.Pick.P1, s.Pick.Chances[0].Driver, s.Live[0].P1, want)
		}
		if s.Voided[0].P1 != want || s.Withdrawals[0].Driver != want {
			t.Errorf("got the void pick of %s and the withdrawal of %s; want %s", s.Voided[0].P1, s.Withdrawals[0].Driver, want)
		}
		if r := s.Result(); r != nil && r.Revision == 1 && r.Winner() != want {
			t.Errorf("winner: got %s, want %s", r.Winner(), want)
		}
		if got := state.Driver("leclerc"); got != want {
			t.Errorf("leclerc is now %s, want %s", got, want)
		}
	}
	check(l.Fold(), "charles-leclerc")
	other := openWith(t, newStore(t))
	must.Do(t, appendBy(t, other, start.Add(-3*time.Hour), ledger.SourceActor("f1db", "abc"), ledger.Rename("leclerc", "charles-leclerc")))
	mustAppend(t, other, start.Add(-2*time.Hour), fullFreeze(ledger.OnGrid)) // an older program still writes the old id
	mustAppend(t, other, start.Add(-1*time.Hour), ledger.Event{Type: ledger.DriverWithdrawn, Session: monaco, Driver: "charles-leclerc", Start: start})
	for _, logged := range other.Fold().Log() {
		must.Equal(t, "the driver in the log", season.DriverID("leclerc"), logged.Driver)
	}
	check(before, "leclerc") // an earlier fold never changes
	if got := l.Files()[2].Events[0].Pick.P1; got != "leclerc" {
		t.Errorf("the file says %s, want the id of then", got)
	}

	s = session(t, l.Fold())
	for actor, err := range map[string]error{
		"nothing is corrected by a name": appendEvents(t.Context(), l, start.Add(4*time.Hour), s.Verify(rows("leclerc", "norris", "russell"), start, "again")),
		"renamed twice":                  appendEvents(t.Context(), l, start.Add(4*time.Hour), ledger.Rename("leclerc", "charles-leclerc")),
		"to the same":                    appendEvents(t.Context(), l, start.Add(4*time.Hour), ledger.Rename("x", "x")),
	} {
		if !errors.Is(err, ledger.ErrUnchanged) {
			t.Errorf("%s: got %v, want ErrUnchanged", actor, err)
		}
	}
	// An older program still writes the old id; another rename follows; and one goes back.
	mustAppend(t, l, start.Add(5*time.Hour), s.Verify(rows("norris", "leclerc", "russell"), start, "a penalty"))
	s = session(t, l.Fold())
	if got := s.Result().Rows[1].Driver; got != "charles-leclerc" {
		t.Errorf("an old id in a new event: got %s", got)
	}
	mustAppend(t, l, start.Add(6*time.Hour), ledger.Rename("checo", "perez"), ledger.Rename("charles-leclerc", "c-leclerc"))
	aliases := map[season.DriverID]season.DriverID{"checo": "perez", "leclerc": "c-leclerc", "charles-leclerc": "c-leclerc"}
	must.Equal(t, "renamed twice", aliases, l.Fold().Aliases())
	mustAppend(t, l, start.Add(7*time.Hour), ledger.Rename("c-leclerc", "leclerc"))
	aliases = map[season.DriverID]season.DriverID{"checo": "perez", "c-leclerc": "leclerc", "charles-leclerc": "leclerc"}
	must.Equal(t, "renamed back", aliases, l.Fold().Aliases())
	check(l.Fold(), "leclerc")
	mustBeGreen(t, store)
}

// The archive vouches for a result that it got later, but not for news.
func TestVouching(t *testing.T) {
	store := newStore(t)
	l := must.Get(ledger.Open(t.Context(), store, ledger.Real, opened, "builder", anArchive))(t)
	if got := l.Fold().OpenedOn(); got != anArchive {
		t.Errorf("opened on %q, want %s", got, anArchive)
	}
	mustAppend(t, l, opened, keysEvent(key(2024001, 2024, "bahrain"), key(2025001, 2025, "australia"), key(monaco, 2026, "monaco"), key(2027001, 2027, "china")))
	verify := func(session int64) ledger.Event {
		return (&ledger.RoundRecord{Key: session}).Verify(rows("leclerc", "norris", "russell"), start, "")
	}
	week := start.Add(ledger.ArchiveDelay)
	for _, tt := range []struct {
		name  string
		at    time.Time
		event ledger.Event
		ok    bool
	}{
		{"too soon", week.Add(-1), verify(monaco), false},
		{"a year that was over long before", week, verify(2024001), false},
		{"a year that comes", week, verify(2027001), false},
		{"the year before", week, verify(2025001), true},
		{"a week after the start", week, verify(monaco), true},
		{"a correction", week, ledger.Event{
			Type: ledger.ResultVerified, Session: monaco, Start: start, Reason: "it has another one now",
			Result: &ledger.Classification{Revision: 2, Rows: rows("norris", "russell", "piastri")},
		}, false},
	} {
		err := appendBy(t, l, tt.at, ledger.ArchiveActor, tt.event)
		must.Hold(t, (err == nil) == tt.ok, "%s: got %v, want accepted: %t", tt.name, err, tt.ok)
		golden.Sentence(t, t.Name()+"/"+tt.name, err)
	}
	mustBeGreen(t, store)
}

// A verification covers the weekend: the sprint is corrected with the race, or by itself.
func TestSprintIsVerifiedWithTheRace(t *testing.T) {
	l := openWith(t, newStore(t))
	verify := func(at time.Time, race, sprint []ledger.Row, reason string) error {
		s := session(t, l.Fold())
		e := s.Verify(race, start, reason)
		e.Result.Sprint = sprint
		return appendEvents(t.Context(), l, at, e)
	}
	race, sprint := rows("leclerc", "norris"), rows("norris", "leclerc")
	must.Fail(t, "a sprint that nobody won was accepted", verify(start.Add(time.Hour), race, []ledger.Row{{Driver: "norris", Team: "x", Position: 2}}, ""))
	must.Do(t, verify(start.Add(time.Hour), race, sprint, ""))
	if err := verify(start.Add(2*time.Hour), race, sprint, "again"); !errors.Is(err, ledger.ErrUnchanged) {
		t.Errorf("the same again: got %v", err)
	}
	must.Do(t, verify(start.Add(2*time.Hour), rows("norris", "leclerc"), nil, "a penalty in the race"))
	s := session(t, l.Fold())
	must.Equal(t, "the sprint after a correction of the race", sprint, s.Result().Sprint)
	must.Do(t, verify(start.Add(3*time.Hour), rows("norris", "leclerc"), rows("leclerc", "norris"), "a penalty in the sprint"))
	s = session(t, l.Fold())
	if got := s.Result(); got.Revision != 3 || got.Sprint[0].Driver != "leclerc" {
		t.Errorf("got %+v", got)
	}
}

func TestTextsArePrintable(t *testing.T) {
	l := openWith(t, newStore(t))
	s := session(t, l.Fold())
	for name, reason := range map[string]string{"an escape": "\x1b[2J", "a line break": "a\nb", "no end": strings.Repeat("a", chain.MaxText+1)} {
		var refused *ledger.RefusedError
		if err := appendEvents(t.Context(), l, opened, s.Cancel(reason)...); !errors.As(err, &refused) {
			t.Errorf("a reason with %s: got %v, want a refusal", name, err)
		}
		if _, err := l.Fold().Trial(opened, s.Cancel(reason)); !errors.As(err, &refused) {
			t.Errorf("a trial of a reason with %s: got %v, want a refusal", name, err)
		}
	}
	must.Fail(t, "an actor with a bell was accepted", appendBy(t, l, opened, "operator:\a", s.Cancel("flood")...))
	// A reader accepts a text of another program.
	store := memblob.New()
	l = openWith(t, store)
	plant(t, store, opened, ledger.Event{Type: ledger.RoundCancelled, Session: monaco, Reason: "a\nb"})
	if _, err := l.Refresh(t.Context()); err != nil || len(l.Fold().Breaches()) > 0 {
		t.Errorf("a reason with a line break: %v, breaches %v", err, l.Fold().Breaches())
	}
}

func TestWhatAnEventSays(t *testing.T) {
	s := &ledger.RoundRecord{Key: monaco}
	decided := func(c ledger.Championship) ledger.Event {
		c.Competitor = "lotus"
		return ledger.Event{Type: ledger.ChampionshipDecided, Year: 2026, Reason: "fuel", Championship: &c}
	}
	for want, e := range map[string]ledger.Event{
		"real":                                  {Type: ledger.Opened, Kind: ledger.Real},
		"1 keys":                                keyEvent(monaco, 2026, "monaco"),
		"revision 1, won by":                    s.Verify(nil, start, ""),
		"leclerc 41.0 %, norris, russell":       ledger.Freeze(monaco, pick, start, true),
		"revision 1, won by norris":             s.Verify([]ledger.Row{{Driver: "leclerc", Position: 2}, {Driver: "norris", Position: 1}}, start, ""),
		"to 2026-06-07 13:00:00Z storm":         s.Move(opened, start, "storm"),
		"dry":                                   s.Reinstate(time.Time{}, "dry"),
		"flood":                                 s.Cancel("flood")[0],
		"antonelli to kimi-antonelli":           ledger.Rename("antonelli", "kimi-antonelli"),
		"after qualifying by r2/1":              {Type: ledger.ForecastNoted, Session: monaco, Step: season.Qualifying, Model: "r2/1", Chances: chances},
		"2 rounds an import":                    {Type: ledger.ResultsVouched, Archive: anArchive, Rounds: []int64{2024001, 2024002}, Reason: "an import"},
		"antonelli of 2026, ANT to KIM":         {Type: ledger.CodeChanged, Year: 2026, Driver: "antonelli", From: "ANT", To: "KIM"},
		"hamilton":                              {Type: ledger.DriverWithdrawn, Session: monaco, Driver: "hamilton", Start: start},
		"lotus of 2026: 7.5 points taken, fuel": decided(ledger.Championship{Points: -7.5}),
		"lotus of 2026: 7.5 points added, fuel": decided(ledger.Championship{Points: 7.5}),
		"lotus of 2026: 0 points added, fuel":   decided(ledger.Championship{}), // of another program
		"lotus of 2026: restored, fuel":         decided(ledger.Championship{Restores: "an-id"}),
	} {
		must.Equal(t, string(e.Type), want, e.String())
	}
}
