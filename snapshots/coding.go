package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"
)

// A larger body is stored once, as gzip, which anybody can read with zcat. Whoever loads a version makes
// the identity and the other codings from it: that takes no longer than to read and hash three more
// objects would, and a publish writes a sixth of the bytes and less than half of the objects.
//
// The codings that are made have no hash in the manifest, so that another release of a compressor can
// make others of the same body. An entity tag therefore names the body and the coding, not the very
// bytes; nobody is sent parts of a body, where that would matter. TestCodingsStay says when they change.

// MinPacked is the size from which a body has codings, in bytes. A smaller one leaves in one packet with
// its head of 0.6 KB, encoded or not; such are most of the bodies of one session, which are most of all.
const MinPacked = 860

// The levels are where more work hardly makes the bodies smaller: the strongest below 11 would take
// twice the time for 0.2 to 3 % of br, four times for 1 to 4 % of zst and twice for 1 to 4 % of gz. At 11,
// br is 8 to 12 % smaller and takes 75 times as long.
const (
	brotliLevel = 6
	gzipLevel   = 8
	zstdLevel   = zstd.SpeedBetterCompression
)

// Pack returns a body as gzip, as New wants it: nil if it is smaller than MinPacked. The same body gives
// the same bytes. It is safe for concurrent use.
func Pack(body []byte) ([]byte, error) {
	if len(body) < MinPacked {
		return nil, nil
	}
	c, err := borrowCodec()
	if err != nil {
		return nil, err
	}
	defer codecs.Put(c)
	return c.encode(c.gzip, body)
}

// unpack returns the identity of a packed entry, checked against its hash.
func (e Entry) unpack(packed []byte) ([]byte, error) {
	c, err := borrowCodec()
	if err != nil {
		return nil, err
	}
	defer codecs.Put(c)
	body := make([]byte, e.Size)
	if err = c.gunzip.Reset(bytes.NewReader(packed)); err == nil {
		_, err = io.ReadFull(&c.gunzip, body)
	}
	if err == nil {
		if n, end := c.gunzip.Read(make([]byte, 1)); n > 0 || !errors.Is(end, io.EOF) {
			err = errors.Join(errors.New("there is more than that"), end)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w: it is not gzip of %d bytes: %w", e.Object, ErrDamaged, e.Size, err)
	}
	if got := Digest(body); got != e.SHA256 {
		return nil, fmt.Errorf("object %s: %w: the hash of its content is %s, manifest says %s", e.Object, ErrDamaged, got, e.SHA256)
	}
	return body, nil
}

// unpack makes the identity and the other codings of a body of which only the packed one is there.
func (b *Body) unpack() (err error) {
	if b.Identity, err = b.Entry.unpack(b.Encoded[GZ]); err == nil {
		err = b.encode()
	}
	return err
}

// encode makes the codings that the body lacks.
func (b *Body) encode() error {
	c, err := borrowCodec()
	if err != nil {
		return err
	}
	defer codecs.Put(c)
	for coding, w := range map[string]writer{GZ: c.gzip, BR: c.brotli, ZST: c.zstd} {
		if b.Encoded[coding] == nil {
			if b.Encoded[coding], err = c.encode(w, b.Identity); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewBody is a body in every coding that is of no version, such as a page of the program itself.
func NewBody(identity []byte) (*Body, error) {
	digest := Digest(identity)
	b := &Body{
		Entry:    Entry{SHA256: digest, Size: int64(len(identity)), ETag: ETag(digest)},
		Identity: identity, Encoded: map[string][]byte{},
	}
	return b, b.encode()
}

// codec has what encodes and decodes, and is used by one goroutine at a time. To make the tables takes
// longer than to encode a body, so those that nobody uses are kept.
type codec struct {
	gzip   *gzip.Writer
	gunzip gzip.Reader
	brotli *brrr.Writer
	zstd   *zstd.Encoder
	out    bytes.Buffer
}

var codecs sync.Pool

func borrowCodec() (*codec, error) {
	if c, idle := codecs.Get().(*codec); idle {
		return c, nil
	}
	c := &codec{}
	var errs [3]error
	c.gzip, errs[0] = gzip.NewWriterLevel(nil, gzipLevel)
	c.brotli, errs[1] = brrr.NewWriter(nil, brotliLevel)
	c.zstd, errs[2] = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderConcurrency(1))
	return c, errors.Join(errs[:]...)
}

// writer is one that can begin anew.
type writer interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// encode returns what a writer of the codec makes of the body.
func (c *codec) encode(w writer, body []byte) ([]byte, error) {
	c.out.Reset()
	w.Reset(&c.out)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.Clone(c.out.Bytes()), nil
}
