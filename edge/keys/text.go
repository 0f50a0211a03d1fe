package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// The bytes around the records in a document as Encode writes it.
const (
	textBegin = "{\n  \"format\": 1,\n  \"keys\": [\n"
	textEnd   = "\n  ]\n}\n"
	textComma = ",\n"

	recordBegin = "    {\n"
	recordEnd   = "\n    }"
)

// recordTexts yields the texts of the records of a document that is laid out as Encode does,
// or nil last where it is not, as where there is no record.
//
// The texts are not checked. If each of them is one JSON object and no nil was yielded, they
// are the records of the document: put together again, they are its bytes.
func recordTexts(document []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		rest, begins := bytes.CutPrefix(document, []byte(textBegin))
		rest, ends := bytes.CutSuffix(rest, []byte(textEnd))
		if !begins || !ends {
			yield(nil)
			return
		}
		for more := true; more; {
			size := bytes.Index(rest, []byte(recordEnd)) + len(recordEnd)
			if !bytes.HasPrefix(rest, []byte(recordBegin)) || size < len(recordBegin) {
				yield(nil)
				return
			}
			if !yield(rest[:size]) {
				return
			}
			if rest = rest[size:]; len(rest) == 0 {
				return
			}
			if rest, more = bytes.CutPrefix(rest, []byte(textComma)); !more {
				yield(nil)
			}
		}
	}
}

// decodeRecord reads the text of one record.
func decodeRecord(text []byte) (*Record, error) {
	var r Record
	if err := decodeStrictly(text, &r); err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("%q: %w", r.ID, err)
	}
	return &r, nil
}

// decodeStrictly decodes one JSON value without unknown fields.
func decodeStrictly(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the value")
	}
	return nil
}
