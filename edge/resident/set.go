// Package resident holds a published version in memory as finished responses, so that a
// request costs one look-up: from the request target to a [Page], from the page to a
// [Response]. A [Set] is made whole or not at all, never changes, and is swapped as one value,
// so that no response can be of two versions.
package resident

import (
	"fmt"

	"gridcast/edge/negotiate"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// Version is a complete version whose hashes have been checked.
type Version interface {
	// Manifest describes it. It is not changed any more.
	Manifest() *snapshots.Manifest
	// Body returns the stored bytes of an entry: encoding is "" for the identity or one of
	// the names in Entry.Encodings. The caller keeps them and does not change them.
	Body(entry *snapshots.Entry, encoding string) ([]byte, error)
}

// Set is one version, ready to be served. It is safe for concurrent use.
type Set struct {
	manifest  *snapshots.Manifest
	known     catalog.Known
	countdown *wire.Countdown
	variants  map[catalog.Variant]*Page
	targets   map[string]*Page
}

// Load makes the responses of a version. A version that lacks a variant, or whose countdown
// can not be read, is an error.
func Load(v Version) (*Set, error) {
	m := v.Manifest()
	s := &Set{
		manifest: m,
		known:    catalog.Known{Seasons: m.Seasons, Current: m.CurrentSeason},
		variants: make(map[catalog.Variant]*Page, len(m.Entries)),
		targets:  make(map[string]*Page, 8*len(m.Entries)),
	}
	for i := range m.Entries {
		if err := s.add(v, &m.Entries[i]); err != nil {
			return nil, fmt.Errorf("version %d: %w", m.Version, err)
		}
	}
	for _, variant := range catalog.All(s.known, nil) {
		if s.variants[variant] == nil {
			return nil, fmt.Errorf("version %d: %s is missing", m.Version, variant.Path())
		}
	}
	return s, nil
}

// add makes the page of an entry and finds the targets that select it.
func (s *Set) add(v Version, entry *snapshots.Entry) error {
	variant, err := catalog.ParsePath(entry.Path)
	if err != nil {
		return err
	}
	index := endpointIndex(variant.Endpoint)
	endpoint := &catalog.Endpoints[index]
	var page *Page
	if endpoint.Computed {
		page = &Page{Endpoint: index, Computed: true}
		err = s.loadCountdown(v, entry)
	} else {
		page, err = s.load(v, entry, index, variant)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Path, err)
	}
	s.variants[variant] = page
	for _, query := range queries(variant) {
		// Which of them mean this variant is for the catalog to say, not for us.
		if selected, err := endpoint.Select([]byte(query), s.known); err != nil || selected != variant {
			continue
		}
		if query != "" {
			query = "?" + query
		}
		path := catalog.BasePath + endpoint.Path
		s.targets[path+query] = page
		s.targets[path+"/"+query] = page
	}
	return nil
}

func (s *Set) load(v Version, entry *snapshots.Entry, endpoint int, variant catalog.Variant) (*Page, error) {
	if entry.ETag == "" {
		return nil, fmt.Errorf("no etag")
	}
	var bodies [negotiate.Encodings][]byte
	for e := range negotiate.Encodings {
		if _, stored := entry.Encodings[e.Suffix()]; !stored && e != negotiate.Identity {
			continue
		}
		body, err := v.Body(entry, e.Suffix())
		if err != nil {
			return nil, err
		}
		bodies[e] = body
	}
	fields := movingShelf
	if year := season(variant); year != 0 && year < s.known.Current {
		fields = seasonOverShelf
	}
	return newPage(endpoint, entry.ETag, bodies, fields), nil
}

func (s *Set) loadCountdown(v Version, entry *snapshots.Entry) error {
	data, err := v.Body(entry, "")
	if err != nil {
		return err
	}
	s.countdown, err = wire.ParseCountdown(data)
	return err
}

// Manifest describes the version. It must not be changed.
func (s *Set) Manifest() *snapshots.Manifest { return s.manifest }

// Countdown is the content of the computed endpoint.
func (s *Set) Countdown() *wire.Countdown { return s.countdown }

// Known is what the version knows.
func (s *Set) Known() catalog.Known { return s.known }

// Find returns the page of a request target in one of its common spellings, or nil: then
// [Set.Page] decides. It does not allocate.
func (s *Set) Find(target []byte) *Page { return s.targets[string(target)] }

// Page returns the page of a variant that the catalog selected. A session key without a pick
// has the page of the empty list.
func (s *Set) Page(variant catalog.Variant) *Page {
	if page := s.variants[variant]; page != nil {
		return page
	}
	return s.variants[catalog.Variant{Endpoint: variant.Endpoint, SessionKey: catalog.NoSession}]
}

// season returns the year that a variant is about, 0 if it is about none or all.
func season(v catalog.Variant) int {
	if v.SessionKey > 0 {
		return int(v.SessionKey / catalog.KeysPerSeason)
	}
	return v.Year
}

func endpointIndex(name catalog.Name) int {
	for i := range catalog.Endpoints {
		if catalog.Endpoints[i].Name == name {
			return i
		}
	}
	panic("BUG: the catalog parsed the path of an endpoint it does not have: " + name)
}
