// Package frame is the shared look of every page for people: the colours, the type scale, durations, and the header
// of the start page, the documentation, the status and the operator's console.
//
// A page of the API begins with the templates head and top, and adds its own style sheet after [Style]. The
// console has a header of its own, with the same classes, because it runs on another port.
package frame

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"time"
)

var (
	//go:embed style.css
	style string
	//go:embed frame.html
	source string
)

// Style is the style sheet that all pages share, followed by that of one page.
func Style(page string) template.CSS { return template.CSS(style + page) } //nolint:gosec // both are embedded files of ours

// operatorPlace is the place for the operator in the template foot.
const operatorPlace = `<span id="operator"></span>`

// Tell fills a finished page with links to the contact and the terms of the operator, as far as they are set.
func Tell(page []byte, contact, terms string) []byte {
	var links strings.Builder
	for _, l := range []struct{ to, text string }{{contact, "Contact"}, {terms, "Terms"}} {
		if l.to != "" {
			links.WriteString(` <a href="` + template.HTMLEscapeString(l.to) + `">` + l.text + "</a>")
		}
	}
	return bytes.Replace(page, []byte(operatorPlace), []byte(links.String()), 1)
}

// LongTime is a duration in its two largest units.
func LongTime(d time.Duration) string {
	if d < 0 {
		return "-" + LongTime(-d)
	}
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s%86400/3600)
	}
}

// New returns the templates head and top, to which a page adds its own. The page's style sheet is page.
func New(page string) *template.Template {
	funcs := template.FuncMap{"style": func() template.CSS { return Style(page) }}
	return template.Must(template.New("frame").Funcs(funcs).Parse(source))
}
