package servers

import (
	"bytes"
	"net"
	"strconv"
	"testing"
	"time"

	"gridcast/builder/season"
	"gridcast/deploy/flags"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
)

// A visitor has ten minutes of real time to verify the result, at every speed.
func TestVisitorHasTenMinutes(t *testing.T) {
	const speed, minutes = 6000, 10 * time.Minute
	w := Weekend{Round: season.Round{Start: time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)}}
	must.Hold(t, demoVerifiesAfter == minutes, "a demo waits %s for its visitor, want %s", demoVerifiesAfter, minutes)
	if events := w.events(speed * demoVerifiesAfter); events[3].at.Sub(events[2].at) != speed*minutes {
		t.Errorf("the result is verified by itself %s after the race, want ten minutes of real time", events[3].at.Sub(events[2].at))
	}
}

// A default port that is in use makes way for the next free one, and the demo says so. A port that the
// caller named does not.
func TestDemoTakesNextPorts(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }()
	busy := listener.Addr().String()
	port := func(address string) int {
		_, text := must.Get2(net.SplitHostPort(address))(t)
		n := must.Get(strconv.Atoi(text))(t)
		return n
	}

	var said bytes.Buffer
	c := Serve{Edge: flags.Edge{Listen: busy}, Console: flags.Console{OperatorListen: busy}}
	must.Do(t, c.choosePorts(t.Context(), terminal.New(&bytes.Buffer{}, &said)))
	if api, console := port(c.Listen), port(c.OperatorListen); api <= port(busy) || console <= api {
		t.Errorf("got ports %d and %d after %s, want two higher ones", api, console, busy)
	}
	golden.Sentence(t, "ports in use", said.String(), busy, "BUSY", c.Listen, "API", c.OperatorListen, "CONSOLE")

	c.Listen = busy
	s := terminal.New(&bytes.Buffer{}, &said)
	s.Given = map[string]bool{"listen": true}
	golden.Sentence(t, "a named port in use", c.choosePorts(t.Context(), s), busy, "BUSY")
	must.Equal(t, "the named port", busy, c.Listen)
}
