package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
)

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
