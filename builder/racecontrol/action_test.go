package racecontrol_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/racecontrol"
	"gridcast/builder/season"
)

const (
	verify    = racecontrol.Verify
	correct   = racecontrol.Correct
	postpone  = racecontrol.Postpone
	cancel    = racecontrol.Cancel
	move      = racecontrol.Move
	reinstate = racecontrol.Reinstate
)

func TestWhatIsAllowedWhen(t *testing.T) {
	w := newWorld(t, opened)
	before := belgiumStart.Add(-time.Hour)
	w.wantAllowed("before the start", before, belgium, postpone, cancel, move)
	w.wantAllowed("while it runs", belgiumStart.Add(time.Minute), belgium, correct, postpone, cancel)
	w.wantAllowed("when it is over", belgiumOver, belgium, verify, correct, postpone, cancel)
	w.wantAllowed("vouched for by the archive", before, 2024001, correct)

	w.decide(before, belgium, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Postpone("fog") })
	w.wantAllowed("postponed", before, belgium, cancel, reinstate)
	w.wantAllowed("postponed, whatever the source says", belgiumOver, belgium, cancel, reinstate)
	w.decide(before, belgium, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Cancel("more fog") })
	w.wantAllowed("cancelled", before, belgium, reinstate)
	w.decide(before, belgium, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "sun") })
	w.wantAllowed("reinstated", before, belgium, postpone, cancel, move)

	w.decide(belgiumOver, belgium, (*racecontrol.Round).Verify)
	w.wantAllowed("verified", belgiumOver, belgium, correct)
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	w := newWorld(t, opened)
	err := w.try(belgiumStart.Add(-time.Hour), belgium, func(r *racecontrol.Round) ([]ledger.Event, error) {
		return r.Reinstate(belgiumStart.Add(time.Hour), "why not")
	})
	if !errors.Is(err, ledger.ErrUnchanged) || !strings.Contains(err.Error(), "allowed now: postpone, cancel, move") {
		t.Errorf("reinstate what is scheduled: got %v, want ErrUnchanged and what is allowed", err)
	}
	for what, tt := range map[string]struct {
		at      time.Time
		session int64
		decide  func(*racecontrol.Round) ([]ledger.Event, error)
		want    error
	}{
		"a round that nobody knows":   {belgiumOver, 2024099, (*racecontrol.Round).Verify, ledger.ErrUnknownSession},
		"verify what is vouched for":  {belgiumOver, 2024001, (*racecontrol.Round).Verify, racecontrol.ErrVouched},
		"cancel what is vouched for":  {belgiumOver, 2024001, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Cancel("x") }, racecontrol.ErrVouched},
		"correct to what it is":       {belgiumOver, 2024001, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Correct(r.Source(), "x") }, ledger.ErrUnchanged},
		"move what has started":       {belgiumOver, belgium, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Move(belgiumOver.Add(time.Hour), "x") }, ledger.ErrStarted},
		"move into the past":          {belgiumStart.Add(-time.Hour), belgium, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Move(belgiumStart.Add(-2*time.Hour), "x") }, ledger.ErrStarted},
		"with a clock that is behind": {opened.Add(-time.Hour), belgium, func(r *racecontrol.Round) ([]ledger.Event, error) { return r.Cancel("x") }, ledger.ErrOlder},
		"move to a part of a second": {belgiumStart.Add(-time.Hour), belgium, func(r *racecontrol.Round) ([]ledger.Event, error) {
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
	w := newWorld(t, opened)
	w.decide(belgiumOver, bahrain, func(r *racecontrol.Round) ([]ledger.Event, error) {
		rows, err := r.Rule(racecontrol.Ruling{Disqualified: []season.DriverID{r.Facts.Winner().Driver}})
		if err != nil {
			return nil, err
		}
		return r.Correct(rows, "found out in July")
	})
	r := w.round(belgiumOver, bahrain)
	if r.Vouched() || !r.Differs() || r.Valid()[0].Driver != "sergio-perez" || r.Valid()[0].Points != 25 {
		t.Errorf("after the correction: vouched %v, differs %v, won by %+v", r.Vouched(), r.Differs(), r.Valid()[0])
	}
	if got := r.Said.Result(); got.Revision != 1 || got.Reason != "found out in July" {
		t.Errorf("revision %d, reason %q; want the first, with its reason", got.Revision, got.Reason)
	}
}

func TestLists(t *testing.T) {
	w := newWorld(t, opened)
	if got := w.desk(belgiumStart).Waiting(); len(got) != 3 || got[2].Session != belgium {
		t.Errorf("at lights out %d results wait, want those of Britain and Hungary and the race itself", len(got))
	}
	w.decide(belgiumOver, belgium, (*racecontrol.Round).Verify)
	w.decide(belgiumOver.Add(time.Hour), 2024012, (*racecontrol.Round).Verify)
	desk := w.desk(belgiumOver.Add(time.Hour))
	if got := desk.Waiting(); len(got) != 1 || got[0].Session != 2024013 {
		t.Errorf("%d results wait, want that of Hungary", len(got))
	}
	if got := desk.Verified(); len(got) != 2 || got[0].Session != 2024012 || got[1].Session != belgium {
		t.Errorf("verified %d, want Britain, decided last, and Belgium", len(got))
	}
	if got := desk.Rounds(0); len(got) != 24 || got[0].Year != 2024 {
		t.Errorf("the current season has %d rounds, want the 24 of 2024", len(got))
	}
}
