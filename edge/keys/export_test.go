package keys

import "time"

// Seal returns an encoded list: its first line and the lines of its keys, and the checksum of both.
func Seal(lines []byte) []byte {
	list := append([]byte{}, lines...)
	list = append(list, listTail...)
	list = append(list, checksumOf(list, func() {})...)
	return append(list, listEnd...)
}

// UpdateBelow is Update for a list that is full at a size in bytes.
var UpdateBelow = update

// MaxChanges is more than all changes of a list.
const MaxChanges = maxChanges

// Full is the size at which a list is full.
const Full = MaxSize - roomToRevoke

// Lookup returns the entry of a key that is accepted at now, or nil.
func (t *Table) Lookup(hash Hash, now time.Time) *Key {
	if entry := t.Find(&hash); entry != nil && entry.Accepts(now) {
		return entry
	}
	return nil
}
