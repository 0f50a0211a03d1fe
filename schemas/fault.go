package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// FaultError describes how a body differs from the contract, for people.
type FaultError struct {
	Path string // of the variant or the service
	Err  error  // the faults
}

func (f *FaultError) Error() string { return f.Path + ": " + f.Err.Error() }

// Unwrap returns the faults.
func (f *FaultError) Unwrap() error { return f.Err }

// shownFaults is the largest number of faults of one body that an error names.
const shownFaults = 5

// explain describes the findings of a schema: each member, its value and the allowed values.
func explain(err error) error {
	var found *jsonschema.ValidationError
	if !errors.As(err, &found) {
		return err
	}
	var all []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			all = append(all, place(e.InstanceLocation)+" "+differs(e.ErrorKind))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(found)
	slices.Sort(all) // the library names them in no fixed order
	text := strings.Join(all[:min(len(all), shownFaults)], "; ")
	if more := len(all) - shownFaults; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// place names a member in a body as a program would reach it: data.prediction.winner, data[3].team.
func place(location []string) string {
	var name strings.Builder
	for _, token := range location {
		if n, err := strconv.Atoi(token); err == nil {
			fmt.Fprintf(&name, "[%d]", n)
			continue
		}
		if name.Len() > 0 {
			name.WriteByte('.')
		}
		name.WriteString(token)
	}
	if name.Len() == 0 {
		return "the body"
	}
	return name.String()
}

// differs describes the fault of a member.
func differs(what jsonschema.ErrorKind) string {
	switch k := what.(type) {
	case *kind.Required:
		return "lacks " + list(k.Missing)
	case *kind.AdditionalProperties:
		return "has " + list(k.Properties) + ", which the contract does not know"
	case *kind.Pattern:
		return fmt.Sprintf("is %q, which is not of the form %s", k.Got, k.Want)
	case *kind.Type:
		return fmt.Sprintf("is of the type %s, want %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Enum:
		return fmt.Sprintf("is %s, which is none of %s", value(k.Got), value(k.Want))
	case *kind.Const:
		return fmt.Sprintf("is %s, want %s", value(k.Got), value(k.Want))
	case *kind.Format:
		return fmt.Sprintf("is %s, which is no %s", value(k.Got), k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("has %d characters, want at least %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d rows, want at least %d", k.Got, k.Want)
	case *kind.Minimum:
		return fmt.Sprintf("is %s, want at least %s", number(k.Got), number(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf("is %s, want at most %s", number(k.Got), number(k.Want))
	}
	return "is wrong: " + what.LocalizedString(message.NewPrinter(language.English))
}

// number writes a fraction as a decimal.
func number(n *big.Rat) string {
	decimal, _ := n.Float64()
	return strconv.FormatFloat(decimal, 'f', -1, 64)
}

func value(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
