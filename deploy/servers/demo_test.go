package servers

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/season"
	"gridcast/deploy/flags"
	"gridcast/deploy/terminal"
)

// A visitor has ten minutes of real time to verify the result, at every speed.
func TestVisitorHasTenMinutes(t *testing.T) {
	const speed, minutes = 6000, 10 * time.Minute
	w := Weekend{Round: season.Round{Start: time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)}}
	if demoVerifiesAfter != minutes {
		t.Errorf("a demo waits %s for its visitor, want %s", demoVerifiesAfter, minutes)
	}
	if events := w.events(speed * demoVerifiesAfter); events[3].at.Sub(events[2].at) != speed*minutes {
		t.Errorf("the result is verified by itself %s after the race, want ten minutes of real time", events[3].at.Sub(events[2].at))
	}
}

// A default port that is in use makes way for the next free one, and the demo says so. A port that the
// caller named does not.
func TestDemoTakesNextPorts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	busy := listener.Addr().String()
	port := func(address string) int {
		_, text, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	var said bytes.Buffer
	c := Serve{Edge: flags.Edge{Listen: busy}, Console: flags.Console{OperatorListen: busy}}
	if err := c.choosePorts(t.Context(), terminal.New(&bytes.Buffer{}, &said)); err != nil {
		t.Fatal(err)
	}
	if api, console := port(c.Listen), port(c.OperatorListen); api <= port(busy) || console <= api {
		t.Errorf("got ports %d and %d after %s, want two higher ones", api, console, busy)
	}
	for _, want := range []string{busy + " is in use", c.Listen, c.OperatorListen, "--listen", "--operator-listen"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("got %q, want %q in it", said.String(), want)
		}
	}

	c.Listen = busy
	s := terminal.New(&bytes.Buffer{}, &said)
	s.Given = map[string]bool{"listen": true}
	if err := c.choosePorts(t.Context(), s); err == nil || !strings.Contains(err.Error(), "--listen") || c.Listen != busy {
		t.Errorf("a named port that is in use: got %v and %s", err, c.Listen)
	}
}
