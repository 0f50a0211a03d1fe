package resident

import "gridcast/snapshots"

// Targets is the content behind every target that Find knows.
func (s *Set) Targets() map[string]*snapshots.Body {
	bodies := make(map[string]*snapshots.Body, len(s.targets))
	for target, page := range s.targets {
		bodies[target] = s.variantOf(page)
	}
	return bodies
}

func (s *Set) variantOf(page *Page) *snapshots.Body {
	for variant, p := range s.variants {
		if p == page {
			body, _ := s.version.Body(variant.Path())
			return body
		}
	}
	return nil
}
