package assemble_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
)

// TestFields: every field of a round but its Grand Prix belongs to one block and has a name.
func TestFields(t *testing.T) {
	fields := reflect.TypeFor[season.Round]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Name == "GrandPrix" || field.Name == "AssumedHour" { // which follows from the other facts
			continue
		}
		var before, after season.Round
		value := reflect.ValueOf(&after).Elem().Field(i)
		switch value.Interface().(type) {
		case int:
			value.SetInt(1)
		case float64:
			value.SetFloat(1)
		case string, season.CircuitID:
			value.SetString("x")
		case bool:
			value.SetBool(true)
		case time.Time:
			value.Set(reflect.ValueOf(time.Unix(0, 0).UTC()))
		case [4][]season.TimedLap:
			value.Index(3).Set(reflect.ValueOf([]season.TimedLap{{}}))
		default:
			value.Set(reflect.MakeSlice(field.Type, 1, 1))
		}
		name := strings.ToLower(strings.TrimSpace(spaced(field.Name)))
		if got := assemble.ChangedFields(&before, &after); !slices.Equal(got, []string{name}) {
			t.Errorf("a round with another %s: changed fields are %q, want %q", field.Name, got, name)
		}
		var has []assemble.Block
		for _, b := range assemble.Blocks() {
			if assemble.Has(b, &after) {
				has = append(has, b)
				part := assemble.Part(b, &after)
				if assemble.Same(b, &before, &after) || !assemble.Same(b, &part, &after) || !assemble.Same(b, &after, &before) {
					t.Errorf("a round with another %s: Same and Part do not see it in block %s", field.Name, b)
				}
			}
		}
		if len(has) != 1 {
			t.Errorf("a round with another %s has blocks %v, want one", field.Name, has)
		}
	}
}

// spaced puts a space before each capital letter.
func spaced(name string) string {
	var b strings.Builder
	for _, r := range name {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}
