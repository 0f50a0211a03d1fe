package docs

import (
	"encoding/json"
	"path"

	"gridcast/schemas/ordered"
)

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
