package flags

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"gridcast/deploy/console"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/edge/limit/redislimit"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/notes"
	"gridcast/snapshots/watch"
)

// Edge configures an edge.
type Edge struct {
	Listen         string         `help:"Where the API is served; default ${default}." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	AdminListen    string         `help:"Where metrics and profiles are served; default: nowhere, with serve 127.0.0.1:9100." placeholder:"HOST:PORT"`
	CacheDir       string         `help:"Keep a copy of version and keys here, to start from when the storage is down." placeholder:"DIR" type:"path"`
	Trust          []string       `help:"Serve only versions that this verifier key has signed, as gridcast signing show prints it; repeat it while a key is replaced. Needs --cache-dir." placeholder:"VKEY"`
	TrustKeys      []string       `help:"Accept only API keys from a list that this verifier key has signed; may be repeated. Needs --cache-dir." placeholder:"VKEY"`
	Pin            int64          `help:"Serve this version alone, for example on all edges but one while a release is tried; default: the current one." placeholder:"N"`
	TLSCert        string         `help:"Certificate, PEM; read again when it changes." name:"tls-cert" placeholder:"FILE" type:"path"`
	TLSKey         string         `help:"Key of the certificate, PEM." name:"tls-key" placeholder:"FILE" type:"path"`
	TrustedProxies []string       `help:"Trust X-Forwarded-For from these networks, such as 10.0.0.0/8." placeholder:"CIDR"`
	StartPage      []string       `help:"Show the data of these endpoints on the start page, to readers without a key: next-race, results, standings, title-odds, track-record; default: none." placeholder:"NAME"`
	Tiers          map[string]int `help:"Requests a minute of a tier of keys, if not the default; may be repeated. Every process needs the same tiers." name:"tiers" env:"GRIDCAST_TIER" placeholder:"NAME=N"`
	Redis          string         `help:"Count requests of all edges together in this Redis; default: each edge counts for itself." placeholder:"URL"`
	RedisPassword  string         `help:"Password of the user in --redis, read again for each connection." name:"redis-password-file" placeholder:"FILE" type:"path"`
	RedisCA        string         `help:"Certificates of the authorities for Redis, PEM; default: the system's." name:"redis-ca" placeholder:"FILE" type:"path"`
	RedisMode      string         `help:"Ask Redis for shares of a limit, or for every request: ${enum}." enum:"lease,strict" default:"lease"`
	DrainDelay     time.Duration  `help:"Accept connections for this long after a signal, while /readyz fails, so that load balancers notice." default:"0s"`
}

// Config returns the configuration of the edge.
func (f *Edge) Config() (edge.Config, error) {
	cfg := edge.DefaultConfig()
	cfg.Listen, cfg.AdminListen, cfg.CacheDir = f.Listen, f.AdminListen, f.CacheDir
	cfg.TLSCert, cfg.TLSKey, cfg.DrainDelay = f.TLSCert, f.TLSKey, f.DrainDelay
	cfg.StartPage = f.StartPage
	maps.Copy(cfg.Tiers, f.Tiers)
	for _, text := range f.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return cfg, terminal.Usagef("--trusted-proxies %q: must be a network such as 10.0.0.0/8", text)
		}
		cfg.TrustedProxies = append(cfg.TrustedProxies, network)
	}
	var err error
	if cfg.Trust, err = notes.NewTrust(f.Trust...); err != nil {
		return cfg, terminal.Usagef("--trust: %w", err)
	}
	if cfg.TrustKeys, err = notes.NewTrust(f.TrustKeys...); err != nil {
		return cfg, terminal.Usagef("--trust-keys: %w", err)
	}
	cfg.Pin = f.Pin
	if err := cfg.Validate(); err != nil {
		return cfg, terminal.Usagef("%w", err)
	}
	return cfg, nil
}

// Limits opens the counter of requests. The caller calls done after the edge has stopped.
func (f *Edge) Limits(ctx context.Context, log *slog.Logger) (source limit.Source, done func(), err error) {
	if f.Redis == "" {
		return limit.Memory{}, func() {}, nil
	}
	cfg, err := f.RedisConfig(log)
	if err != nil {
		return nil, nil, terminal.Usagef("%w", err)
	}
	shared, err := redislimit.Open(ctx, cfg)
	if err != nil {
		return nil, nil, terminal.Usagef("%w", err)
	}
	return shared, shared.Close, nil
}

// RedisConfig is the configuration of the shared counter in Redis.
func (f *Edge) RedisConfig(log *slog.Logger) (redislimit.Config, error) {
	cfg := redislimit.Config{URL: f.Redis, PasswordFile: f.RedisPassword, Mode: redislimit.Mode(f.RedisMode), Log: log}
	if f.RedisCA == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(f.RedisCA)
	if err != nil {
		return cfg, fmt.Errorf("--redis-ca: %w", err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return cfg, fmt.Errorf("--redis-ca %s: no certificate in it, want PEM", f.RedisCA)
	}
	return cfg, nil
}

// KeyTiers configures the tiers of keys. Every process needs the same tiers.
type KeyTiers struct {
	Tiers map[string]int `help:"Requests a minute of a tier of keys, if not the default; the same as for the edges; may be repeated." name:"tiers" env:"GRIDCAST_TIER" placeholder:"NAME=N"`
}

// All returns the default tiers and the configured ones.
func (f KeyTiers) All() (keys.Tiers, error) {
	tiers := keys.DefaultTiers()
	maps.Copy(tiers, f.Tiers)
	if err := tiers.Validate(); err != nil {
		return nil, terminal.Usagef("%w", err)
	}
	return tiers, nil
}

// KeyCreation is for actions that create keys.
type KeyCreation struct {
	KeySigning
	KeyTiers
}

// Equip gives an operator the tiers and the key for the list of API keys.
func (f KeyCreation) Equip(o *operator.Operator) (err error) {
	if o.Tiers, err = f.All(); err != nil {
		return err
	}
	return f.KeySigning.Equip(o)
}

// Console configures the operator's port.
type Console struct {
	KeySigning
	OperatorListen    string   `help:"Address of the console for operators; empty in a command: no console. Keep it private, because the token permits everything." default:"127.0.0.1:8090"`
	OperatorTokenFile string   `help:"A file with the operator's token; the first start creates it." default:".var/operator-token" type:"path"`
	LiveTokenFile     string   `help:"A file with a token that may only send observations of the running race: POST /live on the operator's port. Empty: nobody can send them there." placeholder:"FILE" type:"path"`
	Edges             []string `help:"The admin ports of all edges, for the console and the usage of keys." placeholder:"URL"`
}

// Token reads the operator's token, or creates one.
func (f *Console) Token() (*Token, error) {
	if _, err := os.Stat(f.OperatorTokenFile); errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		if err := WriteSecret(f.OperatorTokenFile, token+"\n", os.Link); err != nil && !errors.Is(err, fs.ErrExist) { // else another process was first
			return nil, fmt.Errorf("make the operator's token: %w", err)
		}
	}
	return readToken("the operator's token", f.OperatorTokenFile)
}

// LiveToken reads the token that may send observations; nil if there is none.
func (f *Console) LiveToken() (*Token, error) {
	if f.LiveTokenFile == "" {
		return nil, nil //nolint:nilnil // nobody may send observations
	}
	return readToken("the token for observations", f.LiveTokenFile)
}

// Token is the token in a file, which may change while the process runs. It is safe for concurrent use.
type Token struct {
	what, file string
	value      atomic.Pointer[string] // the last good one
}

func readToken(what, file string) (*Token, error) {
	t := &Token{what: what, file: file}
	if _, err := t.read(); err != nil {
		return nil, err
	}
	return t, nil
}

// Value returns the last good token of the file.
func (t *Token) Value() string { return *t.value.Load() }

// read takes the token from the file, and reports whether it replaced another one. An error keeps the last good one.
func (t *Token) read() (replaced bool, err error) {
	data, err := os.ReadFile(t.file)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", t.what, err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < console.MinToken {
		return false, fmt.Errorf("read %s: %s holds %d characters, want at least %d", t.what, t.file, len(token), console.MinToken)
	}
	before := t.value.Swap(&token)
	return before != nil && *before != token, nil
}

// Follow takes each good token that replaces the one in the file, until ctx ends.
func (t *Token) Follow(ctx context.Context, log *slog.Logger) {
	w := watch.New(log, t.file)
	defer w.Close()
	w.Settle = 50 * time.Millisecond // a file that is written in place is empty for a moment
	for ctx.Err() == nil {
		replaced, err := t.read()
		w.Refuse(err)
		if replaced {
			log.Info("token replaced", "file", t.file)
		}
		_ = w.Wait(ctx, time.Minute) // the loop ends with ctx
	}
}

// WriteSecret writes a file that only its owner can read, and makes its folder. After an error there is no new file.
// With os.Link as place an existing file is an error, with os.Rename it is replaced.
func WriteSecret(file, text string, place func(from, to string) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return dirblob.WriteFile(file, []byte(text), 0o600, place)
}
