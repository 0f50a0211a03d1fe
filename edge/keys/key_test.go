package keys_test

import (
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"gridcast/edge/keys"
)

// form is the published form of a key, which secret scanners search for.
var form = regexp.MustCompile(`^gc_live_[0-9A-Za-z]{38}$`)

func TestGenerate(t *testing.T) {
	seen := map[string]bool{}
	counts := map[rune]int{}
	for range 2000 {
		key := keys.Generate()
		if !form.MatchString(key) || seen[key] {
			t.Fatalf("got key %q, want a new one of the form %s", key, form)
		}
		seen[key] = true
		hash, ok := keys.Parse([]byte(key))
		if !ok || hash != sha256.Sum256([]byte(key)) {
			t.Fatalf("Parse(%q): got %s, %t, want its SHA-256", key, hash, ok)
		}
		for _, c := range key[8:40] {
			counts[c]++
		}
	}
	// 64000 characters, 1032 of each expected, standard deviation 32: far outside is a bug.
	for _, c := range "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" {
		if n := counts[c]; n < 800 || n > 1270 {
			t.Errorf("%q appears %d times, want about 1032", c, n)
		}
	}
}

// TestEveryTypoIsFound changes each character of a key into every other.
func TestEveryTypoIsFound(t *testing.T) {
	key := keys.Generate()
	for i := range key {
		for c := range 256 {
			typo := []byte(key)
			typo[i] = byte(c)
			if _, ok := keys.Parse(typo); ok != (key[i] == byte(c)) {
				t.Errorf("Parse(%q): got %t", typo, ok)
			}
		}
	}
	for i := range len(key) - 1 {
		swapped := key[:i] + key[i+1:i+2] + key[i:i+1] + key[i+2:]
		if _, ok := keys.Parse([]byte(swapped)); ok != (swapped == key) {
			t.Errorf("Parse(%q): got %t, two characters are swapped", swapped, ok)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	good, bad := []byte(keys.Generate()), []byte(strings.Repeat("x", keys.Length))
	if n := testing.AllocsPerRun(100, func() {
		keys.Parse(good)
		keys.Parse(bad)
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(keys.Generate()))
	f.Add([]byte("gc_live_"))
	f.Add([]byte("gc_test_0000000000000000000000000000000000000"))
	f.Fuzz(func(t *testing.T, key []byte) {
		if _, got := keys.Parse(key); got != reference(string(key)) {
			t.Errorf("Parse(%q): got %t", key, got)
		}
		// Random bytes seldom have a right checksum: give them one.
		if len(key) >= keys.Length-6 {
			whole := string(key[:keys.Length-6])
			whole += checksum(whole)
			if _, got := keys.Parse([]byte(whole)); got != reference(whole) {
				t.Errorf("Parse(%q): got %t", whole, got)
			}
		}
	})
}

// reference says the same with a regular expression and big numbers.
func reference(key string) bool {
	return form.MatchString(key) && len(key) == 46 && key[40:] == checksum(key[:40])
}

func checksum(body string) string {
	// Text has the digits in the order 0-9a-zA-Z: swap the cases.
	text := new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))).Text(62)
	swapped := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z':
			return c - 'a' + 'A'
		case 'A' <= c && c <= 'Z':
			return c - 'A' + 'a'
		}
		return c
	}, text)
	return strings.Repeat("0", 6-len(swapped)) + swapped
}
