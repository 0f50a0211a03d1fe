// Package settings keeps the rules that all schedulers of a store share, so that they never differ:
// the document settings.json.
package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"strings"

	"gridcast/builder/season"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// Key is the store key of the settings.
const Key = "settings.json"

// Settings are the shared rules. A field without a value leaves the rule to the flags of each process.
type Settings struct {
	// Model names the model that makes the picks: one of predict.Names.
	Model             string `json:"model,omitempty"`
	AutoVerifySeconds *int64 `json:"auto_verify_after_seconds,omitempty"` // builder.Policy.AutoVerifyAfter
	AutoReviseSeconds *int64 `json:"auto_revise_after_seconds,omitempty"` // builder.Policy.AutoReviseAfter
	// Headshots say where the portraits of all drivers are. Without a template no driver has one.
	Headshots *season.Headshots `json:"headshots,omitempty"`
	// PublicAddress is where readers find the API, such as https://api.example.com; empty: not set.
	PublicAddress string `json:"public_address,omitempty"`
	// Operator names the operator of the service to readers. Its Address is empty: PublicAddress has it.
	Operator snapshots.Operator `json:"operator,omitzero"`
}

// Told returns the operator as versions name it.
func (s Settings) Told() snapshots.Operator {
	s.Operator.Address = s.PublicAddress
	return s.Operator
}

// CheckPage returns an error unless text is the https address of a page.
func CheckPage(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(text, " <>\"") {
		return "", fmt.Errorf("%q: want an https address, such as https://example.com/terms", text)
	}
	return text, nil
}

// CheckContact returns a contact as a URI. It takes an https address or a mail address.
func CheckContact(text string) (string, error) {
	if page, err := CheckPage(text); err == nil {
		return page, nil
	}
	name := strings.TrimPrefix(text, "mailto:")
	if address, err := mail.ParseAddress(name); err != nil || address.Address != name || strings.ContainsAny(name, " <>\"?%") {
		return "", fmt.Errorf("%q: want a mail address or an https address, such as api@example.com or https://example.com/contact", text)
	}
	return "mailto:" + name, nil
}

var languages = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*(, ?[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*)*$`)

// CheckLanguages returns an error unless text is a list of language tags.
func CheckLanguages(text string) (string, error) {
	if !languages.MatchString(text) {
		return "", fmt.Errorf("%q: want language tags with commas between, such as en, de", text)
	}
	return text, nil
}

// CheckAddress returns an error unless text is a public address: a scheme and a host, and nothing after them.
func CheckAddress(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || text != u.Scheme+"://"+u.Host {
		return "", fmt.Errorf("%q: want https:// or http:// and a host, such as https://api.example.com", text)
	}
	return text, nil
}

// Digest returns the SHA-256 of the settings in lower-case hex; empty for settings without a value.
func (s Settings) Digest() string {
	if s == (Settings{}) {
		return ""
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic("BUG: encode settings: " + err.Error())
	}
	return snapshots.Digest(data)
}

// document returns the object of the store that holds the settings. With anew, damaged ones are empty.
func document(store blob.Store, anew bool) blob.Document[Settings] {
	return blob.Document[Settings]{Store: store, Key: Key, Copied: true, Decode: func(data []byte) (s Settings, err error) {
		if err = blob.DecodeJSON(data, &s); anew && err != nil {
			return Settings{}, nil //nolint:nilerr // anew says so
		}
		return s, err
	}}
}

// Load returns the settings of a store. A store without settings.json has empty settings.
func Load(ctx context.Context, store blob.Store) (Settings, error) {
	s, _, err := document(store, false).Load(ctx)
	if err != nil {
		return Settings{}, fmt.Errorf("load settings: %w", err)
	}
	return s, nil
}

// Heal replaces damaged or lost settings by their copy in the store; see [blob.Document.Heal].
func Heal(ctx context.Context, store blob.Store) (bool, error) {
	return document(store, false).Heal(ctx)
}

// Update applies edit to the settings of a store and returns the new ones; see [blob.Document.Update] for
// its contract. With anew, edit begins with empty settings if the present ones are damaged.
func Update(ctx context.Context, store blob.Store, anew bool, edit func(*Settings)) (Settings, error) {
	s, err := document(store, anew).Update(ctx, func(s *Settings) error {
		edit(s)
		return nil
	})
	if err != nil {
		return Settings{}, fmt.Errorf("save settings: %w", err)
	}
	return s, nil
}
