package settings_test

import (
	"testing"

	"gridcast/builder/settings"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// TestUpdateAndLoad: an update is in settings.json, and every later Load sees it.
func TestUpdateAndLoad(t *testing.T) {
	store := memblob.New()
	empty, err := settings.Load(t.Context(), store)
	if err != nil || empty != (settings.Settings{}) {
		t.Fatalf("empty store: got %+v, %v, want no settings", empty, err)
	}
	never := int64(0)
	change := func(s *settings.Settings) { s.AutoVerifySeconds = &never }
	must.Get(settings.Update(t.Context(), store, false, change))(t)
	got, err := settings.Load(t.Context(), store)
	if err != nil || got.AutoVerifySeconds == nil || *got.AutoVerifySeconds != 0 || got.AutoReviseSeconds != nil {
		t.Fatalf("after an update: got %+v, %v, want never for verification alone", got, err)
	}
	object := must.Get(store.Get(t.Context(), "settings.json", 1<<10))(t)
	must.Get(settings.Update(t.Context(), store, false, change))(t)
	again, err := store.Get(t.Context(), "settings.json", 1<<10)
	if err != nil || again.Tag != object.Tag {
		t.Errorf("an update without a change wrote the document again: tag %s, want %s (%v)", again.Tag, object.Tag, err)
	}
	must.Get(store.Swap(t.Context(), "settings.json", again.Tag, []byte("{")))(t)
	must.Fail(t, "Load accepts a damaged document", must.Err(settings.Load(t.Context(), store)))
	must.Do(t, store.Delete(t.Context(), blob.CopyOf("settings.json")))
	must.Fail(t, "Update replaces a damaged document without a copy", must.Err(settings.Update(t.Context(), store, false, change)))
}

// TestDigest shows that equal settings have equal digests, other ones others, and empty ones none.
func TestDigest(t *testing.T) {
	hour, day := int64(3600), int64(86400)
	again := hour
	must.Equal(t, "no settings", "", (settings.Settings{}).Digest())
	one := settings.Settings{Model: "v2", AutoVerifySeconds: &hour}
	if got, want := (settings.Settings{Model: "v2", AutoVerifySeconds: &again}).Digest(), one.Digest(); got != want || len(got) != 64 {
		t.Errorf("equal settings: got %q, want %q", got, want)
	}
	if other := (settings.Settings{Model: "v2", AutoVerifySeconds: &day}); other.Digest() == one.Digest() {
		t.Error("other settings have the same digest")
	}
}
