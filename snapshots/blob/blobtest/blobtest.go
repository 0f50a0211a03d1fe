// Package blobtest is the suite that every blob.Store must pass: the contract of blob.Store,
// sentence by sentence.
package blobtest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridcast/snapshots/blob"
)

// timeout bounds an operation that a store promises within about a second.
const timeout = 10 * time.Second

// Run runs the suite; open returns an empty store without other users.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s blob.Store)
	}{
		{"create then get", createThenGet},
		{"get has a limit", getHasALimit},
		{"list stops", listStops},
		{"data is owned by the receiver", ownership},
		{"ended context", endedContext},
		{"creates race", createsRace},
		{"swaps race", swapsRace},
		{"readers see whole objects", wholeObjects},
		{"watch sees a change", watchSeesChange},
		{"watch sees a creation", watchSeesCreation},
		{"watch sees a removal", watchSeesRemoval},
		{"watch returns at once", watchReturnsAtOnce},
		{"watch ends with its context", watchEnds},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
	for i, section := range strings.Split(contract, "\n## ") {
		if name, calls, _ := strings.Cut(section, "\n"); i > 0 {
			t.Run(name, func(t *testing.T) { play(t, open(t), calls) })
		}
	}
}

//go:embed contract.txt
var contract string

// play makes the calls of a section of contract.txt.
func play(t *testing.T, s blob.Store, calls string) {
	tags, odd := map[string]blob.Tag{"$none": ""}, strings.NewReplacer("{nothing}", "", "{space}", " ", "{zero}", "\x00")
	for line := range strings.Lines(strings.TrimSpace(calls)) {
		call, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " -> ")
		name, rest, named := strings.Cut(call, " = ")
		if !named {
			rest = call
		}
		words := strings.Fields(rest)
		for i := range words {
			words[i] = odd.Replace(words[i])
		}
		got, tag, err := makeCall(t.Context(), s, tags, words)
		switch {
		case errors.Is(err, blob.ErrNotFound):
			got = "not found"
		case errors.Is(err, blob.ErrConflict):
			got = "conflict"
		case err != nil:
			got = "refused"
		}
		if got != odd.Replace(want) {
			t.Errorf("%s, want %q: got %q, %v", call, want, got, err)
		}
		if tag != "" && words[0] != "get" {
			if o := get(t, s, words[1]); o.Tag != tag || words[0] == "swap" && tag == tags[words[2]] {
				t.Errorf("%s: the tag when written is %q, when read %q", call, tag, o.Tag)
			}
		}
		if named {
			tags["$"+name] = tag
		}
	}
}

// makeCall makes one call, and returns the bytes or the keys.
func makeCall(ctx context.Context, s blob.Store, tags map[string]blob.Tag, words []string) (got string, tag blob.Tag, err error) {
	switch words[0] {
	case "get":
		o, err := s.Get(ctx, words[1], blob.MaxDocument)
		return string(o.Data), o.Tag, err
	case "create":
		tag, err = s.Create(ctx, words[1], []byte(words[2]))
	case "swap":
		tag, err = s.Swap(ctx, words[1], tags[words[2]], []byte(words[3]))
	case "delete":
		err = s.Delete(ctx, words[1])
	case "list":
		var keys []string
		for info, err := range s.List(ctx, words[1]) {
			if err != nil {
				return "", "", err
			}
			if age := time.Since(info.Modified); info.Size != 1 || age > time.Minute || age < -time.Minute { // the store's clock may differ a little
				return "", "", fmt.Errorf("%s: %d bytes of %s", info.Key, info.Size, info.Modified)
			}
			keys = append(keys, info.Key)
		}
		return strings.Join(keys, " "), "", nil
	default:
		err = fmt.Errorf("no such call: %s", words[0])
	}
	return "", tag, err
}

func createThenGet(t *testing.T, s blob.Store) {
	for _, test := range []struct {
		key  string
		data []byte
	}{
		{"current.json", []byte(`{"version":1}`)},
		{"objects/1/standings/drivers/2026.json.gz", []byte("\x1f\x8b\x00\xff\n")},
		{"empty", []byte{}},
		{"large", large(3 << 20)},
	} {
		tag := create(t, s, test.key, test.data)
		o := get(t, s, test.key)
		if !bytes.Equal(o.Data, test.data) {
			t.Errorf("%s: read %s, want %s", test.key, short(o.Data), short(test.data))
		}
		if tag == "" || o.Tag != tag {
			t.Errorf("%s: tag when written %q, when read %q; want equal and not empty", test.key, tag, o.Tag)
		}
	}
}

func getHasALimit(t *testing.T, s blob.Store) {
	data := large(3 << 20)
	tag := create(t, s, "a/large", data)
	o, err := s.Get(t.Context(), "a/large", int64(len(data)))
	if err != nil || !bytes.Equal(o.Data, data) || o.Tag != tag {
		t.Errorf("an object of the limit's size: got %d bytes, tag %q, %v", len(o.Data), o.Tag, err)
	}
	for _, limit := range []int64{0, 1, 4096, int64(len(data)) - 1} {
		o, err := s.Get(t.Context(), "a/large", limit)
		wantError(t, fmt.Sprintf("get of %d bytes, limit %d", len(data), limit), err, blob.ErrTooLarge)
		if o.Data != nil || o.Tag != "" {
			t.Errorf("limit %d: %d bytes were returned", limit, len(o.Data))
		}
		_, err = s.Watch(t.Context(), "a/large", "", limit)
		wantError(t, fmt.Sprintf("watch of %d bytes, limit %d", len(data), limit), err, blob.ErrTooLarge)
	}
	create(t, s, "a/empty", nil)
	if o, err := s.Get(t.Context(), "a/empty", 0); err != nil || len(o.Data) != 0 {
		t.Errorf("an empty object, limit 0: got %q, %v", o.Data, err)
	}
}

func ownership(t *testing.T, s blob.Store) {
	data := []byte("first")
	create(t, s, "a", data)
	data[0] = 'X'
	got := get(t, s, "a").Data
	got[1] = 'X'
	wantData(t, s, "a", "first")
}

func endedContext(t *testing.T, s blob.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Create(ctx, "a", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("create after the context ended: got %v, want %v", err, context.Canceled)
	}
	if _, err := s.Get(ctx, "a", blob.MaxDocument); !errors.Is(err, context.Canceled) {
		t.Errorf("get after the context ended: got %v, want %v", err, context.Canceled)
	}
	_, err := s.Get(t.Context(), "a", blob.MaxDocument)
	wantError(t, "get after a create whose context had ended", err, blob.ErrNotFound)
}
