// Package keys says who may call the API: the form of a key, the document of all keys in the
// store, and the table by which an edge finds a key without a lock or an allocation.
//
// A key is "gc_live_", 32 random base62 characters and a checksum of six, the CRC-32 (IEEE) of
// the 40 characters before it in base62, padded with zeros. So a typo is refused without a
// look-up, and a secret scanner can tell a leaked key from a look-alike. The service stores
// the SHA-256 of a key; the key itself is shown once, by [List.Create] or
// [List.Rotate]. A fast hash is enough: nobody guesses 190 random bits.
//
// Operators change the [List], which is one object of the store, [Object]: document.go says
// how it is stored, change.go what is done to it. An edge reads it through a [Follower] into a
// [Table], which is made for the path of a request: table.go and entry.go. Neither half is
// needed to understand the other.
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

// Object is the store key of the document.
const Object = "keys/keys.json"

// The form of a key.
const (
	Prefix      = "gc_live_"
	secretLen   = 32 // random base62 characters: 190 bits
	checksumLen = 6  // base62 digits of a CRC-32: 62^6 > 2^32
	Length      = len(Prefix) + secretLen + checksumLen
)

// digits of base62, in ascending order of value.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// shownLen is how much of a key stays readable in the document: the prefix and four
// characters, enough to find a key in a client's configuration, too little to guess it.
const shownLen = len(Prefix) + 4

// Hash is the SHA-256 of a whole key. It is all the service keeps of one.
type Hash [sha256.Size]byte

// String returns the hash in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Generate returns a new random key.
func Generate() string {
	key := make([]byte, 0, Length)
	key = append(key, Prefix...)
	var pool [64]byte
	for len(key) < len(Prefix)+secretLen {
		rand.Read(pool[:]) // never fails, see crypto/rand
		for _, b := range pool {
			// 248 is the greatest multiple of 62 that a byte can hold: what is above would
			// make the first digits likelier than the others.
			if b < 248 && len(key) < len(Prefix)+secretLen {
				key = append(key, digits[b%62])
			}
		}
	}
	sum := checksum(key)
	return string(append(key, sum[:]...))
}

// Sum returns the hash of what may be a key, as it is as long as one. It does not allocate.
//
// It does not look at the checksum, which is for people and for scanners: a key that was not
// issued is in no table, and to look there costs less than to check every key that is.
func Sum(key []byte) (Hash, bool) {
	if len(key) != Length {
		return Hash{}, false
	}
	return sha256.Sum256(key), true
}

// checksum is the CRC-32 (IEEE) of what precedes it, as six base62 digits, the highest first.
func checksum(body []byte) (sum [checksumLen]byte) {
	rest := crc32.ChecksumIEEE(body)
	for i := checksumLen - 1; i >= 0; i-- {
		sum[i] = digits[rest%62]
		rest /= 62
	}
	return sum
}

// Tiers says how many requests a minute a key of each tier has. It is configuration.
type Tiers map[string]int

// DefaultTiers returns the limits that hold where nothing else is configured.
func DefaultTiers() Tiers {
	return Tiers{"trial": 30, "standard": 120, "pro": 600, "sandbox": 30}
}

// Names returns the tiers in ascending order of name.
func (t Tiers) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Validate reports every tier whose name is empty or whose limit is not from 1 to a thousand million.
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
