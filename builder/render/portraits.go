package render

import (
	"cmp"
	"encoding/xml"
	"math"
	"strconv"
	"strings"

	"gridcast/builder/almanac"
	"gridcast/schemas/catalog"
)

// Portraits returns the drawn portraits of the grid by the names under which they are stored: number and code in the
// team's colour. A driver with a portrait of the operator has a drawn one, too.
func Portraits(a *almanac.Almanac) map[string][]byte {
	all := map[string][]byte{}
	for _, e := range a.Grid {
		all[catalog.Portrait(string(e.Driver.ID))] = portrait(e)
	}
	return all
}

// headshot returns the address of a driver's portrait: the operator's, else the path of the drawn one.
func headshot(e almanac.GridEntry) string {
	return cmp.Or(e.Driver.HeadshotURL, "/"+catalog.Portrait(string(e.Driver.ID)))
}

// noColour is the background of a driver whose team has no known colour.
const noColour = "#57606A"

// portrait draws a driver as SVG without styles and scripts.
func portrait(e almanac.GridEntry) []byte {
	background := cmp.Or(e.Colour, noColour)
	ink := "#FFFFFF"
	if light := luminance(background); (light+.05)/.05 > 1.05/(light+.05) { // black has the better contrast
		ink = "#000000"
	}
	number := ""
	if e.Number > 0 {
		number = strconv.Itoa(e.Number)
	}
	var b strings.Builder
	text := func(s string) string {
		var escaped strings.Builder
		_ = xml.EscapeText(&escaped, []byte(s)) // a strings.Builder takes everything
		return escaped.String()
	}
	label := func(s string, y, size int) {
		if s != "" {
			b.WriteString(`<text x="120" y="` + strconv.Itoa(y) + `" font-size="` + strconv.Itoa(size) + `">` + text(s) + `</text>`)
		}
	}
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 240" width="240" height="240" role="img">` +
		`<title>` + text(e.Driver.Name) + `</title><rect width="240" height="240" fill="` + text(background) + `"/>` +
		`<g fill="` + ink + `" font-family="system-ui, sans-serif" font-weight="700" text-anchor="middle">`)
	label(number, 128, 110)
	label(e.Code, 202, 60)
	b.WriteString("</g></svg>\n")
	return []byte(b.String())
}

// luminance returns the relative luminance of a colour #RRGGBB, 0 to 1, as WCAG 2 defines it.
func luminance(colour string) (sum float64) {
	for i, weight := range []float64{.2126, .7152, .0722} {
		channel, _ := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8) // season.IsColour holds it
		c := float64(channel) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += float64(weight * c)
	}
	return sum
}
