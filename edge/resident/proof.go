package resident

import (
	"encoding/binary"
	"strconv"
	"strings"

	"gridcast/snapshots"
)

// The proof of a version stands below these paths, for everybody: the public log of the ledger, and the signed note
// with the files of the manifest.
const (
	logPath    = "/" + snapshots.LogFolder
	signedPath = "/signed/"
)

// tileWidth is the number of hashes or leaves in a full tile.
const tileWidth = 256

// A checkpoint and a note change with each version. A tile of a given width never changes, nor does a manifest.
var (
	plainText = NewField("Content-Type", "text/plain; charset=utf-8")
	binaries  = NewField("Content-Type", "application/octet-stream")
	moments   = NewField("Cache-Control", "public, max-age=5")
	forEver   = NewField("Cache-Control", "public, max-age=31536000, immutable")
)

// Proves reports whether a path is one that Proof knows in some version.
func Proves(path string) bool {
	return strings.HasPrefix(path, logPath) || strings.HasPrefix(path, signedPath)
}

// Proof returns the page of a path below /log/ or /signed/; nil if the version has none.
func (s *Set) Proof(path string) *Page {
	if s == nil {
		return nil
	}
	if key, ok := strings.CutPrefix(path, signedPath); ok {
		if key == "note" {
			return proof(s.version.Note(), plainText, moments)
		}
		return proof(s.version.ManifestFile(key), binaries, forEver)
	}
	name, width, partial := strings.Cut(path[1:], ".p/")
	body, ok := s.version.Body(name)
	switch {
	case !ok:
		return nil
	case !strings.HasPrefix(name, snapshots.LogFolder+"tile/"):
		return proof(body.Identity, plainText, moments)
	}
	n := tileWidth
	if partial {
		var err error
		if n, err = strconv.Atoi(width); err != nil || n < 1 || n >= tileWidth || width != strconv.Itoa(n) {
			return nil
		}
	}
	if strings.HasPrefix(name, snapshots.LogFolder+"tile/entries/") {
		return proof(leaves(body.Identity, n), binaries, forEver)
	}
	const hash = 32
	if len(body.Identity) < n*hash {
		return nil
	}
	return proof(body.Identity[:n*hash], binaries, forEver)
}

// leaves returns the first n leaves of a bundle, each with its length before it; nil if there are fewer.
func leaves(bundle []byte, n int) []byte {
	end := 0
	for range n {
		if len(bundle) < end+2 {
			return nil
		}
		end += 2 + int(binary.BigEndian.Uint16(bundle[end:]))
	}
	if end > len(bundle) {
		return nil
	}
	return bundle[:end]
}

// proof makes the page of some bytes; nil if there are none.
func proof(data []byte, contentType, lifetime Field) *Page {
	if data == nil {
		return nil
	}
	entry := snapshots.ManifestEntry{ETag: snapshots.ETag(snapshots.Digest(data))}
	return NewPage(&snapshots.Body{Entry: entry, Identity: data}, contentType, lifetime)
}
