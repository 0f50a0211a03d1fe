//go:build !linux

package dirblob

import (
	"errors"
	"os"
)

func syncAll(*os.File) error { return errors.ErrUnsupported }
