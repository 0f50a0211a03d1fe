// Package settings keeps the rules that all schedulers of a store share, so that they never differ:
// the document settings.json.
package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gridcast/builder/season"
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

// Load returns the settings of a store. A store without settings.json has empty settings.
func Load(ctx context.Context, store blob.Store) (Settings, error) {
	s, _, err := load(ctx, store)
	return s, err
}

func load(ctx context.Context, store blob.Store) (Settings, blob.Tag, error) {
	object, err := store.Get(ctx, key, blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return Settings{}, "", nil
	}
	if err != nil {
		return Settings{}, "", fmt.Errorf("load settings: %w", err)
	}
	var s Settings
	if err := json.Unmarshal(object.Data, &s); err != nil {
		return Settings{}, "", fmt.Errorf("load settings: %s is damaged: %w", key, err)
	}
	return s, object.Tag, nil
}

// Update changes the settings of a store and returns the new ones. It writes nothing if change
// changes nothing.
func Update(ctx context.Context, store blob.Store, change func(*Settings)) (Settings, error) {
	for {
		s, tag, err := load(ctx, store)
		if err != nil {
			return Settings{}, err
		}
		before, err := json.Marshal(s)
		if err != nil {
			return Settings{}, fmt.Errorf("save settings: %w", err)
		}
		change(&s)
		if after, err := json.Marshal(s); err == nil && string(after) == string(before) {
			return s, nil
		}
		data, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return Settings{}, fmt.Errorf("save settings: %w", err)
		}
		switch _, err := store.Swap(ctx, key, tag, data); {
		case err == nil:
			return s, nil
		case !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown), ctx.Err() != nil:
			return Settings{}, fmt.Errorf("save settings: %w", err)
		}
	}
}
