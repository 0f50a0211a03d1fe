//go:build linux

package main

import (
	"iter"
	"slices"
	"strings"
	"time"

	"gridcast/schemas/catalog"
	"gridcast/snapshots"
)

// benchCase is one kind of load.
type benchCase struct {
	name        string
	connections int
	servers     []string // those that it says something about
	target      string
	header      []string
	body        []byte // what a 200 carries; nil: no other server can answer it
	gzip        bool
	keys        int // keys used in turn; 0: one, in every request the same
	tls         bool
	short       bool    // a new connection for each request
	perSecond   float64 // requests that are due, in an open loop; 0: a closed one
	forgetful   bool    // whose client keeps no session ticket of the connection before
}

// loads returns what can make the load of the case. Over TLS wrk takes up the session of the
// connection before, and cannot do otherwise.
func (c *benchCase) loads() []string {
	switch {
	case c.perSecond > 0:
		return []string{openLoad}
	case c.forgetful:
		return []string{loadgenLoad}
	case c.short:
		return []string{wrkLoad}
	}
	return []string{wrkLoad, loadgenLoad}
}

// lasts returns how long a run of the case is, where one of the others is so long. Where sessions are
// taken up again, the first connections of a run have none yet: in a run of a second they are more than
// one in a hundred, and p99 would be theirs.
func (c *benchCase) lasts(usual time.Duration) time.Duration {
	if c.tls && c.short && !c.forgetful {
		return 8 * usual
	}
	return usual
}

// usual is the load of most cases. The case of a crowd is measured where it may differ.
const (
	usual = 64
	crowd = 256
)

// compared says which other case of the same server a case is held against, where it is not
// other servers in the same case.
var compared = map[string]string{
	nextRaceCase: nextRaceSized, notModifiedCase: notModifiedSized, manyKeysCase: oneKeyCase,
}

// The names of the cases that are looked up.
const (
	smallCase        = "2 KB"
	largeCase        = "12 KB"
	nextRaceCase     = "next-race"
	nextRaceSized    = "next-race-sized"
	notModifiedCase  = "304"
	notModifiedSized = "304-sized"
	oneKeyCase       = "2 KB, 1 key"
	manyKeysCase     = "2 KB, 100000 keys"
	shortCase        = "2 KB, a new connection each"
	smallTLSCase     = "2 KB, TLS"
	middleTLSCase    = "6 KB, TLS"
	shortTLSCase     = "2 KB, TLS, a new connection each"
	fullTLSCase      = "2 KB, TLS, a new session each"
	gzipSuffix       = ", gzip"
)

// comparisons returns the cases whose name begins with a text: those together that are compared
// with one another.
func (f *fixture) comparisons(only string) [][]benchCase {
	var (
		everyone = []string{gridcastName, fasthttpName, epollName, nginxName}
		limited  = slices.Concat(everyone, []string{laneOffName, leaseName, strictName})
		encoded  = []string{gridcastName, fasthttpName, nginxName}
		alone    = []string{gridcastName}
		mapped   = []string{gridcastName, nginxName}
		gzip     = []string{"Accept-Encoding: gzip"}
		served   = []string{gridcastName, laneOffName, nginxName}
		last     = []string{"Connection: close"}
	)
	small, middle, large := f.nearest(2<<10), f.nearest(6<<10), f.nearest(12<<10)
	likeNextRace := f.responses.nearest(len(f.responses.nextRace))
	likeNotModified := f.responses.nearest(len(f.responses.notModified))
	all := [][]benchCase{ //nolint:prealloc // a handful
		{{name: smallCase, connections: usual, servers: limited, target: target(small), body: small.Identity}},
		{{name: smallCase, connections: crowd, servers: everyone, target: target(small), body: small.Identity}},
		{{name: largeCase, connections: usual, servers: everyone, target: target(large), body: large.Identity}},
		{{name: largeCase, connections: crowd, servers: everyone, target: target(large), body: large.Identity}},
		{{name: smallCase + " gzip", connections: usual, servers: encoded, target: target(small), header: gzip, body: small.Encoded[snapshots.GZ], gzip: true}},
		{{name: largeCase + " gzip", connections: usual, servers: encoded, target: target(large), header: gzip, body: large.Encoded[snapshots.GZ], gzip: true}},
		{
			{name: nextRaceCase, connections: usual, servers: alone, target: nextRaceTarget},
			{name: nextRaceSized, connections: usual, servers: alone, target: target(likeNextRace), body: likeNextRace.Identity},
		},
		{
			{name: notModifiedCase, connections: usual, servers: alone, target: target(small), header: []string{matches(small)}},
			{name: notModifiedSized, connections: usual, servers: alone, target: target(likeNotModified), body: likeNotModified.Identity},
		},
		{
			{name: manyKeysCase, connections: usual, servers: mapped, target: target(small), body: small.Identity, keys: manyKeys},
			{name: oneKeyCase, connections: usual, servers: mapped, target: target(small), body: small.Identity, keys: 1},
		},
	}
	for _, c := range []benchCase{
		{name: shortCase, servers: served, header: last, short: true},
		{name: smallTLSCase, servers: served, tls: true},
		{name: smallTLSCase + gzipSuffix, servers: mapped, header: gzip, tls: true, gzip: true},
		{name: middleTLSCase, servers: served, tls: true},
		{name: middleTLSCase + gzipSuffix, servers: mapped, header: gzip, tls: true, gzip: true},
		{name: shortTLSCase, servers: served, header: last, tls: true, short: true},
		{name: fullTLSCase, servers: served, header: last, tls: true, short: true, forgetful: true},
	} {
		body := small
		if strings.HasPrefix(c.name, middleTLSCase) {
			body = middle
		}
		c.connections, c.target, c.body = usual, target(body), body.Identity
		if c.gzip {
			c.body = body.Encoded[snapshots.GZ]
		}
		all = append(all, []benchCase{c})
	}
	for i := range all {
		all[i] = slices.DeleteFunc(all[i], func(c benchCase) bool { return !strings.HasPrefix(c.name, only) })
	}
	return slices.DeleteFunc(all, func(cases []benchCase) bool { return len(cases) == 0 })
}

// small is the case that most others are variations of.
func (f *fixture) small() benchCase { return f.comparisons(smallCase)[0][0] }

const nextRaceTarget = catalog.BasePath + "/next-race"

// bodies yields what every server can answer as it is stored: the variants with a tag.
func (f *fixture) bodies() iter.Seq[*snapshots.Body] {
	return func(yield func(*snapshots.Body) bool) {
		for path, body := range f.version.All() {
			_, err := catalog.ParsePath(path) // feeds have targets of their own
			if err == nil && body.Entry.ETag != "" && !yield(body) {
				return
			}
		}
	}
}

// nearest returns the variant whose body is nearest to a size.
func (f *fixture) nearest(size int) *snapshots.Body {
	var best *snapshots.Body
	for body := range f.bodies() {
		if best == nil || distance(len(body.Identity), size) < distance(len(best.Identity), size) {
			best = body
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// target returns a request target that selects a body.
func target(b *snapshots.Body) string {
	variant, err := catalog.ParsePath(b.Entry.Path)
	if err != nil {
		panic("BUG: a published path: " + err.Error())
	}
	return variant.Target()
}

// matches is the field of a request by a client that has the body already.
func matches(b *snapshots.Body) string { return `If-None-Match: "` + b.Entry.ETag + `"` }
