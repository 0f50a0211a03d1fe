package builder_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/predict"
	"gridcast/builder/settings"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/faultblob"
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

// TestModelOfTheSettings: every builder of a store uses the model that the settings name. If the name is unknown, the
// builder uses the model that they named before.
func TestModelOfTheSettings(t *testing.T) {
	flag := predict.PreviousWinner()
	b := &builder.Builder{Store: memblob.New(), Policy: builder.Policy{Model: flag}, Log: slog.New(slog.DiscardHandler)}
	for _, test := range []struct{ setting, want string }{
		{"", flag.Name()},
		{"grid-frequency", predict.GridFrequency().Name()},
		{"r2", predict.R2},
		{"crystal-ball", predict.R2},
	} {
		must.Get(settings.Update(t.Context(), b.Store, false, func(s *settings.Settings) { s.Model = test.setting }))(t)
		model := b.Rules(t.Context()).Model
		if model.Name() != test.want {
			t.Errorf("settings with model %q: picks are made by %s, want %s", test.setting, model.Name(), test.want)
		}
		if test.setting == "r2" && b.Rules(t.Context()).Model != model {
			t.Error("each call of Rules returns a new model, which has lost its learnt state")
		}
	}
}

// TestToldOperator: a version names the operator of the settings, and the operator of the version before it where the settings were
// never readable.
func TestToldOperator(t *testing.T) {
	b := &builder.Builder{Store: memblob.New(), Log: slog.New(slog.DiscardHandler)}
	base := &snapshots.Base{}
	base.Manifest.Operator.Contact = "mailto:old@example.com"
	must.Equal(t, "before the settings were read", base.Manifest.Operator, b.Told(base))
	must.Get(settings.Update(t.Context(), b.Store, false, func(s *settings.Settings) {
		s.Operator.Contact, s.PublicAddress = "mailto:new@example.com", "https://api.example.com"
	}))(t)
	b.Rules(t.Context())
	must.Equal(t, "the settings", snapshots.Operator{Address: "https://api.example.com", Contact: "mailto:new@example.com"}, b.Told(base))
}

// TestUnreadableSettings makes the settings unreadable before a pick. A process that has read them goes on with them. A
// process that has read none verifies nothing, and freezes the pick in the last minute, by its default model, which the
// event names. The version says that the settings could not be read.
func TestUnreadableSettings(t *testing.T) {
	const key = "settings.json"
	for name, unread := range map[string]struct {
		data   []byte
		silent bool
	}{
		"damaged":                    {data: []byte("{")},
		"a byte of their text":       {data: []byte(`{"mode1":"r2"}`)},
		"a model of another release": {data: []byte(`{"model":"v9"}`)},
		"no answer":                  {silent: true},
	} {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, running %t", name, running), func(t *testing.T) {
				w := newWeekend(t, asItWas)
				must.Get(settings.Update(t.Context(), w.Store, false, func(s *settings.Settings) { s.Model = "r2" }))(t)
				silent := false
				b := w.builder()
				b.Store = faultblob.Wrap(w.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
					if silent && call.Key == key {
						return faultblob.Fate{Err: errors.New("503 Service Unavailable")}
					}
					return faultblob.Fate{}
				})
				b.Policy.Model, b.Policy.AutoVerifyAfter = predict.GridFrequency(), time.Hour
				if running {
					build(t, b, austriaQualified.Add(-time.Hour))
				}
				whole := must.Get(w.Store.Get(t.Context(), key, 1<<20))(t)
				if silent = unread.silent; !silent {
					w.Store.(*memblob.Store).Corrupt(key, unread.data)
				}
				outcome := build(t, b, austriaQualified)
				pick := w.round().Pick
				if running {
					if pick == nil || pick.Model != predict.R2 {
						t.Fatalf("pick %v, want one by the model of the settings", pick)
					}
				} else {
					if pick != nil || outcome.Base.Manifest.Settings != "unreadable" {
						t.Fatalf("after qualifying: pick %v, settings %q in the manifest, want no pick and unreadable", pick, outcome.Base.Manifest.Settings)
					}
					if build(t, b, austriaStart.Add(-builder.LastMinute-time.Second)); w.round().Pick != nil {
						t.Fatal("the pick is frozen before the last minute")
					}
					events := build(t, b, austriaStart.Add(-builder.LastMinute)).Events
					if pick = w.round().Pick; pick == nil || pick.Model != predict.GridFrequency().Name() || len(events) != 1 {
						t.Fatalf("in the last minute: pick %v, events %v; want one by the default model", pick, events)
					}
					golden.Sentence(t, "a pick without settings", events[0].Reason)
				}
				late := austriaStart.Add(26 * time.Hour)
				missing := build(t, b, late).Base.Manifest.Missing
				if !slices.ContainsFunc(missing, func(m snapshots.Missing) bool { return m.Code == "settings_unreadable" && m.Urgent }) {
					t.Errorf("the version does not say that the settings are unreadable: %v", missing)
				}
				if verified := len(w.round().Revisions) > 0; verified != running {
					t.Errorf("the result is verified: %t, want %t", verified, running)
				}
				silent = false
				w.Store.(*memblob.Store).Corrupt(key, whole.Data)
				again := build(t, b, late.Add(time.Hour)).Base.Manifest
				if len(again.Settings) != 64 || slices.ContainsFunc(again.Missing, func(m snapshots.Missing) bool { return m.Code == "settings_unreadable" }) {
					t.Errorf("readable again: settings %q, missing %v", again.Settings, again.Missing)
				}
			})
		}
	}
}
