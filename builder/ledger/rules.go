package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gridcast/builder/season"
)

// Why an event is refused, for callers that act on it. All come wrapped in a *RefusedError.
var (
	// ErrAlreadyFrozen: the pick, or the live pick of the checkpoint, is frozen already. Whoever
	// wanted it frozen need do nothing.
	ErrAlreadyFrozen = errors.New("already frozen")
	// ErrStarted: too late, lights out that was valid then has come.
	ErrStarted = errors.New("the race has started")
	// ErrNotStarted: too early, lights out that was valid then has not come.
	ErrNotStarted = errors.New("the race has not started")
	// ErrAlreadyVerified: the result has been verified.
	ErrAlreadyVerified = errors.New("the result is already verified")
	// ErrUnchanged: the correction or decision would change nothing.
	ErrUnchanged = errors.New("nothing would change")
	// ErrNotHeld: the round is postponed or cancelled.
	ErrNotHeld = errors.New("the round is postponed or cancelled")
	// ErrNoStart: a race starts at a whole second.
	ErrNoStart = errors.New("a start is a whole second")
	// ErrUnknownSession: the session key was never assigned.
	ErrUnknownSession = errors.New("unknown session key")
	// ErrByPerson: a person decided, and a source does not change that before they release it.
	ErrByPerson = errors.New("a person decided on the round")
	// ErrOlder: the event is older than one that was there before it, or than the ledger.
	ErrOlder = errors.New("older than the ledger")
)

// RefusedError says which event a ledger refused, and why.
type RefusedError struct {
	Event Event
	Err   error
}

func (e *RefusedError) Error() string {
	if e.Event.Session == 0 {
		return fmt.Sprintf("ledger refuses %s: %v", e.Event.Type, e.Err)
	}
	return fmt.Sprintf("ledger refuses %s of %d: %v", e.Event.Type, e.Event.Session, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// stamp returns the event with the instant that it gets if it is appended on s now.
func (s *State) stamp(e Event, now time.Time) Event {
	e.At, e.Made = now, time.Time{}
	if now.Before(s.at) {
		e.At, e.Made = s.at, now
	}
	return e
}

// Allows returns nil if the event could be appended on s by somebody whose clock shows now, else
// a *RefusedError.
func (s *State) Allows(e Event, now time.Time) error {
	e.ID, e.Actor = "trial", "trial"
	return s.Check(s.stamp(e, now.UTC().Round(0)))
}

// Check returns nil if e may follow on s, else a *RefusedError. Beside the rule of its type,
// an event has an id, an instant not before the last one, an actor, and no field that its type
// does not use; the first event and no other opens the ledger.
func (s *State) Check(e Event) error {
	if err := s.check(e); err != nil {
		return &RefusedError{Event: e, Err: err}
	}
	return nil
}

func (s *State) check(e Event) error {
	switch {
	case e.ID == "" || e.At.IsZero() || e.Actor == "":
		return errors.New("id, instant and actor are required")
	case e.At.Before(s.at):
		return fmt.Errorf("%w: %s is before its last event, of %s", ErrOlder, instant(e.At), instant(s.at))
	case e.When().Before(s.opened):
		return fmt.Errorf("%w: %s is before it was opened, at %s", ErrOlder, instant(e.When()), instant(s.opened))
	case !e.Made.IsZero() && (!e.Made.Before(e.At) || !e.At.Equal(s.at)):
		return fmt.Errorf("made at %s, it has the instant of the head, not %s", instant(e.Made), instant(e.At))
	case (e.Type == Opened) != (s.kind == AnyKind):
		return errors.New("the first event and no other opens the ledger")
	}
	if err := checkFields(e); err != nil {
		return err
	}
	switch e.Type {
	case Opened:
		return checkKind(e.Kind)
	case KeysAssigned:
		return s.checkKeys(e.Keys)
	case DriverRenamed:
		if e.From == e.To || s.Driver(e.From) == e.To {
			return fmt.Errorf("%w: %s is %s", ErrUnchanged, e.From, e.To)
		}
		return nil
	}
	record, ok := s.records[e.Session]
	if !ok {
		return fmt.Errorf("%w %d", ErrUnknownSession, e.Session)
	}
	switch e.Type {
	case PickFrozen, LivePickFrozen:
		return record.checkFreeze(e)
	case PickVoided:
		return record.checkVoid()
	case ResultVerified:
		return s.checkVerify(record, e)
	default:
		return record.checkDecision(e)
	}
}

func checkKind(k Kind) error {
	if k != Real && k != Simulated {
		return fmt.Errorf("a ledger is %s or %s, not %q", Real, Simulated, k)
	}
	return nil
}

// fieldsOf says which fields an event of a type needs and which it may have. The rest are
// absent.
var fieldsOf = map[Type]struct{ need, may []string }{
	Opened:          {need: []string{"kind"}, may: []string{"archive"}},
	KeysAssigned:    {need: []string{"keys"}},
	PickFrozen:      {need: []string{"session_key", "pick", "start"}, may: []string{"grid_known", "archive", "basis", "chances"}},
	PickVoided:      {need: []string{"session_key", "reason"}},
	LivePickFrozen:  {need: []string{"session_key", "pick", "start"}, may: []string{"checkpoint_pct", "archive", "chances", "lap", "data_age_ms"}},
	ResultVerified:  {need: []string{"session_key", "result", "start"}, may: []string{"reason"}},
	RoundPostponed:  {need: []string{"session_key", "reason"}, may: []string{"was"}},
	RoundCancelled:  {need: []string{"session_key", "reason"}},
	RoundMoved:      {need: []string{"session_key", "reason", "start", "was"}},
	RoundReinstated: {need: []string{"session_key", "reason"}, may: []string{"start"}},
	RoundReleased:   {need: []string{"session_key", "reason", "start", "was"}},
	DriverRenamed:   {need: []string{"from", "to"}, may: []string{"reason"}},
}

// checkFields refuses an event of unknown type, one that lacks a field, one with a field its type
// does not use, and an archive that is no hash.
func checkFields(e Event) error {
	fields, ok := fieldsOf[e.Type]
	if !ok {
		return fmt.Errorf("unknown type of event %q", e.Type)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"session_key", e.Session != 0},
		{"reason", e.Reason != ""},
		{"kind", e.Kind != AnyKind},
		{"keys", e.Keys != nil},
		{"pick", e.Pick != nil},
		{"checkpoint_pct", e.Checkpoint != 0},
		{"start", !e.Start.IsZero()},
		{"was", !e.Was.IsZero()},
		{"grid_known", e.GridKnown},
		{"result", e.Result != nil},
		{"archive", e.Archive != ""},
		{"basis", e.Basis != ""},
		{"chances", e.Chances != nil},
		{"lap", e.Lap != 0},
		{"data_age_ms", e.DataAge != 0},
		{"from", e.From != ""},
		{"to", e.To != ""},
	} {
		if needed := slices.Contains(fields.need, f.name); needed && !f.set {
			return fmt.Errorf("%s is required", f.name)
		} else if f.set && !needed && !slices.Contains(fields.may, f.name) {
			return fmt.Errorf("%s has no meaning here", f.name)
		}
	}
	if sum, err := hex.DecodeString(e.Archive); e.Archive != "" && (err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != e.Archive) {
		return fmt.Errorf("the archive is named by its lower-case hex SHA-256, not by %q", e.Archive)
	}
	return nil
}

// checkFreeze: a pick is frozen before the start then valid, once; a live pick after it, once for
// each checkpoint. The round is to be held, at the start that the event says, and has no result.
func (r *Record) checkFreeze(e Event) error {
	live := e.Type == LivePickFrozen
	before := r.Pick
	if live {
		before = r.LivePick(e.Checkpoint)
	}
	switch {
	case before != nil:
		return fmt.Errorf("%w at %s", ErrAlreadyFrozen, instant(before.FrozenAt))
	case live && (e.Checkpoint < 0 || e.Checkpoint >= 100):
		return fmt.Errorf("a checkpoint is 0 to 99 percent of the distance, not %d", e.Checkpoint)
	case e.Lap < 0 || e.DataAge < 0:
		return fmt.Errorf("lap %d and age of the data %d ms are not negative", e.Lap, e.DataAge)
	case len(r.Revisions) > 0:
		return ErrAlreadyVerified
	}
	if err := r.checkHeld(e); err != nil {
		return err
	}
	switch {
	case !live && !e.When().Before(e.Start):
		return fmt.Errorf("%w: lights out was at %s", ErrStarted, instant(e.Start))
	case live && !e.When().After(e.Start):
		return fmt.Errorf("%w: lights out is at %s", ErrNotStarted, instant(e.Start))
	}
	return e.checkPick()
}

// checkPick: three different drivers, a probability and a model. A basis agrees with whether the
// grid was known. Chances are those of different drivers, the picked ones among them, nobody's
// higher than that of the picked winner; all wins together are one, all podiums three places,
// but for rounding.
func (e Event) checkPick() error {
	p := e.Pick
	if p.P1 == "" || p.P2 == "" || p.P3 == "" || p.P1 == p.P2 || p.P1 == p.P3 || p.P2 == p.P3 {
		return fmt.Errorf("a pick is three different drivers, not %q, %q, %q", p.P1, p.P2, p.P3)
	}
	if !(p.WinProbability > 0 && p.WinProbability <= 1) { // refuses NaN too
		return fmt.Errorf("win probability %v is not in (0, 1]", p.WinProbability)
	}
	if p.Model == "" {
		return errors.New("the model is required")
	}
	switch e.Basis {
	case "":
	case OnGrid, OnQualifying, OnForm:
		if e.GridKnown != (e.Basis == OnGrid) {
			return fmt.Errorf("a pick made from %s says that the grid was known: %t", e.Basis, e.GridKnown)
		}
	default:
		return fmt.Errorf("a pick is made from %s, %s or %s, not %q", OnGrid, OnQualifying, OnForm, e.Basis)
	}
	if e.Chances == nil {
		return nil
	}
	wins, podiums, of := 0, 0, map[season.DriverID]Chance{}
	for _, c := range e.Chances {
		if _, twice := of[c.Driver]; twice || c.Driver == "" || c.Win < 0 || c.Podium < c.Win || c.Podium > Certain {
			return fmt.Errorf("%+v is no chance in millionths of one of different drivers", c)
		}
		of[c.Driver] = c
		wins, podiums = wins+c.Win, podiums+c.Podium
	}
	for _, driver := range []season.DriverID{p.P1, p.P2, p.P3} {
		if _, ok := of[driver]; !ok {
			return fmt.Errorf("the chances leave out %s, who is picked", driver)
		}
	}
	for _, c := range e.Chances {
		if c.Win > of[p.P1].Win {
			return fmt.Errorf("the picked winner %s has a smaller chance, %d, than %s, %d", p.P1, of[p.P1].Win, c.Driver, c.Win)
		}
	}
	if n := len(e.Chances); abs(wins-Certain) > n || abs(podiums-3*Certain) > n {
		return fmt.Errorf("the chances add up to %d wins and %d podiums, not to %d and %d", wins, podiums, Certain, 3*Certain)
	}
	if got := int(math.Round(p.WinProbability * Certain)); got != of[p.P1].Win {
		return fmt.Errorf("win probability %v is not the chance of %s, %d", p.WinProbability, p.P1, of[p.P1].Win)
	}
	return nil
}

func abs(n int) int { return max(n, -n) }

// checkVoid: only the frozen pick of a race without result is voided, and only because the
// round is cancelled, or postponed when the pick was made before the grid.
func (r *Record) checkVoid() error {
	if r.Pick == nil {
		return errors.New("there is no pick")
	}
	if len(r.Revisions) > 0 {
		return ErrAlreadyVerified
	}
	if !r.mustVoid() {
		return errors.New("a pick stands unless its round is cancelled, or postponed before the grid was known")
	}
	return nil
}

// mustVoid says that there is a pick that cannot stand.
func (r *Record) mustVoid() bool {
	if r.Pick == nil {
		return false
	}
	return r.Override.Status == Cancelled || r.Override.Status == Postponed && !r.Pick.afterQualifying()
}

// checkVoided refuses an append that leaves a pick which should have been voided with it, and
// names the event to blame.
func (s *State) checkVoided(events []Event) (Event, error) {
	for _, e := range events {
		if record, ok := s.records[e.Session]; ok && record.mustVoid() {
			return e, &RefusedError{Event: e, Err: errors.New("the pick has to be voided in the same append")}
		}
	}
	return Event{}, nil
}

// checkHeld: the round is to be held, and at the start that the event says. Where a start was
// decided on, that is the valid one.
func (r *Record) checkHeld(e Event) error {
	if r.Override.Status != AsPlanned {
		return fmt.Errorf("%w: it is %s", ErrNotHeld, r.Override.Status)
	}
	if valid := r.Start(e.Start); !valid.Equal(e.Start) {
		return fmt.Errorf("the start now valid is %s, not %s", instant(valid), instant(e.Start))
	}
	return nil
}

// checkDecision: nothing is decided about a round that has a verified result, or that would
// leave it as it is. A postponed or cancelled round is reinstated before it is moved. A start
// is decided on before it comes, and moved before the one it replaces comes: lights out cannot
// be taken back. A delay announced later is a postponement, which the audit shows as one.
//
// A source never cancels a round, and changes nothing that a person decided and has not released.
func (r *Record) checkDecision(e Event) error {
	if len(r.Revisions) > 0 {
		return ErrAlreadyVerified
	}
	o := &r.Override
	if valid := r.Start(e.Was); !e.Was.IsZero() && !valid.Equal(e.Was) {
		return fmt.Errorf("the start now valid is %s, not %s", instant(valid), instant(e.Was))
	}
	if IsSource(e.Actor) {
		switch {
		case e.Type == RoundCancelled || e.Type == RoundReleased:
			return fmt.Errorf("%s is for a person, not for %s", e.Type, e.Actor)
		case o.ByPerson:
			return fmt.Errorf("%w: %s does not change it before they release it", ErrByPerson, e.Actor)
		}
	}
	stays := e.Type == RoundReleased && e.Start.Equal(e.Was) // the start is not decided on anew
	if !e.Start.IsZero() && !stays && !e.When().Before(e.Start) {
		return fmt.Errorf("%w: the new start %s has passed", ErrStarted, instant(e.Start))
	}
	if e.Start.Nanosecond() != 0 {
		return fmt.Errorf("%w: not %s", ErrNoStart, instant(e.Start))
	}
	switch e.Type {
	case RoundPostponed:
		if o.Status == Postponed {
			return fmt.Errorf("%w: it is postponed", ErrUnchanged)
		}
		if o.Status == Cancelled {
			return errors.New("it is cancelled; reinstate it first")
		}
	case RoundCancelled:
		if o.Status == Cancelled {
			return fmt.Errorf("%w: it is cancelled", ErrUnchanged)
		}
	case RoundMoved, RoundReleased:
		switch {
		case o.Status != AsPlanned:
			return fmt.Errorf("%w: it is %s; reinstate it with the new start", ErrNotHeld, o.Status)
		case e.Type == RoundReleased && !o.ByPerson:
			return fmt.Errorf("%w: it follows the sources already", ErrUnchanged)
		case e.Type == RoundMoved && e.Start.Equal(e.Was):
			return fmt.Errorf("%w: it starts at %s", ErrUnchanged, instant(e.Was))
		case !stays && !e.When().Before(e.Was):
			return fmt.Errorf("%w: lights out was at %s; postpone and reinstate it", ErrStarted, instant(e.Was))
		}
	case RoundReinstated:
		if o.Status == AsPlanned {
			return fmt.Errorf("%w: it is neither postponed nor cancelled", ErrUnchanged)
		}
	}
	return nil
}

// ArchiveDelay is how long after the start of a race the archive can vouch for a result that it
// did not have when the ledger was opened.
const ArchiveDelay = 7 * 24 * time.Hour

// checkVerify: revisions count up from 1; the first comes after the start of a round that was
// held, and every later one has a reason and changes something. The archive vouches for first
// revisions alone, ArchiveDelay after the start, of the year in which the ledger was opened and
// the one before.
func (s *State) checkVerify(record *Record, e Event) error {
	if err := checkRows(e.Result.Rows); err != nil {
		return err
	}
	if e.Result.Sprint != nil {
		if err := checkRows(e.Result.Sprint); err != nil {
			return fmt.Errorf("the sprint: %w", err)
		}
	}
	last := record.Result()
	if last == nil {
		if e.Result.Revision != 1 {
			return fmt.Errorf("the first revision is 1, not %d", e.Result.Revision)
		}
		if err := record.checkHeld(e); err != nil {
			return err
		}
		if !e.When().After(e.Start) {
			return fmt.Errorf("%w: lights out is at %s", ErrNotStarted, instant(e.Start))
		}
		if opened := s.opened.UTC().Year(); e.Actor == ArchiveActor &&
			(record.Year < opened-1 || record.Year > opened || e.When().Before(e.Start.Add(ArchiveDelay))) {
			return fmt.Errorf("the archive vouches for races of %d and %d, from %s after their start on", opened-1, opened, ArchiveDelay)
		}
		return nil
	}
	if e.Reason == "" || e.Actor == ArchiveActor {
		return fmt.Errorf("%w at %s; a correction needs a reason, and somebody who decides it", ErrAlreadyVerified, instant(last.At))
	}
	if e.Result.Revision != last.Revision+1 {
		return fmt.Errorf("%w: the next revision is %d, not %d", ErrAlreadyVerified, last.Revision+1, e.Result.Revision)
	}
	sprint := renameRows(e.Result.Sprint, s.Driver)
	if slices.Equal(renameRows(e.Result.Rows, s.Driver), last.Rows) && (sprint == nil || slices.Equal(sprint, last.Sprint)) {
		return fmt.Errorf("%w: the classification is that of revision %d", ErrUnchanged, last.Revision)
	}
	return nil
}

// checkRows: somebody won; each position is held by one car, so that every further row with it
// says that the car was shared; points are finite and not negative; and a driver has one row.
// They have more if they shared a car, or if only one of their rows has a position: three races
// of 1952, 1976 and 1978 list a second car that its driver did not race.
func checkRows(classified []Row) error {
	holders := map[int]bool{}
	rows := map[season.DriverID][]Row{}
	for i, r := range classified {
		switch {
		case r.Driver == "" || r.Team == "":
			return fmt.Errorf("row %d: driver and team are required", i+1)
		case r.Position < 0:
			return fmt.Errorf("row %d: %s has position %d", i+1, r.Driver, r.Position)
		case r.Position > 0 && holders[r.Position] && !r.Shared:
			return fmt.Errorf("row %d: %s has position %d, which is taken", i+1, r.Driver, r.Position)
		case r.Points < 0 || math.IsNaN(r.Points) || math.IsInf(r.Points, 0):
			return fmt.Errorf("row %d: %s has %v points", i+1, r.Driver, r.Points)
		}
		rows[r.Driver] = append(rows[r.Driver], r)
		if !mayAppear(rows[r.Driver]) {
			return fmt.Errorf("row %d: %s is there twice", i+1, r.Driver)
		}
		holders[r.Position] = true
	}
	if !holders[1] {
		return errors.New("nobody has position 1")
	}
	return nil
}

// mayAppear says whether one driver can have these rows in one race.
func mayAppear(rows []Row) bool {
	placed := 0
	for _, r := range rows {
		if r.Shared {
			return true
		}
		if r.Position > 0 {
			placed++
		}
	}
	return placed <= 1
}

func instant(t time.Time) string { return t.Format(time.RFC3339Nano) }
