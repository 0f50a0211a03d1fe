package schemas

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// OpenAPIYAML returns the OpenAPI document as YAML, self-contained: the schemas are part of
// it. The same sources give the same bytes. The result must not be changed.
func OpenAPIYAML() []byte { return openAPIYAML() }

// OpenAPIJSON returns the document of OpenAPIYAML as JSON, its members in the same order. The
// result must not be changed.
func OpenAPIJSON() []byte { return openAPIJSON() }

var openAPIYAML = sync.OnceValue(func() []byte { return asYAML(bundle()) })

var openAPIJSON = sync.OnceValue(func() []byte { return appendJSON(nil, bundle()) })

// OpenAPIOf returns the documents of OpenAPIJSON and OpenAPIYAML with the contact of an operator, an https address or
// mailto: and a mail address, and the https address of the operator's terms. An empty text is left out. The result must not be changed.
func OpenAPIOf(contact, terms string) (asJSON, inYAML []byte) {
	if contact == "" && terms == "" {
		return OpenAPIJSON(), OpenAPIYAML()
	}
	document := bundle()
	info := member(document, "info")
	add := func(to *yaml.Node, key, value string) {
		if value != "" {
			appendMember(to, key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
		}
	}
	if address, mail := strings.CutPrefix(contact, "mailto:"); mail {
		add(member(info, "contact"), "email", address)
	} else {
		add(member(info, "contact"), "url", contact)
	}
	add(info, "termsOfService", terms)
	return appendJSON(nil, document), asYAML(document)
}

func asYAML(document *yaml.Node) []byte {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(document); err != nil {
		panic("BUG: openapi as YAML: " + err.Error())
	}
	return b.Bytes()
}

// appendJSON appends a tree as JSON. Members keep their order and numbers their spelling,
// which encoding/json would not do for a map.
func appendJSON(b []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.MappingNode:
		return appendElements(b, '{', n.Content, '}')
	case yaml.SequenceNode:
		return appendElements(b, '[', n.Content, ']')
	case yaml.ScalarNode:
		switch n.Tag {
		case "!!int", "!!float", "!!bool", "!!null":
			return append(b, n.Value...)
		case "!!str":
			text, _ := wire.Marshal(n.Value) // every string has a spelling in JSON
			return append(b, text...)
		}
	}
	panic(fmt.Sprintf("BUG: openapi: line %d: %s has no place in JSON", n.Line, n.Tag))
}

func appendElements(b []byte, opening byte, elements []*yaml.Node, closing byte) []byte {
	b = append(b, opening)
	for i, element := range elements {
		switch {
		case opening == '{' && i%2 == 1:
			b = append(b, ':')
		case i > 0:
			b = append(b, ',')
		}
		if opening == '{' && i%2 == 0 {
			element = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: element.Value}
		}
		b = appendJSON(b, element)
	}
	return append(b, closing)
}

// bundle returns the OpenAPI document with every schema file moved into its components, so
// that it can be read without the files. A file's schema is named by its title, a definition
// by its key; no two that differ may share a name. The order of everything is that of the sources.
// The schemas of messages to webhooks are inline.
func bundle() *yaml.Node {
	document := parse("openapi.yaml")
	generated := parse("paths.yaml")
	explain(generated, parse("endpoints.yaml"))
	insertPaths(member(document, "paths"), generated)
	schemas := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	messages := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	titles := map[string]string{} // file -> name in components
	for _, file := range schemaFiles() {
		into := schemas
		if strings.HasPrefix(path.Base(file), "webhook-") {
			into = messages
		}
		hoist(into, titles, file, parse(file))
	}
	appendMember(member(document, "components"), "schemas", schemas)
	redirect(document, titles)
	redirect(messages, titles)
	inline(document, messages)
	return document
}

// explain puts the texts and examples of endpoints into their paths.
func explain(paths, texts *yaml.Node) {
	for i := 0; i < len(paths.Content); i += 2 {
		get, of := member(paths.Content[i+1], "get"), member(texts, strings.TrimPrefix(paths.Content[i].Value, catalog.BasePath+"/"))
		*member(get, "summary"), *member(get, "description") = *member(of, "summary"), *member(of, "description")
		content := member(member(member(get, "responses"), "200"), "content")
		if examples := member(of, "examples"); examples != nil { // a file has none
			*member(member(content, "application/json"), "examples") = *examples
		}
	}
}

// insertPaths adds the generated paths behind the endpoints among the paths that are written by hand.
func insertPaths(paths, generated *yaml.Node) {
	at := 0
	for at < len(paths.Content) && strings.HasPrefix(paths.Content[at].Value, catalog.BasePath) {
		at += 2
	}
	paths.Content = slices.Insert(paths.Content, at, generated.Content...)
}

// inline replaces each reference to a schema of messages by the schema. oapi-codegen drops a component that
// only webhooks refer to, and then its client does not compile.
func inline(n, messages *yaml.Node) {
	for i, child := range n.Content {
		if child.Kind == yaml.MappingNode && len(child.Content) == 2 && child.Content[0].Value == "$ref" {
			if schema := member(messages, strings.TrimPrefix(child.Content[1].Value, "#/components/schemas/")); schema != nil {
				n.Content[i], child = schema, schema
			}
		}
		inline(child, messages)
	}
}

// hoist moves a file's schema and its definitions into schemas.
func hoist(schemas *yaml.Node, titles map[string]string, file string, schema *yaml.Node) {
	title, defs := member(schema, "title").Value, member(schema, "$defs")
	removeMembers(schema, "$schema", "title", "$defs")
	if member(schema, "type") != nil { // the common file has only definitions
		titles[path.Base(file)] = title
		appendMember(schemas, title, schema)
	}
	if defs != nil {
		for i := 0; i < len(defs.Content); i += 2 {
			key, schema := defs.Content[i].Value, defs.Content[i+1]
			if known := member(schemas, key); known == nil || !bytes.Equal(appendJSON(nil, known), appendJSON(nil, schema)) { // two files may share one
				appendMember(schemas, key, schema)
			}
		}
	}
}

// redirect points every reference to a file or to a file's definition at the components.
func redirect(n *yaml.Node, titles map[string]string) {
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 0 || n.Content[i-1].Value != "$ref" {
			redirect(child, titles)
			continue
		}
		file, fragment, _ := strings.Cut(child.Value, "#")
		name, isDef := strings.CutPrefix(fragment, "/$defs/")
		if !isDef && file != "" {
			name = titles[path.Base(file)]
		}
		switch {
		case name != "" && (isDef || fragment == ""):
			child.Value = "#/components/schemas/" + name
		case !strings.HasPrefix(child.Value, "#/components/"):
			panic(fmt.Sprintf("BUG: openapi: reference %s (line %d) leads nowhere", child.Value, child.Line))
		}
	}
}

// parse reads an embedded file as it is published, YAML or JSON, as a tree that keeps the order of members.
func parse(file string) *yaml.Node {
	var document yaml.Node
	if err := yaml.Unmarshal(published(file), &document); err != nil {
		panic("BUG: openapi: " + file + ": " + err.Error())
	}
	plain(&document)
	return document.Content[0]
}

// plain drops the layout of the source and the comment at its head, so that the whole bundle has one layout.
func plain(n *yaml.Node) {
	n.Style, n.HeadComment = 0, ""
	for _, child := range n.Content {
		plain(child)
	}
}

// member returns the value of a mapping's key, or nil.
func member(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// appendMember adds a member. Two members of one name are a bug.
func appendMember(mapping *yaml.Node, key string, value *yaml.Node) {
	if member(mapping, key) != nil {
		panic("BUG: openapi: two schemas are named " + key)
	}
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

func removeMembers(mapping *yaml.Node, keys ...string) {
	kept := mapping.Content[:0]
	for i := 0; i < len(mapping.Content); i += 2 {
		if !slices.Contains(keys, mapping.Content[i].Value) {
			kept = append(kept, mapping.Content[i], mapping.Content[i+1])
		}
	}
	mapping.Content = kept
}
