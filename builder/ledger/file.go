package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Prefix begins the key of every ledger file.
const Prefix = "ledger/"

// File is the content of one ledger file, the events of one append.
//
// Its bytes are canonical: compact JSON in the order of these fields, nothing escaped that
// need not be, no newline at the end. Equal files have equal bytes, and DecodeFile accepts no
// other form. Together with the checksum that makes a change of any byte visible in the file
// itself; that a file was replaced by another valid one shows in the file after it, or by a
// hash noted earlier.
type File struct {
	Seq      int64   `json:"seq"`      // 1 for the first
	Previous string  `json:"previous"` // lower-case hex SHA-256 of the file before; empty in the first
	Kind     Kind    `json:"kind"`     // of the whole ledger
	Events   []Event `json:"events"`   // at least one; all of one instant
	Checksum string  `json:"checksum"` // lower-case hex SHA-256 of this file with an empty checksum
}

// maxSeq is the last sequence number that fits the width of Key.
const maxSeq = 99_999_999

// Key returns the store key of file seq. Numbers are padded to eight digits, so that keys in
// ascending order are files in order.
func Key(seq int64) string { return fmt.Sprintf("%s%08d.json", Prefix, seq) }

// parseKey is the inverse of Key.
func parseKey(key string) (seq int64, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(key, Prefix), ".json")
	seq, err := strconv.ParseInt(digits, 10, 64)
	return seq, err == nil && seq > 0 && Key(seq) == key
}

// Encode returns the bytes of the file. The checksum of f is not looked at but made anew.
func (f File) Encode() ([]byte, error) {
	f.Checksum = ""
	plain, err := encode(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Key(f.Seq), err)
	}
	f.Checksum = hash(plain)
	data, err := encode(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Key(f.Seq), err)
	}
	return data, nil
}

func encode(f File) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// DecodeFile reads the bytes of a file. It refuses every form but the one that Encode makes,
// and so unknown fields, repeated fields and a wrong checksum. It does not judge the events.
func DecodeFile(data []byte) (File, error) {
	var f File
	if err := json.Unmarshal(data, &f); err != nil {
		return File{}, fmt.Errorf("not a ledger file: %w", err)
	}
	again, err := f.Encode()
	if err != nil {
		return File{}, err
	}
	if bytes.Equal(again, data) {
		return f, nil
	}
	if sum := f.Checksum; len(again) == len(data) && !bytes.Contains(again, []byte(sum)) {
		return File{}, fmt.Errorf("checksum %s does not fit the content", sum)
	}
	return File{}, errors.New("not in canonical form")
}

// hash returns the lower-case hex SHA-256 of data.
func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
