package keys_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob/memblob"
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
	must.Hold(t, !strings.Contains(string(data), key) && !strings.Contains(string(data), key[8:40]), "the document holds the key:\n%s", data)
	decoded := must.Get(keys.Decode(data))(t)
	must.Equal(t, "Decode is not the inverse of Encode", d, decoded)
}

func TestCreateRefuses(t *testing.T) {
	golden.Table(t, "testdata/refusals.txt", func(input string) string {
		var d keys.List
		var r keys.Request
		must.Do(t, json.Unmarshal([]byte(input), &r))
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
	for name, bad := range map[string]string{
		"cut short":        good[:len(good)/2],
		"something after":  good + "{}",
		"a brace after":    good + "}",
		"another format":   strings.Replace(good, `"format":2`, `"format":3`, 1),
		"an unknown field": strings.Replace(good, `"tier"`, `"only_on_sundays":true,"tier"`, 1),
		"a longer hash":    strings.Replace(good, `"sha256":"`, `"sha256":"0`, 1),
		"another name":     strings.Replace(good, `"name":"n"`, `"name":"m"`, 1),
		"another number":   strings.Replace(good, `"serial":0`, `"serial":1`, 1),
		"no checksum":      good[:strings.LastIndex(good, `,"sha256"`)] + "}\n",
		"a line less":      good[:strings.Index(good, "\n")+1] + good[strings.LastIndex(good, "]"):],
		"spaces":           strings.Replace(good, `"serial":0`, `"serial": 0`, 1),
		"not a document":   "[]",
		"empty":            "",
	} {
		must.Fail(t, name, must.Err(keys.Decode([]byte(bad))))
	}
	d.Keys = append(d.Keys, d.Keys[0])
	_, err := d.Encode()
	must.Hold(t, err != nil && strings.Contains(err.Error(), "taken"), "the same key twice: got %v", err)
}

// TestEveryByteIsGuarded changes each byte of a list and cuts it at each place. An accepted
// list has the same content.
func TestEveryByteIsGuarded(t *testing.T) {
	d := keys.List{Serial: 17}
	create(t, &d, keys.Request{Name: "n", Tier: "pro", Origins: []string{"https://example.org"}})
	create(t, &d, keys.Request{Name: "m", Tier: "trial"})
	good := must.Get(d.Encode())(t)
	check := func(what string, data []byte) {
		t.Helper()
		got, err := keys.Decode(data)
		if err == nil {
			if diff := cmp.Diff(d, got); diff != "" {
				t.Fatalf("%s: accepted with another content:\n%s", what, diff)
			}
		}
		if _, tableErr := keys.NewTable(data, keys.DefaultTiers(), limit.Memory{}, nil); (tableErr == nil) != (err == nil) {
			t.Fatalf("%s: the table says %v, Decode %v", what, tableErr, err)
		}
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

// TestEarlierFormat shows that a list in the format of an earlier release is refused, and that an update does not
// replace it.
func TestEarlierFormat(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/before.json"))(t)
	for name, data := range map[string][]byte{
		"by hand":              data,
		"by a program":         []byte("{\"format\":1,\"keys\":[\n]}\n"),
		"format 1 in one line": []byte("{\"format\":1,\"serial\":0,\"keys\":[\n],\"sha256\":\"\"}\n"),
	} {
		store := memblob.New()
		tag := must.Get(store.Create(t.Context(), keys.Object, data))(t)
		must.Fail(t, fmt.Sprintf("%s: it is loaded", name), must.Err2(keys.Load(t.Context(), store)))
		must.Fail(t, fmt.Sprintf("%s: it is updated", name), keys.Update(t.Context(), store, add("new")))
		must.Fail(t, fmt.Sprintf("%s: a table is made from it", name), must.Err(keys.NewTable(data, keys.DefaultTiers(), limit.Memory{}, nil)))
		object, err := store.Get(t.Context(), keys.Object, keys.MaxSize)
		must.Hold(t, err == nil && object.Tag == tag, "%s: the store holds %s, %v", name, object.Data, err)
	}
}

func TestRevokeAndRotate(t *testing.T) {
	var d keys.List
	old, oldKey := create(t, &d, keys.Request{Name: "n", Tier: "pro", Origins: []string{"https://example.org"}})
	fresh, freshKey := must.Get2(d.Rotate(old.ID, 24*time.Hour, now))(t)
	if fresh.Name != "n" || fresh.Tier != "pro" || !fresh.Expires.IsZero() || fresh.Origins[0] != "https://example.org" || freshKey == oldKey {
		t.Errorf("rotated into %+v, want a new key for the same client", fresh)
	}
	replaced, err := d.Find(old.ID)
	if err != nil || !replaced.Active(now.Add(23*time.Hour)) || replaced.Active(now.Add(24*time.Hour)) {
		t.Errorf("the old key: got %+v, %v, want it to work for 24 hours more", replaced, err)
	}
	// A second rotation must not give the old key more time.
	other, _, err := d.Rotate(old.ID, 72*time.Hour, now)
	must.Hold(t, err == nil && other.Expires.IsZero(), "the other key: got expiry %s, %v, want none, as of the first successor", other.Expires, err)
	if replaced, err = d.Find(old.ID); err != nil || !replaced.Expires.Equal(now.Add(24*time.Hour).Truncate(time.Second)) {
		t.Errorf("rotated twice: got expiry %s, %v", replaced.Expires, err)
	}

	revoked, err := d.Revoke(fresh.ID, now)
	must.Hold(t, err == nil && !revoked.Active(now), "revoked: got %+v, %v", revoked, err)
	again, err := d.Revoke(fresh.ID, now.Add(time.Hour))
	must.Hold(t, err == nil && again.Revoked.Equal(revoked.Revoked), "revoked again: got %s, %v, want %s", again.Revoked, err, revoked.Revoked)
	must.Fail(t, "rotate a revoked key", must.Err2(d.Rotate(fresh.ID, time.Hour, now)), keys.ErrInactive)
	must.Fail(t, "revoke an unknown key", must.Err(d.Revoke("nobody", now)), keys.ErrNoKey)
}

func TestTable(t *testing.T) {
	var d keys.List
	_, expiring := create(t, &d, keys.Request{Name: "e", Tier: "standard", Expires: now.Add(time.Hour)})
	widget, widgetKey := create(t, &d, keys.Request{Name: "w", Tier: "pro", Origins: []string{"https://example.org"}})
	_, odd := create(t, &d, keys.Request{Name: "o", Tier: "platinum"})
	table := func(previous *keys.Table) *keys.Table {
		t.Helper()
		return tableOf(t, &d, keys.DefaultTiers(), previous)
	}
	find := func(table *keys.Table, key string, at time.Time) *keys.Key {
		t.Helper()
		hash, ok := keys.Sum([]byte(key))
		if !ok {
			t.Fatalf("key %q is malformed", key)
		}
		return table.Lookup(hash, at)
	}
	first := table(nil)
	e := find(first, expiring, now)
	must.Hold(t, e != nil && e.PerMinute == 120 && keys.DefaultTiers().Names()[e.Tier] == "standard", "got %+v, want a key of the tier standard", e)
	must.Hold(t, find(first, expiring, now.Add(time.Hour)) == nil, "an expired key is found")
	if find(first, odd, now) != nil || len(first.Skipped()) != 1 || !strings.Contains(first.Skipped()[0], "platinum") {
		t.Errorf("a key of an unknown tier: skipped %q", first.Skipped())
	}
	w := find(first, widgetKey, now)
	must.Hold(t, w.Allows([]byte("https://example.org")) && !w.Allows([]byte("https://example.com")) && w.Allows(nil), "origins are not judged by the record")
	w.Counter.Take(now, w.PerMinute)

	// A reload keeps the counters, and takes a revocation into account.
	got := find(table(first), widgetKey, now).Counter.Take(now, 600).Remaining
	must.Hold(t, got == 598, "after a reload: got %d remaining, want 598", got)
	must.Get(d.Revoke(widget.ID, now))(t)
	must.Hold(t, find(table(first), widgetKey, now) == nil, "a revoked key is found")
}

func TestTiersValidate(t *testing.T) {
	if err := keys.DefaultTiers().Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []keys.Tiers{nil, {"": 1}, {"x": 0}, {"x": 1e9 + 1}} {
		must.Fail(t, fmt.Sprintf("%v", bad), bad.Validate())
	}
}
