package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridcast/schemas/docs"
)

// runSamples runs the programs of the documentation as their readers do, against a running service.
// One whose language is not on the machine is skipped.
func runSamples(t *testing.T, url, key string) {
	commands := map[string][]string{"curl": {"sh"}, "JavaScript": {"node"}, "Python": {"python3"}, "Go": {"go", "run"}}
	for _, s := range docs.Samples() {
		t.Run(s.Language, func(t *testing.T) {
			command := commands[s.Language]
			for _, program := range []string{command[0], strings.ToLower(s.Language)} {
				if _, err := exec.LookPath(program); err != nil && (program == command[0] || program == "curl") {
					t.Skipf("no %s on this machine", program)
				}
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, s.File), []byte(s.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(command[0], append(command[1:], s.File)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GRIDCAST_URL="+url, "GRIDCAST_KEY="+key, "GOFLAGS=")
			printed, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, printed)
			}
			if s.Language == "curl" {
				calendar, err := os.ReadFile(filepath.Join(dir, "calendar.json"))
				if err != nil {
					t.Fatal(err)
				}
				printed = append(printed, calendar...)
			}
			for _, want := range []string{"Las Vegas Grand Prix", "Bahrain Grand Prix"} {
				if !strings.Contains(string(printed), want) {
					t.Errorf("it printed no %s:\n%s", want, printed)
				}
			}
		})
	}
}
