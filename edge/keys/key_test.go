package keys_test

import (
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
)

// form is the published form of a key, for secret scanners.
var form = regexp.MustCompile(`^gc_(live|test)_[0-9A-Za-z]{38}$`)

// TestPrefixTellsTheWorld: a new key of the tier sandbox begins with gc_test_ and no other does, and the public key is a
// well-formed one of them.
func TestPrefixTellsTheWorld(t *testing.T) {
	var d keys.List
	for _, tier := range keys.DefaultTiers().Names() {
		record, key := create(t, &d, keys.Request{Name: tier, Tier: tier})
		_, next, err := d.Rotate(record.ID, 0, now)
		must.Do(t, err)
		for _, key := range []string{key, next} {
			got := strings.HasPrefix(key, keys.TestPrefix)
			must.Hold(t, form.MatchString(key) && got == (tier == keys.Sandbox), "%s: got key %q", tier, key)
		}
	}
	_, ok := keys.Sum([]byte(keys.Public[1:]))
	must.Hold(t, !ok, "a text of another length has a hash")
	must.Hold(t, form.MatchString(keys.Public) && strings.HasPrefix(keys.Public, keys.TestPrefix), "the public key is %q", keys.Public)
	must.Equal(t, "checksum of the public key", checksum(keys.Public[:40]), keys.Public[40:])
}

func TestGenerate(t *testing.T) {
	seen := map[string]bool{}
	counts := map[rune]int{}
	for i := range 2000 {
		key := keys.Generate([]string{"pro", "sandbox"}[i%2])
		if !form.MatchString(key) || seen[key] {
			t.Fatalf("got key %q, want a new one of the form %s", key, form)
		}
		seen[key] = true
		if got, want := key[40:], checksum(key[:40]); got != want {
			t.Fatalf("key %q: got checksum %s, want %s", key, got, want)
		}
		hash, ok := keys.Sum([]byte(key))
		if !ok || hash != sha256.Sum256([]byte(key)) {
			t.Fatalf("Sum(%q): got %s, %t, want its SHA-256", key, hash, ok)
		}
		for _, c := range key[8:40] {
			counts[c]++
		}
	}
	// 64000 characters, 1032 of each expected, standard deviation 32: a count far outside is a bug.
	for _, c := range "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" {
		if n := counts[c]; n < 800 || n > 1270 {
			t.Errorf("%q appears %d times, want about 1032", c, n)
		}
	}
}

// TestNoTypoIsAKey changes each character of a key into every other, swaps neighbours, and
// leaves some out.
func TestNoTypoIsAKey(t *testing.T) {
	var d keys.List
	_, key := create(t, &d, keys.Request{Name: "x", Tier: "pro"})
	table := tableOf(t, &d, keys.DefaultTiers(), nil)
	found := func(key string) bool {
		hash, ok := keys.Sum([]byte(key))
		return ok && table.Lookup(hash, now) != nil
	}
	for i := range key {
		for c := range 256 {
			typo := key[:i] + string([]byte{byte(c)}) + key[i+1:]
			if got := found(typo); got != (typo == key) {
				t.Errorf("%q: found %t", typo, got)
			}
		}
		if found(key[:i]) || found(key[i+1:]) {
			t.Errorf("a part of %q is found", key)
		}
	}
	for i := range len(key) - 1 {
		swapped := key[:i] + key[i+1:i+2] + key[i:i+1] + key[i+2:]
		if got := found(swapped); got != (swapped == key) {
			t.Errorf("%q: found %t", swapped, got)
		}
	}
}

// checksum is the same with big numbers.
func checksum(body string) string {
	// Text uses the digits 0-9a-zA-Z: swap the cases.
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
