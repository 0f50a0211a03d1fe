package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"gridcast/builder/season"
)

// Reasons of a refusal, for callers that act on them. A *RefusedError wraps each.
var (
	// ErrAlreadyFrozen: the pick, or the live pick of the checkpoint, is frozen already, so the caller
	// has nothing to do.
	ErrAlreadyFrozen = errors.New("already frozen")
	// ErrStarted: too late, because the race has started.
	ErrStarted = errors.New("the race has started")
	// ErrPast: a race cannot be moved to an instant that has passed.
	ErrPast = errors.New("that start has passed")
	// ErrNotStarted: too early, because the race has not started.
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
	// ErrByPerson: a person decided, and no source changes that until a person releases it.
	ErrByPerson = errors.New("a person decided on the round")
	// ErrOlder: the event is older than the ledger.
	ErrOlder = errors.New("older than the ledger")
)

// RefusedError names the event that a ledger refused, and the reason.
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

// stamp returns the event with the instant of an append to s now.
func (s *Fold) stamp(e Event, now time.Time) Event {
	now = now.UTC().Round(0) // no monotonic reading, so that the written instant equals the one read back
	e.At, e.Made = now, time.Time{}
	if now.Before(s.at) {
		e.At, e.Made = s.at, now
	}
	return e
}

// Check returns nil if e may follow on s, else a *RefusedError. Beside the rule of its type, an event needs an id,
// an actor and an instant; stamp and follow keep the instants in order. It has no field that its type does not use. Only the
// first event opens the ledger.
func (s *Fold) Check(e Event) error {
	if err := s.check(e); err != nil {
		return &RefusedError{Event: e, Err: err}
	}
	return nil
}

func (s *Fold) check(e Event) error {
	switch {
	case e.ID == "" || e.At.IsZero() || e.Actor == "":
		return errors.New("id, instant and actor are required")
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
		if e.From == e.To || s.Driver(season.DriverID(e.From)) == season.DriverID(e.To) {
			return fmt.Errorf("%w: %s is %s", ErrUnchanged, e.From, e.To)
		}
		return nil
	case CodeChanged:
		if IsSource(e.Actor) {
			return fmt.Errorf("%s is for a person, not for %s", e.Type, e.Actor)
		}
		return e.checkCode()
	case ResultsVouched:
		return s.checkVouch(e)
	case ChampionshipDecided:
		return s.checkChampionship(e)
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
	case ForecastNoted:
		return record.checkForecast(e)
	case DriverWithdrawn, DriverReturned:
		return record.checkWithdrawal(e, s.Driver(e.Driver))
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

// everyEvent lists the fields that events of all types have.
var everyEvent = []string{"id", "type", "at", "actor", "made_at"}

// fieldsOf lists the fields that an event of a type needs beside those of every event, and those that it may have.
var fieldsOf = map[Type]struct{ need, may []string }{
	Opened:          {need: []string{"kind"}, may: []string{"archive"}},
	KeysAssigned:    {need: []string{"keys"}},
	PickFrozen:      {need: []string{"session_key", "pick", "start"}, may: []string{"grid_known", "archive", "basis", "chances", "reason"}},
	PickVoided:      {need: []string{"session_key", "reason"}},
	LivePickFrozen:  {need: []string{"session_key", "pick", "start", "observation"}, may: []string{"checkpoint_pct", "archive", "chances"}},
	ForecastNoted:   {need: []string{"session_key", "step", "model", "chances"}, may: []string{"archive"}},
	ResultVerified:  {need: []string{"session_key", "result", "start"}, may: []string{"reason"}},
	ResultsVouched:  {need: []string{"archive", "rounds"}, may: []string{"reason"}},
	RoundPostponed:  {need: []string{"session_key", "reason"}, may: []string{"was"}},
	RoundCancelled:  {need: []string{"session_key", "reason"}},
	RoundMoved:      {need: []string{"session_key", "reason", "start", "was"}},
	RoundReinstated: {need: []string{"session_key", "reason"}, may: []string{"start"}},
	RoundReleased:   {need: []string{"session_key", "reason", "start", "was"}},
	DriverRenamed:   {need: []string{"from", "to"}, may: []string{"reason"}},
	CodeChanged:     {need: []string{"year", "driver", "from", "to"}, may: []string{"reason"}},

	ChampionshipDecided: {need: []string{"year", "session_key", "championship", "reason"}},

	DriverWithdrawn: {need: []string{"session_key", "driver", "start"}},
	DriverReturned:  {need: []string{"session_key", "driver", "start"}},
}

// checkFields refuses an event of unknown type, a missing field, and a field that the type does not use. An
// archive and an observation are named by a hash.
func checkFields(e Event) error {
	fields, ok := fieldsOf[e.Type]
	if !ok {
		return fmt.Errorf("unknown type of event %q", e.Type)
	}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if slices.Contains(everyEvent, name) {
			continue
		}
		set := !v.Field(i).IsZero()
		if needed := slices.Contains(fields.need, name); needed && !set {
			return fmt.Errorf("%s is required", name)
		} else if set && !needed && !slices.Contains(fields.may, name) {
			return fmt.Errorf("%s has no meaning here", name)
		}
	}
	if e.Archive != "" && !isHash(e.Archive) {
		return fmt.Errorf("the archive is named by its lower-case hex SHA-256, not by %q", e.Archive)
	}
	if e.Observation != nil && !isHash(e.Observation.SHA256) {
		return fmt.Errorf("the observation is named by its lower-case hex SHA-256, not by %q", e.Observation.SHA256)
	}
	return nil
}

// isHash says whether the text is a SHA-256 in lower-case hex.
func isHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == text
}

// checkFreeze: a pick is frozen once, before the start valid then. A live pick is frozen once for each checkpoint,
// after the start. The round is to be held at the start that the event names, and has no result.
func (r *RoundRecord) checkFreeze(e Event) error {
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
	case live && (e.Observation.Lap < 1 || !e.Observation.At.After(e.Start) || e.Observation.At.After(e.When())):
		return fmt.Errorf("a live pick follows an observation of lap 1 or later, between the start and %s, not one of lap %d at %s",
			instant(e.When()), e.Observation.Lap, instant(e.Observation.At))
	}
	return e.checkPick()
}

// checkPick: a pick has three different drivers, a probability and a model. Its basis agrees with GridKnown. If
// it comes with chances, the picked drivers are among them, the picked winner has the highest chance to win,
// and the probability is that chance.
func (e Event) checkPick() error {
	p := e.Pick
	picked := []season.DriverID{p.P1, p.P2, p.P3}
	if slices.Contains(picked, "") || p.P1 == p.P2 || p.P1 == p.P3 || p.P2 == p.P3 {
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
	if err := checkChances(e.Chances); err != nil {
		return err
	}
	of := map[season.DriverID]int{}
	for _, c := range e.Chances {
		of[c.Driver] = c.Win
	}
	for _, driver := range picked {
		if _, ok := of[driver]; !ok {
			return fmt.Errorf("the chances leave out the picked driver %s", driver)
		}
	}
	for _, c := range e.Chances {
		if c.Win > of[p.P1] {
			return fmt.Errorf("the picked winner %s has a smaller chance, %d, than %s, %d", p.P1, of[p.P1], c.Driver, c.Win)
		}
	}
	if got := int(math.Round(p.WinProbability * Certain)); got != of[p.P1] {
		return fmt.Errorf("win probability %v is not the chance of %s, %d", p.WinProbability, p.P1, of[p.P1])
	}
	return nil
}

// checkChances: every driver has one row, with chances between 0 and Certain. The drivers' wins add up to one
// and their podiums to three, but for rounding. Positions are as many for each driver, begin with Win and agree
// with Podium; no driver and no place has more than one in total.
func checkChances(chances []Chance) error {
	if len(chances) == 0 {
		return errors.New("there are no chances")
	}
	wins, podiums, drivers := 0, 0, map[season.DriverID]bool{}
	places := make([]int, len(chances[0].Positions))
	for _, c := range chances {
		if drivers[c.Driver] || c.Driver == "" || c.Win < 0 || c.Podium < c.Win || c.Podium > Certain || c.Points < 0 || c.DNF < 0 || c.DNF > Certain {
			return fmt.Errorf("%+v is no chance in millionths of one of different drivers", c)
		}
		drivers[c.Driver] = true
		wins, podiums = wins+c.Win, podiums+c.Podium
		if len(c.Positions) != len(places) {
			return fmt.Errorf("%s has chances of %d positions, %s of %d", c.Driver, len(c.Positions), chances[0].Driver, len(places))
		}
		if c.Positions == nil {
			continue
		}
		total := 0
		for i, chance := range c.Positions {
			if chance < 0 || chance > Certain {
				return fmt.Errorf("%s has chance %d of position %d", c.Driver, chance, i+1)
			}
			total += chance
			places[i] += chance
		}
		if len(places) < 3 || c.Positions[0] != c.Win || abs(c.Positions[0]+c.Positions[1]+c.Positions[2]-c.Podium) > 3 || total+c.DNF > Certain+len(places)+1 {
			return fmt.Errorf("the positions of %s, %v, do not fit its chances to win, %d, of the podium, %d, and of not finishing, %d",
				c.Driver, c.Positions, c.Win, c.Podium, c.DNF)
		}
	}
	n := len(chances)
	if abs(wins-Certain) > n || abs(podiums-3*Certain) > n {
		return fmt.Errorf("the chances add up to %d wins and %d podiums, not to %d and %d", wins, podiums, Certain, 3*Certain)
	}
	for i, total := range places {
		if total > Certain+n {
			return fmt.Errorf("the chances of position %d add up to %d, more than %d", i+1, total, Certain)
		}
	}
	return nil
}

// checkWithdrawal: a driver of the frozen pick withdraws before the start now valid, and returns only after that. The round
// is to be held then.
func (r *RoundRecord) checkWithdrawal(e Event, driver season.DriverID) error {
	switch {
	case len(r.Revisions) > 0:
		return ErrAlreadyVerified
	case r.Pick == nil || !slices.ContainsFunc(r.Pick.Chances, func(c Chance) bool { return c.Driver == driver }):
		return fmt.Errorf("no frozen pick has chances of %s", driver)
	case r.Withdrawn(driver) == (e.Type == DriverWithdrawn):
		return fmt.Errorf("%w: it is known whether %s starts", ErrUnchanged, driver)
	case !e.When().Before(e.Start):
		return fmt.Errorf("%w: lights out was at %s", ErrStarted, instant(e.Start))
	}
	return r.checkHeld(e)
}

// steps are the steps of a weekend at which a forecast can be noted.
var steps = []season.SessionKind{
	StepForm, season.Practice1, season.Practice2, season.Practice3, season.Practice4, season.Qualifying, season.SprintQualifying, season.Sprint,
	StepGrid,
}

// checkForecast: a forecast is noted once for a step of the weekend, and for a round without a result.
func (r *RoundRecord) checkForecast(e Event) error {
	switch {
	case !slices.Contains(steps, e.Step):
		return fmt.Errorf("a forecast follows one of %v, not %q", steps, e.Step)
	case slices.ContainsFunc(r.Forecasts, func(f NotedForecast) bool { return f.Step == e.Step }):
		return fmt.Errorf("%w: a forecast after %s is noted", ErrUnchanged, e.Step)
	case len(r.Revisions) > 0:
		return ErrAlreadyVerified
	}
	return checkChances(e.Chances)
}

// checkCode: a code is three capital letters, and changes.
func (e Event) checkCode() error {
	for _, code := range []string{e.From, e.To} {
		if len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return fmt.Errorf("a code is three letters from A to Z, not %q", code)
		}
	}
	if e.From == e.To {
		return fmt.Errorf("%w: %s has the code %s", ErrUnchanged, e.Driver, e.To)
	}
	return nil
}

// checkVouch: an imported archive vouches for rounds without a result, of seasons up to the one in which the
// ledger was opened. The rounds ascend, and no source vouches.
func (s *Fold) checkVouch(e Event) error {
	if IsSource(e.Actor) {
		return fmt.Errorf("%s is for a person, not for %s", e.Type, e.Actor)
	}
	if len(e.Rounds) == 0 {
		return errors.New("there are no rounds")
	}
	for i, key := range e.Rounds {
		record, ok := s.records[key]
		switch {
		case !ok:
			return fmt.Errorf("%w %d", ErrUnknownSession, key)
		case i > 0 && key <= e.Rounds[i-1]:
			return fmt.Errorf("the rounds ascend, but %d follows %d", key, e.Rounds[i-1])
		case len(record.Revisions) > 0:
			return fmt.Errorf("%d: %w", key, ErrAlreadyVerified)
		case record.Year > s.opened.UTC().Year():
			return fmt.Errorf("%d is of %d, after the ledger was opened at %s", key, record.Year, instant(s.opened))
		}
	}
	return nil
}

// checkChampionship: a person decides one thing about a competitor, from a round of that season on. A decision that is
// restored stands, and nobody is excluded twice.
func (s *Fold) checkChampionship(e Event) error {
	c := e.Championship
	kinds := 0
	for _, set := range []bool{c.Points != 0, c.Excluded, c.NewEntry, c.Restores != ""} {
		if set {
			kinds++
		}
	}
	record, ok := s.records[e.Session]
	switch {
	case IsSource(e.Actor):
		return fmt.Errorf("%s is for a person, not for %s", e.Type, e.Actor)
	case !ok:
		return fmt.Errorf("%w %d", ErrUnknownSession, e.Session)
	case record.Year != e.Year:
		return fmt.Errorf("%d is a round of %d, not of %d", e.Session, record.Year, e.Year)
	case c.Competitor == "" || kinds != 1 || math.IsNaN(c.Points) || math.IsInf(c.Points, 0):
		return errors.New("a decision names a competitor, and either points, an exclusion, a new entry or the decision that it restores")
	case !c.Constructors && (c.NewEntry || c.Engine != ""):
		return errors.New("only a constructor has an engine, or enters anew")
	}
	competitor, restored := c.Competitor, c.Restores == ""
	if !c.Constructors {
		competitor = string(s.Driver(season.DriverID(competitor)))
	}
	for _, d := range s.Championship(e.Year) {
		same := d.Constructors == c.Constructors && d.Competitor == competitor && d.Engine == c.Engine
		switch {
		case d.EventID == c.Restores:
			if !same || d.Session != e.Session {
				return fmt.Errorf("the decision to be restored is about %s from round %d on", d.Competitor, d.Session)
			}
			restored = true
		case same && c.Excluded && d.Excluded, same && c.NewEntry && d.NewEntry && d.Session == e.Session:
			return fmt.Errorf("%w: %s is %s", ErrUnchanged, d.Competitor, &d.Championship)
		}
	}
	if !restored {
		return fmt.Errorf("%w: no decision %s of %d stands", ErrUnchanged, c.Restores, e.Year)
	}
	return nil
}

func abs(n int) int { return max(n, -n) }

// checkVoid: a frozen pick is voided only if the race has no result. The round is cancelled, or it is postponed and
// the pick was made before the grid.
func (r *RoundRecord) checkVoid() error {
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

func (r *RoundRecord) mustVoid() bool {
	if r.Pick == nil {
		return false
	}
	return r.Override.Status == Cancelled || r.Override.Status == Postponed && !r.Pick.afterQualifying()
}

// checkVoided refuses an append that leaves a pick that it has to void.
func (s *Fold) checkVoided(events []Event) error {
	for _, e := range events {
		if record, ok := s.records[e.Session]; ok && record.mustVoid() {
			return &RefusedError{Event: e, Err: errors.New("the pick has to be voided in the same append")}
		}
	}
	return nil
}

// checkHeld: the round is to be held at the start that the event names. If somebody decided on a start, it is that
// one.
func (r *RoundRecord) checkHeld(e Event) error {
	if r.Override.Status != AsPlanned {
		return fmt.Errorf("%w: it is %s", ErrNotHeld, r.Override.Status)
	}
	if valid := r.Start(e.Start); !valid.Equal(e.Start) {
		return fmt.Errorf("the start now valid is %s, not %s", instant(valid), instant(e.Start))
	}
	return nil
}

// checkDecision: a decision changes something, and its round has no verified result. A postponed or cancelled round
// is reinstated before it is moved. A new start lies in the future, and so does the start that it replaces,
// because lights out cannot be taken back. A later delay is a postponement, and the audit shows it as one. A person
// may reinstate a round at a start that has passed, because the race was held after all. Its last pick that was frozen before that
// start counts again; no pick can be frozen after it.
//
// A source never cancels a round. It changes a person's decision only after the person has released it.
func (r *RoundRecord) checkDecision(e Event) error {
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
	stays := e.Type == RoundReleased && e.Start.Equal(e.Was) // the start stays
	begun := !e.Start.IsZero() && !stays && !e.When().Before(e.Start)
	switch {
	case begun && (e.Type != RoundReinstated || IsSource(e.Actor)):
		return fmt.Errorf("%w: %s; if the race began then, postpone it and reinstate it with that start", ErrPast, instant(e.Start))
	case begun && r.Pick != nil && !r.Pick.FrozenAt.Before(e.Start):
		return fmt.Errorf("%w: the pick was frozen at %s, not before %s; cancel the round first, which voids the pick", ErrStarted, instant(r.Pick.FrozenAt), instant(e.Start))
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
			return fmt.Errorf("%w: lights out was at %s; postpone it and reinstate it with the start that it had", ErrStarted, instant(e.Was))
		}
	case RoundReinstated:
		if o.Status == AsPlanned {
			return fmt.Errorf("%w: it is neither postponed nor cancelled", ErrUnchanged)
		}
	}
	return nil
}

// ArchiveDelay is the time after the start of a race from which the archive vouches for a result that it did not
// have when the ledger was opened.
const ArchiveDelay = 7 * 24 * time.Hour

// checkVerify: revisions count up from 1. The first one comes after the start of a round that was held. Every later
// one has a reason and changes something. The archive makes only first revisions, ArchiveDelay after the start, for
// the year in which the ledger was opened and the year before.
func (s *Fold) checkVerify(record *RoundRecord, e Event) error {
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
	if slices.EqualFunc(renameRows(e.Result.Rows, s.Driver), last.Rows, Row.Same) && (sprint == nil || slices.EqualFunc(sprint, last.Sprint, Row.Same)) {
		return fmt.Errorf("%w: the classification is that of revision %d", ErrUnchanged, last.Revision)
	}
	return nil
}

// checkRows: a classification has a winner. One car holds each position, so every further row with it is marked as
// shared. Points are finite and not negative. A driver has one row, unless the driver shared a car, or only one of
// the rows has a position: three races of 1952, 1976 and 1978 list a second car that its driver did not race.
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
		if err := r.checkDetails(); err != nil {
			return fmt.Errorf("row %d: %s %w", i+1, r.Driver, err)
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

// checkDetails: no number is negative, only a driver without a position has a status, only the winner a time,
// and only a driver behind the winner one gap.
func (r Row) checkDetails() error {
	switch {
	case r.Number < 0 || r.Grid < 0 || r.TimeMS < 0 || r.GapMS < 0 || r.GapLaps < 0 || r.Laps != nil && *r.Laps < 0:
		return errors.New("has a negative number among the details")
	case r.Position > 0 && r.Status != "":
		return fmt.Errorf("has position %d and status %s", r.Position, r.Status)
	case !slices.Contains(outcomes, r.Status):
		return fmt.Errorf("has status %q, which is none of %v", r.Status, outcomes[1:])
	case r.Position != 1 && r.TimeMS != 0:
		return errors.New("has the winner's time")
	case r.Position == 0 && (r.GapMS != 0 || r.GapLaps != 0):
		return errors.New("has no position, but a gap to the winner")
	case r.GapMS != 0 && r.GapLaps != 0:
		return errors.New("has a gap both in time and in laps")
	}
	return nil
}

// outcomes are the statuses of a row.
var outcomes = []season.Outcome{
	"", season.DidNotFinish, season.DidNotStart, season.Disqualified, season.NotClassified, season.DidNotQualify,
	season.DidNotPreQualify, season.DidNotPractise, season.ExcludedBeforeStart,
}

// mayAppear reports whether one driver can have these rows in one race.
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
