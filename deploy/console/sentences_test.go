package console_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"gridcast/deploy/golden"
)

// varies is the part of a sentence that differs by run: a time, a duration, the port of a test, a generated
// identifier.
var varies = regexp.MustCompile(`before \d+ [A-Z][a-z]+ \d{4} \d\d:\d\d UTC|(\d+ d )?\d\d:\d\d:\d\d|\b\d+(\.\d+)? m?s\b|(127\.0\.0\.1|localhost):\d{2,}|\b([0-9a-f]{12}|[0-9a-f]{16}|wh[a-z2-7]{10})\b|…[A-Za-z0-9]+`)

// says compares a text for people with testdata/sentences.txt.
func says(t *testing.T, name, got string) {
	t.Helper()
	golden.Sentence(t, name, strings.Join(strings.Fields(varies.ReplaceAllString(got, "~")), " "))
}

// answers compares the status of an answer, the page that it leads to and its text with testdata/sentences.txt.
func answers(t *testing.T, name string, a answer) {
	t.Helper()
	says(t, name, a.Status+" "+a.Header.Get("Location")+" "+words(a.body))
}

// section returns the text of a section of a page, "" without it.
func section(page, id string) string {
	_, page, _ = strings.Cut(page, `<section id="`+id+`"`)
	_, page, _ = strings.Cut(page, ">")
	page, _, _ = strings.Cut(page, "</section>")
	return words(page)
}

// bar returns the text of the bar of a page, which names the operator.
func bar(page string) string {
	_, page, _ = strings.Cut(page, `<header class="top">`)
	page, _, _ = strings.Cut(page, "</header>")
	return words(page)
}

var tags = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>`)

// words returns the text of a page.
func words(page string) string { return html.UnescapeString(tags.ReplaceAllString(page, " ")) }
