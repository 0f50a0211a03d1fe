package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gridcast/builder/auditlog"
	"gridcast/edge/keys"
)

type keysCmds struct {
	Create keysCreateCmd `cmd:"" help:"Create a key; it is shown once."`
	List   keysListCmd   `cmd:"" help:"List the keys."`
	Rotate keysRotateCmd `cmd:"" help:"Create a successor of a key; the old one works on for a while."`
	Revoke keysRevokeCmd `cmd:"" help:"Refuse a key from now on."`
}

type keysCreateCmd struct {
	storeFlags `embed:""`
	Name       string        `required:"" help:"The client the key is for."`
	Tier       string        `required:"" help:"trial, standard, pro or sandbox."`
	Expires    time.Duration `help:"How long the key is valid, such as 720h; default: for ever."`
	Origin     []string      `help:"A browser origin that may use the key, such as https://example.org; repeat for more. Default: any."`
}

// createdKey is the answer of keys create --json.
type createdKey struct {
	ID      string     `json:"id"`
	Key     string     `json:"key"`
	Name    string     `json:"name"`
	Tier    string     `json:"tier"`
	Expires *time.Time `json:"expires,omitempty"`
	Origins []string   `json:"origins,omitempty"`
}

func (c *keysCreateCmd) Run(ctx context.Context, s *streams) error {
	tiers := keys.DefaultTiers()
	if _, ok := tiers[c.Tier]; !ok {
		return usageError{fmt.Errorf("--tier %q: must be one of %s", c.Tier, strings.Join(tiers.Names(), ", "))}
	}
	now := time.Now()
	request := keys.Request{Name: c.Name, Tier: c.Tier, Origins: c.Origin}
	if c.Expires != 0 {
		request.Expires = now.Add(c.Expires)
	}
	var record keys.Record
	var key string
	change := auditlog.Change{Action: auditlog.CreateKey, Subject: c.Name + ", " + c.Tier}
	err := c.update(ctx, change, func(d *keys.Document) (err error) {
		record, key, err = d.Create(request, now)
		return err
	})
	if err != nil {
		return err
	}
	return s.printKey(record, key)
}

func (s *streams) printKey(record keys.Record, key string) error {
	if s.json {
		created := createdKey{ID: record.ID, Key: key, Name: record.Name, Tier: record.Tier, Origins: record.Origins}
		if !record.Expires.IsZero() {
			created.Expires = &record.Expires
		}
		return s.printJSON(created)
	}
	return s.printf("%s\n\nkey %s for %s, tier %s. It is shown this once: only its hash is kept.\n", key, record.ID, record.Name, record.Tier)
}

type keysListCmd struct {
	storeFlags `embed:""`
}

func (c *keysListCmd) Run(ctx context.Context, s *streams) error {
	store, err := c.openToRead(ctx)
	if err != nil {
		return err
	}
	d, _, err := keys.Load(ctx, store)
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(d.Keys)
	}
	now := time.Now()
	rows := make([][]any, len(d.Keys))
	for i, k := range d.Keys {
		rows[i] = []any{k.ID, k.Prefix + "…", k.Name, k.Tier, shortTime(k.Created), shortTime(k.Expires), standing(&k, now), strings.Join(k.Origins, " ")}
	}
	return s.printTable([]any{"id", "key", "name", "tier", "created", "expires", "state", "origins"}, rows)
}

func standing(k *keys.Record, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked " + shortTime(k.Revoked)
	case !k.Active(now):
		return "expired"
	default:
		return "active"
	}
}

type keysRotateCmd struct {
	storeFlags `embed:""`
	ID         string        `arg:"" help:"The key's id, from keys list."`
	Grace      time.Duration `default:"168h" help:"How long the old key still works."`
}

func (c *keysRotateCmd) Run(ctx context.Context, s *streams) error {
	var record keys.Record
	var key string
	err := c.update(ctx, auditlog.Change{Action: auditlog.RotateKey, Subject: c.ID}, func(d *keys.Document) (err error) {
		record, key, err = d.Rotate(c.ID, c.Grace, time.Now())
		return err
	})
	if err != nil {
		return err
	}
	return s.printKey(record, key)
}

type keysRevokeCmd struct {
	storeFlags `embed:""`
	ID         string `arg:"" help:"The key's id, from keys list."`
}

func (c *keysRevokeCmd) Run(ctx context.Context, s *streams) error {
	var record keys.Record
	err := c.update(ctx, auditlog.Change{Action: auditlog.RevokeKey, Subject: c.ID}, func(d *keys.Document) (err error) {
		record, err = d.Revoke(c.ID, time.Now())
		return err
	})
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(record)
	}
	return s.printf("key %s for %s is revoked; edges follow within a second or two.\n", record.ID, record.Name)
}

// update changes the key document of the store, once the audit log has it.
func (f *storeFlags) update(ctx context.Context, change auditlog.Change, edit func(*keys.Document) error) error {
	store, err := f.open(ctx)
	if err != nil {
		return err
	}
	return audited(ctx, store, change, func() error { return keys.Update(ctx, store, edit) })
}
