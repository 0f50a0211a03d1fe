package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"gridcast/schemas/catalog"
	"gridcast/schemas/ordered"
)

// contents is the data of the page's template.
type contents struct {
	Title, Summary, Version string

	Description []string // paragraphs

	Endpoints []endpoint
	Messages  []message
	Services  []service
	Headers   []headerRow
	Errors    []errorRow
	Requests  []string // request targets worth trying, of all endpoints

	Status []fieldRow // of /status
	Uptime []fieldRow // of /uptime.json

	Way       []box
	WayHeight int
	chart
}

// table is a file of a download.
type table struct {
	File    string
	Key     []string // the columns that identify a row
	Columns []column
}

type column struct {
	Name, Type string
	Optional   bool
}

type endpoint struct {
	ID, Path, Summary, Description string

	Params   []paramRow
	Requests []string   // request targets worth trying
	Body     *bodyTable // nil: the answer is a file

	Tables   []table // in that file
	Examples []example
	Chart    *chart // of its number
}

// message is a message to receivers of webhooks.
type message struct {
	Type, Summary, Description string

	Headers  []paramRow
	Fields   []fieldRow
	Examples []example
}

type paramRow struct{ Name, Description, Values, Example, Default string }

// bodyTable lists the fields of data in a body.
type bodyTable struct {
	Description string
	List        bool // data is an array of rows with these fields
	Fields      []fieldRow
}

type fieldRow struct {
	Name, Type, Description string

	Optional bool
	Fields   []fieldRow // of a nested object, or of the rows of a list
}

type example struct{ Summary, JSON string }

type service struct{ Path, Summary, Description string }

// Pattern reports whether the path has a parameter, or is absent from some services, so that no page links to it.
func (s service) Pattern() bool {
	return strings.ContainsRune(s.Path, '{') || strings.HasPrefix(s.Path, "/log/") || strings.HasPrefix(s.Path, "/signed/") || strings.HasPrefix(s.Path, "/sandbox/") || strings.HasSuffix(s.Path, "/security.txt")
}

type headerRow struct{ Name, Description, Example string }

type errorRow struct {
	Status                     int
	Code, Description, Message string

	Anchor string // the code; empty where an earlier row has it
}

func (d *document) contents() *contents {
	c := &contents{
		Title: d.Info.Title, Summary: d.Info.Summary, Version: d.Info.Version,
		Description: strings.Split(d.Info.Description, "\n"),
		Requests:    []string{"/api/v1/next-race"},
		chart:       calibration(),
	}
	c.Way, c.WayHeight = way()
	for _, path := range d.Paths {
		get := path.Value.Get
		if !slices.Contains(get.Tags, "data") {
			if fields := map[string]*[]fieldRow{"/status": &c.Status, "/uptime.json": &c.Uptime}[path.Name]; fields != nil {
				ok, _ := get.Responses.Get("200")
				*fields = d.bodyTable(ok.Content["application/json"].Schema).Fields
			}
			c.Services = append(c.Services, service{path.Name, get.Summary, get.Description})
			continue
		}
		e := d.endpoint(path.Name, get)
		c.Endpoints = append(c.Endpoints, e)
		c.Requests = append(c.Requests, e.Requests...)
		for _, answer := range get.Responses {
			r := answer.Value
			if r.Ref != "" {
				r = find(d.Components.Responses, r.Ref)
			}
			if status, err := strconv.Atoi(answer.Name); err == nil && status >= 400 {
				c.addError(status, r)
			}
			for _, h := range r.Headers {
				c.addHeader(h.Name, find(d.Components.Headers, h.Value.Ref))
			}
		}
	}
	for _, hook := range d.Webhooks {
		c.Messages = append(c.Messages, d.message(hook.Value.Post))
	}
	slices.SortFunc(c.Errors, func(a, b errorRow) int { return a.Status - b.Status })
	anchors := map[string]bool{} // Link of every error leads to one of them
	for i, e := range c.Errors {
		if !anchors[e.Code] {
			anchors[e.Code], c.Errors[i].Anchor = true, e.Code
		}
	}
	slices.SortStableFunc(c.Headers, func(a, b headerRow) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func (d *document) endpoint(path string, get operation) endpoint {
	e := endpoint{
		ID: strings.ReplaceAll(strings.TrimPrefix(path, catalog.BasePath+"/"), "/", "-"), Path: path, Summary: get.Summary, Description: get.Description,
		Requests: []string{path},
	}
	for _, ref := range get.Parameters {
		p := find(d.Components.Parameters, ref.Ref)
		if p.In != "query" {
			continue
		}
		e.Params = append(e.Params, paramRow{
			Name: p.Name, Description: p.Description,
			Values: strings.Join(p.Schema.Enum, " | "), Example: p.Example, Default: p.Schema.Default,
		})
		e.Requests = append(e.Requests, path+"?"+url.Values{p.Name: {p.Example}}.Encode())
	}
	ok, _ := get.Responses.Get("200")
	content, document := ok.Content["application/json"]
	if !document {
		e.Tables = tables()
		return e // a file
	}
	e.Body = d.bodyTable(content.Schema)
	if e.Path == catalog.BasePath+"/"+string(catalog.Probabilities) {
		c := calibration()
		e.Chart = &c
	}
	e.Examples = examples(content)
	return e
}

// examples returns the examples of a body, indented for people.
func examples(content media) []example {
	all := make([]example, 0, len(content.Examples))
	for _, ex := range content.Examples {
		var pretty bytes.Buffer
		check(json.Indent(&pretty, ex.Value.Value, "", "  "))
		all = append(all, example{ex.Value.Summary, pretty.String()})
	}
	return all
}

func (d *document) message(post operation) message {
	m := message{Summary: post.Summary, Description: post.Description}
	for _, p := range post.Parameters {
		m.Headers = append(m.Headers, paramRow{Name: p.Name, Description: p.Description, Example: p.Example})
	}
	content := post.RequestBody.Content["application/json"]
	body := d.schema(content.Schema)
	kind, _ := body.Properties.Get("type")
	m.Type = typeWords(kind)
	m.Fields, m.Examples = d.fields(body, map[string]string{}), examples(content)
	return m
}

// bodyTable lists the fields of data; the envelope around it is the same everywhere.
func (d *document) bodyTable(body schema) *bodyTable {
	body = d.schema(body)
	table := &bodyTable{Description: body.Description}
	data, _ := body.Properties.Get("data")
	data = d.schema(data)
	if data.Items != nil {
		table.List = true
		data = d.schema(*data.Items)
	}
	table.Fields = d.fields(data, map[string]string{})
	return table
}

// fields lists the fields of an object, of nested objects and of rows in lists. It does not repeat
// an object that the table already shows.
func (d *document) fields(object schema, shown map[string]string) []fieldRow {
	rows := make([]fieldRow, 0, len(object.Properties))
	for _, property := range object.Properties {
		s := d.schema(property.Value)
		row := fieldRow{
			Name: property.Name, Type: typeWords(s), Description: s.Description,
			Optional: !slices.Contains(object.Required, property.Name),
		}
		inner, ref := s, property.Value.Ref
		if s.Items != nil {
			row.Type = "list"
			inner, ref = d.schema(*s.Items), s.Items.Ref
		}
		if ref != "" && len(inner.Properties) > 0 && shown[ref] != "" {
			row.Type += ", with the fields of " + shown[ref] + " above"
		} else {
			shown[ref] = row.Name
			row.Fields = d.fields(inner, shown)
		}
		rows = append(rows, row)
	}
	return rows
}

// typeWords names a field's type as briefly as its reader needs.
func typeWords(s schema) string {
	switch {
	case s.Const != nil:
		return fmt.Sprint(s.Const)
	case s.Enum != nil:
		return strings.Join(s.Enum, " | ")
	case s.Format == "date-time":
		return "instant"
	case s.Format == "date":
		return "date"
	case s.Format == "uri":
		return "URL"
	}
	return s.Type
}

// addError adds an error of an operation unless it is listed already.
func (c *contents) addError(status int, r response) {
	if slices.ContainsFunc(c.Errors, func(e errorRow) bool { return e.Status == status }) {
		return
	}
	var body struct{ Error, Message string }
	check(json.Unmarshal(r.Content["application/json"].Example, &body))
	c.Errors = append(c.Errors, errorRow{Status: status, Code: body.Error, Description: r.Description, Message: body.Message})
}

// addHeader adds a header of an answer unless it is listed already.
func (c *contents) addHeader(name string, h header) {
	example := string(h.Example) // a number is shown as it is spelt
	if strings.HasPrefix(example, `"`) {
		check(json.Unmarshal(h.Example, &example))
	}
	if row := (headerRow{name, h.Description, example}); !slices.Contains(c.Headers, row) {
		c.Headers = append(c.Headers, row)
	}
}

// document is the part of the OpenAPI document that the page shows.
type document struct {
	Info struct {
		Title, Summary, Version, Description string
	}
	Paths      ordered.Object[struct{ Get operation }]
	Webhooks   ordered.Object[struct{ Post operation }]
	Components struct {
		Parameters ordered.Object[parameter]
		Headers    ordered.Object[header]
		Responses  ordered.Object[response]
		Schemas    ordered.Object[schema]
	}
}

type operation struct {
	Tags                 []string
	Summary, Description string
	Parameters           []parameter
	RequestBody          response
	Responses            ordered.Object[response]
}

type reference struct {
	Ref string `json:"$ref"`
}

type parameter struct {
	reference
	Name, In, Description, Example string
	Schema                         schema
}

type header struct {
	Description string
	Example     json.RawMessage
}

type response struct {
	reference
	Description string
	Headers     ordered.Object[reference]
	Content     map[string]media
}

// media is a body.
type media struct {
	Schema   schema
	Example  json.RawMessage
	Examples ordered.Object[struct {
		Summary string
		Value   json.RawMessage
	}]
}

type schema struct {
	reference
	Description, Type, Format string
	Enum                      []string
	Const                     any
	Default                   string
	Items                     *schema
	Required                  []string
	Properties                ordered.Object[schema]
}

// schema follows the reference of s, if it has one; a description beside it wins over the one
// it refers to.
func (d *document) schema(s schema) schema {
	if s.Ref == "" {
		return s
	}
	target := find(d.Components.Schemas, s.Ref)
	if s.Description != "" {
		target.Description = s.Description
	}
	return target
}

// find returns the component that the last part of ref names.
func find[T any](components ordered.Object[T], ref string) T {
	component, found := components.Get(path.Base(ref))
	if !found {
		panic("BUG: docs: reference " + ref + " leads nowhere")
	}
	return component
}
