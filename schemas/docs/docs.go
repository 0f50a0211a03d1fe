// Package docs is the page that explains the API to the developer of a site that reads it.
//
// Endpoints, parameters, fields, examples, headers and errors come from the OpenAPI document, so
// the page cannot differ from it. The page is one file: it loads nothing from elsewhere, and sends
// a request only when the reader presses the button.
package docs

import (
	"bytes"
	"embed"
	"html/template"
	"slices"
	"strings"
	"sync"

	"gridcast/schemas"
)

//go:embed page.html page.css page.js samples
var assets embed.FS

// Page returns the page as HTML in UTF-8, rendered on first use. The caller must not change the
// result. Safe for concurrent use.
func Page() []byte { return page() }

var page = sync.OnceValue(func() []byte {
	html, err := render()
	if err != nil {
		panic("BUG: render docs: " + err.Error())
	}
	return html
})

func render() ([]byte, error) {
	document, err := readDocument(schemas.OpenAPIJSON())
	if err != nil {
		return nil, err
	}
	filling, err := document.contents()
	if err != nil {
		return nil, err
	}
	css, err := assets.ReadFile("page.css")
	if err != nil {
		return nil, err
	}
	js, err := assets.ReadFile("page.js")
	if err != nil {
		return nil, err
	}
	parsed, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return nil, err
	}
	samples, err := read(samples)
	if err != nil {
		return nil, err
	}
	verifiers, err := read(verifiers)
	if err != nil {
		return nil, err
	}
	downloads, err := read(downloads)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = parsed.Execute(&b, struct {
		*contents
		Samples   []Sample
		Verifiers []Sample
		Downloads []Sample
		CSS       template.CSS
		Script    template.JS
	}{filling, samples, verifiers, downloads, template.CSS(css), template.JS(js)}) //nolint:gosec // both are embedded files of ours
	return b.Bytes(), err
}

// Sample is a program that reads the API, in one language. It needs GRIDCAST_URL and GRIDCAST_KEY in
// the environment.
type Sample struct {
	Language string
	File     string // its file name, as the language expects it
	Text     string
}

// samples are the programs that read the API, in the order of the page.
var samples = []Sample{
	{Language: "curl", File: "sample.sh"},
	{Language: "JavaScript", File: "sample.mjs"},
	{Language: "Python", File: "sample.py"},
	{Language: "Go", File: "sample.go"},
}

// verifiers are the programs that verify a message to a webhook.
var verifiers = []Sample{
	{Language: "JavaScript", File: "webhook.mjs"},
	{Language: "Python", File: "webhook.py"},
	{Language: "Go", File: "webhook.go"},
	{Language: "Shell", File: "webhook.sh"},
}

// downloads are the programs that keep a season in the file season.zip.
var downloads = []Sample{
	{Language: "curl", File: "download.sh"},
	{Language: "JavaScript", File: "download.mjs"},
	{Language: "Python", File: "download.py"},
	{Language: "Go", File: "download.go"},
}

// Samples returns the programs of the page that read the API, in its order.
func Samples() []Sample { return must(read(samples)) }

// Verifiers returns the programs of the page that verify a message to a webhook: the body is on
// standard input, the headers are WEBHOOK_ID, WEBHOOK_TIMESTAMP and WEBHOOK_SIGNATURE in the
// environment, the secret is GRIDCAST_WEBHOOK_SECRET. They fail for a message that is not genuine.
func Verifiers() []Sample { return must(read(verifiers)) }

// Downloads returns the programs of the page that keep a season in the file season.zip.
func Downloads() []Sample { return must(read(downloads)) }

func must(all []Sample, err error) []Sample {
	if err != nil {
		panic("BUG: samples: " + err.Error())
	}
	return all
}

// read reads the texts of samples.
func read(list []Sample) ([]Sample, error) {
	all := slices.Clone(list)
	for i := range all {
		name := "samples/" + all[i].File
		if strings.HasSuffix(name, ".go") {
			name += ".txt" // otherwise Go would compile it as part of this package
		}
		text, err := assets.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all[i].Text = string(text)
	}
	return all, nil
}
