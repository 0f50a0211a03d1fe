package snapshots_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// TestVersionOfAnotherBuild: a version in another format is not damaged, so no command repairs it and no build follows it.
func TestVersionOfAnotherBuild(t *testing.T) {
	for name, format := range map[string]string{
		"earlier": `"format":4`, "earlier fields": `"format":4,"weather":true`, "newer": `"format":6`, "newer fields": `"format":6,"parts":7`,
	} {
		s := memblob.New()
		publish(t, s, decades())
		key := snapshots.ManifestKey(1)
		packed, err := s.Get(t.Context(), key, 1<<20)
		must.Do(t, err)
		r := must.Get(gzip.NewReader(strings.NewReader(string(packed.Data))))(t)
		text := must.Get(io.ReadAll(r))(t)
		other := strings.Replace(string(text), `"format":5`, format, 1)
		if other == string(text) {
			t.Fatal("the manifest does not begin with its format")
		}
		var b strings.Builder
		w := gzip.NewWriter(&b)
		_, err = w.Write([]byte(other))
		must.Do(t, errors.Join(err, w.Close()))
		s.Corrupt(key, []byte(b.String()))
		pointer, _ := must.Get2(snapshots.LoadPointer(t.Context(), s))(t)
		pointer.Manifest = snapshots.Digest([]byte(b.String()))
		data := must.Get(json.Marshal(pointer))(t)
		s.Corrupt(snapshots.PointerKey, data)

		_, reader := snapshots.LoadBase(t.Context(), s, nil)
		_, publisher := (&snapshots.Publisher{Store: s}).LoadBase(t.Context(), nil)
		_, history := snapshots.LoadHistory(t.Context(), s)
		want := strings.Fields(name)[0] + " one, in format"
		for i, err := range []error{reader, publisher, history} {
			if !errors.Is(err, snapshots.ErrBuild) || errors.Is(err, snapshots.ErrDamaged) || errors.Is(err, snapshots.ErrNoBase) || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s, reader %d: got %v, want the build that made it", name, i, err)
			}
		}
	}
}
