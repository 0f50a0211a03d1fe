// Package keys says who may call the API: the form of a key, the document of all keys in the
// store, and the table by which an edge finds a key without a lock or an allocation.
//
// A key is "gc_live_", 32 random base62 characters and a checksum of six, the CRC-32 (IEEE) of
// the 40 characters before it in base62, padded with zeros. So a typo is refused without a
// look-up, and a secret scanner can tell a leaked key from a look-alike. The service stores
// the SHA-256 of a key; the key itself is shown once, by [Document.Create] or
// [Document.Rotate]. A fast hash is enough: nobody guesses 190 random bits.
//
// The document is one object, [Object], changed by [Update] and followed by a [Follower].
package keys

// Object is the store key of the document.
const Object = "keys/keys.json"
