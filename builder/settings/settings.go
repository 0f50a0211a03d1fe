// Package settings keeps the rules that all schedulers of a store share, so that they never differ:
// the document settings.json.
package settings

import (
	"context"
	"encoding/json"
	"fmt"

	"gridcast/builder/season"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

const key = "settings.json"

// Settings are the shared rules. A field without a value leaves the rule to the flags of each process.
type Settings struct {
	// Model names the model that makes the picks: one of predict.Names.
	Model             string `json:"model,omitempty"`
	AutoVerifySeconds *int64 `json:"auto_verify_after_seconds,omitempty"` // builder.Policy.AutoVerifyAfter
	AutoReviseSeconds *int64 `json:"auto_revise_after_seconds,omitempty"` // builder.Policy.AutoReviseAfter
	// Headshots say where the portraits of all drivers are. Without a template no driver has one.
	Headshots *season.Headshots `json:"headshots,omitempty"`
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

// document returns the object of the store that holds the settings.
func document(store blob.Store) blob.Document[Settings] {
	return blob.Document[Settings]{Store: store, Key: key}
}

// Load returns the settings of a store. A store without settings.json has empty settings.
func Load(ctx context.Context, store blob.Store) (Settings, error) {
	s, _, err := document(store).Load(ctx)
	if err != nil {
		return Settings{}, fmt.Errorf("load settings: %w", err)
	}
	return s, nil
}

// Update applies edit to the settings of a store and returns the new ones; see [blob.Document.Update] for
// its contract.
func Update(ctx context.Context, store blob.Store, edit func(*Settings)) (Settings, error) {
	s, err := document(store).Update(ctx, func(s *Settings) error {
		edit(s)
		return nil
	})
	if err != nil {
		return Settings{}, fmt.Errorf("save settings: %w", err)
	}
	return s, nil
}
