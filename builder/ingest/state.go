package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/snapshots/blob"
)

// State is what is known of a source: sources/<name>/state.json. All instants are race time.
type State struct {
	Source   string    `json:"source"`
	Asked    time.Time `json:"asked,omitzero"`    // last
	Answered time.Time `json:"answered,omitzero"` // last, usefully: also that nothing is new
	Next     time.Time `json:"next,omitzero"`     // not to be asked again before, by any scheduler
	Failures int       `json:"failures,omitzero"` // in a row

	Fault  source.FaultKind `json:"fault,omitzero"`  // of the last time it was asked; empty if there was none
	Reason string           `json:"reason,omitzero"` // of the fault, in words
	Gate   assemble.Gate    `json:"gate,omitzero"`   // that holds the whole of what it said last, for that reason

	// On which terms it is used.
	Licence       string `json:"licence,omitzero"`
	NonCommercial bool   `json:"non_commercial,omitzero"`
	CheckOnly     bool   `json:"check_only,omitzero"` // compared, and not published

	// What it said last that could be read.
	SHA256   string    `json:"sha256,omitzero"` // of the payload, which is sources/<name>/<sha256>.zst
	Revision string    `json:"revision,omitzero"`
	Changed  time.Time `json:"changed,omitzero"` // when it came
	source.Validators

	// What came of that.
	Waiting   []assemble.Proposal `json:"waiting,omitzero"`   // for a person
	Disputed  []assemble.Proposal `json:"disputed,omitzero"`  // with another source
	Withheld  []assemble.Proposal `json:"withheld,omitzero"`  // what it alone has, under terms that are not accepted
	Notes     []string            `json:"notes,omitzero"`     // what of it was left out and why, for people
	Missing   []MissingRound      `json:"missing,omitzero"`   // rounds that it no longer has
	Standings []string            `json:"standings,omitzero"` // where its standings are not the sum of its results
}

// MissingRound is a round that a source no longer has.
type MissingRound struct {
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
	Since     time.Time          `json:"since"`
	Revision  string             `json:"revision"` // that lacked it first
}

const maxPayload = 64 << 20

func stateKey(name string) string { return "sources/" + name + "/state.json" }

func payloadKey(name, sum string) string { return "sources/" + name + "/" + sum + ".zst" }

// LoadState returns what is known of a source; nothing of one that was never asked.
func LoadState(ctx context.Context, store blob.Store, name string) (State, error) {
	state, _, err := loadState(ctx, store, name)
	return state, err
}

func loadState(ctx context.Context, store blob.Store, name string) (State, blob.Tag, error) {
	object, err := store.Get(ctx, stateKey(name), blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return State{Source: name}, "", nil
	}
	if err != nil {
		return State{}, "", fmt.Errorf("load state of source %s: %w", name, err)
	}
	var state State
	if err := json.Unmarshal(object.Data, &state); err != nil {
		// Nothing rests on it but what need not be asked again: begin anew.
		return State{Source: name}, object.Tag, nil //nolint:nilerr // a damaged state is one that knows nothing
	}
	return state, object.Tag, nil
}

// States returns what is known of every source that a store was ever told of, by name.
func States(ctx context.Context, store blob.Store) ([]State, error) {
	var states []State
	for info, err := range store.List(ctx, "sources/") {
		if err != nil {
			return nil, fmt.Errorf("list sources: %w", err)
		}
		name, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, "sources/"), "/state.json")
		if !ok {
			continue
		}
		state, err := LoadState(ctx, store, name)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// saveState swaps the state; the error wraps blob.ErrConflict if somebody else did.
func saveState(ctx context.Context, store blob.Store, state *State, tag blob.Tag) (blob.Tag, error) {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return "", fmt.Errorf("save state of source %s: %w", state.Source, err)
	}
	next, err := store.Swap(ctx, stateKey(state.Source), tag, data)
	if err != nil {
		return "", fmt.Errorf("save state of source %s: %w", state.Source, err)
	}
	return next, nil
}

// Waits between two requests after faults: doubled each time, and with a floor and a ceiling, so
// that neither a crash loop nor a long outage asks too often or forgets to ask. A source that
// refuses us is asked on the slow clock at once.
const (
	minBackOff = 30 * time.Second
	maxBackOff = 30 * time.Minute
)

func backOff(failures int, fault *source.Fault) time.Duration {
	wait := minBackOff << min(failures-1, 6)
	if fault.Kind == source.Refused {
		wait = maxBackOff
	}
	return max(min(wait, maxBackOff), fault.RetryAfter)
}
