package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob"
)

const settingsKey = "settings.json"

// Settings are the rules that every scheduler of a store goes by, so that two never differ:
// settings.json. What is nil was never said, and is as the process was told.
type Settings struct {
	// Model makes the picks, and what is derived from them: one of predict.Names.
	Model             string `json:"model,omitempty"`
	AutoVerifySeconds *int64 `json:"auto_verify_after_seconds,omitempty"` // Policy.AutoVerifyAfter
	AutoReviseSeconds *int64 `json:"auto_revise_after_seconds,omitempty"` // Policy.AutoReviseAfter
	// Headshots say where portraits are, whichever import the drivers come with; without a template:
	// nobody has one.
	Headshots *season.Headshots `json:"headshots,omitempty"`
}

// Apply returns the policy as the settings say, but for the model: see [Builder.Rules].
func (s Settings) Apply(p Policy) Policy {
	if s.AutoVerifySeconds != nil {
		p.AutoVerifyAfter = time.Duration(*s.AutoVerifySeconds) * time.Second
	}
	if s.AutoReviseSeconds != nil {
		p.AutoReviseAfter = time.Duration(*s.AutoReviseSeconds) * time.Second
	}
	return p
}

// LoadSettings returns the settings of a store; none of one that has none.
func LoadSettings(ctx context.Context, store blob.Store) (Settings, error) {
	s, _, err := loadSettings(ctx, store)
	return s, err
}

func loadSettings(ctx context.Context, store blob.Store) (Settings, blob.Tag, error) {
	object, err := store.Get(ctx, settingsKey, blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return Settings{}, "", nil
	}
	if err != nil {
		return Settings{}, "", fmt.Errorf("load settings: %w", err)
	}
	var s Settings
	if err := json.Unmarshal(object.Data, &s); err != nil {
		return Settings{}, "", fmt.Errorf("load settings: %s is damaged: %w", settingsKey, err)
	}
	return s, object.Tag, nil
}

// UpdateSettings changes the settings of a store, and returns them. Nothing is written that is there
// already.
func UpdateSettings(ctx context.Context, store blob.Store, change func(*Settings)) (Settings, error) {
	for {
		s, tag, err := loadSettings(ctx, store)
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
		switch _, err := store.Swap(ctx, settingsKey, tag, data); {
		case err == nil:
			return s, nil
		case !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown), ctx.Err() != nil:
			return Settings{}, fmt.Errorf("save settings: %w", err)
		}
	}
}
