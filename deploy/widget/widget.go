// Package widget holds the releases of the widget for other people's pages, and of its charts: custom elements in ES
// modules without dependencies. A released file never changes, because pages pin its hash; a new version is a new file.
//
// The charts have a module of their own, because most pages show only the next race: with the charts its module would
// have 23 KB instead of 13, and a new chart would be a new release of the countdown.
package widget

import (
	_ "embed"

	"gridcast/edge"
)

var (
	//go:embed gridcast-1.0.0.js
	v100 []byte
	//go:embed gridcast-1.1.0.js
	v110 []byte
	//go:embed gridcast-1.2.0.js
	v120 []byte
	//go:embed charts-1.0.0.js
	charts100 []byte
)

// Releases returns every release, the newest first, and those of the charts after those of the widget.
func Releases() []edge.Widget {
	return []edge.Widget{
		{Version: "1.2.0", Module: v120},
		{Version: "1.1.0", Module: v110},
		{Version: "1.0.0", Module: v100},
		{Version: "charts-1.0.0", Module: charts100},
	}
}
