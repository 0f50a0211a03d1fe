package edge

import (
	"bytes"
	"crypto/subtle"
	"time"

	"gridcast/edge/keys"
)

var bearer = []byte("bearer")

// credential returns the key that a request was sent with. A Bearer decides, also when it is
// wrong; another scheme is ignored. Repeated credential fields are never a valid key: an
// intermediary may have read another one of them than we do. Present says that a key was sent.
func (r *request) credential() (key []byte, present bool) {
	if r.authorization.count > 1 || r.apiKey.count > 1 {
		return nil, true
	}
	if r.authorization.count == 1 {
		scheme, token, _ := bytes.Cut(r.authorization.value, []byte{' '})
		if bytes.EqualFold(scheme, bearer) {
			token = bytes.Trim(token, " \t")
			return token, len(token) > 0
		}
	}
	return r.apiKey.value, len(r.apiKey.value) > 0
}

// authenticate returns the entry of the key, nil unless it is valid at now. Where the request's
// connection has a memory, a key that was valid on it before is not hashed again.
func (r *request) authenticate(table *keys.Table, key []byte, now time.Time) *keys.Entry {
	m := r.memory
	if m != nil && m.table == table.Number() && subtle.ConstantTimeCompare(m.key[:], key) == 1 {
		if !m.entry.Accepts(now) {
			return nil
		}
		return m.entry
	}
	hash, ok := keys.Sum(key)
	if !ok {
		return nil
	}
	entry := table.Lookup(hash, now)
	if entry != nil && m != nil {
		m.table, m.entry, m.key = table.Number(), entry, [keys.Length]byte(key)
	}
	return entry
}

// memory is what a connection remembers of its last valid key.
type memory struct {
	table uint64 // number of the one in which it was found
	entry *keys.Entry
	key   [keys.Length]byte
}
