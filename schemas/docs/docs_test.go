package docs_test

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/docs"
)

func page() string { return string(docs.Page()) }

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
	if err := json.Unmarshal(schemas.OpenAPIJSON(), &d); err != nil {
		t.Fatal(err)
	}
	text := html.UnescapeString(page())
	shows := func(what string) {
		t.Helper()
		if !strings.Contains(text, what) {
			t.Errorf("the page does not show %q", what)
		}
	}
	var messages struct{ Webhooks any }
	if err := json.Unmarshal(schemas.OpenAPIJSON(), &messages); err != nil {
		t.Fatal(err)
	}
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
		if name != "Fine" && name != "NotReady" && name != "NotModified" {
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
		if !strings.Contains(lines[0], "next two lines") || !strings.Contains(lines[1], "process.env") || !strings.Contains(lines[2], "process.env") || strings.Contains(lines[3], "process") {
			t.Errorf("a browser has no process, and the sample uses it elsewhere:\n%s", s.Text)
		}
		return
	}
	t.Error("there is no sample.mjs")
}

// TestPageIsSelfContained shows that a browser loads nothing but the page.
func TestPageIsSelfContained(t *testing.T) {
	loads := regexp.MustCompile(`(\ssrc=|@import|\burl\(|<link[^>]*href="[^"d]|<iframe|<object|<embed)`)
	if found := loads.FindString(page()); found != "" {
		t.Errorf("the page loads something: %q", found)
	}
	if strings.Contains(page(), "ZgotmplZ") {
		t.Error("the template refused a value")
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	ids := map[string]int{}
	for _, id := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(page(), -1) {
		ids[id[1]]++
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%d elements have the id %s", n, id)
		}
	}
	links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page(), -1)
	for _, link := range links {
		if ids[link[1]] == 0 {
			t.Errorf("#%s leads nowhere", link[1])
		}
	}
	if len(links) < 20 {
		t.Errorf("got %d links within the page, want at least 20", len(links))
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
		if _, err := catalog.Endpoints[i].Select([]byte(query), known); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	if len(suggested) <= len(catalog.Endpoints) {
		t.Errorf("got %d requests, want some for each endpoint", len(suggested))
	}
}

// TestKeyboard shows that the keyboard reaches every box that scrolls.
func TestKeyboard(t *testing.T) {
	boxes := regexp.MustCompile(`<pre\b[^>]*>`).FindAllString(page(), -1)
	if len(boxes) < 10 {
		t.Fatalf("got %d boxes, want those of the samples", len(boxes))
	}
	for _, box := range boxes {
		if !strings.Contains(box, `tabindex="0"`) {
			t.Errorf("%s cannot be reached", box)
		}
	}
}
