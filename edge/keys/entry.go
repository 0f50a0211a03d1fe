package keys

import (
	"math"
	"slices"
	"time"

	"gridcast/edge/limit"
)

// Entry is what the request path needs to know about a key. It is 128 bytes, so that it fills
// two neighbouring cache lines: what tells whether the key is accepted is in the first, what
// counts is in the second, which processors fetch along with it.
//
// An entry is immutable but for what it counts. When its record changes another one takes its
// place, and goes on with its Counter and its Usage.
type Entry struct {
	hash    Hash
	end     int64 // refused from this instant on: Unix seconds, never or always
	Counter limit.Counter
	Usage   *Usage

	PerMinute int
	Tier      int       // index into Tiers.Names
	origins   *[]string // nil: any
	window    limit.Window
	usage     Usage
}

// Ends of an entry that are no instant.
const (
	never  = math.MaxInt64
	always = math.MinInt64 // the key is revoked, or of no known tier
)

// newEntry returns an entry that is accepted, and goes on counting where the old one is, which
// may be nil.
func newEntry(r *Record, hash Hash, tier, perMinute int, source limit.Source, old *Entry) *Entry {
	e := &Entry{hash: hash, end: never, PerMinute: perMinute, Tier: tier}
	if !r.Expires.IsZero() {
		e.end = r.Expires.Unix()
	}
	if len(r.Origins) > 0 {
		origins := slices.Clone(r.Origins)
		e.origins = &origins
	}
	if old != nil && old.Counter != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
		return e
	}
	e.Usage = &e.usage
	// The hash is as good as random and the same on every edge.
	offset := limit.Offset(hash.prefix())
	if _, ok := source.(limit.Memory); ok {
		e.window = *limit.NewWindow(offset) // what the source would return, but at hand
		e.Counter = &e.window
	} else {
		e.Counter = source.Counter(e.id(), offset)
	}
	return e
}

// refusedEntry returns an entry that is never accepted. It keeps what the old one, which may be
// nil, has counted.
func refusedEntry(hash Hash, old *Entry) *Entry {
	e := &Entry{hash: hash, end: always}
	if old != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
	}
	return e
}

// id returns the name of the key in commands and logs.
func (e *Entry) id() string { return e.hash.String()[:idLen] }

// Accepts reports whether the key is neither revoked nor expired at now, which is real time.
func (e *Entry) Accepts(now time.Time) bool { return now.Unix() < e.end }

// Allows reports whether a request with this Origin header may use the key. Without an Origin
// it may: the header is a browser's, and protects no secret.
func (e *Entry) Allows(origin []byte) bool {
	if e.origins == nil || len(origin) == 0 {
		return true
	}
	for _, allowed := range *e.origins {
		if string(origin) == allowed {
			return true
		}
	}
	return false
}
