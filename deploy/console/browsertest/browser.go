// Package browsertest drives a headless Chromium through the console, for tests: it clicks as
// an operator does, keeps pictures of what he sees, and fails the test when a script does.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Browser is a Chromium with one tab. It is for one goroutine.
type Browser struct {
	t   testing.TB
	ctx context.Context
	dir string
}

// timeout is how long the steps of one Do may take together.
const timeout = 3 * time.Minute

// Open starts Chromium, which ends with the test. Where there is none it skips the test.
// Pictures are kept in the folder.
func Open(t testing.TB, pictures string) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine: the console is not looked at in a browser")
	}
	// Without these, Chromium asks for hosts of its maker at every start.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(timeout), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	b := &Browser{t: t, ctx: ctx, dir: pictures}
	// The first steps start the browser, and it lives as long as their context.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(desktop.width, desktop.height)); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return // the browser has ended
			}
			if m.IsException() {
				t.Errorf("script of the page: %s", m)
			}
		}
	}()
	return b
}

// Do takes steps one after the other. If one of them can not be taken the test ends, with what
// the page shows.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		shown, textErr := chromedp.Run(b.ctx, chromedp.Text("body"))
		b.t.Fatalf("browser: %v; it shows (%v):\n%s", err, textErr, shown)
	}
}

// Text waits for an element and returns what it shows. It asks for both at once: an element that
// the page replaces in between would be lost.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	script := fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e === null ? [] : [e.innerText]; })()`, selector)
	var err error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var text []string
		if text, err = try(b, chromedp.Evaluate[[]string](script)); len(text) > 0 {
			return text[0]
		}
	}
	b.t.Fatalf("browser: no element %s within %s: %v", selector, timeout, err)
	return ""
}

// Await waits until a script, an expression of the page, says what is wanted, and fails the test with
// what it says last if it never does. It sees what Text does not, such as the inside of a custom
// element.
func (b *Browser) Await(script, want string) {
	b.t.Helper()
	var got string
	var err error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got, err = try(b, chromedp.Evaluate[string]("String("+script+")")); err == nil && got == want {
			return
		}
	}
	b.t.Fatalf("browser: %s: got %q, %v after %s, want %q", script, got, err, timeout, want)
}

// Evaluate returns what a script, an expression of the page, says as text.
func (b *Browser) Evaluate(script string) string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string]("String("+script+")"))
}

// try takes a step. It fails where the page is just being replaced by another.
func try[T any](b *Browser, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	return chromedp.Run(ctx, action)
}

func run[T any](b *Browser, action chromedp.Action[T]) T {
	b.t.Helper()
	value, err := try(b, action)
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	return value
}

type size struct {
	name          string
	width, height int64
}

var (
	desktop = size{"desktop", 1280, 900}
	phone   = size{"phone", 390, 844}
)

// Picture keeps what the page looks like at desktop and phone width, light and dark. A page
// that has to be scrolled sideways fails the test, and so does text of too little contrast, a
// field without a label, or a button without a name.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
			b.t.Fatalf("browser: %v", err)
		}
		for _, s := range []size{desktop, phone} {
			b.Do(chromedp.EmulateViewport(s.width, s.height))
			if wide := run(b, chromedp.Evaluate[[]string](tooWide)); len(wide) > 0 {
				b.t.Errorf("%s at %s width: wider than the page: %s", name, s.name, strings.Join(wide, ", "))
			}
			for _, fault := range run(b, chromedp.Evaluate[[]string](hardToUse)) {
				b.t.Errorf("%s at %s width, %s: %s", name, s.name, scheme, fault)
			}
			if (s == desktop) == (scheme == "light") { // each width and each scheme once: it takes a second
				b.Axe(name + " at " + s.name + " width, " + scheme)
			}
			picture := run(b, chromedp.FullScreenshot(100))
			file := filepath.Join(b.dir, fmt.Sprintf("%s-%s-%s.png", name, s.name, scheme))
			if err := os.WriteFile(file, picture, 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.Do(chromedp.EmulateViewport(desktop.width, desktop.height))
}

// Phone makes the window as wide as a phone, and what is scrolled is there at once: a click must
// not meet what only passes by.
func (b *Browser) Phone() {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	b.Do(chromedp.EmulateViewport(phone.width, phone.height))
}

// Look keeps what is in the window now.
func (b *Browser) Look(name string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name+".png"), run(b, chromedp.CaptureScreenshot()), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Value is what a field holds now.
func (b *Browser) Value(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q).value`, selector)))
}

// Press presses a button, a link or the head of a fold with the keyboard. A page that moves in the same
// moment, because a part of it is replaced, makes a click of the mouse miss.
func Press[S chromedp.Selectable](selector S) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(selector, kb.Enter)
}

// Drag takes an element with the pointer and lets go of it above the middle of another.
func (b *Browser) Drag(from, to string) {
	b.t.Helper()
	middle := func(selector string) (x, y float64) {
		b.t.Helper()
		at := run(b, chromedp.Evaluate[[]float64](fmt.Sprintf(
			`(() => { const b = document.querySelector(%q).getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`, selector)))
		return at[0], at[1]
	}
	b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).scrollIntoView({ block: "center" })`, from)))
	x, y := middle(from)
	_, until := middle(to)
	b.Do(chromedp.MouseEvent(chromedp.MouseMoved, x, y), chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	const steps = 12
	for i := 1.0; i <= steps; i++ {
		b.Do(chromedp.MouseEvent(chromedp.MouseMoved, x, y+(until-4-y)*i/steps, chromedp.ButtonLeft))
	}
	b.Do(chromedp.MouseEvent(chromedp.MouseReleased, x, until-4, chromedp.ButtonLeft, chromedp.ClickCount(1)))
}

// Axe has axe-core look at the page as it is, and fails the test for every rule that is broken.
// Where it is not installed the check is left out, which TestAxe says.
func (b *Browser) Axe(name string) {
	b.t.Helper()
	for _, fault := range b.violations() {
		b.t.Errorf("%s: axe: %s", name, fault)
	}
}

// violations are the rules of axe-core that the page breaks, a line each; none where axe-core is not
// installed.
func (b *Browser) violations() []string {
	b.t.Helper()
	source, err := os.ReadFile(axeFile())
	if err != nil {
		return nil
	}
	// The policy of the page allows no script of others; what a debugger evaluates is not under it.
	_ = run(b, chromedp.Evaluate[bool](string(source)+"; true"))
	return run(b, chromedp.Evaluate[[]string](axeRun, chromedp.EvalAwaitPromise))
}

// axeFile is where deploy/tools/npm.sh puts axe-core: below the folder that has the module.
func axeFile() string {
	folder, err := os.Getwd()
	for err == nil && folder != filepath.Dir(folder) {
		if _, missing := os.Stat(filepath.Join(folder, "go.mod")); missing == nil {
			break
		}
		folder = filepath.Dir(folder)
	}
	return filepath.Join(folder, ".var/node/node_modules/axe-core/axe.min.js")
}

const axeRun = `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) =>
	v.id + " (" + v.impact + "): " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")))`

// tooWide lists the first elements that make the page scroll sideways.
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] :
	[...document.querySelectorAll("body *")]
	.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .places"))
	.map(e => e.tagName + "#" + e.id + "." + e.className).slice(0, 5)`

// hardToUse lists what keeps people from reading or operating the page: text whose contrast is
// below that of WCAG 2.2 AA, fields without a label, and buttons and links without a name.
const hardToUse = `(() => {
	const faults = new Set();
	const parts = (c) => { const n = c.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
	const light = (c) => { const [r, g, b] = parts(c).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (parts(c)[3] > 0) return c; } return "rgb(255, 255, 255)"; };
	const what = (e) => e.tagName.toLowerCase() + (e.className.baseVal ?? e.className ? "." + (e.className.baseVal ?? e.className) : "") + " " + JSON.stringify(e.textContent.trim().slice(0, 30));
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility() || e.closest("script, style")) continue;
		const style = getComputedStyle(e);
		if ([...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) {
			const a = light(e.closest("svg") ? style.fill : style.color), b = light(behind(e));
			const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
			const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
			if (ratio < (large ? 3 : 4.5) && !e.closest(":disabled")) faults.add("contrast of " + ratio.toFixed(2) + " at " + what(e));
		}
		if (e.matches("input:not([type=hidden]), select, textarea") && !e.labels.length) faults.add("no label: " + e.name);
		if (e.matches("button, a, summary") && !(e.textContent.trim() || e.ariaLabel)) faults.add("no name: " + what(e));
	}
	return [...faults].slice(0, 8);
})()`
