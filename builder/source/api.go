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

// API is an upstream that answers in JSON below one address, and of which one payload takes several
// requests. It is safe for concurrent use.
type API struct {
	Names Equivalents // what its names are in ours

	base   string
	client *Client
}

// NewAPI returns the API at a base URL, asked as the config says; the host, and that it answers in
// JSON, need not be set. One on this machine is asked as fast as it answers. names is the text of
// the file of equivalents, which errors about it name.
func NewAPI(base string, config ClientConfig, file, names string) (*API, error) {
	host, err := Host(base)
	if err != nil {
		return nil, err
	}
	if strings.Contains(base, "?") {
		return nil, fmt.Errorf("source URL %q: want https://host/path", base)
	}
	equivalents, err := ReadEquivalents(file, names)
	if err != nil {
		return nil, err
	}
	config.Hosts, config.ContentTypes, config.Paced, config.RetryDelay = []string{host}, []string{"application/json"}, true, time.Second
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		config.PerSecond, config.PerHour, config.RetryDelay = 1000, 100_000, time.Millisecond
		if config.PerMinute > 0 {
			config.PerMinute = 100_000
		}
	}
	return &API{Names: equivalents, base: strings.TrimSuffix(base, "/"), client: NewClient(config)}, nil
}

// Host returns the name of the host that the URL of a source has.
func Host(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return "", fmt.Errorf("source URL %q: want https://host/path", target)
	}
	return u.Hostname(), nil
}

// At begins the requests of one payload at an instant of race time.
func (a *API) At(now time.Time) Requests { return Requests{a, now, time.Now()} }

// Requests are those of one payload. To send them takes real time, in which race time goes on.
type Requests struct {
	api        *API
	now, began time.Time
}

// Get asks for a path below the base and decodes the answer. An error is a *Fault.
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

// Malformed is the *Fault of an answer that is not what was asked for.
func (r Requests) Malformed(path, format string, args ...any) error {
	return &Fault{Kind: Malformed, Err: fmt.Errorf("get %s: %w", r.api.url(path), fmt.Errorf(format, args...))}
}

// url is the address of a path below the base.
func (a *API) url(path string) string { return a.base + "/" + path }

// PackPayload is NewPayload of a value that is packed first; its revision is RevisionOf it. An error
// is a *Fault.
func PackPayload(v any, known Known) (Payload, error) {
	packed, err := Pack(v)
	if err != nil {
		return Payload{}, &Fault{Kind: Malformed, Err: err}
	}
	return NewPayload(packed, RevisionOf(packed), Validators{}, known), nil
}

// NewPayload is what an upstream said in its packed form, or that it is what was known.
func NewPayload(packed []byte, revision string, validators Validators, known Known) Payload {
	sum := sha256.Sum256(packed)
	if hex.EncodeToString(sum[:]) == known.SHA256 {
		return Payload{NotModified: true, Validators: validators}
	}
	return Payload{Packed: packed, Revision: revision, Validators: validators}
}

// RevisionOf is the name of a state of an upstream that has none of its own: twelve digits of the
// SHA-256 of what it said.
func RevisionOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:6])
}
