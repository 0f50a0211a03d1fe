package f1db

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"gridcast/builder/source"
)

// Tree holds the files below src/data of a commit of F1DB's repository, without the seasons outside
// From and To. It is immutable.
type Tree struct {
	Commit string // hexadecimal; empty if the archive does not say
	// Committed is the time of the commit: the latest of the archive's entries. It is zero if they have none.
	Committed time.Time
	From, To  int // seasons, inclusive
	files     map[string][]byte
}

// Limits of an archive of the repository. F1DB has 4 MB packed, 43 MB and 16,000 files unpacked.
const (
	MaxPacked   = 64 << 20
	MaxUnpacked = 512 << 20
	MaxEntries  = 60_000
	maxFile     = 1 << 20
)

// noCommit stands for the commit of a tree without one.
const noCommit = "-"

// dataFolder is where the repository keeps its facts.
const dataFolder = "src/data/"

// ReadTree reads a branch of the repository from the tar.gz of a code host: one top folder, regular
// files, the commit in the header of the archive. It keeps the seasons from and to, inclusive. It
// refuses an archive that is cut off, too large, or of another shape. The error names the entry.
func ReadTree(packed io.Reader, from, to int) (*Tree, error) {
	unzipped, err := gzip.NewReader(io.LimitReader(packed, MaxPacked+1))
	if err != nil {
		return nil, fmt.Errorf("read f1db repository: not a tar.gz: %w", err)
	}
	limited := &io.LimitedReader{R: unzipped, N: MaxUnpacked + 1}
	tree := &Tree{From: from, To: to, files: make(map[string][]byte)}
	archive := tar.NewReader(limited)
	top, entries := "", 0
	for {
		header, err := archive.Next()
		if limited.N <= 0 {
			return nil, fmt.Errorf("read f1db repository: larger than %d bytes unpacked", MaxUnpacked)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read f1db repository, entry %d: %w", entries+1, err)
		}
		if entries++; entries > MaxEntries {
			return nil, fmt.Errorf("read f1db repository: more than %d entries", MaxEntries)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			// git writes the commit as the comment of the archive.
			if id, err := hex.DecodeString(header.PAXRecords["comment"]); err == nil && len(id) >= 20 {
				tree.Commit = header.PAXRecords["comment"]
			}
			continue
		}
		name := header.Name
		folder, rest, _ := strings.Cut(name, "/")
		switch {
		case header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir:
			return nil, fmt.Errorf("read f1db repository: %q is neither a regular file nor a folder", name)
		case path.IsAbs(name) || path.Clean(name) != strings.TrimSuffix(name, "/") || folder == "..":
			return nil, fmt.Errorf("read f1db repository: path %q is not clean", name)
		case top != "" && folder != top:
			return nil, fmt.Errorf("read f1db repository: %q is not in the top folder %q", name, top)
		case header.Size > maxFile:
			return nil, fmt.Errorf("read f1db repository: %q has %d bytes, may have %d", name, header.Size, maxFile)
		}
		top = folder
		if at := header.ModTime.UTC(); at.Unix() > 0 && at.After(tree.Committed) {
			tree.Committed = at
		}
		rest, data := strings.CutPrefix(rest, dataFolder)
		if header.Typeflag == tar.TypeDir || !data || !tree.wants(rest) {
			continue
		}
		if _, ok := tree.files[rest]; ok {
			return nil, fmt.Errorf("read f1db repository: %q is there twice", name)
		}
		if tree.files[rest], err = io.ReadAll(archive); err != nil {
			return nil, fmt.Errorf("read f1db repository: %q: %w", name, err)
		}
	}
	// Read the bytes after the last entry too, because the archive may be cut off there.
	_, err = io.Copy(zeros{}, limited)
	if limited.N <= 0 {
		err = fmt.Errorf("larger than %d bytes unpacked", MaxUnpacked)
	}
	if err != nil {
		return nil, fmt.Errorf("read f1db repository: %w", err)
	}
	if len(tree.files) == 0 {
		return nil, fmt.Errorf("read f1db repository: no file under %s speaks of %d to %d", dataFolder, from, to)
	}
	return tree, nil
}

// zeros takes the zeros after the last entry of an archive. A gap of zeros between two entries looks like the end.
type zeros struct{}

// Write implements [io.Writer].
func (zeros) Write(p []byte) (int, error) {
	if bytes.Count(p, []byte{0}) < len(p) {
		return 0, errors.New("entries follow the end of the archive")
	}
	return len(p), nil
}

// wants reports whether a file below src/data is of the seasons, or a thing to which their rows may
// refer.
func (t *Tree) wants(name string) bool {
	folder, rest, _ := strings.Cut(name, "/")
	if path.Ext(name) != ".yml" {
		return false
	}
	if folder != "seasons" {
		return slices.ContainsFunc(thingTables, func(t table) bool { return t.stem == folder })
	}
	year, _, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(year)
	return err == nil && n >= t.From && n <= t.To
}

// Encode returns the tree as one compressed file for DecodeTree. Equal trees give equal bytes.
func (t *Tree) Encode() ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(source.Window))
	if err != nil {
		return nil, fmt.Errorf("encode f1db tree: %w", err)
	}
	archive := tar.NewWriter(compressed)
	about := fmt.Sprintf("%s %d %d %d\n", cmp.Or(t.Commit, noCommit), t.From, t.To, max(0, t.Committed.Unix()))
	write := func(name string, content []byte) error {
		header := tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	err = write("about", []byte(about))
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		err = errors.Join(err, write(name, t.files[name]))
	}
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("encode f1db tree: %w", err)
	}
	return packed.Bytes(), nil
}

// DecodeTree is the inverse of Encode.
func DecodeTree(packed []byte) (*Tree, error) {
	plain, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("decode f1db tree: %w", err)
	}
	defer plain.Close()
	tree := &Tree{files: make(map[string][]byte)}
	for archive := tar.NewReader(io.LimitReader(plain, MaxUnpacked)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("decode f1db tree: %w", err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("decode f1db tree: %s: %w", header.Name, err)
		}
		if header.Name != "about" {
			tree.files[header.Name] = content
			continue
		}
		var at int64
		if _, err := fmt.Sscanf(string(content), "%s %d %d %d\n", &tree.Commit, &tree.From, &tree.To, &at); err != nil {
			return nil, fmt.Errorf("decode f1db tree: about %q: %w", content, err)
		}
		if tree.Commit == noCommit {
			tree.Commit = ""
		}
		if at > 0 {
			tree.Committed = time.Unix(at, 0).UTC()
		}
	}
	if len(tree.files) == 0 || tree.To == 0 {
		return nil, errors.New("decode f1db tree: no files in it")
	}
	return tree, nil
}
