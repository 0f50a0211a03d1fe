package main

import (
	"bytes"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
)

// TestInitAsks checks that init asks only for values that no flag gives. An empty answer keeps the shown
// value, and the end of the answers is an error.
func TestInitAsks(t *testing.T) {
	c := initCmd{Client: "first client"}
	c.Store, c.Listen, c.Redis = "dir:.var/store", "127.0.0.1:8080", "redis://given:6379"
	s := &terminal.Streams{Given: map[string]bool{"redis": true}}
	var shown bytes.Buffer
	must.Do(t, c.ask(s, strings.NewReader("dir:/srv/gridcast\n\nExample Media\n"), &shown))
	must.Hold(t, c.Store == "dir:/srv/gridcast" && c.Listen == "127.0.0.1:8080" && c.Redis == "redis://given:6379" && c.Client == "Example Media", "got %q, %q, %q, %q", c.Store, c.Listen, c.Redis, c.Client)
	golden.Sentence(t, "questions of init", shown.String())
	must.Fail(t, "an end of the answers is taken for answers", c.ask(s, strings.NewReader("dir:a\n"), &shown))
}
