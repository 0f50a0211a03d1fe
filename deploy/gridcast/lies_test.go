package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gridcast/deploy/must"
)

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
// terminal as a command, and none begins a line of its own.
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
		{"status", "--store", store, "--edges", http("200 OK", "", said)},
		{"doctor", "edge", "--store", store, "--redis", "redis://" + liar(t, "-ERR \x1b[2J\u202e\u009b31m\r\n")},
		{"live", "push", lines, "--store", store},
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
			if strings.ContainsAny(text, "\x1b\a\r\u202e\u009b\x7f") || strings.Contains("\n"+text, "\nok  all is well") {
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
