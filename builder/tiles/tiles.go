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

// Keys is the stored path of the verifier keys of the log, one a line.
const Keys = snapshots.LogFolder + "verifier-keys"

// ProofFolder begins the stored path of the proof of a frozen pick. The session key of its round follows.
const ProofFolder = snapshots.LogFolder + "proof/"

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
func (l *Log) Text(name string) (string, error) { return l.textAt(name, int64(len(l.leaves))) }

// textAt returns the checkpoint of the log when it had size files.
func (l *Log) textAt(name string, size int64) (string, error) {
	root, err := tlog.TreeHash(size, l)
	if err != nil {
		return "", fmt.Errorf("log of the ledger: %w", err)
	}
	if l.kind == ledger.Simulated {
		name += notes.Simulated
	}
	return fmt.Sprintf("%s\n%d\n%s\n", name, size, root), nil
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

// Prove returns the proof that a file of the ledger is in the log as it was when that file was its last one. sign signs
// the checkpoint of that log. The proof holds the file. Equal files and keys give equal bytes, so a proof never changes
// while the same keys sign.
func (l *Log) Prove(file ledger.File, name string, sign func(text string) ([]byte, error)) ([]byte, error) {
	data, err := file.Encode()
	if err != nil {
		return nil, err
	}
	if got := snapshots.Digest(data); got != file.Hash {
		return nil, fmt.Errorf("ledger file %d: %w: its hash is %s, the ledger has %s", file.Seq, snapshots.ErrDamaged, got, file.Hash)
	}
	hashes, err := tlog.ProveRecord(file.Seq, file.Seq-1, l)
	if err != nil {
		return nil, fmt.Errorf("prove ledger file %d: %w", file.Seq, err)
	}
	text, err := l.textAt(name, file.Seq)
	if err != nil {
		return nil, err
	}
	checkpoint, err := sign(text)
	if err != nil {
		return nil, err
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

// CheckProof checks a proof by the keys that may sign a checkpoint. It trusts the file in the proof only because the
// log has its hash.
func CheckProof(text []byte, trust notes.Trust) (Proven, error) {
	head, checkpoint, whole := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !whole || len(lines) < 3 || lines[0] != proofHead {
		return Proven{}, fmt.Errorf("it is no %s with a ledger file, as gridcast ledger prove prints it and /log/proof/KEY has it", proofHead)
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

// Add adds the log of the files to a draft, signed by the keys, with the proof of each frozen pick that counts in the
// state. Equal files and keys give equal bytes, so a version without news in the ledger keeps the log of its base, and a
// proof stays as it was made at the freeze.
func Add(d *snapshots.Draft, s *notes.Signers, files []ledger.File, state *ledger.Fold) error {
	if s == nil {
		return nil
	}
	l, all, text, err := unsigned(files, s.Origin())
	if err == nil {
		all[Checkpoint], err = s.SignText(text)
	}
	if err != nil {
		return err
	}
	all[Keys] = []byte(strings.Join(s.Public(), "\n") + "\n")
	size, err := l.signedBy(d.Base, s)
	if err != nil {
		return err
	}
	for path, file := range picks(files, state) {
		if entry, ok := d.Base.Entry(path); ok && file.Seq <= size {
			d.Variants = append(d.Variants, snapshots.Reused(entry))
		} else if all[path], err = l.Prove(file, s.Origin(), s.SignText); err != nil {
			return err
		}
	}
	for path, data := range all {
		d.Variants = append(d.Variants, snapshots.New(path, data, nil, d.BuiltAt))
	}
	return nil
}

// unsigned returns the log of the files, its tiles, and its checkpoint without signatures.
func unsigned(files []ledger.File, name string) (l *Log, all map[string][]byte, text string, err error) {
	if l, err = New(files); err == nil {
		all, err = l.Tiles()
	}
	if err == nil {
		text, err = l.Text(name)
	}
	return l, all, text, err
}

// signedBy returns the size of the log of a version, or 0 if the version has another log, or one by other keys.
func (l *Log) signedBy(base *snapshots.Base, s *notes.Signers) (size int64, err error) {
	entry, ok := base.Entry(Checkpoint)
	if size = base.Manifest.Ledger.Seq; !ok || size > int64(len(l.leaves)) {
		return 0, nil
	}
	text, err := l.textAt(s.Origin(), size)
	if err != nil {
		return 0, err
	}
	if checkpoint, err := s.SignText(text); err != nil || snapshots.Digest(checkpoint) != entry.SHA256 {
		return 0, err
	}
	return size, nil
}

// picks returns the files with the frozen picks that count, by the stored paths of their proofs.
func picks(files []ledger.File, state *ledger.Fold) map[string]ledger.File {
	found := map[string]ledger.File{}
	for _, file := range files {
		for _, e := range file.Events {
			if e.Type != ledger.PickFrozen {
				continue
			}
			if r, _ := state.Record(e.Session); r.Pick != nil && r.Pick.EventID == e.ID {
				found[fmt.Sprint(ProofFolder, e.Session)] = file
			}
		}
	}
	return found
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

// Remake makes the log of a version again from the files of its ledger and the state after them, by path. stored has
// the files of the log that are signed. The keys are not at hand, so a file with the right text counts as made again,
// and so do keys that have signed the checkpoint.
func Remake(files []ledger.File, state *ledger.Fold, stored map[string][]byte) (map[string][]byte, error) {
	origin, _, _ := strings.Cut(string(stored[Checkpoint]), "\n")
	name := strings.TrimSuffix(origin, notes.Simulated)
	l, all, again, err := unsigned(files, name)
	if err != nil {
		return nil, err
	}
	all[Checkpoint] = []byte(again)
	if stored[Keys] == nil {
		state = &ledger.Fold{} // a version of an earlier release has no proofs
	}
	for path, file := range picks(files, state) {
		if all[path], err = l.Prove(file, name, func(text string) ([]byte, error) { return []byte(text), nil }); err != nil {
			return nil, err
		}
	}
	for path, data := range stored {
		if i := bytes.LastIndex(data, []byte("\n\n")); i >= 0 && bytes.Equal(all[path], data[:i+1]) {
			all[path] = data
		}
	}
	if trust, err := notes.NewTrust(strings.Fields(string(stored[Keys]))...); err == nil {
		if _, err = trust.Open(stored[Checkpoint]); err == nil {
			all[Keys] = stored[Keys]
		}
	}
	return all, nil
}
