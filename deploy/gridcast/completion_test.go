package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bash itself completes command lines by what gridcast prints for it.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("no bash here: %v", err)
	}
	script := completionFile(t, "bash")
	complete := func(line string) []string {
		words := strings.Split(line, " ")
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = quoteShell(w)
		}
		output, err := exec.Command(bash, "-c", fmt.Sprintf("source %s\nCOMP_WORDS=(%s) COMP_CWORD=%d\n_gridcast\nprintf '%%s\\n' \"${COMPREPLY[@]}\"",
			script, strings.Join(quoted, " "), len(words)-1)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, output)
		}
		return strings.Fields(string(output))
	}
	for line, want := range map[string][]string{
		"gridcast sn":                              {"snapshots"},
		"gridcast snapshots ro":                    {"rollback"},
		"gridcast snapshots rollback 3 --rea":      {"--reason"},
		"gridcast archive import f":                {"f1db"},
		"gridcast serve --express-lane ":           {"on", "off"},
		"gridcast serve --redis-mode s":            {"strict"},
		"gridcast keys create --name ":             nil, // whatever it is, it is no command
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
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
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
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// zsh and fish find no fault with theirs, where they are.
func TestOtherShellsReadTheirs(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		file := completionFile(t, shell)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"snapshots", "rollback", "express-lane"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not complete %s", shell, want)
			}
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not on this machine: it has not read what is printed for it", shell)
			continue
		}
		if output, err := exec.Command(program, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, output)
		}
	}
}
