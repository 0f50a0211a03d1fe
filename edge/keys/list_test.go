package keys_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 500, time.UTC)

func create(t testing.TB, d *keys.List, r keys.Request) (keys.StoredKey, string) {
	t.Helper()
	record, key := must.Get2(d.Create(r, now))(t)
	return record, key
}

func TestCreate(t *testing.T) {
	var d keys.List
	record, key := create(t, &d, keys.Request{
		Name: "Example Media", Tier: "pro", Expires: now.Add(time.Hour), Origins: []string{"https://example.org"},
	})
	hash, _ := keys.Sum([]byte(key))
	want := keys.StoredKey{
		ID: hash.String()[:12], SHA256: hash.String(), Prefix: key[:12], Name: "Example Media", Tier: "pro",
		Created: now.Truncate(time.Second), Expires: now.Add(time.Hour).Truncate(time.Second), Origins: []string{"https://example.org"},
	}
	must.Equal(t, "record", want, record)
	data := must.Get(d.Encode())(t)
	must.Hide(t, "the document", string(data), key, key[8:40])
	decoded := must.Get(keys.Decode(data))(t)
	must.Equal(t, "Decode is not the inverse of Encode", d, decoded)
}

func TestCreateRefuses(t *testing.T) {
	golden.Table(t, "testdata/refusals.txt", func(input string) string {
		var d keys.List
		r := must.JSON[keys.Request](t, []byte(input))
		r.Name = strings.Replace(r.Name, "{not UTF-8}", "\xff", 1)
		_, _, err := d.Create(r, now)
		must.Hold(t, err != nil && len(d.Keys) == 0, "%s: got %v and %d keys, want an error and none", input, err, len(d.Keys))
		return fmt.Sprint(err)
	})
}

func TestDecodeRefuses(t *testing.T) {
	var d keys.List
	create(t, &d, keys.Request{Name: "n", Tier: "pro"})
	data := must.Get(d.Encode())(t)
	good := string(data)
	line := strings.Split(good, "\n")[1]
	for name, bad := range map[string]string{
		"cut short":        good[:len(good)/2],
		"something after":  good + "{}",
		"a brace after":    good + "}",
		"another format":   strings.Replace(good, `"format":2`, `"format":3`, 1),
		"an unknown field": string(resealed([]byte(strings.Replace(good, `"tier"`, `"only_on_sundays":true,"tier"`, 1)))),
		"a longer hash":    string(resealed([]byte(strings.Replace(good, `"sha256":"`, `"sha256":"0`, 1)))),
		"another name":     strings.Replace(good, `"name":"n"`, `"name":"m"`, 1),
		"another number":   strings.Replace(good, `"serial":0`, `"serial":1`, 1),
		"no checksum":      good[:strings.LastIndex(good, `,"sha256"`)] + "}\n",
		"a first line":     strings.Split(good, "\n")[0],
		"a line less":      good[:strings.Index(good, "\n")+1] + good[strings.LastIndex(good, "]"):],
		"spaces":           string(resealed([]byte(strings.Replace(good, `"serial":0`, `"serial": 0`, 1)))),
		"a key twice":      string(resealed([]byte(strings.Replace(good, line, line+",\n"+line, 1)))),
		"not a document":   "[]",
		"empty":            "",
	} {
		must.Fail(t, name, must.Err(keys.Decode([]byte(bad))))
	}
	d.Keys = append(d.Keys, d.Keys[0])
	golden.Sentence(t, "a list in another format", must.Err(keys.Decode([]byte(strings.Replace(good, `"format":2`, `"format":3`, 1)))))
	golden.Sentence(t, "a list that is not too large", must.Err(keys.Decode(make([]byte, keys.MaxSize))))
	golden.Sentence(t, "a list that is too large", must.Err(keys.Decode(make([]byte, keys.MaxSize+1))))
	golden.Sentence(t, "a list with one key twice", must.Err(d.Encode()), d.Keys[0].ID, "ID")
}

// TestInvalidRecords: a list with invalid records is neither written nor read, and ten of them are reported.
func TestInvalidRecords(t *testing.T) {
	for name, spoil := range map[string]func(*keys.StoredKey){
		"the ID of another key":    func(k *keys.StoredKey) { k.ID = k.SHA256[1:13] },
		"a short hash":             func(k *keys.StoredKey) { k.SHA256 = k.SHA256[:62] },
		"a hash in upper case":     func(k *keys.StoredKey) { k.SHA256 = strings.ToUpper(k.SHA256) },
		"no name":                  func(k *keys.StoredKey) { k.Name = " " },
		"no tier":                  func(k *keys.StoredKey) { k.Tier = "" },
		"no instant of creation":   func(k *keys.StoredKey) { k.Created = time.Time{} },
		"an origin with a space":   func(k *keys.StoredKey) { k.Origins = []string{"https://a b"} },
		"an origin without a host": func(k *keys.StoredKey) { k.Origins = []string{"https://"} },
	} {
		d, _ := document(12)
		for i := range d.Keys {
			spoil(&d.Keys[i])
		}
		err := must.Err(d.Encode())
		must.Hold(t, err != nil && strings.Count(err.Error(), "\n") == 9, "%s is written: %v", name, err)
		line := must.Get(json.Marshal(d.Keys[0]))(t)
		list := fmt.Appendf(nil, "{\"format\":2,\"serial\":1,\"keys\":[\n%s\n", line)
		must.Fail(t, name+" is read", must.Err(keys.Decode(keys.Seal(list))))
	}
}

// TestSuccessor: a key that expires is followed by a later key of the same client that outlives it.
func TestSuccessor(t *testing.T) {
	old := keys.StoredKey{ID: "old", Name: "client", Tier: "pro", Created: now, Expires: now.Add(time.Hour)}
	for name, test := range map[string]struct {
		change func(next, old *keys.StoredKey)
		want   bool
	}{
		"without an end":      {func(*keys.StoredKey, *keys.StoredKey) {}, true},
		"with a later end":    {func(next, _ *keys.StoredKey) { next.Expires = now.Add(2 * time.Hour) }, true},
		"with the same end":   {func(next, _ *keys.StoredKey) { next.Expires = old.Expires }, false},
		"of another client":   {func(next, _ *keys.StoredKey) { next.Name = "other" }, false},
		"of another tier":     {func(next, _ *keys.StoredKey) { next.Tier = "trial" }, false},
		"made before":         {func(next, _ *keys.StoredKey) { next.Created = now.Add(-time.Second) }, false},
		"revoked":             {func(next, _ *keys.StoredKey) { next.Revoked = now }, false},
		"of one without end":  {func(_, old *keys.StoredKey) { old.Expires = time.Time{} }, false},
		"the same key":        {func(next, _ *keys.StoredKey) { next.ID = "old" }, false},
		"expired, end missed": {func(next, old *keys.StoredKey) { next.Expires, old.Expires = now, now.Add(-time.Hour) }, false},
	} {
		d := keys.List{Keys: []keys.StoredKey{old, {ID: "next", Name: "client", Tier: "pro", Created: now}}}
		test.change(&d.Keys[1], &d.Keys[0])
		got := d.Successor(&d.Keys[0], now)
		must.Hold(t, (got == &d.Keys[1]) == test.want && (got != nil) == test.want, "%s: got %+v, want one: %t", name, got, test.want)
	}
}

// TestEveryByteIsGuarded changes each byte of a list and cuts it at each place. An accepted
// list has the same content.
func TestEveryByteIsGuarded(t *testing.T) {
	d := keys.List{Serial: 17}
	create(t, &d, keys.Request{Name: "n", Tier: "pro", Origins: []string{"https://example.org"}})
	create(t, &d, keys.Request{Name: "m", Tier: "trial"})
	good := must.Get(d.Encode())(t)
	must.Hold(t, json.Valid(good), "a list is not JSON: %s", good)
	check := func(what string, data []byte) {
		t.Helper()
		got, err := keys.Decode(data)
		if err == nil {
			diff := cmp.Diff(d, got)
			must.Require(t, diff == "", "%s: accepted with another content:\n%s", what, diff)
		}
		_, tableErr := keys.NewTable(data, keys.DefaultTiers(), limit.Memory{}, nil)
		must.Require(t, (tableErr == nil) == (err == nil), "%s: the table says %v, Decode %v", what, tableErr, err)
	}
	for i := range good {
		for _, c := range []byte{good[i] ^ 1, good[i] ^ 0x20, ' ', '0', 0} {
			bad := bytes.Clone(good)
			bad[i] = c
			check(fmt.Sprintf("byte %d is %q", i, c), bad)
		}
		must.Fail(t, fmt.Sprintf("cut off after %d bytes", i), must.Err(keys.Decode(good[:i])))
	}
}

func TestTiersValidate(t *testing.T) {
	if err := keys.DefaultTiers().Validate(); err != nil {
		t.Error(err)
	}
	must.Succeed(t, "the limits of a tier", keys.Tiers{"least": 1, "most": 1e9}.Validate())
	for _, bad := range []keys.Tiers{nil, {"": 1}, {"x": 0}, {"x": 1e9 + 1}} {
		must.Fail(t, fmt.Sprintf("%v", bad), bad.Validate())
	}
}
