package s3blob_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/snapshots/blob/s3blob"
)

func TestParseURL(t *testing.T) {
	for _, test := range []struct {
		url  string
		want s3blob.Config
		err  string
	}{
		{url: "s3://data", want: s3blob.Config{Bucket: "data"}},
		{url: "s3://data/live/2026/", want: s3blob.Config{Bucket: "data", Prefix: "live/2026"}},
		{
			url:  "s3://data?endpoint=http://127.0.0.1:9000&region=eu-1&addressing=host&ca=/etc/ca.pem",
			want: s3blob.Config{Bucket: "data", Endpoint: "http://127.0.0.1:9000", Region: "eu-1", Addressing: s3blob.Host, CA: "/etc/ca.pem"},
		},
		{url: "dir:data", err: "want s3://bucket/prefix"},
		{url: "s3:///prefix", err: "no bucket"},
		{url: "s3://key:secret@data", err: "without credentials"},
		{url: "s3://data/a b", err: "prefix"},
		{url: "s3://data?endpont=x", err: "parameter endpont unknown"},
		{url: "s3://data?region=a&region=b", err: "repeated"},
		{url: "s3://data?endpoint=127.0.0.1:9000", err: "endpoint"},
		{url: "s3://data?endpoint=http://host/path", err: "want https://host"},
		{url: "s3://data?addressing=virtual", err: "want auto, path or host"},
	} {
		got, err := s3blob.ParseURL(test.url)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got error %v, want one with %q", test.url, err, test.err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the error shows the secret: %v", test.url, err)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.url, err, diff)
		}
	}
}
