package keys_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

func signingKey(t *testing.T) *notes.Signers {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys.key")
	must.Do(t, notes.MakeKey(file, "gridcast/test/keys"))
	return must.Get(notes.ReadSigners(file))(t)
}

// signed is an edit that the keys of s sign.
func signed(s *notes.Signers, edit func(*keys.List) error) func(*keys.List) error {
	return func(list *keys.List) error {
		if err := list.Sign(s, false); err != nil {
			return err
		}
		return edit(list)
	}
}

// followSigned runs a follower that trusts the keys of s until stop.
func followSigned(t *testing.T, store blob.Store, folder string, s ...*notes.Signers) (f *keys.Follower, stop func()) {
	t.Helper()
	var public []string
	for _, key := range s {
		public = append(public, key.Public()...)
	}
	trust := must.Get(notes.NewTrust(public...))(t)
	f = keys.NewFollower(keys.FollowerConfig{
		Store: store, CacheDir: folder, Trust: trust, Tiers: keys.DefaultTiers(), Limits: limit.Memory{}, Log: slog.New(slog.DiscardHandler),
	})
	return f, running(t.Context(), t, f)
}

func read(t *testing.T, store blob.Store) []byte {
	t.Helper()
	o := must.Get(store.Get(t.Context(), keys.Object, keys.MaxSize))(t)
	return o.Data
}

// write replaces the stored list as any writer of the bucket can.
func write(t *testing.T, store blob.Store, data []byte) {
	t.Helper()
	o, err := store.Get(t.Context(), keys.Object, keys.MaxSize)
	if err == nil {
		_, err = store.Swap(t.Context(), keys.Object, o.Tag, data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWritersOfTheBucketMakeNoKey lets an attacker write any list of keys to the store. The follower keeps the last
// one that an operator signed.
func TestWritersOfTheBucketMakeNoKey(t *testing.T) {
	operator := signingKey(t)
	for name, attack := range map[string]func(t *testing.T, store *memblob.Store, first []byte){
		"key added, no signature": func(t *testing.T, store *memblob.Store, _ []byte) {
			list := must.Get(keys.Decode(read(t, store)))(t)
			list.Serial++
			must.Do(t, add("attacker")(&list))
			data := must.Get(list.Encode())(t)
			write(t, store, data)
		},
		"wrong key of the same origin": func(t *testing.T, store *memblob.Store, _ []byte) {
			must.Do(t, keys.Update(t.Context(), store, func(list *keys.List) error {
				return errors.Join(list.Sign(signingKey(t), true), add("attacker")(list))
			}))
		},
		"the list before a revocation": func(t *testing.T, store *memblob.Store, first []byte) { write(t, store, first) },
		"an earlier note below the list": func(t *testing.T, store *memblob.Store, first []byte) {
			now := read(t, store)
			_, note, _ := bytes.Cut(first, []byte(`","note":`))
			list, _, _ := bytes.Cut(now, []byte(`","note":`))
			write(t, store, append(append(list, `","note":`...), note...))
		},
		"an earlier list above the note": func(t *testing.T, store *memblob.Store, first []byte) {
			head, _, _ := bytes.Cut(first, []byte(`],"sha256":"`))
			_, tail, _ := bytes.Cut(read(t, store), []byte(`],"sha256":"`))
			write(t, store, append(append(head, `],"sha256":"`...), tail...))
		},
		"endless data in the note": func(t *testing.T, store *memblob.Store, _ []byte) {
			list, _, _ := bytes.Cut(read(t, store), []byte(`","note":`))
			write(t, store, append(append(append(list, `","note":"`...), bytes.Repeat([]byte("x"), 1<<20)...), "\"}\n"...))
		},
		"note cut off": func(t *testing.T, store *memblob.Store, _ []byte) {
			data := read(t, store)
			write(t, store, data[:len(data)-9])
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, folder := memblob.New(), t.TempDir()
				for _, client := range []string{"one", "two"} {
					must.Do(t, keys.Update(t.Context(), store, signed(operator, add(client))))
				}
				first := read(t, store)
				must.Do(t, keys.Update(t.Context(), store, signed(operator, revokeFirst)))
				last := read(t, store)
				f, stop := followSigned(t, store, folder, operator)
				wantKeys(t, f, "before", 1, false)
				attack(t, store, first)
				wantKeys(t, f, "attacked", 1, true)
				stop()
				f, stop = followSigned(t, store, folder, operator)
				wantKeys(t, f, "attacked and started again", 1, true)
				write(t, store, last)
				must.Do(t, keys.Update(t.Context(), store, signed(operator, add("three"))))
				wantKeys(t, f, "healed", 2, false)
				stop()
			})
		})
	}
}

// TestRatchetThatCannotBeOpened checks that a disk never stops a newer list of keys, which may revoke one. The numbers
// then stand in memory, so that no older list follows.
func TestRatchetThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, folder, operator := memblob.New(), t.TempDir(), signingKey(t)
		must.Do(t, keys.Update(t.Context(), store, signed(operator, add("one"))))
		must.Do(t, os.WriteFile(filepath.Join(folder, "ratchet"), nil, 0o600))
		f, stop := followSigned(t, store, folder, operator)
		defer stop()
		if settle(); count(f) != 1 {
			t.Fatalf("problem %q, want the list of one key", f.Health().Problem)
		}
		first := read(t, store)
		must.Do(t, keys.Update(t.Context(), store, signed(operator, revokeFirst)))
		if settle(); count(f) != 0 {
			t.Error("the revoked key is accepted, because the disk keeps no number")
		}
		write(t, store, first)
		if settle(); count(f) != 0 || !strings.Contains(f.Health().Problem, "lower") {
			t.Errorf("the list from before the revocation: %d keys, problem %q", count(f), f.Health().Problem)
		}
	})
}

// TestSigningAList checks which lists an operator's key signs.
func TestSigningAList(t *testing.T) {
	store, operator := memblob.New(), signingKey(t)
	update := func(edit func(*keys.List) error) error { return keys.Update(t.Context(), store, edit) }
	must.Do(t, update(add("before")))
	if err := update(signed(operator, add("after"))); !errors.Is(err, keys.ErrUntrusted) || !strings.Contains(err.Error(), "gridcast keys sign") {
		t.Errorf("change of an unsigned list: %v", err)
	}
	if err := update(func(list *keys.List) error { return list.Sign(operator, true) }); err != nil {
		t.Fatalf("vouched for: %v", err)
	}
	must.Succeed(t, "change of a signed list", update(signed(operator, add("after"))))
	must.Fail(t, "change without the key", update(add("without the key")), keys.ErrNoSigner)
	must.Fail(t, "change with another key", update(signed(signingKey(t), add("with another key"))), keys.ErrUntrusted)
	list, _, err := keys.Load(t.Context(), store)
	if err != nil || len(list.Keys) != 2 || list.SignedBy(operator.Trust()) != nil {
		t.Errorf("list: %d keys, %v, signed %v", len(list.Keys), err, list.SignedBy(operator.Trust()))
	}

	// A thief of the key signs the highest serial number. A new key goes on from below it.
	thief := list
	must.Do(t, thief.Sign(operator, false))
	thief.Serial = 1<<63 - 1
	data := must.Get(thief.Encode())(t)
	write(t, store, data)
	next, folder := signingKey(t), t.TempDir()
	must.Do(t, update(func(list *keys.List) error { return list.Sign(next, true) }))
	synctest.Test(t, func(t *testing.T) {
		f, stop := followSigned(t, store, folder, next)
		if settle(); count(f) != 2 || f.Table().Serial() < 1_000_000_000 || f.Table().Serial() > 1<<40 {
			t.Errorf("new key: %d keys, problem %q", count(f), f.Health().Problem)
		}
		stop()
	})
	marks, err := os.ReadFile(filepath.Join(folder, "ratchet", "keys.json"))
	must.Hold(t, err == nil && strings.Contains(string(marks), `"number": 1`), "ratchet: %s, %v", marks, err)
	thief = must.Get(keys.Decode(data))(t)
	err = thief.Sign(operator, false)
	must.Hold(t, err != nil && strings.Contains(err.Error(), "stolen"), "the stolen key alone goes on from its number: %v", err)
}

// TestRevokeAfterAnAttack puts a list of any serial number in the place of the operator's. After keys sign, a revocation
// reaches edges that have the operator's serial numbers on disk.
func TestRevokeAfterAnAttack(t *testing.T) {
	for _, serial := range []int64{1<<63 - 2, 1 << 53, 1<<53 - 1, 1 << 32, 1, 0} {
		for _, stolen := range []bool{false, true} {
			t.Run(fmt.Sprintf("serial %d, stolen %t", serial, stolen), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, folder, operator := memblob.New(), t.TempDir(), signingKey(t)
					for _, client := range []string{"one", "two"} {
						must.Do(t, keys.Update(t.Context(), store, signed(operator, add(client))))
					}
					_, stop := followSigned(t, store, folder, operator)
					settle()
					stop()
					list := must.Get(keys.Decode(read(t, store)))(t)
					by := signingKey(t)
					if stolen {
						by = operator
					}
					must.Do(t, list.Sign(by, true))
					list.Serial = serial
					data := must.Get(list.Encode())(t)
					write(t, store, data)
					next := operator
					if stolen {
						next = signingKey(t)
					}
					f, stop := followSigned(t, store, folder, next)
					defer stop()
					must.Do(t, keys.Update(t.Context(), store, func(list *keys.List) error { return list.Sign(next, true) }))
					wantKeys(t, f, "after keys sign", 2, false)
					must.Do(t, keys.Update(t.Context(), store, signed(next, revokeFirst)))
					wantKeys(t, f, "after keys revoke", 1, false)
				})
			})
		}
	}
}
