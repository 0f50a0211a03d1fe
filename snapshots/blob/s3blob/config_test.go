package s3blob_test

import (
	"fmt"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/snapshots/blob/s3blob"
)

func TestParseURL(t *testing.T) {
	golden.Table(t, "testdata/urls.txt", func(name string) string {
		config, err := s3blob.ParseURL(name)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%+v", config)
	})
}
