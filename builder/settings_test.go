package builder_test

import (
	"testing"
	"time"

	"gridcast/builder"
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
