// Package ordered reads JSON objects and keeps the order of their members.
package ordered

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Object is a JSON object, its members in the order of the text.
type Object[T any] []Member[T]

// Member is a name and a value of an Object.
type Member[T any] struct {
	Name  string
	Value T
}

// Get returns the value of the first member with the name.
func (o Object[T]) Get(name string) (value T, found bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	return value, false
}

// UnmarshalJSON implements json.Unmarshaler. It accepts only an object.
func (o *Object[T]) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	start, err := dec.Token()
	if err != nil {
		return err
	}
	if start != json.Delim('{') {
		return fmt.Errorf("got %v, want an object", start)
	}
	*o = Object[T]{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		next := Member[T]{Name: fmt.Sprint(name)}
		if err := dec.Decode(&next.Value); err != nil {
			return fmt.Errorf("%s: %w", next.Name, err)
		}
		*o = append(*o, next)
	}
	return nil
}
