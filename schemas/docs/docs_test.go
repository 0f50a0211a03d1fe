package docs_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/docs"
)

// page returns all pages, one after the other.
func page() string { return all("text/html") }

// all returns the documents of a content type, one after the other.
func all(contentType string) string {
	var b strings.Builder
	for _, d := range docs.Documents() {
		if strings.HasPrefix(d.ContentType, contentType) {
			b.Write(d.Body)
		}
	}
	return b.String()
}

// TestPageShowsTheWholeDocument looks for every path, parameter, field, header, status and
// message of the OpenAPI document.
func TestPageShowsTheWholeDocument(t *testing.T) {
	var d struct {
		Paths      map[string]any
		Components struct {
			Parameters map[string]struct{ In, Name, Description string }
			Headers    map[string]struct{ Description string }
			Responses  map[string]struct {
				Description string
				Headers     map[string]any
			}
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	must.Do(t, json.Unmarshal(schemas.OpenAPIJSON(), &d))
	text := html.UnescapeString(page())
	shows := func(what string) {
		t.Helper()
		must.Show(t, "the page", text, what)
	}
	var messages struct{ Webhooks any }
	must.Do(t, json.Unmarshal(schemas.OpenAPIJSON(), &messages))
	var showFields func(node any)
	showFields = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				showFields(child)
			}
		case map[string]any:
			fields, _ := node["properties"].(map[string]any)
			for field, property := range fields {
				shows("<code>" + field + "</code>")
				if description, ok := property.(map[string]any)["description"].(string); ok {
					shows(description)
				}
			}
			for _, child := range node {
				showFields(child)
			}
		}
	}
	showFields(messages.Webhooks)
	for path := range d.Paths {
		shows("<code>" + path + "</code>")
	}
	for _, p := range d.Components.Parameters {
		if p.In == "query" {
			shows("<code>" + p.Name + "</code>")
			shows(p.Description)
		}
	}
	for _, h := range d.Components.Headers {
		shows(h.Description)
	}
	for name, r := range d.Components.Responses {
		for header := range r.Headers {
			shows("<code>" + header + "</code>")
		}
		if name != "Fine" && name != "NotReady" && name != "NotModified" && !strings.HasPrefix(name, "Log") { // the service's own paths
			shows(r.Description)
		}
	}
	for name, s := range d.Components.Schemas {
		// The envelope is explained in prose, and the service's bodies are for operators.
		if strings.HasSuffix(name, "Body") || slices.Contains([]string{"Status", "LedgerHead", "MissingFact", "RefusedDocument", "Download"}, name) || name == "Error" || name == "Meta" {
			continue
		}
		for field, property := range s.Properties {
			shows("<code>" + field + "</code>")
			shows(property.Description)
		}
	}
}

// TestSampleSaysWhatABrowserLacks checks that the sample in JavaScript uses Node's process only in the two lines that
// its comment names for a browser.
func TestSampleSaysWhatABrowserLacks(t *testing.T) {
	for _, s := range docs.Samples() {
		if s.File != "sample.mjs" {
			continue
		}
		lines := strings.SplitN(s.Text, "\n", 4)
		must.Show(t, "the comment of the sample", lines[0], "next two lines")
		must.Show(t, "the first of the two lines", lines[1], "process.env")
		must.Show(t, "the second of the two lines", lines[2], "process.env")
		must.Equal(t, "uses of process, which a browser lacks, in the rest of the sample", 0, strings.Count(lines[3], "process"))
		return
	}
	t.Error("there is no sample.mjs")
}

// TestPageIsSelfContained shows that a browser loads nothing from elsewhere: the script of the pages is one of
// the documents.
func TestPageIsSelfContained(t *testing.T) {
	loads := regexp.MustCompile(`(\ssrc="(?:[^/]|//)|@import|\burl\(|<link[^>]*href="[^"/]|<iframe|<object|<embed)`)
	found := loads.FindString(page())
	must.Hold(t, found == "", "the page loads something: %q", found)
	must.Equal(t, "values that the template refused", 0, strings.Count(page(), "ZgotmplZ"))
	for _, src := range regexp.MustCompile(`\ssrc="([^"]+)"`).FindAllStringSubmatch(page(), -1) {
		if !slices.ContainsFunc(docs.Documents(), func(d docs.Document) bool { return d.Path == src[1] }) {
			t.Errorf("the page loads %s, which is no document", src[1])
		}
	}
}

// TestLinksLeadSomewhere follows the links of every page, in HTML and in Markdown, and those of llms.txt.
func TestLinksLeadSomewhere(t *testing.T) {
	ids := map[string]bool{"/": true, "/status": true, "/uptime.json": true, "/openapi.json": true, "/openapi.yaml": true, "/favicon.ico": true, "/.well-known/api-catalog": true}
	for _, f := range catalog.Feeds {
		ids[f.Path] = true
	}
	for _, d := range docs.Documents() {
		ids[d.Path] = true
		if !strings.HasPrefix(d.ContentType, "text/html") {
			continue // the programs in its text are no elements
		}
		for _, id := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(string(d.Body), -1) {
			if ids[d.Path+"#"+id[1]] {
				t.Errorf("%s: two elements have the id %s", d.Path, id[1])
			}
			ids[d.Path+"#"+id[1]] = true
		}
	}
	links := regexp.MustCompile(`(?:href="|\]\()([^")]*)`)
	for _, d := range docs.Documents() {
		if d.Path == "/docs.js" || strings.HasPrefix(d.ContentType, "image/") {
			continue
		}
		found := links.FindAllStringSubmatch(string(d.Body), -1)
		for _, link := range found {
			to := link[1]
			if strings.HasPrefix(to, "#") {
				to = d.Path + to
			}
			if health := to == "/healthz" || to == "/readyz"; !ids[to] && !health && !strings.HasPrefix(to, "https://") {
				t.Errorf("%s: %s leads nowhere", d.Path, to)
			}
		}
		must.Hold(t, !strings.HasPrefix(d.ContentType, "text/html") || len(found) >= 20, "%s: got %d links, want at least 20", d.Path, len(found))
	}
}

// TestMarkdownSaysTheSame compares the words of each page with those of its Markdown, and looks for both in llms.txt.
func TestMarkdownSaysTheSame(t *testing.T) {
	byPath := map[string]string{}
	for _, d := range docs.Documents() {
		byPath[d.Path] = string(d.Body)
	}
	words := regexp.MustCompile(`[\pL\pN]+`)
	skipped := regexp.MustCompile(`(?s)<(summary|button|svg)\b.*?</(summary|button|svg)>|<div class="browser">.*?</div></div>|<[^>]*>`)
	pages := 0
	for path, text := range byPath {
		_, main, isPage := strings.Cut(text, `<h1>`)
		if !isPage {
			continue
		}
		pages++
		main, _, _ = strings.Cut(main, `<p class="after">`)
		want := words.FindAllString(html.UnescapeString(skipped.ReplaceAllString(main, " ")), -1)
		got := words.FindAllString(strings.Join(strings.SplitN(regexp.MustCompile("(?m)^```.*$|\\]\\([^)]*\\)").ReplaceAllString(byPath[path+".md"], ""), "\n\nPage: "+path, 2), ""), -1)
		must.Equal(t, path+".md", want, got)
		must.Show(t, "/llms.txt", byPath["/llms.txt"], "("+path+".md)")
		must.Show(t, "/llms-full.txt", byPath["/llms-full.txt"], byPath[path+".md"])
	}
	want := len(catalog.Endpoints) + 5
	must.Hold(t, pages >= want, "got %d pages, want one for each endpoint and a guide", pages)
	n := strings.Count(all("text/markdown"), "|\n|-|")
	must.Hold(t, n >= 6, "got %d tables, want those of the guide", n)
}

// TestMarkdownNamesTheLanguage: a block of code is marked as the language that it is in, and an answer as JSON.
func TestMarkdownNamesTheLanguage(t *testing.T) {
	begins := map[string]*regexp.Regexp{
		"sh": regexp.MustCompile(`^(#|curl )`), "js": regexp.MustCompile(`^(//|const )`),
		"python": regexp.MustCompile(`^(#|import )`), "go": regexp.MustCompile(`^(//|package )`),
	}
	count := map[string]int{}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(all("text/markdown"), -1) {
		language, text := m[1], m[2]
		count[language]++
		if pattern := begins[language]; pattern != nil && !pattern.MatchString(text) {
			t.Errorf("marked as %s:\n%.80s", language, text)
		}
		isJSON := json.Valid([]byte(text))
		must.Hold(t, isJSON == (language == "json"), "marked as %q, is JSON: %t\n%.80s", language, isJSON, text)
	}
	for language := range begins {
		if count[language] < len(catalog.Endpoints) {
			t.Errorf("got %d programs in %s, want one for each endpoint", count[language], language)
		}
	}
	if count["json"] < len(catalog.Endpoints)-1 { // a download is no JSON
		t.Errorf("got %d answers, want one for each endpoint", count["json"])
	}
}

// TestHeadingsDiffer: no page has two headings alike, so that each part of it can be named.
func TestHeadingsDiffer(t *testing.T) {
	for _, d := range docs.Documents() {
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`<h2[^>]*>(.*?)</h2>`).FindAllStringSubmatch(string(d.Body), -1) {
			if seen[m[1]] {
				t.Errorf("%s has two headings %q", d.Path, m[1])
			}
			seen[m[1]] = true
		}
	}
}

// TestEveryErrorHasAnAnchor: the field Link of an error leads to /docs/errors#CODE.
func TestEveryErrorHasAnAnchor(t *testing.T) {
	var api struct {
		Components struct {
			Schemas struct {
				Error struct {
					Properties struct {
						Error struct{ Enum []string } `json:"error"`
					}
				}
			}
		}
	}
	must.Do(t, json.Unmarshal(schemas.OpenAPIJSON(), &api))
	codes := api.Components.Schemas.Error.Properties.Error.Enum
	must.Hold(t, len(codes) >= 11, "the contract has the codes %v", codes)
	for _, d := range docs.Documents() {
		for _, code := range codes {
			if n := strings.Count(string(d.Body), `<tr id="`+code+`">`); d.Path == "/docs/errors" && n != 1 {
				t.Errorf("%s has %d rows with the anchor %s, want 1", d.Path, n, code)
			}
		}
	}
}

// TestChangesOfTheAPINameEveryEndpoint: the page about changes tells with which version an endpoint came.
func TestChangesOfTheAPINameEveryEndpoint(t *testing.T) {
	for _, d := range docs.Documents() {
		_, main, _ := strings.Cut(string(d.Body), "<main")
		for _, e := range catalog.Endpoints {
			if d.Path == "/docs/changelog" {
				must.Show(t, d.Path, main, "<code>"+e.Path+"</code>")
			}
		}
	}
}

// TestChangesFeed: the feed has each change of the page, under an identifier of its own that an addition does not move, and
// the newest first.
func TestChangesFeed(t *testing.T) {
	var feed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Updated string   `xml:"updated"`
		Entries []struct {
			ID      string `xml:"id"`
			Title   string `xml:"title"`
			Updated string `xml:"updated"`
			Summary string `xml:"summary"`
		} `xml:"entry"`
	}
	for _, d := range docs.Documents() {
		if d.Path == docs.ChangesFeed {
			must.Do(t, xml.Unmarshal(d.Body, &feed))
		}
	}
	all := docs.Changes()
	must.Hold(t, len(all) >= 17 && len(feed.Entries) == len(all), "the feed has %d entries for %d changes", len(feed.Entries), len(all))
	must.Equal(t, "updated", feed.Entries[0].Updated, feed.Updated)
	seen := map[string]bool{}
	for i, e := range feed.Entries {
		at := must.Get(time.Parse(time.RFC3339, e.Updated))(t)
		must.Hold(t, i == 0 || e.Updated <= feed.Entries[i-1].Updated, "%s of %s follows an earlier one", e.Title, at)
		must.Hold(t, !seen[e.ID] && e.Summary != "", "entry %d: identifier %s, text %q", i, e.ID, e.Summary)
		seen[e.ID] = true
	}
	oldest := feed.Entries[len(feed.Entries)-1]
	must.Equal(t, "the identifier of the first six endpoints", "urn:uuid:964d68ae-0045-c53c-7b80-ecba7c4cbb99", oldest.ID)
}

// TestEndpointsHavePages: an address such as /docs/results names the endpoint, and /docs#results, which the feeds
// of earlier versions name, is its row on the first page.
func TestEndpointsHavePages(t *testing.T) {
	for _, d := range docs.Documents() {
		for _, e := range catalog.Endpoints {
			name := strings.ReplaceAll(string(e.Name), "/", "-")
			switch d.Path {
			case "/docs":
				must.Show(t, d.Path, string(d.Body), `<tr id="`+name+`">`)
			case "/docs/" + name:
				must.Show(t, d.Path, string(d.Body), "<code>"+catalog.BasePath+e.Path+"</code>")
			}
		}
	}
}

// TestRequestsAreValid shows that every request the page suggests selects a variant.
func TestRequestsAreValid(t *testing.T) {
	known := catalog.Known{Seasons: []int{2024}, Current: 2024}
	suggested := regexp.MustCompile(`data-target="([^"]+)"`).FindAllStringSubmatch(page(), -1)
	for _, match := range suggested {
		target := html.UnescapeString(match[1])
		path, query, _ := strings.Cut(strings.TrimPrefix(target, catalog.BasePath), "?")
		i, ok := catalog.Lookup(path)
		if !ok {
			t.Errorf("%s: no such endpoint", target)
			continue
		}
		must.Succeed(t, target, must.Err(catalog.Endpoints[i].Select([]byte(query), known)))
	}
	for _, e := range catalog.Endpoints {
		must.Hold(t, slices.ContainsFunc(suggested, func(m []string) bool { return m[1] == catalog.BasePath+e.Path }), "no request for %s", e.Path)
	}
}

// TestKeyboard shows that the keyboard reaches every box that scrolls.
func TestKeyboard(t *testing.T) {
	boxes := regexp.MustCompile(`<pre\b[^>]*>`).FindAllString(page(), -1)
	must.Require(t, len(boxes) >= 10, "got %d boxes, want those of the samples", len(boxes))
	for _, box := range boxes {
		must.Show(t, "a box that scrolls", box, `tabindex="0"`)
	}
}

// TestDownloadPageShowsDownloads: the page of an endpoint whose answer is a file shows the programs that keep the file,
// and none that reads it as JSON.
func TestDownloadPageShowsDownloads(t *testing.T) {
	for _, d := range docs.Documents() {
		if d.Path != "/docs/bulk" {
			continue
		}
		for _, s := range docs.Downloads() {
			must.Show(t, d.Path, html.UnescapeString(string(d.Body)), s.Text)
		}
		must.Equal(t, "requests of /docs/bulk that read a file as JSON", 0, strings.Count(string(d.Body), "console.log(await answer.json())"))
	}
}

// TestNoDocumentNamesALocalHost: a document for programs says https://HOST, and llms.txt and llms-full.txt say of what.
func TestNoDocumentNamesALocalHost(t *testing.T) {
	for _, d := range docs.Documents() {
		text := string(d.Body)
		must.Equal(t, d.Path+" names a local host", 0, strings.Count(text, "localhost"))
		if strings.HasPrefix(d.Path, "/llms") {
			must.Show(t, d.Path, text, "`https://HOST` stands for the address of this service")
		}
	}
}

// TestNoTextIsOneBlock: a paragraph of a page has at most 60 words, and a point of a list or a cell of a table 75.
func TestNoTextIsOneBlock(t *testing.T) {
	blocks := regexp.MustCompile(`(?s)<(p|li|td|figcaption)\b[^>]*>(.*?)</(?:p|li|td|figcaption)>`)
	tags := regexp.MustCompile(`<[^>]*>`)
	for _, d := range docs.Documents() {
		_, main, _ := strings.Cut(string(d.Body), "<main")
		main, _, _ = strings.Cut(main, `<h2 id="tables">`) // lists of columns, no text
		for _, m := range blocks.FindAllStringSubmatch(main, -1) {
			most := 60
			if m[1] == "li" || m[1] == "td" {
				most = 75
			}
			text := strings.TrimSpace(tags.ReplaceAllString(m[2], ""))
			if n := len(strings.Fields(text)); n > most {
				t.Errorf("%s: a block of %d words: %.60s…", d.Path, n, text)
			}
		}
	}
}

// TestPicturesAreWebP: a page shows a picture of its program, of the size that the page reserves for it.
func TestPicturesAreWebP(t *testing.T) {
	for _, task := range docs.Tasks() {
		for _, d := range docs.Documents() {
			if task.Picture == d.Path {
				must.Hold(t, len(d.Body) > 2000 && len(d.Body) < 40_000 && string(d.Body[:4]) == "RIFF" && string(d.Body[8:12]) == "WEBP", "%s is no picture of at most 40 kB: %d bytes", d.Path, len(d.Body))
			}
		}
	}
}

// TestChartShowsTheFigures: the chart of calibration has the points of deploy/docs/predictions.json, of the model of this
// release on past grids. With -update it follows them.
func TestChartShowsTheFigures(t *testing.T) {
	var figures struct {
		Grid struct {
			Reliability []struct {
				Races     int
				Said, Won float64
				Interval  [2]float64
			}
		}
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("../../deploy/docs/predictions.json"))(t), &figures))
	var want strings.Builder
	want.WriteString("races,said,won,low,high\n")
	for _, b := range figures.Grid.Reliability {
		fmt.Fprintf(&want, "%d,%.1f,%.1f,%.1f,%.1f\n", b.Races, 100*b.Said, 100*b.Won, 100*b.Interval[0], 100*b.Interval[1])
	}
	golden.File(t, "calibration.csv", want.String())
}
