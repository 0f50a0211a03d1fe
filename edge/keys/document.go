package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Document is every key ever created, in order of creation. The zero value is an empty
// document.
type Document struct {
	// Serial grows with every change, so that an older document is told from a newer one. 0:
	// the document was written by a program that had no serial numbers.
	Serial int64
	Keys   []Record
}

// Record is one key. Instants are real time, in UTC.
type Record struct {
	ID      string    `json:"id"`               // the first 12 hex digits of SHA256
	SHA256  string    `json:"sha256"`           // lower-case hex, of the whole key
	Prefix  string    `json:"prefix"`           // the key's first characters, to recognise it by
	Name    string    `json:"name"`             // the client
	Tier    string    `json:"tier"`             // a name from the configured [Tiers]
	Created time.Time `json:"created"`          // in whole seconds
	Expires time.Time `json:"expires,omitzero"` // refused from this instant on
	Revoked time.Time `json:"revoked,omitzero"` // refused, at once
	Origins []string  `json:"origins,omitzero"` // a browser's Origin must be among them, unless empty
}

// MaxSize is the most that an encoded document may measure, in bytes: about 300,000 keys.
const MaxSize = 64 << 20

// ErrDamaged says that the bytes are not those of a document that was written.
var ErrDamaged = errors.New("keys document is damaged")

// A document is stored as one JSON object with a line for each record:
//
//	{"format":1,"keys":[
//	{"id":"…","sha256":"…",…},
//	{"id":"…","sha256":"…",…},
//	{"id":"…","sha256":"<checksum>","prefix":"17","name":"checksum of this document","tier":"checksum",…}
//	]}
//
// The last record is the seal: prefix is the document's serial number, sha256 is the SHA-256 of
// the bytes before this line followed by that number. The seal is a record, revoked since 1970,
// because programs of before refuse a document with a field that they do not know; they take
// the seal for a key that nobody can use.
//
// A document in any other layout, written by such a program or by hand, is accepted without a
// checksum. It is stored in this layout at its next change.
const (
	format        = 1
	documentBegin = "{\"format\":1,\"keys\":[\n"
	documentEnd   = "\n]}\n"
	recordEnd     = ",\n"
	sealTier      = "checksum"
	sealName      = "checksum of this document"
)

// Encode returns the document as it is stored. The same document has the same bytes.
func (d *Document) Encode() ([]byte, error) {
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	var out bytes.Buffer
	out.WriteString(documentBegin)
	for i := range d.Keys {
		line, err := json.Marshal(&d.Keys[i])
		if err != nil {
			return nil, fmt.Errorf("encode keys: %w", err)
		}
		out.Write(line)
		out.WriteString(recordEnd)
	}
	out.Write(sealLine(out.Bytes(), d.Serial, func() {}))
	out.WriteString(documentEnd)
	if out.Len() > MaxSize {
		return nil, fmt.Errorf("encode keys: %d bytes, the most is %d: remove keys that were revoked long ago", out.Len(), MaxSize)
	}
	return out.Bytes(), nil
}

// sealLine returns the seal of a document that has these bytes before it. It calls pause
// between pieces of work of less than a millisecond.
func sealLine(before []byte, serial int64, pause func()) []byte {
	number := strconv.FormatInt(serial, 10)
	sum := sha256.New()
	for piece := range slices.Chunk(before, 1<<18) {
		sum.Write(piece)
		pause()
	}
	sum.Write([]byte(number))
	hash := Hash(sum.Sum(nil)).String()
	longAgo := time.Unix(0, 0).UTC()
	line, err := json.Marshal(Record{
		ID: hash[:idLen], SHA256: hash, Prefix: number, Name: sealName, Tier: sealTier, Created: longAgo, Revoked: longAgo,
	})
	if err != nil {
		panic("BUG: encode the seal of keys: " + err.Error())
	}
	return line
}

// unseal returns the lines of the records of a document in the layout of Encode, whose checksum
// it has verified, and the serial number. A document in another layout is not sealed.
func unseal(data []byte, pause func()) (lines []byte, serial int64, sealed bool, err error) {
	if !bytes.HasPrefix(data, []byte(documentBegin)) {
		return nil, 0, false, nil
	}
	body, whole := bytes.CutSuffix(data, []byte(documentEnd))
	if !whole {
		return nil, 0, false, fmt.Errorf("%w: it is cut off after %d bytes", ErrDamaged, len(data))
	}
	last := bytes.LastIndexByte(body, '\n') + 1
	seal, err := decodeRecord(body[last:])
	if err != nil {
		return nil, 0, false, fmt.Errorf("%w: its last record is no checksum: %w", ErrDamaged, err)
	}
	serial, err = strconv.ParseInt(seal.Prefix, 10, 64)
	if err != nil || !bytes.Equal(body[last:], sealLine(data[:last], serial, pause)) {
		return nil, 0, false, fmt.Errorf("%w: its checksum is not that of its %d bytes", ErrDamaged, len(data))
	}
	return data[len(documentBegin):last], serial, true, nil
}

// Decode reads a document of any layout. Anything unexpected is an error: a field that this
// program does not know may be a restriction that it would not enforce. The error wraps
// ErrDamaged if the checksum is wrong.
func Decode(data []byte) (*Document, error) {
	lines, serial, sealed, err := unseal(data, func() {})
	if err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	if !sealed {
		return decodeAny(data)
	}
	d := &Document{Serial: serial}
	for line := range bytes.Lines(lines) {
		r, err := decodeLine(line)
		if err != nil {
			return nil, fmt.Errorf("decode keys: key %d: %w", len(d.Keys), err)
		}
		d.Keys = append(d.Keys, *r)
	}
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	return d, nil
}

// decodeAny reads a document of any layout, and does not look at its checksum.
func decodeAny(data []byte) (*Document, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("decode keys: %d bytes, the most is %d", len(data), MaxSize)
	}
	var stored struct {
		Format int      `json:"format"`
		Keys   []Record `json:"keys"`
	}
	if err := decodeStrictly(data, &stored); err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	if stored.Format != format {
		return nil, fmt.Errorf("decode keys: format %d, this program reads %d", stored.Format, format)
	}
	d := &Document{Keys: stored.Keys}
	// A program of before keeps the seal among the records, in any place.
	d.Keys = slices.DeleteFunc(d.Keys, func(r Record) bool {
		if r.Tier != sealTier {
			return false
		}
		if serial, err := strconv.ParseInt(r.Prefix, 10, 64); err == nil {
			d.Serial = max(d.Serial, serial)
		}
		return true
	})
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	return d, nil
}

// decodeLine reads the line of one record of a sealed document.
func decodeLine(line []byte) (*Record, error) {
	text, whole := bytes.CutSuffix(line, []byte(recordEnd))
	if !whole {
		return nil, fmt.Errorf("%w: its line does not end with a comma", ErrDamaged)
	}
	r, err := decodeRecord(text)
	if err == nil && r.Tier == sealTier {
		return nil, fmt.Errorf("%w: a checksum among the keys", ErrDamaged)
	}
	return r, err
}

// decodeRecord reads one record.
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

// Find returns the record with the id.
func (d *Document) Find(id string) (*Record, error) {
	i := slices.IndexFunc(d.Keys, func(r Record) bool { return r.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w %q", ErrNoKey, id)
	}
	return &d.Keys[i], nil
}

func (d *Document) validate() error {
	ids := make(map[string]bool, len(d.Keys))
	var errs []error
	for i, r := range d.Keys {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("key %d (%q): %w", i, r.ID, err))
		}
		if ids[r.ID] {
			errs = append(errs, fmt.Errorf("key %d (%q): id is taken", i, r.ID))
		}
		ids[r.ID] = true
	}
	return errors.Join(errs...)
}

func (r *Record) validate() error {
	switch hash, err := hex.DecodeString(r.SHA256); {
	case err != nil || len(hash) != len(Hash{}) || strings.ToLower(r.SHA256) != r.SHA256:
		return fmt.Errorf("sha256 %q is not 64 lower-case hex digits", r.SHA256)
	case r.ID != r.SHA256[:idLen]:
		return fmt.Errorf("id is not the first %d digits of sha256 %s", idLen, r.SHA256)
	case strings.TrimSpace(r.Name) == "":
		return errors.New("name is empty")
	case r.Tier == "":
		return errors.New("tier is empty")
	case r.Created.IsZero():
		return errors.New("created is missing")
	}
	for _, origin := range r.Origins {
		if err := validateOrigin(origin); err != nil {
			return err
		}
	}
	return nil
}

// validateOrigin accepts what a browser sends as Origin: scheme and host in lower case, a
// port that is not the scheme's default, nothing else.
func validateOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil:
		return fmt.Errorf("origin %q: %w", origin, err)
	case u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin:
		return fmt.Errorf("origin %q is not of the form https://host or https://host:port", origin)
	case strings.ToLower(origin) != origin:
		return fmt.Errorf("origin %q has upper-case letters, which no browser sends", origin)
	case u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
		return fmt.Errorf("origin %q names the default port, which no browser sends", origin)
	}
	return nil
}
