package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// shownFaults is the largest number of faults of one body that an error names.
const shownFaults = 5

// check compares a body, which is valid JSON, with the schema. The error names each member, its value and the allowed
// values.
func (s *schema) check(body []byte) error {
	w := walk{body: body}
	w.value(s, w.space(0))
	if len(w.faults) == 0 {
		return nil
	}
	slices.Sort(w.faults)
	text := strings.Join(w.faults[:min(len(w.faults), shownFaults)], "; ")
	if more := len(w.faults) - shownFaults; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// walk reads a body once, from its first byte to its last, and notes the faults.
type walk struct {
	body   []byte
	place  []step // of the value that is read
	faults []string
}

// step leads from a value to a member or an element of it.
type step struct {
	name  []byte // nil: an element
	index int
}

// kinds are the types of values by their first byte. All others are numbers.
var kinds = [256]string{'{': "object", '[': "array", '"': "string", 't': "boolean", 'f': "boolean", 'n': "null"}

// anything is the schema of a member without one.
var anything schema

// value reads the value at an index and returns the index behind it.
func (w *walk) value(s *schema, i int) (end int) {
	for s.target != nil {
		s = s.target
	}
	kind := kinds[w.body[i]]
	switch kind {
	case "object":
		end = w.object(s, i)
	case "array":
		end = w.array(s, i)
	case "string":
		end = w.text(i)
	default:
		for end = i; end < len(w.body) && !strings.ContainsRune(",]} \n\r\t", rune(w.body[end])); {
			end++
		}
	}
	raw := w.body[i:end]
	switch kind {
	case "string":
		w.checkText(s, raw)
	case "":
		kind = "number"
		w.checkNumber(s, raw)
	}
	if s.Type != "" && s.Type != kind && (s.Type != "integer" || kind != "number") {
		w.fault("is of the type %s, want %s", kind, s.Type)
	}
	same := func(allowed json.RawMessage) bool { return string(allowed) == string(raw) }
	if s.Const != nil && !same(s.Const) {
		w.fault("is %s, want %s", raw, s.Const)
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, same) {
		text, _ := json.Marshal(s.Enum) // it was JSON before
		w.fault("is %s, which is none of %s", raw, text)
	}
	if s.If != nil {
		w.conditional(s, i)
	}
	return end
}

// conditional checks the value at an index by Then if it satisfies If, and by Else if it does not.
func (w *walk) conditional(s *schema, i int) {
	before := w.faults
	w.faults = nil
	w.value(s.If, i)
	rule := s.Then
	if w.faults != nil {
		rule = s.Else
	}
	w.faults = before
	if rule != nil {
		w.value(rule, i)
	}
}

func (w *walk) object(s *schema, i int) int {
	var seen uint64
	var unknown []string
	for i = w.space(i + 1); w.body[i] != '}'; i = w.space(i) {
		if w.body[i] == ',' {
			i = w.space(i + 1)
		}
		end := w.text(i)
		name := unquoted(w.body[i:end])
		property := s.Properties[string(name)]
		seen |= s.members[string(name)]
		if property == nil {
			if property = &anything; s.Additional != nil && !*s.Additional {
				unknown = append(unknown, string(name))
			}
		}
		i = w.space(w.space(end) + 1) // behind the colon
		w.place = append(w.place, step{name: name})
		i = w.value(property, i)
		w.place = w.place[:len(w.place)-1]
	}
	missing := func(name string) bool { return seen&s.members[name] == 0 }
	w.lacks(s.Required, missing)
	for name, required := range s.DependentRequired {
		if !missing(name) {
			w.lacks(required, missing)
		}
	}
	if len(unknown) > 0 {
		w.fault("has %s, which the contract does not know", list(unknown))
	}
	return i + 1
}

func (w *walk) lacks(required []string, missing func(string) bool) {
	if slices.ContainsFunc(required, missing) {
		w.fault("lacks %s", list(slices.DeleteFunc(slices.Clone(required), func(name string) bool { return !missing(name) })))
	}
}

func (w *walk) array(s *schema, i int) int {
	items, n := s.Items, 0
	if items == nil {
		items = &anything
	}
	for i = w.space(i + 1); w.body[i] != ']'; i = w.space(i) {
		if w.body[i] == ',' {
			i = w.space(i + 1)
		}
		w.place = append(w.place, step{index: n})
		i = w.value(items, i)
		w.place = w.place[:len(w.place)-1]
		n++
	}
	if n < s.MinItems {
		w.fault("has %d rows, want at least %d", n, s.MinItems)
	}
	if s.MaxItems != nil && n > *s.MaxItems {
		w.fault("has %d rows, want at most %d", n, *s.MaxItems)
	}
	return i + 1
}

func (w *walk) checkText(s *schema, raw []byte) {
	text := unquoted(raw)
	if s.MinLength > 0 && utf8.RuneCount(text) < s.MinLength {
		w.fault("has %d characters, want at least %d", utf8.RuneCount(text), s.MinLength)
	}
	if s.pattern != nil && !s.pattern.Match(text) {
		w.fault("is %q, which is not of the form %s", text, s.Pattern)
	}
	if s.format != nil && !s.format(string(text)) {
		w.fault("is %s, which is no %s", raw, s.Format)
	}
}

func (w *walk) checkNumber(s *schema, raw []byte) {
	if s.Type == "integer" && !whole(string(raw)) {
		w.fault("is of the type number, want integer")
	}
	if s.Minimum != "" && less(string(raw), string(s.Minimum)) {
		w.fault("is %s, want at least %s", raw, s.Minimum)
	}
	if s.Maximum != "" && less(string(s.Maximum), string(raw)) {
		w.fault("is %s, want at most %s", raw, s.Maximum)
	}
}

func whole(number string) bool {
	if _, err := strconv.ParseInt(number, 10, 64); err == nil {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && f == math.Trunc(f)
}

// less compares integers exactly, because the largest session key has more digits than a float64.
func less(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX == nil && errY == nil {
		return x < y
	}
	f, _ := strconv.ParseFloat(a, 64) // beyond its range it is infinite
	g, _ := strconv.ParseFloat(b, 64)
	return f < g
}

// space returns the index of the first byte that is no white space.
func (w *walk) space(i int) int {
	for i < len(w.body) && (w.body[i] == ' ' || w.body[i] == '\n' || w.body[i] == '\r' || w.body[i] == '\t') {
		i++
	}
	return i
}

// text returns the index behind a string.
func (w *walk) text(i int) int {
	for i++; w.body[i] != '"'; i++ {
		if w.body[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// unquoted returns the content of a string.
func unquoted(raw []byte) []byte {
	if !slices.Contains(raw, '\\') {
		return raw[1 : len(raw)-1]
	}
	var text string
	_ = json.Unmarshal(raw, &text) // the body is valid
	return []byte(text)
}

// fault notes a fault of the value that is read. It names the value as a program would reach it:
// data.prediction.winner, data[3].team.
func (w *walk) fault(format string, values ...any) {
	var name strings.Builder
	for i, s := range w.place {
		switch {
		case s.name == nil:
			fmt.Fprintf(&name, "[%d]", s.index)
		case i > 0:
			name.WriteString("." + string(s.name))
		default:
			name.Write(s.name)
		}
	}
	if name.Len() == 0 {
		name.WriteString("the body")
	}
	w.faults = append(w.faults, name.String()+" "+fmt.Sprintf(format, values...))
}

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
