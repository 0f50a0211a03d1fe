package render

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"
)

// Encode returns the stored content codings of a body, by their suffix in the store: gz, br
// and zst, each at its strongest level, since a body is encoded once and served for years.
// The same body gives the same bytes.
func Encode(body []byte) (map[string][]byte, error) {
	gz, err := encodeWith(body, func(w io.Writer) (io.WriteCloser, error) {
		return gzip.NewWriterLevel(w, gzip.BestCompression)
	})
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	br, err := encodeWith(body, func(w io.Writer) (io.WriteCloser, error) {
		return brrr.NewWriter(w, brotliLevel)
	})
	if err != nil {
		return nil, fmt.Errorf("brotli: %w", err)
	}
	zst, err := zstdEncoder()
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return map[string][]byte{"gz": gz, "br": br, "zst": zst.EncodeAll(body, nil)}, nil
}

const brotliLevel = 11

// zstdEncoder is shared: EncodeAll is safe for concurrent use.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
})

func encodeWith(body []byte, open func(io.Writer) (io.WriteCloser, error)) ([]byte, error) {
	var out bytes.Buffer
	w, err := open(&out)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
