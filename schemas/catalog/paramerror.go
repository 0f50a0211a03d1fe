package catalog

import (
	"fmt"
	"strconv"
	"strings"
)

// ParamError is the reason for refusing a query. Its text is the public message of a 422.
type ParamError struct {
	Param   string // the parameter's name, decoded; clipped, and quoted if it is not a plain word
	Value   string // the value, decoded; clipped
	Problem string // the fault of the value
	Allowed string // the allowed values
}

// Error names the parameter, the value and the allowed values. It clips long text and escapes
// unprintable text, because a stranger sent it.
func (e *ParamError) Error() string {
	return fmt.Sprintf("bad value %q for parameter %s: %s; allowed: %s",
		e.Value, e.Param, e.Problem, e.Allowed)
}

// clipAt is the number of bytes of a name or value that a message repeats.
const clipAt = 40

// malformed is the error for a pair with bad percent-encoding, in its name or its value.
func malformed(p pair) *ParamError {
	name := text(p.name)
	if name == "" || strings.Trim(name, "_abcdefghijklmnopqrstuvwxyz") != "" {
		name = strconv.Quote(name)
	}
	return &ParamError{
		Param:   name,
		Value:   text(p.value),
		Problem: "malformed percent-encoding",
		Allowed: "% followed by two hexadecimal digits, in names and values",
	}
}

// text decodes for a message: clipped, and valid UTF-8.
func text(encoded []byte) string {
	buf := make([]byte, 0, clipAt)
	decoded, fits := decode(buf, encoded)
	s := strings.ToValidUTF8(string(decoded), "\uFFFD")
	if !fits {
		s = strings.TrimSuffix(s, "\uFFFD") + "…" // the cut may have split a character
	}
	return s
}
