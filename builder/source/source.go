// Package source is how facts come by themselves: it asks upstreams, keeps what they said and
// since when, and hands it on as season values. A source never blocks another one, a build, or the
// start of the service; what it says is judged by package assemble before anybody uses it.
//
// Times are race time, so that a replayed season asks a replayed upstream; only the time limits of
// sockets are real.
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
	// Licence says whose facts these are and under which terms.
	Licence() Licence
	// Fetch asks for the facts of the seasons from and to, and those in between. Known are the
	// validators of the last payload, and its sum. An error is a *Fault.
	Fetch(ctx context.Context, now time.Time, from, to int, known Known) (Payload, error)
	// Read reads what Fetch packed. The error names the place.
	Read(packed []byte) (Document, error)
}

// Licence are the terms under which an upstream gives its facts.
type Licence struct {
	Name          string // CC BY 4.0
	Credit        string // whom to name
	NonCommercial bool   // only published where the operator has accepted the terms
}

// Known is the last payload that was fetched.
type Known struct {
	Validators
	SHA256 string // of its packed form, lower-case hex; empty if there is none
}

// Payload is what an upstream said, reduced to what it may speak of.
type Payload struct {
	NotModified bool // it is what was known; the rest is not set but for Validators
	Packed      []byte
	Revision    string // the upstream's name of this state, such as a commit
	Validators
}

// Document is a payload in our terms.
type Document struct {
	Source   string
	Revision string
	From, To int // the seasons it may speak of
	Facts    season.Facts
	// Sparse says that the facts lack what those of other upstreams have of the same: they are
	// there to be compared, and to fill what is missing.
	Sparse bool
	Notes  []string // what was left out and why, for people
}
