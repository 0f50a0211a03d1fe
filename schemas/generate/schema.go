package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gridcast/schemas/wire"
)

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		name, _ := wire.Marshal(m.name) // every string has a spelling in JSON
		value, err := wire.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	if len(o) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// get returns the value of a member, or nil.
func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// schemaFiles adds the schema file of every body.
func schemaFiles(files map[string][]byte, t *types) error {
	for _, title := range t.ordering {
		name, ok := strings.CutSuffix(title, "Body")
		body, isGeneric := t.specs[title].Type.(*ast.IndexExpr)
		if !ok || !isGeneric {
			continue
		}
		docs := paragraphs(t.docs[title], title)
		w := writer{types: t}
		w.data(body.Index, docs)
		if w.err != nil {
			return fmt.Errorf("%s: %w", title, w.err)
		}
		if w.shared { // another body has the file
			continue
		}
		text, err := json.MarshalIndent(object{
			{"$schema", "https://json-schema.org/draft/2020-12/schema"},
			{"title", title},
			{"description", docs[0]},
			{"type", "object"},
			{"additionalProperties", false},
			{"required", []string{"ok", "data", "meta"}},
			{"properties", object{
				{"ok", object{{"type", "boolean"}, {"const", true}, {"description", "Whether the request succeeded."}}},
				{"data", w.content},
				{"meta", object{{"$ref", commonDefs + "Meta"}}},
			}},
			{"$defs", w.defs},
		}, "", "  ")
		if err != nil {
			return fmt.Errorf("%s: %w", title, err)
		}
		files[fileOf(name)] = append(unescape(text), '\n')
	}
	return nil
}

// unescape undoes the escapes for HTML, which json.MarshalIndent adds.
func unescape(text []byte) []byte {
	for escape, char := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		text = bytes.ReplaceAll(text, []byte(escape), []byte(char))
	}
	return text
}

// fileOf returns the schema file of a body: v1/title-odds.schema.json of TitleOdds.
func fileOf(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return "v1/" + b.String() + ".schema.json"
}

const commonDefs = "common.schema.json#/$defs/"

// writer makes one schema file.
type writer struct {
	*types
	content object // of data
	defs    object
	shared  bool // the data's schema has the name of an earlier struct
	err     error
}

// data makes the schema of the data, of a struct or of a list of structs, and those of all structs in it.
func (w *writer) data(typ ast.Expr, docs []string) {
	list, isList := typ.(*ast.ArrayType)
	if isList {
		typ = list.Elt
	}
	name := typ.(*ast.Ident).Name
	w.shared = w.structsOf(w.schemaName(name))[0] != name
	reference := object{{"$ref", "#/$defs/" + w.schemaName(name)}}
	if w.content = reference; isList {
		w.content = object{{"type", "array"}, {"items", reference}}
	}
	if len(docs) > 1 {
		w.content = append(w.content, member{"description", docs[1]})
	}
	w.define(w.schemaName(name))
}

// schemaName returns the name of a struct's schema: its own, or that of its directive.
func (t *types) schemaName(name string) string {
	for _, line := range directives(t.docs[name]) {
		if other, ok := strings.CutPrefix(line, "name "); ok {
			return other
		}
	}
	return name
}

// structsOf returns the structs that share a schema, in the order of the text.
func (t *types) structsOf(schema string) []string {
	return slices.DeleteFunc(slices.Clone(t.ordering), func(name string) bool { return t.schemaName(name) != schema })
}

// define adds the definition of a struct, and those of the structs in its fields.
func (w *writer) define(schema string) {
	if w.defs.get(schema) != nil {
		return
	}
	at := len(w.defs)
	w.defs = append(w.defs, member{schema, object{}}) // before those of its fields
	w.defs[at].value = w.definition(schema)
}

// definition makes the schema of a struct. A field that not every struct of the schema has is optional; where one has
// them, it has all that are required there.
func (w *writer) definition(schema string) object {
	names := w.structsOf(schema)
	doc := w.docs[names[0]]
	o := object{{"description", paragraphs(doc, names[0])[0]}, {"type", "object"}, {"additionalProperties", false}}
	var properties object
	required := map[string]int{}
	for _, name := range names {
		at := 0 // a further struct's new fields follow the fields that it shares
		for _, f := range w.specs[name].Type.(*ast.StructType).Fields.List {
			tag, err := tagOf(f)
			if err != nil {
				w.err = fmt.Errorf("struct %s: %w", name, err)
				continue
			}
			key, rest, _ := strings.Cut(tag.Get("json"), ",")
			if rest != "omitzero" {
				required[key]++
			}
			if i := slices.IndexFunc(properties, func(m member) bool { return m.name == key }); i >= 0 {
				at = i + 1
				continue
			}
			properties = slices.Insert(properties, at, member{key, w.property(f, tag, rest == "omitzero")})
			at++
		}
	}
	var always, together []string
	for _, p := range properties {
		switch required[p.name] {
		case 0:
		case len(names):
			always = append(always, p.name)
		default:
			together = append(together, p.name)
		}
	}
	if always != nil {
		o = append(o, member{"required", always})
	}
	if together != nil {
		dependent := append(make(object, 0, len(together)), member{together[0], together[1:]})
		for _, name := range together[1:] {
			dependent = append(dependent, member{name, together[:1]})
		}
		o = append(o, member{"dependentRequired", dependent})
	}
	o = append(o, member{"properties", properties})
	return append(o, conditions(doc, properties)...)
}

// keywords are the names of a field's tags.
var keywords = []string{"json", "enum", "format", "pattern", "minimum", "maximum", "minItems", "maxItems", "type"}

var keyword = regexp.MustCompile(`(\w+):"(?:[^"\\]|\\.)*"`)

// tagOf returns the tag of a field. The error names a field that has none, and a keyword that no schema has.
func tagOf(f *ast.Field) (reflect.StructTag, error) {
	if f.Tag == nil || len(f.Names) != 1 {
		return "", fmt.Errorf("each field needs a line and a json tag of its own: %v", f.Names)
	}
	text, _ := strconv.Unquote(f.Tag.Value) // the parser has accepted it
	for _, m := range keyword.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(keywords, m[1]) {
			return "", fmt.Errorf("field %s: unknown tag %s; allowed: %s", f.Names[0], m[1], strings.Join(keywords, ", "))
		}
	}
	return reflect.StructTag(text), nil
}

// property makes the schema of a field.
func (w *writer) property(f *ast.Field, tag reflect.StructTag, optional bool) object {
	typ, least := f.Type, 0
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	} else if optional {
		least = 1
	}
	var o object
	if list, ok := typ.(*ast.ArrayType); ok {
		o = append(object{{"type", "array"}}, limits(tag, "minItems", least, "maxItems")...)
		o = append(o, member{"items", w.value(list.Elt, "", 0, false)})
	} else {
		o = w.value(typ, tag, least, optional)
	}
	if f.Doc != nil {
		return append(o, member{"description", paragraphs(f.Doc, "")[0]})
	}
	if name, ok := typ.(*ast.Ident); ok && !w.defined[name.Name] && w.specs[name.Name] != nil && w.specs[name.Name].Comment != nil {
		return append(o, member{"description", strings.TrimSpace(w.specs[name.Name].Comment.Text())})
	}
	if o.get("$ref") == nil {
		w.err = fmt.Errorf("field %s needs a comment above it: clients read it", f.Names[0])
	}
	return o
}

// value makes the schema of a value without its description. A number is at least least.
func (w *writer) value(typ ast.Expr, tag reflect.StructTag, least int, optional bool) object {
	name, ok := typ.(*ast.Ident)
	if !ok {
		w.err = fmt.Errorf("no schema for the type %T", typ)
		return nil
	}
	kind := name.Name
	if tag.Get("type") != "" {
		kind = "float64" // the one use of the tag
	}
	if w.defined[kind] {
		return object{{"$ref", commonDefs + kind}}
	}
	if spec := w.specs[kind]; spec != nil {
		switch _, isStruct := spec.Type.(*ast.StructType); {
		case isStruct:
			w.define(w.schemaName(kind))
			return object{{"$ref", "#/$defs/" + w.schemaName(kind)}}
		case w.values[kind] != nil && tag.Get("enum") == "":
			return object{{"type", "string"}, {"enum", w.values[kind]}}
		case kind == "Thousandths":
			kind = "float64"
		default:
			for _, line := range directives(w.docs[kind]) {
				keyword, value, _ := strings.Cut(line, " ")
				if !slices.Contains(keywords, keyword) {
					w.err = fmt.Errorf("type %s: unknown directive //schema:%s; allowed: %s", kind, keyword, strings.Join(keywords, ", "))
				}
				tag += reflect.StructTag(" " + keyword + ":" + strconv.Quote(value))
			}
			return w.value(spec.Type, tag, least, optional)
		}
	}
	switch kind {
	case "string":
		return texts(tag)
	case "int", "int64":
		return append(object{{"type", "integer"}}, limits(tag, "minimum", least, "maximum")...)
	case "float64":
		return append(object{{"type", "number"}}, limits(tag, "minimum", 0, "maximum")...)
	case "bool":
		if optional {
			return object{{"type", "boolean"}, {"const", true}}
		}
		return object{{"type", "boolean"}}
	}
	w.err = fmt.Errorf("no schema for the type %s", kind)
	return nil
}

// texts makes the schema of a string.
func texts(tag reflect.StructTag) object {
	o := object{{"type", "string"}}
	if values := tag.Get("enum"); values != "" {
		return append(o, member{"enum", strings.Split(values, ",")})
	}
	for _, keyword := range []string{"format", "pattern"} {
		if value := tag.Get(keyword); value != "" {
			o = append(o, member{keyword, value})
		}
	}
	if len(o) == 1 {
		o = append(o, member{"minLength", 1})
	}
	return o
}

// limits returns the lower and the upper limit of a number or a list. Without a tag a number is at least least, and so
// is a list if least is not 0.
func limits(tag reflect.StructTag, lower string, least int, upper string) object {
	var o object
	if value := tag.Get(lower); value != "none" && value != "" {
		least, _ = strconv.Atoi(value)
	}
	if tag.Get(lower) != "none" && (least != 0 || lower == "minimum") {
		o = append(o, member{lower, least})
	}
	if value, err := strconv.Atoi(tag.Get(upper)); err == nil {
		o = append(o, member{upper, value})
	}
	return o
}

// conditions makes the rules of the directives when and else: which fields a value of a field needs (+) and forbids (-).
// The next rule is about all other values.
func conditions(doc *ast.CommentGroup, properties object) object {
	var lines []string
	for _, line := range directives(doc) {
		if strings.HasPrefix(line, "when ") || strings.HasPrefix(line, "else ") {
			lines = append(lines, line)
		}
	}
	if len(lines) < 2 {
		return nil
	}
	head, then, _ := strings.Cut(strings.TrimPrefix(lines[0], "when "), ": ")
	field, list, _ := strings.Cut(head, "=")
	is := object{{"const", list}}
	if values := strings.Split(list, ","); len(values) > 1 {
		is = object{{"enum", values}}
	}
	rest := &ast.CommentGroup{}
	for _, line := range lines[2:] {
		rest.List = append(rest.List, &ast.Comment{Text: "//schema:" + line})
	}
	return object{
		{"if", object{{"required", []string{field}}, {"properties", object{{field, is}}}}},
		{"then", presence(then, properties)},
		{"else", append(presence(strings.TrimPrefix(lines[1], "else "), properties), conditions(rest, properties)...)},
	}
}

// presence makes the rule for some fields: +NAME is there, -NAME is not.
func presence(signs string, properties object) object {
	var required []string
	var rules object
	for sign := range strings.FieldsSeq(signs) {
		name := sign[1:]
		if sign[0] == '-' {
			rules = append(rules, member{name, object{{"type", "null"}, {"description", "Always absent: the whole object allows no null here."}}})
			continue
		}
		required = append(required, name)
		schema, _ := properties.get(name).(object)
		if schema[0].name == "$ref" {
			schema = schema[:1]
		}
		rules = append(rules, member{name, schema})
	}
	if required == nil {
		return object{{"properties", rules}}
	}
	return object{{"required", required}, {"properties", rules}}
}
