package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
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
		must.Hold(t, strings.Contains(string(text), program) && strings.Contains(string(text), "-l tls-cert -r -F") == (shell == "fish"), "%s: got %s", shell, text)
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not on this machine: it has not read its lines", shell)
			continue
		}
		output, err := exec.Command(path, append(check, file)...).CombinedOutput()
		must.Hold(t, err == nil && (shell != "bash" || strings.Contains(string(output), "-o default")), "%s: %v\n%s", shell, err, output)
	}
}
