// Package provenance describes where the facts in use come from: since when a result is unchanged,
// how each source is doing, and which parts of rounds are disputed or borrowed. Package ingest
// reports it; the builder decides by it and publishes it.
package provenance

import (
	"cmp"
	"time"

	"gridcast/builder/season"
)

// Stability says since when the archive has a result unchanged.
type Stability struct {
	Since     time.Time // zero: unknown
	From      string    // the source and its revision, for people
	Doubted   bool      // the standings of the source differ from the result: verification waits twice as long
	Contested bool      // a change of the result waits for a person, or another source disagrees
}

// Summary describes the sources and the disputed parts. It is published with every version, and
// it does not change while all sources answer and none has news.
type Summary struct {
	Sources  []SourceSummary
	Disputed []RoundPart // a source disagrees with the facts in use
	Borrowed []RoundPart // from a source with non-commercial terms
}

// SourceSummary describes one source.
type SourceSummary struct {
	Name          string
	Licence       string
	NonCommercial bool
	CheckOnly     bool // compared with the others, never published
	Revision      string
	Changed       time.Time // last new facts
	Silent        bool      // without a useful answer for so long that /status says so
	Answered      time.Time // last useful answer of a silent source; zero: never
	Waiting       int       // changes that wait for a person
	Disagreements int       // parts of rounds that differ from the facts in use
}

// RoundPart names a part of a round and the source of a statement about it.
type RoundPart struct {
	Year      int
	GrandPrix season.GrandPrixID
	Block     string
	Source    string
	Licence   string
}

// Compare orders parts by season, Grand Prix, part and source.
func (p RoundPart) Compare(other RoundPart) int {
	return cmp.Or(cmp.Compare(p.Year, other.Year), cmp.Compare(p.GrandPrix, other.GrandPrix), cmp.Compare(p.Block, other.Block), cmp.Compare(p.Source, other.Source))
}
