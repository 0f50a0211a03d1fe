// Package chain keeps an append-only record in a blob.Store: numbered files, each created once
// and naming the SHA-256 of the file before, so that whoever noted one hash can tell later
// whether anything up to there was rewritten. What a file says beyond its link is for the
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

// parallelReads bounds how many files are fetched at a time.
const parallelReads = 16

// Chain says where the files are.
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

// File is what is in the store under a number.
type File struct {
	Seq  int64
	Data []byte // nil, with Err, if it could not be read
	Err  error  // of the read
}

// DamageError says that the files in the store are not a whole chain, and where that shows
// first. A reader that needs the whole chain can trust nothing after that place.
type DamageError struct {
	Key  string // the store key of the file
	Want string // what was expected there
	Got  string // what was found
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s damaged at %s: expected %s, found %s", path.Dir(e.Key), e.Key, e.Want, e.Got)
}

// Key returns the store key of file seq. Numbers are padded to eight digits, so that keys in
// ascending order are files in order.
func (c Chain) Key(seq int64) string { return fmt.Sprintf("%s%08d.json", c.Prefix, seq) }

func (c Chain) parseKey(key string) (seq int64, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(key, c.Prefix), ".json")
	seq, err := strconv.ParseInt(digits, 10, 64)
	return seq, err == nil && 0 < seq && seq <= Last && c.Key(seq) == key
}

// Rest is what lies under the prefix beside the files of the chain.
type Rest struct {
	Gap     *DamageError // where a file is missing although there is one with a higher number; nil: nowhere
	Beyond  string       // the key of the first file behind the gap; empty if there is no gap
	Foreign []string     // keys that no file of the chain can have
}

// Load returns the files from number 1 on, up to the first number that has none. It costs one
// listing and one read for each file, whatever else is there: what lies behind a missing number
// is named in Rest and never read. A file that the listing shows but that cannot be read has
// its error in File.Err: whether the chain is of use without it is for the caller to decide.
// The error is that of the listing, or the end of ctx.
func (c Chain) Load(ctx context.Context) ([]File, Rest, error) {
	var rest Rest
	var listed []int64
	for info, err := range c.Store.List(ctx, c.Prefix) {
		if err != nil {
			return nil, Rest{}, err
		}
		if seq, ok := c.parseKey(info.Key); ok {
			listed = append(listed, seq)
		} else {
			rest.Foreign = append(rest.Foreign, info.Key)
		}
	}
	whole := 0 // how many files follow one another in the listing
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
			return context.Cause(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, Rest{}, err
	}
	// A file that was just being written may be missing in the listing, and the ones after it
	// be there: only the store itself can say that there is none.
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

// Follow checks that data is the file after head by its link, and returns the head that it
// makes. The damage is nil if it is.
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

// Append makes data, which must name head, the file after it. It returns the head that this
// makes, and true; or false if the number belongs to another file: then the caller reads what
// came in between and decides again. Both are certain: an answer that was lost is read back, and
// for that data has to be unlike what anybody else could write there, such as by a random id.
// The error wraps blob.ErrUnknown if the outcome could not be learned; then After, once the
// store answers, tells.
func (c Chain) Append(ctx context.Context, head Head, data []byte) (Head, bool, error) {
	if head.Seq >= Last {
		return head, false, fmt.Errorf("%s is the last file there can be", c.Key(head.Seq))
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

// Encode returns the canonical JSON of v: compact, in the order of its fields, nothing escaped
// that need not be, no newline at the end.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// ErrForm says that bytes are JSON, but not the canonical one of what they say: a field is
// unknown or repeated, the order or the spelling another.
var ErrForm = errors.New("not in canonical form")

// Decode reads v from canonical JSON. The error wraps ErrForm if Encode would have written other
// bytes.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	again, err := Encode(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return ErrForm
	}
	return nil
}

// Hash returns the lower-case hex SHA-256 of data, by which the file after it names it.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// MaxText is how long a text that somebody gives for a record can be, in bytes.
const MaxText = 2000

// CheckText refuses a text that would not show on a terminal as it is written, such as one with
// control characters or bytes that are not UTF-8, or would fill it. Packages that fold a record
// ask it before they append what people typed; what they find in a record they take as it is.
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
