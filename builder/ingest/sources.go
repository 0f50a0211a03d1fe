package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/snapshots/blob"
)

// PollState is the state of a source in a store: sources/<name>/state.json. All instants are race time.
type PollState struct {
	Source string `json:"source"`
	LastPoll
	Terms
	LastPayload
	Judgement
}

// LastPoll is the last poll of a source, and the fault of its answer.
type LastPoll struct {
	Polled   time.Time `json:"asked,omitzero"`
	Answered time.Time `json:"answered,omitzero"` // last useful answer, which may say that nothing is new
	Next     time.Time `json:"next,omitzero"`     // no scheduler polls earlier
	Failures int       `json:"failures,omitzero"` // in a row

	Fault  source.FaultKind `json:"fault,omitzero"`  // of the last poll, empty after a useful answer
	Reason string           `json:"reason,omitzero"` // of the fault, for people
	Gate   assemble.Gate    `json:"gate,omitzero"`   // holds the whole last document, for Reason
}

// Terms are the terms of a source.
type Terms struct {
	Licence       string `json:"licence,omitzero"`
	NonCommercial bool   `json:"non_commercial,omitzero"`
	CheckOnly     bool   `json:"check_only,omitzero"` // compared, never published
}

// LastPayload is the last readable document of a source.
type LastPayload struct {
	SHA256   string    `json:"sha256,omitzero"`          // of the payload sources/<name>/<sha256>.zst
	Previous string    `json:"previous_sha256,omitzero"` // of the payload before it; older ones are deleted
	Revision string    `json:"revision,omitzero"`
	Changed  time.Time `json:"changed,omitzero"` // its arrival
	// Committed is the source's time of the last document that was judged, and First the first revision
	// of each season that was.
	Committed time.Time      `json:"committed,omitzero"`
	First     map[int]string `json:"first_revisions,omitzero"`
	source.Validators
}

// Judgement is the judgement of the last readable document. Judged names its inputs, empty after a fault and while the
// clock may change it.
type Judgement struct {
	Judged     string              `json:"judged,omitzero"`
	Held       []assemble.Proposal `json:"waiting,omitzero"`   // until a person accepts them
	Disputed   []assemble.Proposal `json:"disputed,omitzero"`  // with another source
	Unlicensed []assemble.Proposal `json:"withheld,omitzero"`  // not used, because the operator has not accepted the terms
	Notes      []string            `json:"notes,omitzero"`     // parts of the document that were left out, for people
	Missing    []MissingRound      `json:"missing,omitzero"`   // rounds that the source has dropped
	Standings  []string            `json:"standings,omitzero"` // standings that are not the sum of the results
	Doubted    []assemble.BlockID  `json:"doubted,omitzero"`   // results about which Standings speaks
	Lost       []string            `json:"lost,omitzero"`      // published facts that the source no longer has
}

// Problem describes the fault of the last poll. It is empty after a useful answer and before the first poll.
func (s *PollState) Problem() string {
	switch {
	case s.Gate != "":
		return fmt.Sprintf("held at gate %s: %s", s.Gate, s.Reason)
	case s.Fault != "":
		return fmt.Sprintf("%s, failure %d in a row: %s", s.Fault, s.Failures, s.Reason)
	}
	return ""
}

// MissingRound is a round that a source has dropped.
type MissingRound struct {
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
	Since     time.Time          `json:"since"`
	Revision  string             `json:"revision"` // the first without the round
}

const maxPayload = 64 << 20

func payloadKey(name, sum string) string { return "sources/" + name + "/" + sum + ".zst" }

// LoadPollState returns the state of a source. A source that was never polled has its name alone.
func LoadPollState(ctx context.Context, store blob.Store, name string) (PollState, error) {
	state, _, err := stateOf(store, name).Load(ctx)
	if err != nil {
		return PollState{}, fmt.Errorf("load state of source %s: %w", name, err)
	}
	return state, nil
}

// stateOf returns the object that holds the state of a source.
func stateOf(store blob.Store, name string) blob.Document[PollState] {
	return blob.Document[PollState]{Store: store, Key: "sources/" + name + "/state.json", Decode: func(data []byte) (PollState, error) {
		state := PollState{Source: name}
		if len(data) == 0 {
			return state, nil
		}
		if err := json.Unmarshal(data, &state); err != nil {
			// Start over: the next poll restores everything that the damaged state held.
			return PollState{Source: name}, nil //nolint:nilerr // a damaged state counts as empty
		}
		return state, nil
	}}
}

// LoadPollStates returns the states of all sources that a store has ever polled, by name.
func LoadPollStates(ctx context.Context, store blob.Store) ([]PollState, error) {
	var states []PollState
	for info, err := range store.List(ctx, "sources/") {
		if err != nil {
			return nil, fmt.Errorf("list sources: %w", err)
		}
		name, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, "sources/"), "/state.json")
		if !ok {
			continue
		}
		state, err := LoadPollState(ctx, store, name)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// saveState replaces the state. It returns false if another scheduler may have replaced it first.
func saveState(ctx context.Context, store blob.Store, state *PollState, tag blob.Tag) (blob.Tag, bool, error) {
	next, err := stateOf(store, state.Source).Swap(ctx, tag, *state)
	if errors.Is(err, blob.ErrConflict) || errors.Is(err, blob.ErrUnknown) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("save state of source %s: %w", state.Source, err)
	}
	return next, true, nil
}

// recordStates writes the judgement of the documents into the states that it changes.
func (g *Ingest) recordStates(ctx context.Context, now time.Time, out *assemble.Output, states []PollState, faults map[string]error) error {
	recorded := make([]PollState, len(states))
	defer func() { g.setKnown(recorded) }()
	for i := range states {
		before, tag, err := stateOf(g.Store, states[i].Source).Load(ctx)
		if err != nil {
			return err
		}
		recorded[i] = before
		if _, ok := g.documents[before.Source+" "+before.SHA256]; !ok && before.SHA256 != "" {
			continue // nobody judged the document, because the store did not return it: the last judgement stays
		}
		state := g.judged(before, now, out, faults[before.Source])
		recorded[i] = state
		if reflect.DeepEqual(before, state) {
			continue
		}
		for _, c := range state.Held {
			if !slices.ContainsFunc(before.Held, func(b assemble.Proposal) bool { return b.ID == c.ID }) {
				g.Log.Warn("facts wait for a person", "id", c.ID, "source", c.Source, "revision", c.Revision, "year", c.Year,
					"grand_prix", c.GrandPrix, "block", c.Block, "gate", c.Refused[0].Gate, "reason", c.Refused[0].Reason)
			}
		}
		// After a lost race the next run records the judgement again.
		if _, _, err := saveState(ctx, g.Store, &state, tag); err != nil {
			return err
		}
	}
	return nil
}

// judged returns the state of a source with the judgement of its document.
func (g *Ingest) judged(state PollState, now time.Time, out *assemble.Output, fault error) PollState {
	of := func(proposals []assemble.Proposal) []assemble.Proposal {
		var own []assemble.Proposal
		for _, c := range proposals {
			if c.Source == state.Source {
				own = append(own, c)
			}
		}
		return own
	}
	for _, s := range g.Sources {
		if s.Name() == state.Source {
			state.Terms = Terms{s.Licence().Name, s.Licence().NonCommercial, s.CheckOnly}
		}
	}
	state.Judgement = Judgement{
		Held: of(out.Held), Disputed: of(out.Disputed), Unlicensed: of(out.Unlicensed), Notes: state.Notes, Missing: missingRounds(&state, out, now),
	}
	absent := func(m MissingRound) bool { return now.Sub(m.Since) < lostAfter }
	if g.assembled.inputs != (inputs{}) && !waitForClock(state.Held) && !slices.ContainsFunc(state.Missing, absent) {
		state.Judged = g.assembled.inputs.digest()
	}
	for _, d := range out.Doubted {
		if d.Source == state.Source {
			state.Standings, state.Doubted = append(state.Standings, d.Lines...), append(state.Doubted, d.BlockID)
		}
	}
	for _, loss := range out.Lost {
		if loss.Source == state.Source {
			state.Lost = append(state.Lost, loss.Text)
		}
	}
	var withheld *assemble.WithheldError
	waits := errors.As(fault, &withheld)
	if d, ok := g.documents[state.Source+" "+state.SHA256]; ok {
		state.Notes = slices.Clone(d.Notes)
		for _, u := range d.Unread { // of a source that may apply facts, the part waits
			if state.CheckOnly {
				state.Notes = append(state.Notes, u.Reason)
			}
		}
		if !waits {
			state.Committed, state.First = d.Committed, maps.Clone(state.First)
			for i := range d.Facts.Seasons {
				if year := d.Facts.Seasons[i].Year; state.First[year] == "" {
					state.First = with(state.First, year, d.Revision)
				}
			}
		}
	}
	switch {
	case waits:
		state.Gate, state.Fault, state.Reason = withheld.Proposal.Refused[0].Gate, source.Malformed, withheld.Error()
	case state.Gate != "" && state.Failures == 0:
		state.Gate, state.Fault, state.Reason = "", "", ""
	}
	return state
}

// missingRounds returns the rounds that the source has dropped. A round that was missing already
// keeps its first instant and revision.
func missingRounds(state *PollState, out *assemble.Output, now time.Time) []MissingRound {
	var missing []MissingRound
	for _, m := range out.Missing {
		if m.Source != state.Source {
			continue
		}
		round := MissingRound{Year: m.Year, GrandPrix: m.GrandPrix, Since: now, Revision: state.Revision}
		for _, before := range state.Missing {
			if before.Year == m.Year && before.GrandPrix == m.GrandPrix {
				round = before
			}
		}
		missing = append(missing, round)
	}
	return missing
}
