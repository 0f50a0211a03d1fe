package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// List holds every key ever created, in order of creation. The zero value is an empty list.
type List struct {
	Serial int64 // grows with every change, so that an edge can refuse an older list
	Keys   []StoredKey

	Signature *Signature // nil: the list is not signed
}

// Signature is the note about a list, or the keys that will sign one.
type Signature struct {
	note []byte         // about the list as it was read; nil: it had none
	sum  string         // checksum of the list as it was read
	by   *notes.Signers // that sign the list when it is encoded; nil: the list may not be changed
}

// StoredKey describes one key. Instants are real time, in UTC.
type StoredKey struct {
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

const (
	// MaxSize is the largest encoded list, in bytes: about 300,000 keys.
	MaxSize = 64 << 20
	// roomToRevoke is the part of MaxSize that new keys may not use, so that a full list can still revoke.
	roomToRevoke = 1 << 20
	// maxFaults is the number of faults of one list that are reported.
	maxFaults = 10
)

// ErrFull means that the list has no room for another key.
var ErrFull = errors.New("no key was created, because the list of keys is full; " +
	"gridcast keys prune removes the keys that were revoked or expired long ago")

// ErrDamaged means that the bytes are no list that gridcast wrote.
var ErrDamaged = errors.New("keys document is damaged")

// The list is stored as one JSON object with a line for each key:
//
//	{"format":2,"serial":17,"keys":[
//	{"id":"…","sha256":"…",…},
//	{"id":"…","sha256":"…",…}
//	],"sha256":"<checksum>"}
//
// The checksum is the SHA-256 of all bytes before it. A list in another format or without its checksum is
// refused. A signed list ends in "<checksum>","note":"…"}: a signed note about serial number and checksum.
const (
	Format   = 2
	listHead = `{"format":%d,"serial":%d,"keys":[`
	listTail = `],"sha256":"`
	listEnd  = "\"}\n"
	listNote = `","note":`
)

// Encode returns the stored form of the list. Equal lists have equal bytes.
func (d List) Encode() ([]byte, error) {
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, listHead+"\n", Format, d.Serial)
	for i := range d.Keys {
		line, err := json.Marshal(&d.Keys[i])
		if err != nil {
			return nil, fmt.Errorf("encode keys: %w", err)
		}
		out.Write(line)
		if i < len(d.Keys)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString(listTail)
	sum := checksumOf(out.Bytes(), func() {})
	out.WriteString(sum)
	if d.Signature == nil || d.Signature.by == nil {
		out.WriteString(listEnd)
	} else {
		signed, err := d.Signature.by.Sign(noteLines(d.Serial, sum)...)
		if err != nil {
			return nil, fmt.Errorf("encode keys: %w", err)
		}
		text, _ := json.Marshal(string(signed)) // any text is JSON
		out.WriteString(listNote)
		out.Write(text)
		out.WriteString("}\n")
	}
	if out.Len() > MaxSize {
		return nil, fmt.Errorf("encode keys: %d bytes, the most is %d: gridcast keys prune removes the keys that were revoked or expired long ago", out.Len(), MaxSize)
	}
	return out.Bytes(), nil
}

// sumPiece is the number of bytes that are summed in less than a millisecond.
const sumPiece = 256 << 10

// checksumOf returns the SHA-256 of data in lower-case hex. It calls pause after each piece.
func checksumOf(data []byte, pause func()) string {
	sum := sha256.New()
	for piece := range slices.Chunk(data, sumPiece) {
		sum.Write(piece)
		pause()
	}
	return Hash(sum.Sum(nil)).String()
}

// opened is an encoded list whose format is right.
type opened struct {
	summed []byte // the part that the checksum is of
	lines  []byte // of the keys
	serial int64
	sum    string // the checksum
	note   []byte // nil: it is not signed
}

// open verifies the format and the checksum of an encoded list.
func open(data []byte, pause func()) (opened, error) {
	o, err := parse(data)
	if err == nil && o.sum != checksumOf(o.summed, pause) {
		return o, fmt.Errorf("%w: its checksum is not that of its %d bytes", ErrDamaged, len(data))
	}
	return o, err
}

// parse verifies the format of an encoded list.
func parse(data []byte) (opened, error) {
	if len(data) > MaxSize {
		return opened{}, fmt.Errorf("%d bytes, the most is %d", len(data), MaxSize)
	}
	start, serial, err := readHead(data)
	if err != nil {
		return opened{}, err
	}
	end := bytes.LastIndex(data, []byte(listTail)) // in a line of a key or in a note, its quotes have a backslash
	if end < start || len(data) < end+len(listTail)+2*sha256.Size+len(listEnd) {
		return opened{}, fmt.Errorf("%w: it is cut off after %d bytes", ErrDamaged, len(data))
	}
	sum, rest := data[end+len(listTail):][:2*sha256.Size], data[end+len(listTail)+2*sha256.Size:]
	o := opened{summed: data[:end+len(listTail)], lines: data[start:end], serial: serial, sum: string(sum)}
	if text, signed := bytes.CutPrefix(rest, []byte(listNote)); signed {
		var note string
		text, whole := bytes.CutSuffix(text, []byte("}\n"))
		if err := json.Unmarshal(text, &note); err != nil || !whole {
			return opened{}, fmt.Errorf("%w: its note is cut off after %d bytes", ErrDamaged, len(data))
		}
		o.note = []byte(note)
	} else if string(rest) != listEnd {
		return opened{}, fmt.Errorf("%w: it is cut off after %d bytes", ErrDamaged, len(data))
	}
	return o, nil
}

// readHead reads the first line of an encoded list. It returns the offset of the next line and the serial
// number, which may be wrong in a damaged list and is 0 if the first line is damaged.
func readHead(data []byte) (next int, serial int64, err error) {
	var head struct {
		Format int      `json:"format"`
		Serial int64    `json:"serial"`
		Keys   []string `json:"keys"`
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	err = blob.DecodeJSON(slices.Concat(line, []byte("]}")), &head)
	switch first := fmt.Sprintf(listHead+"\n", Format, head.Serial); {
	case err == nil && head.Format != Format:
		return 0, 0, fmt.Errorf("format %d, this program reads %d", head.Format, Format)
	case !bytes.HasPrefix(data, []byte(first)):
		return 0, 0, fmt.Errorf("%w: its first line is not the one of a list of keys", ErrDamaged)
	default:
		return len(first), head.Serial, nil
	}
}

// Decode reads an encoded list. An unknown field is an error, because it may be a
// restriction that it would not enforce. The error wraps ErrDamaged if the checksum is wrong.
func Decode(data []byte) (List, error) {
	o, err := open(data, func() {})
	if err != nil {
		return List{}, fmt.Errorf("decode keys: %w", err)
	}
	d := List{Serial: o.serial}
	if o.note != nil {
		d.Signature = &Signature{note: o.note, sum: o.sum}
	}
	for line := range bytes.Lines(o.lines) {
		k, err := decodeLine(line)
		if err != nil {
			return List{}, fmt.Errorf("decode keys: key %d: %w", len(d.Keys), err)
		}
		d.Keys = append(d.Keys, *k)
	}
	if err := d.validate(); err != nil {
		return List{}, fmt.Errorf("decode keys: %w", err)
	}
	return d, nil
}

// textOf returns a line without its end. A line ends with a comma if another key follows it.
func textOf(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte(","))
}

// decodeLine reads the line of one key.
func decodeLine(line []byte) (*StoredKey, error) {
	var k StoredKey
	if err := blob.DecodeJSON(textOf(line), &k); err != nil {
		return nil, err
	}
	if err := k.validate(); err != nil {
		return nil, fmt.Errorf("%q: %w", k.ID, err)
	}
	return &k, nil
}

// Find returns the record with the id.
func (d *List) Find(id string) (*StoredKey, error) {
	i := slices.IndexFunc(d.Keys, func(r StoredKey) bool { return r.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w %q; gridcast keys list shows them", ErrNoKey, id)
	}
	return &d.Keys[i], nil
}

func (d *List) validate() error {
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
		if len(errs) >= maxFaults {
			break
		}
	}
	return errors.Join(errs...)
}

func (r *StoredKey) validate() error {
	switch hash, _ := hex.DecodeString(r.SHA256); {
	case len(hash) != len(Hash{}) || hex.EncodeToString(hash) != r.SHA256:
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
		if err := ValidateOrigin(origin); err != nil {
			return err
		}
	}
	return nil
}

// ValidateOrigin accepts the form of a browser's Origin: scheme and host in lower case, a
// port that is not the scheme's default, and no more.
func ValidateOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil, u.Host == "" || u.Scheme+"://"+u.Host != origin:
		return fmt.Errorf("%q is no origin: an origin is https://host[:port]", origin)
	case strings.ToLower(origin) != origin:
		return fmt.Errorf("origin %q has upper-case letters, which no browser sends", origin)
	case u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
		return fmt.Errorf("origin %q names the default port, which no browser sends", origin)
	}
	return nil
}
