// Package docs holds the pages that explain the API to the developer of a site that reads it.
//
// Endpoints, parameters, fields, examples, headers and errors come from the OpenAPI document, so the pages
// cannot differ from it. Each page is HTML for people and Markdown for programs, from one template. A page loads
// nothing from elsewhere, and sends a request with a key only when the reader presses the button.
package docs

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/frame"
)

//go:embed page.html guide.html sandbox.html page.css page.js samples columns.csv coverage.csv cadence.csv states.csv calibration.csv changes.csv
var assets embed.FS

// Document is one document about the API, under an address that does not change.
type Document struct {
	Path        string
	ContentType string
	Body        []byte
}

// The content types of the documents.
const (
	htmlType     = "text/html; charset=utf-8"
	markdownType = "text/markdown; charset=utf-8"
	textType     = "text/plain; charset=utf-8"
	scriptType   = "text/javascript; charset=utf-8"
	atomType     = "application/atom+xml; charset=utf-8"
)

// Documents returns every document, rendered on first use: each page as HTML and as Markdown, llms.txt with a
// list of them, llms-full.txt with the Markdown of all, and the script of the pages. The caller must not change
// the result. Safe for concurrent use.
func Documents() []Document { return documents() }

var documents = sync.OnceValue(render)

// check panics for an error, because everything in the documents is part of the program.
func check(err error) {
	if err != nil {
		panic("BUG: docs: " + err.Error())
	}
}

type page struct {
	Name, Title string // the last part of the address, and the link to the page
	Heading     string
	Endpoint    string // its path below the base path; empty: a page of the guide

	Main     template.HTML
	Sections []section
	Next     *page
	Site     *site
}

// Path is the address of the page. With .md it is the address of its Markdown.
func (p *page) Path() string { return strings.TrimSuffix("/docs/"+p.Name, "/") }

// section is a part of a page, to which the list of contents leads.
type section struct {
	ID    string
	Title template.HTML
}

// site holds the parts that all pages share.
type site struct {
	Groups    []group
	Languages []string
}

type group struct {
	Title string
	Pages []*page
}

// guide lists the pages that are no endpoints, by their templates. The first one is the start, at /docs.
var guide = []struct {
	title string // of a group in the list of contents
	pages [][2]string
}{
	{"", [][2]string{{"start", "Start"}}},
	{"Tasks", tasks()},
	{"Guide", [][2]string{
		{"keys", "Keys and limits"},
		{"sandbox", "Sandbox"},
		{"caching", "Caching"},
		{"picks", "Picks and corrections"},
		{"webhooks", "Webhooks"},
		{"widget", "Widget and charts"},
		{"coverage", "Coverage and cadence"},
		{"errors", "Errors and headers"},
		{"stability", "Stability"},
		{"changelog", "Changes of the API"},
		{"service", "Service and attribution"},
	}},
}

// tasks returns the templates and titles of the pages that begin with a task.
func tasks() (all [][2]string) {
	for _, t := range Tasks() {
		all = append(all, [2]string{t.Page, t.Title})
	}
	return all
}

// heading finds the sections of a page.
var heading = regexp.MustCompile(`<h2 id="([^"]+)">(.*?)</h2>`)

func render() []Document {
	var api document
	check(json.Unmarshal(schemas.OpenAPIJSON(), &api))
	contents := api.contents()
	parsed := template.Must(frame.New(asset("page.css")).Funcs(template.FuncMap{
		"prose": prose, "paragraphs": paragraphs, "sandboxSample": Sandbox, "samples": Samples, "verifiers": Verifiers, "downloads": Downloads,
		"seasons": Seasons, "proxy": Proxy, "database": Database, "settle": Settle, "printed": Printed, "tasks": Tasks, "states": States,
		"coverage": Coverage, "cadences": Cadences, "changes": Changes,
		"sandboxKinds": func() []catalog.SandboxKind { return catalog.SandboxKinds[:] },
	}).ParseFS(assets, "page.html", "guide.html", "sandbox.html"))
	fill := func(name string, data any) string {
		var b strings.Builder
		check(parsed.ExecuteTemplate(&b, name, data))
		return b.String()
	}

	var pages []*page
	groups := make([]group, 0, len(guide)+1)
	add := func(name string, data any, p page) {
		main := fill(name, data)
		p.Main = template.HTML(main) //nolint:gosec // a template has filled it
		for _, m := range heading.FindAllStringSubmatch(main, -1) {
			p.Sections = append(p.Sections, section{m[1], template.HTML(m[2])}) //nolint:gosec // the same
		}
		pages = append(pages, &p)
	}
	for _, g := range guide {
		first := len(pages)
		for _, names := range g.pages {
			p := page{Name: names[0], Title: names[1], Heading: names[1]}
			if len(pages) == 0 {
				p.Name, p.Heading = "", contents.Summary
			}
			add(names[0], contents, p)
		}
		groups = append(groups, group{g.title, pages[first:]})
	}
	endpoints := len(pages)
	for _, e := range contents.Endpoints {
		add("endpoint", e, page{Name: e.ID, Title: e.Summary, Heading: e.Summary, Endpoint: strings.TrimPrefix(e.Path, catalog.BasePath)})
	}
	all := &site{Groups: append(groups, group{"Endpoints", pages[endpoints:]}), Languages: []string{"curl", "JavaScript", "Python", "Go"}}
	made := []Document{{"/docs.js", scriptType, []byte(asset("page.js"))}, {ChangesFeed, atomType, changesFeed()}}
	for _, t := range Tasks() {
		if t.Picture != "" {
			made = append(made, Document{t.Picture, "image/webp", []byte(asset("samples/" + t.Page + ".webp"))})
		}
	}
	var index strings.Builder
	fmt.Fprintf(&index, "# %s\n\n> %s\n\n%s\n", contents.Title, contents.Summary, strings.Join(contents.Description, "\n\n"))
	const host = "\nIn the examples `https://HOST` stands for the address of this service.\n"
	index.WriteString(host)
	var whole strings.Builder
	whole.WriteString(host[1:] + "\n")
	for i, p := range pages {
		if p.Site = all; i+1 < len(pages) {
			p.Next = pages[i+1]
		}
		text := fmt.Sprintf("# %s\n\nPage: %s\n\n%s", p.Heading, p.Path(), markdown(p.Main))
		made = append(made, Document{p.Path(), htmlType, []byte(fill("page", p))}, Document{p.Path() + ".md", markdownType, []byte(text)})
		whole.WriteString(text)
		for _, g := range all.Groups {
			if g.Pages[0] == p {
				fmt.Fprintf(&index, "\n## %s\n\n", cmp.Or(g.Title, "Start"))
			}
		}
		fmt.Fprintf(&index, "- [%s](%s.md)\n", p.Title, p.Path())
	}
	index.WriteString("\n## Optional\n\n- [All pages in one file](/llms-full.txt)\n- [OpenAPI 3.1](/openapi.json)\n")
	return append(made, Document{"/llms.txt", textType, []byte(index.String())}, Document{"/llms-full.txt", textType, []byte(whole.String())})
}

// prose turns text between backticks into code.
func prose(text string) template.HTML {
	parts := strings.Split(template.HTMLEscapeString(text), "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return template.HTML(strings.Join(parts, "")) //nolint:gosec // its text is escaped
}

// sentence finds the ends of sentences.
var sentence = regexp.MustCompile(`\. `)

// paragraphs splits a long text between sentences, so that most parts have at most 45 words.
func paragraphs(text string) []string {
	var parts []string
	words := 0
	for text != "" {
		end := len(text)
		if m := sentence.FindStringIndex(text); m != nil {
			end = m[1]
		}
		more := len(strings.Fields(text[:end]))
		if words += more; len(parts) == 0 || words > 45 {
			parts, words = append(parts, ""), more
		}
		parts[len(parts)-1] += text[:end]
		text = text[end:]
	}
	return parts
}

// Sample is a program that reads the API, in one language. It needs GRIDCAST_URL and GRIDCAST_KEY in
// the environment.
type Sample struct {
	Language string
	File     string // its file name, as the language expects it
	Text     string
}

// Samples returns the programs that read the API, in the order of the page.
func Samples() []Sample { return samples("sample", "curl") }

// Verifiers returns the programs that verify a message to a webhook: the body is on
// standard input, the headers are WEBHOOK_ID, WEBHOOK_TIMESTAMP and WEBHOOK_SIGNATURE in the
// environment, the secret is GRIDCAST_WEBHOOK_SECRET. They fail for a message that is not genuine.
func Verifiers() []Sample { return samples("webhook", "Shell") }

// Downloads returns the programs that keep a season in the file season.zip.
func Downloads() []Sample { return samples("download", "curl") }

// Sandbox returns the program that waits for a red flag in the sandbox.
func Sandbox() Sample { return Sample{"Python", "sandbox.py", asset("samples/sandbox.py")} }

// Seasons returns the program that gets every season, as files season-YEAR.zip.
func Seasons() Sample { return Sample{"curl", "seasons.sh", asset("samples/seasons.sh")} }

// Proxy returns the server that answers below /racing/ on 127.0.0.1:PORT with the answers of GRIDCAST_URL.
func Proxy() Sample { return Sample{"JavaScript", "proxy.mjs", asset("samples/proxy.mjs")} }

// Covered is a fact that the archive has from a season on.
type Covered struct{ Fact, Request, File, Column, From, Note string }

// Years is the number of seasons since 1950 without the fact.
func (c Covered) Years() int { return int(figure(c.From)) - 1950 }

// Coverage lists facts by the first season that has them. Column is one of File in the download of a season.
func Coverage() []Covered {
	return rowsOf("coverage.csv", func(r []string) Covered { return Covered{r[0], r[1], r[2], r[3], r[4], r[5]} })
}

// ChangesFeed is the path of the feed of Changes.
const ChangesFeed = "/docs/changelog.atom"

// License is the licence of the data.
const License = "https://creativecommons.org/licenses/by/4.0/"

// Change is an addition to the API or a deprecation, with the version of the API and the day that brought it. Text has
// code between backticks.
type Change struct{ Version, Date, Text string }

// Changes lists the changes of the API, the newest first. A new one is a line at the top of changes.csv.
func Changes() []Change {
	return rowsOf("changes.csv", func(r []string) Change { return Change{r[0], r[1], r[2]} })
}

// Cadence is how often the answers of an endpoint changed in a recorded season: in a race weekend, in a week between two,
// and in a week of winter. Without figures, Note says it in words.
type Cadence struct{ Endpoint, Weekend, Between, Winter, Note string }

// Cadences lists the endpoints by how often their answers change.
func Cadences() []Cadence {
	return rowsOf("cadence.csv", func(r []string) Cadence { return Cadence{r[0], r[1], r[2], r[3], r[4]} })
}

// changesFeed returns the changes as the Atom document of RFC 4287. The place of a change from the oldest is its
// identifier.
func changesFeed() []byte {
	type link struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	}
	type entry struct {
		ID      string `xml:"id"`
		Title   string `xml:"title"`
		Updated string `xml:"updated"`
		Link    link   `xml:"link"`
		Summary string `xml:"summary"`
	}
	type feed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string   `xml:"id"`
		Title   string   `xml:"title"`
		Updated string   `xml:"updated"`
		Author  string   `xml:"author>name"`
		Links   []link   `xml:"link"`
		Entries []entry  `xml:"entry"`
	}
	id := func(n int) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "gridcast change of the API %d", n))
		return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	}
	all := Changes()
	f := feed{ID: id(0), Title: "Changes of the gridcast API", Author: "gridcast", Links: []link{{"self", ChangesFeed}, {"alternate", "/docs/changelog"}}}
	for i, c := range all {
		f.Entries = append(f.Entries, entry{
			id(len(all) - i), "API " + c.Version + " of " + c.Date, c.Date + "T00:00:00Z", link{"alternate", "/docs/changelog"}, strings.ReplaceAll(c.Text, "`", ""),
		})
	}
	f.Updated = f.Entries[0].Updated
	text, err := xml.MarshalIndent(f, "", "  ")
	check(err)
	return append([]byte(xml.Header), text...)
}

// tables lists the files of a download with their columns.
func tables() (all []table) {
	for _, row := range rowsOf("columns.csv", slices.Clone) {
		if len(all) == 0 || all[len(all)-1].File != row[0] {
			all = append(all, table{File: row[0]})
		}
		t := &all[len(all)-1]
		c := column{Name: row[1], Type: row[2], Optional: row[3] == "yes"}
		if t.Columns = append(t.Columns, c); row[4] == "yes" {
			t.Key = append(t.Key, c.Name)
		}
	}
	return all
}

// rowsOf reads the rows of a table of this folder, without the first.
func rowsOf[T any](name string, read func(row []string) T) (all []T) {
	rows, err := csv.NewReader(strings.NewReader(asset(name))).ReadAll()
	check(err)
	for _, row := range rows[1:] {
		all = append(all, read(row))
	}
	return all
}

// samples returns the program of a name in every language. shell is the name of the first one.
func samples(name, shell string) []Sample {
	all := []Sample{{shell, name + ".sh", ""}, {"JavaScript", name + ".mjs", ""}, {"Python", name + ".py", ""}, {"Go", name + ".go", ""}}
	for i := range all {
		file := "samples/" + all[i].File
		if strings.HasSuffix(file, ".go") {
			file += ".txt" // otherwise Go would compile it as part of this package
		}
		all[i].Text = asset(file)
	}
	return all
}

func asset(name string) string {
	text, err := assets.ReadFile(name)
	check(err)
	return string(text)
}
