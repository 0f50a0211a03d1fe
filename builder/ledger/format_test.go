package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
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

func fullFreeze(basis ledger.Basis) ledger.Event {
	e := ledger.Freeze(monaco, pick, start, basis == ledger.OnGrid)
	e.Archive, e.Basis, e.Chances = anArchive, basis, chances
	return e
}

// The bytes of a file of format 2 never change either. A file that says nothing new is as before:
// see TestFileBytes.
func TestFileBytesOfFormat2(t *testing.T) {
	freeze := fullFreeze(ledger.OnQualifying)
	freeze.Chances = chances[:2]
	freeze.ID, freeze.At, freeze.Made, freeze.Actor = "A1", opened.Add(time.Hour), opened, "builder"
	file := ledger.File{Seq: 3, Previous: "ab12", Kind: ledger.Real, Events: one(freeze)}
	got, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"seq":3,"previous":"ab12","format":2,"kind":"real","events":[{"id":"A1","type":"pick_frozen","at":"2026-06-01T10:00:00Z",` +
		`"actor":"builder","session_key":2026008,"pick":{"p1":"leclerc","p2":"norris","p3":"russell","win_probability":0.41,` +
		`"model":"r2/1"},"start":"2026-06-07T13:00:00Z","made_at":"2026-06-01T09:00:00Z","archive":"` + anArchive + `","basis":"qualifying",` +
		`"chances":[{"driver":"leclerc","win":410000,"podium":900000},{"driver":"norris","win":300000,"podium":850000}]}],"checksum":"`
	if text, sum, _ := strings.Cut(string(got), want); text != "" || len(sum) != 66 {
		t.Errorf("got %s, want %s", got, want)
	}
	back, err := ledger.DecodeFile(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file.Events, back.Events); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestFormatIsTheLowestThatWillDo(t *testing.T) {
	for name, tt := range map[string]struct {
		event ledger.Event
		two   bool
	}{
		"opened":                   {ledger.Event{Type: ledger.Opened, Kind: ledger.Real}, false},
		"opened on an archive":     {ledger.Event{Type: ledger.Opened, Kind: ledger.Real, Archive: anArchive}, true},
		"freeze":                   {ledger.Freeze(monaco, pick, start, true), false},
		"freeze with a basis":      {fullFreeze(ledger.OnForm), true},
		"moved by a source":        {(&ledger.Record{Key: monaco}).Move(start, opened, "x"), false},
		"released":                 {(&ledger.Record{Key: monaco}).Release(start, start, "x"), true},
		"renamed":                  {ledger.Rename("a", "b"), true},
		"live with a lap":          {ledger.Event{Type: ledger.LivePickFrozen, Lap: 1}, true},
		"verified with the sprint": {ledger.Event{Type: ledger.ResultVerified, Result: &ledger.Classification{Revision: 1, Rows: rows("a"), Sprint: rows("b")}}, true},
	} {
		data, err := ledger.File{Seq: 1, Kind: ledger.Real, Events: one(tt.event)}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(data), `"format":2`); got != tt.two {
			t.Errorf("%s: format 2 is %t, want %t", name, got, tt.two)
		}
	}
}

// sealed gives bytes that were changed their right checksum again.
func sealed(text string) []byte {
	before, _, _ := strings.Cut(text, `"checksum":"`)
	sum := chain.Hash([]byte(before + `"checksum":""}`))
	return []byte(before + `"checksum":"` + sum + `"}`)
}

func TestLaterFormatIsNamed(t *testing.T) {
	store := memblob.New()
	l := openWith(t, store)
	mustAppend(t, l, opened, fullFreeze(ledger.OnGrid))
	object, err := store.Get(t.Context(), ledger.Key(3), blob.MaxDocument)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		old, new string
		newer    bool
	}{
		"a format of tomorrow":         {`"format":2`, `"format":3`, true},
		"and fields of tomorrow":       {`"format":2`, `"format":3,"weather":{"rain":true}`, true},
		"one that needs no such thing": {`"format":2`, `"format":1`, false},
		"without its number":           {`"format":2,`, ``, false},
	} {
		store.Corrupt(ledger.Key(3), sealed(strings.Replace(string(object.Data), tt.old, tt.new, 1)))
		_, err := ledger.Load(t.Context(), store, ledger.Real)
		var damage *ledger.DamageError
		if tt.newer != errors.Is(err, ledger.ErrNewer) || tt.newer == errors.As(err, &damage) {
			t.Errorf("%s: got %v, want ErrNewer: %t, else damage", name, err, tt.newer)
		}
		if tt.newer && !strings.Contains(err.Error(), "upgrade every builder and scheduler") {
			t.Errorf("%s: %v does not say what to do", name, err)
		}
	}
}

// What a freeze says of itself agrees with itself.
func TestRulesOfChances(t *testing.T) {
	edit := func(change func(e *ledger.Event)) ledger.Event {
		e := fullFreeze(ledger.OnGrid)
		e.Chances = append([]ledger.Chance{}, e.Chances...)
		p := *e.Pick
		e.Pick = &p
		change(&e)
		return e
	}
	for name, tt := range map[string]struct {
		event ledger.Event
		ok    bool
	}{
		"on the grid":                {fullFreeze(ledger.OnGrid), true},
		"on qualifying":              {fullFreeze(ledger.OnQualifying), true},
		"on form":                    {fullFreeze(ledger.OnForm), true},
		"without chances":            {edit(func(e *ledger.Event) { e.Chances = nil }), true},
		"rounded":                    {edit(func(e *ledger.Event) { e.Chances[3].Win++; e.Chances[3].Podium -= 2 }), true},
		"on nothing known":           {edit(func(e *ledger.Event) { e.Basis = "stars" }), false},
		"on form, with the grid":     {edit(func(e *ledger.Event) { e.Basis = ledger.OnForm }), false},
		"on the grid, without it":    {edit(func(e *ledger.Event) { e.GridKnown = false }), false},
		"an archive that is no hash": {edit(func(e *ledger.Event) { e.Archive = "latest" }), false},
		"an archive in upper case":   {edit(func(e *ledger.Event) { e.Archive = strings.ToUpper(anArchive) }), false},
		"half an archive":            {edit(func(e *ledger.Event) { e.Archive = anArchive[:32] }), false},
		"another probability":        {edit(func(e *ledger.Event) { e.Pick.WinProbability = 0.42 }), false},
		"a better driver than P1":    {edit(func(e *ledger.Event) { e.Pick.P1, e.Pick.P2, e.Pick.WinProbability = "norris", "leclerc", 0.3 }), false},
		"without one who is picked":  {edit(func(e *ledger.Event) { e.Pick.P3 = "verstappen" }), false},
		"a driver twice":             {edit(func(e *ledger.Event) { e.Chances[3].Driver = "norris" }), false},
		"no chance of a podium":      {edit(func(e *ledger.Event) { e.Chances[3].Podium = 1 }), false},
		"less than nothing":          {edit(func(e *ledger.Event) { e.Chances[3].Win, e.Chances[2].Win = -1, 290_001 }), false},
		"more wins than one":         {edit(func(e *ledger.Event) { e.Chances[3].Win += 5 }), false},
		"fewer podiums than three":   {edit(func(e *ledger.Event) { e.Chances[3].Podium -= 5 }), false},
		"a lap before the start":     {edit(func(e *ledger.Event) { e.Lap = 3 }), false},
	} {
		l := openWith(t, newStore(t))
		err := appendEvents(t.Context(), l, start.Add(-time.Hour), tt.event)
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want accepted: %t", name, err, tt.ok)
		}
		if got := session(t, l.State()).Pick; tt.ok && (got.Archive != anArchive || got.Basis != tt.event.Basis || !cmp.Equal(got.Chances, tt.event.Chances)) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	t.Run("live", func(t *testing.T) {
		l := openWith(t, newStore(t))
		e := ledger.FreezeLive(monaco, pick, start, 50)
		e.Chances, e.Lap, e.DataAge = chances, 39, 2500
		mustAppend(t, l, start.Add(time.Hour), e)
		s := session(t, l.State())
		if got := s.LivePick(50); got.Lap != 39 || got.DataAge != 2500*time.Millisecond || !cmp.Equal(got.Chances, chances) {
			t.Errorf("got %+v", got)
		}
	})
}

// A pick on qualifying outlasts a postponement, one on form does not.
func TestPostponedByBasis(t *testing.T) {
	for basis, stands := range map[ledger.Basis]bool{ledger.OnGrid: true, ledger.OnQualifying: true, ledger.OnForm: false} {
		l := openWith(t, newStore(t))
		mustAppend(t, l, start.Add(-2*time.Hour), fullFreeze(basis))
		s := session(t, l.State())
		mustAppend(t, l, start.Add(-time.Hour), s.Postpone(start, "flood")...)
		s = session(t, l.State())
		if (s.Pick != nil) != stands || (len(s.Voided) == 0) != stands {
			t.Errorf("%s: pick %+v, voided %+v; want it to stand: %t", basis, s.Pick, s.Voided, stands)
		}
	}
}

func appendBy(t *testing.T, l *ledger.Ledger, at time.Time, actor string, events ...ledger.Event) error {
	t.Helper()
	_, err := l.Append(t.Context(), at, actor, func(*ledger.State) ([]ledger.Event, error) { return events, nil })
	return err
}

// Sources move and postpone; what a person decided stays until they release it.
func TestSourcesAndPersons(t *testing.T) {
	const anna = "operator:anna"
	f1db := ledger.SourceActor("f1db", "3f2a")
	later, evening := start.Add(3*time.Hour), start.Add(8*time.Hour)
	type act struct {
		actor  string
		events func(s ledger.Record) []ledger.Event
		want   error
	}
	move := func(was, to time.Time) func(ledger.Record) []ledger.Event {
		return func(s ledger.Record) []ledger.Event { return one(s.Move(was, to, "the calendar says so")) }
	}
	postpone := func(s ledger.Record) []ledger.Event { return s.Postpone(time.Time{}, "it is gone from the calendar") }
	reinstate := func(to time.Time) func(ledger.Record) []ledger.Event {
		return func(s ledger.Record) []ledger.Event { return one(s.Reinstate(to, "it is back")) }
	}
	release := func(was, to time.Time) func(ledger.Record) []ledger.Event {
		return func(s ledger.Record) []ledger.Event { return one(s.Release(was, to, "the source is right now")) }
	}
	cancel := func(s ledger.Record) []ledger.Event { return s.Cancel("flood") }
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
		"released to the past":                        {{anna, move(start, later), nil}, {anna, release(later, opened), ledger.ErrStarted}},
		"released from where it is not":               {{anna, move(start, later), nil}, {anna, release(start, evening), errAny}},
		"released by a source":                        {{anna, move(start, later), nil}, {f1db, release(later, later), errAny}},
		"released, but nobody held it":                {{anna, release(start, start), ledger.ErrUnchanged}},
		"released, but a source moved it":             {{f1db, move(start, later), nil}, {anna, release(later, later), ledger.ErrUnchanged}},
		"reinstated by a person without a start":      {{anna, postpone, nil}, {anna, reinstate(time.Time{}), nil}, {f1db, move(start, later), nil}},
		"reinstated by a person with one":             {{anna, postpone, nil}, {anna, reinstate(later), nil}, {f1db, move(later, evening), ledger.ErrByPerson}},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			l := openWith(t, store)
			for i, a := range acts {
				err := appendBy(t, l, start.Add(-time.Hour), a.actor, a.events(session(t, l.State()))...)
				if errors.Is(a.want, errAny) && err != nil {
					continue
				}
				if !errors.Is(err, a.want) {
					t.Fatalf("act %d: got %v, want %v", i+1, err, a.want)
				}
			}
			mustBeGreen(t, store)
		})
	}
	t.Run("freezes go by it", func(t *testing.T) {
		l := openWith(t, newStore(t))
		s := session(t, l.State())
		if err := appendBy(t, l, opened, f1db, s.Move(start, later, "the calendar says so")); err != nil {
			t.Fatal(err)
		}
		if err := appendEvents(t.Context(), l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true)); err == nil {
			t.Error("a pick was frozen for the start of before")
		}
		mustAppend(t, l, start.Add(time.Hour), ledger.Freeze(monaco, pick, later, true))
	})
}

// Drivers keep their ids in the files, and have the current ones in the state.
func TestRenamedDriver(t *testing.T) {
	store := newStore(t)
	l := openWith(t, store)
	mustAppend(t, l, start.Add(-3*time.Hour), fullFreeze(ledger.OnGrid))
	mustAppend(t, l, start.Add(time.Hour), ledger.FreezeLive(monaco, pick, start, 50))
	s := session(t, l.State())
	before := l.State()
	mustAppend(t, l, start.Add(2*time.Hour), s.Verify(rows("leclerc", "norris", "russell"), start, ""))
	mustAppend(t, l, start.Add(3*time.Hour), ledger.Rename("leclerc", "charles-leclerc"))

	check := func(state *ledger.State, want season.DriverID) {
		t.Helper()
		s := session(t, state)
		if s.Pick.P1 != want || s.Pick.Chances[0].Driver != want || s.Live[0].P1 != want {
			t.Errorf("picks: got %s, %s, %s; want %s", s.Pick.P1, s.Pick.Chances[0].Driver, s.Live[0].P1, want)
		}
		if r := s.Result(); r != nil && r.Revision == 1 && r.Winner() != want {
			t.Errorf("winner: got %s, want %s", r.Winner(), want)
		}
		if got := state.Driver("leclerc"); got != want {
			t.Errorf("leclerc is now %s, want %s", got, want)
		}
	}
	check(l.State(), "charles-leclerc")
	check(before, "leclerc") // what was handed out stays
	if got := l.Files()[2].Events[0].Pick.P1; got != "leclerc" {
		t.Errorf("the file says %s, want the id of then", got)
	}

	s = session(t, l.State())
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
	s = session(t, l.State())
	if got := s.Result().Rows[1].Driver; got != "charles-leclerc" {
		t.Errorf("an old id in a new event: got %s", got)
	}
	mustAppend(t, l, start.Add(6*time.Hour), ledger.Rename("charles-leclerc", "c-leclerc"))
	aliases := map[season.DriverID]season.DriverID{"leclerc": "c-leclerc", "charles-leclerc": "c-leclerc"}
	if diff := cmp.Diff(aliases, l.State().Aliases()); diff != "" {
		t.Errorf("renamed twice (-want +got):\n%s", diff)
	}
	mustAppend(t, l, start.Add(7*time.Hour), ledger.Rename("c-leclerc", "leclerc"))
	if got := l.State().Driver("charles-leclerc"); got != "leclerc" || l.State().Driver("leclerc") != "leclerc" {
		t.Errorf("renamed back: got %s and %s", got, l.State().Driver("leclerc"))
	}
	check(l.State().Renamed(map[season.DriverID]season.DriverID{"nobody": "x"}), "leclerc")
	s = session(t, l.State().Renamed(map[season.DriverID]season.DriverID{"leclerc": "leclerc-c"}))
	if s.Pick.P1 != "leclerc-c" || session(t, l.State()).Pick.P1 != "leclerc" {
		t.Errorf("an alias of the archive: got %s; and in the ledger %s", s.Pick.P1, session(t, l.State()).Pick.P1)
	}
	mustBeGreen(t, store)
}

// The archive vouches for a result that it got later, but not for news.
func TestVouching(t *testing.T) {
	store := newStore(t)
	l, err := ledger.Open(t.Context(), store, ledger.Real, opened, "builder", anArchive)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.State().OpenedOn(); got != anArchive {
		t.Errorf("opened on %q, want %s", got, anArchive)
	}
	mustAppend(t, l, opened, keysEvent(key(2024001, 2024, "bahrain"), key(2025001, 2025, "australia"), key(monaco, 2026, "monaco"), key(2027001, 2027, "china")))
	verify := func(session int64) ledger.Event {
		return (&ledger.Record{Key: session}).Verify(rows("leclerc", "norris", "russell"), start, "")
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
		if err := appendBy(t, l, tt.at, ledger.ArchiveActor, tt.event); (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want accepted: %t", tt.name, err, tt.ok)
		}
	}
	mustBeGreen(t, store)
}

// A verification covers the weekend: the sprint is corrected with the race, or by itself.
func TestSprintIsVerifiedWithTheRace(t *testing.T) {
	l := openWith(t, newStore(t))
	verify := func(at time.Time, race, sprint []ledger.Row, reason string) error {
		s := session(t, l.State())
		e := s.Verify(race, start, reason)
		e.Result.Sprint = sprint
		return appendEvents(t.Context(), l, at, e)
	}
	race, sprint := rows("leclerc", "norris"), rows("norris", "leclerc")
	if err := verify(start.Add(time.Hour), race, []ledger.Row{{Driver: "norris", Team: "x", Position: 2}}, ""); err == nil {
		t.Error("a sprint that nobody won was accepted")
	}
	if err := verify(start.Add(time.Hour), race, sprint, ""); err != nil {
		t.Fatal(err)
	}
	if err := verify(start.Add(2*time.Hour), race, sprint, "again"); !errors.Is(err, ledger.ErrUnchanged) {
		t.Errorf("the same again: got %v", err)
	}
	if err := verify(start.Add(2*time.Hour), rows("norris", "leclerc"), nil, "a penalty in the race"); err != nil {
		t.Fatal(err)
	}
	s := session(t, l.State())
	if diff := cmp.Diff(sprint, s.Result().Sprint); diff != "" {
		t.Errorf("the sprint after a correction of the race (-want +got):\n%s", diff)
	}
	if err := verify(start.Add(3*time.Hour), rows("norris", "leclerc"), rows("leclerc", "norris"), "a penalty in the sprint"); err != nil {
		t.Fatal(err)
	}
	s = session(t, l.State())
	if got := s.Result(); got.Revision != 3 || got.Sprint[0].Driver != "leclerc" {
		t.Errorf("got %+v", got)
	}
}

func TestTextsArePrintable(t *testing.T) {
	l := openWith(t, newStore(t))
	s := session(t, l.State())
	for name, reason := range map[string]string{"an escape": "\x1b[2J", "a line break": "a\nb", "no end": strings.Repeat("a", chain.MaxText+1)} {
		var refused *ledger.RefusedError
		if err := appendEvents(t.Context(), l, opened, s.Cancel(reason)...); !errors.As(err, &refused) {
			t.Errorf("a reason with %s: got %v, want a refusal", name, err)
		}
	}
	if err := appendBy(t, l, opened, "operator:\a", s.Cancel("flood")...); err == nil {
		t.Error("an actor with a bell was accepted")
	}
	// What an older program wrote is read as it is.
	store := memblob.New()
	l = openWith(t, store)
	plant(t, store, opened, ledger.Event{Type: ledger.RoundCancelled, Session: monaco, Reason: "a\nb"})
	if err := l.Refresh(t.Context()); err != nil || len(l.State().Breaches()) > 0 {
		t.Errorf("an old reason: %v, breaches %v", err, l.State().Breaches())
	}
}

func TestWhatAnEventSays(t *testing.T) {
	s := &ledger.Record{Key: monaco}
	for want, e := range map[string]ledger.Event{
		"real":                            {Type: ledger.Opened, Kind: ledger.Real},
		"1 keys":                          keyEvent(monaco, 2026, "monaco"),
		"leclerc 41.0 %, norris, russell": ledger.Freeze(monaco, pick, start, true),
		"revision 1, won by norris":       s.Verify(rows("norris", "leclerc"), start, ""),
		"to 2026-06-07 13:00:00 storm":    s.Move(opened, start, "storm"),
		"dry":                             s.Reinstate(time.Time{}, "dry"),
		"flood":                           s.Cancel("flood")[0],
		"antonelli to kimi-antonelli":     ledger.Rename("antonelli", "kimi-antonelli"),
	} {
		if got := e.String(); got != want {
			t.Errorf("%s: got %q, want %q", e.Type, got, want)
		}
	}
}
