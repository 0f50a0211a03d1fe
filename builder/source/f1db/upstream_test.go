package f1db_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"gridcast/builder/source"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
)

// TestLatestRelease fetches a release by path and by URL. An unchanged release is recognised by the
// host's validator or its sum, and one with another digest is refused. Every release has its own
// revision, because a round counts as lost only in the second release without it.
func TestLatestRelease(t *testing.T) {
	path := zipped(t, world(t))
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	conditional := 0
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			conditional++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/zip")
		_, _ = w.Write(packed)
	}))
	defer host.Close()
	now := time.Date(2023, 6, 5, 12, 0, 0, 0, time.UTC)
	for _, place := range []string{path, host.URL + "/release.zip", fmt.Sprintf("%s/release.zip#sha256=%s", host.URL, source.Sum(packed))} {
		upstream, err := f1db.NewRelease(place, "gridcast-test (operator@example.org)", media.Default())
		if err != nil {
			t.Fatal(err)
		}
		first, err := upstream.Fetch(t.Context(), now, 2022, 2024, source.Known{})
		if err != nil {
			t.Fatal(err)
		}
		document, err := upstream.Read(first.Packed)
		if err != nil {
			t.Fatal(err)
		}
		if first.Revision == "" || document.Revision != first.Revision || len(document.Facts.Seasons) != 1 {
			t.Errorf("%s: revision %q, read as %q with %d seasons; want one name and one season", place, first.Revision, document.Revision, len(document.Facts.Seasons))
		}
		again, err := upstream.Fetch(t.Context(), now.Add(time.Hour), 2022, 2024, source.Known{Validators: first.Validators, SHA256: source.Sum(first.Packed)})
		if err != nil || !again.NotModified {
			t.Errorf("%s again: not modified %t, error %v", place, again.NotModified, err)
		}
	}
	if conditional != 2 {
		t.Errorf("%d requests were answered with a 304, want 2", conditional)
	}
	other, err := f1db.NewRelease(host.URL+"/release.zip#sha256="+strings.Repeat("0", 64), "gridcast-test", media.Default())
	if err != nil {
		t.Fatal(err)
	}
	var fault *source.Fault
	if _, err := other.Fetch(t.Context(), now, 2022, 2024, source.Known{}); !errors.As(err, &fault) || fault.Kind != source.Malformed {
		t.Errorf("of another digest: got %v, want a malformed payload", err)
	}
}
