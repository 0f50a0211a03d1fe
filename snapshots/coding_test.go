package snapshots_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"

	"gridcast/deploy/must"
	"gridcast/snapshots"
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

// rows returns a body of the form of a season's.
func rows(n, seed int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"position":%d,"driver":"D%02d","points":%d},`, i+1, i*seed%97, (n-i)*seed%400)
	}
	return b.Bytes()
}

// packs returns the stored form of a body.
func packs(t *testing.T, body []byte) []byte {
	t.Helper()
	return must.Get(snapshots.Pack(body))(t)
}

// TestCodings shows that a larger body is served in every coding and a small one in none, also by compressors
// that have been used before.
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
	must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
	must.Hold(t, packs(t, make([]byte, snapshots.MinPacked-1)) == nil && packs(t, make([]byte, snapshots.MinPacked)) != nil, "a body is packed from another size on")
	processors := runtime.GOMAXPROCS(0)
	v := must.Get(snapshots.Open(t.Context(), s, nil))(t)
	must.Equal(t, "processors", processors, runtime.GOMAXPROCS(0))
	must.Equal(t, "bodies", content, contentOf(v))
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
			must.Hold(t, len(b.Identity) <= 10_000 || len(data) <= len(b.Identity)/3,
				"%s in %s: %d bytes of %d, hardly smaller", path, coding, len(data), len(b.Identity))
		}
	}
	if v.Bytes() != int64(total) {
		t.Errorf("the version says that it holds %d bytes, and serves %d", v.Bytes(), total)
	}
}

// TestCodingsStay shows that edges of two releases send the same bytes under one tag. If a new release of a
// compressor changes these hashes, say so in CHANGELOG, because a proxy may compare bytes.
func TestCodingsStay(t *testing.T) {
	s := strict(t)
	body := rows(300, 31)
	d := draftOf(loadBase(t, s), nil)
	d.Variants = []snapshots.Variant{snapshots.New("drivers", body, packs(t, body), raceDay)}
	must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
	v := must.Get(snapshots.Open(t.Context(), s, nil))(t)
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
	must.Equal(t, "hashes of the codings", want, got)
}

// TestPackedIsChecked shows that an object which does not unpack to the body is neither published nor served.
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
			must.Fail(t, "published", must.Err(p.Publish(t.Context(), d)), snapshots.ErrDamaged)

			s = memblob.New()
			publish(t, s, bodies{"drivers": "d1"})
			m := must.Get(snapshots.LoadManifest(t.Context(), s, 1))(t)
			m.Entries[0].Packed = snapshots.Packed{SHA256: snapshots.Digest(wrong), Size: int64(len(wrong))}
			s.Corrupt("objects/1/drivers.json.gz", wrong)
			point(t, s, m)
			v, err := snapshots.Open(t.Context(), s, nil)
			must.Hold(t, errors.Is(err, snapshots.ErrDamaged), "opened as %v: %v, want %v", v, err, snapshots.ErrDamaged)
			got, err := snapshots.Verify(t.Context(), s, 0, nil)
			must.Hold(t, err == nil && len(got.Faults) == 1, "verify finds %v, %v; want one fault", got.Faults, err)
			synctest.Test(t, func(t *testing.T) {
				e := followAs(t, snapshots.FollowConfig{Store: s, Lean: func(*snapshots.Manifest, string) bool { return true }}, nil)
				must.Hold(t, e.lastReport().State == snapshots.Refused, "an edge that keeps it lean: %+v, want it refused", e.lastReport())
				_ = e.stop()
			})
		})
	}
}

// edited returns the text of a file with one text in place of another. A file of gzip stays gzip if the text changes.
func edited(file []byte, before, after string) []byte {
	text := file
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err == nil {
		text, _ = io.ReadAll(r)
	}
	changed := bytes.ReplaceAll(text, []byte(before), []byte(after))
	if err != nil {
		return changed
	}
	return packed(string(changed))
}

// point replaces the manifest of a store with one version, and the pointer to it.
func point(t *testing.T, s *memblob.Store, m snapshots.Manifest) {
	t.Helper()
	text := must.Get(json.Marshal(m))(t)
	data := packed(string(text))
	s.Corrupt(snapshots.ManifestKey(m.Version), data)
	s.Corrupt(snapshots.PointerKey, fmt.Appendf(nil, `{"version":%d,"manifest":%q,"at":"2026-11-22T00:00:00Z"}`, m.Version, snapshots.Digest(data)))
}
