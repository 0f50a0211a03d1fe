package builder_test

import (
	"log/slog"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/predict"
	"gridcast/builder/settings"
	"gridcast/snapshots/blob/memblob"
)

// TestPolicyWithSettings: the settings of the store win over the flags of a process; a setting without a
// value leaves the flag.
func TestPolicyWithSettings(t *testing.T) {
	flags := builder.Policy{AutoVerifyAfter: time.Hour, AutoReviseAfter: time.Minute}
	if got := flags.With(settings.Settings{}); got.AutoVerifyAfter != time.Hour || got.AutoReviseAfter != time.Minute {
		t.Errorf("without settings: got %s and %s, want the flags", got.AutoVerifyAfter, got.AutoReviseAfter)
	}
	never, day := int64(0), int64(24*60*60)
	if got := flags.With(settings.Settings{AutoVerifySeconds: &never}); got.AutoVerifyAfter != 0 || got.AutoReviseAfter != time.Minute {
		t.Errorf("verify never: got %s and %s, want never and a minute", got.AutoVerifyAfter, got.AutoReviseAfter)
	}
	if got := flags.With(settings.Settings{AutoReviseSeconds: &day}); got.AutoVerifyAfter != time.Hour || got.AutoReviseAfter != 24*time.Hour {
		t.Errorf("revise after a day: got %s and %s, want an hour and a day", got.AutoVerifyAfter, got.AutoReviseAfter)
	}
}

// TestModelOfTheSettings: every builder of a store uses the model that the settings name. If the name is
// unknown, the builder uses the model of its flags.
func TestModelOfTheSettings(t *testing.T) {
	flag := predict.PreviousWinner()
	b := &builder.Builder{Store: memblob.New(), Policy: builder.Policy{Model: flag}, Log: slog.New(slog.DiscardHandler)}
	for _, test := range []struct{ setting, want string }{
		{"", flag.Name()},
		{"grid-frequency", predict.GridFrequency().Name()},
		{"r2", predict.R2},
		{"crystal-ball", flag.Name()},
	} {
		if _, err := settings.Update(t.Context(), b.Store, func(s *settings.Settings) { s.Model = test.setting }); err != nil {
			t.Fatal(err)
		}
		model := b.Rules(t.Context()).Model
		if model.Name() != test.want {
			t.Errorf("settings with model %q: picks are made by %s, want %s", test.setting, model.Name(), test.want)
		}
		if test.setting == "r2" && b.Rules(t.Context()).Model != model {
			t.Error("each call of Rules returns a new model, which has lost its learnt state")
		}
	}
}
