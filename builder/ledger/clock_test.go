package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// future is a real ledger with a head two days after the race, because a clock was days ahead.
func future(t *testing.T, store blob.Store) (*ledger.Ledger, time.Time) {
	t.Helper()
	l := openWith(t, store)
	canada, _ := l.Fold().Record(2026007)
	wrong := start.Add(48 * time.Hour)
	mustAppend(t, l, wrong, canada.Postpone(time.Time{}, "a clock that is days ahead")...)
	return l, wrong
}

// An event of the future keeps nobody from freezing in time, verifying and deciding.
func TestEventOfTheFutureCostsNothing(t *testing.T) {
	store := memblob.New(memblob.Strict(t, isLedgerFile))
	l, wrong := future(t, store)
	frozen, over := start.Add(-20*time.Hour), start.Add(2*time.Hour)
	mustAppend(t, l, frozen, ledger.Freeze(monaco, pick, start, true))
	if got := session(t, l.Fold()).Pick; got == nil || !got.FrozenAt.Equal(frozen) {
		t.Fatalf("pick: got %+v, want it frozen at %s", got, frozen)
	}
	s := session(t, l.Fold())
	mustAppend(t, l, over, s.Verify(rows("leclerc", "norris", "russell"), start, ""))
	s = session(t, l.Fold())
	if got := s.Result(); !got.At.Equal(over) {
		t.Errorf("verified at %s, want %s", got.At, over)
	}
	for _, e := range l.Files()[3:] {
		if e := e.Events[0]; !e.At.Equal(wrong) || e.Made.IsZero() {
			t.Errorf("%s: instant %s, made at %q; want that of the head, %s, and the clock's", e.Type, e.At, e.Made, wrong)
		}
	}
	r := audit(t, store)
	if !r.Green() {
		t.Errorf("audit: %v", r.Err())
	}
	if p := r.Picks[0]; !p.Frozen.Equal(frozen) || !p.Recorded.Equal(wrong) || p.Margin() != 20*time.Hour {
		t.Errorf("audited pick: %+v", p)
	}
	// When the future has come, events are as they always were.
	mustAppend(t, l, wrong.Add(time.Hour), keyEvent(2026009, 2026, "spain"))
	if e := l.Files()[5].Events[0]; !e.Made.IsZero() || !e.At.Equal(wrong.Add(time.Hour)) {
		t.Errorf("after the head: got %+v", e)
	}
}

// The rules are judged by the clock of the writer, not by the instant of the head.
func TestRulesGoByTheWritersClock(t *testing.T) {
	for name, tt := range map[string]struct {
		at    time.Time
		event func(ledger.RoundRecord) ledger.Event
		want  error
	}{
		"freeze after the start":  {start, func(ledger.RoundRecord) ledger.Event { return ledger.Freeze(monaco, pick, start, true) }, ledger.ErrStarted},
		"verify before the start": {start.Add(-time.Hour), func(s ledger.RoundRecord) ledger.Event { return s.Verify(rows("leclerc"), start, "") }, ledger.ErrNotStarted},
		"live pick before it":     {start.Add(-time.Hour), func(ledger.RoundRecord) ledger.Event { return ledger.FreezeLive(monaco, pick, start, 50, lap39) }, ledger.ErrNotStarted},
		"move into the past":      {start.Add(-time.Hour), func(s ledger.RoundRecord) ledger.Event { return s.Move(start, start.Add(-2*time.Hour), "x") }, ledger.ErrPast},
		"move, before the head":   {start.Add(-time.Hour), func(s ledger.RoundRecord) ledger.Event { return s.Move(start, start.Add(time.Hour), "x") }, nil},
		"before it was opened":    {opened.Add(-time.Second), func(ledger.RoundRecord) ledger.Event { return ledger.Freeze(monaco, pick, start, true) }, ledger.ErrOlder},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := future(t, newStore(t))
			must.Fail(t, "appendEvents", appendEvents(t.Context(), l, tt.at, tt.event(session(t, l.Fold()))), tt.want)
		})
	}
}

// A file that claims to be made before the head has the instant of the head, and no other.
func TestMadeAtIsNoWayAroundTheOrder(t *testing.T) {
	early := func(at time.Time) ledger.Event {
		e := ledger.Freeze(monaco, pick, start, true)
		e.ID, e.Actor, e.At, e.Made = "planted", "mallory", at, start.Add(-time.Hour)
		return e
	}
	for name, at := range map[string]time.Time{
		"after the head":                start.Add(72 * time.Hour),
		"by a clock that is not behind": start.Add(-2 * time.Hour),
	} {
		store := memblob.New()
		l := openWith(t, store)
		data := must.Get(ledger.File{Seq: 3, Previous: l.Head().Hash, Kind: ledger.Real, Events: one(early(at))}.Encode())(t)
		must.Get(store.Create(t.Context(), ledger.Key(3), data))(t)
		must.Get(l.Refresh(t.Context()))(t)
		if session(t, l.Fold()).Pick != nil || len(l.Fold().Breaches()) != 1 {
			t.Errorf("%s: the pick counts", name)
		}
	}
}

// AsOf goes by the clocks of the writers. It leaves out an event of the future, unless a later file follows.
func TestAsOfWithAnEventOfTheFuture(t *testing.T) {
	l, wrong := future(t, newStore(t))
	now := start.Add(-20 * time.Hour)
	if got := l.AsOf(now).Head().Seq; got != 2 {
		t.Errorf("before anything else: file %d, want 2", got)
	}
	if got := l.Current(now).Head().Seq; got != 3 {
		t.Errorf("a service on a real ledger goes by file %d, want 3, all there is", got)
	}
	mustAppend(t, l, now, ledger.Freeze(monaco, pick, start, true))
	for at, want := range map[time.Time]int64{now.Add(-1): 2, now: 4, wrong.Add(-1): 4, wrong: 4} {
		if got := l.AsOf(at).Head().Seq; got != want {
			t.Errorf("as of %s: file %d, want %d", at, got, want)
		}
	}
}

func TestSecondClock(t *testing.T) {
	now := start.Add(-time.Hour)
	freeze := ledger.Freeze(monaco, pick, start, true)
	for name, tt := range map[string]struct {
		second time.Time
		within time.Duration // how far it may be off, which is enough to allow it
		err    error         // of reading it
		event  ledger.Event
		want   error
	}{
		"agrees":                        {second: now, event: freeze},
		"a little behind":               {second: now.Add(-ledger.MaxAhead), event: freeze},
		"far behind: ours is ahead":     {second: now.Add(-ledger.MaxAhead - 1), within: 1, event: freeze, want: ledger.ErrClock},
		"a minute behind":               {second: now.Add(-time.Minute), event: freeze, want: ledger.ErrClock},
		"far behind, for another event": {second: now.Add(-48 * time.Hour), event: keyEvent(2026009, 2026, "spain"), want: ledger.ErrClock},
		"ahead, before the start":       {second: start.Add(-1), event: freeze},
		"ahead, and the race is on":     {second: start, within: 1, event: freeze, want: ledger.ErrStarted},
		"ahead, for another event":      {second: start.Add(time.Hour), event: keyEvent(2026009, 2026, "spain")},
		"cannot be read":                {second: now.Add(-48 * time.Hour), err: errors.New("no answer"), event: freeze},
	} {
		t.Run(name, func(t *testing.T) {
			shown := opened
			l := openWith(t, memblob.New(memblob.Clock(func() time.Time { return shown })))
			shown = tt.second
			if err := appendEvents(t.Context(), l, now, tt.event); tt.err == nil && !errors.Is(err, tt.want) {
				t.Errorf("the store's clock: got %v, want %v", err, tt.want)
			}
			l = openWith(t, newStore(t))
			l.UseClock(func(context.Context) (time.Time, time.Duration, error) { return tt.second, tt.within, tt.err })
			if err := appendEvents(t.Context(), l, now, tt.event); tt.within == 0 && !errors.Is(err, tt.want) {
				t.Errorf("another clock: got %v, want %v", err, tt.want)
			} else if tt.within > 0 && err != nil {
				t.Errorf("a clock that may be %s off: got %v", tt.within, err)
			}
			for range 2 { // a clock that cannot be read counts in neither
				err := l.CheckClock(t.Context(), now)
				ahead := tt.err == nil && now.Sub(tt.second) > time.Minute+tt.within
				must.Hold(t, errors.Is(err, ledger.ErrClock) == ahead, "the clock of the caller, ahead %t: got %v", ahead, err)
				golden.Sentence(t, t.Name(), err)
			}
		})
	}
	t.Run("a simulated ledger has race time alone", func(t *testing.T) {
		store := memblob.New(memblob.Clock(func() time.Time { return opened.AddDate(-10, 0, 0) }))
		l := must.Get(ledger.Open(t.Context(), store, ledger.Simulated, opened, "replay", ""))(t)
		must.Succeed(t, "CheckClock", l.CheckClock(t.Context(), opened))
	})
	t.Run("nothing to write asks nobody", func(t *testing.T) {
		l := openWith(t, struct{ blob.Store }{newStore(t)}) // without a clock
		l.UseClock(func(context.Context) (time.Time, time.Duration, error) { t.Error("asked"); return time.Time{}, 0, nil })
		must.Succeed(t, "appendEvents", appendEvents(t.Context(), l, now))
	})
}

// A clock that is set while the process runs is noticed, and believed once it has stayed there.
func TestSteady(t *testing.T) {
	var elapsed, set time.Duration
	wall := func() time.Time { return opened.Add(elapsed + set) }
	steady := ledger.Steady(wall, func() time.Duration { return elapsed })
	for _, step := range []struct {
		name  string
		after time.Duration
		set   time.Duration // the sum of all steps of the wall clock
		off   time.Duration // of the steady clock
	}{
		{"at the start", 0, 0, 0},
		{"an hour later", time.Hour, 0, 0},
		{"a little ahead", time.Minute, ledger.MaxAhead, 0},
		{"a nanosecond more", time.Hour, ledger.MaxAhead + 1, 0},
		{"set two days ahead", time.Minute, 48 * time.Hour, 0},
		{"still so", ledger.StepAccepted - time.Second, 48 * time.Hour, 0},
		{"set back to almost right", time.Second, time.Second, 0},
		{"right for an hour", time.Hour, 0, 0},
		{"set two days ahead again", time.Minute, 48 * time.Hour, 0},
		{"set an hour back", time.Minute, -time.Hour, 0},
		{"and two hours", ledger.StepAccepted, -2 * time.Hour, 0},
		{"and left almost there", ledger.StepAccepted, -2*time.Hour - ledger.MaxAhead, -2*time.Hour - ledger.MaxAhead},
		{"a nanosecond more than a little ahead of that", time.Minute, -2*time.Hour + 1, -2*time.Hour - ledger.MaxAhead},
		{"from then on", time.Hour, -2*time.Hour - ledger.MaxAhead, -2*time.Hour - ledger.MaxAhead},
	} {
		elapsed, set = elapsed+step.after, step.set
		got, within, err := steady(t.Context())
		if want := opened.Add(elapsed + step.off); !got.Equal(want) || within != 0 || err != nil {
			t.Errorf("%s: got %s, %s, %v; want %s", step.name, got, within, err, want)
		}
	}
}
