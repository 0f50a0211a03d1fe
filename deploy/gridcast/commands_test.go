package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// The program completes command lines for the shells, which hand it the line in COMP_LINE.
func TestCompletion(t *testing.T) {
	complete := func(line string) []string {
		t.Setenv("COMP_LINE", line)
		var out, complaint bytes.Buffer
		if status := run(t.Context(), nil, &out, &complaint); status != exitDone {
			t.Fatalf("%s: %s", line, complaint.String())
		}
		return strings.Fields(out.String())
	}
	for line, want := range map[string][]string{
		"gridcast sn":                              {"snapshots"},
		"gridcast snapshots ro":                    {"rollback"},
		"gridcast snapshots rollback 3 --rea":      {"--reason"},
		"gridcast archive import f":                {"f1db"},
		"gridcast serve --redis-mode s":            {"strict"},
		"gridcast keys create --name ":             nil, // any name, no command
		"gridcast --json keys li":                  {"list"},
		"gridcast doctor e":                        {"edge"},
		"gridcast completion ":                     {"bash", "zsh", "fish"},
		"gridcast keys create --store dir:x --tie": {"--tiers", "--tier"},
	} {
		got := complete(line)
		if line == "gridcast completion " {
			got = slices.DeleteFunc(got, func(w string) bool { return strings.HasPrefix(w, "-") })
		}
		slices.Sort(got)
		slices.Sort(want)
		must.Hold(t, slices.Equal(got, want), "%q: got %v, want %v", line, got, want)
	}
}

// Each command has the same arguments and flags in the part of the command line that it is parsed with as in the whole.
func TestGrammarOfACommand(t *testing.T) {
	model := func(args ...string) *kong.Application {
		return must.Get(kong.New(grammar(args), kong.Name("gridcast"), kong.DefaultEnvars("GRIDCAST"), kong.Vars{"version": ""}))(t).Model
	}
	describe := func(node *kong.Node) (lines []string) {
		_ = kong.Visit(node, func(n kong.Visitable, next kong.Next) error {
			switch n := n.(type) {
			case *kong.Flag:
				must.Hold(t, n.Default == "" || n.PlaceHolder == "" || strings.Contains(n.Help, n.Default), "the help of --%s does not say its default, %q", n.Name, n.Default)
				lines = append(lines, fmt.Sprint(n.Summary(), n.Envs, n.Help))
			case *kong.Node:
				lines = append(lines, n.FullPath()+n.Help)
			}
			return next(nil)
		})
		return lines
	}
	whole := model()
	for _, command := range whole.Children {
		part := model(command.Name)
		i := slices.IndexFunc(part.Children, func(n *kong.Node) bool { return n.Name == command.Name })
		must.Require(t, i >= 0, "%s is not in its part", command.Name)
		must.Equal(t, command.Name, describe(command), describe(part.Children[i]))
		must.Equal(t, "flags beside "+command.Name, len(whole.Flags), len(part.Flags))
		must.Hold(t, len(part.Children) < len(whole.Children) || command.Name == "completion", "%s is parsed with the whole command line", command.Name)
	}
}

// completionFile is the file that gridcast completion prints for a shell.
func completionFile(t *testing.T, shell string) string {
	t.Helper()
	var out, complaint bytes.Buffer
	if status := run(t.Context(), []string{"completion", shell}, &out, &complaint); status != exitDone {
		t.Fatalf("completion %s: %s", shell, complaint.String())
	}
	file := filepath.Join(t.TempDir(), "gridcast."+shell)
	must.Do(t, os.WriteFile(file, out.Bytes(), 0o600))
	return file
}

// Each shell that is on this machine reads its lines, and asks this program then.
func TestShellsReadTheirLines(t *testing.T) {
	program := must.Get(os.Executable())(t)
	for shell, check := range map[string][]string{"bash": {"-c", `source "$0" && complete -p gridcast`}, "zsh": {"-n"}, "fish": {"-n"}} {
		file := completionFile(t, shell)
		text := must.Get(os.ReadFile(file))(t)
		must.Show(t, shell, string(text), program)
		must.Equal(t, shell+": completes files", shell == "fish", bytes.Contains(text, []byte("-l tls-cert -r -F")))
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not on this machine: it has not read its lines", shell)
			continue
		}
		output, err := exec.Command(path, append(check, file)...).CombinedOutput()
		must.Hold(t, err == nil && (shell != "bash" || strings.Contains(string(output), "-o default")), "%s: %v\n%s", shell, err, output)
	}
}

// TestFileOfAResult reads an order or a document, and refuses a file with neither: a correction without both takes the
// classification of the source.
func TestFileOfAResult(t *testing.T) {
	for content, want := range map[string]operator.Codes{
		"VER +1.2s\nNOR  # late\n": {"VER", "NOR"}, `{"rows": []}`: nil, "": nil, " \n": nil, "# VER\n": nil,
	} {
		file := filepath.Join(t.TempDir(), "result")
		must.Do(t, os.WriteFile(file, []byte(content), 0o600))
		var order operator.Codes
		var document []byte
		err := (&resultFlags{File: file}).readFile(&order, &document)
		must.Hold(t, slices.Equal(order, want) && (err == nil) == (len(order) > 0 || len(document) > 0),
			"%q: got %q, %q, %v; want %q, a document or an error", content, order, document, err, want)
	}
}

// full is a disk without room: it takes one write.
type full struct{ writes int }

func (f *full) Write(p []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// TestLostOutputFails checks that a command with lost output fails, with one message.
func TestLostOutput(t *testing.T) {
	var complaint strings.Builder
	out := &full{writes: 1}
	if status := run(t.Context(), []string{"archive", "show"}, out, &complaint); status != exitFailed {
		t.Errorf("got status %d, want %d", status, exitFailed)
	}
	if got := complaint.String(); strings.Count(got, "no space left on device") != 1 || out.writes != 2 {
		t.Errorf("got %q after %d writes", got, out.writes)
	}
}

// TestStartSays checks that a start of a source that differs from the one in use shows by how much.
func TestStartSays(t *testing.T) {
	inUse := time.Date(2026, 5, 3, 20, 0, 0, 0, time.UTC)
	for said, want := range map[time.Time]string{
		{}:                           "",
		inUse:                        "2026-05-03 20:00 UTC",
		inUse.Add(235 * time.Second): "2026-05-03 20:03 UTC",
		inUse.Add(-3 * time.Hour):    "2026-05-03 17:00 UTC, 3h0m0s early",
		inUse.Add(24 * time.Hour):    "2026-05-04 20:00 UTC, 24h0m0s late",
	} {
		c := checkedSource{NextStart: inUse, SaysStart: said}
		must.Equal(t, "the start of the table", want, c.startCell())
	}
}

// lie is a text that clears a terminal, and then pretends to be a line of gridcast.
const lie = "\x1b[2J\x1b]0;t\a\r\u202e\u009b31m\x7f\nok  all is well"

// liar answers every connection with one text. It returns its host and port.
func liar(t *testing.T, text string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// withLies appends the lie to every string in the JSON documents of a store, and adds an object of that name.
func withLies(t *testing.T, store string) {
	t.Helper()
	value := regexp.MustCompile(`(:\s*"(?:[^"\\]|\\.)*)"`)
	escaped := `\u001b[2J\u001b]0;t\u0007\r` + "\u202e\u009b31m\x7f" + `\nok  all is well"`
	must.Do(t, filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, value.ReplaceAll(text, []byte("${1}"+escaped)), 0o600)
	}))
	for _, folder := range []string{"objects", "manifests", "archives", "keys"} {
		must.Do(t, os.WriteFile(filepath.Join(store, folder, lie), nil, 0o600))
	}
}

// TestNoTextOfOthersCommandsTheTerminal hands every command that prints remote texts a liar. Nothing of a lie reaches the
// terminal as a command, and none begins a line of its own. No command shows the password in a wrong address.
func TestNoTextOfOthersCommandsTheTerminal(t *testing.T) {
	dir := t.TempDir()
	store := "dir:" + filepath.Join(dir, "store")
	lines := filepath.Join(dir, "lines")
	must.Do(t, os.WriteFile(lines, fmt.Appendf(nil, "{\"session_key\": %q}\n%s\n", lie, lie), 0o600))
	for _, args := range [][]string{
		{"build", "--store", store},
		{"keys", "create", "--name", "A", "--tier", "pro", "--store", store},
		{"operators", "add", "anna", "--role", "operate", "--store", store},
		{"webhooks", "add", "https://example.org/hook", "--store", store, "--webhook-master-file", lines, "--yes"},
		{"settings", "set", "--model", "r2", "--yes", "--store", store},
	} {
		var out bytes.Buffer
		if status := run(t.Context(), args, &out, &out); status != exitDone {
			t.Fatalf("%v: %d %s", args, status, &out)
		}
	}
	key := gridcastKey(t, dir)
	withLies(t, filepath.Join(dir, "store"))
	http := func(status, head, body string) string {
		return "http://" + liar(t, "HTTP/1.1 "+status+"\r\nConnection: close\r\n"+head+"\r\n"+body)
	}
	xml := `<?xml version="1.0"?><Error><Code>Odd` + "\u202e" + `</Code><Message>no` + "\u009b31m\u202e\nok  all is well" + `</Message></Error>`
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	s3 := "s3://bucket?addressing=path&region=us-east-1&endpoint=" + http("400 Bad\u009b", "Content-Type: application/xml\r\n", xml)
	said := `{"detail":"\u001b[2J\u202e\nok  all is well"}`
	commands := [][]string{
		{"verify", http("500 \x1b[2J\u202eno", "", lie) + "/api/v1/standings", "--key", key},
		{"verify", http("200 OK", "", lie) + "/api/v1/standings", "--key", key},
		{"source", "pull", "--store", "dir:" + filepath.Join(dir, "fresh"), "--source", "jolpica=" + http("403 \x1b[2J\u202eno", "Content-Type: application/json\r\n", said)},
		{"status", "--store", "dir:" + filepath.Join(dir, "fresh"), "--edges", http("200 OK", "", said)},
		{"doctor", "edge", "--store", store, "--redis", "redis://" + liar(t, "-ERR \x1b[2J\u202e\u009b31m\r\n")},
		{"live", "push", lines, "--store", store},
		{"status", "--store", "dir:" + filepath.Join(dir, "fresh"), "--edges", "http://edge:sesame@host:port"},
		{"doctor", "edge", "--store", "s3://bucket?endpoint=https://edge:sesame@127.0.0.1:1"},
		{"doctor", "edge", "--store", "edge:sesame@127.0.0.1:1"},
	}
	for _, one := range []string{"keys list", "operators list", "webhooks list", "settings show", "snapshots list", "snapshots show", "snapshots verify", "snapshots repair", "snapshots prune", "archive list", "results list", "rounds list", "ledger list", "ledger audit", "source check", "championship list", "doctor serve", "doctor scheduler", "status"} {
		for _, at := range []string{store, s3} {
			commands = append(commands, append(strings.Fields(one), "--store", at))
		}
	}
	for _, args := range commands {
		for _, more := range [][]string{nil, {"--json"}} {
			var out, complaint bytes.Buffer
			args := append(args, more...)
			run(t.Context(), args, &out, &complaint)
			text := out.String() + complaint.String()
			if strings.ContainsAny(text, "\x1b\a\r\u202e\u009b\x7f") || strings.Contains("\n"+text, "\nok  all is well") || strings.Contains(text, "sesame") {
				t.Errorf("gridcast %s: %q", strings.Join(args, " "), text)
			}
		}
	}
}

// gridcastKey makes a signing key and returns its verifier key.
func gridcastKey(t *testing.T, dir string) string {
	t.Helper()
	var out bytes.Buffer
	if status := run(t.Context(), []string{"signing", "new", filepath.Join(dir, "sign.key")}, &out, &out); status != exitDone {
		t.Fatal(out.String())
	}
	return strings.TrimSpace(out.String())
}
