package open_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/open"
	"gridcast/snapshots/blob/s3test"
)

func TestDirectory(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	s := must.Get(open.Store(t.Context(), "dir:"+root, open.ReadWrite))(t)
	must.Get(s.Create(t.Context(), "a", []byte("x")))(t)
	data, err := os.ReadFile(filepath.Join(root, "a"))
	must.Hold(t, err == nil && string(data) == "x", "file of the object: got %q, %v", data, err)
}

// A mistyped path to read from is an error, and nothing is made there.
func TestDirectoryThatIsNotThere(t *testing.T) {
	root := filepath.Join(t.TempDir(), "mistyped")
	golden.Sentence(t, "a mistyped path", must.Err(open.Store(t.Context(), "dir:"+root, open.ReadOnly)), root, "PATH")
	_, err := os.Stat(root)
	must.Hold(t, os.IsNotExist(err), "the directory after that: %v, want that there is none", err)
}

func TestS3(t *testing.T) {
	server := s3test.Versity(t)
	config := server.Config(t)
	s3test.Store(t, config)
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	name := "s3://" + config.Bucket + "/live?region=us-east-1&endpoint=" + config.Endpoint
	s := must.Get(open.Store(t.Context(), name, open.ReadWrite))(t)
	must.Get(s.Create(t.Context(), "a", []byte("x")))(t)
	readOnly := must.Get(open.Store(t.Context(), name, open.ReadOnly))(t)
	o, err := readOnly.Get(t.Context(), "a", blob.MaxDocument)
	must.Hold(t, err == nil && string(o.Data) == "x", "read back: got %q, %v", o.Data, err)
	_, err = open.Store(t.Context(), strings.Replace(name, config.Bucket, "no-such-bucket", 1), open.ReadWrite)
	must.Hold(t, err != nil, "a bucket that does not exist was opened for writing")
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "dir:", "/tmp/store", "s3:bucket", "s3://bucket?mode=1", "http://host/bucket", "https://key:sesame@host/bucket"} {
		err := must.Err(open.Store(t.Context(), name, open.ReadOnly))
		must.Fail(t, fmt.Sprintf("store %q was opened", name), err)
		must.Hide(t, "the error", fmt.Sprint(err), "sesame")
	}
}
