package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots/notes"
)

// initCmd sets up a new installation. It takes every flag of serve and writes an environment file with
// them for the processes of the installation.
type initCmd struct {
	flags.Builder
	flags.Edge
	flags.Console
	flags.Sources
	flags.Webhooks
	flags.Action
	File    string `help:"The environment file to write." default:"gridcast.env" type:"path" env:"-"`
	Client  string `name:"name" help:"The client of the first key." default:"first client" env:"-"`
	KeyTier string `help:"The tier of the first key." default:"standard" env:"-"`
	Force   bool   `help:"Replace an existing environment file." env:"-"`
}

type initialised struct {
	File      string   `json:"file"`
	Store     string   `json:"store"`
	TokenFile string   `json:"token_file,omitzero"`
	Trust     []string `json:"trust"`       // verifier keys of versions
	TrustKeys []string `json:"trust_keys"`  // verifier keys of the list of API keys
	ID        string   `json:"id,omitzero"` // of the first key; empty if the store has keys already
	Key       string   `json:"key,omitzero"`
	Next      []string `json:"next"` // commands
}

func (c *initCmd) Run(ctx context.Context, k *kong.Context, s *terminal.Streams) error {
	if _, err := os.Stat(c.File); err == nil && !c.Force {
		return fmt.Errorf("init: %s exists already; --force replaces it, --file writes another", c.File)
	}
	o, err := c.open(ctx)
	if err != nil {
		return err
	}
	if err := c.makeSigningKeys(); err != nil {
		return err
	}
	if o.SignKeys, err = c.KeySigners(); err != nil {
		return err
	}
	out := initialised{File: c.File, Store: c.Store, Trust: c.Trust, TrustKeys: c.TrustKeys, Next: []string{"set -a; . " + c.File + "; set +a", "gridcast doctor", "gridcast serve"}}
	if c.OperatorListen != "" {
		if _, err := c.Console.Token(); err != nil {
			return err
		}
		out.TokenFile = c.OperatorTokenFile
	}
	if err := c.makeMaster(); err != nil {
		return err
	}
	if err := c.write(k); err != nil {
		return err
	}
	document, _, err := keys.Load(ctx, o.Store)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(document.Keys, func(r keys.StoredKey) bool { return r.Active(time.Now()) }) {
		done, err := c.Apply(ctx, s, o, operator.CreateKey{Client: c.Client, Tier: c.KeyTier}, operator.Request{Reason: "first key of the installation"})
		if err != nil {
			return err
		}
		out.ID, out.Key = done.Record.(keys.StoredKey).ID, done.Secret
	}
	if !s.PrintedJSON(out) {
		c.printNext(s, out)
	}
	return nil
}

// open checks the flags as the servers do, before init writes anything, and opens the store.
func (c *initCmd) open(ctx context.Context) (*operator.Operator, error) {
	if path, ok := strings.CutPrefix(c.Store, "dir:"); ok {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("init: %w", err)
		}
		c.Store = "dir:" + absolute
	}
	_, configErr := c.Config()
	_, policyErr := c.Policy()
	if err := cmp.Or(configErr, policyErr); err != nil {
		return nil, err
	}
	_, done, err := c.Limits(ctx, slog.New(slog.DiscardHandler)) // a Redis that is not there yet is no error
	if err != nil {
		return nil, err
	}
	done()
	store, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	o, err := flags.NewOperator(ctx, store)
	if err != nil {
		return nil, err
	}
	if _, ok := o.Tiers[c.KeyTier]; !ok {
		return nil, terminal.Usagef("--key-tier %q: must be one of %s", c.KeyTier, strings.Join(o.Tiers.Names(), ", "))
	}
	return o, nil
}

func (c *initCmd) printNext(s *terminal.Streams, out initialised) {
	key := "The store has keys already: gridcast keys list shows them."
	if out.Key != "" {
		key = fmt.Sprintf("The first key, for %s, tier %s, shown this once:\n\n  %s", c.Client, c.KeyTier, out.Key)
	}
	key += "\n\nVersions are signed with " + strings.Join(c.Sign, ", ") + ", the list of API keys with " + strings.Join(c.SignKeys, ", ") +
		". Edges with a --cache-dir trust:\n\n  --trust '" + strings.Join(c.Trust, "' --trust '") + "' --trust-keys '" + strings.Join(c.TrustKeys, "' --trust-keys '") + "'"
	if out.TokenFile != "" {
		key += "\n\nOperators sign in with the token in " + out.TokenFile
	}
	s.Printf("%s configures every process.\n\n%s\n\nNext:\n\n  %s\n", out.File, terminal.Lines(key), terminal.Lines(strings.Join(out.Next, "\n  ")))
}

// makeMaster creates the master of webhooks in the file of the flag, unless the file exists.
func (c *initCmd) makeMaster() error {
	if c.WebhookMasterFile == "" {
		return nil
	}
	var err error
	if c.WebhookMasterFile, err = filepath.Abs(c.WebhookMasterFile); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if _, err := os.Stat(c.WebhookMasterFile); err == nil {
		_, err := webhook.ReadMaster(c.WebhookMasterFile)
		return err
	}
	if err := flags.WriteSecret(c.WebhookMasterFile, rand.Text()+rand.Text()+"\n", os.Link); err != nil {
		return fmt.Errorf("init: make the master of webhooks: %w", err)
	}
	return nil
}

// makeSigningKeys creates the key that signs versions and the one that signs the list of API keys, each unless its
// file exists: in the files of the flags, else beside the operator's token. The environment trusts both.
func (c *initCmd) makeSigningKeys() error {
	folder := filepath.Dir(cmp.Or(c.OperatorTokenFile, c.File))
	origin, err := makeSigningKey(&c.Sign, &c.Trust, filepath.Join(folder, "version.key"), notes.NewOrigin())
	if err == nil {
		_, err = makeSigningKey(&c.SignKeys, &c.TrustKeys, filepath.Join(folder, "keys.key"), origin+"/keys")
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return nil
}

// makeSigningKey creates the missing ones of files, or the file usual if files is empty. It makes the paths absolute,
// sets an empty trust to the verifier keys, and returns the origin of the keys.
func makeSigningKey(files, trust *[]string, usual, origin string) (string, error) {
	if len(*files) == 0 {
		*files = []string{usual}
	}
	for i, file := range *files {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		(*files)[i] = absolute
		if _, err := os.Stat(absolute); errors.Is(err, fs.ErrNotExist) {
			if err := notes.MakeKey(absolute, origin); err != nil {
				return "", err
			}
		}
	}
	made, err := notes.ReadSigners(*files...)
	if err != nil {
		return "", err
	}
	if len(*trust) == 0 {
		*trust = made.Public()
	}
	return made.Origin(), nil
}

// ephemeral lists flags that have no place in the environment of a service.
var ephemeral = []string{"json", "archive", "now", "race-clock", "by"}

// cached lists flags that an edge can only have with --cache-dir.
var cached = []string{"trust", "trust-keys"}

// write writes the environment file: every variable with its help, commented out if it has its default.
// Only its owner may read the file, because it holds credentials.
func (c *initCmd) write(k *kong.Context) error {
	var text strings.Builder
	text.WriteString(`# The configuration of every process of this gridcast: "gridcast edge" and "gridcast scheduler", or
# "gridcast serve", which is both. systemd reads this file (EnvironmentFile=), compose too
# (env_file:), and a shell: set -a; . FILE; set +a. A flag on the command line beats it.

# Credentials of S3-compatible storage. Edges only read: give them other credentials than the scheduler.
#AWS_ACCESS_KEY_ID=''
#AWS_SECRET_ACCESS_KEY=''
`)
	for _, group := range k.Selected().AllFlags(true) {
		for _, flag := range group {
			if len(flag.Envs) == 0 || slices.Contains(ephemeral, flag.Name) {
				continue
			}
			value := environmentValue(flag.Target.Interface(), flag.Tag.Sep)
			mark := "#"
			if value != flag.Default && (value != "false" || flag.Default != "") || flag.Name == "store" {
				mark = ""
			}
			if c.CacheDir == "" && slices.Contains(cached, flag.Name) {
				mark = "#"
			}
			if strings.ContainsAny(value, "'\n") {
				return fmt.Errorf("init: --%s %q: an environment file cannot hold a quote or a line end", flag.Name, value)
			}
			fmt.Fprintf(&text, "\n# %s\n%s%s='%s'\n", flag.Help, mark, flag.Envs[0], value)
		}
	}
	if err := flags.WriteSecret(c.File, text.String(), os.Rename); err != nil {
		return fmt.Errorf("init: write the environment file: %w", err)
	}
	return nil
}

// environmentValue is the value of a flag in the form of its variable.
func environmentValue(value any, separator rune) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, string(separator))
	case map[string]int:
		pairs := make([]string, 0, len(v))
		for name, n := range v {
			pairs = append(pairs, fmt.Sprintf("%s=%d", name, n))
		}
		slices.Sort(pairs)
		return strings.Join(pairs, ";")
	}
	return fmt.Sprint(value)
}
