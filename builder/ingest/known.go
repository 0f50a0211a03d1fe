package ingest

import (
	"maps"
	"slices"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/provenance"
	"gridcast/builder/season"
)

// known is the state after the last Poll, Apply or Load. It is immutable, so that a build reads it
// without waiting for a source that is being polled.
type known struct {
	archive   string // SHA-256 of the archive in use
	states    []PollState
	licences  map[string]PollState // of every source that the store knows
	contested map[assemble.BlockID]bool
	doubted   map[assemble.BlockID]bool
	origins   map[assemble.BlockID]Origin
}

// setKnown replaces the known state. The caller holds mu.
func (g *Ingest) setKnown(states []PollState) {
	next := &known{archive: g.archive, states: states, licences: make(map[string]PollState), contested: maps.Clone(g.contested), doubted: maps.Clone(g.doubted)}
	if before := g.known.Load(); before != nil {
		maps.Copy(next.licences, before.licences)
	}
	for _, state := range states {
		next.licences[state.Source] = state
	}
	if g.log != nil {
		next.origins = maps.Clone(g.log.origins)
	}
	g.known.Store(next)
}

// currentKnown returns the known state, which is empty before the first Poll, Apply or Load.
func (g *Ingest) currentKnown() *known {
	if v := g.known.Load(); v != nil {
		return v
	}
	return &known{}
}

// PollStates returns the states of the sources after the last Poll, Apply or Load.
func (g *Ingest) PollStates() []PollState { return slices.Clone(g.currentKnown().states) }

// Stability returns since when an archive, named by its sum, has the result of a round unchanged.
// If another scheduler has replaced the archive since the last poll, the result counts as contested,
// because nothing is known of its changes yet.
func (g *Ingest) Stability(archive string, year int, gp season.GrandPrixID) provenance.Stability {
	v := g.currentKnown()
	if v.archive != archive {
		return provenance.Stability{Contested: true}
	}
	stable := provenance.Stability{Doubted: v.doubted[assemble.BlockID{Year: year, GrandPrix: gp, Block: assemble.Result}]}
	for _, block := range []assemble.Block{assemble.Result, assemble.Sprint} { // a verification covers both
		id := assemble.BlockID{Year: year, GrandPrix: gp, Block: block}
		stable.Contested = stable.Contested || v.contested[id]
		if origin, ok := v.origins[id]; ok && origin.At.After(stable.Since) {
			stable.Since, stable.From = origin.At, "of "+origin.Source+" "+short(origin.Revision)
		}
	}
	return stable
}

// Arrived returns the instant at which the archive got the present qualifying of a round, zero for a
// qualifying of the first archive.
func (g *Ingest) Arrived(year int, gp season.GrandPrixID) time.Time {
	return g.currentKnown().origins[assemble.BlockID{Year: year, GrandPrix: gp, Block: assemble.Qualifying}].At
}

// silentAfter is the shortest outage of a source that /status shows.
const silentAfter = 30 * time.Minute

// Provenance describes the sources after the last Poll, Apply or Load. It does not change while all
// sources answer and none has news.
func (g *Ingest) Provenance(now time.Time) provenance.Summary {
	v := g.currentKnown()
	var summary provenance.Summary
	for _, source := range g.Sources {
		i := slices.IndexFunc(v.states, func(state PollState) bool { return state.Source == source.Name() })
		if i < 0 {
			continue
		}
		state := &v.states[i]
		public := provenance.SourceSummary{
			Name: state.Source, Licence: source.Licence().Name, NonCommercial: source.Licence().NonCommercial, CheckOnly: source.CheckOnly,
			Revision: short(state.Revision), Changed: state.Changed, Waiting: len(state.Held), Disagreements: len(state.Disputed),
		}
		if state.Failures > 0 && now.Sub(state.Answered) > silentAfter {
			public.Silent, public.Answered = true, state.Answered
		}
		summary.Sources = append(summary.Sources, public)
		for _, c := range state.Disputed {
			summary.Disputed = append(summary.Disputed, provenance.RoundPart{Year: c.Year, GrandPrix: c.GrandPrix, Block: string(c.Block), Source: c.Source})
		}
	}
	for at, origin := range v.origins {
		if from := v.licences[origin.Source]; from.NonCommercial {
			summary.Borrowed = append(summary.Borrowed, provenance.RoundPart{
				Year: at.Year, GrandPrix: at.GrandPrix, Block: string(at.Block), Source: origin.Source, Licence: from.Licence,
			})
		}
	}
	slices.SortFunc(summary.Borrowed, provenance.RoundPart.Compare)
	return summary
}
