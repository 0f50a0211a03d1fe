package negotiate_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge/negotiate"
)

var tags = [][]byte{[]byte(`"a"`), []byte(`"a-gz"`), []byte(`"a-br"`)}

func TestNoneMatch(t *testing.T) {
	for _, tt := range []struct {
		header string
		want   int
	}{
		{``, negotiate.None},
		{`"a"`, 0},
		{`W/"a"`, 0},
		{`w/"a"`, negotiate.None},
		{`"a-br"`, 2},
		{`"a-br", "a-gz"`, 1}, // the order of the tags decides
		{`"x","a-gz"`, 1},
		{` , ,"x" ,	W/"a-gz",`, 1},
		{`*`, negotiate.Any},
		{` * `, negotiate.Any},
		{`*, "a"`, negotiate.None},
		{`"x", *`, negotiate.None},
		{`a`, negotiate.None},
		{`"a`, negotiate.None},
		{`"a" "a-gz"`, 0}, // nothing is read after the fault
		{`"x" "a"`, negotiate.None},
		{`"x y", "a"`, negotiate.None},
		{`"a,b", "a"`, 0},
		{`"", "a"`, 0},
		{`"é", "a"`, 0},
		{`"a-gzip"`, 0},
		{`W/"a-gzip"`, 0},
		{`"a--gzip"`, 0},
		{`"a;gzip"`, 0},
		{`"a-zstd"`, 0},
		{`"a-br-gzip"`, 2},
		{`"a-gzip", "a-gz"`, 1}, // an exact tag counts before a changed one
		{`"a-gzip", "a-br-gzip"`, 0},
		{`"a-zip"`, negotiate.None},
		{`"a-gzip-gzip"`, negotiate.None},
		{`"b-gzip"`, negotiate.None},
		{`"-gzip"`, negotiate.None},
		{`"a-"`, negotiate.None},
		{`"ab-gzip"`, negotiate.None},
	} {
		must.Equal(t, fmt.Sprintf("%q", tt.header), tt.want, negotiate.NoneMatch([]byte(tt.header), tags))
	}
}

// element is one entity tag of a list and the separator before the next: RFC 9110, 8.8.3,
// with the empty elements that a recipient must accept (5.6.1).
var element = regexp.MustCompile(`^[, \t]*(?:W/)?("[!\x23-\x7e\x80-\xff]*")[ \t]*(,|$)?`)

// suffix is the suffix of a proxy that compresses.
var suffix = regexp.MustCompile(`(-gzip|-br|-zstd|-deflate|;gzip|;br|--gzip)"$`)

// referenceMatch reads a header, in Latin-1 as HTTP has it, with a regular expression.
func referenceMatch(header string, tags []string) int {
	if strings.Trim(header, " \t") == "*" {
		return negotiate.Any
	}
	var listed []string
	for {
		m := element.FindStringSubmatchIndex(header)
		if m == nil {
			break
		}
		listed = append(listed, header[m[2]:m[3]])
		if m[4] < 0 {
			break
		}
		header = header[m[1]:]
	}
	if i := slices.IndexFunc(tags, func(tag string) bool { return slices.Contains(listed, tag) }); i >= 0 {
		return i
	}
	for i, tag := range listed {
		listed[i] = suffix.ReplaceAllString(tag, `"`)
	}
	return slices.IndexFunc(tags, func(tag string) bool { return slices.Contains(listed, tag) })
}

func FuzzNoneMatch(f *testing.F) {
	for _, seed := range []string{`"a", W/"a-gz"`, `*`, `,,"x" , "a-br"`, `"a" x`, `W/"`, `"a""a-br"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		latin1 := make([]rune, len(header))
		for i, c := range header {
			latin1[i] = rune(c)
		}
		// The regular expression works on characters, so each byte becomes one.
		if got, want := negotiate.NoneMatch(header, tags), referenceMatch(string(latin1), []string{`"a"`, `"a-gz"`, `"a-br"`}); got != want {
			t.Errorf("%q: got %d, want %d", header, got, want)
		}
	})
}

func TestPrefersHTML(t *testing.T) {
	for _, tt := range []struct {
		accept string
		want   bool
	}{
		{"", false},
		{"*/*", false},
		{"application/json", false},
		{"text/html", true},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true},
		{"application/json, text/html", false},
		{"Text/HTML; charset=utf-8", true},
		{"text/html;q=0, application/json", false},
		{"text/*", false},
	} {
		must.Equal(t, fmt.Sprintf("%q", tt.accept), tt.want, negotiate.PrefersHTML([]byte(tt.accept)))
	}
}

func TestLists(t *testing.T) {
	for _, tt := range []struct {
		header string
		want   bool
	}{
		{"close", true},
		{"Close", true},
		{"TE, close", true},
		{"close,TE", true},
		{" \tCLOSE\t , keep-alive", true},
		{",,close", true},
		{"", false},
		{"keep-alive", false},
		{"closed", false},
		{"close x", false},
		{"x-close", false},
	} {
		must.Equal(t, fmt.Sprintf("%q", tt.header), tt.want, negotiate.Lists([]byte(tt.header), "close"))
	}
}
