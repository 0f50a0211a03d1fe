package ordered_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/schemas/ordered"
)

func TestObject(t *testing.T) {
	o := must.JSON[ordered.Object[ordered.Object[int]]](t, []byte(` {"b":{"z":1,"a":2},"a":{}} `))
	want := ordered.Object[ordered.Object[int]]{
		{Name: "b", Value: ordered.Object[int]{{Name: "z", Value: 1}, {Name: "a", Value: 2}}},
		{Name: "a", Value: ordered.Object[int]{}},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Error(diff)
	}
	b, ok := o.Get("b")
	must.Hold(t, ok && len(b) == 2, "Get(b): got %v, %t", b, ok)
	if c, ok := o.Get("c"); ok {
		t.Errorf("Get(c): got %v, want nothing", c)
	}
}

func TestObjectErrors(t *testing.T) {
	for text, want := range map[string]string{
		`[1]`: "got [, want an object", `{"a":"x"}`: "a: json: cannot unmarshal string into Go value of type int", `{"a":1`: "unexpected end of JSON input",
	} {
		var o ordered.Object[int]
		must.Equal(t, text, want, fmt.Sprint(json.Unmarshal([]byte(text), &o)))
	}
}
