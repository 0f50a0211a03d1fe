package render_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"gridcast/builder/almanac"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
)

// TestPortraitsCanBeRead: a drawn portrait is XML with number and code as text, whatever a source names the driver, and
// its letters have a contrast of at least 4.5 to 1 on every colour.
func TestPortraitsCanBeRead(t *testing.T) {
	channel := func(hex string) float64 {
		v, err := strconv.ParseUint(hex, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if c := float64(v) / 255; c > .04045 {
			return math.Pow((c+.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	luminance := func(c string) float64 {
		return .2126*channel(c[1:3]) + .7152*channel(c[3:5]) + .0722*channel(c[5:7])
	}
	for _, colour := range []string{"", "#000000", "#FFFFFF", "#E8002D", "#00D2BE", "#FF8000", "#757575", "#777777", "#0000FF"} {
		a := &almanac.Almanac{Grid: []almanac.GridEntry{{
			Driver: season.Driver{ID: "ann", Name: `Ann </title><script>"O'Hara" & co`}, Code: "O<A", Number: 7, Colour: colour,
		}}}
		drawn := render.Portraits(a)[catalog.Portrait("ann")]
		texts, fills := []string{}, []string{}
		for d := xml.NewDecoder(bytes.NewReader(drawn)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", drawn, err)
			}
			switch token := token.(type) {
			case xml.CharData:
				texts = append(texts, strings.TrimSpace(string(token)))
			case xml.StartElement:
				if token.Name.Local == "script" || token.Name.Local == "style" {
					t.Errorf("a portrait with <%s>", token.Name.Local)
				}
				for _, attribute := range token.Attr {
					if attribute.Name.Local == "fill" {
						fills = append(fills, attribute.Value)
					}
				}
			}
		}
		if got, want := strings.Join(texts, "|"), `Ann </title><script>"O'Hara" & co|7|O<A|`; got != want {
			t.Errorf("got the texts %q, want %q", got, want)
		}
		if len(fills) != 2 {
			t.Fatalf("got the fills %q, want a background and an ink", fills)
		}
		if a, b := luminance(fills[0]), luminance(fills[1]); (max(a, b)+.05)/(min(a, b)+.05) < 4.5 {
			t.Errorf("%s on %s has a contrast of %.2f", fills[1], fills[0], (max(a, b)+.05)/(min(a, b)+.05))
		}
	}
}

// TestEveryDriverHasAPortrait: a driver without a portrait of the operator has the path of a drawn one.
func TestEveryDriverHasAPortrait(t *testing.T) {
	a := small()
	a.Grid = append(a.Grid, almanac.GridEntry{Driver: season.Driver{ID: "bob", Name: "Bob"}, Code: "BOB", Number: 8})
	body, err := render.Body(a, catalog.Variant{Endpoint: catalog.Drivers}, generated)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"headshot_url":"https://example.org/ann?a=1&b=2"`, `"headshot_url":"/portraits/bob.svg"`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("/drivers lacks %s:\n%s", want, body)
		}
	}
	if len(render.Portraits(a)) != 2 {
		t.Errorf("got %d portraits, want one of each driver", len(render.Portraits(a)))
	}
}
