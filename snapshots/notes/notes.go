// Package notes signs and opens signed notes, which bind versions and API keys to their publisher. A note is a
// text with lines of signatures below it (c2sp.org/signed-note, Ed25519). The first line of the text is the
// origin: the name of the key, which every installation has for itself. A key signs for no other origin.
//
// Several keys of one origin may sign a note, so that a key can be replaced without a pause. A Ratchet keeps
// the highest number that each key has signed.
package notes

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/mod/sumdb/note"

	"gridcast/snapshots/blob/dirblob"
)

// Simulated ends the origin of the log of a simulated ledger. The key without it in its name signs that log too.
const Simulated = "/simulated"

// MaxSize limits a note in bytes. A note is a few short lines and a signature of each key.
const MaxSize = 16 << 10

// ErrUntrusted means that no trusted key has signed a note.
var ErrUntrusted = errors.New("not signed by a trusted key")

// Trust is a set of keys that may sign notes. The zero value trusts no key.
type Trust struct{ verifiers []note.Verifier }

// NewTrust reads verifier keys of the form NAME+HASH+KEY.
func NewTrust(keys ...string) (Trust, error) {
	var t Trust
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		v, err := note.NewVerifier(key)
		if err != nil {
			return Trust{}, fmt.Errorf("%q is no verifier key, as gridcast signing show prints it: %w", key, err)
		}
		t.verifiers = append(t.verifiers, v)
	}
	return t, nil
}

// Empty reports whether no key is trusted.
func (t Trust) Empty() bool { return len(t.verifiers) == 0 }

// Note is an opened note.
type Note struct {
	Origin string
	Lines  []string // below the origin
	Keys   []string // the trusted keys that signed it, as NAME+HASH
}

// Open verifies a note, of a version, of a list of keys or of a release. It ignores signatures of unknown keys, and returns ErrUntrusted unless a trusted key has
// signed. An invalid signature of a trusted key is also ErrUntrusted.
func (t Trust) Open(data []byte) (Note, error) {
	if len(data) > MaxSize {
		return Note{}, fmt.Errorf("%w: it has %d bytes, the most is %d", ErrUntrusted, len(data), MaxSize)
	}
	opened, err := note.Open(data, note.VerifierList(t.verifiers...))
	if err != nil {
		return Note{}, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	lines := strings.Split(strings.TrimSuffix(opened.Text, "\n"), "\n")
	n := Note{Origin: lines[0], Lines: lines[1:]}
	for _, s := range opened.Sigs {
		if s.Name != strings.TrimSuffix(n.Origin, Simulated) {
			return Note{}, fmt.Errorf("%w: the key %s signed for the origin %s", ErrUntrusted, s.Name, n.Origin)
		}
		n.Keys = append(n.Keys, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
	}
	return n, nil
}

// Signers are private keys of one origin. A nil *Signers has none.
type Signers struct {
	// New says that the keys may sign although none of them has signed anything in the store.
	New bool

	signers []note.Signer
	public  []string
	trust   Trust
	highest atomic.Int64
}

// ReadSigners reads a private key from each file, and takes a key that two files hold once. It returns nil if there are
// no files.
func ReadSigners(files ...string) (*Signers, error) {
	if len(files) == 0 {
		return nil, nil //nolint:nilnil // nil signs nothing
	}
	s := &Signers{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read signing key: %w", err)
		}
		signer, err := note.NewSigner(strings.TrimSpace(string(text)))
		if err != nil {
			return nil, fmt.Errorf("read signing key: %s holds none: %w", file, err)
		}
		if len(s.signers) > 0 && signer.Name() != s.Origin() {
			return nil, fmt.Errorf("read signing key: %s is of the origin %s, another key of %s", file, signer.Name(), s.Origin())
		}
		public := verifierKey(strings.TrimSpace(string(text)))
		if !slices.Contains(s.public, public) {
			s.signers, s.public = append(s.signers, signer), append(s.public, public)
		}
	}
	var err error
	s.trust, err = NewTrust(s.public...)
	return s, err
}

// Origin is the common name of the keys.
func (s *Signers) Origin() string { return s.signers[0].Name() }

// Public returns the verifier keys.
func (s *Signers) Public() []string { return slices.Clone(s.public) }

// Trust trusts these keys.
func (s *Signers) Trust() Trust { return s.trust }

// Highest returns the highest number of an Advance.
func (s *Signers) Highest() int64 { return s.highest.Load() }

// Unknown reports whether a note has signatures, all of them by other keys.
func (t Trust) Unknown(data []byte) bool {
	_, err := note.Open(data, note.VerifierList(t.verifiers...))
	var unverified *note.UnverifiedNoteError
	return errors.As(err, &unverified)
}

// Advance reports whether number is not lower than in any earlier call.
func (s *Signers) Advance(number int64) bool {
	for {
		highest := s.highest.Load()
		if number < highest || s.highest.CompareAndSwap(highest, number) {
			return number >= highest
		}
	}
}

// Sign returns a note of these lines below the origin, signed by every key.
func (s *Signers) Sign(lines ...string) ([]byte, error) {
	return s.SignText(strings.Join(append([]string{s.Origin()}, lines...), "\n") + "\n")
}

// SignText returns a note of a whole text.
func (s *Signers) SignText(text string) ([]byte, error) {
	data, err := note.Sign(&note.Note{Text: text}, s.signers...)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return data, nil
}

// NewOrigin returns a name that no other installation has.
func NewOrigin() string { return "gridcast/" + rand.Text() }

// MakeKey writes a new private key of an origin to a file that only its owner can read. The file must not exist.
func MakeKey(file, origin string) error {
	private, _, _ := note.GenerateKey(rand.Reader, origin) // it takes any origin
	if _, err := note.NewSigner(private); err != nil {
		return fmt.Errorf("make signing key: the origin %q must be a name without spaces and plus signs: %w", origin, err)
	}
	err := os.MkdirAll(filepath.Dir(file), 0o750)
	if err == nil {
		err = dirblob.WriteFile(file, []byte(private+"\n"), 0o600, os.Link)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make signing key: %s exists already, and a key is never replaced", file)
	}
	if err != nil {
		return fmt.Errorf("make signing key: %w", err)
	}
	return nil
}

// verifierKey returns the verifier key of a private key, which is sound.
func verifierKey(private string) string {
	fields := strings.Split(private, "+") // PRIVATE, KEY, name, hash, key: base64 may contain a plus
	data, _ := base64.StdEncoding.DecodeString(strings.Join(fields[4:], "+"))
	public := ed25519.NewKeyFromSeed(data[1:]).Public().(ed25519.PublicKey)
	key, _ := note.NewEd25519VerifierKey(fields[2], public)
	return key
}
