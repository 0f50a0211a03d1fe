package keys

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// format is the version of the document's form.
const format = 1

// Document is the content of keys/keys.json: every key ever created, in order of creation.
// The zero value is an empty document.
type Document struct {
	Format int      `json:"format"` // 1
	Keys   []Record `json:"keys"`
}

// Record is one key. Instants are real time, in UTC.
type Record struct {
	ID      string    `json:"id"`               // the first 12 hex digits of SHA256
	SHA256  string    `json:"sha256"`           // lower-case hex, of the whole key
	Prefix  string    `json:"prefix"`           // the key's first characters, to recognise it by
	Name    string    `json:"name"`             // the client
	Tier    string    `json:"tier"`             // a name from the configured [Tiers]
	Created time.Time `json:"created"`          //
	Expires time.Time `json:"expires,omitzero"` // refused from this instant on
	Revoked time.Time `json:"revoked,omitzero"` // refused, at once
	Origins []string  `json:"origins,omitzero"` // a browser's Origin must be among them, unless empty
}

// Decode reads a document. Anything unexpected is an error: a field that this program does
// not know may be a restriction that it would not enforce.
func Decode(data []byte) (*Document, error) {
	var d Document
	if err := decodeStrictly(data, &d); err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	if d.Format != format {
		return nil, fmt.Errorf("decode keys: format %d, this program reads %d", d.Format, format)
	}
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	return &d, nil
}

// Encode returns the document as it is stored: indented, so that a person can read the bucket.
func (d *Document) Encode() ([]byte, error) {
	d.Format = format
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	return append(data, '\n'), nil
}

// Find returns the record with the id.
func (d *Document) Find(id string) (*Record, error) {
	i := slices.IndexFunc(d.Keys, func(r Record) bool { return r.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w %q", ErrNoKey, id)
	}
	return &d.Keys[i], nil
}

func (d *Document) validate() error {
	ids := make(map[string]bool, len(d.Keys))
	var errs []error
	for i, r := range d.Keys {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("key %d (%q): %w", i, r.ID, err))
		}
		if ids[r.ID] {
			errs = append(errs, fmt.Errorf("key %d (%q): id is taken", i, r.ID))
		}
		ids[r.ID] = true
	}
	return errors.Join(errs...)
}

func (r *Record) validate() error {
	switch hash, err := hex.DecodeString(r.SHA256); {
	case err != nil || len(hash) != len(Hash{}) || strings.ToLower(r.SHA256) != r.SHA256:
		return fmt.Errorf("sha256 %q is not 64 lower-case hex digits", r.SHA256)
	case r.ID != r.SHA256[:idLen]:
		return fmt.Errorf("id is not the first %d digits of sha256 %s", idLen, r.SHA256)
	case strings.TrimSpace(r.Name) == "":
		return errors.New("name is empty")
	case r.Tier == "":
		return errors.New("tier is empty")
	case r.Created.IsZero():
		return errors.New("created is missing")
	}
	for _, origin := range r.Origins {
		if err := validateOrigin(origin); err != nil {
			return err
		}
	}
	return nil
}

// validateOrigin accepts what a browser sends as Origin: scheme and host in lower case, a
// port that is not the scheme's default, nothing else.
func validateOrigin(origin string) error {
	u, err := url.Parse(origin)
	switch {
	case err != nil:
		return fmt.Errorf("origin %q: %w", origin, err)
	case u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin:
		return fmt.Errorf("origin %q is not of the form https://host or https://host:port", origin)
	case strings.ToLower(origin) != origin:
		return fmt.Errorf("origin %q has upper-case letters, which no browser sends", origin)
	case u.Scheme == "https" && u.Port() == "443", u.Scheme == "http" && u.Port() == "80":
		return fmt.Errorf("origin %q names the default port, which no browser sends", origin)
	}
	return nil
}
