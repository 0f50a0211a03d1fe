package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
	"unicode"
	"unicode/utf8"

	"gridcast/snapshots/blob"
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
	Name    string    // the client: printable, not empty
	Tier    string    // the caller checks it against the configured tiers
	Expires time.Time // zero: never
	Origins []string  // empty: any
}

// Create adds a new key as of now and returns its record and the key, which nobody can
// recover later.
func (d *Document) Create(request Request, now time.Time) (Record, string, error) {
	if !printable(request.Name) {
		return Record{}, "", fmt.Errorf("create key for %q: a name may hold only what can be printed", request.Name)
	}
	return d.add(request, now)
}

// add is Create for a name that is in a document already.
func (d *Document) add(request Request, now time.Time) (Record, string, error) {
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
	return d.add(request, now)
}

// Active reports whether the key is accepted at now.
func (r *Record) Active(now time.Time) bool {
	return r.Revoked.IsZero() && (r.Expires.IsZero() || now.Before(r.Expires))
}

// printable reports whether a terminal shows the text as what it is.
func printable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

func wholeSecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}

// Load reads the document. A store without one yields an empty document and an empty tag.
func Load(ctx context.Context, store blob.Store) (*Document, blob.Tag, error) {
	object, err := store.Get(ctx, Object, MaxSize)
	if errors.Is(err, blob.ErrNotFound) {
		return &Document{}, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("load keys: %w", err)
	}
	d, err := Decode(object.Data)
	if err != nil {
		return nil, "", fmt.Errorf("load %s of %s: %w", Object, store, err)
	}
	return d, object.Tag, nil
}

// Update applies change to the document and stores it under the next serial number, if nobody
// else changed it meanwhile; otherwise it starts over with the newer document, so change may
// run more than once and must take everything from its argument. It returns the error of change
// as it is. When the answer of the store is lost and the document read back is not the one
// written, the change may be applied twice: a key nobody knows may remain, never a client
// without one.
func Update(ctx context.Context, store blob.Store, change func(*Document) error) error {
	return swap(ctx, store, func() (*Document, blob.Tag, error) {
		d, tag, err := Load(ctx, store)
		if err != nil {
			return nil, "", err
		}
		if err := change(d); err != nil {
			return nil, "", err
		}
		d.Serial++
		return d, tag, nil
	})
}

// Restore makes the keys those of an earlier document, on purpose: what was revoked since works
// again. Edges refuse a document that is older than the one they have, so this one gets a serial
// number above that of the backup, of the stored document, which may be damaged or missing, and
// of above, for a store that no longer knows how far its edges are.
func Restore(ctx context.Context, store blob.Store, backup *Document, above int64) error {
	return swap(ctx, store, func() (*Document, blob.Tag, error) {
		d := &Document{Serial: max(backup.Serial, above) + 1, Keys: backup.Keys}
		object, err := store.Get(ctx, Object, MaxSize)
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return nil, "", fmt.Errorf("restore keys: %w", err)
		}
		if stored, err := decodeAny(object.Data); err == nil {
			d.Serial = max(d.Serial, stored.Serial+1)
		}
		return d, object.Tag, nil
	})
}

// swap stores the document that next makes of the stored one, whose tag it returns too, and
// starts over if somebody else was faster.
func swap(ctx context.Context, store blob.Store, next func() (*Document, blob.Tag, error)) error {
	for attempt := 0; ; attempt++ {
		d, tag, err := next()
		if err != nil {
			return err
		}
		data, err := d.Encode()
		if err != nil {
			return err
		}
		_, err = blob.Replace(ctx, store, Object, tag, data)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown):
			return fmt.Errorf("store keys: %w", err)
		}
		if err := pause(ctx, attempt); err != nil {
			return fmt.Errorf("store keys: %w", err)
		}
	}
}

// pause waits before another attempt: longer each time, up to a second, and by chance, so
// that two writers do not meet again.
func pause(ctx context.Context, attempt int) error {
	longest := min(20*time.Millisecond<<min(attempt, 6), time.Second)
	select {
	case <-time.After(rand.N(longest)): //nolint:gosec // spreads writers, guards nothing
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
