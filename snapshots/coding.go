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

// A larger body is stored once, as gzip, which zcat reads. Each reader of a version makes the identity and
// the other codings from it. That takes no longer than reading and hashing three more objects, and a
// publish writes a sixth of the bytes and less than half of the objects.
//
// The other codings have no hash in the manifest, because another release of a compressor may make other
// bytes from the same body. An entity tag therefore names the body and the coding, not the exact bytes.
// That would matter for ranges only, and no client is sent a range. TestCodingsStay fails when they change.

// MinPacked is the size from which a body has codings, in bytes. A smaller body and its head of 0.6 KB fit
// into one packet without coding. Most bodies are those of one session, and most of these are smaller.
const MinPacked = 860

// Higher levels hardly make the bodies smaller. The strongest below 11 would take twice the time for 0.2 to
// 3 % of br, four times for 1 to 4 % of zst and twice for 1 to 4 % of gz. At 11, br is 8 to 12 % smaller
// and takes 75 times as long.
const (
	brotliLevel = 6
	gzipLevel   = 8
	zstdLevel   = zstd.SpeedBetterCompression

	// zstdWindow limits how far back a match reaches. No body is as large, and the default takes 16 MB more for
	// each encoder.
	zstdWindow = 1 << 20
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
	return c.unpack(e, packed, nil)
}

// checkPacked makes the checks of unpack on a packed entry, and keeps no identity. It accepts every other entry.
func (e ManifestEntry) checkPacked(packed []byte) (err error) {
	if !e.packed() {
		return nil
	}
	c := borrowCodec()
	defer codecs.Put(c)
	c.plain, err = c.unpack(e, packed, c.plain)
	return err
}

// unpack returns the identity of a packed entry, checked against its hash, in the memory of body if that is enough.
func (c *codec) unpack(e ManifestEntry, packed, body []byte) ([]byte, error) {
	if int64(cap(body)) < e.Size {
		body = make([]byte, e.Size)
	}
	body = body[:e.Size]
	err := c.gunzip.Reset(bytes.NewReader(packed))
	if err == nil {
		_, err = io.ReadFull(&c.gunzip, body)
	}
	if err == nil {
		if n, end := c.gunzip.Read(make([]byte, 1)); n > 0 || !errors.Is(end, io.EOF) {
			err = errors.Join(errors.New("data after the end"), end)
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

// unpack makes the identity and the other codings from the packed body. A lean body gets brotli alone.
func (b *Body) unpack(c *codec, lean bool) (err error) {
	if !lean {
		if b.Identity, err = c.unpack(b.Entry, b.Encoded[GZ], nil); err == nil {
			err = b.encode(c)
		}
		return err
	}
	if c.plain, err = c.unpack(b.Entry, b.Encoded[GZ], c.plain); err == nil {
		b.Encoded[BR], err = c.encode(BR, c.plain)
	}
	return err
}

// Plain returns the identity. A lean body keeps none, so each call unpacks it again. It is safe for concurrent use.
func (b *Body) Plain() []byte {
	if b.Identity != nil || b.Encoded[GZ] == nil {
		return b.Identity
	}
	identity, err := b.Entry.unpack(b.Encoded[GZ])
	if err != nil {
		panic("BUG: a body that was unpacked once cannot be unpacked: " + err.Error())
	}
	return identity
}

// encode makes the missing codings of the body.
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

// NewBody returns a body that is part of no version, in every coding, such as a page of the program.
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

// codec holds the encoders and the decoder of one goroutine. Making their tables takes longer than encoding
// a body, so idle ones stay in a pool and each is made on its first use.
type codec struct {
	gunzip  gzip.Reader
	writers map[string]writer // by coding
	out     bytes.Buffer
	plain   []byte // the identity of the last lean body
}

var codecs = sync.Pool{New: func() any { return &codec{writers: map[string]writer{}} }}

func borrowCodec() *codec { return codecs.Get().(*codec) }

// writer is an encoder that can be reset.
type writer interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// newWriter returns a new writer for each coding.
var newWriter = map[string]func() (writer, error){
	GZ: func() (writer, error) { return gzip.NewWriterLevel(nil, gzipLevel) },
	BR: func() (writer, error) { return brrr.NewWriter(nil, brotliLevel) },
	ZST: func() (writer, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow))
	},
}

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
	_, err := w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.Clone(c.out.Bytes()), nil
}
