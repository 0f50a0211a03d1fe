package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

type keysCmds struct {
	Create  keysCreateCmd                   `cmd:"" help:"Create a key; the command shows it once."`
	List    keysListCmd                     `cmd:"" help:"List the keys."`
	Usage   keysUsageCmd                    `cmd:"" help:"Show the requests, refusals and bytes of keys in a month."`
	Rotate  listAction[operator.RotateKey]  `cmd:"" help:"Create a successor of a key; the old key still works for a while."`
	Revoke  listAction[operator.RevokeKey]  `cmd:"" help:"Refuse a key from now on."`
	Expire  listAction[operator.ExpireKey]  `cmd:"" help:"Set until when a key is valid."`
	Tier    keyAction[operator.SetTier]     `cmd:"" help:"Give a key another tier; the running minute keeps its count."`
	Origins listAction[operator.SetOrigins] `cmd:"" help:"Set the browser origins that may use a key."`
	Prune   listAction[operator.PruneKeys]  `cmd:"" help:"Remove the keys that were revoked or expired long ago."`
	Sign    listAction[operator.SignList]   `cmd:"" help:"Sign the list as it is, for the first time or with a new signing key."`
}

type keysCreateCmd struct{ keyAction[operator.CreateKey] }

func (c *keysCreateCmd) Run(ctx context.Context, s *terminal.Streams) error {
	tiers, err := c.Opener.Part.All()
	if err != nil {
		return err
	}
	if _, ok := tiers[c.Do.Tier]; !ok {
		return terminal.Usagef("--tier %q: must be one of %s; --tiers NAME=N or GRIDCAST_TIER adds one, here and for the edges",
			c.Do.Tier, strings.Join(tiers.Names(), ", "))
	}
	store, err := c.Opener.Open(ctx) // the first key may begin a store
	if err != nil {
		return err
	}
	if err := c.keyAction.Run(ctx, s); err != nil {
		return err
	}
	if _, _, err := snapshots.LoadPointer(ctx, store); errors.Is(err, snapshots.ErrNone) {
		_, err = fmt.Fprintf(s.Err, "  ! Nothing is published in %s yet: is it the store of the service?\n", store)
		return err
	}
	return nil
}

type keysListCmd struct{ flags.Storage }

func (c *keysListCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	d, _, err := keys.Load(ctx, store)
	if err != nil {
		return err
	}
	now := time.Now()
	header := []any{"id", "key", "name", "tier", "created", "expires", "state", "origins"}
	terminal.PrintRows(s, d.Keys, fmt.Sprintf("%s has no keys; gridcast keys create makes one", store), header, func(k keys.StoredKey) []any {
		return []any{k.ID, k.Prefix + "…", k.Name, k.Tier, terminal.Time(k.Created), terminal.Time(k.Expires), strings.TrimSpace(view.KeyState(&k, now) + " " + terminal.Time(k.Revoked)), strings.Join(k.Origins, " ")}
	})
	return nil
}

type operatorsCmds struct {
	Add    storeAction[operator.AddOperator]    `cmd:"" help:"Give a person a token for the console; the command shows it once."`
	List   operatorsListCmd                     `cmd:"" help:"List the people with a token."`
	Revoke storeAction[operator.RevokeOperator] `cmd:"" help:"Refuse a person's token from now on."`
}

type operatorsListCmd struct{ flags.Storage }

func (c *operatorsListCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	list, err := operator.LoadPeople(ctx, store)
	if err != nil {
		return err
	}
	const none = "no operator has a token; gridcast operators add NAME --role operate creates one"
	terminal.PrintRows(s, list, none, []any{"name", "role", "created", "state"}, func(p operator.Person) []any {
		state := "active"
		if !p.Revoked.IsZero() {
			state = strings.TrimSpace("revoked " + terminal.Time(p.Revoked))
		}
		return []any{p.Name, p.Role, terminal.Time(p.Created), state}
	})
	return nil
}

type signingCmds struct {
	New  signingNewCmd  `cmd:"" help:"Make a private key for --sign or --sign-keys, and print its verifier key for edges."`
	Show signingShowCmd `cmd:"" help:"Print the verifier keys of private keys, for --trust or --trust-keys of edges."`
	Open signingOpenCmd `cmd:"" help:"Check a signed note, such as SHA256SUMS.note of a release, and print its text."`
}

type signingOpenCmd struct {
	File string   `arg:"" help:"A signed note, such as SHA256SUMS.note of a release." type:"path"`
	Keys []string `name:"key" required:"" help:"The verifier key of the signer; may be repeated." placeholder:"VKEY" env:"-"`
}

// Run prints the text of a note below its origin.
func (c *signingOpenCmd) Run(s *terminal.Streams) error {
	trust, err := notes.NewTrust(c.Keys...)
	if err != nil {
		return terminal.Usagef("--key: %w", err)
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	opened, err := trust.Open(data)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	s.Print(opened, "%s", terminal.Lines([]byte(strings.Join(opened.Lines, "\n")+"\n")))
	return nil
}

type signingNewCmd struct {
	File   string `arg:"" help:"The file to write; only its owner can read it." type:"path"`
	Like   string `help:"A private key that the new one will replace: both have one origin." placeholder:"FILE" type:"path" env:"-"`
	Origin string `help:"The name of the key; default: one that no other installation has." placeholder:"NAME" env:"-"`
}

func (c *signingNewCmd) Run(s *terminal.Streams) error {
	switch {
	case c.Like != "":
		old, err := notes.ReadSigners(c.Like)
		if err != nil {
			return err
		}
		c.Origin = old.Origin()
	case c.Origin == "":
		c.Origin = notes.NewOrigin()
	}
	if err := notes.MakeKey(c.File, c.Origin); err != nil {
		return err
	}
	return printVerifierKeys(s, c.File)
}

type signingShowCmd struct {
	Files []string `arg:"" help:"The private keys." type:"path"`
}

func (c *signingShowCmd) Run(s *terminal.Streams) error {
	for _, file := range c.Files {
		if err := printVerifierKeys(s, file); err != nil {
			return err
		}
	}
	return nil
}

func printVerifierKeys(s *terminal.Streams, file string) error {
	key, err := notes.ReadSigners(file)
	if err != nil {
		return err
	}
	for _, public := range key.Public() {
		s.Print(map[string]string{"file": file, "origin": key.Origin(), "verifier_key": public}, "%s\n", public)
	}
	return nil
}
