package settings_test

import (
	"testing"

	"gridcast/builder/settings"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// TestUpdateAndLoad: an update is in settings.json, and every later Load sees it.
func TestUpdateAndLoad(t *testing.T) {
	store := memblob.New()
	empty, err := settings.Load(t.Context(), store)
	must.Require(t, err == nil && empty == (settings.Settings{}), "empty store: got %+v, %v, want no settings", empty, err)
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

// TestTold checks the values that an operator may publish about the service.
func TestTold(t *testing.T) {
	for _, tt := range []struct {
		check      func(string) (string, error)
		text, want string // empty: refused
	}{
		{settings.CheckContact, "api@example.com", "mailto:api@example.com"},
		{settings.CheckContact, "mailto:api@example.com", "mailto:api@example.com"},
		{settings.CheckContact, "https://example.com/contact", "https://example.com/contact"},
		{settings.CheckContact, "http://example.com/contact", ""},
		{settings.CheckContact, "Example Media <api@example.com>", ""},
		{settings.CheckContact, "\"a b\"@example.com", ""},
		{settings.CheckContact, "api@example.com\nPolicy: https://evil.example", ""},
		{settings.CheckContact, "api", ""},
		{settings.CheckContact, "", ""},
		{settings.CheckPage, "https://example.com/terms?lang=en#top", "https://example.com/terms?lang=en#top"},
		{settings.CheckPage, "https:///terms", ""},
		{settings.CheckPage, "javascript:alert(1)", ""},
		{settings.CheckPage, "https://user:secret@example.com/", ""},
		{settings.CheckPage, "https://example.com/a b", ""},
		{settings.CheckPage, "https://example.com/\r\nExpires: 2020", ""},
		{settings.CheckLanguages, "en", "en"},
		{settings.CheckLanguages, "en, de-CH,pt-BR", "en, de-CH,pt-BR"},
		{settings.CheckLanguages, "English and German", ""},
		{settings.CheckLanguages, "en;de", ""},
	} {
		got, err := tt.check(tt.text)
		must.Hold(t, got == tt.want && (err == nil) == (tt.want != ""), "%q: got %q, %v, want %q", tt.text, got, err, tt.want)
	}
	var s settings.Settings
	must.Equal(t, "digest of settings without an operator", "", s.Digest())
	s.Operator.Contact, s.PublicAddress = "mailto:api@example.com", "https://api.example.com"
	must.Equal(t, "operator", snapshots.Operator{Address: "https://api.example.com", Contact: "mailto:api@example.com"}, s.Told())
	must.Hold(t, len(s.Digest()) == 64, "settings with an operator have the digest %q", s.Digest())
}

// TestDigest shows that equal settings have equal digests, other ones others, and empty ones none.
func TestDigest(t *testing.T) {
	hour, day := int64(3600), int64(86400)
	again := hour
	must.Equal(t, "no settings", "", (settings.Settings{}).Digest())
	one := settings.Settings{Model: "v2", AutoVerifySeconds: &hour}
	got, want := (settings.Settings{Model: "v2", AutoVerifySeconds: &again}).Digest(), one.Digest()
	must.Hold(t, got == want && len(got) == 64, "equal settings: got %q, want %q", got, want)
	other := (settings.Settings{Model: "v2", AutoVerifySeconds: &day})
	must.Hold(t, other.Digest() != one.Digest(), "other settings have the same digest")
}
