package ingest

import (
	"context"
	"encoding/json"
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

// LoadState returns the state of a source. It is empty if the source was never asked.
func LoadState(ctx context.Context, store blob.Store, name string) (State, error) {
	state, _, err := stateOf(store, name).Load(ctx)
	if err != nil {
		return State{}, fmt.Errorf("load state of source %s: %w", name, err)
	}
	return state, nil
}

// stateOf returns the object of the store that holds the state of a source.
func stateOf(store blob.Store, name string) blob.Document[State] {
	return blob.Document[State]{Store: store, Key: stateKey(name), Decode: func(data []byte) (State, error) {
		state := State{Source: name}
		if len(data) == 0 {
			return state, nil
		}
		if err := json.Unmarshal(data, &state); err != nil {
			return State{Source: name}, nil //nolint:nilerr // a damaged state starts anew: the source is asked again
		}
		return state, nil
	}}
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
