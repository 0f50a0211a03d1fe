package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

var (
	// ErrNoResult: the archive has no result of the round yet, so there is nothing to vouch for.
	ErrNoResult = errors.New("the archive has no result yet")
	// ErrOtherResult: the archive now has another classification than the one that was looked at.
	ErrOtherResult = errors.New("the classification has changed since it was looked at")
)

// AwaitingResult is a race that has ended, whose result is in the archive and for which nobody
// vouches yet.
type AwaitingResult struct {
	Session ledger.Session
	Round   *season.Round
	Start   time.Time    // lights out that was valid
	Ended   time.Time    // since when the result can be verified
	Rows    []ledger.Row // the classification to vouch for
}

// Digest names the classification, to tell whether it is still the one that was looked at.
func (a AwaitingResult) Digest() string {
	data, err := json.Marshal(a.Rows)
	if err != nil {
		panic("BUG: rows of a classification: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// AwaitingResults lists the races of v that wait for a verification, oldest first.
func AwaitingResults(v *season.View, s *ledger.State) []AwaitingResult {
	v = held(v, s)
	var awaiting []AwaitingResult
	for year, r := range rounds(v, s.OpenedAt().Year()-1) {
		said, ok := session(s, year, r)
		if !ok {
			continue
		}
		if a, ok := awaits(s, said, r); ok {
			awaiting = append(awaiting, a)
		}
	}
	return awaiting
}

// awaits says whether the round, of a view of races held, waits for a verification. A race that had ended before the
// ledger was opened is vouched for by the archive.
func awaits(s *ledger.State, said ledger.Session, r *season.Round) (AwaitingResult, bool) {
	switch {
	case !r.Finished(), said.Result() != nil, said.Override.Status != ledger.AsPlanned:
		return AwaitingResult{}, false
	case r.ResultKnownAt().Before(s.OpenedAt()):
		return AwaitingResult{}, false
	}
	return AwaitingResult{
		Session: said, Round: r, Start: said.Start(r.StartsAt()), Ended: ended(r, &said), Rows: almanac.Rows(r.Results),
	}, true
}

// VerifyResult vouches for the archive's classification of a round in the name of the actor.
// seen is the Digest of the one that he looked at, or empty if he takes whatever is there. The
// error wraps ErrNoResult, ErrOtherResult, ledger.ErrAlreadyVerified, or another refusal of
// the ledger.
func VerifyResult(ctx context.Context, l *ledger.Ledger, archive *season.Archive, key int64, seen string, at time.Time, actor string) error {
	v := archive.AsOf(at)
	_, err := l.Append(ctx, at, actor, func(s *ledger.State) ([]ledger.Event, error) {
		said, ok := s.Session(key)
		if !ok {
			return nil, fmt.Errorf("verify the result of %d: %w", key, ledger.ErrUnknownSession)
		}
		if last := said.Result(); last != nil {
			return nil, fmt.Errorf("verify the result of %d: %w by %s", key, ledger.ErrAlreadyVerified, last.Actor)
		}
		r, ok := held(v, s).Round(said.Year, said.GrandPrix)
		if !ok {
			return nil, fmt.Errorf("verify the result of %d: %w", key, ErrNoResult)
		}
		a, ok := awaits(s, said, r)
		if !ok {
			return nil, fmt.Errorf("verify the result of %d: %w", key, ErrNoResult)
		}
		if seen != "" && seen != a.Digest() {
			return nil, fmt.Errorf("verify the result of %d: %w", key, ErrOtherResult)
		}
		return []ledger.Event{said.Verify(a.Rows, a.Start, "")}, nil
	})
	return err
}
