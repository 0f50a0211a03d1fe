package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
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
	"gridcast/builder/season"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/deploy/redistest"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
)

// runbook is the order in which the pages of deploy/docs are read: the first sets the machine up
// that the others work on.
var runbook = []string{
	"installation", "s3", "redis", "weekend", "verify", "cdn", "rollback", "leaked-key", "usage", "webhooks", "upgrade", "tls",
	"store-lost", "ledger-damaged", "second-scheduler", "sandbox", "retention", "ports", "logs", "capacity", "signing",
}

// alone are the pages for one process on one machine, and those that need no machine.
var alone = []string{"one-machine", "new-season", "history"}

// TestRunbook runs every command of every page of the runbook, as it is written: with the real
// binary, an S3 server, a Redis, two edges, a scheduler, nginx and Prometheus. Blocks of
// other kinds than bash are not run.
func TestRunbook(t *testing.T) {
	t.Parallel()                   // most of it waits
	m := newMachine(t, 2024, 2026) // one earlier season suffices for form and history
	m.addServers()
	for _, page := range runbook {
		must.Require(t, t.Run(page, m.read(page)) || page != runbook[0], "nothing is installed: the other pages have nothing to work on")
	}
	for name := range namedOnce(aMetric.FindAllString(readText(t, "../docs/logs.md"), -1)) {
		if shown := m.work("edge.txt") + m.work("scheduler.txt"); shown != "" && !strings.Contains(shown, "\n"+name) && !slices.Contains(metricsOfSources, name) {
			t.Errorf("deploy/docs/logs.md names %s, which no process shows", name)
		}
	}
	pages := must.Get(filepath.Glob("../docs/*.md"))(t)
	for _, page := range pages {
		for line := range strings.Lines(readText(t, page)) {
			must.Hold(t, !strings.Contains(line, "until ") || !strings.Contains(line, "; do") || strings.Contains(line, "$SECONDS"), "%s waits without end: %s", page, line)
		}
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if commands := aBlock.MatchString(readText(t, page)); commands && !slices.Contains(runbook, name) && !slices.Contains(alone, name) {
			t.Errorf("%s is run by nobody", page)
		}
	}
}

// TestOneMachine runs the pages for one machine, as TestRunbook runs the others. There is no user gridcast
// here, so the commands run as the user of the test.
func TestOneMachine(t *testing.T) {
	t.Parallel() // most of it waits
	m := newMachine(t, 2026)
	bin := filepath.Join(m.root, "usr/local/bin")
	for _, command := range []string{"useradd", "chown"} {
		m.write(filepath.Join(bin, command), "#!/bin/sh\n", 0o755)
	}
	m.addMonitoring()
	m.write(filepath.Join(bin, "runuser"), "#!/bin/sh\n[ \"$1 $2 $3\" = '-u gridcast --' ] && shift 3 && exec \"$@\"\n", 0o755)
	for _, page := range alone {
		switch page {
		case "new-season": // changes the archive of a store
			m.env = append(m.env, "GRIDCAST_ARCHIVE=")
			m.putSeasons(t, "work/winter", 2024)
		case "history": // builds from what it imports
			m.env = append(m.env, "F1DB_RELEASE="+recentRelease(t))
			m.putSeasons(t, "work/begun", 2020)
		}
		t.Run(page, m.read(page))
	}
	must.Hold(t, m.running["gridcast"] != nil, "the service does not run after the walk")
	if rules := m.work("rules.json"); m.running["prometheus"] != nil {
		shipped := strings.Count(readText(t, "../prometheus/alerts.yaml"), "- alert:")
		if loaded := strings.Count(rules, `"name":"Gridcast`); loaded != shipped {
			t.Errorf("Prometheus has loaded %d rules of %d: %.300s", loaded, shipped, rules)
		}
	}
}

// aDefault is a flag with its default in the help of Prometheus and Alertmanager.
var aDefault = regexp.MustCompile(`--(config\.file|storage\.tsdb\.path|storage\.path)="(/[^"]+)"`)

// addMonitoring adds the units of Debian's Prometheus and Alertmanager where the machine has the programs. Each
// reads the file that its own help names as the default, below the machine's root.
func (m *machine) addMonitoring() {
	for name, port := range map[string]string{"prometheus": "9090", "prometheus-alertmanager": "9093"} {
		program, err := exec.LookPath(name)
		if err != nil {
			m.t.Logf("%s is not on this machine: its files are not tried", name)
			continue
		}
		help, _ := exec.Command(program, "--help").CombinedOutput() // Alertmanager ends with 1
		start := []string{"ExecStart=" + program, "--web.listen-address=127.0.0.1:" + port, "$ARGS"}
		for _, flag := range aDefault.FindAllStringSubmatch(string(help), -1) {
			start = append(start, "--"+flag[1]+"="+flag[2])
		}
		m.write(filepath.Join(m.root, "etc/systemd/system", name+".service"), m.here("[Service]\nEnvironmentFile=-/etc/default/"+name+"\n"+strings.Join(start, " ")+"\n"), 0o644)
		must.Do(m.t, errors.Join(os.MkdirAll(filepath.Join(m.root, "etc/default"), 0o755), os.MkdirAll(filepath.Join(m.root, "var/lib/prometheus"), 0o755)))
	}
}

// putSeasons puts an archive of the seasons since a year into a store.
func (m *machine) putSeasons(t *testing.T, folder string, from int) {
	t.Helper()
	store := must.Get(dirblob.Open(filepath.Join(m.root, folder)))(t)
	archivetest.Put(t, archive.NewStore(store), archivetest.Stored(t, archivetest.Seasons(t, from, 2026)))
}

// recent is the folder that recentRelease has made.
var recent struct {
	sync.Mutex
	folder string
}

// recentRelease returns the folder of F1DB's release of 2026 without the seasons before 2020. It is made once, because
// an import of all seasons takes a second of CPU time. TestAllSeasons imports a whole release.
func recentRelease(t testing.TB) string {
	t.Helper()
	recent.Lock()
	defer recent.Unlock()
	if recent.folder != "" {
		return recent.folder
	}
	release := must.Get(zip.OpenReader(sourcetest.Path(t, sourcetest.F1DB2026)))(t)
	defer release.Close()
	folder, err := filepath.Abs("../../.var/test/release")
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range release.File {
		if strings.HasSuffix(file.Name, ".schema.json") {
			continue
		}
		packed, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, file.UncompressedSize64)
		_, err = io.ReadFull(packed, data)
		// Each file is one line, an array of rows.
		var rows [][]byte
		for row := range bytes.SplitSeq(bytes.Trim(data, "[{}]\n"), []byte("},{")) {
			_, of, dated := bytes.Cut(row, []byte(`"year":`))
			of, _, _ = bytes.Cut(of, []byte(","))
			if n, _ := strconv.Atoi(string(of)); !dated || n >= 2020 {
				rows = append(rows, row)
			}
		}
		kept := []byte("[]")
		if len(rows) > 0 {
			kept = slices.Concat([]byte("[{"), bytes.Join(rows, []byte("},{")), []byte("}]"))
		}
		if !json.Valid(kept) {
			err = errors.Join(err, errors.New("the rows of "+file.Name+" are not told apart"))
		}
		must.Do(t, errors.Join(err, packed.Close(), os.WriteFile(filepath.Join(folder, file.Name), kept, 0o600)))
	}
	recent.folder = folder
	return folder
}

// aMetric is the name of a metric of ours.
var aMetric = regexp.MustCompile(`gridcast_[a-z_]+`)

func namedOnce(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// machine is where an operator works: a root of its own for /etc, /var and /usr/local, a free port
// for each that the pages name, and a systemctl that starts the real processes as the units say.
type machine struct {
	t       *testing.T
	root    string
	ports   map[string]string // the address that a page names → the one here
	env     []string
	running map[string]*unit
}

// unit is a process that runs as a unit of systemd says.
type unit struct {
	cmd   *exec.Cmd
	ended chan error
}

// newMachine returns a machine with an archive of the years, of which the last is 2026.
func newMachine(t *testing.T, years ...int) *machine {
	m := &machine{t: t, root: t.TempDir(), ports: map[string]string{}, running: map[string]*unit{}}
	for _, folder := range []string{"etc", "var/lib", "var/cache"} {
		must.Do(t, os.MkdirAll(filepath.Join(m.root, folder), 0o755))
	}
	for _, folder := range []string{m.root, filepath.Dir(m.root)} { // the user nobody must be able to enter them
		must.Do(t, os.Chmod(folder, 0o755))
	}

	// The files of a clone, with the paths and ports of this machine.
	work := filepath.Join(m.root, "work")
	for _, folder := range []string{"alertmanager", "caddy", "systemd", "prometheus", "s3", "nginx", "cdn"} {
		must.Do(t, filepath.WalkDir("../"+folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") {
				return err
			}
			m.write(filepath.Join(work, "deploy", folder, filepath.Base(path)), m.here(readText(t, path)), 0o644)
			return nil
		}))
	}
	must.Do(t, errors.Join(os.MkdirAll(filepath.Join(work, ".var/bin"), 0o755), os.Symlink(binary(t), filepath.Join(work, ".var/bin/gridcast"))))
	makefile := must.Get(filepath.Abs("../../Makefile"))(t)
	control := httptest.NewServer(m)
	t.Cleanup(control.Close)
	bin := filepath.Join(m.root, "usr/local/bin")
	m.write(filepath.Join(bin, "systemctl"), "#!/bin/sh\nexec curl --fail-with-body -sS --data-urlencode \"do=$*\" "+control.URL+"\n", 0o755)
	m.write(filepath.Join(bin, "make"), "#!/bin/sh\nexec grep -q \"^$1:\" '"+makefile+"'\n", 0o755) // the binary is there already
	m.write(filepath.Join(bin, "journalctl"), "#!/bin/sh\nexec cat "+m.root+"/log/\"$2\"\n", 0o755)
	facts := archivetest.Seasons(t, years[0], 2026)
	facts.Seasons = slices.DeleteFunc(facts.Seasons, func(s season.Season) bool { return !slices.Contains(years, s.Year) })
	present := &facts.Seasons[len(facts.Seasons)-1]
	for _, earlier := range facts.Seasons[:len(facts.Seasons)-1] {
		facts.Seasons[0].Rounds = earlier.Rounds[len(earlier.Rounds)-8:] // enough for form and history
	}
	present.Rounds = present.Rounds[:13] // two are to come: title odds of half a season take seconds
	m.env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "AWS_") }),
		"PATH="+bin+":"+os.Getenv("PATH"), "HOME="+work,
		"GRIDCAST_NO_SOURCES=true", "GRIDCAST_MODEL=grid-frequency", // asks nobody in the world, and is quick
		"GRIDCAST_ARCHIVE="+archiveFile(t, facts))
	t.Cleanup(func() { m.stopAll(t) })
	return m
}

// stopAll stops the units that run.
func (m *machine) stopAll(t *testing.T) {
	for name := range m.running {
		if err := m.stop(name); err != nil {
			t.Errorf("%s: %v\n%s", name, err, m.log(name))
		}
	}
}

// addServers starts the servers that several processes share.
func (m *machine) addServers() {
	server := s3test.VersityWithUsers(m.t)
	m.ports["127.0.0.1:9000"], m.ports["127.0.0.1:6379"] = server.Address, redistest.New(m.t).Address
	server.AddUser(m.t, "edge", "secret-of-edges")
	server.AddUser(m.t, "scheduler", "secret-of-schedulers")
	m.env = append(m.env, "S3_ADMIN="+s3test.AccessKey+":"+s3test.SecretKey,
		"EDGE_SECRET=secret-of-edges", "SCHEDULER_SECRET=secret-of-schedulers")
	t := m.t
	t.Cleanup(func() { m.stopAll(t) }) // before the servers, which a unit may need to end well
}

func readText(t testing.TB, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}

func (m *machine) write(path, text string, mode fs.FileMode) {
	m.t.Helper()
	must.Do(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(m.t, os.WriteFile(path, []byte(text), mode))
}

// work is a file that a page has written; empty if it has not.
func (m *machine) work(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.root, "work", name))
	return string(text)
}

func (m *machine) log(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.root, "log", name)) // a unit that never started has none
	return string(text)
}

var (
	aPort = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	aPath = regexp.MustCompile(`(^|[\s='":<>(-])(/etc/|/var/|/usr/local/)`)
)

// here is a text with the ports and paths of this machine.
func (m *machine) here(text string) string {
	text = aPort.ReplaceAllStringFunc(text, func(address string) string {
		if m.ports[address] == "" {
			m.ports[address] = porttest.Address(m.t)
		}
		return m.ports[address]
	})
	return aPath.ReplaceAllString(text, "${1}"+m.root+"$2")
}

// aBlock is a block of commands; after bash stand the programs that it needs.
var aBlock = regexp.MustCompile("(?ms)^```bash *([a-z ]*)\n(.*?)^```$")

// read returns a test that runs the commands of a page, in a shell of their own.
func (m *machine) read(page string) func(t *testing.T) {
	return func(t *testing.T) {
		m.t = t
		text := readText(t, "../docs/"+page+".md")
		var script strings.Builder
		script.WriteString("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n")
		blocks := aBlock.FindAllStringSubmatchIndex(text, -1)
		must.Require(t, len(blocks) != 0, "deploy/docs/%s.md has no commands", page)
		for _, block := range blocks {
			line := 1 + strings.Count(text[:block[0]], "\n")
			missing := ""
			for _, program := range strings.Fields(text[block[2]:block[3]]) {
				if _, err := exec.LookPath(program); err != nil {
					missing = program
				}
			}
			if missing != "" {
				t.Logf("deploy/docs/%s.md:%d is not run: no %s on this machine", page, line, missing)
				continue
			}
			fmt.Fprintf(&script, "echo '== deploy/docs/%s.md:%d'\n%s", page, line, m.here(text[block[4]:block[5]]))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		shell := exec.CommandContext(ctx, "bash", "-c", script.String())
		shell.Dir, shell.Env = filepath.Join(m.root, "work"), m.env
		// Processes that the page starts end with it.
		shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
		output, err := shell.CombinedOutput()
		if err != nil {
			t.Errorf("deploy/docs/%s.md: %v\n%s", page, err, output)
			for name := range m.running {
				t.Logf("%s logged:\n%s", name, m.log(name))
			}
		}
	}
}

// ServeHTTP carries out the requests of systemctl.
func (m *machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	words := strings.Fields(r.FormValue("do"))
	words = slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") })
	if len(words) == 0 {
		http.Error(w, "systemctl: no command", http.StatusBadRequest)
		return
	}
	for _, name := range words[1:] {
		if strings.HasSuffix(name, ".timer") {
			continue
		}
		var err error
		switch words[0] {
		case "enable", "start":
			err = m.start(name)
		case "stop", "disable":
			err = m.stop(name)
		case "restart":
			if err = m.stop(name); err == nil {
				err = m.start(name)
			}
		default:
			err = fmt.Errorf("systemctl %s: this machine does not know it", words[0])
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("%s: %v\n%s", name, err, m.log(name)), http.StatusInternalServerError)
			return
		}
	}
}

// start starts a unit and waits until it says that it is ready; one of Type=oneshot runs to its end.
func (m *machine) start(name string) error {
	if m.running[name] != nil {
		return nil
	}
	file, instance, _ := strings.Cut(name, "@")
	if instance != "" {
		file += "@"
	}
	text, err := os.ReadFile(filepath.Join(m.root, "etc/systemd/system", file+".service"))
	if err != nil {
		return err
	}
	env, kind, folder := m.env, "", m.root
	var commands [][]string
	for line := range strings.Lines(strings.ReplaceAll(string(text), "%i", instance)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "Type":
			kind = value
		case "Environment":
			env = append(env, value)
		case "EnvironmentFile":
			settings, err := os.ReadFile(strings.TrimPrefix(value, "-"))
			if err != nil && !strings.HasPrefix(value, "-") {
				return err
			}
			for setting := range strings.Lines(string(settings)) {
				if name, value, ok := strings.Cut(strings.TrimSpace(setting), "="); ok && !strings.HasPrefix(name, "#") {
					env = append(env, name+"="+strings.Trim(value, "'\""))
				}
			}
		case "StateDirectory", "CacheDirectory":
			parent := map[string]string{"StateDirectory": "var/lib", "CacheDirectory": "var/cache"}[key]
			err := os.MkdirAll(filepath.Join(m.root, parent), 0o755)
			if err = errors.Join(err, os.MkdirAll(filepath.Join(m.root, parent, value), 0o700)); err != nil {
				return err
			}
		case "WorkingDirectory":
			folder = value
		case "ExecStart":
			commands = append(commands, strings.Fields(value))
		}
	}
	if err := os.MkdirAll(filepath.Join(m.root, "log"), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(m.root, "log", name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	command := func(words []string) *exec.Cmd {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = folder, env, log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	if kind == "oneshot" {
		for _, words := range commands {
			if err := command(words).Run(); err != nil {
				return err
			}
		}
		return nil
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@gridcast-test-" + filepath.Base(filepath.Dir(m.root)) + freePort(m.t) + name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer socket.Close()
	env = append(env, "NOTIFY_SOCKET="+socket.LocalAddr().String())
	start := commands[0]
	if at := slices.Index(start, "$ARGS"); at >= 0 {
		start = slices.Concat(start[:at], strings.Fields(last(env, "ARGS")), start[at+1:])
	}
	u := &unit{cmd: command(start), ended: make(chan error, 1)}
	if err := u.cmd.Start(); err != nil {
		return err
	}
	m.running[name] = u
	go func() { u.ended <- u.cmd.Wait() }()
	if kind == "" { // systemd takes it for started
		return nil
	}
	if err := socket.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		return err
	}
	state := make([]byte, 64)
	n, err := socket.Read(state)
	if err != nil || string(state[:n]) != "READY=1" {
		return fmt.Errorf("it does not say that it is ready: %q, %w", state[:n], err)
	}
	return nil
}

// last is the value of the variable in the environment; empty if it has none.
func last(env []string, name string) string {
	for _, setting := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(setting, name+"="); ok {
			return value
		}
	}
	return ""
}

func freePort(t testing.TB) string {
	_, port, _ := net.SplitHostPort(porttest.Address(t))
	return port
}

// stop stops a unit as systemd does, and has it end well.
func (m *machine) stop(name string) error {
	u := m.running[name]
	if u == nil {
		return nil
	}
	delete(m.running, name)
	_ = u.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-u.ended:
		return err
	case <-time.After(3 * time.Minute):
		_ = u.cmd.Process.Kill()
		return errors.New("it does not end")
	}
}
