package operator_test

import (
	"slices"
	"testing"
	"time"

	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// TestSettings: a change asks a question, is applied once and is logged; a change without effect is refused.
func TestSettings(t *testing.T) {
	o := desk(t)
	model, wrong, hours := "r2", "crystal-ball", 2*time.Hour
	if _, err := preview(t, o, operator.ChangeSettings{Model: &wrong}); err == nil {
		t.Error("there is a model crystal-ball")
	} else {
		golden.Sentence(t, "settings: unknown model", err)
	}
	moment := 500 * time.Millisecond
	if p, err := preview(t, o, operator.ChangeSettings{AutoVerifyAfter: &moment}); err == nil {
		t.Errorf("half a second: got %q, want it refused, because the settings have whole seconds and 0 is never", p.Effects)
	}
	change := operator.ChangeSettings{Model: &model, AutoVerifyAfter: &hours}
	p, err := preview(t, o, change)
	must.Hold(t, err == nil && p.Question != "" && len(p.Effects) == 2, "got %+v, %v; want a question, and an effect of each", p, err)
	golden.Sentence(t, "settings: effects", p.Effects)
	done(t, o, change, operator.Request{Reason: "a trial"})
	must.Fail(t, "the same again", must.Err(o.Do(t.Context(), change, operator.Request{Actor: "operator:anna"})), operator.ErrSettled)
	portraits := season.Headshots{Template: "https://images.example/{driver}.png", Drivers: []season.DriverID{"ann", "bob"}}
	done(t, o, operator.ChangeSettings{Headshots: &portraits}, operator.Request{})
	if settings, err := settings.Load(t.Context(), o.Store); err != nil || settings.Model != "r2" || *settings.AutoVerifySeconds != 7200 || len(settings.Headshots.Drivers) != 2 {
		t.Errorf("got %+v, %v; want all that was said", settings, err)
	}
	done(t, o, operator.ChangeSettings{Headshots: &season.Headshots{}}, operator.Request{Reason: "not ours"})
	settings, err := settings.Load(t.Context(), o.Store)
	must.Hold(t, err == nil && settings.Headshots != nil && settings.Headshots.Template == "", "got %+v, %v; want it said that there are no portraits", settings, err)
	if got := operator.SettingsOf(settings); got[0].Value != "r2" || got[1].Value != "after 2h0m0s" || got[3].Value != "none" {
		t.Errorf("in words: %+v", got)
	}
	want := []string{
		"operator:anna|change_settings|model r2, auto_verify_after 2h0m0s|a trial",
		"operator:anna|change_settings|headshots of 2 drivers|",
		"operator:anna|change_settings|headshots none|not ours",
	}
	if got := logged(t, o); !slices.Equal(got, want) {
		t.Errorf("audit log: got %q, want %q", got, want)
	}
}
