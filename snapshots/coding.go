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
	c := borrowCodec()
	defer codecs.Put(c)
	return c.encode(GZ, body)
}

// unpack returns the identity of a packed entry, checked against its hash.
func (e ManifestEntry) unpack(packed []byte) ([]byte, error) {
	c := borrowCodec()
	defer codecs.Put(c)
	return c.unpack(e, packed)
}

// unpack is ManifestEntry.unpack.
func (c *codec) unpack(e ManifestEntry, packed []byte) ([]byte, error) {
	body := make([]byte, e.Size)
	err := c.gunzip.Reset(bytes.NewReader(packed))
	if err == nil {
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
func (b *Body) unpack(c *codec) (err error) {
	if b.Identity, err = c.unpack(b.Entry, b.Encoded[GZ]); err == nil {
		err = b.encode(c)
	}
	return err
}

// encode makes the codings that the body lacks.
func (b *Body) encode(c *codec) (err error) {
	for coding := range newWriter {
		if b.Encoded[coding] == nil {
			if b.Encoded[coding], err = c.encode(coding, b.Identity); err != nil {
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
		Entry:    ManifestEntry{SHA256: digest, Size: int64(len(identity)), ETag: ETag(digest)},
		Identity: identity, Encoded: map[string][]byte{},
	}
	c := borrowCodec()
	defer codecs.Put(c)
	return b, b.encode(c)
}

// codec has what encodes and decodes, and is used by one goroutine at a time. To make the tables takes
// longer than to encode a body, so those that nobody uses are kept, and none are made before they are used.
type codec struct {
	gunzip  gzip.Reader
	writers map[string]writer // by coding
	out     bytes.Buffer
}

var codecs = sync.Pool{New: func() any { return &codec{writers: map[string]writer{}} }}

func borrowCodec() *codec { return codecs.Get().(*codec) }

// writer is one that can begin anew.
type writer interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// newWriter makes the writer of each coding.
var newWriter = map[string]func() (writer, error){
	GZ: func() (writer, error) { return gzip.NewWriterLevel(nil, gzipLevel) },
	BR: func() (writer, error) { return brrr.NewWriter(nil, brotliLevel) },
	ZST: func() (writer, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderConcurrency(1))
	},
}

// encode returns a body in a coding.
func (c *codec) encode(coding string, body []byte) ([]byte, error) {
	w := c.writers[coding]
	if w == nil {
		var err error
		if w, err = newWriter[coding](); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		c.writers[coding] = w
	}
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
