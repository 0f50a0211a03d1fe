package keys_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
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

// BenchmarkLookup is the work of a request with a known hash: finding the key, and counting the
// request for the limit and for the usage.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			d, hashes := document(n)
			table := tableOf(b, d, keys.Tiers{"pro": 1e9}, nil)
			random := rand.New(rand.NewPCG(1, 2))
			random.Shuffle(n, func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
			b.ReportAllocs()
			next := 0
			for b.Loop() {
				entry := table.Lookup(hashes[next], now)
				entry.Usage.Count(entry.Counter.Take(now, entry.PerMinute).Allowed)
				if next++; next == n {
					next = 0
				}
			}
		})
	}
}

// BenchmarkNewTable makes the table of 100,000 keys: the first one, and the next one after a
// key was revoked.
func BenchmarkNewTable(b *testing.B) {
	d, _ := document(100_000)
	tiers := keys.Tiers{"pro": 1e9}
	before := tableOf(b, d, tiers, nil)
	must.Get(d.Revoke(d.Keys[50_000].ID, now))(b)
	data := must.Get(d.Encode())(b)
	for name, previous := range map[string]*keys.Table{"first": nil, "next": before} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table, err := keys.NewTable(data, tiers, limit.Memory{}, previous)
				if err != nil || table.Len() != 99_999 {
					b.Fatalf("got %d keys, %v", table.Len(), err)
				}
			}
		})
	}
}
