package ledger

import (
	"fmt"
	"strconv"
	"time"
)

// Head identifies a state of the ledger: its last file.
type Head struct {
	Seq  int64  `json:"seq"`  // 0: there is no file
	Hash string `json:"hash"` // lower-case hex SHA-256 of the file; empty if there is none
}

// DamageError says that the files in the store are not a whole ledger, and where that shows
// first. Nothing after that place can be trusted.
type DamageError struct {
	Key  string // the store key of the file
	Want string // what was expected there
	Got  string // what was found
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("ledger damaged at %s: expected %s, found %s", e.Key, e.Want, e.Got)
}

// chain checks files one after the other.
type chain struct {
	head Head
	kind Kind
	at   time.Time // of the last event
}

// next checks that data is the file after the head, and moves on to it. Nil data is a file
// that is missing.
func (c *chain) next(data []byte) (File, *DamageError) {
	key := Key(c.head.Seq + 1)
	damage := func(want, got string) (File, *DamageError) {
		return File{}, &DamageError{Key: key, Want: want, Got: got}
	}
	if data == nil {
		return damage("a file, for there is one after it", "none")
	}
	f, err := DecodeFile(data)
	if err != nil {
		return damage("a ledger file with the checksum of its content", err.Error())
	}
	if f.Seq != c.head.Seq+1 {
		return damage(fmt.Sprintf("sequence number %d", c.head.Seq+1), strconv.FormatInt(f.Seq, 10))
	}
	if f.Previous != c.head.Hash {
		return damage(fmt.Sprintf("the hash %q of the file before", c.head.Hash), fmt.Sprintf("%q", f.Previous))
	}
	if len(f.Events) == 0 {
		return damage("at least one event", "none")
	}
	first := f.Events[0]
	if c.head.Seq == 0 {
		if first.Type != Opened || first.Kind != f.Kind || (f.Kind != Real && f.Kind != Simulated) {
			return damage("a first event that opens a real or simulated ledger",
				fmt.Sprintf("%s %q in a file of kind %q", first.Type, first.Kind, f.Kind))
		}
	} else if f.Kind != c.kind {
		return damage(fmt.Sprintf("kind %q", c.kind), fmt.Sprintf("%q", f.Kind))
	}
	if first.At.Before(c.at) {
		return damage("an instant not before "+c.at.Format(time.RFC3339Nano), first.At.Format(time.RFC3339Nano))
	}
	for _, e := range f.Events {
		if !e.At.Equal(first.At) {
			return damage("events of one instant, "+first.At.Format(time.RFC3339Nano), e.At.Format(time.RFC3339Nano))
		}
	}
	c.head, c.kind, c.at = Head{Seq: f.Seq, Hash: hash(data)}, f.Kind, first.At
	return f, nil
}
