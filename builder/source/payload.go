package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
)

// Host returns the host name in the URL of a source.
func Host(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("its URL must be https://host/path") // the URL may hold a password
	}
	return u.Hostname(), nil
}

// NewPayload returns a payload, or NotModified if it equals the known one.
func NewPayload(packed []byte, revision string, validators Validators, known Known) Payload {
	if Sum(packed) == known.SHA256 {
		return Payload{NotModified: true, Validators: validators}
	}
	return Payload{Packed: packed, Revision: revision, Validators: validators}
}

// Sum returns the SHA-256 of a payload in lower-case hex, by which a store names it.
func Sum(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// RevisionOf names a payload of an upstream without revisions: twelve digits of its SHA-256.
func RevisionOf(packed []byte) string {
	return Sum(packed)[:12]
}
