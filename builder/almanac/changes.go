package almanac

import (
	"cmp"
	"slices"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Change is a decision that changed a published round.
type Change struct {
	Round  *Round
	Type   ledger.Type // of the event that decided it; a released start is a moved one
	At     time.Time
	Actor  string
	Reason string

	OldState, NewState State                // of a round that was moved, postponed, cancelled or reinstated
	OldStart, NewStart time.Time            // zero: unknown or unchanged
	Old, New           *ledger.Verification // of a revised result; Old is the vouched one if Old.Revision is 0
	Pick               *ledger.FrozenPick   // the voided pick
	Driver             season.DriverID      // of a withdrawal or a return

	Championship *ledger.Championship // the decision about a championship; the one that ended, if Restored
	Restored     bool
}

// Changes returns the decisions that changed published rounds, of one year or,
// if year is 0, of all, the newest first. The first verification of a result is no change, unless the
// archive had vouched for another.
func (a *Almanac) Changes(year int) []Change {
	var all []Change
	for _, r := range a.where(func(r *Round) bool { return year == 0 || r.Year == year }) {
		all = append(all, r.changes()...)
	}
	slices.SortStableFunc(all, func(x, y Change) int { return y.At.Compare(x.At) })
	return all
}

// changes returns the changes of one round, the later of two of one instant first.
func (r *Round) changes() []Change {
	all := r.moves()
	for _, v := range r.Record.Voided {
		all = append(all, Change{Round: r, Type: ledger.PickVoided, At: v.VoidedAt, Actor: v.VoidedBy, Reason: v.Reason, Pick: &v.FrozenPick})
	}
	for _, w := range r.Record.Withdrawals {
		kind := ledger.DriverWithdrawn
		if w.Returned {
			kind = ledger.DriverReturned
		}
		all = append(all, Change{Round: r, Type: kind, At: w.At, Actor: w.Actor, Driver: w.Driver})
	}
	for i := range r.Record.Revisions {
		v := &r.Record.Revisions[i]
		change := Change{Round: r, Type: ledger.ResultVerified, At: v.At, Actor: v.Actor, Reason: v.Reason, New: v}
		switch {
		case i > 0:
			change.Old = &r.Record.Revisions[i-1]
		case r.vouchable():
			change.Old = &ledger.Verification{Classification: ledger.Classification{Rows: Rows(r.Facts.Results), Sprint: r.SourceSprint()}}
		default:
			continue // the first verification
		}
		all = append(all, change)
	}
	all = append(all, r.championshipChanges()...)
	slices.Reverse(all)
	return all
}

// moves returns the changes of the calendar: the round was added, moved, postponed, cancelled or reinstated.
func (r *Round) moves() (all []Change) {
	state := Scheduled
	if !r.Record.Added.IsZero() {
		added := Change{Round: r, Type: ledger.KeysAssigned, At: r.Record.Added, Actor: "builder"}
		if changes := r.Record.Override.Changes; len(changes) > 0 && !changes[0].Was.IsZero() {
			added.NewStart = changes[0].Was
		} else if !r.Provisional {
			added.NewStart = r.Start
		}
		all = append(all, added)
	}
	for _, c := range r.Record.Override.Changes {
		change := Change{
			Round: r, Type: c.Type, At: c.At, Actor: c.Actor, Reason: c.Reason,
			OldState: state, OldStart: c.Was, NewStart: c.Start,
		}
		if state == Scheduled {
			change.OldState = ClockState(c.At, cmp.Or(c.Valid, r.Facts.StartsAt()))
		}
		switch c.Type {
		case ledger.RoundReleased:
			change.Type = ledger.RoundMoved
		case ledger.RoundPostponed:
			state = Postponed
		case ledger.RoundCancelled:
			state = Cancelled
		case ledger.RoundReinstated:
			state = ClockState(c.At, cmp.Or(c.Start, r.Facts.StartsAt()))
		}
		change.NewState = state
		if change.Type == ledger.RoundMoved && c.Was.Equal(c.Start) {
			continue // released to the sources, which agree
		}
		all = append(all, change)
	}
	return all
}

// championshipChanges returns the decisions about the championships that begin with the round.
func (r *Round) championshipChanges() (all []Change) {
	decided := r.state.AllChampionship(r.Year)
	for i := range decided {
		d := &decided[i]
		if d.Session != r.Session {
			continue
		}
		change := Change{Round: r, Type: ledger.ChampionshipDecided, At: d.At, Actor: d.Actor, Reason: d.Reason, Championship: &d.Championship}
		if d.Restores != "" {
			of := slices.IndexFunc(decided, func(o ledger.ChampionshipDecision) bool { return o.EventID == d.Restores })
			change.Championship, change.Restored = &decided[of].Championship, true
		}
		all = append(all, change)
	}
	return all
}

// Competitor returns the name and the lasting identifier of the competitor of a decision about a championship.
func (c *Change) Competitor() (name, id string) {
	is := c.Championship
	if id = is.Competitor; !is.Constructors {
		id = c.Round.Lasting(season.DriverID(id))
	}
	return c.Round.competitor(is.Constructors, is.Competitor), id
}

// vouchable reports whether the archive vouches for the round's result, or would without decisions.
func (r *Round) vouchable() bool {
	return r.Facts.Winner() != nil && r.state.Vouches(r.Year, r.Facts.GrandPrix, r.Facts.ResultKnownAt())
}
