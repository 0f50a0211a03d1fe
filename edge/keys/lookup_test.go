package keys_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
)

// document returns a list of n keys and their hashes, without the cost of making usable
// keys.
func document(n int) (*keys.List, []keys.Hash) {
	d := &keys.List{}
	hashes := make([]keys.Hash, n)
	for i := range hashes {
		hashes[i] = sha256.Sum256(fmt.Append(nil, "key ", i))
		text := hashes[i].String()
		d.Keys = append(d.Keys, keys.StoredKey{
			ID: text[:12], SHA256: text, Prefix: keys.Prefix + "test", Name: "bench", Tier: "pro", Created: now,
		})
	}
	return d, hashes
}

// tableOf returns the table of a valid list.
func tableOf(t testing.TB, d *keys.List, tiers keys.Tiers, previous *keys.Table) *keys.Table {
	t.Helper()
	data := must.Get(d.Encode())(t)
	return must.Get(keys.NewTable(data, tiers, limit.Memory{}, previous))(t)
}
