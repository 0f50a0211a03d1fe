package main

import (
	"context"
	"fmt"
	"strings"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// openStore opens the store that a --store flag names.
func openStore(_ context.Context, name string) (blob.Store, error) {
	path, ok := strings.CutPrefix(name, "dir:")
	if !ok {
		return nil, usageError{fmt.Errorf("--store %q: must be dir:PATH", name)}
	}
	return dirblob.Open(path)
}
