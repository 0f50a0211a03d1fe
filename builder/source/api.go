package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// API is an upstream that answers in JSON below one address. One payload takes several requests.
// It is safe for concurrent use.
type API struct {
	Names Equivalents // from its names to ours

	name    string
	licence Licence
	base    string
	client  *Client
}

// NewAPI returns the API of a name at a base URL. It sets the hosts and content types of the config. An API on
// this machine has no request limits.
func NewAPI(name string, licence Licence, base string, config ClientConfig, names func() (Equivalents, error)) (*API, error) {
	equivalents, err := names()
	if err != nil {
		return nil, err
	}
	host, err := Host(base)
	if err != nil {
		return nil, err
	}
	if strings.Contains(base, "?") {
		return nil, fmt.Errorf("source URL %q: want https://host/path", base)
	}
	config.Hosts, config.ContentTypes, config.Paced, config.RetryDelay = []string{host}, []string{"application/json"}, true, time.Second
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		config.PerSecond, config.PerHour, config.RetryDelay = 1000, 100_000, time.Millisecond
		if config.PerMinute > 0 {
			config.PerMinute = 100_000
		}
	}
	return &API{Names: equivalents, name: name, licence: licence, base: strings.TrimSuffix(base, "/"), client: NewClient(config)}, nil
}

// Name implements [Upstream].
func (a *API) Name() string { return a.name }

// Licence implements [Upstream].
func (a *API) Licence() Licence { return a.licence }

// Host returns the host name in the URL of a source.
func Host(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("source URL %q: want https://host/path", target)
	}
	return u.Hostname(), nil
}

// At starts the requests of one payload at an instant of race time.
func (a *API) At(now time.Time) Requests { return Requests{a, now, time.Now()} }

// Requests sends the requests of one payload. Race time goes on while they take real time.
type Requests struct {
	api        *API
	now, began time.Time
}

// Get requests a path below the base and decodes the answer. An error is a *Fault.
func (r Requests) Get(ctx context.Context, path string, into any) error {
	answer, err := r.api.client.Get(ctx, r.now.Add(time.Since(r.began)), r.api.url(path), Validators{})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		return r.Malformed(path, "%w", err)
	}
	return nil
}

// Malformed returns the *Fault of an answer with unexpected content.
func (r Requests) Malformed(path, format string, args ...any) error {
	return &Fault{Kind: Malformed, Err: fmt.Errorf("get %s: %w", r.api.url(path), fmt.Errorf(format, args...))}
}

func (a *API) url(path string) string { return a.base + "/" + path }

// PackPayload packs a value and returns its payload, with RevisionOf as its revision. An error is a
// *Fault.
func PackPayload(v any, known Known) (Payload, error) {
	packed, err := Encode(v)
	if err != nil {
		return Payload{}, &Fault{Kind: Malformed, Err: err}
	}
	return NewPayload(packed, RevisionOf(packed), Validators{}, known), nil
}

// NewPayload returns a payload, or NotModified if it equals the known one.
func NewPayload(packed []byte, revision string, validators Validators, known Known) Payload {
	if Sum(packed) == known.SHA256 {
		return Payload{NotModified: true, Validators: validators}
	}
	return Payload{Packed: packed, Revision: revision, Validators: validators}
}

// Sum returns the SHA-256 of a payload in lower-case hex, by which a store names it.
func Sum(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// RevisionOf names a payload of an upstream without revisions: twelve digits of its SHA-256.
func RevisionOf(packed []byte) string {
	return Sum(packed)[:12]
}
