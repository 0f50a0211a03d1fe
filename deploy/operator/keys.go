package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/edge/keys"
)

// minute is how the sentences of a preview say an instant.
func minute(t time.Time) string { return t.UTC().Format("2 January 2006 15:04 UTC") }

// CreateKey makes a key for a client; it is in Answer.Secret, this once.
type CreateKey struct {
	Client  string
	Tier    string
	Expires time.Time // zero: never
	Origins []string  // the browser origins that may use it; empty: any
}

func (d CreateKey) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.CreateKey, Subject: d.Client + ", " + d.Tier}
}

func (d CreateKey) preview(_ context.Context, o *Operator) (Preview, error) {
	if d.Client == "" {
		return Preview{}, errors.New("create key: name the client that the key is for")
	}
	if err := printable("the name of a client", d.Client); err != nil {
		return Preview{}, fmt.Errorf("create key: %w", err)
	}
	limit, ok := o.Tiers[d.Tier]
	if !ok {
		return Preview{}, fmt.Errorf("create key: tier %q: must be one of %s", d.Tier, strings.Join(o.Tiers.Names(), ", "))
	}
	var trial keys.List
	if _, _, err := trial.Create(d.request(), time.Now()); err != nil {
		return Preview{}, err
	}
	return Preview{
		Title:   "Create a key for " + d.Client,
		Effects: []string{fmt.Sprintf("%s may make %d requests a minute (tier %s). The key is shown once.", d.Client, limit, d.Tier)},
	}, nil
}

func (d CreateKey) request() keys.Request {
	return keys.Request{Name: d.Client, Tier: d.Tier, Expires: d.Expires, Origins: d.Origins}
}

func (d CreateKey) do(ctx context.Context, o *Operator, _ Request, _ Preview) (done Answer, err error) {
	err = keys.Update(ctx, o.Store, func(doc *keys.List) (err error) {
		done.Key, done.Secret, err = doc.Create(d.request(), time.Now())
		return err
	})
	done.Text = fmt.Sprintf("Key %s is created for %s, tier %s. It is shown this once: only its hash is kept.", done.Key.ID, d.Client, d.Tier)
	return done, err
}

// RotateKey makes a successor of a key, with the same client, tier, origins and expiry. The old
// key works on for the grace.
type RotateKey struct {
	ID    string
	Grace time.Duration
}

func (d RotateKey) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.RotateKey, Subject: d.ID}
}

func (d RotateKey) preview(ctx context.Context, o *Operator) (Preview, error) {
	if d.Grace < 0 {
		return Preview{}, fmt.Errorf("rotate key %q: a grace of %s: must not be negative", d.ID, d.Grace)
	}
	return o.previewKey(ctx, d.ID, func(doc *keys.List, k keys.StoredKey, p *Preview) error {
		now := time.Now()
		if !k.Active(now) {
			return fmt.Errorf("rotate key %q: %w", d.ID, keys.ErrInactive)
		}
		end := now.Add(d.Grace)
		if !k.Expires.IsZero() && k.Expires.Before(end) {
			end = k.Expires
		}
		p.Title = fmt.Sprintf("Rotate the key of %s", k.Name)
		p.Question = fmt.Sprintf("Replace the key %s… of %s?", k.Prefix, k.Name)
		p.Effects = []string{
			fmt.Sprintf("%s gets a new key of the tier %s, which is shown once.", k.Name, k.Tier),
			fmt.Sprintf("The old key %s… works until %s and is refused from then on.", k.Prefix, minute(end)),
		}
		if next := successor(doc, k, now); next != nil {
			p.Warnings = append(p.Warnings, fmt.Sprintf("This key was rotated already: %s has the newer key %s (%s…), created on %s. Another one would be made beside it.",
				k.Name, next.ID, next.Prefix, minute(next.Created)))
		}
		return nil
	})
}

// successor returns an active key that was made for the same client after one that is about to
// expire.
func successor(doc *keys.List, k keys.StoredKey, now time.Time) *keys.StoredKey {
	if k.Expires.IsZero() {
		return nil
	}
	for i := range slices.Backward(doc.Keys) {
		other := &doc.Keys[i]
		if other.ID != k.ID && other.Name == k.Name && other.Tier == k.Tier && !other.Created.Before(k.Created) && other.Active(now) &&
			(other.Expires.IsZero() || other.Expires.After(k.Expires)) {
			return other
		}
	}
	return nil
}

func (d RotateKey) do(ctx context.Context, o *Operator, _ Request, p Preview) (done Answer, err error) {
	err = o.updateKey(ctx, d.ID, p, func(doc *keys.List) (err error) {
		done.Key, done.Secret, err = doc.Rotate(d.ID, d.Grace, time.Now())
		return err
	})
	done.Text = fmt.Sprintf("Key %s is created for %s in place of %s, which works on for %s. It is shown this once: only its hash is kept.",
		done.Key.ID, done.Key.Name, d.ID, d.Grace)
	return done, err
}

// RevokeKey refuses a key from now on, for ever.
type RevokeKey struct{ ID string }

func (d RevokeKey) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.RevokeKey, Subject: d.ID}
}

func (d RevokeKey) preview(ctx context.Context, o *Operator) (Preview, error) {
	return o.previewKey(ctx, d.ID, func(_ *keys.List, k keys.StoredKey, p *Preview) error {
		p.Title = fmt.Sprintf("Revoke the key of %s", k.Name)
		p.Question = fmt.Sprintf("Refuse the key %s… of %s from now on?", k.Prefix, k.Name)
		p.Effects = []string{fmt.Sprintf("Every request with the key %s… of %s is refused within a second or two, for ever.", k.Prefix, k.Name)}
		switch {
		case !k.Revoked.IsZero():
			p.Warnings = []string{"It was revoked on " + minute(k.Revoked) + " already: nothing changes."}
		case !k.Active(time.Now()):
			p.Warnings = []string{"It expired on " + minute(k.Expires) + " and is refused already."}
		}
		return nil
	})
}

func (d RevokeKey) do(ctx context.Context, o *Operator, _ Request, p Preview) (done Answer, err error) {
	err = o.updateKey(ctx, d.ID, p, func(doc *keys.List) (err error) {
		done.Key, err = doc.Revoke(d.ID, time.Now())
		return err
	})
	done.Text = fmt.Sprintf("Key %s of %s is revoked; edges follow within a second or two.", done.Key.ID, done.Key.Name)
	return done, err
}

// ExpireKey says until when a key is valid.
type ExpireKey struct {
	ID string
	At time.Time // zero: for ever
}

func (d ExpireKey) entry() auditlog.Change {
	until := "never"
	if !d.At.IsZero() {
		until = d.At.UTC().Format(time.RFC3339)
	}
	return auditlog.Change{Action: auditlog.ExpireKey, Subject: d.ID + " " + until}
}

func (d ExpireKey) preview(ctx context.Context, o *Operator) (Preview, error) {
	return o.previewKey(ctx, d.ID, func(_ *keys.List, k keys.StoredKey, p *Preview) error {
		now := time.Now()
		switch {
		case !k.Revoked.IsZero():
			return fmt.Errorf("expire key %q: it was revoked on %s, which cannot be taken back", d.ID, minute(k.Revoked))
		case !d.At.IsZero() && !d.At.After(now):
			return fmt.Errorf("expire key %q: %s is past; to refuse it now, revoke it", d.ID, d.At.UTC().Format(time.RFC3339))
		}
		p.Title = fmt.Sprintf("Set the expiry of the key of %s", k.Name)
		p.Question = fmt.Sprintf("Change until when the key %s… of %s is valid?", k.Prefix, k.Name)
		p.Effects = []string{fmt.Sprintf("The key %s… of %s is valid %s; until now: %s.", k.Prefix, k.Name, validUntil(d.At), validUntil(k.Expires))}
		if !k.Active(now) {
			p.Warnings = []string{"It has expired: its client can use it again."}
		}
		return nil
	})
}

func validUntil(t time.Time) string {
	if t.IsZero() {
		return "for ever"
	}
	return "until " + minute(t)
}

func (d ExpireKey) do(ctx context.Context, o *Operator, _ Request, p Preview) (done Answer, err error) {
	err = o.updateKey(ctx, d.ID, p, func(doc *keys.List) error {
		k, err := doc.Find(d.ID)
		if err != nil {
			return err
		}
		k.Expires = d.At.UTC().Truncate(time.Second)
		if d.At.IsZero() {
			k.Expires = time.Time{}
		}
		done.Key = *k
		return nil
	})
	done.Text = fmt.Sprintf("Key %s of %s is valid %s.", done.Key.ID, done.Key.Name, validUntil(done.Key.Expires))
	return done, err
}

// SetOrigins says from which browser origins a key may be used.
type SetOrigins struct {
	ID      string
	Origins []string // empty: any
}

func (d SetOrigins) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.SetOrigins, Subject: d.ID + " " + originList(d.Origins)}
}

func originList(origins []string) string {
	if len(origins) == 0 {
		return "any"
	}
	return strings.Join(origins, " ")
}

func (d SetOrigins) preview(ctx context.Context, o *Operator) (Preview, error) {
	return o.previewKey(ctx, d.ID, func(_ *keys.List, k keys.StoredKey, p *Preview) error {
		var trial keys.List
		if _, _, err := trial.Create(keys.Request{Name: k.Name, Tier: k.Tier, Origins: d.Origins}, time.Now()); err != nil {
			return fmt.Errorf("origins of key %q: %w", d.ID, err)
		}
		p.Title = fmt.Sprintf("Set the origins of the key of %s", k.Name)
		p.Question = fmt.Sprintf("Change where the key %s… of %s may be used?", k.Prefix, k.Name)
		p.Effects = []string{fmt.Sprintf("Pages of these origins may use it: %s. Until now: %s. Requests without an origin are allowed as before.",
			originList(d.Origins), originList(k.Origins))}
		return nil
	})
}

func (d SetOrigins) do(ctx context.Context, o *Operator, _ Request, p Preview) (done Answer, err error) {
	err = o.updateKey(ctx, d.ID, p, func(doc *keys.List) error {
		k, err := doc.Find(d.ID)
		if err != nil {
			return err
		}
		k.Origins = d.Origins
		done.Key = *k
		return nil
	})
	done.Text = fmt.Sprintf("Key %s of %s may be used from: %s.", done.Key.ID, done.Key.Name, originList(done.Key.Origins))
	return done, err
}

// previewKey previews an action about the key of the id.
func (o *Operator) previewKey(ctx context.Context, id string, look func(*keys.List, keys.StoredKey, *Preview) error) (Preview, error) {
	doc, _, err := keys.Load(ctx, o.Store)
	if err != nil {
		return Preview{}, err
	}
	k, err := doc.Find(id)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Seen: digest(k)}
	return p, look(&doc, *k, &p)
}

// updateKey changes the document, unless the key has changed since p was made.
func (o *Operator) updateKey(ctx context.Context, id string, p Preview, edit func(*keys.List) error) error {
	return keys.Update(ctx, o.Store, func(doc *keys.List) error {
		k, err := doc.Find(id)
		if err != nil {
			return err
		}
		if digest(k) != p.Seen {
			return ErrChanged
		}
		return edit(doc)
	})
}
