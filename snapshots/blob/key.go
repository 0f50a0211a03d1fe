package blob

import (
	"fmt"
	"strings"
)

// ProbeFolder is the prefix of the objects with which a store tests its server.
// They live for a moment; an old one comes from a killed process.
const ProbeFolder = "probe/"

// CheckKey returns the fault of key, or nil: see Store for the rule. Stores call it
// before every operation, so that all of them refuse a key that one of them could not hold.
func CheckKey(key string) error {
	if key == "" {
		return fmt.Errorf("key %q: empty", key)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("key %q: segment %q not allowed", key, segment)
		}
	}
	return checkCharacters(key)
}

// CheckPrefix is CheckKey for the prefix of a listing, which may be empty and may end
// anywhere in a key.
func CheckPrefix(prefix string) error {
	return checkCharacters(prefix)
}

func checkCharacters(key string) error {
	for i := range len(key) {
		c := key[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == '/':
		default:
			return fmt.Errorf("key %q: character %q not allowed", key, c)
		}
	}
	return nil
}
