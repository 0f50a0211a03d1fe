package calendar

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// packedZones is the tz database of the Go distribution, lib/time/zoneinfo.zip, compressed as a whole:
// an eighth of the size of package time/tzdata. TestZones makes it anew.
//
//go:embed zoneinfo.zip.zst
var packedZones []byte

var zones = sync.OnceValues(func() (*zip.Reader, error) {
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer unpack.Close()
	plain, err := unpack.DecodeAll(packedZones, nil)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(plain), int64(len(plain)))
})

// zone returns a time zone by its IANA name. It prefers the machine's own tz database, which may be
// newer, and uses packedZones on a machine without one, such as an image from scratch.
func zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" { // the empty and the local name depend on the machine
		return nil, fmt.Errorf("the time zone %q is not allowed: want an IANA name such as Europe/London", name)
	}
	if known, err := time.LoadLocation(name); err == nil {
		return known, nil
	}
	return packedZone(name)
}

func packedZone(name string) (*time.Location, error) {
	all, err := zones()
	if err != nil {
		return nil, fmt.Errorf("read the time zones: %w", err)
	}
	file, err := all.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the time zone %q is not known: want an IANA name such as Europe/London", name)
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the time zone %s: %w", name, err)
	}
	return time.LoadLocationFromTZData(name, data)
}
