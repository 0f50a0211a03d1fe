package almanac_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/almanac/almanactest"
	"gridcast/builder/ledger"
)

// deciding is a history on which a test makes decisions.
type deciding struct {
	*almanactest.History
	t *testing.T
}

func (w deciding) wantAllowed(what string, at time.Time, session int64, want ...almanac.Decision) {
	w.t.Helper()
	if got := w.Round(at, session).Allowed(); !slices.Equal(got, want) {
		w.t.Errorf("%s: allowed %v, want %v", what, got, want)
	}
}

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
	w := deciding{almanactest.New(t, almanactest.Opened), t}
	before := almanactest.BelgiumStart.Add(-time.Hour)
	w.wantAllowed("before the start", before, almanactest.Belgium, postpone, cancel, move)
	w.wantAllowed("while it runs", almanactest.BelgiumStart.Add(time.Minute), almanactest.Belgium, correct, postpone, cancel)
	w.wantAllowed("when it is over", almanactest.BelgiumOver, almanactest.Belgium, verify, correct, postpone, cancel)
	w.wantAllowed("vouched for by the archive", before, 2024001, correct)

	w.Decide(before, almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") })
	w.wantAllowed("postponed", before, almanactest.Belgium, cancel, reinstate)
	w.wantAllowed("postponed, whatever the source says", almanactest.BelgiumOver, almanactest.Belgium, cancel, reinstate)
	w.Decide(before, almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("more fog") })
	w.wantAllowed("cancelled", before, almanactest.Belgium, reinstate)
	w.Decide(before, almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "sun") })
	w.wantAllowed("reinstated", before, almanactest.Belgium, postpone, cancel, move)

	w.Decide(before, almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Move(almanactest.BelgiumStart.Add(time.Hour), "storm")
	})
	w.wantAllowed("moved", before, almanactest.Belgium, postpone, cancel, move, release)
	w.Decide(before, almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Release("the source has it now") })
	w.wantAllowed("released", before, almanactest.Belgium, postpone, cancel, move)
	if got := w.Round(before, almanactest.Belgium).Start; !got.Equal(almanactest.BelgiumStart) {
		t.Errorf("released, it starts at %s, want %s, as the source says", got, almanactest.BelgiumStart)
	}

	w.Decide(almanactest.BelgiumOver, almanactest.Belgium, (*almanac.Round).Verify)
	w.wantAllowed("verified", almanactest.BelgiumOver, almanactest.Belgium, correct)
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	w := deciding{almanactest.New(t, almanactest.Opened), t}
	err := w.Try(almanactest.BelgiumStart.Add(-time.Hour), almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Reinstate(almanactest.BelgiumStart.Add(time.Hour), "why not")
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
		"a round that nobody knows":  {almanactest.BelgiumOver, 2024099, (*almanac.Round).Verify, ledger.ErrUnknownSession},
		"verify what is vouched for": {almanactest.BelgiumOver, 2024001, (*almanac.Round).Verify, almanac.ErrVouched},
		"cancel what is vouched for": {almanactest.BelgiumOver, 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, almanac.ErrVouched},
		"correct to what it is":      {almanactest.BelgiumOver, 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Correct(r.Source(), nil, "x") }, ledger.ErrUnchanged},
		"move what has started": {almanactest.BelgiumOver, almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(almanactest.BelgiumOver.Add(time.Hour), "x")
		}, ledger.ErrStarted},
		"move into the past": {almanactest.BelgiumStart.Add(-time.Hour), almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(almanactest.BelgiumStart.Add(-2*time.Hour), "x")
		}, ledger.ErrPast},
		"with a clock that is behind": {almanactest.Opened.Add(-time.Hour), almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, ledger.ErrOlder},
		"move to a part of a second": {almanactest.BelgiumStart.Add(-time.Hour), almanactest.Belgium, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(almanactest.BelgiumOver.Add(time.Millisecond), "x")
		}, ledger.ErrNoStart},
	} {
		head := w.Ledger.Head()
		if err := w.Try(tt.at, tt.session, tt.decide); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", what, err, tt.want)
		}
		if w.Ledger.Head() != head {
			t.Errorf("%s: something was written", what)
		}
	}
}

// The archive's result of a race before the ledger can still be corrected.
func TestCorrectionOfWhatTheArchiveVouchesFor(t *testing.T) {
	const bahrain = 2024001
	w := deciding{almanactest.New(t, almanactest.Opened), t}
	w.Decide(almanactest.BelgiumOver, bahrain, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := slices.Clone(r.Source())
		rows[0].Position, rows[0].Points = 0, 0
		for i := range rows[1:] {
			rows[i+1].Position, rows[i+1].Points = i+1, r.Source()[i].Points
		}
		return r.Correct(append(rows[1:], rows[0]), nil, "found out in July")
	})
	r := w.Round(almanactest.BelgiumOver, bahrain)
	if r.Vouched() || !r.Differs() || r.Valid()[0].Driver != "sergio-perez" || r.Valid()[0].Points != 26 {
		t.Errorf("after the correction: vouched %v, differs %v, won by %+v", r.Vouched(), r.Differs(), r.Valid()[0])
	}
	if got := r.Record.Result(); got.Revision != 1 || got.Reason != "found out in July" {
		t.Errorf("revision %d, reason %q; want the first, with its reason", got.Revision, got.Reason)
	}
}

func TestLists(t *testing.T) {
	w := deciding{almanactest.New(t, almanactest.Opened), t}
	if got := w.Almanac(almanactest.BelgiumStart).Waiting(); len(got) != 3 || got[2].Session != almanactest.Belgium {
		t.Errorf("at lights out %d results wait, want those of Britain and Hungary and the race itself", len(got))
	}
	w.Decide(almanactest.BelgiumOver, almanactest.Belgium, (*almanac.Round).Verify)
	w.Decide(almanactest.BelgiumOver.Add(time.Hour), 2024012, (*almanac.Round).Verify)
	a := w.Almanac(almanactest.BelgiumOver.Add(time.Hour))
	if got := a.Waiting(); len(got) != 1 || got[0].Session != 2024013 {
		t.Errorf("%d results wait, want that of Hungary", len(got))
	}
	if got := a.Verified(); len(got) != 2 || got[0].Session != 2024012 || got[1].Session != almanactest.Belgium {
		t.Errorf("verified %d, want Britain, decided last, and Belgium", len(got))
	}
	if got := a.Rounds(0); len(got) != 24 || got[0].Year != 2024 {
		t.Errorf("the current season has %d rounds, want the 24 of 2024", len(got))
	}
}
