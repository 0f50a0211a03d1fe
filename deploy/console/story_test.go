package console_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ingest"
	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/console"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/deploy/view"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
)

// TestStories takes the steps of each file of testdata/stories in a world of its own: an operator looks at sections of the
// page and fills in its forms.
func TestStories(t *testing.T) {
	for _, path := range must.Get(filepath.Glob("testdata/stories/*.txt"))(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			if slow := strings.HasSuffix(path, "-slow.txt"); slow && testing.Short() {
				t.Skip("short: renders the documents of two seasons")
			}
			w := newWorld(t)
			golden.Story(t, path, w.steps(), varies, "~")
		})
	}
}

// steps are the steps of a story:
//
//	at WHEN [D]      race time is an instant, or one of the weekend, and a duration later
//	build REASON     a version is published, and the edge has it
//	laps N           a source has sent the laps of the race up to one
//	over             a source says that the race is over
//	silence          no source knows anything of the weekend
//	unanswered       there is a source that has not answered yet
//	show ID          the text of a section of the page
//	send PATH FIELDS a form of the page is sent with some fields changed, and the question about it is answered with yes
//	post PATH FIELDS these fields alone are sent, and the question is not answered
//	round KEY        the state of a round
//	changed          the variants that the last run changed
//	audit            the entries of the audit log
func (w *world) steps() map[string]func([]string) string {
	var last run
	return map[string]func([]string) string{
		"at":      func(words []string) string { w.set(w.instant(words)); return "" },
		"build":   func(words []string) string { w.build(strings.Join(words, " ")); return "" },
		"laps":    func(words []string) string { w.runs(must.Get(strconv.Atoi(words[0]))(w.t)); return "" },
		"silence": func([]string) string { w.silence(); return "" },
		"unanswered": func([]string) string {
			w.sources = []operator.Source{{Name: "f1db", State: &ingest.PollState{Source: "f1db"}}}
			return ""
		},
		"over": func([]string) string {
			over := live.Observation{Session: 2024022, At: w.now(), Received: w.now(), Source: "timing", Phase: live.Over}
			return fmt.Sprint(must.Err2((&live.Log{Store: w.store}).Append(w.t.Context(), live.Fixture{Laps: 50}, over)))
		},
		"show": func(words []string) string { return w.show(words[0]) },
		"send": func(words []string) string { return w.send(words, &last) },
		"post": func(words []string) string {
			path, fields := w.target(words)
			return w.outcome(w.asOperator(http.MethodPost, path, fields), &last)
		},
		"round": func(words []string) string {
			return w.stateOf(must.Get(strconv.ParseInt(words[0], 10, 64))(w.t))
		},
		"changed": func([]string) string { return strings.Join(last.Last.Result.Changed, " ") },
		"audit":   func([]string) string { return strings.Join(w.audit(), "\n") },
	}
}

// instant reads an instant of a story.
func (w *world) instant(words []string) time.Time {
	w.t.Helper()
	at, named := map[string]time.Time{"grid": w.weekend.GridKnownAt(), "start": w.weekend.StartsAt(), "result": w.weekend.ResultKnownAt()}[words[0]]
	if !named {
		at = must.Get(time.Parse(time.RFC3339, words[0]))(w.t)
	}
	for _, d := range words[1:] {
		at = at.Add(must.Get(time.ParseDuration(d))(w.t))
	}
	return at
}

// clockTimes are instants of the real clock in the sections audit and webhooks.
var clockTimes = regexp.MustCompile(`\d+ \w+ \d{4} \d\d:\d\d:\d\d`)

func (w *world) show(id string) string {
	w.t.Helper()
	if id == "race" {
		return race(w.asOperator(http.MethodGet, "/race", nil).body)
	}
	text := strings.Join(strings.Fields(section(w.asOperator(http.MethodGet, "/", nil, "Accept: text/html").body, id)), " ")
	if id == "audit" || id == "webhooks" {
		text = clockTimes.ReplaceAllString(text, "TIME")
	}
	return text
}

// stateOf describes a round: its state, its start, its cancelled sessions and the first rows of race and sprint.
func (w *world) stateOf(key int64) string {
	w.t.Helper()
	r := w.round(key)
	shown := []string{view.State(r.State), r.Start.UTC().Format(time.RFC3339)}
	for _, s := range r.Facts.Sessions {
		if s.Cancelled {
			shown = append(shown, string(s.Kind)+" cancelled")
		}
	}
	for _, row := range slices.Concat(r.Valid()[:min(3, len(r.Valid()))], r.Sprint()[:min(3, len(r.Sprint()))]) {
		shown = append(shown, fmt.Sprintf("%s %g", r.Code(row.Driver), row.Points))
	}
	return strings.Join(append(shown, fmt.Sprintf("%d revisions", len(r.Record.Revisions))), ", ")
}

// target reads the address and the fields of a form. KEY and HOOK are the first key and the first webhook of the store,
// RELEASE is the file of an archive without colours, and RECEIVER takes all messages.
func (w *world) target(words []string) (path string, fields url.Values) {
	w.t.Helper()
	path = words[0]
	if before, after, ok := strings.Cut(path, "KEY"); ok {
		list, _ := must.Get2(keys.Load(w.t.Context(), w.store))(w.t)
		path = before + list.Keys[0].ID + after
	}
	if before, after, ok := strings.Cut(path, "HOOK"); ok {
		path = before + must.Get(webhook.Load(w.t.Context(), w.store))(w.t)[0].ID + after
	}
	fields = must.Get(url.ParseQuery(strings.Join(words[1:], " ")))(w.t)
	if fields.Get("path") == "RELEASE" {
		facts := w.archive.Facts()
		facts.Seasons = slices.Clone(facts.Seasons)
		facts.Seasons[slices.IndexFunc(facts.Seasons, func(s season.Season) bool { return s.Year == 2024 })].Colours = nil
		release := filepath.Join(w.t.TempDir(), "release.archive")
		must.Do(w.t, archive.WriteFile(release, archivetest.Stored(w.t, facts)))
		fields.Set("path", release)
	}
	if fields.Get("url") == "RECEIVER" {
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		w.t.Cleanup(receiver.Close)
		fields.Set("url", receiver.URL+"/hook/token")
	}
	return path, fields
}

// send fills in a form of the page, answers its question with yes, forced if need be, and returns all that the operator reads.
func (w *world) send(words []string, last *run) string {
	w.t.Helper()
	path, changed := w.target(words)
	fields, ok := w.fill(path, changed)
	if !ok {
		return "the page has no such form"
	}
	var read []string
	a := w.asOperator(http.MethodPost, path, fields)
	if a.StatusCode == http.StatusPreconditionRequired {
		var asked struct{ Preview operator.Preview }
		must.Do(w.t, json.Unmarshal([]byte(a.body), &asked))
		p := asked.Preview
		read = append(append(append(read, p.Title), p.Effects...), p.Warnings...)
		if p.Refusal != "" {
			read = append(read, "Refused: "+p.Refusal)
			fields.Set("force", "yes")
		}
		read = append(read, cmp.Or(p.Question, "Do it?"))
		fields.Set("seen", p.Seen)
		fields.Set("confirm", "yes")
		a = w.asOperator(http.MethodPost, path, fields)
	}
	return strings.Join(append(read, w.outcome(a, last)), "\n")
}

// outcome returns the text of an answer, or of the last event of the run that it has started.
func (w *world) outcome(a answer, last *run) string {
	w.t.Helper()
	var answer struct {
		run
		Key, Text, Message string
	}
	must.Do(w.t, json.Unmarshal([]byte(a.body), &answer))
	switch {
	case a.StatusCode == http.StatusAccepted:
		events := w.events(answer.ID)
		last.Last = events[len(events)-1]
		answer.Text = last.Last.Text
		if last.Last.Phase == console.Failed {
			answer.Text = "failed: " + last.Last.Error
		}
	case answer.Key != "":
		answer.Text = strings.Split(answer.Key, "_")[0] + "_…: " + answer.Text
	}
	return cmp.Or(answer.Text, a.Status+": "+answer.Message)
}

// fill returns the fields of the form of the page with an address, as a browser sends them after some were changed. It returns
// false if no form of that address has these fields.
func (w *world) fill(action string, changed url.Values) (url.Values, bool) {
	w.t.Helper()
	page := must.Get(html.Parse(strings.NewReader(w.asOperator(http.MethodGet, "/", nil, "Accept: text/html").body)))(w.t)
	for form := range page.Descendants() {
		if form.Data != "form" || attribute(form, "action") != action {
			continue
		}
		fields, names := url.Values{}, map[string]bool{}
		for e := range form.Descendants() {
			name, value := attribute(e, "name"), attribute(e, "value")
			switch {
			case name == "":
				continue
			case e.Data == "textarea" && e.FirstChild != nil:
				value = e.FirstChild.Data
			case e.Data == "select":
				value = selected(e)
			}
			names[name] = true
			if attribute(e, "type") != "checkbox" {
				fields.Set(name, value)
			}
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(changed)), func(name string) bool { return !names[name] }) {
			maps.Copy(fields, changed)
			return fields, true
		}
	}
	return nil, false
}

// selected returns the value of a list: that of its selected option, or else of the first.
func selected(list *html.Node) string {
	var values []string
	for option := range list.Descendants() {
		if option.Data != "option" {
			continue
		}
		text := attribute(option, "value")
		if option.FirstChild != nil && !has(option, "value") {
			text = option.FirstChild.Data
		}
		if has(option, "selected") {
			return text
		}
		values = append(values, text)
	}
	return values[0]
}

func has(e *html.Node, name string) bool {
	return slices.ContainsFunc(e.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func attribute(e *html.Node, name string) string {
	for _, a := range e.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
