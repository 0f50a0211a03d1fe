package builder_test

import (
	"log/slog"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/predict"
	"gridcast/snapshots/blob/memblob"
)

// TestSettings: what one scheduler is told, another one on the store goes by; what nobody said is as
// each was told.
func TestSettings(t *testing.T) {
	store := memblob.New()
	told := builder.Policy{AutoVerifyAfter: time.Hour, AutoReviseAfter: time.Minute}
	settings, err := builder.LoadSettings(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if got := settings.Apply(told); got.AutoVerifyAfter != time.Hour || got.AutoReviseAfter != time.Minute {
		t.Errorf("without settings: got %s and %s, want what it was told", got.AutoVerifyAfter, got.AutoReviseAfter)
	}
	never := int64(0)
	if _, err := builder.UpdateSettings(t.Context(), store, func(s *builder.Settings) { s.AutoVerifySeconds = &never }); err != nil {
		t.Fatal(err)
	}
	if settings, err = builder.LoadSettings(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if got := settings.Apply(told); got.AutoVerifyAfter != 0 || got.AutoReviseAfter != time.Minute {
		t.Errorf("with settings: got %s and %s, want never and a minute", got.AutoVerifyAfter, got.AutoReviseAfter)
	}
	if _, err := store.Swap(t.Context(), "settings.json", "", nil); err == nil {
		t.Error("the settings are not in settings.json")
	}
	object, err := store.Get(t.Context(), "settings.json", 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Swap(t.Context(), "settings.json", object.Tag, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.LoadSettings(t.Context(), store); err == nil {
		t.Error("damaged settings are read as none")
	}
}

// TestModelOfTheSettings: every builder of a store picks by the model that the settings name, whatever
// it was told; one that nobody knows is no reason to make no pick.
func TestModelOfTheSettings(t *testing.T) {
	told := predict.PreviousWinner()
	b := &builder.Builder{Store: memblob.New(), Policy: builder.Policy{Model: told}, Log: slog.New(slog.DiscardHandler)}
	for _, test := range []struct{ setting, want string }{
		{"", told.Name()},
		{"grid-frequency", predict.GridFrequency().Name()},
		{"r2", predict.R2},
		{"crystal-ball", told.Name()},
	} {
		if _, err := builder.UpdateSettings(t.Context(), b.Store, func(s *builder.Settings) { s.Model = test.setting }); err != nil {
			t.Fatal(err)
		}
		model := b.Rules(t.Context()).Model
		if model.Name() != test.want {
			t.Errorf("the settings say %q: picks are made by %s, want %s", test.setting, model.Name(), test.want)
		}
		if test.setting == "r2" && b.Rules(t.Context()).Model != model {
			t.Error("the model is another one at each look: it forgets what it has learnt")
		}
	}
}
