package builder

import (
	"encoding/json"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/provenance"
	"gridcast/builder/render"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// wireSource returns the public form of a source.
func wireSource(s provenance.SourceSummary) wire.SourceState {
	use := wire.UsePublished
	if s.CheckOnly {
		use = wire.UseCompared
	}
	return wire.SourceState{
		Source: s.Name, Licence: s.Licence, NonCommercial: s.NonCommercial, Use: use, Revision: s.Revision, ChangedAt: wire.Instant(s.Changed),
		Silent: s.Silent, SilentSince: wire.Instant(s.Answered), Waiting: s.Waiting, Disagreements: s.Disagreements,
	}
}

// State returns the description of the facts that a build at an instant would publish on /status, as
// JSON. The service compares it with the published one to decide about a build.
func (b *Builder) State(facts archive.Stored, at time.Time, base *snapshots.Base) (json.RawMessage, error) {
	return b.stateOf(almanac.Join(facts.Archive.AsOf(at), b.Ledger.Current(at)), base)
}

// stateOf makes the description. A builder without sources keeps the part about sources of the base.
func (b *Builder) stateOf(a *almanac.Almanac, base *snapshots.Base) (json.RawMessage, error) {
	state := wire.FactsState{
		NextChange: wire.Instant(a.NextChange(0)), Sources: []wire.SourceState{}, Rounds: []wire.RoundState{},
		NonCommercial: []wire.BorrowedFact{},
	}
	var before wire.FactsState
	if b.Provenance == nil && base != nil && base.Manifest.State != nil {
		if err := json.Unmarshal(base.Manifest.State, &before); err != nil {
			before = wire.FactsState{} // written by a release with another form
		}
		state.Sources = append(state.Sources, before.Sources...)
		state.NonCommercial = append(state.NonCommercial, before.NonCommercial...)
	}
	var sourced provenance.Summary
	if b.Provenance != nil {
		sourced = b.Provenance(a.At)
		for _, source := range sourced.Sources {
			state.Sources = append(state.Sources, wireSource(source))
		}
	}
	for _, r := range a.Rounds(0) {
		round := roundState(r)
		for _, p := range sourced.Disputed {
			if p.Year == r.Year && p.GrandPrix == r.Facts.GrandPrix {
				round.Disputed = append(round.Disputed, wire.Dispute{Part: p.Block, Source: p.Source})
			}
		}
		if i := slices.IndexFunc(before.Rounds, func(was wire.RoundState) bool { return was.SessionKey == r.Session }); i >= 0 {
			round.Disputed = before.Rounds[i].Disputed
		}
		state.Rounds = append(state.Rounds, round)
	}
	for _, p := range sourced.Borrowed {
		for _, r := range a.Rounds(p.Year) {
			if r.Facts.GrandPrix == p.GrandPrix {
				state.NonCommercial = append(state.NonCommercial, wire.BorrowedFact{
					SessionKey: r.Session, GPName: r.Facts.Name, Part: p.Block, Source: p.Source, Licence: p.Licence,
				})
			}
		}
	}
	return json.Marshal(state) // in the form of a manifest, so that an equal state has equal bytes
}

func roundState(r *almanac.Round) wire.RoundState {
	state := wire.RoundState{SessionKey: r.Session, GPName: r.Facts.Name, Status: render.Status(r.State)}
	switch revisions := r.Record.Revisions; {
	case r.Result != nil && (len(revisions) > 1 || len(revisions) == 1 && revisions[0].Reason != ""):
		state.Result, state.Revision = wire.FactsRevised, r.Result.Revision
	case r.Result != nil:
		state.Result, state.Revision = wire.FactsVerified, max(1, r.Result.Revision)
	case r.Off(), r.State == almanac.Scheduled:
	case r.Source() != nil:
		state.Result = wire.FactsProvisional
	default:
		state.Result = wire.FactsAwaited
	}
	if p := r.Pick; p != nil {
		state.FrozenAt, state.PickBasis = wire.Instant(p.FrozenAt), string(p.Basis)
		if p.Basis == "" && p.GridKnown { // recorded before there were bases
			state.PickBasis = string(ledger.OnGrid)
		}
	}
	return state
}

// expected lists the seasons that are expected to change again, with the next instant.
func expected(a *almanac.Almanac) []snapshots.Expected {
	var all []snapshots.Expected
	for i := range a.Years {
		if at := a.NextChange(a.Years[i].Year); !at.IsZero() {
			all = append(all, snapshots.Expected{Year: a.Years[i].Year, At: at.UTC()})
		}
	}
	return all
}
