package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// PointerKey is the store key of the pointer.
const PointerKey = "current.json"

// The content codings, as they end object keys and name Entry.Encodings.
const (
	GZ  = "gz"
	BR  = "br"
	ZST = "zst"
)

// Codings lists the content codings in the order in which the server prefers them.
var Codings = []string{BR, ZST, GZ}

const (
	claimFolder    = "versions/"
	manifestFolder = "manifests/"
	objectFolder   = "objects/"
)

func claimKey(version int64) string { return fmt.Sprintf("%s%d.json", claimFolder, version) }

// ManifestKey is the store key of a version's manifest.
func ManifestKey(version int64) string { return fmt.Sprintf("%s%d.json", manifestFolder, version) }

// ObjectKey is the store key of a body that is first written in version.
func ObjectKey(version int64, path string) string {
	return fmt.Sprintf("%s%d/%s.json", objectFolder, version, path)
}

// EncodedKey is the store key of a coding of the body under object.
func EncodedKey(object, coding string) string { return object + "." + coding }

// Immutable says whether key is written at most once, ever: claims, manifests, objects,
// archives, ledger files and operator log. The pointer and the keys are not.
func Immutable(key string) bool {
	for _, folder := range []string{claimFolder, manifestFolder, objectFolder, "archives/", "ledger/", "audit/"} {
		if strings.HasPrefix(key, folder) {
			return true
		}
	}
	return false
}

// versionIn returns the number in a key such as versions/12.json, given its folder.
func versionIn(key, folder string) (int64, bool) {
	number, ok := strings.CutSuffix(strings.TrimPrefix(key, folder), ".json")
	if !ok {
		return 0, false
	}
	version, err := strconv.ParseInt(number, 10, 64)
	return version, err == nil && version > 0
}

// Digest returns the lower-case hex SHA-256 of data, as manifests and pointers hold it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// etagDigits is 128 bits of the hash: no two bodies of a service will ever share them.
const etagDigits = 32

// ETag returns the entity tag of a body with the given Digest, without quotes: its first 32
// digits, so that a person can find the tag of a response in the manifest.
func ETag(digest string) string { return digest[:etagDigits] }
