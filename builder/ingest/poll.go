package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/source"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/retry"
)

// backOff returns the wait after a number of faults in a row. A source that refuses us gets the
// longest wait at once.
func backOff(failures int, fault *source.Fault) time.Duration {
	backoff := retry.Rule{First: 30 * time.Second, Longest: 30 * time.Minute}
	if fault.Kind == source.Refused {
		backoff.First = backoff.Longest
	}
	return max(backoff.Full(failures), fault.RetryAfter)
}

// polled is the outcome of a poll of one source.
type polled struct {
	state    PollState
	document *source.Document // nil: nothing new
	asked    bool             // this scheduler sent a request
	fault    error            // of the source; wraps a *source.Fault
}

// pollAll polls the sources that are due side by side, or all sources, and keeps their new documents
// in memory. It returns their states.
func (g *Ingest) pollAll(ctx context.Context, now time.Time, all bool, outcome *Outcome) ([]PollState, error) {
	polls := make([]polled, len(g.Sources))
	faults := make([]error, len(g.Sources))
	var group sync.WaitGroup
	for i, s := range g.Sources {
		group.Go(func() { polls[i], faults[i] = g.poll(ctx, s, now, all) })
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	states := make([]PollState, len(polls))
	for i, p := range polls {
		name := g.Sources[i].Name()
		states[i] = p.state
		if p.asked {
			outcome.Polled = append(outcome.Polled, name)
		}
		if p.fault != nil {
			outcome.Faults[name] = p.fault
		}
		if p.document != nil {
			g.keepDocument(name, p.state.SHA256, *p.document)
		}
	}
	return states, nil
}

// poll polls a source if it is due, and stores its document and its new state. The error is that of
// the store.
func (g *Ingest) poll(ctx context.Context, s Source, now time.Time, all bool) (polled, error) {
	state, tag, err := stateOf(g.Store, s.Name()).Load(ctx)
	p := polled{state: state}
	ahead := state.Polled.Sub(now) > time.Minute // by a clock that was set back since, so that Next is far away, too
	if err != nil || !all && !ahead && now.Before(state.Next) {
		return p, err
	}
	// The scheduler that saves the state first polls. The others take its document with a later run.
	state.Polled, state.Next = now, now.Add(max(g.Interval(now), s.Every))
	tag, won, err := saveState(ctx, g.Store, &state, tag)
	if err != nil || !won {
		return p, err
	}
	p.asked = true
	superseded := ""
	payload, document, err := fetch(ctx, s, now, &state)
	switch {
	case err != nil:
		fault := &source.Fault{Kind: source.Unreachable} // of an upstream whose error is no *source.Fault
		_ = errors.As(err, &fault)
		state.Failures++
		state.Fault, state.Reason = fault.Kind, err.Error()
		state.Next = now.Add(backOff(state.Failures, fault))
		p.fault = err
		g.Log.Warn("source has no answer that can be used", "source", s.Name(), "fault", fault.Kind, "failures", state.Failures, "next", state.Next, "err", err)
	default:
		if document != nil {
			sum, err := g.storePayload(ctx, s.Name(), payload.Packed)
			if err != nil {
				return p, err
			}
			superseded, state.Previous, state.SHA256 = state.Previous, state.SHA256, sum
			state.Revision, state.Changed = payload.Revision, now
		}
		state.Failures, state.Fault, state.Reason, state.Answered = 0, "", "", now
		state.Validators = payload.Validators
	}
	p.state, p.document = state, document
	if _, won, err = saveState(ctx, g.Store, &state, tag); err != nil || !won || superseded == "" || superseded == state.SHA256 {
		return p, err
	}
	// Only the last document is ever read. The one before it stays for schedulers and backups that have read the
	// state before it changed.
	if err := g.Store.Delete(ctx, payloadKey(s.Name(), superseded)); err != nil {
		g.Log.Warn("a superseded document of a source stays in the store", "source", s.Name(), "err", err)
	}
	return p, nil
}

// fetch returns the payload of a source and the document in it, nil if nothing is new. An unreadable
// payload is a fault: neither the payload nor its validators are stored, so that the next poll fetches
// it again.
func fetch(ctx context.Context, s Source, now time.Time, state *PollState) (source.Payload, *source.Document, error) {
	year := now.UTC().Year()
	payload, err := s.Fetch(ctx, now, year-1, year+1, source.Known{Validators: state.Validators, SHA256: state.SHA256})
	if err != nil || payload.NotModified {
		return payload, nil, err
	}
	document, err := s.Read(payload.Packed)
	if err != nil {
		return payload, nil, &source.Fault{Kind: source.Malformed, Err: err}
	}
	return payload, &document, nil
}

// storePayload stores a payload under its sum, and returns the sum.
func (g *Ingest) storePayload(ctx context.Context, name string, packed []byte) (string, error) {
	sum := source.Sum(packed)
	switch whole, err := blob.Claim(ctx, g.Store, payloadKey(name, sum), packed); {
	case err != nil:
		return "", fmt.Errorf("store the document of %s: %w", name, err)
	case !whole:
		return "", fmt.Errorf("store the document of %s: %s is damaged", name, payloadKey(name, sum))
	}
	return sum, nil
}

// LastDocument returns the last readable document of a source, false if it never gave one.
func (g *Ingest) LastDocument(ctx context.Context, s Source) (source.Document, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	state, _, err := stateOf(g.Store, s.Name()).Load(ctx)
	if err != nil {
		return source.Document{}, false, err
	}
	return g.document(ctx, s, state.SHA256)
}

// lastDocuments returns the last readable document of every source, in the order of the sources. A
// document that cannot be read from the store is a fault of its source.
func (g *Ingest) lastDocuments(ctx context.Context, states []PollState, faults map[string]error) []assemble.Document {
	var documents []assemble.Document
	for i, s := range g.Sources {
		d, ok, err := g.document(ctx, s, states[i].SHA256)
		if err != nil {
			faults[s.Name()] = err
			continue
		}
		if !ok {
			continue
		}
		kind := assemble.Full
		switch {
		case s.CheckOnly:
			kind = assemble.CheckOnly
		case d.Sparse:
			kind = assemble.Sparse
		}
		earlier := make(map[int]bool)
		for year, revision := range states[i].First {
			earlier[year] = revision != d.Revision
		}
		documents = append(documents, assemble.Document{
			Committed: d.Committed, Latest: states[i].Committed, Earlier: earlier,
			Source: d.Source, Revision: d.Revision, From: d.From, To: d.To, Facts: d.Facts, Kind: kind, Sheets: d.Sheets, Born: d.Born, Unread: d.Unread,
		})
	}
	return documents
}

// document returns the document with a sum of its payload, false without a sum.
func (g *Ingest) document(ctx context.Context, s Source, sum string) (source.Document, bool, error) {
	if sum == "" {
		return source.Document{}, false, nil
	}
	if d, ok := g.documents[s.Name()+" "+sum]; ok {
		return d, true, nil
	}
	object, err := g.Store.Get(ctx, payloadKey(s.Name(), sum), maxPayload)
	if err != nil {
		return source.Document{}, false, fmt.Errorf("load the document of %s: %w", s.Name(), err)
	}
	if got := source.Sum(object.Data); got != sum {
		return source.Document{}, false, fmt.Errorf("load the document of %s: %s is damaged: it has the sum %s", s.Name(), payloadKey(s.Name(), sum), got)
	}
	d, err := s.Read(object.Data)
	if err != nil {
		return source.Document{}, false, fmt.Errorf("read the document of %s: %w", s.Name(), err)
	}
	g.keepDocument(s.Name(), sum, d)
	return d, true, nil
}

// keepDocument keeps the last document of each source in memory, because every run needs all of them.
//
// Cache, by source and SHA-256: reading the document of F1DB takes .06 s of processor time.
func (g *Ingest) keepDocument(name, sum string, d source.Document) {
	if g.documents == nil {
		g.documents = make(map[string]source.Document)
	}
	maps.DeleteFunc(g.documents, func(_ string, other source.Document) bool { return other.Source == d.Source })
	g.documents[name+" "+sum] = d
}
