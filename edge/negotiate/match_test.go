package negotiate_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/edge/negotiate"
)

var tags = [][]byte{[]byte(`"a"`), []byte(`"a-gz"`), []byte(`"a-br"`)}

func TestNoneMatch(t *testing.T) {
	names := map[int]string{negotiate.None: "none", negotiate.Any: "any", 0: string(tags[0]), 1: string(tags[1]), 2: string(tags[2])}
	golden.Table(t, "testdata/nonematch.txt", func(header string) string { return names[negotiate.NoneMatch([]byte(header), tags)] })
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
	golden.Table(t, "testdata/html.txt", func(accept string) string { return strconv.FormatBool(negotiate.PrefersHTML([]byte(accept))) })
}

func TestLists(t *testing.T) {
	golden.Table(t, "testdata/lists.txt", func(header string) string { return strconv.FormatBool(negotiate.Lists([]byte(header), "close")) })
}
