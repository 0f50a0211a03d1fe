//go:build !linux

package dirblob

import (
	"errors"
	"os"
)

func createUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkUnnamed(*os.File, string) error { return errors.ErrUnsupported }

func syncAll(*os.File) error { return errors.ErrUnsupported }
