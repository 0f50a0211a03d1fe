package ledger_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
)

// The steps that the cases of TestRules begin with. Each returns events for the state so far.
type step struct {
	at     time.Time
	events func(s ledger.RoundRecord) []ledger.Event
}

func one(e ledger.Event) []ledger.Event { return []ledger.Event{e} }

func freeze(at, start time.Time, gridKnown bool) step {
	return step{at, func(ledger.RoundRecord) []ledger.Event { return one(ledger.Freeze(monaco, pick, start, gridKnown)) }}
}

func live(at time.Time, checkpoint int) step {
	return step{at, func(ledger.RoundRecord) []ledger.Event {
		return one(ledger.FreezeLive(monaco, pick, start, checkpoint, ledger.Observation{Lap: 1, SHA256: anArchive, At: start.Add(1)}))
	}}
}

func verify(at time.Time, reason string, r ...ledger.Row) step {
	return step{at, func(s ledger.RoundRecord) []ledger.Event { return one(s.Verify(r, start, reason)) }}
}

func postpone(at time.Time) step {
	return step{at, func(s ledger.RoundRecord) []ledger.Event { return s.Postpone(time.Time{}, "flood") }}
}

func cancel(at time.Time) step {
	return step{at, func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") }}
}

func move(at, was, start time.Time) step {
	return step{at, func(s ledger.RoundRecord) []ledger.Event { return one(s.Move(was, start, "storm")) }}
}

func reinstate(at, start time.Time) step {
	return step{at, func(s ledger.RoundRecord) []ledger.Event { return one(s.Reinstate(start, "dry again")) }}
}

func raw(at time.Time, events ...ledger.Event) step {
	return step{at, func(ledger.RoundRecord) []ledger.Event { return events }}
}

// errAny stands for any refusal without a named reason.
var errAny = errors.New("any refusal")

// ends fails unless err is the wanted end of a step; nil stands for no refusal.
func ends(t *testing.T, name string, want, err error) {
	t.Helper()
	if refused := errors.Is(want, errAny) && err != nil; !refused && !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", name, err, want)
	}
}

// Every rule, from both sides: the last step of a case is the one that is accepted or refused.
func TestRules(t *testing.T) {
	var (
		friday  = start.Add(-46 * time.Hour)
		soon    = start.Add(-5 * time.Minute)
		after   = start.Add(2 * time.Hour)
		evening = start.Add(8 * time.Hour)
		weeks   = start.Add(500 * time.Hour)
		none    time.Time
		result  = rows("leclerc", "norris", "russell")
		other   = rows("norris", "russell", "piastri")
	)
	withPick := func(edit func(*ledger.Pick)) ledger.Event {
		p := pick
		edit(&p)
		return ledger.Freeze(monaco, p, start, true)
	}
	starts := func(at time.Time, kind ledger.Type, driver season.DriverID, start time.Time) step {
		return raw(at, ledger.Event{Type: kind, Session: monaco, Driver: driver, Start: start})
	}
	withChances := raw(friday, fullFreeze(ledger.OnGrid))
	withdrawn, returned := starts(soon, ledger.DriverWithdrawn, "hamilton", start), starts(soon, ledger.DriverReturned, "hamilton", start)
	voidEvent := ledger.Event{Type: ledger.PickVoided, Session: monaco, Reason: "regret"}
	cancelAlone := ledger.Event{Type: ledger.RoundCancelled, Session: monaco, Reason: "flood"}
	postponeAlone := ledger.Event{Type: ledger.RoundPostponed, Session: monaco, Reason: "flood"}

	said := make(map[string]string) // how the last step ends
	for name, c := range map[string]struct {
		steps []step
		want  error // nil: accepted
	}{
		"freeze before the start":                       {[]step{freeze(soon, start, true)}, nil},
		"freeze a nanosecond before the start":          {[]step{freeze(start.Add(-1), start, true)}, nil},
		"freeze at the start":                           {[]step{freeze(start, start, true)}, ledger.ErrStarted},
		"freeze after the start":                        {[]step{freeze(after, start, true)}, ledger.ErrStarted},
		"freeze twice":                                  {[]step{freeze(friday, start, true), freeze(soon, start, true)}, ledger.ErrAlreadyFrozen},
		"freeze twice, the second too late":             {[]step{freeze(friday, start, true), freeze(after, start, true)}, ledger.ErrAlreadyFrozen},
		"freeze of a round that was moved forward":      {[]step{move(friday, start, start.Add(-3*time.Hour)), freeze(soon, start, true)}, errAny},
		"freeze before the start it was moved to":       {[]step{move(friday, start, evening), freeze(after, evening, true)}, nil},
		"freeze at the start it was moved to":           {[]step{move(friday, start, soon), freeze(soon, soon, true)}, ledger.ErrStarted},
		"freeze of a cancelled round":                   {[]step{cancel(friday), freeze(soon, start, true)}, ledger.ErrNotHeld},
		"freeze of a postponed round":                   {[]step{postpone(friday), freeze(soon, start, true)}, ledger.ErrNotHeld},
		"freeze of a reinstated round":                  {[]step{cancel(friday), reinstate(friday, none), freeze(soon, start, true)}, nil},
		"freeze again after a void":                     {[]step{freeze(friday, start, true), cancel(friday), reinstate(friday, none), freeze(soon, start, true)}, nil},
		"freeze again after a postponement with grid":   {[]step{freeze(friday, start, true), postpone(friday), reinstate(friday, none), freeze(soon, start, true)}, ledger.ErrAlreadyFrozen},
		"freeze again after one without grid":           {[]step{freeze(friday, start, false), postpone(friday), reinstate(friday, weeks), freeze(soon, weeks, true)}, nil},
		"freeze after the result":                       {[]step{verify(after, "", result...), freeze(after, start.Add(3*time.Hour), true)}, ledger.ErrAlreadyVerified},
		"freeze without a third driver":                 {[]step{raw(soon, withPick(func(p *ledger.Pick) { p.P3 = "" }))}, errAny},
		"freeze of one driver twice":                    {[]step{raw(soon, withPick(func(p *ledger.Pick) { p.P3 = p.P1 }))}, errAny},
		"freeze of a certain winner":                    {[]step{raw(soon, withPick(func(p *ledger.Pick) { p.WinProbability = 1 }))}, nil},
		"freeze of an impossible winner":                {[]step{raw(soon, withPick(func(p *ledger.Pick) { p.WinProbability = 0 }))}, errAny},
		"freeze of more than certainty":                 {[]step{raw(soon, withPick(func(p *ledger.Pick) { p.WinProbability = 1.01 }))}, errAny},
		"freeze of no number":                           {[]step{raw(soon, withPick(func(p *ledger.Pick) { p.WinProbability = math.NaN() }))}, errAny},
		"freeze by no model":                            {[]step{raw(soon, withPick(func(p *ledger.Pick) { p.Model = "" }))}, errAny},
		"freeze of an unknown session":                  {[]step{raw(soon, ledger.Freeze(1, pick, start, true))}, ledger.ErrUnknownSession},
		"live pick in the race":                         {[]step{live(after, 50)}, nil},
		"live pick at the start":                        {[]step{live(start, 0)}, ledger.ErrNotStarted},
		"live pick before the start it was moved to":    {[]step{move(friday, start, evening), live(after, 50)}, errAny},
		"live pick at another checkpoint":               {[]step{live(after, 50), live(after, 75)}, nil},
		"live pick twice":                               {[]step{live(after, 50), live(after, 50)}, ledger.ErrAlreadyFrozen},
		"live pick after the result":                    {[]step{verify(after, "", result...), live(after, 50)}, ledger.ErrAlreadyVerified},
		"live pick at the finish":                       {[]step{live(after, 100)}, errAny},
		"live pick of a cancelled round":                {[]step{cancel(friday), live(after, 50)}, ledger.ErrNotHeld},
		"void of a pick that stands":                    {[]step{freeze(friday, start, true), raw(soon, voidEvent)}, errAny},
		"void of nothing":                               {[]step{cancel(friday), raw(soon, voidEvent)}, errAny},
		"void after the result":                         {[]step{freeze(friday, start, true), verify(after, "", result...), raw(after, voidEvent)}, ledger.ErrAlreadyVerified},
		"cancel without void":                           {[]step{freeze(friday, start, true), raw(soon, cancelAlone)}, errAny},
		"postpone without void, no grid":                {[]step{freeze(friday, start, false), raw(soon, postponeAlone)}, errAny},
		"postpone without void, with grid":              {[]step{freeze(friday, start, true), raw(soon, postponeAlone)}, nil},
		"postpone with a needless void":                 {[]step{freeze(friday, start, true), raw(soon, postponeAlone, voidEvent)}, errAny},
		"cancel with void":                              {[]step{freeze(friday, start, true), cancel(soon)}, nil},
		"cancel a postponed round with its pick":        {[]step{freeze(friday, start, true), postpone(friday), cancel(soon)}, nil},
		"postpone twice":                                {[]step{postpone(friday), postpone(soon)}, ledger.ErrUnchanged},
		"postpone a cancelled round":                    {[]step{cancel(friday), postpone(soon)}, errAny},
		"postpone after the start":                      {[]step{postpone(after)}, nil},
		"postpone after the result":                     {[]step{verify(after, "", result...), postpone(evening)}, ledger.ErrAlreadyVerified},
		"cancel twice":                                  {[]step{cancel(friday), cancel(soon)}, ledger.ErrUnchanged},
		"cancel after the result":                       {[]step{verify(after, "", result...), cancel(evening)}, ledger.ErrAlreadyVerified},
		"cancel again after a reinstatement":            {[]step{cancel(friday), reinstate(friday, none), cancel(soon)}, nil},
		"decide without a reason":                       {[]step{raw(soon, ledger.Event{Type: ledger.RoundCancelled, Session: monaco})}, errAny},
		"move forward":                                  {[]step{move(friday, start, start.Add(-3*time.Hour))}, nil},
		"move back":                                     {[]step{move(soon, start, evening)}, nil},
		"move with a pick":                              {[]step{freeze(friday, start, false), move(soon, start, evening)}, nil},
		"move into the past":                            {[]step{move(soon, start, friday)}, ledger.ErrPast},
		"move to this instant":                          {[]step{move(soon, start, soon)}, ledger.ErrPast},
		"move after the start":                          {[]step{move(start, start, evening)}, ledger.ErrStarted},
		"move to where it is":                           {[]step{move(friday, start, start)}, ledger.ErrUnchanged},
		"move from where it is not":                     {[]step{move(friday, start, evening), move(soon, start, weeks)}, errAny},
		"move again":                                    {[]step{move(friday, start, evening), move(soon, evening, weeks)}, nil},
		"move a postponed round":                        {[]step{postpone(friday), move(soon, start, weeks)}, ledger.ErrNotHeld},
		"move after the result":                         {[]step{verify(after, "", result...), move(after, start, weeks)}, ledger.ErrAlreadyVerified},
		"reinstate a postponed round":                   {[]step{postpone(friday), reinstate(soon, weeks)}, nil},
		"reinstate a race that was held":                {[]step{postpone(friday), reinstate(after, start)}, nil},
		"reinstate before the pick":                     {[]step{freeze(soon, start, true), postpone(soon), reinstate(after, friday)}, ledger.ErrStarted},
		"reinstate before the pick, which is void":      {[]step{freeze(soon, start, true), cancel(soon), reinstate(after, friday)}, nil},
		"reinstate what was never off":                  {[]step{reinstate(soon, none)}, ledger.ErrUnchanged},
		"verify after the start":                        {[]step{verify(after, "", result...)}, nil},
		"verify at the start":                           {[]step{verify(start, "", result...)}, ledger.ErrNotStarted},
		"verify a postponed round":                      {[]step{postpone(friday), verify(after, "", result...)}, ledger.ErrNotHeld},
		"verify a cancelled round":                      {[]step{cancel(friday), verify(after, "", result...)}, ledger.ErrNotHeld},
		"verify before the start it was moved to":       {[]step{move(friday, start, evening), verify(after, "", result...)}, errAny},
		"verify twice":                                  {[]step{verify(after, "", result...), verify(evening, "", result...)}, ledger.ErrAlreadyVerified},
		"correct with a reason":                         {[]step{verify(after, "", result...), verify(weeks, "disqualified", other...)}, nil},
		"correct without a reason":                      {[]step{verify(after, "", result...), verify(weeks, "", other...)}, ledger.ErrAlreadyVerified},
		"correct nothing":                               {[]step{verify(after, "", result...), verify(weeks, "sure", result...)}, ledger.ErrUnchanged},
		"correct back":                                  {[]step{verify(after, "", result...), verify(weeks, "out", other...), verify(weeks, "appeal", result...)}, nil},
		"a revision left out":                           {[]step{raw(after, ledger.Event{Type: ledger.ResultVerified, Session: monaco, Start: start, Result: &ledger.Classification{Revision: 2, Rows: result}})}, errAny},
		"a revision again":                              {[]step{verify(after, "", result...), raw(weeks, ledger.Event{Type: ledger.ResultVerified, Session: monaco, Start: start, Reason: "out", Result: &ledger.Classification{Revision: 1, Rows: other}})}, ledger.ErrAlreadyVerified},
		"withdraw after the freeze":                     {[]step{withChances, withdrawn}, nil},
		"withdraw a nanosecond before the start":        {[]step{withChances, starts(start.Add(-1), ledger.DriverWithdrawn, "hamilton", start)}, nil},
		"withdraw at the start":                         {[]step{withChances, starts(start, ledger.DriverWithdrawn, "hamilton", start)}, ledger.ErrStarted},
		"withdraw before the start it was moved to":     {[]step{withChances, move(friday, start, evening), starts(after, ledger.DriverWithdrawn, "hamilton", evening)}, nil},
		"withdraw before another start":                 {[]step{withChances, move(friday, start, evening), withdrawn}, errAny},
		"withdraw twice":                                {[]step{withChances, withdrawn, withdrawn}, ledger.ErrUnchanged},
		"withdraw before the freeze":                    {[]step{withdrawn}, errAny},
		"withdraw without chances":                      {[]step{withChances, starts(soon, ledger.DriverWithdrawn, "stroll", start)}, errAny},
		"withdraw from a cancelled round":               {[]step{withChances, cancel(friday), withdrawn}, errAny},
		"withdraw from a postponed round":               {[]step{withChances, postpone(friday), withdrawn}, ledger.ErrNotHeld},
		"withdraw after the result":                     {[]step{withChances, verify(after, "", result...), starts(after, ledger.DriverWithdrawn, "hamilton", start)}, ledger.ErrAlreadyVerified},
		"return without a withdrawal":                   {[]step{withChances, returned}, ledger.ErrUnchanged},
		"return":                                        {[]step{withChances, withdrawn, returned}, nil},
		"return twice":                                  {[]step{withChances, withdrawn, returned, returned}, ledger.ErrUnchanged},
		"withdraw again":                                {[]step{withChances, withdrawn, returned, withdrawn}, nil},
		"return of another driver":                      {[]step{withChances, withdrawn, starts(soon, ledger.DriverReturned, "norris", start)}, ledger.ErrUnchanged},
		"return by an earlier id":                       {[]step{withChances, raw(friday, ledger.Rename("hamilton", "lewis-hamilton")), starts(soon, ledger.DriverWithdrawn, "lewis-hamilton", start), returned}, nil},
		"return at the start":                           {[]step{withChances, withdrawn, starts(start, ledger.DriverReturned, "hamilton", start)}, ledger.ErrStarted},
		"an event of no type":                           {[]step{raw(soon, ledger.Event{Session: monaco})}, errAny},
		"a field that means nothing":                    {[]step{raw(soon, ledger.Event{Type: ledger.RoundCancelled, Session: monaco, Reason: "flood", Start: start})}, errAny},
		"open again":                                    {[]step{raw(soon, ledger.Event{Type: ledger.Opened, Kind: ledger.Real})}, errAny},
		"a key for a new round":                         {[]step{raw(soon, keyEvent(2026009, 2026, "spain"))}, nil},
		"a key again, for another round":                {[]step{raw(soon, keyEvent(monaco, 2026, "spain"))}, errAny},
		"another key for a round":                       {[]step{raw(soon, keyEvent(2026009, 2026, "monaco"))}, errAny},
		"a key of another year":                         {[]step{raw(soon, keyEvent(2027009, 2026, "spain"))}, errAny},
		"key 0 of a year":                               {[]step{raw(soon, keyEvent(2026000, 2026, "spain"))}, errAny},
		"one key twice at once":                         {[]step{raw(soon, keysEvent(key(2026009, 2026, "spain"), key(2026009, 2026, "austria")))}, errAny},
		"one round twice at once":                       {[]step{raw(soon, keysEvent(key(2026009, 2026, "spain"), key(2026010, 2026, "spain")))}, errAny},
		"the Grand Prix of another year is another one": {[]step{raw(soon, keyEvent(2027001, 2027, "monaco"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := openWith(t, newStore(t))
			for i, step := range c.steps {
				err := appendEvents(t.Context(), l, step.at, step.events(session(t, l.Fold()))...)
				said[name] = fmt.Sprint(err)
				var refused *ledger.RefusedError
				switch {
				case i < len(c.steps)-1 || c.want == nil:
					if err != nil {
						t.Fatalf("step %d: got %v, want it accepted", i+1, err)
					}
				case !errors.As(err, &refused):
					t.Fatalf("got %v, want a refusal", err)
				case !errors.Is(err, c.want) && !errors.Is(c.want, errAny):
					t.Fatalf("got %v, want %v", err, c.want)
				}
			}
		})
	}
	golden.Inputs(t, "testdata/rules.txt", said)
}

func key(session int64, year int, gp season.GrandPrixID) ledger.KeyAssignment {
	return ledger.KeyAssignment{Session: session, Year: year, GrandPrix: gp}
}

func keysEvent(keys ...ledger.KeyAssignment) ledger.Event {
	return ledger.Event{Type: ledger.KeysAssigned, Keys: keys}
}

func keyEvent(session int64, year int, gp season.GrandPrixID) ledger.Event {
	return keysEvent(key(session, year, gp))
}

// TestClassificationIsSane: the golden file has the refusal of each classification, or <nil>.
func TestClassificationIsSane(t *testing.T) {
	row := func(driver season.DriverID, position int, points float64, shared bool) ledger.Row {
		return ledger.Row{Driver: driver, Team: "team", Position: position, Points: points, Shared: shared}
	}
	good := rows("leclerc", "norris", "russell")
	said := make(map[string]string)
	for name, classified := range map[string][]ledger.Row{
		"plain":                       good,
		"with retirements":            append(slices.Clone(good), row("stroll", 0, 0, false), row("alonso", 0, 0, false)),
		"a place nobody holds":        append(slices.Clone(good), row("stroll", 18, 0, false)),
		"half points":                 {row("norris", 1, 12.5, false)},
		"a shared win":                {row("fagioli", 1, 4, false), row("fangio", 1, 4, true), row("gonzalez", 2, 6, false), row("fangio", 11, 0, false)},
		"a second car, not raced":     {row("x", 1, 9, false), row("stommelen", 6, 1, false), row("stommelen", 0, 0, false)},
		"empty":                       {},
		"no winner":                   {row("norris", 2, 18, false)},
		"a place taken twice":         append(slices.Clone(good), row("stroll", 2, 0, false)),
		"a driver placed twice":       append(slices.Clone(good), row("leclerc", 4, 12, false)),
		"a position below 1":          append(slices.Clone(good), row("stroll", -1, 0, false)),
		"negative points":             append(slices.Clone(good), row("stroll", 4, -1, false)),
		"points that are no number":   append(slices.Clone(good), row("stroll", 4, math.NaN(), false)),
		"points without end":          append(slices.Clone(good), row("stroll", 4, math.Inf(1), false)),
		"a row without a driver":      append(slices.Clone(good), row("", 4, 0, false)),
		"a row without a team":        append(slices.Clone(good), ledger.Row{Driver: "stroll", Position: 4}),
		"the first of a place shares": {row("fangio", 1, 4, true), row("fagioli", 1, 4, false)},
	} {
		l := openWith(t, newStore(t))
		s := session(t, l.Fold())
		said[name] = fmt.Sprint(appendEvents(t.Context(), l, start.Add(time.Hour), s.Verify(classified, start, "")))
	}
	golden.Inputs(t, "testdata/classifications.txt", said)
}

// A decision about the round keeps the pick or voids it.
func TestPickAfterDecision(t *testing.T) {
	before := start.Add(-time.Hour)
	for name, c := range map[string]struct {
		gridKnown bool
		decision  step
		stands    bool
	}{
		"postponed with the grid":    {true, postpone(before), true},
		"postponed without the grid": {false, postpone(before), false},
		"cancelled with the grid":    {true, cancel(before), false},
		"cancelled without the grid": {false, cancel(before), false},
		"moved with the grid":        {true, move(before, start, start.Add(time.Hour)), true},
		"moved without the grid":     {false, move(before, start, start.Add(time.Hour)), true},
	} {
		t.Run(name, func(t *testing.T) {
			l := openWith(t, newStore(t))
			mustAppend(t, l, before, ledger.Freeze(monaco, pick, start, c.gridKnown))
			files := l.Head().Seq
			mustAppend(t, l, before, c.decision.events(session(t, l.Fold()))...)
			got := session(t, l.Fold())
			if (got.Pick != nil) != c.stands || (len(got.Voided) == 0) != c.stands {
				t.Errorf("pick: got %+v, voided %+v; want it to stand: %v", got.Pick, got.Voided, c.stands)
			}
			if l.Head().Seq != files+1 {
				t.Errorf("the decision took %d files, want one", l.Head().Seq-files)
			}
		})
	}
}
