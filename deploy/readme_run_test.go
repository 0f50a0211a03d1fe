package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/porttest"
)

// excused are commands of README.md that this test does not run, with the reason.
var excused = []struct{ begins, because string }{
	{"make test", "is what runs this"},
	{"gridcast serves", "is a line that gridcast prints"},
	{"gridcast source", "asks the world, or has a placeholder"},
	{"gridcast archive import", "needs a release of F1DB, which tests with real data import"},
	{"make bench", "takes minutes"},
}

// aCommand is a line of a block in README.md that is meant to be typed.
var aCommand = regexp.MustCompile(`(?m)^    (?:\$ )?((?:make|curl|gridcast) [^\n]*?)(?: +#[^\n]*)?$`)

// TestReadmeCanBeFollowed types the commands of README.md into a new clone, in their order. The home
// folder is empty, and only the module and build caches are kept.
func TestReadmeCanBeFollowed(t *testing.T) {
	must.Long(t, "runs the demo")
	for _, program := range []string{"make", "curl", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s on this machine", program)
		}
	}
	readme := must.Get(os.ReadFile("../README.md"))(t)
	n := newcomer(t)
	for _, match := range aCommand.FindAllStringSubmatch(string(readme), -1) {
		n.types(match[1])
	}
	must.Hold(t, n.typed >= 7, "README.md has only %d commands that could be typed", n.typed)
}

// reader is a newcomer that follows the README in a clone.
type reader struct {
	t       *testing.T
	clone   string
	env     []string
	address string       // of the API
	server  *must.Buffer // of the server that runs
	stop    func()       // ends it
	typed   int
}

func newcomer(t *testing.T) *reader {
	home := t.TempDir()
	n := &reader{t: t, stop: func() {}, clone: filepath.Join(home, "gridcast"), address: porttest.Address(t)}
	// A clone has the files of the working tree that git knows or would add.
	clone := exec.Command("sh", "-c", "mkdir -p "+n.clone+" && cd .. && git ls-files -z --cached --others --exclude-standard | tar cf - --null --files-from=- --ignore-failed-read | tar xf - -C "+n.clone)
	text, err := clone.CombinedOutput()
	must.Require(t, err == nil, "clone: %v\n%s", err, text)
	goEnv := func(name string) string {
		value := must.Get(exec.Command("go", "env", name).Output())(t)
		return name + "=" + strings.TrimSpace(string(value))
	}
	n.env = []string{
		"HOME=" + home, "GOPATH=" + filepath.Join(home, "go"), "PATH=" + filepath.Join(n.clone, ".var", "bin") + ":" + os.Getenv("PATH"),
		goEnv("GOMODCACHE"), goEnv("GOCACHE"), goEnv("GOPROXY"), goEnv("GOFLAGS"),
		"GOGC=" + os.Getenv("GOGC"), "GOMEMLIMIT=" + os.Getenv("GOMEMLIMIT"), // as rare a collection of garbage as in other tests
		"GRIDCAST_LISTEN=" + n.address, "GRIDCAST_OPERATOR_LISTEN=" + porttest.Address(t), "GRIDCAST_NO_SOURCES=true", "GRIDCAST_MODEL=grid-frequency",
	}
	return n
}

// types gives one command, with the port and the folders of this test. One that serves goes on
// until the next does; the others must end well.
func (n *reader) types(line string) {
	n.t.Helper()
	for _, e := range excused {
		if strings.HasPrefix(line, e.begins) {
			n.t.Logf("%q is not typed: it %s", line, e.because)
			return
		}
	}
	n.typed++
	line = strings.NewReplacer("127.0.0.1:8080", n.address, "0.0.0.0:8080", n.address, "/srv/gridcast", n.clone+"/srv").Replace(line)
	switch {
	case strings.HasPrefix(line, "make run"), strings.HasPrefix(line, "gridcast serve "):
		n.serve(line)
	case strings.HasPrefix(line, "gridcast replay"):
		n.run(strings.Replace(line, "--from 2010", "--from 2024", 1) + " --store dir:replayed") // a season of them
	case strings.Contains(line, "snapshots diff"):
		n.await("a document differs from version 1", func() bool { return n.try(line+` | grep -q changed`) == nil })
	default:
		n.run(line)
	}
}

func (n *reader) shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = n.clone, n.env
	return cmd
}

func (n *reader) try(line string) error {
	text, err := n.shell(n.t.Context(), line).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, text)
	}
	if strings.HasPrefix(line, "curl") && !bytes.Contains(text, []byte(`"ok":true`)) {
		return fmt.Errorf("%s: got %s", line, text)
	}
	return nil
}

func (n *reader) run(line string) {
	n.t.Helper()
	must.Succeed(n.t, "try", n.try(line))
}

// serve starts a server, in place of the one before, and waits until it is ready; the first key that
// the demo prints becomes $KEY.
func (n *reader) serve(line string) {
	n.t.Helper()
	n.stop()
	if !strings.HasPrefix(line, "make run") { // which shows that all embedded seasons are served; two build faster
		path := filepath.Join(n.t.TempDir(), "some.archive")
		must.Do(n.t, archive.WriteFile(path, archivetest.Stored(n.t, archivetest.Seasons(n.t, 2025, 2026))))
		n.env = append(n.env, "GRIDCAST_ARCHIVE="+path)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := n.shell(ctx, "exec "+line)
	n.server = &must.Buffer{}
	cmd.Stdout, cmd.Stderr = n.server, n.server
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // make and its processes
	must.Do(n.t, cmd.Start())
	n.stop = func() {
		stop()
		_ = cmd.Wait() // ended by the signal
	}
	n.t.Cleanup(n.stop)
	n.await("it serves: "+line, func() bool {
		response, err := http.Get("http://" + n.address + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	if strings.HasPrefix(line, "make run") {
		n.await("it prints a key", func() bool { return aKey.MatchString(n.server.String()) })
		n.env = append(n.env, "KEY="+aKey.FindString(n.server.String()))
		n.await("it prints the demo's events as README.md shows them", func() bool { return n.shows(anEvent.FindAllStringSubmatch(readReadme(n.t), -1)) })
	}
}

// anEvent is a line of the demo's programme in README.md: its instant and its event. The time until it differs.
var anEvent = regexp.MustCompile(`(?m)^ +(\d{4}-\d\d-\d\d \d\d:\d\d UTC) +in \S+ +(.+)$`)

// shows reports whether the server has printed every event, and that README.md has any.
func (n *reader) shows(events [][]string) bool {
	printed := anEvent.FindAllStringSubmatch(n.server.String(), -1)
	for _, want := range events {
		if !slices.ContainsFunc(printed, func(got []string) bool { return slices.Equal(got[1:], want[1:]) }) {
			return false
		}
	}
	return len(events) > 0
}

// aKey is a key, whole.
var aKey = regexp.MustCompile(`gc_(live|test)_\w+\b`)

func (n *reader) await(what string, happened func() bool) {
	n.t.Helper()
	must.Require(n.t, must.Within(4*time.Minute, happened), "did not happen: %s\n%s", what, n.server)
}
