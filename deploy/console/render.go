package console

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridcast/builder/almanac"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/deploy/view"
	"gridcast/scheduler/cadence"
	"gridcast/schemas/frame"
	"gridcast/schemas/wire"
)

//go:embed page.html
var pageSource string

//go:embed style.css
var styleSource string

//go:embed script.js
var scriptSource string

// contentSecurityPolicy allows the page its own style and script, and nothing from elsewhere.
var contentSecurityPolicy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; "+
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; img-src data:", sourceHash(string(frame.Style(styleSource))), sourceHash(scriptSource))

func sourceHash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// templates are parsed for the first page, because most commands show none.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("console").Funcs(functions).Parse(pageSource))
})

var functions = template.FuncMap{
	"style":   func() template.CSS { return frame.Style(styleSource) },
	"script":  func() template.JS { return template.JS(scriptSource) }, //nolint:gosec // it is our own file
	"instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"clock":   clockTime,
	"local":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04") },
	"minute":  func(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04") },
	"pct":     func(p *wire.Percent) string { return fmt.Sprintf("%.1f", float64(*p)/10) },
	"percent": view.Percent,
	"who":     operator.Who,
	"ended":   view.Ended,
	"latest":  latestAttempts,
	"what":    func(a auditlog.Verb) string { return strings.ReplaceAll(string(a), "_", " ") },
	"since":   func(now, t time.Time) string { return frame.LongTime(now.Sub(t)) },
	"join":    func(s []string) string { return strings.Join(s, " ") },
	"mib":     func(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) },
}

// render answers with a page. It is made whole before anything is sent.
func (c *Console) render(w http.ResponseWriter, status int, name string, data any) {
	var body bytes.Buffer
	if err := templates().ExecuteTemplate(&body, name, data); err != nil {
		panic("BUG: page " + name + ": " + err.Error())
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the client may have gone
}

// clockTime is an instant as the tables show it.
func clockTime(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2 Jan 2006 15:04:05")
}

// reasonWords are the reasons of the schedule for people.
var reasonWords = map[string]string{
	string(cadence.PollWeek):        "the daily poll",
	string(cadence.PollWeekend):     "the poll on a race weekend",
	string(cadence.PollAwaiting):    "a grid or a result is awaited",
	string(cadence.GridKnown):       "the grid should be known",
	string(cadence.QualifyingStood): "qualifying has not changed for two hours",
	string(cadence.FreezeLatest):    "the last moment for a pick",
	string(cadence.LightsOut):       "lights out",
	string(cadence.RaceWindowEnd):   "the race is over",
	string(cadence.YearTurn):        "the year turns",
	string(cadence.CalendarKnown):   "the calendar of next season",
	string(cadence.Nightly):         "every night",
}

// Say replaces codes in the reason of a build or a job, such as "lights_out 2024022", by words and names of rounds.
func (p *page) Say(reason any) string {
	fields := strings.Fields(fmt.Sprint(reason))
	for i, field := range fields {
		if words, ok := reasonWords[field]; ok {
			fields[i] = words
			continue
		}
		if key, err := strconv.ParseInt(field, 10, 64); err == nil && i > 0 && p.names[key] != "" {
			fields[i] = "(" + p.names[key] + ")"
		}
	}
	return strings.Join(fields, " ")
}

// SayRound returns the name of a round, or its key if the page does not know it.
func (p *page) SayRound(key int64) string {
	if name := p.names[key]; name != "" {
		return name
	}
	return strconv.FormatInt(key, 10)
}

func roundNames(a *almanac.Almanac) map[int64]string {
	names := map[int64]string{}
	for r := range a.All() {
		names[r.Session] = r.Facts.Name
	}
	return names
}
