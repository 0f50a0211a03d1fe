package express

import (
	"bytes"
	"encoding/binary"

	"gridcast/edge/negotiate"
)

const (
	method  = "GET "
	version = " HTTP/1.1\r\n"
)

// parse reads the head of a request from the start of b into r and returns its length, or 0
// if the head is incomplete or not strictly of the recognised form. A recognised head must
// mean the same to the server; the server judges everything else, valid or not.
func (r *Request) parse(b []byte) int {
	if len(b) < len(method) || string(b[:len(method)]) != method {
		return 0
	}
	end := bytes.IndexByte(b[len(method):], ' ')
	if end < 0 {
		return 0
	}
	at := len(method) + end
	if len(b)-at < len(version) || string(b[at:at+len(version)]) != version {
		return 0
	}
	// The handler knows all targets, so it judges odd ones.
	*r = Request{Target: b[len(method):at]}
	at += len(version)
	var seen fields
	for {
		if len(b)-at >= 2 && b[at] == '\r' && b[at+1] == '\n' {
			if seen&host == 0 {
				return 0
			}
			return at + 2
		}
		n := r.field(b[at:], &seen)
		if n == 0 {
			return 0
		}
		at += n
	}
}

// fields is a set of the relevant header fields.
type fields uint8

const (
	host fields = 1 << iota
	connection
	authorization
	apiKey
	origin
	acceptEncoding
	ifNoneMatch
	forwardedFor
)

// field reads one line of the header and returns its length, or 0 if it is incomplete or not plain.
func (r *Request) field(b []byte, seen *fields) int {
	colon := 0
	for colon < len(b) && class[b[colon]]&inName != 0 {
		colon++
	}
	if colon == 0 || colon == len(b) || b[colon] != ':' {
		return 0
	}
	start := colon + 1
	for start < len(b) && (b[start] == ' ' || b[start] == '\t') {
		start++
	}
	end := start + plainValue(b[start:])
	if len(b)-end < 2 || b[end] != '\r' || b[end+1] != '\n' {
		return 0
	}
	length := end + 2
	for end > start && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	if !r.take(b[:colon], b[start:end], seen) {
		return 0
	}
	return length
}

// plainValue returns the length of the prefix of b with bytes that a value may have. It looks at eight at a
// time: a byte is too small if subtracting ' ' borrows, and too large if adding 1 to its lower
// seven bits, or the byte itself, reaches the highest bit.
func plainValue(b []byte) (n int) {
	const ones, highest = 0x0101010101010101, 0x8080808080808080
	for ; len(b)-n >= 8; n += 8 {
		v := binary.LittleEndian.Uint64(b[n:])
		small := (v - ' '*ones) &^ v
		large := v&^highest + ones | v
		if (small|large)&highest != 0 {
			break // or it is a tab, which is plain
		}
	}
	for n < len(b) && class[b[n]]&inValue != 0 {
		n++
	}
	return n
}

// take stores the value of a relevant field. It reports false if the lane cannot judge the
// field, or if it is repeated.
func (r *Request) take(name, value []byte, seen *fields) bool {
	var (
		field fields
		dst   *[]byte
	)
	switch len(name) {
	case len("host"):
		if !negotiate.EqualFold(name, "host") {
			return true
		}
		if !plainHost(value) {
			return false
		}
		field = host
	case len("trailer"):
		return !negotiate.EqualFold(name, "trailer")
	case len("expect"): // and origin
		if negotiate.EqualFold(name, "expect") {
			return false
		}
		if negotiate.EqualFold(name, "origin") {
			field, dst = origin, &r.Origin
		}
	case len("x-api-key"):
		if negotiate.EqualFold(name, "x-api-key") {
			field, dst = apiKey, &r.APIKey
		}
	case len("connection"):
		if !negotiate.EqualFold(name, "connection") {
			return true
		}
		if r.Last = negotiate.EqualFold(value, "close"); !r.Last && !negotiate.EqualFold(value, "keep-alive") {
			return false
		}
		field = connection
	case len("authorization"): // and if-none-match
		if negotiate.EqualFold(name, "authorization") {
			field, dst = authorization, &r.Authorization
		} else if negotiate.EqualFold(name, "if-none-match") {
			field, dst = ifNoneMatch, &r.IfNoneMatch
		}
	case len("content-length"):
		return !negotiate.EqualFold(name, "content-length")
	case len("accept-encoding"): // and x-forwarded-for
		if negotiate.EqualFold(name, "accept-encoding") {
			field, dst = acceptEncoding, &r.AcceptEncoding
		} else if negotiate.EqualFold(name, "x-forwarded-for") {
			field, dst = forwardedFor, &r.ForwardedFor
		}
	case len("transfer-encoding"):
		return !negotiate.EqualFold(name, "transfer-encoding")
	}
	if *seen&field != 0 {
		return false
	}
	*seen |= field
	if dst != nil {
		*dst = value
	}
	return true
}

// plainHost accepts a name or an IPv4 address, with a port or without.
func plainHost(s []byte) bool {
	colons := 0
	for _, c := range s {
		if c == ':' {
			colons++
		} else if class[c]&inHost == 0 || colons > 0 && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) > 0 && colons <= 1
}

// The classes of a byte.
const (
	inName  = 1 << iota // a token, RFC 9110 section 5.6.2
	inValue             // a field's value: visible ASCII, space and tab
	inHost
)

var class = func() (table [256]byte) {
	for c := byte(' '); c <= '~'; c++ {
		table[c] |= inValue
	}
	table['\t'] |= inValue
	for _, c := range []byte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
		table[c] |= inName | inHost
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		table[c] |= inName
	}
	for _, c := range []byte("-.") {
		table[c] |= inHost
	}
	return table
}()
