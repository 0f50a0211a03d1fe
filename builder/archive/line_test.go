package archive_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive"
	"gridcast/builder/season"
)

// wantOwnSpelling checks that no season as Pack writes it needs package json, which reads the same facts.
func wantOwnSpelling(t *testing.T, seasons []season.Season) {
	t.Helper()
	for _, s := range seasons {
		text, err := archive.Line(s)
		if err != nil {
			t.Fatal(err)
		}
		got, ok, want, err := archive.ReadLine(text)
		switch {
		case err != nil:
			t.Error(err)
		case !ok:
			t.Errorf("%d: only package json reads the line", s.Year)
		case !reflect.DeepEqual(got, want): // first, for cmp takes seconds
			t.Errorf("%d (-package json +own reader):\n%s", s.Year, cmp.Diff(want, got))
		}
	}
}

// Our reader accepts a line only if package json reads the same facts from it.
func TestOtherSpellings(t *testing.T) {
	embedded, err := archive.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	wantOwnSpelling(t, append(smallFacts().Seasons, embedded.Archive.Facts().Seasons...))
	line, err := archive.Line(smallFacts().Seasons[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"year":2024`, `"year": 2024`},
		{`"year":2024`, `"year":02024`},
		{`"year":2024`, `"year":-2024`},
		{`"year":2024`, `"year":2024.0`},
		{`"year":2024`, `"year":20240000000000000000`},
		{`"year":2024`, `"year":2024,"year":2024`},
		{`"year":2024`, `"year":2024,"more":1`},
		{`"year":2024,`, `"year":2024,,`},
		{`"year":2024,`, `"year":2024`},
		{`"year":2024,`, ``},
		{`"grand_prix":"monaco"`, `"grand_prix":"mon\u0061co"`},
		{`"grand_prix":"monaco"`, "\"grand_prix\":\"mon\taco\""},
		{`"grand_prix":"monaco"`, "\"grand_prix\":\"mon\xffaco\""},
		{`"grand_prix":"monaco"`, `"grand_prix":7`},
		{`"grand_prix":"monaco"`, `"grand_prix":null`},
		{`"course_km":3.337`, `"course_km":3.`},
		{`"course_km":3.337`, `"course_km":.5`},
		{`"course_km":3.337`, `"course_km":3.337e2`},
		{`"course_km":3.337`, `"course_km":03.337`},
		{`"street":true`, `"street":false`},
		{`"date":"2024-05-26"`, `"date":"2024-05-26T02:00:00+02:00"`},
		{`"date":"2024-05-26"`, `"date":"2024-13-26"`},
		{`"time":90123`, `"time":9012345678901234567`},
		{`"x":"#00FF00"`, `"x":"#00FF00","x":"#00FF01"`},
		{`"segments":[90123,0,90123]`, `"segments":[90123,0]`},
		{`"segments":[90123,0,90123]`, `"segments":[90123,0,90123,1]`},
		{`"segments":[90123,0,90123]`, `"segments":[90123,0,90123,]`},
		{`"segments":[90123,0,90123]`, `"segments":[]`},
		{"}\n", "}"},
		{"}\n", "} \n"},
		{"}\n", "}}\n"},
	} {
		text := strings.Replace(string(line), change[0], change[1], 1)
		if text == string(line) {
			t.Fatalf("%s is not in the line", change[0])
		}
		got, ok, want, err := archive.ReadLine([]byte(text))
		if ok && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("%s: our reader accepts it, package json says %v (-package json +own reader):\n%s", change[1], err, cmp.Diff(want, got))
		}
	}
}
