// Package trust_test runs the fault matrix against the built binary and writes deploy/docs/trust.md: each part of an
// installation is killed, stopped, slowed, made to lie, damaged, filled, made read-only or robbed of its descriptors, while
// a reader asks an edge without a pause.
//
// In every cell no answer may be wrong and no version may fall. When the fault ends, a change by an operator must reach
// the readers. Where a person is needed, doctor must name the command that helps.
package trust_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/must"
	"gridcast/deploy/redistest"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/notes"
)

var write = flag.Bool("write", false, "write deploy/docs/trust.md")

// Instants of the simulated season: before Silverstone of 2024, which each cell postpones.
const (
	now       = "2024-07-01T12:00:00Z"
	postponed = "2024012"
)

// program is the built binary.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("GRIDCAST_TRUST"); path != "" {
		return path, nil
	}
	return must.Binary()
})

// facts is the archive of one season. TestMatrix makes it, because that takes a test.
var facts archive.Stored

// seed is a folder with a store of one signed version, its keys and a key of the API.
var seed = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "trust")
	w := &world{dir: folder}
	if err == nil {
		err = archive.WriteFile(filepath.Join(folder, "season.archive"), facts)
	}
	for _, args := range [][]string{
		{"signing", "new", "version.key"},
		{"signing", "new", "keys.key"},
		{"build", "--all", "--store", "dir:store", "--now", now, "--model", "grid-frequency", "--archive", "season.archive", "--sign", "version.key"},
		{"keys", "create", "--name", "Reader", "--tier", "pro", "--store", "dir:store", "--sign-keys", "keys.key"},
		{"operators", "add", "anna", "--role", "operate", "--store", "dir:store"},
	} {
		if err == nil {
			var out string
			out, err = w.run(args...)
			if args[0] == "keys" && err == nil {
				err = os.WriteFile(filepath.Join(folder, "api.key"), []byte(strings.Fields(out)[0]), 0o600)
			}
		}
	}
	return folder, err
})

// world is an installation on this machine.
type world struct {
	t         *testing.T
	dir       string
	store     string   // --store
	key       string   // of the API
	more      []string // flags of the edge
	api       string   // host:port
	admin     string
	operator  string
	clock     string // --now of the processes; empty: now
	processes map[string]*exec.Cmd
	limit     string // of shell for the next process, such as ulimit -n 20
	logs      must.Buffer
	client    http.Client // of the reader

	environment []string // credentials
	storage     *storage
	redis       *redistest.Server
}

// warned returns the first distinct message of the processes that warns an operator.
func (w *world) warned() string {
	if found := regexp.MustCompile(`level=(?:ERROR|WARN) msg="?([^"\n]*)`).FindStringSubmatch(w.logs.String()); found != nil {
		message, _, _ := strings.Cut(found[1], ": ") // an error may name a folder of this machine
		return "log: " + message
	}
	return ""
}

// run runs a command to its end.
func (w *world) run(args ...string) (string, error) { return w.runFor(4*time.Minute, args...) }

// runFor is run that ends the command after a time.
func (w *world) runFor(limit time.Duration, args ...string) (string, error) {
	path, err := program()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), w.environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("gridcast %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// start starts a process under a name.
func (w *world) start(name string, args ...string) {
	w.t.Helper()
	path := must.Get(program())(w.t)
	cmd := exec.Command("sh", append([]string{"-c", cmp.Or(w.limit, ":") + `; exec "$0" "$@"`, path}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = w.dir, &w.logs, &w.logs, append(os.Environ(), w.environment...)
	must.Do(w.t, cmd.Start())
	w.processes[name], w.limit = cmd, ""
}

// signal sends a signal to a process. After SIGKILL it waits for the end.
func (w *world) signal(name string, s os.Signal) {
	cmd := w.processes[name]
	_ = cmd.Process.Signal(s)
	if s == os.Kill {
		_ = cmd.Wait()
	}
}

func (w *world) startScheduler() {
	w.start("scheduler", "scheduler", "--store", w.store, "--now", cmp.Or(w.clock, now), "--sign", "version.key", "--operator-listen", w.operator, "--admin-listen", "127.0.0.1:0", "--operator-token-file", "token")
}

func (w *world) edgeFlags() []string {
	return append([]string{"--listen", w.api, "--admin-listen", w.admin, "--tiers", "pro=60000", "--cache-dir", "cache", "--trust", w.text("version.pub"), "--trust-keys", w.text("keys.pub")}, w.more...)
}

func (w *world) startEdge() {
	w.start("edge", append([]string{"edge", "--store", w.store, "--now", cmp.Or(w.clock, now)}, w.edgeFlags()...)...)
}

func (w *world) startServe() {
	w.start("serve", append([]string{"serve", "--store", w.store, "--now", cmp.Or(w.clock, now), "--sign", "version.key", "--operator-listen", "127.0.0.1:0", "--operator-token-file", "token"}, w.edgeFlags()...)...)
}

func (w *world) text(file string) string {
	data := must.Get(os.ReadFile(filepath.Join(w.dir, file)))(w.t)
	return strings.TrimSpace(string(data))
}

// version is the version that the edge serves; 0 if it does not answer.
func (w *world) version() int64 {
	var body struct{ Data struct{ Version int64 } }
	answer, err := http.Get("http://" + w.admin + "/status")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_ = json.NewDecoder(answer.Body).Decode(&body)
	return body.Data.Version
}

// ask returns the data of the standings; an error if the edge gives no answer.
func (w *world) ask(api string) (string, error) {
	request, _ := http.NewRequest(http.MethodGet, "http://"+api+"/api/v1/standings", nil)
	request.Header.Set("X-API-Key", w.key)
	answer, err := w.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var success struct{ Data json.RawMessage }
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	if err == nil {
		err = json.Unmarshal(body, &success)
	}
	return string(success.Data), err
}

// reader asks without a pause.
type reader struct {
	asked, failed int
	down, wrong   time.Duration
	refused       string
	fell          []string
	stop          func()
}

func (w *world) read() *reader {
	want := must.Get(w.ask(w.api))(w.t)
	r, ctx, cancel := &reader{}, context.Background(), context.CancelFunc(nil)
	ctx, cancel = context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		last := time.Now()
		for highest := int64(0); ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			got, err := w.ask(w.api)
			r.asked++
			switch {
			case err != nil:
				r.failed, r.refused, r.down = r.failed+1, err.Error(), r.down+time.Since(last)
			case got != want:
				r.wrong += time.Since(last)
			}
			last = time.Now()
			if v := w.version(); v > 0 && v < highest {
				r.fell = append(r.fell, fmt.Sprintf("%d after %d", v, highest))
			} else {
				highest = max(highest, v)
			}
		}
	})
	r.stop = func() { cancel(); reading.Wait() }
	return r
}

func (r *reader) String() string {
	if r.failed == 0 {
		return fmt.Sprintf("every one of %d requests answered", r.asked)
	}
	return fmt.Sprintf("no answer for %.1f s, then as before", r.down.Seconds())
}

// outcome is a row of the page.
type outcome struct {
	subject, fault, readers, operator, person string // person: empty for nobody
	seconds                                   float64
}

// cell is one fault of one part.
type cell struct {
	subject, fault string
	fast           bool                  // run by make test
	s3, redis      bool                  // what the installation has
	hurt           func(w *world) func() // makes the fault, and returns its end; nil: it stays
	silent         bool                  // the reader's edge itself is hit, so it may give no answer meanwhile
	doctor         string                // the row of doctor that names the fault; empty: it ends by itself
	mend           []string              // the command that doctor names, which a person runs
	person         string                // why the person is needed; empty: a build would mend it within a day
	remove         string                // the damaged file, which the person removes first
	heals          string                // the row of doctor that is well again without a person
}

// flip changes a bit in the middle of the first file that a pattern matches, below the folder of the installation.
func flip(patterns ...string) func(w *world) func() {
	return func(w *world) func() {
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(w.dir, filepath.FromSlash(pattern)))
			must.Require(w.t, err == nil && len(files) != 0, "no file %s", pattern)
			for _, file := range files {
				data := must.Get(os.ReadFile(file))(w.t)
				data[len(data)/2] ^= 4
				_ = os.Remove(file)
				must.Do(w.t, os.WriteFile(file, data, 0o600))
			}
		}
		return nil
	}
}

// garbled cuts a file after its first character.
func garbled(file string) func(w *world) func() {
	return func(w *world) func() {
		must.Do(w.t, os.WriteFile(filepath.Join(w.dir, file), []byte("{"), 0o600))
		return nil
	}
}

// signalled stops a process by a signal, and restarts it.
func signalled(name string, s os.Signal, again func(*world)) func(w *world) func() {
	return func(w *world) func() {
		w.signal(name, s)
		return func() {
			if s == os.Kill {
				again(w)
			} else {
				w.signal(name, syscall.SIGCONT)
			}
		}
	}
}

// disk puts a small disk under a folder of the installation, with the files that it had. Then fill or lock it.
func disk(folder string, locked bool) func(w *world) func() {
	return func(w *world) func() {
		path := filepath.Join(w.dir, folder)
		filler := filepath.Join(path, "filler")
		if locked {
			mount(w.t, "", path, syscall.MS_REMOUNT|syscall.MS_RDONLY)
			return func() { mount(w.t, "", path, syscall.MS_REMOUNT) }
		}
		err := os.WriteFile(filler, make([]byte, 64<<20), 0o600)
		must.Require(w.t, errors.Is(err, syscall.ENOSPC), "the disk is not full: %v", err)
		return func() { _ = os.Remove(filler) }
	}
}

func mount(t *testing.T, kind, path string, flags uintptr) {
	t.Helper()
	size := "size=24m"
	if kind == "" {
		size = ""
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", flags, size); err != nil {
		t.Skipf("no disk of its own on this machine: %v", err)
	}
}

// robbed restarts a process with few descriptors, and then as before.
func robbed(name string, again func(*world)) func(w *world) func() {
	return func(w *world) func() {
		w.signal(name, os.Kill)
		w.limit = "ulimit -n 12"
		again(w)
		return func() { w.signal(name, os.Kill); again(w) }
	}
}

// clocked restarts a process under a wrong clock, and then under the right one.
func clocked(name, clock string, again func(*world)) func(w *world) func() {
	return func(w *world) func() {
		w.signal(name, os.Kill)
		w.clock = clock
		again(w)
		return func() { w.clock = ""; w.signal(name, os.Kill); again(w) }
	}
}

// repaired is the command that mends every file of a version.
var repaired = []string{"snapshots", "repair", "--yes", "--sign", "version.key", "--now", now}

// matrix is every cell. A cell of Redis or S3 that cannot be made here is skipped and named.
func matrix() []cell {
	scheduler, edge, serve := (*world).startScheduler, (*world).startEdge, (*world).startServe
	cells := []cell{
		{subject: "scheduler", fault: "killed", fast: true, hurt: signalled("scheduler", os.Kill, scheduler)},
		{subject: "scheduler", fault: "stopped", hurt: signalled("scheduler", syscall.SIGSTOP, nil)},
		{subject: "scheduler", fault: "no descriptors", hurt: robbed("scheduler", scheduler)},
		{subject: "edge", fault: "killed", fast: true, silent: true, hurt: signalled("edge", os.Kill, edge)},
		{subject: "edge", fault: "stopped", silent: true, hurt: signalled("edge", syscall.SIGSTOP, nil)},
		{subject: "edge", fault: "no descriptors", silent: true, hurt: robbed("edge", edge)},
		{subject: "edge", fault: "full disk", hurt: disk("cache", false)},
		{subject: "edge", fault: "read-only", hurt: disk("cache", true)},
		{subject: "serve", fault: "killed", silent: true, hurt: signalled("serve", os.Kill, serve)},
		{subject: "serve", fault: "stopped", silent: true, hurt: signalled("serve", syscall.SIGSTOP, nil)},
		{subject: "serve", fault: "no descriptors", silent: true, hurt: robbed("serve", serve)},
		{subject: "serve", fault: "full disk", hurt: disk("store", false)},
		{subject: "serve", fault: "read-only", hurt: disk("store", true)},
		{subject: "directory", fault: "full disk", hurt: disk("store", false)},
		{subject: "directory", fault: "read-only", hurt: disk("store", true)},
		{subject: "directory", fault: "gone", fast: true, hurt: func(w *world) func() {
			store := filepath.Join(w.dir, "store")
			_ = os.Rename(store, store+".away")
			return func() { _ = os.RemoveAll(store); _ = os.Rename(store+".away", store) }
		}},
	}
	for fault, clock := range map[string]string{"clock an hour behind": "2024-07-01T11:00:00Z", "clock an hour ahead": "2024-07-01T13:00:00Z", "clock a year ahead": "2025-07-01T12:00:00Z"} {
		cells = append(cells,
			cell{subject: "scheduler", fault: fault, hurt: clocked("scheduler", clock, scheduler)},
			cell{subject: "serve", fault: fault, silent: true, hurt: clocked("serve", clock, serve)},
			cell{subject: "edge", fault: fault, silent: true, hurt: clocked("edge", clock, edge)})
	}
	for _, copied := range []string{"version/current.json", "version/manifests/*.gz", "version/*/*/current.json", "keys/keys.json", "ratchet/versions.json", "ratchet/keys.json"} {
		cells = append(cells, cell{subject: "edge", fault: "corrupt copy: " + copied, silent: true, hurt: func(w *world) func() {
			w.signal("edge", os.Kill)
			if files, _ := filepath.Glob(filepath.Join(w.dir, "cache", copied)); len(files) > 0 {
				flip("cache/" + copied)(w)
			}
			w.startEdge()
			return nil
		}})
	}
	for _, c := range []cell{
		{fault: "pointer", fast: true, hurt: flip("store/current.json")},
		{fault: "pointer to 2^53", fast: true, hurt: func(w *world) func() {
			must.Do(w.t, os.WriteFile(filepath.Join(w.dir, "store/current.json"), []byte(`{"version":9007199254740992,"manifest":"`+strings.Repeat("0", 64)+`"}`), 0o600))
			return nil
		}},
		{fault: "every note", hurt: flip("store/notes/*"), doctor: "trust", mend: repaired},
		{fault: "fresh.note", hurt: flip("store/fresh.note")},
		{fault: "manifest", hurt: flip("store/manifests/*.json.gz"), doctor: "version", mend: repaired},
		{fault: "part of a manifest", fast: true, hurt: flip("store/manifests/parts/2024-*"), doctor: "version", mend: repaired},
		{fault: "every part of a manifest", hurt: flip("store/manifests/parts/*"), doctor: "version", mend: repaired},
		{fault: "object", hurt: flip("store/objects/*/standings/drivers/2024.json.gz"), doctor: "objects", mend: repaired},
		{fault: "delta", hurt: flip("store/deltas/*"), doctor: "objects", mend: repaired},
		{fault: "object and its delta", fast: true, hurt: flip("store/objects/*/standings/drivers/2024.json.gz", "store/deltas/*"), doctor: "objects", mend: repaired},
		{fault: "claim", hurt: flip("store/versions/*.json")},
		{fault: "derived documents", hurt: flip("store/derived/*.zst")},
		{fault: "settings", hurt: garbled("store/settings.json"), heals: "settings"},
		{fault: "API keys", hurt: flip("store/keys/keys.json"), heals: "keys"},
		{fault: "operators", hurt: garbled("store/operators/operators.json"), heals: "operators"},
		{fault: "audit log", hurt: flip("store/audit/00000001.json"), heals: "audit log"},
		{fault: "ledger", hurt: flip("store/ledger/00000001.json"), doctor: "ledger", remove: "store/ledger/00000001.json", mend: []string{"store", "restore", "copy", "--yes", "--reason", "damage", "--sign", "version.key", "--sign-keys", "keys.key"}, person: "damage of the ledger: its file comes from a copy"},
		{fault: "archive", hurt: flip("store/archives/[0-9a-f]*[0-9a-f]", "store/archives/parts/*"), doctor: "archive", mend: []string{"store", "restore", "copy", "--yes", "--reason", "damage", "--sign", "version.key", "--sign-keys", "keys.key"}, person: "damage of an archive: its file comes from a copy or an import"},
		{fault: "archive in use names none", fast: true, hurt: func(w *world) func() {
			for _, file := range glob(w.dir, "store/archives/*") {
				_ = os.Remove(file) // folders stay
			}
			return nil
		}, doctor: "archive", mend: []string{"store", "restore", "copy", "--yes", "--reason", "damage", "--sign", "version.key", "--sign-keys", "keys.key"}, person: "damage of an archive: its file comes from a copy or an import"},
	} {
		c.subject, c.fault = "directory", "corrupt: "+c.fault
		cells = append(cells, c)
	}
	return append(cells, servers()...)
}

// change is the command of an operator whose change must reach the readers.
func change(w *world) []string {
	return []string{"rounds", "postpone", postponed, "--reason", "test", "--yes", "--now", now, "--store", w.store}
}

// short leaves out places of this machine, and cuts a long sentence.
func short(text string) string {
	text = regexp.MustCompile(`(dir|s3|http)://?\S+|/\S+/\S+`).ReplaceAllString(text, "…")
	if runes := []rune(text); len(runes) > 90 {
		text = string(runes[:90]) + "…"
	}
	return text
}

// run runs a cell.
func (c cell) run(t *testing.T) outcome {
	w := newWorld(t, c)
	if c.subject == "serve" {
		w.startServe()
	} else {
		w.startScheduler()
		w.startEdge()
	}
	t.Cleanup(func() {
		for name := range w.processes {
			w.signal(name, syscall.SIGCONT)
			w.signal(name, os.Kill)
		}
		if t.Failed() {
			t.Logf("the processes printed:\n%s", w.logs.String())
		}
	})
	must.Until(t, "the first version is served", func() bool { _, err := w.ask(w.api); return err == nil && w.version() > 0 })
	must.Until(t, "the scheduler signs that it is current", func() bool {
		return c.s3 || len(glob(w.dir, "store/fresh.note")) > 0
	})
	before := w.version()
	must.Until(t, "the builds of the start are done", func() bool {
		was := before
		time.Sleep(1500 * time.Millisecond)
		before = w.version()
		return before == was
	})
	if slices.Contains(c.mend, "copy") { // the copy of last night
		must.Get(w.run("store", "backup", "copy", "--store", w.store))(t)
	}
	r := w.read()
	end := c.hurt(w)
	saw := ""
	if c.doctor == "" { // somebody works while the fault lasts
		if _, err := w.runFor(2*time.Second, change(w)...); err != nil && end != nil {
			lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
			if saw = "a command waits"; strings.HasPrefix(lines[len(lines)-1], "gridcast: ") {
				saw = "a command: " + short(strings.TrimPrefix(lines[len(lines)-1], "gridcast: "))
			}
		}
	}
	time.Sleep(2 * time.Second)
	if c.doctor != "" {
		saw = w.doctor(c)
	}
	if end != nil {
		end()
	}
	healthy := time.Now()
	if c.remove != "" {
		_ = os.Remove(filepath.Join(w.dir, c.remove))
	}
	if c.mend != nil {
		mend := append(slices.Clone(c.mend), "--store", w.store)
		if i := slices.Index(mend, "OPERATOR"); i >= 0 {
			mend[i] = w.operator
		}
		must.Succeed(t, "run", must.Err(w.run(mend...)))
	}
	var last error
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last command: %v", last)
		}
	})
	must.Until(t, "a change reaches the readers", func() bool {
		_, last = w.run(change(w)...) // refused if it was done while the fault lasted
		wait := 20 * time.Second
		if last != nil {
			wait = time.Second
		}
		return must.Within(wait, func() bool { return w.version() > before })
	})
	seconds := time.Since(healthy).Seconds()
	r.stop()
	if c.heals != "" {
		must.Until(t, "doctor finds "+c.heals+" well", func() bool {
			time.Sleep(time.Second)
			last = nil
			out, _ := w.examine()
			return !problem(c.heals).MatchString(out)
		})
		seconds = time.Since(healthy).Seconds()
	}
	c.judge(t, r)
	if c.subject == "directory" { // a new edge starts from the store alone
		api := porttest.Address(t)
		w.start("second", "edge", "--store", w.store, "--now", now, "--listen", api, "--admin-listen", "127.0.0.1:0", "--cache-dir", "second", "--trust", w.text("version.pub"), "--trust-keys", w.text("keys.pub"))
		must.Until(t, "a new edge starts from the store", func() bool { _, err := w.ask(api); return err == nil })
	}
	person := c.person
	if person == "" && c.mend != nil {
		person = "no: builds do it within a day"
	}
	if saw != "" && w.warned() != "" && c.doctor == "" {
		saw += "; " + w.warned()
	}
	return outcome{c.subject, c.fault, r.String(), cmp.Or(saw, w.warned(), "nothing was wrong for long"), cmp.Or(person, "no"), seconds}
}

// judge checks the reader's answers.
func (c cell) judge(t *testing.T, r *reader) {
	t.Helper()
	must.Hold(t, r.wrong == 0 && len(r.fell) == 0, "wrong answers for %v, falling versions %v", r.wrong, r.fell)
	if r.failed > 0 && !c.silent {
		t.Errorf("%d of %d requests without an answer: %s", r.failed, r.asked, r.refused)
	}
}

// doctor returns the row that names the fault, and the command that it names.
func (w *world) doctor(c cell) string {
	w.t.Helper()
	out, err := w.examine()
	row := problem(c.doctor).FindString(out)
	fix := regexp.MustCompile(`(?m)^  ` + c.doctor + ` +(gridcast [^#\n]*)`).FindStringSubmatch(out)
	if err == nil || row == "" || fix == nil {
		w.t.Errorf("doctor names no problem of %s with a command that helps: %v\n%s", c.doctor, err, out)
		return ""
	}
	return "doctor: " + c.doctor + ", `" + strings.TrimSpace(strings.ReplaceAll(fix[1], "--store '"+w.store+"'", "")) + "`"
}

func (w *world) examine() (string, error) {
	return w.run("doctor", "--store", w.store, "--now", now, "--sign", "version.key", "--sign-keys", "keys.key", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--operator-listen", "", "--cache-dir", "doctor", "--trust", w.text("version.pub"), "--trust-keys", w.text("keys.pub"))
}

// problem matches a row of doctor that names a problem.
func problem(row string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^ ` + row + ` +PROBLEM +(.*)$`)
}

func glob(dir, pattern string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	return files
}

// newWorld copies the seed, and puts it on the disk or the storage that the cell needs.
func newWorld(t *testing.T, c cell) *world {
	t.Helper()
	from := must.Get(seed())(t)
	w := &world{t: t, dir: t.TempDir(), store: "dir:store", processes: map[string]*exec.Cmd{}, api: porttest.Address(t), admin: porttest.Address(t), operator: porttest.Address(t)}
	if w.client.Timeout = 4 * time.Minute; c.silent {
		w.client.Timeout = 2 * time.Second // a stopped edge gives no answer
	}
	for _, folder := range []string{"store", "cache"} {
		path := filepath.Join(w.dir, folder)
		must.Do(t, os.Mkdir(path, 0o750))
		if c.fault == "full disk" || c.fault == "read-only" {
			mount(t, "tmpfs", path, 0)
			t.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
		}
	}
	must.Do(t, os.CopyFS(w.dir, os.DirFS(from)))
	w.key = w.text("api.key")
	for _, key := range []string{"version", "keys"} {
		public := must.Get(w.run("signing", "show", key+".key"))(t)
		must.Do(t, os.WriteFile(filepath.Join(w.dir, key+".pub"), []byte(public), 0o600))
	}
	if c.s3 {
		w.storage = newStorage(t, w)
	}
	if c.redis {
		w.redis = redistest.New(t)
		w.more = append(w.more, "--redis", "redis://"+w.redis.Address)
	}
	return w
}

// TestMatrix runs the cells; in an ordinary test run only the fast ones. With -write it writes the page.
func TestMatrix(t *testing.T) {
	must.Long(t, "runs the real binary")
	var mu sync.Mutex // guards rows
	var rows []outcome
	all := os.Getenv("GRIDCAST_TRUST") != ""
	facts = archivetest.Stored(t, archivetest.Seasons(t, 2024, 2024))
	stored, err := seed()
	must.Require(t, err == nil, "%v, in %s", err, stored)
	t.Run("cells", func(t *testing.T) {
		for _, c := range matrix() {
			if !all && !c.fast {
				continue
			}
			t.Run(c.subject+"/"+c.fault, func(t *testing.T) {
				t.Parallel()
				row := c.run(t)
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, row)
			})
		}
	})
	if *write && !t.Failed() {
		page(t, rows)
	}
}

// page writes deploy/docs/trust.md.
func page(t *testing.T, rows []outcome) {
	t.Helper()
	order := []string{"scheduler", "edge", "serve", "directory", "S3", "Redis"}
	slices.SortStableFunc(rows, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.subject), slices.Index(order, b.subject)), cmp.Compare(a.fault, b.fault))
	})
	var b strings.Builder
	people := 0
	for _, r := range rows {
		if !strings.HasPrefix(r.person, "no") {
			people++
		}
	}
	fmt.Fprintf(&b, `# What breaks, and what readers notice

`+"`make trust`"+` makes each fault below with the built binary and writes this page. A reader asks one edge without a pause. In no cell
is an answer wrong, and in none does a version fall. Of %d cells, %d need a person, and `+"`gridcast doctor`"+` names the command for each.
The seconds count from the end of the fault until a change by an operator reaches the reader. The fault lasts two seconds.

API keys, operators, settings and webhooks have a copy in `+"`copies/`"+` of the store. A scheduler
puts the copy back within 30 seconds, and records a damaged line of the audit log in the next line. Only damage of the
ledger or of an archive needs a person. The store has no second copy of them, because it would double the store; the nightly
backup has one.

| Part | Fault | Readers | Seconds | The operator sees | A person |
|---|---|---|---|---|---|
`, len(rows), people)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %s | %s |\n", r.subject, r.fault, r.readers, r.seconds, strings.ReplaceAll(r.operator, "|", "/"), r.person)
	}
	must.Do(t, os.WriteFile("../docs/trust.md", []byte(b.String()), 0o644))
}

// TestWayBackAfterATheft lets a thief sign the highest numbers of versions and of lists of API keys. The commands of
// deploy/docs/signing.md, in their order and as they are written, lead back: an edge that trusts the new keys alone serves
// the versions of the operator, and a revocation reaches it.
func TestWayBackAfterATheft(t *testing.T) {
	must.Long(t, "runs the real binary")
	facts = archivetest.Stored(t, archivetest.Seasons(t, 2024, 2024))
	page := must.Get(os.ReadFile("../docs/signing.md"))(t)
	_, section, _ := strings.Cut(string(page), "## A stolen key")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := regexp.MustCompile("`gridcast ([^`]*)`").FindAllStringSubmatch(strings.ReplaceAll(section, "\n   ", " "), -1)
	must.Require(t, len(commands) >= 6, "the page has only the commands %q", commands)
	for _, number := range []int64{1 << 53, 1<<53 - 1, 1<<63 - 1} {
		t.Run(strconv.FormatInt(number, 10), func(t *testing.T) {
			w := newWorld(t, cell{})
			steal(t, w, number)
			for _, command := range commands {
				words := command[1]
				for name, value := range map[string]string{"FILE": "new.key", "OLD": "version.key", "NEW": "newkeys.key", "V": "2"} {
					words = regexp.MustCompile(`(^| )`+name+`( |$)`).ReplaceAllString(words, "${1}"+value+"${2}")
				}
				args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(words, -1)
				for i := range args {
					args[i] = strings.Trim(args[i], "'")
				}
				switch args[0] {
				case "signing":
					must.Get(w.run("signing", "new", "newkeys.key", "--like", "keys.key"))(t)
				case "build":
					args = append(args, "--yes", "--store", w.store, "--now", "2024-07-01T12:01:00Z")
				case "snapshots", "keys":
					args = append(args, "--store", w.store)
					if args[1] == "rollback" || args[1] == "sign" {
						args = append(args, "--yes")
					}
				}
				if out, err := w.run(args...); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			trust := []string{}
			for _, flag := range []string{"new.key", "newkeys.key"} {
				public := must.Get(w.run("signing", "show", flag))(t)
				trust = append(trust, strings.TrimSpace(public))
			}
			w.t.Cleanup(func() { w.signal("edge", os.Kill) })
			w.start("edge", "edge", "--store", w.store, "--now", now, "--listen", w.api, "--admin-listen", w.admin, "--cache-dir", "cache", "--trust", trust[0], "--trust-keys", trust[1])
			must.Until(t, "an edge that trusts the new keys serves", func() bool { _, err := w.ask(w.api); return err == nil })
			v := w.version()
			must.Hold(t, v >= 3 && v <= 10, "version %d, want one of the operator's count", v)
			id := snapshots.Digest([]byte(w.key))[:12]
			out, err := w.run("keys", "revoke", id, "--yes", "--reason", "leaked", "--sign-keys", "newkeys.key", "--store", w.store)
			must.Require(t, err == nil, "%v\n%s", err, out)
			must.Until(t, "the revocation reaches the edge", func() bool {
				_, err := w.ask(w.api)
				return err != nil && strings.Contains(err.Error(), strconv.Itoa(http.StatusUnauthorized))
			})
		})
	}
}

// steal publishes the current version again under a number, signed with the stolen keys, and so the list of API keys.
func steal(t *testing.T, w *world, number int64) {
	t.Helper()
	folder := filepath.Join(w.dir, "store")
	put := func(key string, data []byte) {
		must.Do(t, os.WriteFile(filepath.Join(folder, filepath.FromSlash(key)), data, 0o600))
	}
	version := must.Get(notes.ReadSigners(filepath.Join(w.dir, "version.key")))(t)
	packed := must.Get(os.ReadFile(filepath.Join(folder, snapshots.ManifestKey(2))))(t)
	z := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	text := must.Get(io.ReadAll(z))(t)
	m := must.JSON[snapshots.Manifest](t, text)
	var again bytes.Buffer
	gz := gzip.NewWriter(&again)
	_, _ = gz.Write(bytes.Replace(text, []byte(`"version":2,`), fmt.Appendf(nil, `"version":%d,`, number), 1))
	_ = gz.Close()
	hash := snapshots.Digest(again.Bytes())
	note := must.Get(version.Sign(fmt.Sprintf("version %d", number), "manifest "+hash, fmt.Sprintf("ledger %s %d %s", m.Ledger.Kind, m.Ledger.Seq, m.Ledger.Hash)))(t)
	fresh := must.Get(version.Sign(fmt.Sprintf("fresh %d", number), "manifest "+hash, "good-until 2099-01-01T00:00:00Z"))(t)
	put(snapshots.ManifestKey(number), again.Bytes())
	put(snapshots.NoteKey(number), note)
	put(snapshots.FreshKey, fresh)
	put(fmt.Sprintf("versions/%d.json", number), []byte("{}"))
	put(snapshots.PointerKey, fmt.Appendf(nil, `{"version":%d,"manifest":%q,"signed":true,"at":"2026-01-01T00:00:00Z"}`, number, hash))

	keySigner := must.Get(notes.ReadSigners(filepath.Join(w.dir, "keys.key")))(t)
	store := must.Get(dirblob.Open(folder))(t)
	list, _, err := keys.Load(t.Context(), store)
	if err == nil {
		err = list.Sign(keySigner, true)
	}
	list.Serial = number - 1
	data, encodeErr := list.Encode()
	if err != nil || encodeErr != nil {
		t.Fatal(err, encodeErr)
	}
	put(keys.Object, data)
}
