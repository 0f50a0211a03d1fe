package main

import (
	"context"
	"strings"
	"time"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/edge/keys"
)

type keysCmds struct {
	Create  keysCreateCmd  `cmd:"" help:"Create a key; it is shown once."`
	List    keysListCmd    `cmd:"" help:"List the keys."`
	Rotate  keysRotateCmd  `cmd:"" help:"Create a successor of a key; the old one works on for a while."`
	Revoke  keysRevokeCmd  `cmd:"" help:"Refuse a key from now on."`
	Expire  keysExpireCmd  `cmd:"" help:"Say until when a key is valid."`
	Origins keysOriginsCmd `cmd:"" help:"Say which browser origins may use a key."`
}

type keysCreateCmd struct {
	flags.Storage        `embed:""`
	flags.KeyTiers       `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
	Client               string     `required:"" name:"name" help:"The client the key is for." env:"-"`
	Tier                 string     `required:"" help:"One of the tiers: trial, standard, pro, sandbox or one of --tiers." env:"-"`
	Expires              flags.Span `help:"How long the key is valid, such as 36h or 30d; default: for ever." placeholder:"DURATION" env:"-"`
	Origin               []string   `help:"A browser origin that may use the key, such as https://example.org; repeat for more. Default: any." env:"-"`
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

func (c *keysCreateCmd) Run(ctx context.Context, s *terminal.Streams) error {
	tiers, err := c.All()
	if err != nil {
		return err
	}
	if _, ok := tiers[c.Tier]; !ok {
		return terminal.Usagef("--tier %q: must be one of %s; --tiers NAME=N or GRIDCAST_TIER adds one, as the edges are told",
			c.Tier, strings.Join(tiers.Names(), ", "))
	}
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	o.Tiers = tiers
	action := operator.CreateKey{Client: c.Client, Tier: c.Tier, Origins: c.Origin}
	if c.Expires != 0 {
		action.Expires.Time = time.Now().Add(time.Duration(c.Expires))
	}
	done, err := c.Apply(ctx, s, o, action, operator.Request{Reason: c.Reason})
	if err != nil {
		return err
	}
	printKey(s, done)
	return nil
}

// printKey shows a new key, this once.
func printKey(s *terminal.Streams, done operator.Answer) {
	if s.JSON {
		k := done.Record.(keys.StoredKey)
		created := createdKey{ID: k.ID, Key: done.Secret, Name: k.Name, Tier: k.Tier, Origins: k.Origins}
		if !k.Expires.IsZero() {
			created.Expires = &k.Expires
		}
		s.PrintJSON(created)
		return
	}
	s.Printf("%s\n\n%s\n", done.Secret, done.Text)
}

type keysListCmd struct {
	flags.Storage `embed:""`
}

func (c *keysListCmd) Run(ctx context.Context, s *terminal.Streams) error {
	store, err := c.OpenToRead(ctx)
	if err != nil {
		return err
	}
	d, _, err := keys.Load(ctx, store)
	if err != nil {
		return err
	}
	if s.JSON {
		s.PrintJSON(d.Keys)
		return nil
	}
	if len(d.Keys) == 0 {
		s.Printf("%s has no keys; gridcast keys create makes one\n", store)
		return nil
	}
	now := time.Now()
	rows := make([][]any, len(d.Keys))
	for i, k := range d.Keys {
		rows[i] = []any{k.ID, k.Prefix + "…", terminal.Quoted(k.Name), k.Tier, terminal.Time(k.Created), terminal.Time(k.Expires), strings.TrimSpace(view.KeyState(&k, now) + " " + terminal.Time(k.Revoked)), strings.Join(k.Origins, " ")}
	}
	s.PrintTable([]any{"id", "key", "name", "tier", "created", "expires", "state", "origins"}, rows)
	return nil
}

// keyFlags is what an action about a key is told.
type keyFlags struct {
	flags.Storage        `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
	ID                   string `arg:"" help:"The key's id, from keys list."`
}

func (f *keyFlags) do(ctx context.Context, s *terminal.Streams, action operator.Action) (operator.Answer, error) {
	o, err := f.Operator(ctx, s)
	if err != nil {
		return operator.Answer{}, err
	}
	return f.Apply(ctx, s, o, action, operator.Request{Reason: f.Reason})
}

// change carries out an action that makes no new key, and prints the record.
func (f *keyFlags) change(ctx context.Context, s *terminal.Streams, action operator.Action) error {
	done, err := f.do(ctx, s, action)
	switch {
	case err != nil:
		return err
	case s.JSON:
		s.PrintJSON(done.Record)
		return nil
	}
	s.Printf("%s\n", done.Text)
	return nil
}

type keysRotateCmd struct {
	keyFlags `embed:""`
	Grace    flags.Span `default:"168h" help:"How long the old key still works." placeholder:"DURATION" env:"-"`
}

func (c *keysRotateCmd) Run(ctx context.Context, s *terminal.Streams) error {
	done, err := c.do(ctx, s, operator.RotateKey{ID: c.ID, Grace: operator.Span(c.Grace)})
	if err != nil {
		return err
	}
	printKey(s, done)
	return nil
}

type keysRevokeCmd struct {
	keyFlags `embed:""`
}

func (c *keysRevokeCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.change(ctx, s, operator.RevokeKey{ID: c.ID})
}

type keysExpireCmd struct {
	keyFlags `embed:""`
	When     string `arg:"" help:"An instant such as 2027-01-31T00:00:00Z, a duration from now such as 30d, or never."`
}

func (c *keysExpireCmd) Run(ctx context.Context, s *terminal.Streams) error {
	action := operator.ExpireKey{ID: c.ID}
	var in flags.Span
	if at, err := time.Parse(time.RFC3339, c.When); err == nil {
		action.Until.Time = at
	} else if err := in.UnmarshalText([]byte(c.When)); err == nil && in > 0 {
		action.Until.Time = time.Now().Add(time.Duration(in))
	} else if c.When != "never" {
		return terminal.Usagef("%q: must be an instant such as 2027-01-31T00:00:00Z, a duration such as 30d, or never", c.When)
	}
	return c.change(ctx, s, action)
}

type keysOriginsCmd struct {
	keyFlags `embed:""`
	Origins  []string `arg:"" help:"Origins such as https://example.org, or any."`
}

func (c *keysOriginsCmd) Run(ctx context.Context, s *terminal.Streams) error {
	action := operator.SetOrigins{ID: c.ID, Origins: c.Origins}
	if len(c.Origins) == 1 && c.Origins[0] == "any" {
		action.Origins = nil
	}
	return c.change(ctx, s, action)
}
