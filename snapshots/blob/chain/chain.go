// Package chain keeps an append-only record in a blob.Store: numbered files, each created once
// and naming the SHA-256 of the file before. Anyone who noted one hash can tell later
// whether anything up to there was rewritten. The content beyond the link belongs to the
// packages that fold a record: the ledger, the audit log.
//
// The keys are PREFIX00000001.json, PREFIX00000002.json and so on without a gap. The number of
// a file never depends on a listing: the next one goes under the first number that has none, and
// Create decides between writers that want it at once. Files are canonical JSON that begins with
// its link, {"seq":2,"previous":"<hash of file 1>", so equal records have equal bytes and every
// changed byte shows, at the latest in the file after it.
//
// A Chain holds no state but its name: it is safe for concurrent use by any number of
// goroutines and processes.
package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// Last is the highest number that fits the width of a key.
const Last = 99_999_999

// parallelReads is the number of files that are fetched at a time.
const parallelReads = 16

// Chain names the place of the files.
type Chain struct {
	Store  blob.Store
	Prefix string // of every key, with the slash at its end: "ledger/"
}

// Head identifies the state of a chain: its last file. The zero Head is that of an empty chain.
type Head struct {
	Seq  int64  `json:"seq"`  // 0: there is no file
	Hash string `json:"hash"` // lower-case hex SHA-256 of the file; empty if there is none
}

// Next is the link with which the file after the head begins.
func (h Head) Next() Link { return Link{h.Seq + 1, h.Hash} }

// Link begins every file.
type Link struct {
	Seq      int64  `json:"seq"`      // 1 for the first
	Previous string `json:"previous"` // lower-case hex SHA-256 of the file before; empty in the first
}

// File is the object of a number.
type File struct {
	Seq  int64
	Data []byte // nil, with Err, if it could not be read
	Err  error  // of the read
}

// DamageError means that the files in the store are not a whole chain, and names the first
// fault. A reader that needs the whole chain can trust nothing after that place.
type DamageError struct {
	Key  string // the store key of the file
	Want string // the expected content
	Got  string // the content found
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s damaged at %s: expected %s, found %s", path.Dir(e.Key), e.Key, e.Want, e.Got)
}

// Key returns the store key of file seq. Numbers are padded to eight digits, so that keys in
// ascending order are files in order.
func (c Chain) Key(seq int64) string { return fmt.Sprintf("%s%08d.json", c.Prefix, seq) }

// Number returns the number of the file with a store key. It is false for another key.
func (c Chain) Number(key string) (seq int64, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(key, c.Prefix), ".json")
	seq, _ = strconv.ParseInt(digits, 10, 64) // 0 or huge if they are no number
	return seq, 0 < seq && seq <= Last && c.Key(seq) == key
}

// Rest describes the keys under the prefix beside the files of the chain.
type Rest struct {
	Gap     *DamageError // a missing file below a higher number; nil: none
	Beyond  string       // the key of the first file behind the gap; empty if there is no gap
	Foreign []string     // keys that no file of the chain can have
}

// Load returns the files from number 1 on, up to the first number that has none. It costs one
// listing and one read for each file. It names the keys behind a missing number
// in Rest and never reads them. A file that the listing shows but that cannot be read has
// its error in File.Err: the caller decides whether the chain is of use without it.
// The error is that of the listing, or the end of ctx.
func (c Chain) Load(ctx context.Context) ([]File, Rest, error) {
	var rest Rest
	var listed []int64
	for info, err := range c.Store.List(ctx, c.Prefix) {
		if err != nil {
			return nil, Rest{}, err
		}
		if seq, ok := c.Number(info.Key); ok {
			listed = append(listed, seq)
		} else {
			rest.Foreign = append(rest.Foreign, info.Key)
		}
	}
	whole := 0 // number of consecutive files in the listing
	for whole < len(listed) && listed[whole] == int64(whole)+1 {
		whole++
	}
	files := make([]File, whole, whole+1)
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i := range files {
		group.Go(func() error {
			object, err := c.Store.Get(ctx, c.Key(listed[i]), blob.MaxDocument)
			files[i] = File{Seq: listed[i], Data: object.Data, Err: err}
			return nil
		})
	}
	_ = group.Wait() // the end of ctx is also the error of the next read
	// The listing may miss a file that was just being written, and show the ones after it,
	// so only the store itself can tell that there is none.
	more, err := c.After(ctx, int64(whole))
	if err != nil {
		return nil, Rest{}, err
	}
	files = append(files, more...)
	next := int64(len(files)) + 1
	if i, _ := slices.BinarySearch(listed, next); i < len(listed) {
		rest.Beyond = c.Key(listed[i])
		rest.Gap = &DamageError{Key: c.Key(next), Want: "a file, for there is " + rest.Beyond, Got: "none"}
	}
	return files, rest, nil
}

// After returns the files after number seq, up to the first number that has none. It costs one
// read if there is none. A file that is too large to be read has its error in File.Err.
func (c Chain) After(ctx context.Context, seq int64) ([]File, error) {
	var files []File
	for seq++; seq <= Last; seq++ {
		object, err := c.Store.Get(ctx, c.Key(seq), blob.MaxDocument)
		if errors.Is(err, blob.ErrNotFound) {
			break
		}
		if err != nil && !errors.Is(err, blob.ErrTooLarge) {
			return nil, err
		}
		files = append(files, File{Seq: seq, Data: object.Data, Err: err})
	}
	return files, nil
}

// Follow checks by its link that data is the file after head, and returns the new head.
// The damage is nil if it is.
func (c Chain) Follow(head Head, data []byte) (Head, *DamageError) {
	key := c.Key(head.Seq + 1)
	var link Link
	if err := json.Unmarshal(data, &link); err != nil {
		return head, &DamageError{Key: key, Want: "a JSON object", Got: err.Error()}
	}
	if link.Seq != head.Seq+1 {
		return head, &DamageError{Key: key, Want: fmt.Sprintf("sequence number %d", head.Seq+1), Got: strconv.FormatInt(link.Seq, 10)}
	}
	if link.Previous != head.Hash {
		return head, &DamageError{Key: key, Want: fmt.Sprintf("the hash %q of the file before", head.Hash), Got: fmt.Sprintf("%q", link.Previous)}
	}
	return Head{Seq: link.Seq, Hash: Hash(data)}, nil
}

// Append makes data, which must name head, the file after it. It returns the new head and true; or
// false if the number belongs to another file: then the caller reads the files in between and decides
// again. Both results are certain, because Append reads a lost answer back. For that, data must differ
// from everything that others could write there, for example by a random id. The error wraps
// blob.ErrUnknown if the outcome is unknown; then After tells it once the store answers.
func (c Chain) Append(ctx context.Context, head Head, data []byte) (Head, bool, error) {
	if head.Seq >= Last {
		return head, false, fmt.Errorf("%s is the last file there can be", c.Key(head.Seq))
	}
	if len(data) > blob.MaxDocument { // no reader takes it, so it would end the chain
		return head, false, fmt.Errorf("append to %s: a file of %d bytes, at most %d are allowed", c.Prefix, len(data), blob.MaxDocument)
	}
	next, damage := c.Follow(head, data)
	if damage != nil {
		return head, false, fmt.Errorf("append to %s: not the file after %d: %w", c.Prefix, head.Seq, damage)
	}
	won, err := blob.Claim(ctx, c.Store, c.Key(next.Seq), data)
	if err != nil || !won {
		return head, false, err
	}
	return next, true, nil
}

// Encode returns the canonical JSON of v: compact, in the order of its fields, without unnecessary
// escapes, without a newline at the end.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// ErrForm means that bytes are JSON, but not the canonical JSON of their content: a field is
// unknown or repeated, or the order or the spelling differs.
var ErrForm = errors.New("not in canonical form")

// Decode reads v from canonical JSON. The error wraps ErrForm if Encode would have written other
// bytes.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	if again, err := Encode(v); err != nil || !bytes.Equal(again, data) {
		return ErrForm
	}
	return nil
}

// Hash returns the lower-case hex SHA-256 of data, by which the file after it names it.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// MaxText is the longest text of a person in a record, in bytes.
const MaxText = 2000

// CheckText refuses a text that a terminal would not show unchanged, such as one with
// control characters or bytes that are not UTF-8, or a text that is too long. Packages that fold a record
// call it before they append a person's text; they accept the texts of a stored record.
func CheckText(name, text string) error {
	if len(text) > MaxText {
		return fmt.Errorf("the %s has %d bytes, at most %d are allowed", name, len(text), MaxText)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return fmt.Errorf("the %s %q contains %q: only printable characters are allowed", name, text, r)
		}
	}
	return nil
}

// Printable makes any text, such as an error, fit for a record. It replaces characters that do not print by spaces,
// and cuts a text of more than most bytes, which then ends with an ellipsis.
func Printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// Journal reads and appends entries of one type on a chain. E begins with a Link. A Journal is not
// safe for concurrent use, but any number of processes may append to one chain.
type Journal[E any] struct {
	Name    string // of the record, such as "facts log", for errors
	Chain   Chain
	Fold    func(*E) // gets each entry that is read or appended; may be nil
	Head    Head     // the last entry that was read
	Entries []E      // in order
}

// Refresh reads the entries that were appended since the last call. Damage is an error that wraps a *DamageError.
func (j *Journal[E]) Refresh(ctx context.Context) error {
	files, err := j.Chain.After(ctx, j.Head.Seq)
	if err != nil {
		return fmt.Errorf("read the %s: %w", j.Name, err)
	}
	for _, f := range files {
		head, damage := j.Chain.Follow(j.Head, f.Data)
		if f.Err != nil {
			damage = &DamageError{Key: j.Chain.Key(f.Seq), Want: "an entry", Got: f.Err.Error()}
		}
		if damage != nil {
			return fmt.Errorf("read the %s: %w", j.Name, damage)
		}
		var e E
		if err := Decode(f.Data, &e); err != nil {
			return fmt.Errorf("read the %s: %s: %w", j.Name, j.Chain.Key(f.Seq), err)
		}
		j.add(head, &e)
	}
	return nil
}

// Append adds an entry with the link Head.Next(). It returns false if another process appended
// first: then Refresh, decide again, and Append the new entry.
func (j *Journal[E]) Append(ctx context.Context, e E) (won bool, err error) {
	data, err := Encode(e)
	var head Head
	if err == nil {
		head, won, err = j.Chain.Append(ctx, j.Head, data)
	}
	if err != nil {
		return false, fmt.Errorf("append to the %s: %w", j.Name, err)
	}
	if won {
		j.add(head, &e)
	}
	return won, nil
}

func (j *Journal[E]) add(head Head, e *E) {
	j.Head, j.Entries = head, append(j.Entries, *e)
	if j.Fold != nil {
		j.Fold(e)
	}
}
