package main

import (
	"gridcast/deploy/terminal"
	"gridcast/snapshots/notes"
)

type signingCmds struct {
	New  signingNewCmd  `cmd:"" help:"Make a private key for --sign or --sign-keys, and print its verifier key for edges."`
	Show signingShowCmd `cmd:"" help:"Print the verifier keys of private keys, for --trust or --trust-keys of edges."`
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
