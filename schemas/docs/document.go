package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// document is the part of the OpenAPI document that the page shows.
type document struct {
	Info struct {
		Title, Summary, Version, Description string
	}
	Tags       []struct{ Name, Description string }
	Paths      members[struct{ Get operation }]
	Components struct {
		Parameters members[parameter]
		Headers    members[header]
		Responses  members[response]
		Schemas    members[schema]
	}
}

type operation struct {
	Tags                 []string
	Summary, Description string
	Parameters           []reference
	Responses            members[response]
}

type reference struct {
	Ref string `json:"$ref"`
}

type parameter struct {
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
	Headers     members[reference]
	Content     map[string]struct {
		Schema   schema
		Example  json.RawMessage
		Examples members[struct {
			Summary string
			Value   json.RawMessage
		}]
	}
}

type schema struct {
	reference
	Description, Type, Format string
	Enum                      []string
	Const                     any
	Default                   string
	Items                     *schema
	AnyOf                     []schema
	Required                  []string
	Properties                members[schema]
}

func readDocument(text []byte) (*document, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	return &d, nil
}

// schema follows the reference of s, if it has one; a description beside it wins over the one
// it refers to.
func (d *document) schema(s schema) (schema, error) {
	if s.Ref == "" {
		return s, nil
	}
	target, err := find(d.Components.Schemas, s.Ref, "schemas")
	if s.Description != "" {
		target.Description = s.Description
	}
	return target, err
}

// find returns the component that ref names.
func find[T any](components members[T], ref, kind string) (T, error) {
	name, ok := strings.CutPrefix(ref, "#/components/"+kind+"/")
	if component, found := components.get(name); ok && found {
		return component, nil
	}
	var none T
	return none, fmt.Errorf("reference %s leads nowhere", ref)
}

// members is a JSON object whose order matters.
type members[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

func (m members[T]) get(name string) (T, bool) {
	for i := range m {
		if m[i].Name == name {
			return m[i].Value, true
		}
	}
	var none T
	return none, false
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *members[T]) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("got %v, want an object (%w)", start, err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		next := member[T]{Name: fmt.Sprint(key)}
		if err := dec.Decode(&next.Value); err != nil {
			return fmt.Errorf("%s: %w", next.Name, err)
		}
		*m = append(*m, next)
	}
	return nil
}
