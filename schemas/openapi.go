package schemas

import (
	"bytes"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"

	"gridcast/schemas/wire"
)

// OpenAPIYAML returns the OpenAPI document as YAML, self-contained: the schemas are part of
// it. The same sources give the same bytes. The result must not be changed.
func OpenAPIYAML() []byte { return openAPIYAML() }

// OpenAPIJSON returns the document of OpenAPIYAML as JSON, its members in the same order. The
// result must not be changed.
func OpenAPIJSON() []byte { return openAPIJSON() }

var openAPIYAML = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(bundle()); err != nil {
		panic("BUG: openapi as YAML: " + err.Error())
	}
	return b.Bytes()
})

var openAPIJSON = sync.OnceValue(func() []byte {
	return appendJSON(nil, bundle())
})

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
