// Package resident holds a published version in memory as finished responses, so that a
// request costs one look-up: from the request target to a [Page], from the page to a
// [Response]. A [Set] is made whole or not at all, never changes, and is swapped as one value,
// so that no response mixes two versions.
package resident

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/clock"
)

// Set is one version, ready to serve. It is safe for concurrent use.
type Set struct {
	version   *snapshots.Version
	known     catalog.Known
	countdown *wire.Countdown
	clock     clock.Clock
	facts     *wire.FactsState
	variants  map[catalog.Variant]*Page
	targets   map[string]*Page
	feeds     map[string]*Page // and portraits, by request path
	plain     *identities      // shared with the sets before and after
}

// Load makes the responses of a version. It fails if a version lacks a variant of an endpoint that is not
// additive, or if its countdown is unreadable. It leaves out a body with a path unknown to the catalog,
// because that endpoint is newer than this edge. previous may be nil.
//
// Cache, by the digest of the body: a page of previous stays, because making all pages takes 3 ms of
// processor time and 3,700 allocations beside the requests, and those of a new result .2 ms.
func Load(v *snapshots.Version, previous *Set) (*Set, error) {
	m := &v.Manifest
	s := &Set{
		version:  v,
		known:    catalog.Known{Seasons: m.Seasons, Current: m.CurrentSeason, Past: m.DefaultYears},
		variants: map[catalog.Variant]*Page{},
		feeds:    map[string]*Page{},
		plain:    &identities{most: maxIdentities},
	}
	var err error
	if s.clock, err = clock.Parse(m.Clock); err != nil {
		return nil, fmt.Errorf("version %d: %w", m.Version, err)
	}
	if s.simulated() {
		s.plain.most = maxSimulated
	}
	if previous != nil {
		s.plain = previous.plain
		s.plain.mu.Lock()
		s.plain.forget()
		s.plain.mu.Unlock()
	}
	same := previous.selects(v, s.known)
	if same { // only the targets of other pages must be found again
		s.targets = maps.Clone(previous.targets)
	} else {
		s.targets = map[string]*Page{}
	}
	if m.State != nil {
		// The state is for people, so a form that is newer than this edge stops nothing.
		if facts := new(wire.FactsState); json.Unmarshal(m.State, facts) == nil {
			s.facts = facts
		}
	}
	for path, body := range v.All() {
		if strings.HasPrefix(path, catalog.Portraits) {
			if err := s.addUnkeyed("/"+path, body, portraitHeaders, previous); err != nil {
				return nil, fmt.Errorf("version %d: %s: %w", m.Version, path, err)
			}
			continue
		}
		if err := s.add(path, body, previous, same); err != nil {
			return nil, fmt.Errorf("version %d: %w", m.Version, err)
		}
	}
	for path, headers := range feedHeaders {
		body, ok := v.Body(path.Stored)
		if !ok {
			continue // from an older builder
		}
		if err := s.addUnkeyed(path.Path, body, headers, previous); err != nil {
			return nil, fmt.Errorf("version %d: %s: %w", m.Version, path.Stored, err)
		}
	}
	for _, variant := range catalog.All(s.known, nil) {
		if _, endpoint := row(variant); s.variants[variant] == nil && !endpoint.Additive {
			return nil, fmt.Errorf("version %d: %s is missing", m.Version, variant.Path())
		}
	}
	return s, nil
}

// addUnkeyed makes the page of a body that is served without a key at a path, or keeps the page of previous.
func (s *Set) addUnkeyed(path string, body *snapshots.Body, fields unkeyed, previous *Set) error {
	headers := fields.real
	if s.simulated() {
		headers = fields.simulated
	}
	page := previous.Feed(path)
	if page == nil || !page.of(body) {
		page = &Page{}
		if err := page.fill(body, headers); err != nil {
			return err
		}
	}
	s.feeds[path] = page
	return nil
}

// of reports whether the page is made from a body of the same digest, tag and instant, and in the same forms.
func (p *Page) of(body *snapshots.Body) bool {
	is, was := &body.Entry, &p.body.Entry
	return is.SHA256 == was.SHA256 && is.ETag == was.ETag && is.GeneratedAt.Equal(was.GeneratedAt) && (body.Identity == nil) == (p.body.Identity == nil)
}

// selects reports whether each target has the same meaning in a version and in this one. The meaning
// depends only on the known seasons and sessions.
func (s *Set) selects(v *snapshots.Version, known catalog.Known) bool {
	if s == nil || s.known.Current != known.Current || !maps.Equal(s.known.Past, known.Past) || !slices.Equal(s.known.Seasons, known.Seasons) {
		return false
	}
	for path := range s.version.All() {
		if _, has := v.Body(path); !has {
			return false // its targets have no meaning any more
		}
	}
	return true
}

// add makes the page of a body and finds the targets that select it. same: the set has the targets of previous.
func (s *Set) add(path string, body *snapshots.Body, previous *Set, same bool) error {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return nil //nolint:nilerr // an endpoint that came after this edge
	}
	index, endpoint := row(variant)
	page := &Page{Endpoint: index}
	if endpoint.Computed {
		page.Countdown, err = wire.ParseCountdown(body.Identity)
		s.countdown = page.Countdown
	} else if kept := previous.page(variant, body, s.headers(variant)); kept != nil {
		page = kept
	} else if err = page.fill(body, s.headers(variant)); err == nil && (over(&s.version.Manifest, variant) || body.Identity == nil) {
		page.slim(s.plain)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.variants[variant] = page
	if same && page == previous.variants[variant] {
		return nil
	}
	given := variant.Query()
	if variant.SessionKey > 0 {
		given = append(given, fmt.Sprintf("year=%d", variant.Season()))
	}
	for _, query := range arrangements(given) {
		// The catalog decides which of these plain spellings mean this variant.
		if selected, err := endpoint.Select([]byte(query), s.known); err != nil || selected != variant {
			continue
		}
		if query != "" {
			query = "?" + query
		}
		s.targets[catalog.BasePath+endpoint.Path+query] = page
		s.targets[catalog.BasePath+endpoint.Path+"/"+query] = page
	}
	return nil
}

// page returns the page of a variant if it has the same source, nil otherwise.
func (s *Set) page(variant catalog.Variant, body *snapshots.Body, headers *headerSet) *Page {
	if s == nil {
		return nil
	}
	if page := s.variants[variant]; page != nil && page.of(body) && page.headers == headers {
		return page
	}
	return nil
}

// headers returns the fields of the variant with its caching lifetime, which is longer
// only for a season that is over and without an expected change, and always short for a passing endpoint.
func (s *Set) headers(v catalog.Variant) *headerSet {
	_, endpoint := row(v)
	switch {
	case !endpoint.Deprecated.IsZero():
		more := []Field{
			NewField("Deprecation", fmt.Sprintf("@%d", endpoint.Deprecated.Unix())), NewField("Sunset", endpoint.Sunset.UTC().Format(http.TimeFormat)),
		}
		if s.simulated() {
			more = append(more, Simulated)
		}
		return newHeaderSet(JSON, passing, more...)
	case s.simulated():
		return sandboxHeaders
	case endpoint.Passing:
		return passingHeaders
	case over(&s.version.Manifest, v):
		return seasonOverHeaders
	}
	return movingHeaders
}

// Lean reports whether a set needs a body as gzip and brotli alone: that of a season that is over.
func Lean(m *snapshots.Manifest, path string) bool {
	v, err := catalog.ParsePath(path)
	return err == nil && over(m, v)
}

// LeanSandbox is Lean for a sandbox, which has few clients: it reports every body of a client with a key.
func LeanSandbox(_ *snapshots.Manifest, path string) bool {
	_, err := catalog.ParsePath(path)
	return err == nil
}

// over reports whether the season of a variant is over and no change of it is expected.
func over(m *snapshots.Manifest, v catalog.Variant) bool {
	year := v.Season()
	return year != 0 && year < m.CurrentSeason &&
		!slices.ContainsFunc(m.Expected, func(e snapshots.Expected) bool { return e.Year == year })
}

// Version returns the version behind the responses.
func (s *Set) Version() *snapshots.Version { return s.version }

// Countdown returns the content of the computed endpoint.
func (s *Set) Countdown() *wire.Countdown { return s.countdown }

// Clock returns the race clock of a simulated version, and real time of any other.
func (s *Set) Clock() clock.Clock { return s.clock }

// simulated reports whether the set is of a sandbox.
func (s *Set) simulated() bool { return !s.clock.IsSystem() }

// Facts returns the builder's report on the facts behind the version; nil if there is none.
func (s *Set) Facts() *wire.FactsState { return s.facts }

// Known returns the seasons and sessions of the version.
func (s *Set) Known() catalog.Known { return s.known }

// row returns the index of a variant's endpoint in the catalog.
func row(v catalog.Variant) (int, *catalog.Endpoint) {
	index, ok := catalog.Lookup("/" + string(v.Endpoint))
	if !ok {
		panic("BUG: the catalog parsed the path of an endpoint it does not have: " + v.Endpoint)
	}
	return index, &catalog.Endpoints[index]
}

// arrangements returns every subset of the parameters in every order, joined by "&".
func arrangements(given []string) []string {
	all := []string{""}
	for i, first := range given {
		for _, rest := range arrangements(slices.Concat(given[:i], given[i+1:])) {
			if rest == "" {
				all = append(all, first)
			} else {
				all = append(all, first+"&"+rest)
			}
		}
	}
	return all
}
