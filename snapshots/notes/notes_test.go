package notes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

func key(t *testing.T, origin string) (file string, s *notes.Signers) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key")
	must.Do(t, notes.MakeKey(file, origin))
	s = must.Get(notes.ReadSigners(file))(t)
	return file, s
}

// TestOpen checks which notes a key proves.
func TestOpen(t *testing.T) {
	oneFile, one := key(t, "example.com/one")
	twoFile, two := key(t, "example.com/one")
	_, other := key(t, "example.com/other")
	both := must.Get(notes.ReadSigners(oneFile, twoFile))(t)
	sign := func(s *notes.Signers, text string) []byte {
		t.Helper()
		return must.Get(s.SignText(text))(t)
	}
	good := sign(one, "example.com/one\nversion 1\n")
	long := "example.com/one\nversion 1" + strings.Repeat("1", notes.MaxSize-len(good)) + "\n"
	for name, test := range map[string]struct {
		note  []byte
		trust *notes.Signers
		keys  int // 0: refused
	}{
		"its key":                      {good, one, 1},
		"another key of its origin":    {good, two, 0},
		"two signatures, one trusted":  {sign(both, "example.com/one\nversion 1\n"), one, 1},
		"two signatures, both trusted": {sign(both, "example.com/one\nversion 1\n"), both, 2},
		"the origin of another key":    {sign(other, "example.com/one\nversion 1\n"), other, 0},
		"the log of a simulation":      {sign(one, "example.com/one/simulated\n1\n"), one, 1},
		"altered":                      {bytes.Replace(good, []byte("version 1"), []byte("version 2"), 1), one, 0},
		"the longest":                  {sign(one, long), one, 1},
		"too long":                     {sign(one, long+"\n"), one, 0},
		"empty":                        {nil, one, 0},
	} {
		n, err := test.trust.Trust().Open(test.note)
		text := strings.Join(append([]string{n.Origin}, n.Lines...), "\n") + "\n\n"
		must.Hold(t, err != nil || strings.HasPrefix(string(test.note), text), "%s: got the text %q", name, text)
		unknown := test.trust.Trust().Unknown(test.note)
		must.Hold(t, unknown == (name == "another key of its origin"), "%s: its keys are unknown: %t", name, unknown)
		if len(n.Keys) != test.keys || (err == nil) != (test.keys > 0) || err != nil && !errors.Is(err, notes.ErrUntrusted) {
			t.Errorf("%s: keys %v, %v, want %d keys", name, n.Keys, err, test.keys)
		}
	}
	must.Fail(t, "without a trusted key", must.Err((notes.Trust{}).Open(good)), notes.ErrUntrusted)
}

// TestKeys checks the files of keys.
func TestKeys(t *testing.T) {
	file, s := key(t, "example.com/one")
	otherFile, _ := key(t, "example.com/other")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info.Mode(), err)
	}
	folder := filepath.Join(filepath.Dir(file), "new")
	must.Do(t, notes.MakeKey(filepath.Join(folder, "key"), "example.com/one"))
	mode := must.Get(os.Stat(folder))(t).Mode().Perm()
	must.Hold(t, mode&^0o750 == 0, "the folder of a key has the mode %o", mode)
	for _, test := range []struct{ file, origin, want string }{
		{file, "example.com/one", "never replaced"},
		{filepath.Join(file, "key"), "example.com/one", "mkdir"},
		{file + strings.Repeat("x", 300), "example.com/one", "too long"},
		{filepath.Join(folder, "other"), "no name", "without spaces"},
	} {
		err := notes.MakeKey(test.file, test.origin)
		must.Hold(t, err != nil && strings.Contains(err.Error(), test.want), "%s: got %v, want %s", test.file, err, test.want)
	}
	must.Hold(t, len(must.Get(os.ReadDir(folder))(t)) == 1, "a refused key leaves a file")
	noKey := filepath.Join(folder, "text")
	must.Do(t, os.WriteFile(noKey, []byte("text\n"), 0o600))
	must.Fail(t, "a file without a key", must.Err(notes.ReadSigners(noKey)))
	must.Fail(t, "no file of the name", must.Err(notes.ReadSigners(filepath.Join(folder, "none"))), os.ErrNotExist)
	must.Fail(t, "no verifier key", must.Err(notes.NewTrust("key")))
	must.Fail(t, "an origin that is no name", must.Err(s.SignText("no note")))
	must.Hold(t, notes.Trust{}.Empty() && !s.Trust().Empty(), "a key of trust is not counted")
	for _, number := range []int64{5, 5, 4} {
		must.Hold(t, s.Advance(number) == (number == 5) && s.Highest() == 5, "after %d the highest number is %d", number, s.Highest())
	}
	golden.Sentence(t, "keys of two origins", must.Err(notes.ReadSigners(file, otherFile)), filepath.Dir(file), "FOLDER", filepath.Dir(otherFile), "OTHER")
	must.Succeed(t, "a key twice", must.Err(notes.NewTrust(append(s.Public(), s.Public()...)...)))
	twice := must.Get(notes.ReadSigners(file, file))(t)
	if signed, err := twice.Sign("version 1"); err != nil || bytes.Count(signed, []byte("— ")) != 1 || len(twice.Public()) != 1 {
		t.Errorf("a file twice: keys %v sign\n%s, %v, want one signature", twice.Public(), signed, err)
	}
	none, err := notes.ReadSigners()
	must.Hold(t, none == nil && err == nil, "no file: %v, %v", none, err)
	first, second := notes.NewOrigin(), notes.NewOrigin()
	must.Hold(t, first != second, "two installations have one origin")
}

// full is a disk without room.
type full struct{ blob.Store }

func (full) Create(context.Context, string, []byte) (blob.Tag, error) { return "", syscall.ENOSPC }

func (f full) Swap(ctx context.Context, key string, _ blob.Tag, data []byte) (blob.Tag, error) {
	return f.Create(ctx, key, data)
}

// TestRatchet checks that each key has a highest number of its own.
func TestRatchet(t *testing.T) {
	store := memblob.New()
	r := notes.NewRatchet(store, "marks.json")
	for _, step := range []struct {
		keys   []string
		number int64
		text   string
		ok     bool
	}{
		{[]string{"a"}, 5, "five", true},
		{[]string{"a"}, 5, "five", true},
		{[]string{"a"}, 5, "another five", false},
		{[]string{"a"}, 4, "four", false},
		{[]string{"a"}, 1 << 53, "stolen", true},
		{[]string{"a"}, 6, "six", false},
		{[]string{"a", "b"}, 6, "six", true},
		{[]string{"b"}, 5, "five", false},
		{[]string{"b"}, 7, "seven", true},
		{nil, 8, "eight", false},
	} {
		mark := notes.Mark{Number: step.number, Content: step.text}
		check := r.Check(t.Context(), step.keys, mark)
		raise := notes.NewRatchet(store, "marks.json").Raise(t.Context(), step.keys, mark)
		if (check == nil) != step.ok || (raise == nil) != step.ok || !step.ok && !errors.Is(raise, notes.ErrLower) {
			t.Errorf("%v %s: check %v, raise %v, want allowed %v", step.keys, step.text, check, raise, step.ok)
		}
	}
	// The numbers of a running process are not in its file alone, and a damaged file is replaced.
	store.Corrupt("marks.json", []byte(`{"c": {"number": 99}, "d": 1}`))
	must.Fail(t, "damaged marks, a lower number", r.Raise(t.Context(), []string{"a"}, notes.Mark{Number: 7}), notes.ErrLower)
	must.Succeed(t, "damaged marks", r.Raise(t.Context(), []string{"c"}, notes.Mark{Number: 1}))
	must.Fail(t, "a new process after damage", notes.NewRatchet(store, "marks.json").Check(t.Context(), []string{"b"}, notes.Mark{Number: 6}), notes.ErrLower)
	// Another process raises a mark between the read and the write of this one. Both marks are on disk.
	both, once := memblob.New(), sync.Once{}
	beside := notes.NewRatchet(faultblob.Wrap(both, func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if c.Op.Writes() {
			once.Do(func() {
				must.Succeed(t, "the other process", notes.NewRatchet(both, "marks.json").Raise(t.Context(), []string{"b"}, notes.Mark{Number: 9}))
			})
		}
		return faultblob.Fate{}
	}), "marks.json")
	must.Succeed(t, "raise beside another process", beside.Raise(t.Context(), []string{"a"}, notes.Mark{Number: 5}))
	for _, key := range []string{"a", "b"} {
		must.Fail(t, "a lower number of "+key, notes.NewRatchet(both, "marks.json").Check(t.Context(), []string{key}, notes.Mark{Number: 4}), notes.ErrLower)
	}
	for name, r := range map[string]*notes.Ratchet{"no disk": notes.NewRatchet(nil, ""), "a full disk": notes.NewRatchet(full{memblob.New()}, "marks.json")} {
		err := r.Raise(t.Context(), []string{"a"}, notes.Mark{Number: 2})
		must.Hold(t, err != nil && !errors.Is(err, notes.ErrLower), "%s: got %v, want an error of the disk", name, err)
		must.Fail(t, fmt.Sprintf("%s: a lower number", name), r.Raise(t.Context(), []string{"a"}, notes.Mark{Number: 1}), notes.ErrLower)
	}
}
