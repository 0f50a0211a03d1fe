// Package tiles shows the ledger as a transparency log that any reader of the standard can check: checkpoint and
// tiles of c2sp.org/tlog-tiles, proofs of c2sp.org/tlog-proof. The chain of files stays the record. A leaf of the
// log is a line with the number and the hash of one file.
//
// The log is part of a version, so tiles and checkpoint become visible together. A simulated ledger has an origin of
// its own, so that nobody takes it for the real one.
package tiles

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"gridcast/builder/ledger"
	"gridcast/snapshots"
	"gridcast/snapshots/notes"
)

// Checkpoint is the stored path of the signed head of the log. Tiles are stored beside it, below tile/, without
// their width: the edge cuts a narrower tile from the stored one.
const Checkpoint = snapshots.LogFolder + "checkpoint"

// height is the height of a tile: 256 hashes.
const height = 8

// Log is the log of the files of a ledger.
type Log struct {
	kind   ledger.Kind
	leaves [][]byte
	hashes []tlog.Hash // in the order of tlog.StoredHashIndex
}

// New returns the log of the files, which begin with the first.
func New(files []ledger.File) (*Log, error) {
	l := &Log{}
	for i, f := range files {
		l.kind = f.Kind
		leaf := leafOf(f.Seq, f.Hash)
		more, err := tlog.StoredHashes(int64(i), leaf, l)
		if err != nil {
			return nil, fmt.Errorf("log of the ledger: %w", err)
		}
		l.leaves, l.hashes = append(l.leaves, leaf), append(l.hashes, more...)
	}
	return l, nil
}

// leafOf is the leaf of a file of the ledger.
func leafOf(seq int64, hash string) []byte {
	return fmt.Appendf(nil, "ledger %d sha256 %s\n", seq, hash)
}

// ReadHashes returns hashes of the tree, for package tlog.
func (l *Log) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(l.hashes)) {
			return nil, fmt.Errorf("hash %d is beyond the log", index)
		}
		found[i] = l.hashes[index]
	}
	return found, nil
}

// Text returns the checkpoint of the log without signatures. name is that of the signing key.
func (l *Log) Text(name string) (string, error) {
	root, err := tlog.TreeHash(int64(len(l.leaves)), l)
	if err != nil {
		return "", fmt.Errorf("log of the ledger: %w", err)
	}
	if l.kind == ledger.Simulated {
		name += notes.Simulated
	}
	return fmt.Sprintf("%s\n%d\n%s\n", name, len(l.leaves), root), nil
}

// Tiles returns every tile of hashes and of leaves, by stored path.
func (l *Log) Tiles() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, t := range tlog.NewTiles(height, 0, int64(len(l.leaves))) {
		data, err := tlog.ReadTileData(t, l)
		if err != nil {
			return nil, fmt.Errorf("log of the ledger: %w", err)
		}
		// A partial tile comes after narrower ones of the same place, if there are any.
		all[fmt.Sprintf("%stile/%d/%s", snapshots.LogFolder, t.L, place(t.N))] = data
	}
	for n := int64(0); n<<height < int64(len(l.leaves)); n++ {
		var bundle []byte
		for _, leaf := range l.leaves[n<<height : min((n+1)<<height, int64(len(l.leaves)))] {
			bundle = append(binary.BigEndian.AppendUint16(bundle, uint16(len(leaf))), leaf...)
		}
		all[snapshots.LogFolder+"tile/entries/"+place(n)] = bundle
	}
	return all, nil
}

// place writes the number of a tile in groups of three digits: x001/x234/067.
func place(n int64) string {
	text := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		text = fmt.Sprintf("x%03d/%s", n%1000, text)
	}
	return text
}

const proofHead = "c2sp.org/tlog-proof@v1"

// Prove returns the proof that a file of the ledger is in the log of a checkpoint. The proof holds the file.
func (l *Log) Prove(file ledger.File, checkpoint []byte) ([]byte, error) {
	if size := int64(len(l.leaves)); file.Seq > size {
		return nil, fmt.Errorf("the log of the current version ends at ledger file %d, before file %d; the next build publishes it: gridcast build --sign FILE", size, file.Seq)
	}
	data, err := file.Encode()
	if err != nil {
		return nil, err
	}
	if got := snapshots.Digest(data); got != file.Hash {
		return nil, fmt.Errorf("ledger file %d: %w: its hash is %s, the ledger has %s", file.Seq, snapshots.ErrDamaged, got, file.Hash)
	}
	hashes, err := tlog.ProveRecord(int64(len(l.leaves)), file.Seq-1, l)
	if err != nil {
		return nil, fmt.Errorf("prove ledger file %d: %w", file.Seq, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofHead, base64.StdEncoding.EncodeToString(data), file.Seq-1)
	for _, h := range hashes {
		fmt.Fprintf(&b, "%s\n", h)
	}
	b.WriteByte('\n')
	b.Write(checkpoint)
	return b.Bytes(), nil
}

// Proven is a file of the ledger that a log has.
type Proven struct {
	Origin string      `json:"origin"`
	Size   int64       `json:"size"` // of the log
	File   ledger.File `json:"file"`
	Keys   []string    `json:"keys"` // the trusted keys that signed the checkpoint
}

// Verify checks a proof by the keys that may sign a checkpoint. It trusts the file in the proof only because the
// log has its hash.
func Verify(text []byte, trust notes.Trust) (Proven, error) {
	head, checkpoint, whole := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !whole || len(lines) < 3 || lines[0] != proofHead {
		return Proven{}, fmt.Errorf("it is no %s with a ledger file, as gridcast ledger prove prints it", proofHead)
	}
	n, size, root, err := ReadCheckpoint(checkpoint, trust)
	if err != nil {
		return Proven{}, err
	}
	extra, hasExtra := strings.CutPrefix(lines[1], "extra ")
	data, err := base64.StdEncoding.DecodeString(extra)
	number, hasIndex := strings.CutPrefix(lines[2], "index ")
	index, indexErr := strconv.ParseInt(number, 10, 64)
	if err != nil || indexErr != nil || !hasExtra || !hasIndex {
		return Proven{}, errors.New("its ledger file or its index cannot be read")
	}
	var proof tlog.RecordProof
	for _, line := range lines[3:] {
		h, err := tlog.ParseHash(line)
		if err != nil {
			return Proven{}, fmt.Errorf("hash %q: %w", line, err)
		}
		proof = append(proof, h)
	}
	leaf := leafOf(index+1, snapshots.Digest(data))
	if err := tlog.CheckRecord(proof, size, root, index, tlog.RecordHash(leaf)); err != nil {
		return Proven{}, fmt.Errorf("the log of %s does not have this ledger file: %w", n.Origin, err)
	}
	file, err := ledger.DecodeFile(data)
	return Proven{Origin: n.Origin, Size: size, File: file, Keys: n.Keys}, err
}

// ReadCheckpoint verifies a checkpoint, and returns the size and the root of its log.
func ReadCheckpoint(data []byte, trust notes.Trust) (n notes.Note, size int64, root tlog.Hash, err error) {
	if n, err = trust.Open(data); err != nil {
		return n, 0, root, fmt.Errorf("checkpoint: %w", err)
	}
	if len(n.Lines) < 2 {
		return n, 0, root, errors.New("checkpoint: it has no size or no root")
	}
	size, err = strconv.ParseInt(n.Lines[0], 10, 64)
	if err == nil {
		root, err = tlog.ParseHash(n.Lines[1])
	}
	if err != nil || size < 1 || n.Lines[0] != strconv.FormatInt(size, 10) {
		return n, 0, root, fmt.Errorf("checkpoint: size %q or root %q cannot be read", n.Lines[0], n.Lines[1])
	}
	return n, size, root, nil
}

// Add adds the log of the files to a draft, signed by the keys. Equal files and keys give equal bytes, so a version
// without news in the ledger keeps the tiles and the checkpoint of its base.
func Add(d *snapshots.Draft, s *notes.Signers, files []ledger.File) error {
	if s == nil {
		return nil
	}
	l, err := New(files)
	if err != nil {
		return err
	}
	all, err := l.Tiles()
	if err != nil {
		return err
	}
	text, err := l.Text(s.Origin())
	if err != nil {
		return err
	}
	if all[Checkpoint], err = s.SignText(text); err != nil {
		return err
	}
	for path, data := range all {
		d.Variants = append(d.Variants, snapshots.New(path, data, nil, d.BuiltAt))
	}
	return nil
}

// Size returns the number of ledger files in the log of a checkpoint, without looking at its signatures. It is at most
// the number of files that there are.
func Size(checkpoint []byte, files int) int {
	lines := strings.SplitN(string(checkpoint), "\n", 3)
	if len(lines) < 3 {
		return 0
	}
	size, err := strconv.Atoi(lines[1])
	if err != nil {
		return 0
	}
	return max(0, min(size, files))
}

// Remake makes the log of a version again from the files of its ledger: tiles and checkpoint by path. The key is not
// at hand, so a checkpoint with the right text counts as made again.
func Remake(files []ledger.File, checkpoint []byte) (map[string][]byte, error) {
	text, _, _ := bytes.Cut(checkpoint, []byte("\n\n"))
	origin, _, _ := strings.Cut(string(text), "\n")
	l, err := New(files[:Size(checkpoint, len(files))])
	if err != nil {
		return nil, err
	}
	all, err := l.Tiles()
	if err != nil {
		return nil, err
	}
	again, err := l.Text(strings.TrimSuffix(origin, notes.Simulated))
	if all[Checkpoint] = []byte(again); again == string(text)+"\n" {
		all[Checkpoint] = slices.Clone(checkpoint)
	}
	return all, err
}
