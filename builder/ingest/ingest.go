// Package ingest brings facts in by themselves: it asks the sources when they are due, keeps what
// they said, has package assemble judge it, writes what was taken into the facts log, what it means
// for the calendar into the ledger, and swaps the archive in use. Any number of schedulers may do
// so on one store: a source is asked by whoever claims it first, and the archive is swapped only
// against the one that it was assembled from.
package ingest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/builder/source"
	"gridcast/snapshots/blob"
)

// Ingest asks sources for a store. It is safe for concurrent use; one Run at a time does its work.
type Ingest struct {
	Store   blob.Store
	Facts   *archive.Store
	Ledger  *ledger.Ledger
	Sources []Source // by falling precedence
	// Interval is how long after an answer a source is asked again, at an instant of race time.
	Interval func(now time.Time) time.Duration
	Log      *slog.Logger

	mu        sync.Mutex // held by whoever asks sources or assembles, which may take as long as a source does
	log       *Log
	hand      *HandLog
	fresh     ledger.Fresh               // by the last refresh
	headshots *season.Headshots          // of the settings; nil: nothing was said
	archive   string                     // SHA-256 of the one that log and contested are of
	contested map[assemble.BlockID]bool  // that wait for a person, or on which sources disagree
	documents map[string]source.Document // by source and sum of the payload; the last of each
	assembled assembled

	seen atomic.Pointer[seen] // what is told of it without waiting for anybody
}

// assembled is what Assemble made last, and of what.
type assembled struct {
	of    assembledOf
	out   assemble.Output
	times int // since the start
}

type assembledOf struct {
	archive   string // SHA-256 of the one in use
	documents string // sources and revisions
	headshots string // of the settings
	log       int64  // heads of the facts log, of what people entered, and of the ledger
	hand      int64
	ledger    int64
}

// stands reports whether assembling again would give the same: nothing is new, and no change waits
// at a gate that goes by the clock.
func (a *assembled) stands(of assembledOf) bool {
	return a.of == of && !slices.ContainsFunc(a.out.Held, func(c assemble.Proposal) bool {
		return slices.ContainsFunc(c.Refused, func(r assemble.Refusal) bool {
			return r.Gate == assemble.EarlyGate || r.Gate == assemble.StartGate
		})
	})
}

// Source is an upstream and what it may do here.
type Source struct {
	source.Upstream
	// CheckOnly sources are compared with the others and never published: those under terms that
	// the operator has not accepted, and those that are there for the comparison.
	CheckOnly bool
	// Every is how long after an answer it is asked again at the earliest; 0: Interval alone counts.
	Every time.Duration
}

// Report is what a run did.
type Report struct {
	Asked     []string            // sources that were asked
	Faults    map[string]error    // of sources; the others went on
	Taken     []assemble.Proposal // in use from now on
	Waiting   []assemble.Proposal // for a person
	Disputed  []assemble.Proposal
	Confirmed []assemble.Confirmation // what people entered and a source says too
	Events    []ledger.Event          // appended to the ledger
	Archive   string                  // SHA-256 of the archive in use after it
	Changed   bool                    // the archive is another than before
}

// maxAttempts is how often a run assembles again because somebody else changed the archive.
const maxAttempts = 8

// Run asks the sources that are due at now, all of them if asked to, and takes what passes. A source
// that cannot be reached, or says what cannot be used, is a fault in the report and never an error:
// the others go on, and the last good document of it stays. The error is that of the store, the
// ledger or the facts log, or of facts that would not hold together.
func (g *Ingest) Run(ctx context.Context, now time.Time, all bool) (Report, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	report := Report{Faults: make(map[string]error)}
	states := make([]State, len(g.Sources))
	news := make([]*source.Document, len(g.Sources))
	faults := make([]error, len(g.Sources))
	asked := make([]bool, len(g.Sources))
	var group sync.WaitGroup
	for i, s := range g.Sources {
		group.Go(func() { states[i], news[i], asked[i], faults[i] = g.ask(ctx, s, now, all) })
	}
	group.Wait()
	for i, s := range g.Sources {
		if asked[i] {
			report.Asked = append(report.Asked, s.Name())
		}
		var fault *source.Fault
		switch {
		case errors.As(faults[i], &fault):
			report.Faults[s.Name()] = faults[i]
		case faults[i] != nil:
			return report, faults[i]
		}
		if news[i] != nil {
			g.remember(s.Name(), states[i].SHA256, *news[i])
		}
	}
	return report, g.follow(ctx, now, states, &report)
}

// Apply takes again what passes of what the sources said last and people entered, without asking
// anybody.
func (g *Ingest) Apply(ctx context.Context, now time.Time) (Report, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	report := Report{Faults: make(map[string]error)}
	states, err := g.load(ctx)
	if err != nil {
		return report, err
	}
	return report, g.follow(ctx, now, states, &report)
}

// load returns what is known of the sources.
func (g *Ingest) load(ctx context.Context) ([]State, error) {
	states := make([]State, len(g.Sources))
	for i, s := range g.Sources {
		var err error
		if states[i], _, err = stateOf(g.Store, s.Name()).Load(ctx); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// follow makes what follows from the documents the archive in use, however many others do the same.
func (g *Ingest) follow(ctx context.Context, now time.Time, states []State, report *Report) error {
	documents := g.said(ctx, states, report.Faults)
	for range maxAttempts {
		done, err := g.take(ctx, now, documents, states, report)
		if err != nil || done {
			return err
		}
	}
	return fmt.Errorf("ingest: others changed the archive %d times meanwhile", maxAttempts)
}

// said are the documents of the sources: the last that could be read of each.
func (g *Ingest) said(ctx context.Context, states []State, faults map[string]error) []assemble.Document {
	var documents []assemble.Document
	for i, s := range g.Sources {
		d, ok, err := g.document(ctx, s, states[i].SHA256)
		switch {
		case err != nil:
			faults[s.Name()] = err
		case ok:
			kind := assemble.Full
			switch {
			case s.CheckOnly:
				kind = assemble.CheckOnly
			case d.Sparse:
				kind = assemble.Sparse
			}
			documents = append(documents, assemble.Document{
				Source: d.Source, Revision: d.Revision, From: d.From, To: d.To, Kind: kind, Facts: d.Facts,
			})
		}
	}
	return documents
}

// refresh reads what others appended to the facts log, to what people entered, and to the ledger, and
// what the settings say of portraits.
func (g *Ingest) refresh(ctx context.Context) (err error) {
	if g.log == nil {
		g.log, err = LoadLog(ctx, g.Store)
	} else {
		err = g.log.Refresh(ctx)
	}
	if err != nil {
		g.log = nil
		return err
	}
	if err := g.refreshHand(ctx); err != nil {
		return err
	}
	switch settings, err := settings.Load(ctx, g.Store); {
	case err != nil:
		g.Log.Error("the settings of the store cannot be read; portraits are as they were", "err", err)
	default:
		g.headshots = settings.Headshots
	}
	g.fresh, err = g.Ledger.Refresh(ctx)
	return err
}

// assemble judges documents and what people entered against the archive in use. A document that
// lacks rounds wholesale is left out, a fault, and a change that waits.
func (g *Ingest) assemble(now time.Time, was season.Facts, documents []assemble.Document, people trial, faults map[string]error) (assemble.Output, error) {
	decided := g.Ledger.State()
	wins, yields := people.hand.documents()
	out, err := assemble.Assemble(assemble.Input{
		Current: was, Documents: slices.Concat([]assemble.Document{wins}, documents, []assemble.Document{yields}),
		Accepted: people.accepted, Aliases: people.aliases, Named: people.hand.named, Released: people.hand.releases(g.log.hand), Now: now,
		Headshots: g.headshots,
		Decided:   func(year int, gp season.GrandPrixID) assemble.Decided { return decidedOf(decided, year, gp) },
	})
	var shrunken *assemble.ShrunkenError
	if errors.As(err, &shrunken) {
		held := shrunken.Proposal.Source
		faults[held] = &source.Fault{Kind: source.Malformed, Err: err}
		rest := slices.DeleteFunc(slices.Clone(documents), func(d assemble.Document) bool { return d.Source == held })
		out, err = g.assemble(now, was, rest, people, faults)
		out.Held = append(out.Held, shrunken.Proposal)
		return out, err
	}
	return out, err
}

// ask asks one source if it is due, and keeps what it said. It returns what is known of it then, and
// the document if it is a new one.
func (g *Ingest) ask(ctx context.Context, s Source, now time.Time, all bool) (state State, news *source.Document, asked bool, err error) {
	state, tag, err := stateOf(g.Store, s.Name()).Load(ctx)
	if err != nil {
		return state, nil, false, err
	}
	if !all && now.Before(state.Next) {
		return state, nil, false, nil
	}
	// Whoever writes the state first asks; the others see that it was asked.
	before := state
	state.Asked, state.Next = now, now.Add(max(g.Interval(now), s.Every))
	if tag, err = stateOf(g.Store, state.Source).Swap(ctx, tag, state); err != nil {
		if errors.Is(err, blob.ErrConflict) || errors.Is(err, blob.ErrUnknown) {
			return before, nil, false, nil
		}
		return before, nil, false, err
	}
	payload, err := s.Fetch(ctx, now, now.UTC().Year()-1, now.UTC().Year()+1, source.Known{Validators: state.Validators, SHA256: state.SHA256})
	if err == nil && !payload.NotModified {
		// What cannot be read is not kept, nor its validators: it must be asked for again.
		document, readErr := s.Read(payload.Packed)
		if news = &document; readErr != nil {
			news, err = nil, &source.Fault{Kind: source.Malformed, Err: readErr}
		}
	}
	if err == nil && !payload.NotModified {
		sum := archive.Sum(payload.Packed)
		switch whole, claimErr := blob.Claim(ctx, g.Store, payloadKey(s.Name(), sum), payload.Packed); {
		case claimErr != nil:
			return before, nil, true, fmt.Errorf("keep what %s said: %w", s.Name(), claimErr)
		case !whole:
			return before, nil, true, fmt.Errorf("keep what %s said: %s is damaged", s.Name(), payloadKey(s.Name(), sum))
		}
		state.SHA256, state.Revision, state.Changed = sum, payload.Revision, now
	}
	var fault *source.Fault
	switch {
	case errors.As(err, &fault):
		state.Failures++
		state.Fault, state.Reason = fault.Kind, err.Error()
		state.Next = now.Add(backOff(state.Failures, fault))
		g.Log.Warn("source has no answer that can be used", "source", s.Name(), "fault", fault.Kind, "failures", state.Failures, "next", state.Next, "err", err)
	case err != nil:
		return before, nil, true, err
	default:
		state.Failures, state.Fault, state.Reason, state.Answered = 0, "", "", now
		state.Validators = payload.Validators
	}
	if _, saveErr := stateOf(g.Store, state.Source).Swap(ctx, tag, state); saveErr != nil && !errors.Is(saveErr, blob.ErrConflict) && !errors.Is(saveErr, blob.ErrUnknown) {
		return state, nil, true, saveErr
	}
	return state, news, true, err
}

// Said returns what a source said last, false if it never said anything that could be read.
func (g *Ingest) Said(ctx context.Context, s Source) (source.Document, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	state, _, err := stateOf(g.Store, s.Name()).Load(ctx)
	if err != nil {
		return source.Document{}, false, err
	}
	return g.document(ctx, s, state.SHA256)
}

// remember keeps a document, so that it need not be read again. One of each source is enough.
func (g *Ingest) remember(name, sum string, d source.Document) {
	if g.documents == nil {
		g.documents = make(map[string]source.Document)
	}
	maps.DeleteFunc(g.documents, func(_ string, other source.Document) bool { return other.Source == d.Source })
	g.documents[name+" "+sum] = d
}

// document returns what a source said last, false if it never said anything.
func (g *Ingest) document(ctx context.Context, s Source, sum string) (source.Document, bool, error) {
	if sum == "" {
		return source.Document{}, false, nil
	}
	if d, ok := g.documents[s.Name()+" "+sum]; ok {
		return d, true, nil
	}
	object, err := g.Store.Get(ctx, payloadKey(s.Name(), sum), maxPayload)
	if err != nil {
		return source.Document{}, false, fmt.Errorf("load what %s said: %w", s.Name(), err)
	}
	if got := archive.Sum(object.Data); got != sum {
		return source.Document{}, false, fmt.Errorf("load what %s said: %s has the sum %s", s.Name(), payloadKey(s.Name(), sum), got)
	}
	d, err := s.Read(object.Data)
	if err != nil {
		return source.Document{}, false, fmt.Errorf("read what %s said: %w", s.Name(), err)
	}
	g.remember(s.Name(), sum, d)
	return d, true, nil
}

// take assembles once and makes what follows the archive in use. It is not done if somebody else
// changed the archive or the log meanwhile.
func (g *Ingest) take(ctx context.Context, now time.Time, documents []assemble.Document, states []State, report *Report) (done bool, err error) {
	if err := g.refresh(ctx); err != nil {
		return false, err
	}
	current, err := g.Facts.Load(ctx)
	if err != nil {
		return false, err
	}
	decided := g.Ledger.State()
	was := current.Archive.Facts()
	of := assembledOf{archive: current.SHA256, log: g.log.head.Seq, hand: g.hand.head.Seq, ledger: decided.Head().Seq}
	if g.headshots != nil {
		of.headshots = fmt.Sprint(*g.headshots)
	}
	for _, d := range documents {
		of.documents += fmt.Sprintln(d.Source, d.Revision)
	}
	out := g.assembled.out
	if !g.assembled.stands(of) {
		faults := len(report.Faults)
		if out, err = g.assemble(now, was, documents, trial{g.hand, decided.Aliases(), g.log.accepted}, report.Faults); err != nil {
			return false, err
		}
		if g.assembled = (assembled{of, out, g.assembled.times + 1}); len(report.Faults) > faults {
			g.assembled.of = assembledOf{} // what is not believed is to be said again
		}
	}
	g.archive, g.contested = current.SHA256, make(map[assemble.BlockID]bool)
	for _, c := range slices.Concat(out.Held, out.Disputed) {
		g.contested[c.BlockID()] = true
	}
	report.Taken, report.Waiting, report.Disputed, report.Confirmed, report.Archive = out.Applied, out.Held, out.Disputed, out.Confirmed, current.SHA256
	// The ledger first: it alone says when lights go out. If we end here, the next run finds the
	// events there and goes on.
	events, err := g.decide(ctx, now, decided, &out, states)
	report.Events = append(report.Events, events...)
	if err != nil {
		return false, err
	}
	var file bytes.Buffer
	sum := current.SHA256
	if len(out.Applied) > 0 || len(out.Renames) > 0 || !sameThings(&was, &out.Facts) {
		next, err := season.New(out.Facts)
		if err != nil {
			return false, fmt.Errorf("ingest: %w", err)
		}
		if err := archive.Encode(&file, next); err != nil {
			return false, fmt.Errorf("ingest: %w", err)
		}
		sum = archive.Sum(file.Bytes())
	}
	if sum == current.SHA256 {
		if len(g.hand.releases(g.log.hand)) > 0 { // what people let go of is done with
			won, err := g.log.append(ctx, Entry{ID: rand.Text(), At: now.UTC(), Actor: "ingest", Hand: g.hand.head.Seq})
			if err != nil || !won {
				return false, err
			}
		}
		return true, g.note(ctx, now, &out, states, report.Faults)
	}
	if err := g.Facts.Keep(ctx, file.Bytes()); err != nil {
		return false, err
	}
	// The log before the swap, so that nothing is in use of which it does not know. If we end in
	// between, the next run takes the same again and finds its entry there.
	if last := g.log.last(); last == nil || last.Base != current.SHA256 || last.Archive != sum {
		won, err := g.log.append(ctx, Entry{
			ID: rand.Text(), At: now.UTC(), Actor: g.actorOf(out.Applied, documents), Base: current.SHA256, Archive: sum,
			Changes: logged(out.Applied), Renames: out.Renames, Hand: g.hand.head.Seq,
		})
		if err != nil || !won {
			return false, err
		}
	}
	// Before the swap too: nobody may take for long known what the archive has from now on.
	g.archive = sum
	g.show(g.look().states)
	switch err := g.Facts.Use(ctx, sum, current.SHA256); {
	case errors.Is(err, archive.ErrReplaced):
		return false, nil
	case err != nil:
		return false, err
	}
	report.Archive, report.Changed = sum, true
	for _, c := range out.Applied {
		g.Log.Info("facts taken", "source", c.Source, "revision", c.Revision, "year", c.Year, "grand_prix", c.GrandPrix, "block", c.Block)
	}
	return true, g.note(ctx, now, &out, states, report.Faults)
}

// decidedOf is what the ledger holds of a round.
func decidedOf(s *ledger.State, year int, gp season.GrandPrixID) assemble.Decided {
	key, ok := s.Key(year, gp)
	if !ok {
		return assemble.Decided{}
	}
	said, _ := s.Record(key)
	d := assemble.Decided{Start: said.Override.Start, StartHeld: said.Override.ByPerson, Postponed: said.Override.Status != ledger.AsPlanned}
	if result := said.Result(); result != nil {
		for _, row := range result.Rows {
			d.Verified = append(d.Verified, row.Driver)
		}
	}
	return d
}

// A round that a source has lost is postponed when it was absent for this long and in two
// revisions: a deletion by mistake is mended sooner.
const lostAfter = 24 * time.Hour

// decide appends to the ledger what the documents mean for it: starts that moved, rounds that
// vanished and came back, drivers who were renamed. What the ledger refuses is logged and tried
// again with the next run.
func (g *Ingest) decide(ctx context.Context, now time.Time, s *ledger.State, out *assemble.Output, states []State) ([]ledger.Event, error) {
	var appended []ledger.Event
	add := func(actor string, decide func(*ledger.State) ([]ledger.Event, error)) error {
		events, err := g.fresh.Append(ctx, now, actor, decide)
		appended = append(appended, events...)
		return err
	}
	for _, r := range out.Renames {
		err := add(ledger.SourceActor(r.Source, short(r.Revision)), func(s *ledger.State) ([]ledger.Event, error) {
			if s.Aliases()[r.From] == r.To {
				return nil, nil
			}
			return []ledger.Event{ledger.Rename(r.From, r.To)}, nil
		})
		if err != nil {
			return appended, fmt.Errorf("ingest: %s is %s now: %w", r.From, r.To, err)
		}
	}
	for _, c := range out.Applied {
		if c.Block != assemble.Start || c.New || c.Released {
			continue // what a released start means is for the ledger's own release
		}
		key, ok := s.Key(c.Year, c.GrandPrix)
		if !ok {
			continue
		}
		start, was := startOf(&out.Facts, c.Year, c.GrandPrix), c.Was
		actor, reason := g.sayer(c), "the source has another start"
		if entry := g.hand.Entry(Origin{Source: c.Source, Revision: c.Revision}); entry != nil {
			reason = entry.Reason
		}
		err := add(actor, func(s *ledger.State) ([]ledger.Event, error) {
			said, _ := s.Record(key)
			valid := said.Start(was)
			if valid.Equal(start) || said.Override.Status != ledger.AsPlanned || c.Provisional && said.Override.Start.IsZero() {
				return nil, nil // the hour was not known: nobody was told of another
			}
			return []ledger.Event{said.Move(valid, start, reason)}, nil
		})
		if refused := (*ledger.RefusedError)(nil); errors.As(err, &refused) && c.Source == assemble.ManualSource {
			g.Log.Warn("the ledger refuses a start that a person entered", "session_key", key, "err", err)
			continue
		}
		if err != nil {
			return appended, fmt.Errorf("ingest: move %d: %w", key, err)
		}
	}
	for i := range states {
		state := &states[i]
		actor := ledger.SourceActor(state.Source, short(state.Revision))
		for _, m := range missingRounds(state, out, now) {
			key, ok := s.Key(m.Year, m.GrandPrix)
			start := startOf(&out.Facts, m.Year, m.GrandPrix)
			if !ok || m.Revision == state.Revision || now.Sub(m.Since) < lostAfter {
				continue
			}
			err := add(actor, func(s *ledger.State) ([]ledger.Event, error) {
				said, _ := s.Record(key)
				if said.Override.Status != ledger.AsPlanned || said.Override.ByPerson || said.Result() != nil || !now.Before(said.Start(start)) {
					return nil, nil
				}
				return said.Postpone(said.Start(start), "the source no longer has the round"), nil
			})
			if err != nil {
				return appended, fmt.Errorf("ingest: postpone %d: %w", key, err)
			}
		}
	}
	return appended, g.reinstate(now, out, s, add)
}

// reinstate puts rounds back that a source took off and has again.
func (g *Ingest) reinstate(now time.Time, out *assemble.Output, s *ledger.State, add func(string, func(*ledger.State) ([]ledger.Event, error)) error) error {
	gone := make(map[season.GrandPrixID]map[int]bool)
	for _, m := range out.Missing {
		if gone[m.GrandPrix] == nil {
			gone[m.GrandPrix] = make(map[int]bool)
		}
		gone[m.GrandPrix][m.Year] = true
	}
	for said := range s.Records() {
		if said.Override.Status != ledger.Postponed || said.Override.ByPerson || gone[said.GrandPrix][said.Year] || len(said.Override.Changes) == 0 {
			continue
		}
		last := said.Override.Changes[len(said.Override.Changes)-1]
		start := startOf(&out.Facts, said.Year, said.GrandPrix)
		if !ledger.IsSource(last.Actor) || start.Sub(now) < time.Hour {
			continue
		}
		err := add(last.Actor, func(s *ledger.State) ([]ledger.Event, error) {
			again, _ := s.Record(said.Key)
			if again.Override.Status != ledger.Postponed || again.Override.ByPerson {
				return nil, nil
			}
			return []ledger.Event{again.Reinstate(start, "the source has the round again")}, nil
		})
		if err != nil {
			return fmt.Errorf("ingest: reinstate %d: %w", said.Key, err)
		}
	}
	return nil
}

// missingRounds joins what was missing before with what is missing now.
func missingRounds(state *State, out *assemble.Output, now time.Time) []MissingRound {
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

// note writes into the states what came of the documents, where that is new.
func (g *Ingest) note(ctx context.Context, now time.Time, out *assemble.Output, states []State, faults map[string]error) error {
	noted := make([]State, len(states))
	defer func() { g.show(noted) }()
	for i := range states {
		state, tag, err := stateOf(g.Store, states[i].Source).Load(ctx)
		if err != nil {
			return err
		}
		before := state
		of := func(list []assemble.Proposal) []assemble.Proposal {
			var own []assemble.Proposal
			for _, c := range list {
				if c.Source == state.Source {
					own = append(own, c)
				}
			}
			return own
		}
		state.Waiting, state.Disputed, state.Missing = of(out.Held), of(out.Disputed), missingRounds(&state, out, now)
		state.Withheld, state.Standings = of(out.Unlicensed), out.Standings
		if d, ok := g.documents[state.Source+" "+state.SHA256]; ok {
			state.Notes = d.Notes
		}
		var shrunken *assemble.ShrunkenError
		switch held := errors.As(faults[state.Source], &shrunken); {
		case held:
			state.Gate, state.Fault, state.Reason = assemble.ShrinkGate, source.Malformed, shrunken.Error()
		case state.Gate != "" && state.Failures == 0:
			state.Gate, state.Fault, state.Reason = "", "", ""
		}
		for _, s := range g.Sources {
			if s.Name() == state.Source {
				state.Licence, state.NonCommercial, state.CheckOnly = s.Licence().Name, s.Licence().NonCommercial, s.CheckOnly
			}
		}
		noted[i] = state
		if reflect.DeepEqual(before, state) {
			continue
		}
		for _, c := range state.Waiting {
			if !slices.ContainsFunc(before.Waiting, func(b assemble.Proposal) bool { return b.ID == c.ID }) {
				g.Log.Warn("facts wait for a person", "id", c.ID, "source", c.Source, "revision", c.Revision, "year", c.Year,
					"grand_prix", c.GrandPrix, "block", c.Block, "gate", c.Refused[0].Gate, "reason", c.Refused[0].Reason)
			}
		}
		if _, err := stateOf(g.Store, state.Source).Swap(ctx, tag, state); err != nil && !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown) {
			return err
		}
	}
	return nil
}

// Load reads what is known without asking anybody: the facts log, and what waits. Stood goes by it
// where nothing runs.
func (g *Ingest) Load(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	log, err := LoadLog(ctx, g.Store)
	if err != nil {
		return err
	}
	states, err := States(ctx, g.Store)
	if err != nil {
		return err
	}
	current, err := g.Facts.Load(ctx)
	if err != nil {
		return err
	}
	g.log, g.archive, g.contested = log, current.SHA256, make(map[assemble.BlockID]bool)
	for _, state := range states {
		for _, c := range slices.Concat(state.Waiting, state.Disputed) {
			g.contested[c.BlockID()] = true
		}
	}
	g.show(states)
	return nil
}

// Assembled is how often documents were assembled since the start: not at a poll that brings nothing.
func (g *Ingest) Assembled() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.assembled.times
}

// Accept lets a waiting change through: the next run takes it, whatever the gates say. The error
// names the changes that wait if there is none of that ID.
func (g *Ingest) Accept(ctx context.Context, now time.Time, actor, id, reason string) (assemble.Proposal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var known []string
	for _, s := range g.Sources {
		state, _, err := stateOf(g.Store, s.Name()).Load(ctx)
		if err != nil {
			return assemble.Proposal{}, err
		}
		for _, c := range state.Waiting {
			if c.ID != id {
				known = append(known, c.ID)
				continue
			}
			for {
				log, err := LoadLog(ctx, g.Store)
				if err != nil {
					return assemble.Proposal{}, err
				}
				won, err := log.append(ctx, Entry{ID: rand.Text(), At: now.UTC(), Actor: actor, Accept: id, Reason: reason})
				if err != nil {
					return assemble.Proposal{}, fmt.Errorf("accept %s: %w", id, err)
				}
				if won {
					return c, nil
				}
			}
		}
	}
	return assemble.Proposal{}, fmt.Errorf("accept %s: no change of that ID waits; there wait %v", id, known)
}

// sameThings reports whether names, colours and portraits are alike.
func sameThings(a, b *season.Facts) bool {
	return maps.Equal(a.Drivers, b.Drivers) && maps.Equal(a.Teams, b.Teams) && maps.Equal(a.Engines, b.Engines) &&
		maps.Equal(a.Circuits, b.Circuits) && reflect.DeepEqual(a.Lineages, b.Lineages) &&
		a.Headshots.Template == b.Headshots.Template && slices.Equal(a.Headshots.Drivers, b.Headshots.Drivers) &&
		slices.EqualFunc(a.Seasons, b.Seasons, func(x, y season.Season) bool { return maps.Equal(x.Colours, y.Colours) })
}

func startOf(f *season.Facts, year int, gp season.GrandPrixID) time.Time {
	if r, ok := f.Round(year, gp); ok {
		return r.StartsAt()
	}
	return time.Time{}
}

// sayer names who says a change.
func (g *Ingest) sayer(c assemble.Proposal) string {
	if entry := g.hand.Entry(Origin{Source: c.Source, Revision: c.Revision}); entry != nil {
		return entry.Actor
	}
	return ledger.SourceActor(c.Source, short(c.Revision))
}

// actorOf names the source, or the person, whose changes were taken.
func (g *Ingest) actorOf(taken []assemble.Proposal, documents []assemble.Document) string {
	for _, c := range taken {
		return g.sayer(c)
	}
	for _, d := range documents {
		return ledger.SourceActor(d.Source, short(d.Revision))
	}
	return "ingest"
}

// logged are the changes as the log has them. Of a round that was not known there is nothing to
// compare with.
func logged(taken []assemble.Proposal) []assemble.Proposal {
	list := slices.Clone(taken)
	for i := range list {
		if list[i].New {
			list[i].Lines = nil
		}
	}
	return list
}

// short is a revision as people write it.
func short(revision string) string { return revision[:min(12, len(revision))] }
