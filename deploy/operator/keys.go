package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/edge/keys"
)

// CreateKey makes a key for a client. Answer.Secret is the key.
type CreateKey struct {
	Client  string   `required:"" name:"name" form:"client" help:"The client of the key." env:"-"`
	Tier    string   `required:"" help:"One of the tiers: trial, standard, pro, sandbox or one of --tiers." env:"-"`
	Expires Expiry   `help:"How long the key is valid, such as 36h or 30d; default: for ever." placeholder:"DURATION" env:"-"`
	Origins []string `name:"origin" form:"origins" help:"A browser origin that may use the key, such as https://example.org; repeat for more. Default: any." env:"-"`
}

func (d CreateKey) look(_ context.Context, o *Operator) (*Plan, error) {
	if d.Client == "" {
		return nil, errors.New("create key: name the client that the key is for")
	}
	limit, ok := o.Tiers[d.Tier]
	if !ok {
		return nil, fmt.Errorf("create key: tier %q: must be one of %s", d.Tier, strings.Join(o.Tiers.Names(), ", "))
	}
	wanted := keys.Request{Name: d.Client, Tier: d.Tier, Expires: d.Expires.Time, Origins: d.Origins}
	var trial keys.List
	if _, _, err := trial.Create(wanted, time.Now()); err != nil {
		return nil, err
	}
	return &Plan{
		Brief: true, entry: auditlog.Intent{Action: auditlog.CreateKey, Subject: d.Client + ", " + d.Tier},
		Preview: Preview{
			Title:   "Create a key for " + d.Client,
			Effects: []string{fmt.Sprintf("%s may make %d requests a minute (tier %s). The key is shown once.", d.Client, limit, d.Tier)},
		},
		do: func(ctx context.Context, _ Request) (answer Answer, err error) {
			err = o.updateKeys(ctx, func(doc *keys.List) error {
				k, secret, err := doc.Create(wanted, time.Now())
				answer = Answer{Record: k, Secret: secret, Text: fmt.Sprintf("Key %s is created for %s, tier %s. It is shown this once: only its hash is kept.", k.ID, d.Client, d.Tier)}
				return err
			})
			return answer, err
		},
	}, nil
}

// updateKeys changes the list of keys, and signs it if the operator has the key.
func (o *Operator) updateKeys(ctx context.Context, change func(*keys.List) error) error {
	return keys.Update(ctx, o.Store, func(list *keys.List) error {
		if err := list.Sign(o.SignKeys, false); err != nil {
			return err
		}
		return change(list)
	})
}

// SignList signs the list of keys as it is, although the operator's key has not signed it before.
type SignList struct{}

func (SignList) look(ctx context.Context, o *Operator) (*Plan, error) {
	if o.SignKeys == nil {
		return nil, errors.New("sign the list of keys: name the key: --sign-keys FILE")
	}
	origin := o.SignKeys.Origin()
	return edit[keys.List, keys.List]{
		load: o.loadKeys,
		update: func(ctx context.Context, change func(*keys.List) error) error {
			return keys.Update(ctx, o.Store, change)
		},
		find: func(list *keys.List) (*keys.List, error) { return list, nil },
		preview: func(list, _ *keys.List, p *Preview) error {
			p.Title, p.Question = "Sign the list of keys", "Sign every key in the list?"
			p.Effects = []string{fmt.Sprintf("Edges that trust %s accept these %d keys:", origin, len(list.Keys))}
			for _, k := range list.Keys {
				p.Effects = append(p.Effects, fmt.Sprintf("%s  %s, tier %s, created %s.", k.ID, k.Name, k.Tier, minute(k.Created)))
			}
			return nil
		},
		change: func(list, _ *keys.List, _ Request) (Answer, error) {
			n := len(list.Keys)
			return Answer{Record: map[string]any{"origin": origin, "keys": n}, Text: fmt.Sprintf("The list of %d keys is signed.", n)}, list.Sign(o.SignKeys, true)
		},
	}.plan(ctx, auditlog.Intent{Action: auditlog.SignKeys, Subject: origin})
}

func (o *Operator) loadKeys(ctx context.Context) (*keys.List, error) {
	list, _, err := keys.Load(ctx, o.Store)
	return &list, err
}

func (o *Operator) editKey(ctx context.Context, id string, entry auditlog.Intent,
	preview func(*keys.List, *keys.StoredKey, *Preview) error, change func(*keys.List, *keys.StoredKey) (Answer, error),
) (*Plan, error) {
	return edit[keys.List, keys.StoredKey]{
		load:    o.loadKeys,
		update:  o.updateKeys,
		find:    func(doc *keys.List) (*keys.StoredKey, error) { return doc.Find(id) },
		preview: preview,
		change:  func(doc *keys.List, k *keys.StoredKey, _ Request) (Answer, error) { return change(doc, k) },
	}.plan(ctx, entry)
}

// RotateKey makes a successor of a key, with the same client, tier, origins and expiry. The old
// key works on for the grace.
type RotateKey struct {
	ID    string `arg:"" form:"key" help:"The key's id, from keys list."`
	Grace Span   `default:"168h" unit:"d" help:"How long the old key still works." env:"-"`
}

func (d RotateKey) look(ctx context.Context, o *Operator) (*Plan, error) {
	grace := time.Duration(d.Grace)
	if grace < 0 {
		return nil, fmt.Errorf("rotate key %q: a grace of %s: must not be negative", d.ID, grace)
	}
	return o.editKey(ctx, d.ID, auditlog.Intent{Action: auditlog.RotateKey, Subject: d.ID},
		func(doc *keys.List, k *keys.StoredKey, p *Preview) error {
			now := time.Now()
			last := doc.Successor(k, now)
			next, _, err := doc.Rotate(d.ID, grace, now) // doc is a copy for the preview
			if err != nil {
				return err
			}
			p.Title = fmt.Sprintf("Rotate the key of %s", k.Name)
			p.Question = fmt.Sprintf("Replace the key %s… of %s?", k.Prefix, k.Name)
			p.Effects = []string{
				fmt.Sprintf("%s gets a new key of the tier %s, valid %s, which is shown once.", k.Name, k.Tier, validUntil(next.Expires)),
				fmt.Sprintf("The old key %s… works until %s and is refused from then on.", k.Prefix, minute(k.Expires)),
			}
			if last != nil {
				p.Warnings = append(p.Warnings, fmt.Sprintf("This key was rotated already: %s has the newer key %s (%s…), created on %s. Rotating it again makes another key beside it.",
					k.Name, last.ID, last.Prefix, minute(last.Created)))
			}
			return nil
		},
		func(doc *keys.List, k *keys.StoredKey) (Answer, error) {
			next, secret, err := doc.Rotate(d.ID, grace, time.Now())
			return Answer{Record: next, Secret: secret, Text: fmt.Sprintf("Key %s is created for %s in place of %s, which works %s. It is shown this once: only its hash is kept.",
				next.ID, next.Name, d.ID, validUntil(k.Expires))}, err
		})
}

// RevokeKey refuses a key from now on, for ever.
type RevokeKey struct {
	ID string `arg:"" form:"key" help:"The key's id, from keys list."`
}

func (d RevokeKey) look(ctx context.Context, o *Operator) (*Plan, error) {
	return o.editKey(ctx, d.ID, auditlog.Intent{Action: auditlog.RevokeKey, Subject: d.ID},
		func(_ *keys.List, k *keys.StoredKey, p *Preview) error {
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
		},
		func(doc *keys.List, _ *keys.StoredKey) (Answer, error) {
			k, err := doc.Revoke(d.ID, time.Now())
			return Answer{Record: k, Text: fmt.Sprintf("Key %s of %s is revoked; edges follow within a second or two.", k.ID, k.Name)}, err
		})
}

// PruneKeys removes the keys that have been refused for longer than an age.
type PruneKeys struct {
	OlderThan Span `name:"older-than" form:"age" default:"365d" unit:"d" help:"Remove the keys that were revoked or expired longer ago than this." env:"-"`
}

func (d PruneKeys) look(ctx context.Context, o *Operator) (*Plan, error) {
	age := time.Duration(d.OlderThan)
	if age < 24*time.Hour {
		return nil, fmt.Errorf("prune keys: an age of %s: must be at least a day", age)
	}
	before := time.Now().Add(-age)
	doc, _, err := keys.Load(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	all := len(doc.Keys)
	old := doc.Prune(before)
	p := Preview{Title: "Remove keys that were refused before " + minute(before)}
	if len(old) == 0 {
		return unchanged(p, []keys.StoredKey{}, fmt.Sprintf("There is nothing to remove: none of %d keys was revoked or expired before %s.", all, minute(before))), nil
	}
	p.Question = fmt.Sprintf("Remove %d of %d keys for ever?", len(old), all)
	p.Effects = []string{
		fmt.Sprintf("%d of %d keys are removed from the list, from %s… of %s to %s… of %s. Edges refuse them already, and go on doing so.",
			len(old), all, old[0].Prefix, old[0].Name, old[len(old)-1].Prefix, old[len(old)-1].Name),
		"Nobody can see later which client such a key belonged to.",
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.PruneKeys, Subject: "refused before " + before.UTC().Format(time.RFC3339)}, Preview: p,
		do: func(ctx context.Context, _ Request) (answer Answer, err error) {
			err = o.updateKeys(ctx, func(doc *keys.List) error {
				removed := doc.Prune(before)
				answer = Answer{Record: removed, Text: fmt.Sprintf("%d keys are removed; %d are left.", len(removed), len(doc.Keys))}
				return nil
			})
			return answer, err
		},
	}, nil
}

// ExpireKey sets until when a key is valid.
type ExpireKey struct {
	ID    string `arg:"" form:"key" help:"The key's id, from keys list."`
	Until Expiry `arg:"" name:"when" form:"expires" help:"An instant such as 2027-01-31T00:00:00Z, a duration from now such as 30d, or never."`
}

func (d ExpireKey) look(ctx context.Context, o *Operator) (*Plan, error) {
	until := "never"
	if !d.Until.IsZero() {
		until = d.Until.UTC().Format(time.RFC3339)
	}
	return o.editKey(ctx, d.ID, auditlog.Intent{Action: auditlog.ExpireKey, Subject: d.ID + " " + until},
		func(_ *keys.List, k *keys.StoredKey, p *Preview) error {
			now := time.Now()
			switch {
			case !k.Revoked.IsZero():
				return fmt.Errorf("expire key %q: it was revoked on %s, which cannot be taken back", d.ID, minute(k.Revoked))
			case !d.Until.IsZero() && !d.Until.After(now):
				return fmt.Errorf("expire key %q: %s is past; to refuse it now, revoke it", d.ID, until)
			}
			p.Title = fmt.Sprintf("Set the expiry of the key of %s", k.Name)
			p.Question = fmt.Sprintf("Change until when the key %s… of %s is valid?", k.Prefix, k.Name)
			p.Effects = []string{fmt.Sprintf("The key %s… of %s is valid %s; until now: %s.", k.Prefix, k.Name, validUntil(d.Until.Time), validUntil(k.Expires))}
			if !k.Active(now) {
				p.Warnings = []string{"It has expired: its client can use it again."}
			}
			return nil
		},
		func(_ *keys.List, k *keys.StoredKey) (Answer, error) {
			k.Expires = time.Time{}
			if !d.Until.IsZero() {
				k.Expires = d.Until.UTC().Truncate(time.Second)
			}
			return Answer{Record: *k, Text: fmt.Sprintf("Key %s of %s is valid %s.", k.ID, k.Name, validUntil(k.Expires))}, nil
		})
}

func validUntil(t time.Time) string {
	if t.IsZero() {
		return "for ever"
	}
	return "until " + minute(t)
}

// SetTier gives a key another limit. Edges keep the count of the running window.
type SetTier struct {
	ID   string `arg:"" form:"key" help:"The key's id, from keys list."`
	Tier string `arg:"" help:"One of the tiers: trial, standard, pro or one of --tiers."`
}

func (d SetTier) look(ctx context.Context, o *Operator) (*Plan, error) {
	limit, ok := o.Tiers[d.Tier]
	if !ok {
		return nil, fmt.Errorf("set tier of key %q: tier %q: must be one of %s", d.ID, d.Tier, strings.Join(o.Tiers.Names(), ", "))
	}
	return o.editKey(ctx, d.ID, auditlog.Intent{Action: auditlog.SetTier, Subject: d.ID + " " + d.Tier},
		func(_ *keys.List, k *keys.StoredKey, p *Preview) error {
			switch {
			case !k.Revoked.IsZero():
				return fmt.Errorf("set tier of key %q: it was revoked on %s, which cannot be taken back", d.ID, minute(k.Revoked))
			case k.Tier == d.Tier:
				return fmt.Errorf("set tier of key %q: its tier is %s already", d.ID, d.Tier)
			case k.Tier == keys.Sandbox, d.Tier == keys.Sandbox:
				return fmt.Errorf("set tier of key %q from %s to %s: a key cannot enter or leave the tier %s; create another key with gridcast keys create --tier %s",
					d.ID, k.Tier, d.Tier, keys.Sandbox, d.Tier)
			}
			p.Title = fmt.Sprintf("Set the tier of the key of %s", k.Name)
			p.Question = fmt.Sprintf("Change the limit of the key %s… of %s?", k.Prefix, k.Name)
			until := strconv.Itoa(o.Tiers[k.Tier])
			if _, known := o.Tiers[k.Tier]; !known {
				until = "none, because edges refuse a tier that is not configured"
			}
			p.Effects = []string{
				fmt.Sprintf("%s may make %d requests a minute (tier %s). Until now: %s (tier %s).", k.Name, limit, d.Tier, until, k.Tier),
				"Edges follow within a second or two. Requests of the running minute count.",
			}
			if !k.Active(time.Now()) {
				p.Warnings = []string{"It expired on " + minute(k.Expires) + " and stays refused."}
			}
			return nil
		},
		func(_ *keys.List, k *keys.StoredKey) (Answer, error) {
			k.Tier = d.Tier
			return Answer{Record: *k, Text: fmt.Sprintf("Key %s of %s has the tier %s, %d requests a minute; edges follow within a second or two.", k.ID, k.Name, k.Tier, limit)}, nil
		})
}

// SetOrigins sets the browser origins from which a key may be used. No origin, or the word any, allows
// all of them.
type SetOrigins struct {
	ID      string   `arg:"" form:"key" help:"The key's id, from keys list."`
	Origins []string `arg:"" help:"Origins such as https://example.org, or any."`
}

func (d SetOrigins) look(ctx context.Context, o *Operator) (*Plan, error) {
	list := func(origins []string) string {
		if len(origins) == 0 {
			return "any"
		}
		return strings.Join(origins, " ")
	}
	if list(d.Origins) == "any" {
		d.Origins = nil
	}
	return o.editKey(ctx, d.ID, auditlog.Intent{Action: auditlog.SetOrigins, Subject: d.ID + " " + list(d.Origins)},
		func(_ *keys.List, k *keys.StoredKey, p *Preview) error {
			for _, origin := range d.Origins {
				if err := keys.ValidateOrigin(origin); err != nil {
					return fmt.Errorf("set origins of key %q: %w", d.ID, err)
				}
			}
			p.Title = fmt.Sprintf("Set the origins of the key of %s", k.Name)
			p.Question = fmt.Sprintf("Change where the key %s… of %s may be used?", k.Prefix, k.Name)
			p.Effects = []string{fmt.Sprintf("Pages of these origins may use it: %s. Until now: %s. Requests without an origin are allowed as before.",
				list(d.Origins), list(k.Origins))}
			return nil
		},
		func(_ *keys.List, k *keys.StoredKey) (Answer, error) {
			k.Origins = d.Origins
			return Answer{Record: *k, Text: fmt.Sprintf("Key %s of %s may be used from: %s.", k.ID, k.Name, list(k.Origins))}, nil
		})
}
