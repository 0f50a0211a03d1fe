// Package widget holds the releases of the widget for other people's pages: custom elements in one ES module without
// dependencies. A released file never changes, because pages pin its hash; a new version is a new file.
//
// gridcast.js is the source of the newest file. A test makes the file from it: see TestReleaseIsMadeFromItsSource.
package widget

import (
	_ "embed"

	"gridcast/edge"
)

var (
	//go:embed gridcast-1.3.1.js
	v131 []byte
	//go:embed gridcast-1.3.0.js
	v130 []byte
)

// Releases returns every release, the newest first.
func Releases() []edge.Widget {
	return []edge.Widget{{Version: "1.3.1", Module: v131}, {Version: "1.3.0", Module: v130}}
}
