package ledger

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob/chain"
)

// Fold is the sum of a ledger's events up to some instant. It is immutable and safe for concurrent use. Callers
// share its slices and pointers, and only read them.
type Fold struct {
	kind     Kind
	opened   time.Time
	openedOn string // see OpenedOn
	at       time.Time
	head     Head
	keys     map[roundID]int64
	records  map[int64]*RoundRecord
	order    []int64                             // the keys of records, ascending
	current  map[season.DriverID]season.DriverID // by an earlier id: the current one
	vouched  map[roundID]bool                    // see Ledger.Vouch; nil: not known
	imported map[roundID]bool                    // for which an imported archive vouches: see ResultsVouched
	recoded  map[recodedID]string                // see Recoded
	breaches []Breach
	log      []LoggedEvent                       // see Log
	lasting  map[season.DriverID]season.DriverID // see Lasting; absent: the current id
	decided  map[int][]ChampionshipDecision      // by season, in the order of the ledger
}

// ChampionshipDecision is a decision about a championship that was recorded. Its driver has the current id.
type ChampionshipDecision struct {
	Championship
	EventID string
	Session int64 // the round from which on it counts
	At      time.Time
	Actor   string
	Reason  string
	Ended   bool // it was restored
}

// LoggedEvent is an event that changed a published round, with the change. It is the same in every later state.
type LoggedEvent struct {
	Event
	Before, After OverrideStatus // of the round
	Revision      int            // of the result
	Vouched       bool           // an archive that was imported before vouched for the round's result
	Valid         time.Time      // lights out until then, as far as the ledger knows it

	Restored *Championship // the decision that a ChampionshipDecided event restores; nil: it restores none
}

// recodedID names the code of a driver in a season.
type recodedID struct {
	year   int
	driver season.DriverID
}

// roundID names a round through renumbering.
type roundID struct {
	year      int
	grandPrix season.GrandPrixID
}

// Breach is an event in the store that breaks a rule. Readers ignore it.
type Breach struct {
	Seq int64 // of its file
	Err error
}

// RoundRecord holds the events of one round. A zero value means that nothing was recorded. Drivers have their
// current ids.
type RoundRecord struct {
	Key       int64
	Year      int
	GrandPrix season.GrandPrixID

	Pick      *FrozenPick     // the one that counts; nil if there is none
	Voided    []VoidedPick    // picks made before, oldest first
	Added     time.Time       // when it joined a season that had rounds already; zero: with its season
	Live      []FrozenPick    // by ascending checkpoint
	Forecasts []NotedForecast // in the order in which they were noted
	Revisions []Verification  // of the result, oldest first
	Override  Override

	Withdrawals []Withdrawal // and returns, oldest first
}

// Withdrawal is a withdrawal of a driver of the frozen pick, or a return after one.
type Withdrawal struct {
	Driver   season.DriverID
	Returned bool
	At       time.Time
	Actor    string
}

// FrozenPick is a pick and the circumstances that make it honest.
type FrozenPick struct {
	Pick
	EventID    string
	FrozenAt   time.Time
	Actor      string
	Start      time.Time // lights out that was valid then
	GridKnown  bool
	Checkpoint int // of a live pick, percent of the scheduled distance; 0: end of lap 1

	Archive     string      // lower-case hex SHA-256 of the archive it was made from
	Basis       Basis       // empty: only GridKnown is known
	Chances     []Chance    // of every driver of the round
	Observation Observation // of a live pick
}

// NotedForecast is a forecast noted after a session of the weekend.
type NotedForecast struct {
	Step    season.SessionKind
	At      time.Time
	Model   string
	Archive string // empty: not recorded
	Chances []Chance
}

// afterQualifying reports whether a pick outlasts a postponement, because the grid or qualifying was known.
func (p *FrozenPick) afterQualifying() bool { return p.GridKnown || p.Basis == OnQualifying }

// VoidedPick is a pick that no longer counts.
type VoidedPick struct {
	FrozenPick
	VoidedAt time.Time
	VoidedBy string // the actor
	Reason   string
}

// Verification is one revision of a result.
type Verification struct {
	Classification
	At     time.Time
	Actor  string
	Reason string // of a correction
}

// OverrideStatus is the decision of an operator or a source whether a round is held.
type OverrideStatus string

// The statuses.
const (
	AsPlanned OverrideStatus = "" // nothing decided, or reinstated
	Postponed OverrideStatus = "postponed"
	Cancelled OverrideStatus = "cancelled"
)

// Override holds the decisions about a round that depart from its calendar.
type Override struct {
	Status   OverrideStatus
	Start    time.Time        // the decided start, which outranks the archive's; zero: none
	ByPerson bool             // a person decided on status or start, so no source changes them
	Changes  []CalendarChange // oldest first
}

// CalendarChange is one decision about a round.
type CalendarChange struct {
	Type   Type      `json:"type"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	Start  time.Time `json:"start,omitzero"` // see Event
	Was    time.Time `json:"was,omitzero"`
	Valid  time.Time `json:"-"` // the start that was valid until then, as far as the ledger knows it
}

func (e Event) calendarChange(valid time.Time) CalendarChange {
	return CalendarChange{Type: e.Type, At: e.When(), Actor: e.Actor, Reason: e.Reason, Start: e.Start, Was: e.Was, Valid: valid}
}

// Result returns the last revision of the result, which counts; nil if none is verified.
func (r *RoundRecord) Result() *Verification {
	if len(r.Revisions) == 0 {
		return nil
	}
	return &r.Revisions[len(r.Revisions)-1]
}

// LivePick returns the live pick of a checkpoint; nil if there is none.
func (r *RoundRecord) LivePick(checkpoint int) *FrozenPick {
	for i := range r.Live {
		if r.Live[i].Checkpoint == checkpoint {
			return &r.Live[i]
		}
	}
	return nil
}

// Withdrawn reports whether a driver of the frozen pick has withdrawn, and has not returned since.
func (r *RoundRecord) Withdrawn(driver season.DriverID) bool {
	for _, w := range slices.Backward(r.Withdrawals) {
		if w.Driver == driver {
			return !w.Returned
		}
	}
	return false
}

// Start returns the valid start: the decided one, else scheduled, which is the archive's.
func (r *RoundRecord) Start(scheduled time.Time) time.Time {
	if r.Override.Start.IsZero() {
		return scheduled
	}
	return r.Override.Start
}

func newState() *Fold {
	return &Fold{
		keys: map[roundID]int64{}, records: map[int64]*RoundRecord{}, current: map[season.DriverID]season.DriverID{},
		imported: map[roundID]bool{}, recoded: map[recodedID]string{}, lasting: map[season.DriverID]season.DriverID{},
		decided: map[int][]ChampionshipDecision{},
	}
}

// clone returns a copy that can be changed. It shares keys, records and ids with s: apply and change replace them.
func (s *Fold) clone() *Fold {
	c := *s
	c.records = maps.Clone(s.records)
	c.breaches, c.log = slices.Clip(s.breaches), slices.Clip(s.log)
	return &c
}

// Kind says whether the ledger is real or simulated; AnyKind before it was opened.
func (s *Fold) Kind() Kind { return s.kind }

// OpenedAt is the instant of the first event. It is zero before the ledger was opened.
func (s *Fold) OpenedAt() time.Time { return s.opened }

// OpenedOn is the archive in use when the ledger was opened, lower-case hex SHA-256; empty if it was not recorded.
// See Vouches.
func (s *Fold) OpenedOn() string { return s.openedOn }

// Vouches says whether an archive vouches for the result of a round, which was known at an instant. The
// race had ended when the ledger was opened, and its result was in the archive of that moment, or an archive
// imported later vouches for it. A new store therefore starts complete, and no result verifies itself later.
// Without a record of the first archive's results, the instant alone decides.
func (s *Fold) Vouches(year int, gp season.GrandPrixID, known time.Time) bool {
	id := roundID{year, gp}
	return known.Before(s.opened) && (s.vouched == nil || s.vouched[id] || s.imported[id])
}

// Recoded returns the code that the last CodeChanged event gave a driver in a season, empty without one.
func (s *Fold) Recoded(year int, driver season.DriverID) string {
	return s.recoded[recodedID{year, driver}]
}

// Championship returns the decisions that stand about the championships of a season, in the order of the ledger.
func (s *Fold) Championship(year int) []ChampionshipDecision {
	return slices.DeleteFunc(s.AllChampionship(year), func(d ChampionshipDecision) bool { return d.Ended || d.Restores != "" })
}

// AllChampionship returns all decisions about the championships of a season: also those that were restored, and those
// that restore one.
func (s *Fold) AllChampionship(year int) []ChampionshipDecision {
	all := slices.Clone(s.decided[year])
	for i := range all {
		if !all[i].Constructors {
			all[i].Competitor = string(s.Driver(season.DriverID(all[i].Competitor)))
		}
	}
	return all
}

// At is the instant of the last event; zero if there is none.
func (s *Fold) At() time.Time { return s.at }

// Head is the last file the state was made from.
func (s *Fold) Head() Head { return s.head }

// Key returns the session key of a round, if it has one.
func (s *Fold) Key(year int, gp season.GrandPrixID) (key int64, ok bool) {
	key, ok = s.keys[roundID{year, gp}]
	return key, ok
}

// Record returns the record of a session key, if the key was assigned.
func (s *Fold) Record(key int64) (RoundRecord, bool) {
	record, ok := s.records[key]
	if !ok {
		return RoundRecord{}, false
	}
	return *record, true
}

// Records yields every record by ascending key. Within a year that need not be the order of
// the calendar.
func (s *Fold) Records() iter.Seq[RoundRecord] {
	return func(yield func(RoundRecord) bool) {
		for _, key := range s.order {
			if !yield(*s.records[key]) {
				return
			}
		}
	}
}

// Driver returns the current id of a driver, by any id that the ledger has.
func (s *Fold) Driver(id season.DriverID) season.DriverID {
	if current, ok := s.current[id]; ok {
		return current
	}
	return id
}

// Lasting returns the id of a driver that stays through every renaming by a source, by the current one.
func (s *Fold) Lasting(id season.DriverID) season.DriverID {
	return cmp.Or(s.lasting[id], id)
}

// Log returns the events that changed published rounds, oldest first. Later events follow, and none comes between. The first
// verification of a result is no change, unless an archive had vouched for another.
func (s *Fold) Log() []LoggedEvent {
	return slices.DeleteFunc(slices.Clone(s.log), func(e LoggedEvent) bool {
		if e.Revision != 1 || e.Vouched {
			return false
		}
		c := s.records[e.Session]
		return !e.Start.Before(s.opened) || s.vouched != nil && !s.vouched[roundID{c.Year, c.GrandPrix}]
	})
}

// Aliases returns the current id of every earlier id.
func (s *Fold) Aliases() map[season.DriverID]season.DriverID {
	return maps.Clone(s.current)
}

// add folds a file into s, which must not be shared yet. Events that break a rule are noted
// and otherwise left out.
func (s *Fold) add(f File, head Head) {
	for _, e := range f.Events {
		if err := s.Check(e); err != nil {
			s.breaches = append(s.breaches, Breach{Seq: f.Seq, Err: err})
			continue
		}
		s.apply(e)
	}
	if err := s.checkVoided(f.Events); err != nil {
		s.breaches = append(s.breaches, Breach{Seq: f.Seq, Err: err})
	}
	s.head, s.at = head, f.Events[0].At
}

// admit returns the fold after the events of one append. It checks each against the state that the ones before it leave.
func (s *Fold) admit(events []Event) (*Fold, error) {
	trial := s.clone()
	for _, e := range events {
		if err := errors.Join(chain.CheckText("actor", e.Actor), chain.CheckText("reason", e.Reason)); err != nil {
			return nil, &RefusedError{Event: e, Err: err}
		}
		if err := trial.Check(e); err != nil {
			return nil, err
		}
		trial.apply(e)
	}
	return trial, trial.checkVoided(events)
}

// apply makes an event's change. The event has passed Check.
func (s *Fold) apply(e Event) {
	s.at = e.At
	switch e.Type {
	case Opened:
		s.kind, s.opened, s.openedOn = e.Kind, e.At, e.Archive
	case KeysAssigned:
		begun := map[int]bool{}
		for id := range s.keys {
			begun[id.year] = true
		}
		s.keys = maps.Clone(s.keys)
		for _, k := range e.Keys {
			record := &RoundRecord{Key: k.Session, Year: k.Year, GrandPrix: k.GrandPrix}
			if begun[k.Year] {
				record.Added = e.When()
				added := e
				added.Session, added.Keys = k.Session, nil
				s.log = append(s.log, LoggedEvent{Event: added})
			}
			s.keys[roundID{k.Year, k.GrandPrix}], s.records[k.Session] = k.Session, record
		}
		s.order = slices.Sorted(maps.Keys(s.records))
	case PickFrozen:
		s.change(e.Session, func(c *RoundRecord) { c.Pick = s.frozen(e) })
	case LivePickFrozen:
		s.change(e.Session, func(c *RoundRecord) {
			c.Live = append(c.Live, *s.frozen(e))
			slices.SortFunc(c.Live, func(a, b FrozenPick) int { return cmp.Compare(a.Checkpoint, b.Checkpoint) })
		})
	case PickVoided:
		s.change(e.Session, func(c *RoundRecord) {
			c.Voided = append(c.Voided, VoidedPick{FrozenPick: *c.Pick, VoidedAt: e.When(), VoidedBy: e.Actor, Reason: e.Reason})
			c.Pick = nil
		})
		s.log = append(s.log, LoggedEvent{Event: e})
	case ForecastNoted:
		s.change(e.Session, func(c *RoundRecord) {
			c.Forecasts = append(c.Forecasts, NotedForecast{
				Step: e.Step, At: e.When(), Model: e.Model, Archive: e.Archive, Chances: renameChances(e.Chances, s.Driver),
			})
		})
	case ResultVerified:
		s.change(e.Session, func(c *RoundRecord) {
			v := Verification{Classification: *e.Result, At: e.When(), Actor: e.Actor, Reason: e.Reason}
			v.Rows = renameRows(e.Result.Rows, s.Driver)
			if v.Sprint = renameRows(e.Result.Sprint, s.Driver); v.Sprint == nil && len(c.Revisions) > 0 {
				v.Sprint = c.Result().Sprint
			}
			c.Revisions = append(c.Revisions, v)
		})
		c := s.records[e.Session]
		s.log = append(s.log, LoggedEvent{Event: e, Revision: len(c.Revisions), Vouched: s.imported[roundID{c.Year, c.GrandPrix}]})
	case RoundPostponed, RoundCancelled, RoundMoved, RoundReinstated, RoundReleased:
		record := s.records[e.Session]
		before, valid := record.Override.Status, record.Start(e.Was)
		if valid.IsZero() && record.Pick != nil {
			valid = record.Pick.Start
		}
		s.change(e.Session, func(c *RoundRecord) { c.Override.decide(e, valid) })
		if e.Type == RoundReinstated && !e.When().Before(e.Start) {
			s.change(e.Session, func(c *RoundRecord) { c.restorePick(e.Start) })
		}
		if e.Type != RoundReleased || !e.Was.Equal(e.Start) { // otherwise the sources have the same start
			s.log = append(s.log, LoggedEvent{Event: e, Before: before, After: s.records[e.Session].Override.Status, Valid: valid})
		}
	case DriverWithdrawn, DriverReturned:
		w := Withdrawal{Driver: s.Driver(e.Driver), Returned: e.Type == DriverReturned, At: e.When(), Actor: e.Actor}
		s.change(e.Session, func(c *RoundRecord) { c.Withdrawals = append(c.Withdrawals, w) })
		logged := LoggedEvent{Event: e}
		logged.Driver = s.Lasting(w.Driver)
		s.log = append(s.log, logged)
	case ResultsVouched:
		s.imported = maps.Clone(s.imported)
		for _, key := range e.Rounds {
			s.imported[roundID{s.records[key].Year, s.records[key].GrandPrix}] = true
		}
	case DriverRenamed:
		from, to := season.DriverID(e.From), season.DriverID(e.To)
		if IsSource(e.Actor) { // a person gives a driver another id that is published already
			first := s.Lasting(from)
			s.lasting = maps.Clone(s.lasting)
			delete(s.lasting, from)
			s.lasting[to] = first
		}
		s.rename(from, to)
	case CodeChanged: // codes come from the archive
		s.recoded = maps.Clone(s.recoded)
		s.recoded[recodedID{e.Year, e.Driver}] = e.To
	case ChampionshipDecided:
		all, logged := slices.Clone(s.decided[e.Year]), LoggedEvent{Event: e}
		for i := range all {
			if all[i].EventID == e.Championship.Restores {
				all[i].Ended, logged.Restored = true, &all[i].Championship
			}
		}
		s.decided = maps.Clone(s.decided)
		s.decided[e.Year] = append(all, ChampionshipDecision{
			Championship: *e.Championship, EventID: e.ID, Session: e.Session, At: e.When(), Actor: e.Actor, Reason: e.Reason,
		})
		s.log = append(s.log, logged)
	default:
		panic(errors.New("BUG: ledger: apply of an event that Check would refuse: " + string(e.Type)))
	}
}

// change replaces a record by a copy that edit may change. The copy's slices are clipped, so
// that appending to them leaves those of the original alone.
func (s *Fold) change(key int64, edit func(*RoundRecord)) {
	c := *s.records[key]
	c.Voided, c.Live, c.Forecasts, c.Revisions = slices.Clip(c.Voided), slices.Clip(c.Live), slices.Clip(c.Forecasts), slices.Clip(c.Revisions)
	c.Override.Changes, c.Withdrawals = slices.Clip(c.Override.Changes), slices.Clip(c.Withdrawals)
	edit(&c)
	s.records[key] = &c
}

func (s *Fold) frozen(e Event) *FrozenPick {
	p := &FrozenPick{
		Pick: *e.Pick, EventID: e.ID, FrozenAt: e.When(), Actor: e.Actor,
		Start: e.Start, GridKnown: e.GridKnown, Checkpoint: e.Checkpoint,
		Archive: e.Archive, Basis: e.Basis, Chances: e.Chances,
	}
	if e.Observation != nil {
		p.Observation = *e.Observation
	}
	p.rename(s.Driver)
	return p
}

// decide takes over an operator's or a source's decision about the round.
func (o *Override) decide(e Event, valid time.Time) {
	switch e.Type {
	case RoundPostponed:
		o.Status, o.Start = Postponed, time.Time{} // the date is off, also one decided on before
	case RoundCancelled:
		o.Status = Cancelled
	case RoundReinstated:
		o.Status, o.Start = AsPlanned, time.Time{} // without a start of its own, that of the calendar
	}
	if !e.Start.IsZero() {
		o.Start = e.Start
	}
	// If a person reinstates a round without a start, the start follows the sources.
	o.ByPerson = !IsSource(e.Actor) && e.Type != RoundReleased && (o.Status != AsPlanned || !o.Start.IsZero())
	o.Changes = append(o.Changes, e.calendarChange(valid))
}

// restorePick makes the last voided pick count again that was frozen before a start.
func (r *RoundRecord) restorePick(start time.Time) {
	for _, v := range slices.Backward(r.Voided) {
		if r.Pick == nil && v.FrozenAt.Before(start) {
			pick := v.FrozenPick
			r.Pick = &pick
		}
	}
}

// rename gives a driver another id in s, and in all events that are added later.
func (s *Fold) rename(from, to season.DriverID) {
	s.current = maps.Clone(s.current)
	for id, current := range s.current {
		if current == from {
			s.current[id] = to
		}
	}
	s.current[from] = to
	delete(s.current, to) // it is the current one, also if it was not once
	for _, key := range s.order {
		s.change(key, func(c *RoundRecord) { c.rename(s.Driver) })
	}
}

// rename passes every id through current. The record is a copy that shares its slices with the original.
func (r *RoundRecord) rename(current func(season.DriverID) season.DriverID) {
	if r.Pick != nil {
		pick := *r.Pick
		pick.rename(current)
		r.Pick = &pick
	}
	r.Live, r.Voided, r.Forecasts, r.Revisions = slices.Clone(r.Live), slices.Clone(r.Voided), slices.Clone(r.Forecasts), slices.Clone(r.Revisions)
	for i := range r.Live {
		r.Live[i].rename(current)
	}
	for i := range r.Voided {
		r.Voided[i].rename(current)
	}
	r.Withdrawals = slices.Clone(r.Withdrawals)
	for i := range r.Withdrawals {
		r.Withdrawals[i].Driver = current(r.Withdrawals[i].Driver)
	}
	for i := range r.Forecasts {
		r.Forecasts[i].Chances = renameChances(r.Forecasts[i].Chances, current)
	}
	for i := range r.Revisions {
		v := &r.Revisions[i]
		v.Rows, v.Sprint = renameRows(v.Rows, current), renameRows(v.Sprint, current)
	}
}

// rename passes the ids of the pick through current. Nobody else has the pick.
func (p *FrozenPick) rename(current func(season.DriverID) season.DriverID) {
	p.P1, p.P2, p.P3 = current(p.P1), current(p.P2), current(p.P3)
	p.Chances = renameChances(p.Chances, current)
}

func renameChances(chances []Chance, current func(season.DriverID) season.DriverID) []Chance {
	renamed := slices.Clone(chances)
	for i := range renamed {
		renamed[i].Driver = current(renamed[i].Driver)
	}
	return renamed
}

func renameRows(rows []Row, current func(season.DriverID) season.DriverID) []Row {
	renamed := slices.Clone(rows)
	for i := range renamed {
		renamed[i].Driver = current(renamed[i].Driver)
	}
	return renamed
}

// Trial returns the fold that appending the events at the instant would give. It refuses the events that the
// rules of Append refuse. An event without an actor counts as that of a person. s stays unchanged.
func (s *Fold) Trial(at time.Time, events []Event) (*Fold, error) {
	stamped := make([]Event, len(events))
	for i, e := range events {
		e.ID, e.Actor = "trial", cmp.Or(e.Actor, "trial")
		stamped[i] = s.stamp(e, at)
	}
	return s.admit(stamped)
}
