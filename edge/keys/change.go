package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/notes"
)

var (
	// ErrNoKey means that the document has no key with that id.
	ErrNoKey = errors.New("no such key")
	// ErrInactive means that the key is revoked or expired, so there is nothing to rotate.
	ErrInactive = errors.New("the key is revoked or expired; gridcast keys create makes another")
)

// idLen is the number of hex digits of its hash that name a key in commands and logs.
const idLen = 12

// Request describes a new key.
type Request struct {
	Name    string    // the client: printable, not empty
	Tier    string    // the caller checks it against the configured tiers
	Expires time.Time // zero: never
	Origins []string  // empty: any
}

// Create adds a new key as of now and returns its record and the key. Nobody can recover the key
// later.
func (d *List) Create(request Request, now time.Time) (StoredKey, string, error) {
	if err := chain.CheckText("name", request.Name); err != nil {
		return StoredKey{}, "", fmt.Errorf("create key: %w", err)
	}
	return d.add(request, now)
}

// add is Create for a name that the list already holds.
func (d *List) add(request Request, now time.Time) (StoredKey, string, error) {
	if !request.Expires.IsZero() && !request.Expires.After(now) {
		return StoredKey{}, "", fmt.Errorf("create key for %q: it would expire at %s, which is past",
			request.Name, request.Expires.UTC().Format(time.RFC3339))
	}
	key := Generate(request.Tier)
	hash := Hash(sha256.Sum256([]byte(key))).String()
	record := StoredKey{
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
		return StoredKey{}, "", fmt.Errorf("create key for %q: %w", request.Name, err)
	}
	d.Keys = append(d.Keys, record)
	return record, key, nil
}

// Revoke refuses the key from now on. Revoking a revoked key changes nothing.
func (d *List) Revoke(id string, now time.Time) (StoredKey, error) {
	record, err := d.Find(id)
	if err != nil {
		return StoredKey{}, fmt.Errorf("revoke key: %w", err)
	}
	if record.Revoked.IsZero() {
		record.Revoked = wholeSecond(now)
	}
	return *record, nil
}

// Rotate adds a new key for the client of an old one, with its name, tier, origins and expiry, and
// lets the old one expire after the grace, during which both work: each with a limit of its own. If the old key was
// rotated before, its expiry is the end of a grace, so the new key gets that of its successor.
func (d *List) Rotate(id string, grace time.Duration, now time.Time) (StoredKey, string, error) {
	old, err := d.Find(id)
	if err != nil {
		return StoredKey{}, "", fmt.Errorf("rotate key: %w", err)
	}
	if !old.Active(now) {
		return StoredKey{}, "", fmt.Errorf("rotate key %q: %w", id, ErrInactive)
	}
	request := Request{Name: old.Name, Tier: old.Tier, Expires: old.Expires, Origins: old.Origins}
	if next := d.Successor(old, now); next != nil {
		request.Expires = next.Expires
	}
	if end := wholeSecond(now.Add(grace)); old.Expires.IsZero() || end.Before(old.Expires) {
		old.Expires = end
	}
	return d.add(request, now)
}

// Successor returns an active key that was made for the same client after k, which is about to expire.
func (d *List) Successor(k *StoredKey, now time.Time) *StoredKey {
	if k.Expires.IsZero() {
		return nil
	}
	for i := range slices.Backward(d.Keys) {
		other := &d.Keys[i]
		if other.ID != k.ID && other.Name == k.Name && other.Tier == k.Tier && !other.Created.Before(k.Created) && other.Active(now) &&
			(other.Expires.IsZero() || other.Expires.After(k.Expires)) {
			return other
		}
	}
	return nil
}

// Prune removes the keys that were refused at the instant, and returns them.
func (d *List) Prune(refused time.Time) []StoredKey {
	var removed []StoredKey
	d.Keys = slices.DeleteFunc(d.Keys, func(r StoredKey) bool {
		old := !r.Revoked.IsZero() && r.Revoked.Before(refused) || !r.Expires.IsZero() && r.Expires.Before(refused)
		if old {
			removed = append(removed, r)
		}
		return old
	})
	return removed
}

// Active reports whether the key is accepted at now.
func (r *StoredKey) Active(now time.Time) bool {
	return r.Revoked.IsZero() && (r.Expires.IsZero() || now.Before(r.Expires))
}

func wholeSecond(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// document returns the object of the store that holds the keys.
func document(store blob.Store) blob.Document[List] {
	return blob.Document[List]{
		Store: store, Key: Object, Limit: MaxSize, Copied: true,
		Decode: func(data []byte) (List, error) {
			if len(data) == 0 {
				return List{}, nil
			}
			return Decode(data)
		},
		Encode: List.Encode,
	}
}

// Heal replaces a damaged or lost list by its copy in the store; see [blob.Document.Heal].
func Heal(ctx context.Context, store blob.Store) (bool, error) { return document(store).Heal(ctx) }

// Load reads the list and the tag of its object. A store without one yields an empty list and an empty tag.
func Load(ctx context.Context, store blob.Store) (List, blob.Tag, error) {
	return document(store).Load(ctx)
}

// Update applies edit to the list and stores it under the next serial number; see
// [blob.Document.Update] for its contract. It returns an error of edit without a prefix. If a change is
// applied twice after a lost answer, a key that nobody knows may remain, but no client loses its key. The
// error of an edit that adds a key to a full list is ErrFull.
func Update(ctx context.Context, store blob.Store, edit func(*List) error) error {
	return update(ctx, store, MaxSize-roomToRevoke, edit)
}

// update is Update for a list that is full at a size in bytes.
func update(ctx context.Context, store blob.Store, full int, edit func(*List) error) error {
	grows := false
	doc := document(store)
	doc.Encode = func(list List) ([]byte, error) {
		data, err := list.Encode()
		if err == nil && grows && len(data) > full {
			return nil, ErrFull
		}
		return data, err
	}
	_, err := doc.Update(ctx, func(list *List) error {
		before := len(list.Keys)
		if err := edit(list); err != nil {
			return err
		}
		if list.Signature != nil && list.Signature.by == nil {
			return ErrNoSigner
		}
		grows = len(list.Keys) > before
		list.Serial++
		return nil
	})
	return err
}

// Restore replaces the list by the backup, so keys that were revoked since then work again. Edges refuse a list whose
// serial number is not above the one that they have. Restore therefore takes a number above three others: that of the
// backup, that of the stored list if it can be read, and above, which the caller has from the edges. The keys of s sign
// the list; nil: it is not signed.
func Restore(ctx context.Context, store blob.Store, backup List, above int64, s *notes.Signers) error {
	stored := document(store)
	stored.Decode = func(data []byte) (List, error) {
		_, serial, _ := readHead(data) // 0 if it is damaged
		return List{Serial: serial}, nil
	}
	if _, err := stored.Update(ctx, func(list *List) error {
		highest, now := backup.Serial, time.Now().Unix()
		for _, serial := range []int64{above, list.Serial} {
			if serial <= now+maxChanges { // else a stranger has written it
				highest = max(highest, serial)
			}
		}
		*list = List{Serial: highest + 1, Keys: backup.Keys}
		if s != nil {
			list.Serial, list.Signature = max(highest+1, now), &Signature{by: s}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("restore keys: %w", err)
	}
	return nil
}
