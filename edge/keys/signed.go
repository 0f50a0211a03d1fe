package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

var (
	// ErrUntrusted means that no trusted key has signed a list, so that anybody may have written it.
	ErrUntrusted = errors.New("list of keys is not signed by a trusted key")
	// ErrNoSigner means that a list is signed, and the key to sign its change is missing.
	ErrNoSigner = errors.New("the list of keys is signed, so edges would refuse a change without a signature; name the key: --sign-keys FILE")
)

// maxChanges is more than all changes of a list that an installation ever makes.
const maxChanges = 1_000_000

// longestNote is above the length of any note about a list, in bytes. A longer one is a stranger's.
const longestNote = notes.MaxSize / 4

// noteLines is the text of the note about a list, below its origin.
func noteLines(serial int64, sum string) []string {
	return []string{fmt.Sprintf("keys %d", serial), "sha256 " + sum}
}

// openNote verifies the note about a list, and returns the trusted keys that signed it.
func openNote(trust notes.Trust, note []byte, serial int64, sum string) ([]string, error) {
	n, err := trust.Open(note)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	if !slices.Equal(n.Lines, noteLines(serial, sum)) {
		return nil, fmt.Errorf("%w: its note is about %s", ErrUntrusted, strings.Join(n.Lines, ", "))
	}
	return n.Keys, nil
}

// FreshText makes the text of fresh.note about the list in a store: its serial number, its checksum and its own note. A
// list that was put back, or that no key of trust has signed, leaves the text before, if that is about a signed list.
// Empty: any list will do. Without a list the text is empty.
func FreshText(store blob.Store, trust notes.Trust) func(ctx context.Context, before string) (string, error) {
	return func(ctx context.Context, before string) (string, error) {
		stored, err := store.Get(ctx, Object, MaxSize)
		var o opened
		if err == nil {
			o, err = open(stored.Data, func() {})
		}
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return "", fmt.Errorf("read the list of keys: %w", err)
		}
		text := ""
		if err == nil {
			text = fmt.Sprintf("%d %s %q", o.serial, o.sum, o.note[:min(len(o.note), longestNote)])
		}
		earlier := notes.NewRatchet(nil, "")
		if mark, signed, err := readFreshText(before, trust); err == nil && !trust.Empty() {
			_ = earlier.Raise(ctx, signed, mark)          // in memory alone
			mark, signed, _ := readFreshText(text, trust) // without a trusted note nobody has signed it
			if errors.Is(earlier.Check(ctx, signed, mark), notes.ErrLower) {
				text = before
			}
		}
		return text, nil
	}
}

// readFreshText returns the list that a text of FreshText is about, and the trusted keys that signed it.
func readFreshText(text string, trust notes.Trust) (list notes.Mark, signed []string, err error) {
	var note string
	if _, err := fmt.Sscanf(text, "%d %s %q", &list.Number, &list.Content, &note); err != nil {
		return list, nil, fmt.Errorf("%w: fresh.note names no list", ErrUntrusted)
	}
	signed, err = provenBy(trust, []byte(note), list)
	return list, signed, err
}

// provenBy is openNote. If no key is trusted, one key without a name has signed every list.
func provenBy(trust notes.Trust, note []byte, list notes.Mark) ([]string, error) {
	if trust.Empty() {
		return []string{""}, nil
	}
	return openNote(trust, note, list.Number, list.Content)
}

// SignedBy returns nil if a trusted key has signed the list as it was read.
func (d *List) SignedBy(trust notes.Trust) error {
	if d.Signature == nil {
		return ErrUntrusted
	}
	_, err := openNote(trust, d.Signature.note, d.Serial, d.Signature.sum)
	return err
}

// Sign makes the keys of s sign the list with the change that is under way. Call it in an edit of Update, first of
// all. It refuses a list that none of these keys has signed, because anybody may have added keys to it, unless
// nothing is in it or the operator has confirmed it. Nil keys sign nothing.
func (d *List) Sign(s *notes.Signers, confirmed bool) error {
	switch {
	case s == nil:
		return nil // Update refuses to change a signed list
	case !confirmed && (d.Signature != nil || len(d.Keys) > 0):
		if err := d.SignedBy(s.Trust()); err != nil {
			return fmt.Errorf("%w; compare gridcast keys list with your records, then gridcast keys sign", err)
		}
	}
	// Numbers are counted from a list of our own. Anybody may have written another one, so its number says nothing: the
	// seconds since 1970 are above every number that changes have reached since then.
	highest := time.Now().Unix()
	var own []string
	if d.Signature != nil {
		own, _ = openNote(s.Trust(), d.Signature.note, d.Serial, d.Signature.sum)
	}
	switch possible := d.Serial <= highest+maxChanges; {
	case len(own) > 0 && possible:
	case len(own) == len(s.Public()):
		return fmt.Errorf("a key of --sign-keys has signed the list under serial number %d, which no change has reached, so it is stolen: make another (gridcast signing new FILE), trust it at the edges, and gridcast keys sign with it alone", d.Serial)
	default:
		d.Serial = highest
	}
	d.Signature = &Signature{by: s}
	return nil
}
