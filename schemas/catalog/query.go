package catalog

import "bytes"

// pair is one name=value of a raw query, still encoded. Without "=" the value is empty.
type pair struct{ name, value []byte }

// wellFormed reports whether every "%" is followed by two hexadecimal digits.
func wellFormed(encoded []byte) bool {
	for i := bytes.IndexByte(encoded, '%'); i >= 0 && i < len(encoded); i++ {
		if encoded[i] != '%' {
			continue
		}
		if i+2 >= len(encoded) || unhex(encoded[i+1]) < 0 || unhex(encoded[i+2]) < 0 {
			return false
		}
	}
	return true
}

// nextByte decodes the first byte and returns the number of bytes it consumed. A "%" that encodes
// nothing stands for itself.
func nextByte(encoded []byte) (c byte, n int) {
	switch c = encoded[0]; {
	case c == '+':
		return ' ', 1
	case c == '%' && len(encoded) > 2 && unhex(encoded[1]) >= 0 && unhex(encoded[2]) >= 0:
		return byte(unhex(encoded[1])<<4 | unhex(encoded[2])), 3
	}
	return c, 1
}

// decodesTo reports whether encoded stands for the plain text.
func decodesTo(encoded []byte, plain string) bool {
	for i := range len(plain) {
		if len(encoded) == 0 {
			return false
		}
		c, n := nextByte(encoded)
		if c != plain[i] {
			return false
		}
		encoded = encoded[n:]
	}
	return len(encoded) == 0
}

// decode appends the decoded bytes to dst as far as its capacity allows, and reports whether
// all of them found room.
func decode(dst, encoded []byte) ([]byte, bool) {
	for len(encoded) > 0 {
		if len(dst) == cap(dst) {
			return dst, false
		}
		c, n := nextByte(encoded)
		dst, encoded = append(dst, c), encoded[n:]
	}
	return dst, true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
