package almanac_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/testseason"
)

// deciding is a history on which a test makes decisions.
type deciding struct {
	*testseason.Season
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
	w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
	before := testseason.Belgium.Start.Add(-time.Hour)
	w.wantAllowed("before the start", before, testseason.Belgium.Key, postpone, cancel, move)
	w.wantAllowed("while it runs", testseason.Belgium.Start.Add(time.Minute), testseason.Belgium.Key, correct, postpone, cancel)
	w.wantAllowed("when it is over", testseason.Belgium.Over(), testseason.Belgium.Key, verify, correct, postpone, cancel)
	w.wantAllowed("vouched for by the archive", before, 2024001, correct)

	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") })
	w.wantAllowed("postponed", before, testseason.Belgium.Key, cancel, reinstate)
	w.wantAllowed("postponed, whatever the source says", testseason.Belgium.Over(), testseason.Belgium.Key, cancel, reinstate)
	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("more fog") })
	w.wantAllowed("cancelled", before, testseason.Belgium.Key, reinstate)
	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "sun") })
	w.wantAllowed("reinstated", before, testseason.Belgium.Key, postpone, cancel, move)

	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Move(testseason.Belgium.Start.Add(time.Hour), "storm")
	})
	w.wantAllowed("moved", before, testseason.Belgium.Key, postpone, cancel, move, release)
	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Release("the source has it now") })
	w.wantAllowed("released", before, testseason.Belgium.Key, postpone, cancel, move)
	if got := w.Round(before, testseason.Belgium.Key).Start; !got.Equal(testseason.Belgium.Start) {
		t.Errorf("released, it starts at %s, want %s, as the source says", got, testseason.Belgium.Start)
	}

	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, (*almanac.Round).Verify)
	w.wantAllowed("verified", testseason.Belgium.Over(), testseason.Belgium.Key, correct)
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
	err := w.Try(testseason.Belgium.Start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Reinstate(testseason.Belgium.Start.Add(time.Hour), "why not")
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
		"a round that nobody knows":  {testseason.Belgium.Over(), 2024099, (*almanac.Round).Verify, ledger.ErrUnknownSession},
		"verify what is vouched for": {testseason.Belgium.Over(), 2024001, (*almanac.Round).Verify, almanac.ErrVouched},
		"cancel what is vouched for": {testseason.Belgium.Over(), 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, almanac.ErrVouched},
		"correct to what it is":      {testseason.Belgium.Over(), 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Correct(r.Source(), nil, "x") }, ledger.ErrUnchanged},
		"move what has started": {testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(testseason.Belgium.Over().Add(time.Hour), "x")
		}, ledger.ErrStarted},
		"move into the past": {testseason.Belgium.Start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(testseason.Belgium.Start.Add(-2*time.Hour), "x")
		}, ledger.ErrPast},
		"with a clock that is behind": {testseason.Belgium.Opened.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, ledger.ErrOlder},
		"move to a part of a second": {testseason.Belgium.Start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(testseason.Belgium.Over().Add(time.Millisecond), "x")
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
	w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
	w.Decide(testseason.Belgium.Over(), bahrain, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := slices.Clone(r.Source())
		rows[0].Position, rows[0].Points = 0, 0
		for i := range rows[1:] {
			rows[i+1].Position, rows[i+1].Points = i+1, r.Source()[i].Points
		}
		return r.Correct(append(rows[1:], rows[0]), nil, "found out in July")
	})
	r := w.Round(testseason.Belgium.Over(), bahrain)
	if r.Vouched() || !r.Differs() || r.Valid()[0].Driver != "sergio-perez" || r.Valid()[0].Points != 26 {
		t.Errorf("after the correction: vouched %v, differs %v, won by %+v", r.Vouched(), r.Differs(), r.Valid()[0])
	}
	if got := r.Record.Result(); got.Revision != 1 || got.Reason != "found out in July" {
		t.Errorf("revision %d, reason %q; want the first, with its reason", got.Revision, got.Reason)
	}
}

func TestLists(t *testing.T) {
	w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
	if got := w.Almanac(testseason.Belgium.Start).Waiting(); len(got) != 3 || got[2].Session != testseason.Belgium.Key {
		t.Errorf("at lights out %d results wait, want those of Britain and Hungary and the race itself", len(got))
	}
	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, (*almanac.Round).Verify)
	w.Decide(testseason.Belgium.Over().Add(time.Hour), 2024012, (*almanac.Round).Verify)
	a := w.Almanac(testseason.Belgium.Over().Add(time.Hour))
	if got := a.Waiting(); len(got) != 1 || got[0].Session != 2024013 {
		t.Errorf("%d results wait, want that of Hungary", len(got))
	}
	if got := a.Verified(); len(got) != 2 || got[0].Session != 2024012 || got[1].Session != testseason.Belgium.Key {
		t.Errorf("verified %d, want Britain, decided last, and Belgium", len(got))
	}
	if got := a.Rounds(0); len(got) != 24 || got[0].Year != 2024 {
		t.Errorf("the current season has %d rounds, want the 24 of 2024", len(got))
	}
}
