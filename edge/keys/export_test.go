package keys

// Seal returns an encoded list: its first line and the lines of its keys, and the checksum of both.
func Seal(lines []byte) []byte {
	list := append([]byte{}, lines...)
	list = append(list, listTail...)
	list = append(list, checksumOf(list, func() {})...)
	return append(list, listEnd...)
}
