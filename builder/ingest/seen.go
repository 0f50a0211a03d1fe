package ingest

import (
	"maps"
	"slices"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/provenance"
	"gridcast/builder/season"
)

// seen is what the last Run or Load left behind. It is immutable: a build that goes by it never
// waits for a source that is being asked.
type seen struct {
	archive   string // SHA-256 of the one in use then
	states    []State
	licences  map[string]State // of every source that the store was ever told of
	contested map[assemble.BlockID]bool
	origins   map[assemble.BlockID]Origin
}

// show replaces what is seen. The caller holds mu.
func (g *Ingest) show(states []State) {
	next := &seen{archive: g.archive, states: states, licences: make(map[string]State), contested: maps.Clone(g.contested)}
	if before := g.seen.Load(); before != nil {
		maps.Copy(next.licences, before.licences)
	}
	for _, state := range states {
		next.licences[state.Source] = state
	}
	if g.log != nil {
		next.origins = maps.Clone(g.log.since)
	}
	g.seen.Store(next)
}

// look returns what was seen; nothing before the first Run or Load.
func (g *Ingest) look() *seen {
	if s := g.seen.Load(); s != nil {
		return s
	}
	return &seen{}
}

// States is what was known of the sources at the end of the last Run or Load.
func (g *Ingest) States() []State { return slices.Clone(g.look().states) }

// Stability returns since when an archive, by its sum, has the result of a round as it is, for the rule by
// which results verify themselves. It goes by what the last Run saw: of an archive that another
// scheduler has taken into use meanwhile nothing is known yet, which is to wait.
func (g *Ingest) Stability(archive string, year int, gp season.GrandPrixID) provenance.Stability {
	s := g.look()
	if s.archive != archive {
		return provenance.Stability{Contested: true}
	}
	// A verification covers the weekend, its sprint included.
	contested := func(b assemble.Block) bool { return s.contested[assemble.BlockID{Year: year, GrandPrix: gp, Block: b}] }
	stood := provenance.Stability{Contested: contested(assemble.Result) || contested(assemble.Sprint)}
	for _, block := range []assemble.Block{assemble.Result, assemble.Sprint} {
		if origin, ok := s.origins[assemble.BlockID{Year: year, GrandPrix: gp, Block: block}]; ok && origin.At.After(stood.Since) {
			stood.Since, stood.From = origin.At, "of "+origin.Source+" "+short(origin.Revision)
		}
	}
	return stood
}

// Arrived returns when the archive got the qualifying of a round as it is, for the rule by which a
// pick is made on it; zero for what the base archive had. It goes by what the last Run or Load saw.
func (g *Ingest) Arrived(year int, gp season.GrandPrixID) time.Time {
	return g.look().origins[assemble.BlockID{Year: year, GrandPrix: gp, Block: assemble.Qualifying}].At
}

// silence is how long a source may fail before everybody is told: shorter outages are no news.
const silence = 30 * time.Minute

// Provenance is what everybody may know of the sources, as of the last Run. While a source answers and
// says nothing new, it does not change.
func (g *Ingest) Provenance(now time.Time) provenance.Summary {
	s := g.look()
	var sourced provenance.Summary
	for _, source := range g.Sources {
		i := slices.IndexFunc(s.states, func(state State) bool { return state.Source == source.Name() })
		if i < 0 {
			continue
		}
		state := &s.states[i]
		public := provenance.Source{
			Name: state.Source, Licence: source.Licence().Name, NonCommercial: source.Licence().NonCommercial, CheckOnly: source.CheckOnly,
			Revision: short(state.Revision), Changed: state.Changed, Waiting: len(state.Waiting), Disagreements: len(state.Disputed),
		}
		if state.Failures > 0 && now.Sub(state.Answered) > silence {
			public.Silent, public.Answered = true, state.Answered
		}
		sourced.Sources = append(sourced.Sources, public)
		for _, c := range state.Disputed {
			sourced.Disputed = append(sourced.Disputed, provenance.RoundPart{Year: c.Year, GrandPrix: c.GrandPrix, Block: string(c.Block), Source: c.Source})
		}
	}
	for at, origin := range s.origins {
		if from := s.licences[origin.Source]; from.NonCommercial {
			sourced.Borrowed = append(sourced.Borrowed, provenance.RoundPart{
				Year: at.Year, GrandPrix: at.GrandPrix, Block: string(at.Block), Source: origin.Source, Licence: from.Licence,
			})
		}
	}
	slices.SortFunc(sourced.Borrowed, provenance.RoundPart.Compare)
	return sourced
}
