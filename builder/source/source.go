// Package source fetches facts from upstreams and converts them into season values. A source never
// blocks another one, a build, or the start of the service. Package assemble judges every document
// before it is used.
//
// Times are race time, so that a replayed season polls a replayed upstream. Only the time limits of
// sockets are real time.
package source

import (
	"context"
	"time"

	"gridcast/builder/season"
)

// Upstream is one upstream in its own format. Implementations are safe for concurrent use.
type Upstream interface {
	// Name is short and lower case: a label of metrics, part of keys of the store.
	Name() string
	// Licence returns the terms of the facts.
	Licence() Licence
	// Fetch fetches the facts of the seasons from and to, inclusive. known describes the last
	// payload, so that the upstream can answer that nothing is new. An error is a *Fault.
	Fetch(ctx context.Context, now time.Time, from, to int, known Known) (Payload, error)
	// Read reads the payload that Fetch packed. The error names the place of the fault.
	Read(packed []byte) (Document, error)
}

// Licence are the terms under which an upstream gives its facts.
type Licence struct {
	Name          string // CC BY 4.0
	NonCommercial bool   // published only if the operator has accepted the terms
}

// Known describes the last fetched payload.
type Known struct {
	Validators
	SHA256 string // of its packed form, lower-case hex; empty if there is none
}

// Payload is the answer of an upstream, reduced to the requested seasons.
type Payload struct {
	NotModified bool // nothing is new: only Validators is set
	Packed      []byte
	Revision    string // the upstream's name of this payload, such as a commit
	Validators
}

// Document is a payload as season values.
type Document struct {
	Source   string
	Revision string
	// Committed is the upstream's time of the revision, zero if it names none.
	Committed time.Time
	From, To  int // the requested seasons, inclusive
	Facts     season.Facts
	// Sparse facts have fewer details than those of the source of record. They are compared with it
	// and fill its gaps.
	Sparse bool
	// Sheets holds the tables with the columns that facts do not keep, as far as the upstream has them.
	Sheets []season.Sheet
	Born   map[season.DriverID]string // birth dates, as YYYY-MM-DD
	Unread []season.Unread            // parts with a value that cannot be read
	Notes  []string                   // values that were left out and why, for people
}
