// Package browsertest drives a headless Chromium through the console, for tests. It clicks as an
// operator does, and fails the test when a script of the page fails.
//
// The tests of a package share one Chromium, because a start takes a second of CPU time. Each test has a
// window and cookies of its own.
package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Browser is a window of Chromium with one tab. It is for one goroutine.
type Browser struct {
	t   testing.TB
	ctx context.Context
	dir string // of pictures, which are taken only if go test has an output folder
}

// timeout bounds the steps of one Do.
const timeout = 3 * time.Minute

// chromium is the browser of this process.
var chromium struct {
	start func() (context.Context, error)
	stop  func()
	// passed holds the sections and rows that axe-core has found no fault in, as axeSections describes them, by the view
	// of their page. The tests of a package run one after the other.
	passed map[string]map[string]bool
}

// Path returns the program that draws pages: Chromium's shell without windows, or else Chromium, which takes twice the
// CPU time. The error says that neither is installed.
func Path() (string, error) {
	if path, err := exec.LookPath("chromium-headless-shell"); err == nil {
		return path, nil
	}
	return exec.LookPath("chromium")
}

// Main runs the tests of a package and ends the browser that they share. TestMain calls it.
func Main(m interface{ Run() int }) int {
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(profile) }()
	chromium.stop, chromium.passed = func() {}, map[string]map[string]bool{}
	chromium.start = sync.OnceValues(func() (context.Context, error) {
		path, err := Path()
		if err != nil {
			return nil, err
		}
		// Without these flags, Chromium asks hosts of its maker at every start.
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.WSURLReadTimeout(timeout), chromedp.UserDataDir(profile), chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
			// An eighth less CPU time: no processes for graphics, network and forks, no threads that compile scripts of short
			// pages, and no optimising compilers.
			chromedp.Flag("in-process-gpu", true), chromedp.Flag("enable-features", "NetworkServiceInProcess2"), chromedp.Flag("no-zygote", true),
			chromedp.Flag("js-flags", "--single-threaded --no-opt --no-maglev"))
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, _ := chromedp.NewContext(allocator)
		chromium.stop = func() {
			_ = chromedp.Cancel(ctx) // waits until the browser has ended
			stop()
		}
		return ctx, chromedp.Do(ctx) // starts it
	})
	defer func() { chromium.stop() }()
	return m.Run()
}

// Open opens a window, which is closed when the test ends. Without Chromium it skips the test. The
// pictures are kept in the output folder of go test, if it has one.
func Open(t testing.TB) *Browser {
	t.Helper()
	if chromium.start == nil {
		t.Fatal("the TestMain of this package does not call browsertest.Main")
	}
	if _, err := Path(); err != nil {
		t.Skip("no chromium on this machine: pages are not tested in a browser")
	}
	parent, err := chromium.start()
	if err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	ctx, closeWindow := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(closeWindow)
	b := &Browser{t: t, ctx: ctx}
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		b.dir = t.ArtifactDir()
	}
	// The first steps open the window, and it lives as long as their context.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(desktop.width, desktop.height)); err != nil {
		t.Fatalf("open a window of chromium: %v", err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return // the window is closed
			}
			if m.IsException() {
				t.Errorf("script of the page: %s", m)
			}
		}
	}()
	return b
}

// Do takes steps one after the other. A step that fails ends the test, with the text of the page.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		shown, textErr := chromedp.Run(b.ctx, chromedp.Text("body"))
		b.t.Fatalf("browser: %v; it shows (%v):\n%s", err, textErr, shown)
	}
}

// Text waits for an element and returns its visible text. It asks for both at once, because the page
// may replace the element in between.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	script := fmt.Sprintf(`(() => { const e = document.querySelector(%q); return e === null ? [] : [e.innerText]; })()`, selector)
	var err error
	var text []string
	if !must.Within(timeout, func() bool {
		text, err = try(b, chromedp.Evaluate[[]string](script))
		return len(text) > 0
	}) {
		b.t.Fatalf("browser: no element %s within %s: %v", selector, timeout, err)
	}
	return text[0]
}

// Await waits until a script, an expression of the page, returns the wanted text. It fails the test
// with the last text if that never happens. Unlike Text it reaches into a custom element.
func (b *Browser) Await(script, want string) {
	b.t.Helper()
	var got string
	var err error
	if !must.Within(timeout, func() bool {
		got, err = try(b, chromedp.Evaluate[string]("String("+script+")"))
		return err == nil && got == want
	}) {
		b.t.Fatalf("browser: %s: got %q, %v after %s, want %q", script, got, err, timeout, want)
	}
}

// Evaluate returns the value of a script, an expression of the page, as text.
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

// Picture checks the page at desktop and phone width, light and dark, and keeps a picture of each. A page
// that has to be scrolled sideways fails the test. So do text of too little contrast, a field
// without a label, and a button without a name.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	// The window is drawn anew after each change, so the order has few changes and ends at desktop width. A phone shows no
	// element that a desktop hides, but for the heads of folds, so its light view is needed for the picture alone.
	type look struct {
		size
		scheme string
	}
	views := []look{{desktop, "light"}, {phone, "light"}, {phone, "dark"}, {desktop, "dark"}}
	if b.dir == "" {
		views = slices.Delete(views, 1, 2)
	}
	var last look
	for _, view := range views {
		if view.scheme != last.scheme {
			b.Emulate("prefers-color-scheme", view.scheme)
		}
		if view.size != last.size {
			b.Do(chromedp.EmulateViewport(view.width, view.height))
		}
		last = view
		if wide := run(b, chromedp.Evaluate[[]string](tooWide)); len(wide) > 0 {
			b.t.Errorf("%s at %s width: wider than the page: %s", name, view.name, strings.Join(wide, ", "))
		}
		check := b.hardToUse
		if (view.size == desktop) == (view.scheme == "light") { // each width and each scheme once, because it takes .3 s
			check = b.violations
		}
		for _, fault := range check() {
			b.t.Errorf("%s at %s width, %s: %s", name, view.name, view.scheme, fault)
		}
		b.keep(fmt.Sprintf("%s-%s-%s", name, view.name, view.scheme), chromedp.FullScreenshot(100))
	}
}

// Emulate sets a media feature of the page, such as prefers-reduced-motion.
func (b *Browser) Emulate(feature, value string) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// Phone makes the window as wide as a phone. Scrolling is immediate, so that a click does not hit a
// passing element.
func (b *Browser) Phone() {
	b.t.Helper()
	b.Emulate("prefers-reduced-motion", "reduce")
	b.Do(chromedp.EmulateViewport(phone.width, phone.height))
}

// WebP returns a picture of the top of the page, light, at a width and a height in CSS pixels and twice as many dots.
func (b *Browser) WebP(width, height int64) []byte {
	b.t.Helper()
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 2}
	if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	quality := int64(60)
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "webp", Quality: &quality})
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	return shot.Data
}

// Look keeps a picture of the visible part of the page.
func (b *Browser) Look(name string) {
	b.t.Helper()
	b.keep(name, chromedp.CaptureScreenshot())
}

// keep takes a picture where pictures are kept.
func (b *Browser) keep(name string, picture chromedp.Action[[]byte]) {
	b.t.Helper()
	if b.dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(b.dir, name+".png"), run(b, picture), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Value returns the content of a field.
func (b *Browser) Value(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q).value`, selector)))
}

// Visible waits until an element is visible. It looks 20 times a second: chromedp itself looks 200 times, which takes a
// third of a core as long as an action runs.
func Visible[S chromedp.Selectable](selector S) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(selector, chromedp.RetryInterval(50*time.Millisecond))
}

// Type types a text into a text field. After the first key the rest comes in one piece, as from the keyboard of a phone,
// because a page takes 7 ms of CPU time for each key.
func Type[S chromedp.Selectable](selector S, text string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := chromedp.SendKeys(selector, text[:1])(ctx, t); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text[1:]})
		return err
	})
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

// Axe checks the contrast of text and the rules of axe-core, and fails the test for every fault. Where axe-core is not
// installed its rules are not checked, and TestAxe is skipped with a message.
func (b *Browser) Axe(name string) {
	b.t.Helper()
	for _, fault := range b.violations() {
		b.t.Errorf("%s: %s", name, fault)
	}
}

// hardToUse returns the faults that the script of this name finds.
func (b *Browser) hardToUse() []string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[[]string](hardToUse))
}

// violations returns the faults of hardToUse and the broken rules of axe-core, a line each. Axe-core leaves out
// the sections of a page, and the rows of tables, that have passed before with the same HTML but for digits, with the same
// style, at the same width and in the same scheme, because a section takes up to a second. Rules for whole pages are always
// checked.
func (b *Browser) violations() []string {
	b.t.Helper()
	faults := b.hardToUse()
	source, err := os.ReadFile(axeFile())
	if err != nil {
		return faults
	}
	// The policy of the page allows no foreign scripts, but a debugger may evaluate them. The script is sent once a page.
	// Its results lack the HTML of the elements, which nobody reads.
	if !run(b, chromedp.Evaluate[bool](`"axe" in window`)) {
		_ = run(b, chromedp.Evaluate[bool](string(source)+"; axe.configure({ noHtml: true }); true"))
	}
	seen := run(b, chromedp.Evaluate[sectionsSeen](axeSections))
	known := chromium.passed[seen.View]
	if known == nil {
		known = map[string]bool{}
		chromium.passed[seen.View] = known
	}
	var passed []string // pairs of a section and one of its rows, which is -1 for the whole section
	for i, parts := range seen.Sections {
		if known[strings.Join(parts, "")] {
			passed = append(passed, fmt.Sprintf("[%d, -1]", i))
			continue
		}
		for j, row := range parts[1:] {
			if known[row] {
				passed = append(passed, fmt.Sprintf("[%d, %d]", i, j))
			}
		}
	}
	found := run(b, chromedp.Evaluate[[]string](fmt.Sprintf(axeRun, strings.Join(passed, ", ")), chromedp.EvalAwaitPromise))
	if len(found) == 0 {
		for _, parts := range seen.Sections {
			known[strings.Join(parts, "")] = true
			for _, row := range parts[1:] {
				known[row] = true
			}
		}
	}
	return append(faults, found...)
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

// sectionsSeen is the answer of axeSections.
type sectionsSeen struct {
	View     string     `json:"view"`     // width, scheme and style
	Sections [][]string `json:"sections"` // of each section the HTML without the rows of its tables, then each row
}

// axeSections describes the outermost sections of the page, so that equal ones have equal descriptions. A part with a
// custom element is equal to no other, because its HTML lacks the inside of that element.
const axeSections = `(() => {
	const style = [...document.querySelectorAll("style, link[rel=stylesheet]")].map((e) => e.outerHTML).join("");
	const describe = (html, inner) => html.replace(/\d+/g, "0") + (inner.some((e) => e.localName.includes("-")) ? crypto.randomUUID() : "");
	window.described = []; // the section and its rows, for axeRun
	return {
		view: innerWidth + (matchMedia("(prefers-color-scheme: dark)").matches ? " dark " : " light ") + style,
		sections: [...document.querySelectorAll("section:not(section section)")].map((e) => {
			const rows = [...e.querySelectorAll("tbody > tr")], rest = [...e.querySelectorAll("*")].filter((inner) => !inner.closest("tbody > tr"));
			described.push([e, ...rows]);
			const html = rows.reduce((html, row) => html.replace(row.outerHTML, () => ""), e.outerHTML);
			return [describe(html, rest), ...rows.map((row) => e.id + describe(row.outerHTML, [...row.querySelectorAll("*")]))];
		}),
	};
})()`

// axeRun checks the page without the sections and rows that are numbered. An empty one of the same size stands for each,
// because axe-core measures every element of the page, also those that it does not check. The cells of an empty row have
// their size and a text, so that the table keeps its columns. A part stays if its script would notice: if it has the
// focus, an open fold, a disabled button or the panel of an action. hardToUse measures the contrast, because axe-core
// takes two thirds of its time for the same figures. A link in text needs a line, because axe-core maps all elements of
// the page to see whether the colour alone suffices.
const axeRun = `(async () => {
	const exclude = [], away = [];
	const empty = (e) => {
		const like = e.cloneNode(false), box = e.getBoundingClientRect();
		like.removeAttribute("data-live");
		Object.assign(like.style, { boxSizing: "border-box", width: box.width + "px", height: box.height + "px" });
		return like;
	};
	for (const [section, row] of [%s]) {
		const e = described[section][row + 1];
		if (!e.isConnected) continue; // the page has replaced it since
		if (e.contains(document.activeElement) || e.matches("#run") || e.querySelector("#run, details[open], button[disabled]")) {
			exclude.push(e);
			continue;
		}
		const like = empty(e);
		if (row >= 0) for (const cell of e.cells) like.appendChild(empty(cell)).textContent = "0";
		exclude.push(like);
		away.push([like, e]);
	}
	for (const [like, e] of away) e.replaceWith(like);
	try {
		return await axe.run({ include: [document], exclude }, {
			resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } }, checks: { "link-in-text-block": { enabled: false } },
		});
	} finally {
		for (const [like, e] of away) like.replaceWith(e);
	}
})().then((r) => r.violations.map((v) =>
	v.id + " (" + v.impact + "): " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")))`

// tooWide lists the first elements that make the page scroll sideways.
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] :
	[...document.querySelectorAll("body *")]
	.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .places"))
	.map(e => e.tagName + "#" + e.id + "." + e.className).slice(0, 5)`

// hardToUse lists faults that keep people from using the page, also inside custom elements: text with less contrast than
// WCAG 2.2 AA asks for, positioned text without a background, because the parts below it decide its contrast, fields
// without a label, and buttons and links without a name.
const hardToUse = `(() => {
	const faults = new Set(), known = new Map();
	const parts = (c) => { const n = c.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
	const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
	const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
	// drawn returns the colour behind the text of an element, the opacity of the text, and whether another element may be between the two.
	const drawn = (e) => {
		if (!e) return { back: [255, 255, 255, 1], opacity: 1, loose: false };
		if (known.has(e)) return known.get(e);
		const style = getComputedStyle(e), own = parts(style.backgroundColor), under = drawn(e.assignedSlot ?? e.parentElement ?? e.getRootNode().host);
		const loose = own[3] < 1 && (under.loose || /absolute|fixed/.test(style.position) && style.clipPath === "none" && e.getBoundingClientRect().right > 0);
		const result = { back: over(own, under.back), opacity: style.opacity * under.opacity, loose };
		known.set(e, result);
		return result;
	};
	const name = (e) => e.tagName.toLowerCase() + (e.className.baseVal ?? e.className ? "." + (e.className.baseVal ?? e.className) : "") + " " + JSON.stringify(e.textContent.trim().slice(0, 30));
	for (const e of all(document.body)) {
		if (!e.checkVisibility() || e.matches("script, style, option")) continue;
		if (e.matches("input:not([type=checkbox], [type=radio], [type=range]), select") || [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) {
			const style = getComputedStyle(e), { back, opacity, loose } = drawn(e), ink = parts(e.closest("svg") ? style.fill : style.color);
			ink[3] *= opacity;
			const a = light(over(ink, back)), b = light(back);
			const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
			const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
			if (ratio < (large ? 3 : 4.5) && !e.closest(":disabled")) faults.add("contrast of " + ratio.toFixed(2) + " at " + name(e));
			if (loose) faults.add("no background of its own: " + name(e));
		}
		if (e.matches("input:not([type=hidden]), select, textarea") && !e.labels.length) faults.add("no label: " + e.name);
		if (e.matches("button, a, summary") && !(e.textContent.trim() || e.ariaLabel)) faults.add("no name: " + name(e));
	}
	return [...faults].slice(0, 8);
})()`
