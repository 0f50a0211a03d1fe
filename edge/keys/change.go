package keys

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrNoKey means that the document has no key with that id.
	ErrNoKey = errors.New("no such key")
	// ErrInactive means that the key is revoked or expired, so there is nothing to rotate.
	ErrInactive = errors.New("key is revoked or expired")
)

// idLen is how many hex digits of its hash name a key in commands and logs.
const idLen = 12

// Request is what a new key is asked for with.
type Request struct {
	Name    string    // the client, not empty
	Tier    string    // the caller checks it against the configured tiers
	Expires time.Time // zero: never
	Origins []string  // empty: any
}

// Create adds a new key as of now and returns its record and the key, which nobody can
// recover later.
func (d *Document) Create(request Request, now time.Time) (Record, string, error) {
	if !request.Expires.IsZero() && !request.Expires.After(now) {
		return Record{}, "", fmt.Errorf("create key for %q: it would expire at %s, which is past",
			request.Name, request.Expires.UTC().Format(time.RFC3339))
	}
	key := Generate()
	hash := Hash(sha256.Sum256([]byte(key))).String()
	record := Record{
		ID:      hash[:idLen],
		SHA256:  hash,
		Prefix:  key[:shownLen],
		Name:    request.Name,
		Tier:    request.Tier,
		Created: wholeSecond(now),
		Expires: wholeSecond(request.Expires),
		Origins: request.Origins,
	}
	if err := record.validate(); err != nil {
		return Record{}, "", fmt.Errorf("create key for %q: %w", request.Name, err)
	}
	d.Keys = append(d.Keys, record)
	return record, key, nil
}

// Revoke refuses the key from now on. Revoking a revoked key changes nothing.
func (d *Document) Revoke(id string, now time.Time) (Record, error) {
	record, err := d.Find(id)
	if err != nil {
		return Record{}, fmt.Errorf("revoke key: %w", err)
	}
	if record.Revoked.IsZero() {
		record.Revoked = wholeSecond(now)
	}
	return *record, nil
}

// Rotate adds a new key for the client of an old one, with its name, tier, origins and
// expiry, and lets the old one expire after the grace, during which both work: each with a
// limit of its own.
func (d *Document) Rotate(id string, grace time.Duration, now time.Time) (Record, string, error) {
	old, err := d.Find(id)
	if err != nil {
		return Record{}, "", fmt.Errorf("rotate key: %w", err)
	}
	if !old.Active(now) {
		return Record{}, "", fmt.Errorf("rotate key %q: %w", id, ErrInactive)
	}
	request := Request{Name: old.Name, Tier: old.Tier, Expires: old.Expires, Origins: old.Origins}
	if end := wholeSecond(now.Add(grace)); old.Expires.IsZero() || end.Before(old.Expires) {
		old.Expires = end
	}
	return d.Create(request, now)
}

// Active reports whether the key is accepted at now.
func (r *Record) Active(now time.Time) bool {
	return r.Revoked.IsZero() && (r.Expires.IsZero() || now.Before(r.Expires))
}

func wholeSecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}
