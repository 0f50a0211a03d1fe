// Package keys authenticates clients of the API. It holds the form of a key, the list of all keys in the
// store, and the table in which an edge finds a key without a lock or an allocation.
//
// A key is "gc_live_", or "gc_test_" in the tier sandbox, 32 random base62 characters and a checksum of six, the CRC-32 (IEEE) of
// the 40 characters before it in base62, padded with zeros. The service refuses a typo without a
// look-up, and a secret scanner can tell a leaked key from a look-alike. The service stores
// the SHA-256 of a key, and shows the key once, by [List.Create] or
// [List.Rotate]. A fast hash is enough, because nobody guesses 190 random bits.
//
// Operators change the [List], which is one object of the store, [Object]: list.go has its stored
// form, change.go its operations. An edge reads it through a [Follower] into a [Table], which is
// made for the request path: table.go and entry.go. Neither half is needed to understand the other.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

// Object is the store key of the list.
const Object = "keys/keys.json"

// The form of a key.
const (
	Prefix      = "gc_live_"
	TestPrefix  = "gc_test_" // of a key for the sandbox
	secretLen   = 32         // random base62 characters: 190 bits
	checksumLen = 6          // base62 digits of a CRC-32: 62^6 > 2^32
	Length      = len(Prefix) + secretLen + checksumLen
)

// digits of base62, in ascending order of value.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// shownLen is the number of characters of a key that the list keeps: the prefix and four
// more, enough to find a key in a client's configuration, too few to guess it.
const shownLen = len(Prefix) + 4

// Hash is the SHA-256 of a whole key. The service keeps nothing else of a key.
type Hash [sha256.Size]byte

// String returns the hash in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Sandbox is the tier of the keys that edges answer from the simulated world of a sandbox.
const Sandbox = "sandbox"

// Public is a key for everybody: edges with a sandbox accept it, and limit it by the client's address. Its text is
// the same in every installation, and no list holds it.
const Public = TestPrefix + "PublicSandboxKeyForTheDocs0000004AKXnP"

// Generate returns a new random key for a tier.
func Generate(tier string) string {
	key := make([]byte, 0, Length)
	if tier == Sandbox {
		key = append(key, TestPrefix...)
	} else {
		key = append(key, Prefix...)
	}
	var pool [64]byte
	for len(key) < len(Prefix)+secretLen {
		rand.Read(pool[:]) // never fails, see crypto/rand
		for _, b := range pool {
			// 248 is the greatest multiple of 62 that a byte can hold: larger values
			// would make the first digits likelier than the others.
			if b < 248 && len(key) < len(Prefix)+secretLen {
				key = append(key, digits[b%62])
			}
		}
	}
	sum := checksum(key)
	return string(append(key, sum[:]...))
}

// Sum returns the hash of a text of the length of a key. It does not allocate.
//
// It ignores the checksum, which is for people and for scanners: no table has a key that was not
// issued, and that look-up costs less than checking the checksum of every valid key.
func Sum(key []byte) (Hash, bool) {
	if len(key) != Length {
		return Hash{}, false
	}
	return sha256.Sum256(key), true
}

// checksum is the CRC-32 (IEEE) of the text before it, as six base62 digits, the highest first.
func checksum(body []byte) (sum [checksumLen]byte) {
	rest := crc32.ChecksumIEEE(body)
	for i := checksumLen - 1; i >= 0; i-- {
		sum[i] = digits[rest%62]
		rest /= 62
	}
	return sum
}

// Tiers maps each tier to its limit in requests a minute. It is configuration.
type Tiers map[string]int

// DefaultTiers returns the limits without configuration.
func DefaultTiers() Tiers {
	return Tiers{"trial": 30, "standard": 120, "pro": 600, Sandbox: 30, "cache": 6000}
}

// Names returns the tiers in ascending order of name.
func (t Tiers) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Validate reports every tier with an empty name or a limit outside 1 to a thousand million.
func (t Tiers) Validate() error {
	if len(t) == 0 {
		return errors.New("no tiers")
	}
	var errs []error
	for _, name := range t.Names() {
		if name == "" {
			errs = append(errs, fmt.Errorf("tier %q: not a name for a tier", name))
		}
		if n := t[name]; n < 1 || n > 1e9 {
			errs = append(errs, fmt.Errorf("tier %q: %d requests a minute, want 1 to 1000000000", name, n))
		}
	}
	return errors.Join(errs...)
}
