package s3blob_test

import (
	"fmt"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/s3blob"
)

func TestParseURL(t *testing.T) {
	golden.Table(t, "testdata/urls.txt", func(name string) string {
		config, err := s3blob.ParseURL(name)
		if err != nil {
			must.Hide(t, name, err.Error(), "sesame")
			return err.Error()
		}
		return fmt.Sprintf("%+v", config)
	})
}
