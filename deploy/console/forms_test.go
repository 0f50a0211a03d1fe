package console_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/edge/keys"
)

// TestFormsInABrowser fills in the forms that other tests leave out, also with faults. Each outcome must
// appear beside its form.
func TestFormsInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a browser takes half a minute")
	}
	w := newWorld(t)
	w.build("start")
	facts := w.archive.Facts()
	facts.Seasons = slices.Clone(facts.Seasons)
	facts.Seasons[slices.IndexFunc(facts.Seasons, func(s season.Season) bool { return s.Year == 2024 })].Colours = nil
	release := filepath.Join(t.TempDir(), "release.archive")
	must.Do(t, archive.WriteFile(release, archivetest.Stored(t, facts)))
	document, _ := must.Get2(keys.Load(t.Context(), w.store))(t)
	key := "/keys/" + document.Keys[0].ID

	b := browsertest.Open(t)
	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`input[name=token]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "anna"), browsertest.Type(chromedp.CSS(`input[name=token]`), token),
		chromedp.Submit(chromedp.CSS(`input[name=token]`)), browsertest.Visible(chromedp.CSS(`#served`)))
	for _, tt := range []struct {
		action string
		fields []string
		asks   bool
		state  string // of the panel
		says   string // the name of its text in testdata/sentences.txt
		secret bool   // the panel shows one
	}{
		{"/keys", []string{"client", "Betting House", "origins", "betting.example"}, false, "failed", "an origin without a scheme", false},
		{"/keys", []string{"client", "Betting House"}, false, "done", "create a key", true},
		{key + "/rotate", []string{"reason", "every year"}, true, "done", "rotate a key", true},
		{key + "/origins", []string{"origins", "https://example.org"}, true, "done", "set origins", false},
		{key + "/tier", []string{"tier", "standard", "reason", "a bigger contract"}, true, "done", "set a tier", false},
		{key + "/expire", []string{"expires", "2999-01-31"}, true, "done", "expire a key", false},
		{key + "/revoke", []string{"reason", "leaked"}, true, "done", "revoke a key", false},
		{"/rounds/2024024/move", []string{"start", "2020-01-01T12:00", "reason", "a typing error"}, false, "failed", "move a round into the past", false},
		{"/rounds/2024024/move", []string{"start", "2024-12-08T15:00", "reason", "heat"}, true, "done", "move a round", false},
		{"/rounds/2024024/cancel", []string{"reason", "flood"}, true, "done", "cancel a round", false},
		{"/championship/2024", []string{"constructors", "yes", "id", "mclarin", "points", "5", "reason", "cost cap"}, false, "failed", "an unknown competitor", false},
		{"/championship/2024", []string{"constructors", "yes", "id", "mclaren", "points", "5", "reason", "cost cap"}, true, "done", "take points", false},
		{"/championship/2024/restore", []string{"reason", "appeal"}, true, "done", "restore a team", false},
		{"/archive", []string{"path", "/nowhere/release.zip"}, false, "failed", "import a missing file", false},
		{"/archive", []string{"path", release, "reason", "a test"}, true, "done", "import an archive", false},
		{"/calendar", []string{"text", "grand_prix,start\nlost-vegas,2024-11-30", "reason", "a letter"}, false, "failed", "an unknown Grand Prix", false},
		{"/sources/alias", []string{"kind", "team", "from", "kick", "to", "sauberr", "reason", "a source calls them so"}, false, "failed", "an unknown team", false},
		{"/sources/alias", []string{"kind", "team", "from", "kick", "to", "kick-sauber", "reason", "a source calls them so"}, true, "done", "merge two teams", false},
		{"/settings", []string{"verify", "soon"}, false, "done", "settings that are no change", false},
		{"/settings", []string{"model", "grid-frequency", "verify", "2", "reason", "a trial"}, true, "done", "change the settings", false},
		{"/prune", []string{"keep", "1"}, false, "done", "prune", false},
		{"/keys/prune", []string{"age", "30"}, false, "done", "prune keys", false},
		{"/ledger/audit", nil, false, "done", "audit the ledger", false},
	} {
		form := fmt.Sprintf("form[action='%s']", tt.action)
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)), chromedp.Evaluate[chromedp.Void](
			`for (let e = document.querySelector("`+form+`").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`))
		for i := 0; i < len(tt.fields); i += 2 {
			b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("%s [name=%s]").value = %q`, form, tt.fields[i], tt.fields[i+1])))
		}
		b.Do(browsertest.Press(chromedp.CSS(form + ` button:not([type=button])`)))
		if tt.asks {
			b.Do(browsertest.Visible(chromedp.CSS(`#ask[open]`)), browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)))
		}
		b.Do(browsertest.Visible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
		says(t, "form: "+tt.says, b.Text("#run-text"))
		// A form that is done with may be gone; one with a fault must be there, with the fault beside it.
		b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
			const panel = document.getElementById("run"), box = panel.getBoundingClientRect(), form = document.querySelector("%s");
			if (panel.dataset.state !== %q) throw new Error("the panel is in the state " + panel.dataset.state + ": " + panel.innerText);
			if (panel.dataset.state === "failed" && !form) throw new Error("the form is gone");
			if (form && panel.closest("section").parentElement.closest("section") !== form.closest("section")) throw new Error("the panel is not where the form is");
			if (box.top <= -1 || box.bottom >= innerHeight + 1) throw new Error("the panel is out of sight: from " + box.top + " to " + box.bottom + " of " + innerHeight);
			if (document.activeElement !== panel) throw new Error("the focus is at " + document.activeElement.outerHTML.slice(0, 200));
		})()`, form, tt.state)))
		if tt.secret {
			secretStays(t, w, b)
		}
	}

	log := must.Get(auditlog.Load(t.Context(), w.store))(t)
	var logged []string
	for _, e := range log.Entries() {
		logged = append(logged, string(e.Action))
		must.Hold(t, e.Actor == "claimed:anna", "entry %d is by %s, want the operator who signed in", e.Seq, e.Actor)
	}
	if want := []string{"create_key", "rotate_key", "set_origins", "set_tier", "expire_key", "revoke_key", "move_round", "cancel_round", "deduct_points", "restore_competitor", "put_archive", "alias", "change_settings", "prune"}; !slices.Equal(logged, want) {
		t.Errorf("the audit log has %v, want %v", logged, want)
	}
}

// secretStays has the page take up a new list of keys: the secret beside it, which nobody can read a
// second time, is selected as before, in the window, and has the focus.
func secretStays(t *testing.T, w *world, b *browsertest.Browser) {
	t.Helper()
	secret := b.Text("#run .secret")
	must.Hold(t, strings.HasPrefix(secret, keys.Prefix), "the secret is %q", secret)
	name := "Listed beside " + secret[len(secret)-4:]
	must.Do(t, keys.Update(t.Context(), w.store, func(d *keys.List) error {
		_, _, err := d.Create(keys.Request{Name: name, Tier: "trial"}, w.now())
		return err
	}))
	b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(async () => {
		getSelection().selectAllChildren(document.querySelector("#run .secret"));
		await refresh();
		const panel = document.getElementById("run"), box = panel.getBoundingClientRect();
		if (!document.getElementById("keys").innerText.includes(%q)) throw new Error("the list is the old one");
		if (getSelection().toString().trim() !== %q) throw new Error("what is selected is " + getSelection());
		if (document.activeElement !== panel) throw new Error("the focus is at " + document.activeElement.outerHTML.slice(0, 200));
		if (box.top <= -1 || box.bottom >= innerHeight + 1) throw new Error("the panel is out of sight");
	})()`, name, secret), chromedp.EvalAwaitPromise))
}
