package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// schema is a JSON Schema of draft 2020-12. Its fields are the keywords that the files of v1 use. A file with another
// keyword does not compile, so that no rule is passed over.
type schema struct {
	Ref               string              `json:"$ref"`
	Type              string              `json:"type"`
	Enum              []json.RawMessage   `json:"enum"` // without escapes, so that values are compared as they are written
	Const             json.RawMessage     `json:"const"`
	If                *schema             `json:"if"`
	Then              *schema             `json:"then"` // where a value satisfies If
	Else              *schema             `json:"else"`
	Properties        map[string]*schema  `json:"properties"`
	Required          []string            `json:"required"`
	DependentRequired map[string][]string `json:"dependentRequired"`
	Additional        *bool               `json:"additionalProperties"`
	Items             *schema             `json:"items"`
	MinItems          int                 `json:"minItems"`
	MaxItems          *int                `json:"maxItems"`
	MinLength         int                 `json:"minLength"`
	Pattern           string              `json:"pattern"`
	Format            string              `json:"format"`
	Minimum           json.Number         `json:"minimum"`
	Maximum           json.Number         `json:"maximum"`
	Defs              map[string]*schema  `json:"$defs"`

	Draft       string `json:"$schema"`
	Title       string `json:"title"`
	Description string `json:"description"`

	target  *schema           // of Ref
	members map[string]uint64 // a bit for each of Properties
	pattern *regexp.Regexp    // of Pattern
	format  func(string) bool // of Format
}

// formats are the formats of strings that the files use.
var formats = map[string]func(string) bool{
	"date":          func(text string) bool { _, err := time.Parse(time.DateOnly, text); return err == nil },
	"date-time":     func(text string) bool { _, err := time.Parse(time.RFC3339, text); return err == nil },
	"uri":           func(text string) bool { u, err := url.Parse(text); return err == nil && u.IsAbs() },
	"uri-reference": func(text string) bool { _, err := url.Parse(text); return err == nil },
}

// compile compiles the text of a schema file, which may refer to the common file.
func compile(file string, text []byte) (*schema, error) {
	files := map[string]*schema{path.Base(commonFile): {}, path.Base(file): {}}
	for name, text := range map[string][]byte{commonFile: source(commonFile), file: text} {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(files[path.Base(name)]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, s := range files {
		if err := s.prepare(files, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files[path.Base(file)], nil
}

// prepare finds the targets of references, and makes the fields that are made of others. file is the file of s.
func (s *schema) prepare(files map[string]*schema, file string) (err error) {
	if s.Ref != "" {
		of, name, _ := strings.Cut(s.Ref, "#/$defs/")
		if s.target = files[cmp.Or(of, file)]; s.target == nil {
			return fmt.Errorf("reference %s: only %s may be referred to", s.Ref, path.Base(commonFile))
		}
		if s.target = s.target.Defs[name]; s.target == nil {
			return fmt.Errorf("reference %s leads nowhere", s.Ref)
		}
	}
	if s.Pattern != "" {
		if s.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return err
		}
	}
	if s.format = formats[s.Format]; s.format == nil && s.Format != "" {
		return fmt.Errorf("unknown format %s", s.Format)
	}
	if len(s.Properties) > 64 {
		return fmt.Errorf("%d properties, want at most 64", len(s.Properties))
	}
	s.members = make(map[string]uint64, len(s.Properties))
	inner := []*schema{s.Items, s.If, s.Then, s.Else}
	for name, property := range s.Properties {
		s.members[name] = 1 << len(s.members)
		inner = append(inner, property)
	}
	inner = slices.AppendSeq(inner, maps.Values(s.Defs))
	for _, name := range slices.Concat(s.Required, slices.Concat(slices.Collect(maps.Values(s.DependentRequired))...)) {
		if s.members[name] == 0 {
			return fmt.Errorf("%s is required and has no schema", name)
		}
	}
	for _, child := range inner {
		if child != nil {
			err = errors.Join(err, child.prepare(files, file))
		}
	}
	return err
}
