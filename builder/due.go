package builder

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/check"
	"gridcast/builder/ledger"
	"gridcast/builder/picks"
	"gridcast/builder/provenance"
	"gridcast/builder/render"
	"gridcast/builder/running"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
)

// UnsettledError reports due events that were not appended, because the ledger refuses them or because
// the documents that they change would fail their check. All other due events were appended.
type UnsettledError struct{ Errs []error }

func (e *UnsettledError) Error() string   { return errors.Join(e.Errs...).Error() }
func (e *UnsettledError) Unwrap() []error { return e.Errs }

// Settle appends to the ledger the events that are due by t: keys of new rounds, picks with a known grid
// or a near start, and results if the policy verifies them. It returns these events. If two builders
// settle at once, each event is appended once.
//
// Settle leaves out an event that the ledger refuses or that is not Publishable, and appends the others.
// The error is then an *UnsettledError.
func (p Policy) Settle(ctx context.Context, fresh ledger.Fresh, facts archive.Stored, t time.Time) ([]ledger.Event, error) {
	v := facts.Archive.AsOf(t)
	var added []ledger.Event
	var left []error
	if p.Unread {
		p.AutoVerifyAfter, p.AutoReviseAfter = 0, 0
	}
	for _, by := range []struct {
		actor string
		due   func(*season.View, *ledger.Fold) ([]ledger.Event, []error)
	}{
		{ledger.BuilderActor, keysDue}, // first, because the other events of a round need its key
		{ledger.BuilderActor, func(v *season.View, s *ledger.Fold) ([]ledger.Event, []error) { return p.picksDue(v, s, facts.SHA256) }},
		{ledger.BuilderActor, func(v *season.View, s *ledger.Fold) ([]ledger.Event, []error) {
			return p.livePicksDue(v, s, facts.SHA256), nil
		}},
		{ledger.ArchiveActor, p.lateResults},
		{ledger.RuleActor, func(v *season.View, s *ledger.Fold) ([]ledger.Event, []error) {
			return p.resultsDue(v, s, facts.SHA256)
		}},
	} {
		var out []error
		events, err := fresh.Append(ctx, t, by.actor, func(s *ledger.Fold) ([]ledger.Event, error) {
			due, faults := by.due(v, s)
			accepted, refused := publishable(v, s, t, due)
			out = slices.Concat(faults, refused)
			return accepted, nil
		})
		added, left = append(added, events...), append(left, out...)
		var refused *ledger.RefusedError
		if errors.As(err, &refused) {
			left = append(left, err)
		} else if err != nil {
			return added, err
		}
	}
	if len(left) > 0 {
		return added, &UnsettledError{left}
	}
	return added, nil
}

// publishable returns the events that the ledger accepts, one after the other, and that are Publishable.
// left has the errors of the others.
func publishable(v *season.View, s *ledger.Fold, t time.Time, due []ledger.Event) (accepted []ledger.Event, left []error) {
	for _, e := range due {
		after, err := s.Trial(t, []ledger.Event{e})
		if err == nil {
			if err = Publishable(v, s, after, e.Session); err != nil {
				err = fmt.Errorf("%s of %d is not appended, because it cannot be published: %w", e.Type, e.Session, err)
			}
		}
		if err != nil {
			left = append(left, err)
			continue
		}
		accepted, s = append(accepted, e), after
	}
	return accepted, left
}

// keysDue gives a session key to every round that has none.
func keysDue(v *season.View, s *ledger.Fold) ([]ledger.Event, []error) {
	assigned, err := ledger.AssignKeys(s, v.Seasons)
	var faults []error
	if err != nil {
		faults = append(faults, err)
	}
	if len(assigned) == 0 {
		return nil, faults
	}
	return []ledger.Event{{Type: ledger.KeysAssigned, Keys: assigned}}, faults
}

// picksDue freezes the picks that are due: see almanac.Round.PickDue. It also records which drivers of a frozen pick have
// withdrawn or returned since. sum is the digest of the archive.
func (p Policy) picksDue(v *season.View, s *ledger.Fold, sum string) ([]ledger.Event, []error) {
	v = almanac.Raced(v, s)
	var events []ledger.Event
	var faults []error
	for _, r := range almanac.Rounds(v, s, v.At.UTC().Year()-1) {
		events = append(events, withdrawalsDue(r, v.At)...)
		if r.Session == 0 || !r.PickDue(p.arrived(r)) || p.Unread && v.At.Before(r.Start.Add(-LastMinute)) {
			continue
		}
		forecast, err := p.Model.Predict(v, r.Year, r.Facts.GrandPrix)
		if err == nil {
			err = forecast.Pickable()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("predict %s of %d: %w", r.Facts.Name, r.Year, err))
			continue
		}
		e := picks.Freeze(r, p.Model.Name(), sum, forecast)
		if p.Unread {
			e.Reason = fmt.Sprintf(substitute, p.Model.Name())
		}
		events = append(events, e)
	}
	return events, faults
}

// livePicksDue freezes the live picks that are due. sum is the digest of the archive.
func (p Policy) livePicksDue(v *season.View, s *ledger.Fold, sum string) []ledger.Event {
	r := running.Round(v, s)
	if p.Observed == nil || r == nil || r.Result != nil {
		return nil
	}
	tape := p.Observed(r.Session)
	if tape == nil {
		return nil
	}
	return running.RaceOf(r, s, tape).PicksDue(v.At, sum)
}

// withdrawalsDue records withdrawals of drivers of a frozen pick, and their returns, until the start.
func withdrawalsDue(r *almanac.Round, now time.Time) (events []ledger.Event) {
	if r.Pick == nil || r.State != almanac.Scheduled || !now.Before(r.Start) {
		return nil
	}
	out := r.NotStarting()
	for _, c := range r.Pick.Chances {
		e := ledger.Event{Type: ledger.DriverReturned, Session: r.Session, Driver: c.Driver, Start: r.Start.UTC()}
		off := slices.Contains(out, c.Driver)
		if off {
			e.Type = ledger.DriverWithdrawn
		}
		if off != r.Record.Withdrawn(c.Driver) {
			events = append(events, e)
		}
	}
	return events
}

// lateResults verifies results in the name of the archive if their race had ended ledger.ArchiveDelay
// before the ledger was opened, but the archive of that moment lacked them. Results of older seasons and
// of later races wait for an operator.
func (p Policy) lateResults(v *season.View, s *ledger.Fold) ([]ledger.Event, []error) {
	if p.Unread {
		return nil, nil
	}
	v = almanac.Raced(v, s)
	var events []ledger.Event
	opened := s.OpenedAt()
	for _, r := range almanac.Rounds(v, s, opened.UTC().Year()-1) {
		if r.Facts.Winner() != nil && r.Result == nil && !r.Off() && !opened.Before(r.End().Add(ledger.ArchiveDelay)) {
			events = append(events, r.VerifySource(""))
		}
	}
	return events, nil
}

// resultsDue verifies each result that no operator has verified in the time of the rule. It revises
// verified results from which the archive has differed for as long as the rule says.
func (p Policy) resultsDue(v *season.View, s *ledger.Fold, sum string) ([]ledger.Event, []error) {
	v = almanac.Raced(v, s)
	var events []ledger.Event
	for _, r := range almanac.Rounds(v, s, s.OpenedAt().UTC().Year()-1) {
		if r.Facts.Winner() == nil || r.Off() || r.Result != nil && !r.Differs() {
			continue
		}
		after := p.AutoVerifyAfter
		if r.Result != nil {
			after = p.AutoReviseAfter
		}
		var stable provenance.Stability
		if p.Stability != nil {
			stable = p.Stability(sum, r.Year, r.Facts.GrandPrix)
		}
		if stable.Doubted {
			after *= 2
		}
		if after == 0 || stable.Contested || v.At.Before(season.Later(r.End(), stable.Since).Add(after)) {
			continue
		}
		reason := ""
		if r.Result != nil {
			reason = strings.TrimSpace("the source has another classification " + stable.From)
		}
		events = append(events, r.VerifySource(reason))
	}
	return events, nil
}

// Publishable returns the faults that an event would bring into the documents of a round. before and after are the
// ledger without and with the event. A document that has a fault without the event counts as no fault of it. Only
// publishable events are appended, because the ledger is append-only.
func Publishable(v *season.View, before, after *ledger.Fold, session int64) error {
	record, ok := after.Record(session)
	if !ok {
		return nil // keys and renames change no document by themselves
	}
	then := almanac.Join(v, after, record.Year)
	now := sync.OnceValue(func() *almanac.Almanac { return almanac.Join(v, before, record.Year) })
	variants := []catalog.Variant{
		{Endpoint: catalog.Predictions, SessionKey: session},
		{Endpoint: catalog.Predictions, Year: record.Year},
		{Endpoint: catalog.Probabilities, SessionKey: session},
		{Endpoint: catalog.Probabilities, Year: record.Year},
		{Endpoint: catalog.Results, SessionKey: session},
		{Endpoint: catalog.Calendar, Year: record.Year},
		{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: record.Year},
		{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: record.Year},
		{Endpoint: catalog.Changes, Year: record.Year},
		{Endpoint: catalog.NextRace},
	}
	faults := make([]error, len(variants))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, variant := range variants {
		group.Go(func() error {
			if err := faultIn(then, variant); err != nil && faultIn(now(), variant) == nil {
				faults[i] = err
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in faults
	return errors.Join(faults...)
}

// faultIn returns the fault of the document of a variant; nil: it has none.
func faultIn(a *almanac.Almanac, v catalog.Variant) error {
	if _, ok := a.Year(v.Year); v.Year != 0 && !ok {
		return nil
	}
	body, err := render.Body(a, v, a.At)
	if err != nil {
		return fmt.Errorf("%s: %w", v.Path(), err)
	}
	if _, err := check.Body(v.Path(), body); err != nil {
		return fmt.Errorf("%s: %w", v.Path(), err)
	}
	return nil
}

// Import is the effect of an imported archive on the ledger.
type Import struct {
	Events  []ledger.Event   // keys of new rounds and the results that the archive vouches for; none without such results
	Vouched []*almanac.Round // of seasons that ended before the ledger was opened
	Waiting []*almanac.Round // rounds with a result that an operator must verify
}

// NewImport returns the effect of an archive, named by its sum, on a ledger. The archive vouches for the results of
// seasons that ended before the ledger was opened, because nobody here could watch them arrive.
func NewImport(v *season.View, s *ledger.Fold, sum, reason string) (Import, error) {
	events, _ := keysDue(v, s) // a build reports the faults of keys
	after, err := s.Trial(v.At, events)
	if err != nil {
		return Import{}, err
	}
	i := Import{Waiting: Waiting(v, after)}
	var rounds []int64
	for _, r := range i.Waiting {
		if year, _ := v.Season(r.Year); year.EndedBy(s.OpenedAt()) {
			i.Vouched, rounds = append(i.Vouched, r), append(rounds, r.Session)
		}
	}
	if len(rounds) == 0 {
		return i, nil
	}
	slices.Sort(rounds)
	i.Events = slices.Concat(events, []ledger.Event{{Type: ledger.ResultsVouched, Archive: sum, Rounds: rounds, Reason: reason}})
	if after, err = s.Trial(v.At, i.Events); err != nil {
		return Import{}, err
	}
	i.Waiting = Waiting(v, after)
	return i, nil
}

// Waiting lists the rounds with a result that an operator must verify, oldest first. It leaves out late results,
// because the next build verifies them.
func Waiting(v *season.View, s *ledger.Fold) []*almanac.Round {
	late, _ := Policy{}.lateResults(v, s)
	return slices.DeleteFunc(almanac.Join(v, s).Waiting(), func(r *almanac.Round) bool {
		return r.Source() == nil || slices.ContainsFunc(late, func(e ledger.Event) bool { return e.Session == r.Session })
	})
}

// VerifyWaiting verifies the results that wait and that the caller wants, as of v.At, in the name of the actor. A file
// of the ledger holds those of one season. The error is an *UnsettledError if it leaves out results that cannot be
// published.
func VerifyWaiting(ctx context.Context, fresh ledger.Fresh, v *season.View, actor, reason string, want func(*almanac.Round) bool) ([]ledger.Event, error) {
	var added []ledger.Event
	var left []error
	for _, year := range v.Seasons {
		var out []error
		events, err := fresh.Append(ctx, v.At, actor, func(s *ledger.Fold) (accepted []ledger.Event, err error) {
			var due []ledger.Event
			for _, r := range almanac.Join(v, s, year.Year).Waiting() {
				if r.Source() != nil && want(r) {
					due = append(due, r.VerifySource(reason))
				}
			}
			accepted, out = publishable(v, s, v.At, due)
			return accepted, nil
		})
		if added, left = append(added, events...), append(left, out...); err != nil {
			return added, err
		}
	}
	if len(left) > 0 {
		return added, &UnsettledError{left}
	}
	return added, nil
}

// Replay fills a simulated ledger with the events that a running service would have appended, from its
// head until an instant. It calls Settle at each instant at which an event falls due, in order. So every
// pick is made from the facts that were known when it is frozen. Replay refuses a real ledger. It calls
// progress for each instant; progress may be nil.
func (p Policy) Replay(ctx context.Context, l *ledger.Ledger, facts archive.Stored, until time.Time, progress snapshots.Progress) error {
	if kind := l.Fold().Kind(); kind != ledger.Simulated {
		return fmt.Errorf("replay into a %s ledger: %w", kind, ledger.ErrKind)
	}
	instants := p.instants(facts.Archive.AsOf(until), l.Fold(), until)
	fresh, err := l.Refresh(ctx)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	for i, t := range instants {
		if _, err := p.Settle(ctx, fresh, facts, t); err != nil {
			return fmt.Errorf("replay at %s: %w", t.Format(time.RFC3339), err)
		}
		progress.Report("replaying", i+1, len(instants))
	}
	return nil
}

// instants lists the instants after the ledger's last event at which an event can fall due, ascending:
// a calendar or a grid becomes known, a start is near, or a result is to be verified.
func (p Policy) instants(v *season.View, s *ledger.Fold, until time.Time) []time.Time {
	var all []time.Time
	after := s.At()
	note := func(t time.Time) {
		if t.After(after) && !t.After(until) {
			all = append(all, t)
		}
	}
	for i := range v.Seasons {
		note(season.CalendarKnownAt(v.Seasons[i].Year))
	}
	note(after.Add(time.Second)) // keys of the rounds that are known when the ledger is opened
	for _, r := range almanac.Rounds(v, s, after.Year()) {
		note(r.Facts.GridKnownAt())
		note(r.StoodBy(p.arrived(r)))
		note(r.FreezeBy())
		note(r.End().Add(p.AutoVerifyAfter))
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}
