package resident

import "gridcast/snapshots"

// Targets returns the content of every target that Find knows.
func (s *Set) Targets() map[string]*snapshots.Body {
	of := make(map[*Page]*snapshots.Body, len(s.variants))
	for variant, page := range s.variants {
		of[page], _ = s.version.Body(variant.Path())
	}
	bodies := make(map[string]*snapshots.Body, len(s.targets))
	for target, page := range s.targets {
		bodies[target] = of[page]
	}
	return bodies
}

// Slim gives up forms of a page, as Load does for seasons that are over.
func (p *Page) Slim(kept *Identities) { p.slim(kept) }

// Identities are the kept identities of lean pages.
type Identities = identities

const MaxIdentities = maxIdentities

func NewIdentities() *Identities { return &identities{most: maxIdentities} }

func (s *Set) Identities() *Identities { return s.plain }

// Keep keeps a response that a request made for a page.
func (k *Identities) Keep(p *Page, made *Response) *Response { return k.keep(p, made) }

// Size returns the size of the kept identities in bytes, as the pages have them.
func (k *Identities) Size() int {
	size := 0
	for _, p := range k.pages {
		size += len(p.plain.Load().Body)
	}
	return size
}

// SetOf returns a set of a version without its pages.
func SetOf(v *snapshots.Version) *Set { return &Set{version: v} }
