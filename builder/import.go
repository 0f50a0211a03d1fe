package builder

import (
	"context"
	"slices"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

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
