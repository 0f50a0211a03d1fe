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

// order lists the codings in the order in which a client gets them, if each is stored until it was given.
func order(header string) (names []string) {
	stored := [negotiate.Encodings]bool{true, true, true, true}
	for e := negotiate.Best([]byte(header), stored); ; e = negotiate.Best([]byte(header), stored) {
		if !stored[e] {
			return names
		}
		names, stored[e] = append(names, e.Token()), false
	}
}

func TestBest(t *testing.T) {
	golden.Table(t, "testdata/accept.txt", func(header string) string { return strings.Join(order(header), " ") })
}

var qvalue = regexp.MustCompile(`^(0(\.[0-9]{0,3})?|1(\.0{0,3})?)$`)

// reference reads the header with package strings.
func reference(header string) []string {
	names := []string{"br", "zstd", "gzip", "identity"}
	given := map[string]float64{}
members:
	for member := range strings.SplitSeq(header, ",") {
		parts := strings.Split(member, ";")
		q := 1.0
		for _, parameter := range parts[1:] {
			name, value, _ := strings.Cut(parameter, "=")
			if lower(strings.Trim(name, " \t")) != "q" {
				continue
			}
			value = strings.Trim(value, " \t")
			if !qvalue.MatchString(value) {
				continue members
			}
			q, _ = strconv.ParseFloat(value, 64)
		}
		token := lower(strings.Trim(parts[0], " \t"))
		if token == "x-gzip" {
			token = "gzip"
		}
		given[token] = q
	}
	quality := func(name string) float64 {
		if q, ok := given[name]; ok {
			return q
		}
		return given["*"]
	}
	acceptable := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return quality(name) == 0 })
	slices.SortStableFunc(acceptable, func(a, b string) int {
		switch qa, qb := quality(a), quality(b); {
		case qa > qb:
			return -1
		case qa < qb:
			return 1
		}
		return 0
	})
	if !slices.Contains(acceptable, "identity") {
		acceptable = append(acceptable, "identity")
	}
	return acceptable
}

// lower is for ASCII only: unlike strings.ToLower it leaves the Kelvin sign alone.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

func FuzzBest(f *testing.F) {
	for _, seed := range []string{
		"gzip, deflate, br;q=0.9, zstd;q=0.123", "*;q=0.5,identity;q=0", "x-gzip;q=1.000;level=1", "br;Q= 0.7 ,,;", "*", "q=1;q=0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got, want := order(header), reference(header); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	})
}

func TestDoesNotAllocate(t *testing.T) {
	accept := []byte("gzip, deflate, br;q=0.9, zstd;q=0.123")
	match := []byte(`W/"x", "y", "z"`)
	tags := [][]byte{[]byte(`"a"`), []byte(`"z"`)}
	if n := testing.AllocsPerRun(100, func() {
		negotiate.Best(accept, [negotiate.Encodings]bool{true, true, true, true})
		negotiate.NoneMatch(match, tags)
		negotiate.PrefersHTML(accept)
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
