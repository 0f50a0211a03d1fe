package almanac_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/snapshots/blob/memblob"
)

var embedded = sync.OnceValues(archive.Embedded)

// history is the embedded seasons with a ledger opened at an instant.
type history struct {
	t       *testing.T
	archive *season.Archive
	ledger  *ledger.Ledger
}

func newHistory(t *testing.T, opened time.Time) *history {
	t.Helper()
	a, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), memblob.New(), ledger.Simulated, opened, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), opened, "test", func(s *ledger.State) ([]ledger.Event, error) {
		keys, err := ledger.AssignKeys(s, a.Facts().Seasons)
		return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &history{t, a, l}
}

func (w *history) almanac(at time.Time) *almanac.Almanac {
	return almanac.Join(w.archive.AsOf(at), w.ledger.AsOf(at))
}

func (w *history) round(at time.Time, session int64) *almanac.Round {
	w.t.Helper()
	r, err := w.almanac(at).Round(session)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *history) try(at time.Time, session int64, decide func(*almanac.Round) ([]ledger.Event, error)) error {
	_, err := almanac.Decide(w.t.Context(), w.ledger, w.archive.AsOf(at), "operator:test", session, nil, decide)
	return err
}

func (w *history) decide(at time.Time, session int64, decide func(*almanac.Round) ([]ledger.Event, error)) {
	w.t.Helper()
	if err := w.try(at, session, decide); err != nil {
		w.t.Fatalf("decide on %d at %s: %v", session, at, err)
	}
}

func (w *history) wantAllowed(what string, at time.Time, session int64, want ...almanac.Action) {
	w.t.Helper()
	if got := w.round(at, session).Allowed(); !slices.Equal(got, want) {
		w.t.Errorf("%s: allowed %v, want %v", what, got, want)
	}
}

// Belgium 2024: Russell won on the road and was disqualified.
const belgium = 2024014

var (
	belgiumStart = time.Date(2024, 7, 28, 13, 0, 0, 0, time.UTC)
	belgiumOver  = belgiumStart.Add(3 * time.Hour)
	opened       = time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
)

const (
	verify    = almanac.Verify
	correct   = almanac.Correct
	postpone  = almanac.Postpone
	cancel    = almanac.Cancel
	move      = almanac.Move
	reinstate = almanac.Reinstate
	release   = almanac.Release
)

func TestWhatIsAllowedWhen(t *testing.T) {
	w := newHistory(t, opened)
	before := belgiumStart.Add(-time.Hour)
	w.wantAllowed("before the start", before, belgium, postpone, cancel, move)
	w.wantAllowed("while it runs", belgiumStart.Add(time.Minute), belgium, correct, postpone, cancel)
	w.wantAllowed("when it is over", belgiumOver, belgium, verify, correct, postpone, cancel)
	w.wantAllowed("vouched for by the archive", before, 2024001, correct)

	w.decide(before, belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") })
	w.wantAllowed("postponed", before, belgium, cancel, reinstate)
	w.wantAllowed("postponed, whatever the source says", belgiumOver, belgium, cancel, reinstate)
	w.decide(before, belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("more fog") })
	w.wantAllowed("cancelled", before, belgium, reinstate)
	w.decide(before, belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "sun") })
	w.wantAllowed("reinstated", before, belgium, postpone, cancel, move)

	w.decide(before, belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Move(belgiumStart.Add(time.Hour), "storm") })
	w.wantAllowed("moved", before, belgium, postpone, cancel, move, release)
	w.decide(before, belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Release("the source has it now") })
	w.wantAllowed("released", before, belgium, postpone, cancel, move)
	if got := w.round(before, belgium).Start; !got.Equal(belgiumStart) {
		t.Errorf("released, it starts at %s, want %s, as the source says", got, belgiumStart)
	}

	w.decide(belgiumOver, belgium, (*almanac.Round).Verify)
	w.wantAllowed("verified", belgiumOver, belgium, correct)
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	w := newHistory(t, opened)
	err := w.try(belgiumStart.Add(-time.Hour), belgium, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Reinstate(belgiumStart.Add(time.Hour), "why not")
	})
	if !errors.Is(err, ledger.ErrUnchanged) || !strings.Contains(err.Error(), "allowed now: postpone, cancel, move") {
		t.Errorf("reinstate what is scheduled: got %v, want ErrUnchanged and what is allowed", err)
	}
	for what, tt := range map[string]struct {
		at      time.Time
		session int64
		decide  func(*almanac.Round) ([]ledger.Event, error)
		want    error
	}{
		"a round that nobody knows":   {belgiumOver, 2024099, (*almanac.Round).Verify, ledger.ErrUnknownSession},
		"verify what is vouched for":  {belgiumOver, 2024001, (*almanac.Round).Verify, almanac.ErrVouched},
		"cancel what is vouched for":  {belgiumOver, 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, almanac.ErrVouched},
		"correct to what it is":       {belgiumOver, 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Correct(r.Source(), "x") }, ledger.ErrUnchanged},
		"move what has started":       {belgiumOver, belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Move(belgiumOver.Add(time.Hour), "x") }, ledger.ErrStarted},
		"move into the past":          {belgiumStart.Add(-time.Hour), belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Move(belgiumStart.Add(-2*time.Hour), "x") }, ledger.ErrStarted},
		"with a clock that is behind": {opened.Add(-time.Hour), belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, ledger.ErrOlder},
		"move to a part of a second": {belgiumStart.Add(-time.Hour), belgium, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(belgiumOver.Add(time.Millisecond), "x")
		}, ledger.ErrNoStart},
	} {
		head := w.ledger.Head()
		if err := w.try(tt.at, tt.session, tt.decide); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", what, err, tt.want)
		}
		if w.ledger.Head() != head {
			t.Errorf("%s: something was written", what)
		}
	}
}

// The archive's result of a race before the ledger can be corrected all the same.
func TestCorrectionOfWhatTheArchiveVouchesFor(t *testing.T) {
	const bahrain = 2024001
	w := newHistory(t, opened)
	w.decide(belgiumOver, bahrain, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := slices.Clone(r.Source())
		rows[0].Position, rows[0].Points = 0, 0
		for i := range rows[1:] {
			rows[i+1].Position, rows[i+1].Points = i+1, r.Source()[i].Points
		}
		return r.Correct(append(rows[1:], rows[0]), "found out in July")
	})
	r := w.round(belgiumOver, bahrain)
	if r.Vouched() || !r.Differs() || r.Valid()[0].Driver != "sergio-perez" || r.Valid()[0].Points != 26 {
		t.Errorf("after the correction: vouched %v, differs %v, won by %+v", r.Vouched(), r.Differs(), r.Valid()[0])
	}
	if got := r.Record.Result(); got.Revision != 1 || got.Reason != "found out in July" {
		t.Errorf("revision %d, reason %q; want the first, with its reason", got.Revision, got.Reason)
	}
}

func TestLists(t *testing.T) {
	w := newHistory(t, opened)
	if got := w.almanac(belgiumStart).Waiting(); len(got) != 3 || got[2].Session != belgium {
		t.Errorf("at lights out %d results wait, want those of Britain and Hungary and the race itself", len(got))
	}
	w.decide(belgiumOver, belgium, (*almanac.Round).Verify)
	w.decide(belgiumOver.Add(time.Hour), 2024012, (*almanac.Round).Verify)
	a := w.almanac(belgiumOver.Add(time.Hour))
	if got := a.Waiting(); len(got) != 1 || got[0].Session != 2024013 {
		t.Errorf("%d results wait, want that of Hungary", len(got))
	}
	if got := a.Verified(); len(got) != 2 || got[0].Session != 2024012 || got[1].Session != belgium {
		t.Errorf("verified %d, want Britain, decided last, and Belgium", len(got))
	}
	if got := a.Rounds(0); len(got) != 24 || got[0].Year != 2024 {
		t.Errorf("the current season has %d rounds, want the 24 of 2024", len(got))
	}
}
