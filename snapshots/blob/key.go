package blob

import (
	"fmt"
	"strings"
)

// ProbeFolder is the prefix of the objects by which a store finds out how its server behaves.
// They live for a moment; an old one is what a killed process left behind.
const ProbeFolder = "probe/"

// CheckKey reports what is wrong with key, or nil: see Store for the rule. Stores call it
// before every operation, so that a key that one of them could not hold is refused by all.
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
