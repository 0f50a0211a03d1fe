// Package frame is the shared look of every page for people: the colours, the type scale, and the header of
// the start page, the documentation, the status and the operator's console.
//
// A page of the API begins with the templates head and top, and adds its own style sheet after [Style]. The
// console has a header of its own, with the same classes, because it runs on another port.
package frame

import (
	_ "embed"
	"html/template"
)

var (
	//go:embed style.css
	style string
	//go:embed frame.html
	source string
)

// Style is the style sheet that all pages share, followed by that of one page.
func Style(page string) template.CSS { return template.CSS(style + page) } //nolint:gosec // both are embedded files of ours

// New returns the templates head and top, to which a page adds its own. The page's style sheet is page.
func New(page string) *template.Template {
	funcs := template.FuncMap{"style": func() template.CSS { return Style(page) }}
	return template.Must(template.New("frame").Funcs(funcs).Parse(source))
}
