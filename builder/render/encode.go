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

// MinEncoded is the size from which a body is encoded, in bytes. A smaller one leaves in one packet with
// its head of 0.6 KB, encoded or not; such are most of the bodies of one session, which are most of all.
const MinEncoded = 860

// Encode returns the stored content codings of a body, by their suffix in the store: gz, br
// and zst; none of a body that is smaller than MinEncoded. The same body gives the same bytes. It is
// safe for concurrent use.
func Encode(body []byte) (map[string][]byte, error) {
	if len(body) < MinEncoded {
		return map[string][]byte{}, nil
	}
	w, known := idle.Get().(*writers)
	if !known {
		var err error
		if w, err = newWriters(); err != nil {
			return nil, err
		}
	}
	defer idle.Put(w)
	gz, err := w.encode(w.gz, body)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	br, err := w.encode(w.br, body)
	if err != nil {
		return nil, fmt.Errorf("brotli: %w", err)
	}
	return map[string][]byte{"gz": gz, "br": br, "zst": w.zst.EncodeAll(body, nil)}, nil
}

// The levels are where more work hardly makes the bodies smaller: the strongest below 11 would take
// twice the time for 0.2 to 3 % of br, four times for 1 to 4 % of zst and twice for 1 to 4 % of gz, and
// to encode is most of what a build does. At 11, br is 8 to 12 % smaller and takes 75 times as long.
const (
	brotliLevel = 6
	gzipLevel   = 8
	zstdLevel   = zstd.SpeedBetterCompression
)

// writers are used again and again: to make their tables takes longer than to encode a body.
type writers struct {
	gz  *gzip.Writer
	br  *brrr.Writer
	zst *zstd.Encoder
	out bytes.Buffer
}

// idle holds the writers that nobody uses.
var idle sync.Pool

func newWriters() (w *writers, err error) {
	w = &writers{}
	if w.gz, err = gzip.NewWriterLevel(nil, gzipLevel); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if w.br, err = brrr.NewWriter(nil, brotliLevel); err != nil {
		return nil, fmt.Errorf("brotli: %w", err)
	}
	if w.zst, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderConcurrency(1)); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return w, nil
}

// resetter is a writer that can begin anew.
type resetter interface {
	io.WriteCloser
	Reset(io.Writer)
}

// encode returns what a writer makes of the body.
func (w *writers) encode(writer resetter, body []byte) ([]byte, error) {
	w.out.Reset()
	writer.Reset(&w.out)
	if _, err := writer.Write(body); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(w.out.Bytes()), nil
}
