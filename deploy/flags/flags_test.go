package flags_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/flags"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
)

// TestWrongFlags compares the messages about wrong flags with testdata/messages.txt.
func TestWrongFlags(t *testing.T) {
	clocked := func(f flags.Clock) error { _, err := f.Race(); return err }
	polled := func(f flags.Sources) error { _, err := f.Upstreams(true, "test"); return err }
	configured := func(f flags.Edge) error { _, err := f.Config(); return err }
	ruled := func(f flags.Builder) error { _, err := f.Policy(); return err }
	var b strings.Builder
	for _, test := range []struct {
		flags string
		err   error
	}{
		{"--race-clock soon", clocked(flags.Clock{RaceClock: "soon"})},
		{"--now and --race-clock", clocked(flags.Clock{Now: time.Unix(1, 0), RaceClock: "x"})},
		{"--source ergast", polled(flags.Sources{Source: []string{"ergast"}})},
		{"--source without a name", polled(flags.Sources{Source: []string{"https://user:secret@host/?key=secret"}})},
		{"--source of another name", polled(flags.Sources{Source: []string{"ergast=https://user:secret@host"}})},
		{"--source without https", polled(flags.Sources{Source: []string{"f1db=user:secret@host"}})},
		{"--source with a wrong port", polled(flags.Sources{Source: []string{"f1db-release=https://user:secret@host:port"}})},
		{"--source with parameters", polled(flags.Sources{Source: []string{"jolpica=https://user:secret@host/?key=secret"}})},
		{"--source f1db twice", polled(flags.Sources{Source: []string{"f1db", "f1db=http://127.0.0.1:1"}})},
		{"--accept-terms alone", polled(flags.Sources{AcceptTerms: []string{"jolpica"}})},
		{"--trusted-proxies without a length", configured(flags.Edge{Listen: "127.0.0.1:0", TrustedProxies: []string{"10.0.0.0"}})},
		{"--auto-verify-after -1h", ruled(flags.Builder{Model: "v2", AutoVerifyAfter: -time.Hour})},
		{"--auto-revise-after -1h", ruled(flags.Builder{Model: "v2", AutoReviseAfter: -time.Hour})},
		{"--model crystal-ball", ruled(flags.Builder{Model: "crystal-ball"})},
	} {
		fmt.Fprintf(&b, "%s\t%v\n", test.flags, test.err)
	}
	golden.File(t, "testdata/messages.txt", b.String())
}

// TestUpstreams checks which sources a command polls, and which of them are only compared.
func TestUpstreams(t *testing.T) {
	for _, test := range []struct {
		name  string
		flags flags.Sources
		real  bool
		want  string
	}{
		{name: "the default of a real ledger", real: true, want: "f1db"},
		{name: "a simulated ledger has no news", want: ""},
		{name: "none", flags: flags.Sources{NoSources: true}, real: true, want: ""},
		{name: "a named one although the ledger is simulated", flags: flags.Sources{Source: []string{"f1db"}, NoSources: true}, want: "f1db"},
		{name: "non-commercial terms", flags: flags.Sources{Source: []string{"jolpica", "f1db"}}, real: true, want: "jolpica (compared) f1db"},
		{name: "accepted terms", flags: flags.Sources{Source: []string{"jolpica"}, AcceptTerms: []string{"jolpica"}}, real: true, want: "jolpica"},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstreams, err := test.flags.Upstreams(test.real, "test")
			var got []string
			for _, u := range upstreams {
				got = append(got, u.Name())
				if u.CheckOnly {
					got = append(got, "(compared)")
				}
			}
			text := strings.Join(got, " ")
			must.Hold(t, err == nil && text == test.want, "got %q, %v; want %q", text, err, test.want)
		})
	}
}

// TestClock checks that a process on another clock than the real one writes only simulated ledgers, and that
// race time given with --now stands still.
func TestClock(t *testing.T) {
	t.Setenv("GRIDCAST_RACE_CLOCK", "")
	system, err := flags.Clock{}.Race()
	if err != nil || flags.LedgerKind(system) != ledger.Real {
		t.Errorf("no flag: got a %s ledger, %v", flags.LedgerKind(system), err)
	}
	start := time.Date(2024, 7, 28, 12, 0, 0, 0, time.UTC)
	fixed := flags.Clock{Now: start}
	c, err := fixed.Race()
	if err != nil || flags.LedgerKind(c) != ledger.Simulated || !fixed.Instant(c).Equal(start) {
		t.Errorf("--now: got a %s ledger at %s, %v", flags.LedgerKind(c), fixed.Instant(c), err)
	}
}

// TestToken checks that the first start makes a private token, which later starts read.
func TestToken(t *testing.T) {
	f := flags.Console{OperatorTokenFile: filepath.Join(t.TempDir(), "new", "token")}
	made := must.Get(f.Token())(t)
	again, err := f.Token()
	must.Hold(t, err == nil && again.Value() == made.Value(), "read again: %v, want the same token", err)
	if info, err := os.Stat(f.OperatorTokenFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	for try := range 20 { // processes that start at once have one token
		f := flags.Console{OperatorTokenFile: filepath.Join(t.TempDir(), strconv.Itoa(try))}
		var starting sync.WaitGroup
		for range 8 {
			starting.Go(func() { must.Succeed(t, "one of eight starts", must.Err(f.Token())) })
		}
		starting.Wait()
	}
	must.Do(t, os.WriteFile(f.OperatorTokenFile, []byte("short\n"), 0o600))
	if got, err := f.Token(); err == nil {
		t.Errorf("a short token is accepted: %q", got.Value())
	}
}

// TestGiven checks that a flag counts as given on the command line and in the environment.
func TestGiven(t *testing.T) {
	s := terminal.New(nil, nil)
	s.Given = map[string]bool{"model": true}
	t.Setenv("GRIDCAST_AUTO_VERIFY_AFTER", "1h")
	for flag, want := range map[string]bool{"model": true, "auto-verify-after": true, "auto-revise-after": false} {
		must.Equal(t, fmt.Sprintf("--%s", flag), want, flags.Given(s, flag))
	}
}
