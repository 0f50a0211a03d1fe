package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// The world of most tests: Monaco of 2026 is session 2026008 and starts on 7 June at 13:00.
var (
	opened = time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC)
	start  = time.Date(2026, 6, 7, 13, 0, 0, 0, time.UTC)
	monaco = int64(2026008)
	pick   = ledger.Pick{P1: "leclerc", P2: "norris", P3: "russell", WinProbability: 0.41, Model: "r2/1"}
	lap39  = ledger.Observation{Lap: 39, SHA256: anArchive, At: start.Add(50 * time.Minute)}
)

// rows is a classification in the order of the drivers.
func rows(drivers ...season.DriverID) []ledger.Row {
	points := []float64{25, 18, 15}
	all := make([]ledger.Row, 0, len(drivers))
	for i, d := range drivers {
		all = append(all, ledger.Row{Driver: d, Team: season.TeamID("team-" + d), Position: i + 1, Points: points[i%3]})
	}
	return all
}

// isLedgerFile says which keys a strict store lets be written only once.
func isLedgerFile(string) bool { return true }

func newStore(t *testing.T) *memblob.Store {
	return memblob.New(memblob.Strict(t, isLedgerFile))
}

// openWith returns a real ledger that knows the rounds of 2026 and its store.
func openWith(t *testing.T, store blob.Store) *ledger.Ledger {
	t.Helper()
	l := must.Get(ledger.Open(t.Context(), store, ledger.Real, opened, "builder", ""))(t)
	mustAppend(t, l, opened, ledger.Event{Type: ledger.KeysAssigned, Keys: []ledger.KeyAssignment{
		{Session: 2026007, Year: 2026, GrandPrix: "canada"},
		{Session: monaco, Year: 2026, GrandPrix: "monaco"},
	}})
	return l
}

// decideOn refreshes the ledger and appends the events that decide returns.
func decideOn(ctx context.Context, l *ledger.Ledger, at time.Time, actor string, decide func(*ledger.Fold) ([]ledger.Event, error)) ([]ledger.Event, error) {
	fresh, err := l.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	before := l.Fold()
	text := func() string {
		if before.Head().Seq > 8 {
			return "" // a long fold takes long to print
		}
		return fmt.Sprintf("%+v %+v", before, slices.Collect(before.Records()))
	}
	was := text()
	events, err := fresh.Append(ctx, at, actor, decide)
	if is := text(); is != was {
		panic("an earlier fold has changed from " + was + " to " + is)
	}
	return events, err
}

func appendEvents(ctx context.Context, l *ledger.Ledger, at time.Time, events ...ledger.Event) error {
	_, err := decideOn(ctx, l, at, "builder", func(*ledger.Fold) ([]ledger.Event, error) { return events, nil })
	return err
}

func mustAppend(t *testing.T, l *ledger.Ledger, at time.Time, events ...ledger.Event) {
	t.Helper()
	must.Do(t, appendEvents(t.Context(), l, at, events...))
}

func session(t *testing.T, s *ledger.Fold) ledger.RoundRecord {
	t.Helper()
	found, ok := s.Record(monaco)
	if !ok {
		t.Fatalf("the state has no session %d", monaco)
	}
	return found
}

func TestOpenAndLoad(t *testing.T) {
	store := newStore(t)
	if _, err := ledger.Load(t.Context(), store, ledger.Real); !errors.Is(err, ledger.ErrNotOpened) {
		t.Fatalf("Load of an empty store: got %v, want ErrNotOpened", err)
	}
	first := must.Get(ledger.Open(t.Context(), store, ledger.Real, opened.In(time.FixedZone("CEST", 2*3600)), "builder", ""))(t)
	must.Equal(t, "the instant in the file", opened.String(), first.Files()[0].Events[0].At.String())
	again := must.Get(ledger.Open(t.Context(), store, ledger.Real, opened.Add(time.Hour), "another builder", ""))(t)
	if got, want := again.Head(), first.Head(); got != want || got.Seq != 1 {
		t.Errorf("head after a second Open: got %v, want %v, the first file", got, want)
	}
	if got := again.Fold(); got.Kind() != ledger.Real || !got.OpenedAt().Equal(opened) {
		t.Errorf("got a %s ledger opened at %s, want a real one opened at %s", got.Kind(), got.OpenedAt(), opened)
	}
}

// TestFailedCalls: an operation returns the error of its nth call to the store, for every n.
func TestFailedCalls(t *testing.T) {
	ctx, down := t.Context(), errors.New("down")
	for name, do := range map[string]func(s blob.Store, fail func()) error{
		"open": func(s blob.Store, fail func()) error {
			fail()
			return must.Err(ledger.Open(ctx, s, ledger.Real, opened, "builder", ""))
		},
		"load":  func(s blob.Store, fail func()) error { fail(); return must.Err(ledger.Load(ctx, s, ledger.Real)) },
		"audit": func(s blob.Store, fail func()) error { fail(); return must.Err(ledger.Audit(ctx, s)) },
		"append after another": func(s blob.Store, fail func()) error {
			fresh := must.Get(must.Get(ledger.Load(ctx, s, ledger.Real))(t).Refresh(ctx))(t)
			must.Do(t, appendEvents(ctx, must.Get(ledger.Load(ctx, s, ledger.Real))(t), opened, keyEvent(monaco, 2026, "monaco")))
			fail()
			return must.Err(fresh.Append(ctx, opened, "builder", func(*ledger.Fold) ([]ledger.Event, error) { return one(keyEvent(2026009, 2026, "spain")), nil }))
		},
	} {
		for n := int64(1); ; n++ {
			inner := newStore(t)
			if name != "open" {
				must.Get(ledger.Open(ctx, inner, ledger.Real, opened, "builder", ""))(t)
			}
			var armed atomic.Bool
			var calls atomic.Int64
			err := do(faultblob.Wrap(inner, func(context.Context, faultblob.Call) (fate faultblob.Fate) {
				if armed.Load() && calls.Add(1) == n {
					fate.Err = down
				}
				return fate
			}), func() { armed.Store(true) })
			if calls.Load() < n {
				must.Succeed(t, name, err)
				break
			}
			must.Fail(t, fmt.Sprintf("%s, call %d", name, n), err, down)
		}
	}
}

func TestKindsNeverMix(t *testing.T) {
	store := newStore(t)
	openWith(t, store)
	must.Fail(t, "Open of a real ledger as simulated", must.Err(ledger.Open(t.Context(), store, ledger.Simulated, opened, "replay", "")), ledger.ErrKind)
	must.Fail(t, "Load of a real ledger as simulated", must.Err(ledger.Load(t.Context(), store, ledger.Simulated)), ledger.ErrKind)
	must.Fail(t, "Open of no kind", must.Err(ledger.Open(t.Context(), newStore(t), ledger.AnyKind, opened, "builder", "")), ledger.ErrKind)
	reader := must.Get(ledger.Load(t.Context(), store, ledger.AnyKind))(t)
	must.Fail(t, "Append to a ledger loaded as any kind", appendEvents(t.Context(), reader, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true)), ledger.ErrKind)
}

func TestStateOfARound(t *testing.T) {
	l := openWith(t, newStore(t))
	frozenAt := start.Add(-20 * time.Hour)
	mustAppend(t, l, frozenAt, ledger.Freeze(monaco, pick, start, true))
	lap1 := pick
	lap1.P1, lap1.P2 = pick.P2, pick.P1
	mustAppend(t, l, start.Add(time.Hour), ledger.FreezeLive(monaco, pick, start, 50, lap39))
	mustAppend(t, l, start.Add(time.Hour), ledger.FreezeLive(monaco, lap1, start, 0, lap39))
	s := session(t, l.Fold())
	mustAppend(t, l, start.Add(3*time.Hour), s.Verify(rows("leclerc", "russell", "norris"), start, ""))
	s = session(t, l.Fold())
	mustAppend(t, l, start.Add(100*time.Hour), s.Verify(rows("russell", "norris", "hamilton"), start, "leclerc disqualified"))

	got := session(t, l.Fold())
	if got.Pick == nil || got.Pick.Pick != pick || !got.Pick.FrozenAt.Equal(frozenAt) || !got.Pick.GridKnown {
		t.Errorf("pick: got %+v, want %+v frozen at %s with the grid", got.Pick, pick, frozenAt)
	}
	if len(got.Live) != 2 || got.Live[0].Checkpoint != 0 || got.LivePick(50).Pick != pick || got.LivePick(0).Pick != lap1 {
		t.Errorf("live picks: got %+v, want those at 0 and 50 %%", got.Live)
	}
	if got.LivePick(75) != nil {
		t.Errorf("live pick at 75 %%: got %+v, want none", got.LivePick(75))
	}
	if len(got.Revisions) != 2 || got.Result().Revision != 2 || got.Result().Rows[0].Driver != "russell" {
		t.Errorf("revisions: got %+v, want two, the last won by russell", got.Revisions)
	}
	must.Equal(t, "changes of published rounds, which a first result is not", 1, len(l.Fold().Log()))
	if key, ok := l.Fold().Key(2026, "monaco"); !ok || key != monaco {
		t.Errorf("Key(2026, monaco): got %d, %v", key, ok)
	}
}

// TestTrials: two trials on one state do not see each other, and a cancelled round keeps the start to which it was moved.
func TestTrials(t *testing.T) {
	l := openWith(t, newStore(t))
	at, moved := start.Add(-5*time.Hour), start
	trial := func(events ...ledger.Event) ledger.RoundRecord {
		return session(t, must.Get(l.Fold().Trial(at, events))(t))
	}
	move := func(reason string) ledger.Event {
		round := session(t, l.Fold())
		return round.Move(moved, moved.Add(time.Hour), reason)
	}
	for range 3 { // the fourth change finds room behind them
		mustAppend(t, l, at, move("fog"))
		moved = moved.Add(time.Hour)
	}
	first := trial(move("first"))
	trial(move("second"))
	must.Equal(t, "the reason of the first move", "first", first.Override.Changes[3].Reason)
	fold := must.Get(l.Fold().Trial(at, one(move("first"))))(t)
	trial(move("second"))
	must.Equal(t, "the reason in the log of the first", "first", fold.Log()[len(fold.Log())-1].Reason)
	round := session(t, l.Fold())
	released := must.Get(l.Fold().Trial(at.Add(1), one(round.Release(moved, moved, "it is the sources' start"))))(t)
	must.Equal(t, "the instant of a trial", at.Add(1), released.At())
	must.Equal(t, "the log after a release that changes no start", l.Fold().Log(), released.Log())
	cancelled := trial(round.Cancel("flood")...)
	must.Equal(t, "the start of a cancelled round", moved, cancelled.Start(start))
	at = moved.Add(3 * time.Hour)
	verify := func(reason string) ledger.Event {
		round := session(t, l.Fold())
		return round.Verify(rows([]season.DriverID{"leclerc", "norris"}[len(round.Revisions)%2], "hamilton"), moved, reason)
	}
	for _, reason := range []string{"", "a plank", "another"} {
		mustAppend(t, l, at, verify(reason))
	}
	first = trial(verify("first"))
	trial(verify("second"))
	must.Equal(t, "the reason of the first revision", "first", first.Revisions[3].Reason)
}

// AsOf shows the past, also after later appends.
func TestAsOf(t *testing.T) {
	store := newStore(t)
	l := openWith(t, store)
	var heads []ledger.Head
	var instants []time.Time
	note := func(at time.Time, events ...ledger.Event) {
		mustAppend(t, l, at, events...)
		heads, instants = append(heads, l.Head()), append(instants, at)
	}
	note(start.Add(-3*time.Hour), ledger.Freeze(monaco, pick, start, true))
	s := session(t, l.Fold())
	note(start.Add(-2*time.Hour), s.Move(start, start.Add(-time.Hour), "storm in the afternoon"))
	note(start.Add(2*time.Hour), s.Verify(rows("leclerc", "norris", "russell"), start.Add(-time.Hour), ""))

	read := must.Get(ledger.Load(t.Context(), store, ledger.Real))(t)
	for i, at := range instants {
		for _, from := range []*ledger.Ledger{l, read} {
			if got := from.AsOf(at).Head(); got != heads[i] {
				t.Errorf("AsOf(%s): got head %v, want %v", at, got, heads[i])
			}
			if got := from.AsOf(at.Add(-1)).Head().Seq; got != heads[i].Seq-1 {
				t.Errorf("AsOf just before %s: got file %d, want %d", at, got, heads[i].Seq-1)
			}
		}
	}
	before := session(t, l.AsOf(start.Add(-3*time.Hour)))
	if !before.Override.Start.IsZero() || before.Result() != nil || before.Pick == nil {
		t.Errorf("before the move: got %+v, want a pick and nothing else", before)
	}
	if got := l.AsOf(opened.Add(-1)).Kind(); got != ledger.AnyKind {
		t.Errorf("before the first event: got a %s ledger, want none", got)
	}
}

// A process sees the events of another one only after a refresh.
func TestRefresh(t *testing.T) {
	store := newStore(t)
	writer := openWith(t, store)
	reader := must.Get(ledger.Load(t.Context(), store, ledger.AnyKind))(t)
	seen := reader.Fold()
	mustAppend(t, writer, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true))
	if reader.Fold() != seen {
		t.Error("the state changed without a refresh")
	}
	must.Get(reader.Refresh(t.Context()))(t)
	if diff := cmp.Diff(session(t, writer.Fold()), session(t, reader.Fold())); diff != "" {
		t.Errorf("writer and reader differ (-writer +reader):\n%s", diff)
	}
	if session(t, seen).Pick != nil {
		t.Error("a state handed out before was changed by the refresh")
	}
	must.Equal(t, "entries", 3, len(reader.Files()))
}

// An append writes all events or none, and the error names the refused event.
func TestAppendIsWhole(t *testing.T) {
	l := openWith(t, newStore(t))
	head := l.Head()
	err := appendEvents(t.Context(), l, start.Add(-time.Hour),
		ledger.Freeze(monaco, pick, start, true),
		ledger.Freeze(2026099, pick, start, true))
	var refused *ledger.RefusedError
	if !errors.As(err, &refused) || refused.Event.Session != 2026099 || !errors.Is(err, ledger.ErrUnknownSession) {
		t.Errorf("got %v, want a refusal of the second event for its unknown session", err)
	}
	if l.Head() != head {
		t.Errorf("head after a refused append: got %v, want %v", l.Head(), head)
	}
	must.Fail(t, "an event without an id", l.Fold().Check(ledger.Event{Type: ledger.RoundCancelled, At: opened, Actor: "builder", Session: monaco, Reason: "flood"}))
	stop := errors.New("not now")
	must.Fail(t, "decideOn", must.Err(decideOn(t.Context(), l, start, "builder", func(*ledger.Fold) ([]ledger.Event, error) { return nil, stop })), stop)
}

func TestDamageIsNamed(t *testing.T) {
	for name, damage := range map[string]struct {
		file int64
		do   func(*memblob.Store, string) error
	}{
		"a hole": {2, func(s *memblob.Store, key string) error { return s.Delete(context.Background(), key) }},
		"cut":    {2, func(s *memblob.Store, key string) error { s.Corrupt(key, []byte(`{"seq":2`)); return nil }},
		"no end": {3, func(s *memblob.Store, key string) error { s.Corrupt(key, make([]byte, blob.MaxDocument+1)); return nil }},
		"a stray": {4, func(s *memblob.Store, _ string) error {
			_, err := s.Create(context.Background(), ledger.Key(99_999_999), []byte("{}"))
			return err
		}},
		"no JSON": {3, func(s *memblob.Store, key string) error { s.Corrupt(key, nil); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			store := memblob.New()
			l := openWith(t, store)
			mustAppend(t, l, opened, ledger.Freeze(monaco, pick, start, true))
			must.Do(t, damage.do(store, ledger.Key(damage.file)))
			_, err := ledger.Load(t.Context(), store, ledger.Real)
			var found *ledger.DamageError
			if !errors.As(err, &found) || found.Key != ledger.Key(damage.file) {
				t.Errorf("got %v, want a *DamageError at %s", err, ledger.Key(damage.file))
			}
			golden.Sentence(t, t.Name(), err)
		})
	}
}

// TestFirstFile: the first file opens a ledger of a known kind.
func TestFirstFile(t *testing.T) {
	for name, f := range map[string]ledger.File{
		"another event": {Kind: ledger.Real, Events: one(keyEvent(monaco, 2026, "monaco"))},
		"two kinds":     {Kind: ledger.Real, Events: one(ledger.Event{Type: ledger.Opened, Kind: ledger.Simulated})},
		"no kind":       {Kind: "toy", Events: one(ledger.Event{Type: ledger.Opened, Kind: "toy"})},
		"no event":      {Kind: ledger.Real},
	} {
		f.Seq = 1
		for i := range f.Events {
			f.Events[i].ID, f.Events[i].At, f.Events[i].Actor = "A1", opened, "builder"
		}
		store := memblob.New()
		must.Get(store.Create(t.Context(), ledger.Key(1), must.Get(f.Encode())(t)))(t)
		var damage *ledger.DamageError
		err := must.Err(ledger.Load(t.Context(), store, ledger.AnyKind))
		must.Hold(t, errors.As(err, &damage), "%s: got %v, want damage", name, err)
		golden.Sentence(t, t.Name()+"/"+name, err)
	}
}

func TestKeysListInOrder(t *testing.T) {
	last := ""
	for _, seq := range []int64{1, 2, 9, 10, 99, 100, 12345, 99_999_999} {
		key := ledger.Key(seq)
		if key <= last {
			t.Errorf("key %s of file %d does not sort after %s", key, seq, last)
		}
		last = key
	}
	must.Equal(t, "ledger.Key(42)", "ledger/00000042.json", ledger.Key(42))
}
