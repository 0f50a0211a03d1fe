package snapshots_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"

	"gridcast/snapshots"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// decoders decode the content codings.
var decoders = map[string]func([]byte) ([]byte, error){
	snapshots.GZ: func(b []byte) ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	},
	snapshots.BR: brrr.Decompress,
	snapshots.ZST: func(b []byte) ([]byte, error) {
		r, err := zstd.NewReader(nil)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.DecodeAll(b, nil)
	},
}

// rows is a body like those of a season.
func rows(n, seed int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"position":%d,"driver":"D%02d","points":%d},`, i+1, i*seed%97, (n-i)*seed%400)
	}
	return b.Bytes()
}

// packs returns a body as it is stored.
func packs(t *testing.T, body []byte) []byte {
	t.Helper()
	packed, err := snapshots.Pack(body)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// Every body is served in every coding, made by compressors that have made others before, and a small one
// in none.
func TestCodings(t *testing.T) {
	s := strict(t)
	d := draftOf(loadBase(t, s), nil)
	content := bodies{}
	for i := range 40 {
		body := rows(1+i*i, 7+i)
		path := fmt.Sprintf("calendar/%d", 1980+i)
		content[path] = string(body)
		d.Variants = append(d.Variants, snapshots.New(path, body, packs(t, body), raceDay))
	}
	p := snapshots.Publisher{Store: s}
	if _, err := p.Publish(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	v, err := snapshots.Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content, contentOf(v)); diff != "" {
		t.Errorf("bodies (-published +served):\n%s", diff)
	}
	total := 0
	for path, b := range v.All() {
		total += len(b.Identity)
		if (len(b.Identity) < snapshots.MinPacked) != (len(b.Encoded) == 0) {
			t.Errorf("%s of %d bytes has %d codings", path, len(b.Identity), len(b.Encoded))
			continue
		}
		for coding, data := range b.Encoded {
			total += len(data)
			if got, err := decoders[coding](data); err != nil || !bytes.Equal(got, b.Identity) {
				t.Errorf("%s in %s decodes to %d bytes (%v), want the body of %d", path, coding, len(got), err, len(b.Identity))
			}
			if len(b.Identity) > 10_000 && len(data) > len(b.Identity)/3 {
				t.Errorf("%s in %s: %d bytes of %d, hardly smaller", path, coding, len(data), len(b.Identity))
			}
		}
	}
	if v.Bytes() != int64(total) {
		t.Errorf("the version says that it holds %d bytes, and serves %d", v.Bytes(), total)
	}
}

// The edges of two releases send the same bytes under one tag as long as this holds. Where it has to
// change, with a new release of a compressor, CHANGELOG says so: proxies that compare bytes may wonder.
func TestCodingsStay(t *testing.T) {
	s := strict(t)
	body := rows(300, 31)
	d := draftOf(loadBase(t, s), nil)
	d.Variants = []snapshots.Variant{snapshots.New("drivers", body, packs(t, body), raceDay)}
	if _, err := (&snapshots.Publisher{Store: s}).Publish(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	v, err := snapshots.Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := v.Body("drivers")
	got := map[string]string{}
	for coding, data := range b.Encoded {
		got[coding] = snapshots.ETag(snapshots.Digest(data))
	}
	want := map[string]string{
		snapshots.BR:  "06fb1d1d37265b98b34f5e30cf9c8760",
		snapshots.GZ:  "c553a25581775abd7f29ab3566a9333f",
		snapshots.ZST: "c235981eec634943a28c2b56ffb95d6c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hashes of the codings (-want +got):\n%s", diff)
	}
}

// What does not unpack to the body is not published, and where it was, no edge takes it.
func TestPackedIsChecked(t *testing.T) {
	for name, wrong := range map[string][]byte{
		"another body":      packed("d2"),
		"a longer body":     packed("d1d1"),
		"a shorter body":    packed("d"),
		"cut short":         packed("d1")[:20],
		"with more behind":  append(packed("d1"), packed("d1")...),
		"not gzip":          []byte("d1"),
		"nothing":           {},
		"a wrong bit of it": func() []byte { p := packed("d1"); p[len(p)-8] ^= 1; return p }(),
	} {
		t.Run(name, func(t *testing.T) {
			s := memblob.New()
			d := draftOf(loadBase(t, s), nil)
			d.Variants = []snapshots.Variant{snapshots.New("drivers", []byte("d1"), wrong, raceDay)}
			p := snapshots.Publisher{Store: s}
			if _, err := p.Publish(t.Context(), d); !errors.Is(err, snapshots.ErrDamaged) {
				t.Errorf("published: %v, want %v", err, snapshots.ErrDamaged)
			}

			s = memblob.New()
			publish(t, s, bodies{"drivers": "d1"})
			m, err := snapshots.LoadManifest(t.Context(), s, 1)
			if err != nil {
				t.Fatal(err)
			}
			m.Entries[0].Packed = snapshots.Encoded{SHA256: snapshots.Digest(wrong), Size: int64(len(wrong))}
			s.Corrupt("objects/1/drivers.json.gz", wrong)
			point(t, s, m)
			if v, err := snapshots.Open(t.Context(), s, nil); !errors.Is(err, snapshots.ErrDamaged) {
				t.Errorf("opened as %v: %v, want %v", v, err, snapshots.ErrDamaged)
			}
			if got, err := snapshots.Verify(t.Context(), s, 0, nil); err != nil || len(got.Faults) != 1 {
				t.Errorf("verify finds %v, %v; want one fault", got.Faults, err)
			}
		})
	}
}

// point puts a manifest, and the pointer to it, in the place of those that a store of one version has.
func point(t *testing.T, s *memblob.Store, m snapshots.Manifest) {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	s.Corrupt(snapshots.ManifestKey(m.Version), data)
	s.Corrupt(snapshots.PointerKey, fmt.Appendf(nil, `{"version":%d,"manifest":%q,"at":"2026-11-22T00:00:00Z"}`, m.Version, snapshots.Digest(data)))
}

// unpackedStore holds one version as releases before this one wrote it: each body as it is, with its
// codings beside it.
func unpackedStore(t *testing.T, content bodies) *memblob.Store {
	t.Helper()
	s := memblob.New()
	publish(t, s, content)
	m, err := snapshots.LoadManifest(t.Context(), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if err := s.Delete(t.Context(), e.Object); err != nil {
			t.Fatal(err)
		}
		e.Object, e.Packed, e.Encodings = strings.TrimSuffix(e.Object, ".gz"), snapshots.Encoded{}, map[string]snapshots.Encoded{}
		body := content[e.Path]
		create(t, s, e.Object, body)
		for _, coding := range []string{snapshots.GZ, snapshots.BR} {
			data := coding + " " + body // an edge does not look into it
			e.Encodings[coding] = snapshots.Encoded{SHA256: snapshots.Digest([]byte(data)), Size: int64(len(data))}
			create(t, s, snapshots.EncodedKey(e.Object, coding), data)
		}
	}
	m.Format, m.Parts = 1, nil
	point(t, s, m)
	return s
}

// A store of an earlier release opens, is served as it is, and goes on: what changes is packed, and what
// does not stays as it was.
func TestStoreOfAnEarlierRelease(t *testing.T) {
	synctest.Test(t, storeOfAnEarlierRelease)
}

func storeOfAnEarlierRelease(t *testing.T) {
	first := bodies{"drivers": "d1", "calendar/2024": "c1", "calendar/2023": "c0"}
	s := unpackedStore(t, first)
	v, err := snapshots.Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, contentOf(v)); diff != "" {
		t.Errorf("bodies of the earlier release (-want +got):\n%s", diff)
	}
	if b, _ := v.Body("drivers"); string(b.Encoded[snapshots.GZ]) != "gz d1" || string(b.Encoded[snapshots.BR]) != "br d1" || len(b.Encoded) != 2 {
		t.Errorf("codings of the earlier release: got %q", b.Encoded)
	}
	if publish(t, s, first).Version != 1 {
		t.Error("the same bodies are published again")
	}

	second := first.with(bodies{"drivers": "d2"})
	if r := publish(t, s, second); r.ObjectsWritten != 1 || r.ObjectsReused != 6 {
		t.Errorf("%d objects written, %d reused; want 1 and the 6 of the two that did not change", r.ObjectsWritten, r.ObjectsReused)
	}
	m, err := snapshots.LoadManifest(t.Context(), s, 2)
	if err != nil || m.Format != 3 {
		t.Errorf("format %d, %v; want 3, which the earlier release refuses", m.Format, err)
	}
	cache := memblob.New()
	var fate faultblob.Fate
	store := faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate { return fate })
	for _, fate.Err = range []error{nil, faultblob.ErrKilled} { // then from the copy alone
		e := follow(t, store, cache)
		if diff := cmp.Diff(second, e.lastContent()); diff != "" {
			t.Errorf("followed (-want +got):\n%s", diff)
		}
		_ = e.stop()
	}
	if changes, err := snapshots.Diff(t.Context(), s, 1, 2); err != nil || len(changes) != 1 || changes[0].Path != "drivers" {
		t.Errorf("diff: %v, %v", changes, err)
	}
	if got, err := snapshots.Verify(t.Context(), s, 0, nil); err != nil || len(got.Faults) > 0 || got.Objects != 7 {
		t.Errorf("verify: %+v, %v; want 7 objects", got, err)
	}
	rollback(t, s, 1)
	if _, got := served(t, s); !cmp.Equal(first, got) {
		t.Errorf("after a rollback (-want +got):\n%s", cmp.Diff(first, got))
	}
	if m, err := snapshots.LoadManifest(t.Context(), s, 3); err != nil || m.Format != 1 {
		t.Errorf("format %d, %v; want 1: all of it is as the earlier release reads it", m.Format, err)
	}
}
