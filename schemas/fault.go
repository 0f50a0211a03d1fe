package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// shownFaults is the largest number of faults of one body that an error names.
const shownFaults = 5

// check compares a body with a schema. The error names each member, its value and the allowed values.
func check(s *jsonschema.Schema, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	var invalid *jsonschema.ValidationError
	if err := s.Validate(value); !errors.As(err, &invalid) {
		return err
	}
	faults := leaves(invalid)
	slices.Sort(faults)
	text := strings.Join(faults[:min(len(faults), shownFaults)], "; ")
	if more := len(faults) - shownFaults; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// leaves returns the faults without causes below e, in the library's words.
func leaves(e *jsonschema.ValidationError) (faults []string) {
	for _, cause := range e.Causes {
		faults = append(faults, leaves(cause)...)
	}
	if len(e.Causes) > 0 {
		return faults
	}
	text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	switch k := e.ErrorKind.(type) { // the library's words for these lack the value
	case *kind.Const:
		text = "is " + spelled(k.Got) + ": " + text
	case *kind.Enum:
		text = "is " + spelled(k.Got) + ": " + text
	}
	return []string{dotted(e.InstanceLocation) + ": " + text}
}

func spelled(v any) string {
	text, _ := json.Marshal(v) // it was JSON before
	return string(text)
}

// dotted names a value as a program would reach it: data.prediction.winner, data[3].team.
func dotted(place []string) string {
	var name strings.Builder
	for _, step := range place {
		if _, err := strconv.Atoi(step); err == nil {
			name.WriteString("[" + step + "]")
			continue
		}
		if name.Len() > 0 {
			name.WriteByte('.')
		}
		name.WriteString(step)
	}
	if name.Len() == 0 {
		return "the body"
	}
	return name.String()
}
