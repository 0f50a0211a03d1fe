package express_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gridcast/edge/express"
)

// overTLS selects TLS for the lanes of the tests.
var overTLS bool

// TestOverTLS runs the other tests again with TLS, except TestMaxConnections, whose
// last client would wait for its handshake.
func TestOverTLS(t *testing.T) {
	overTLS = true
	t.Cleanup(func() { overTLS = false })
	for name, test := range map[string]func(*testing.T){
		"HandedOffAndReturned": TestHandedOffAndReturned, "SlowReader": TestSlowReader, "SlowReaderAfterASwap": TestSlowReaderAfterASwap,
		"PipelinedLarge": TestPipelinedLarge, "ReaderThatStops": TestReaderThatStops, "Waiting": TestWaiting, "HangUp": TestHangUp,
		"OthersHaveTheirTurn": TestOthersHaveTheirTurn, "DrainTellsTheServer": TestDrainTellsTheServer,
		"DrainGivesUp": TestDrainGivesUp, "ShortConnections": TestShortConnections, "LastRequest": TestLastRequest,
		"LastRequestOfASlowReader": TestLastRequestOfASlowReader, "MoreAfterTheLastRequest": TestMoreAfterTheLastRequest,
	} {
		t.Run(name, test)
	}
}

// TestRecords splits requests into records of all sizes and packs several of them into one.
func TestRecords(t *testing.T) {
	overTLS = true
	t.Cleanup(func() { overTLS = false })
	s := start(t, &answers{size: 10}, nil)
	c := s.dial()
	r := bufio.NewReader(c)
	all := strings.Repeat(get("/lane"), 4) + get("/server") + strings.Repeat(get("/lane"), 3)
	for size := 1; size <= len(all); size += 7 {
		for rest := all; len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := io.WriteString(c, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		for i := range 8 {
			if i == 4 {
				expect(t, r, "server", len("/server"))
			} else {
				expect(t, r, "", 10)
			}
		}
	}
	before := s.lane.Answered()
	for range 10 { // a record for each, all of which arrive at once
		for range 20 {
			fmt.Fprint(c, get("/lane"))
		}
		for range 20 {
			expect(t, r, "lane", 10)
		}
	}
	if got := s.lane.Answered() - before; got != 200 {
		t.Errorf("the lane answered %d of 200 requests", got)
	}
}

// TestNoHandshake has clients that send nothing, or something other than TLS: they are closed, and
// delay no other client.
func TestNoHandshake(t *testing.T) {
	overTLS = true
	t.Cleanup(func() { overTLS = false })
	const patience = 300 * time.Millisecond
	s := start(t, &answers{size: 10}, func(c *express.Config) { c.ReadTimeout = patience })
	for _, sent := range []string{"", get("/lane"), "\x16\x03\x01\x02\x00"} {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
	}
	inTime(t, patience, func() (time.Duration, error) {
		began := time.Now()
		c, err := dial(s.address)
		if err != nil {
			return time.Since(began), err
		}
		t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, get("/lane"))
		took := time.Since(began)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return took, err
		}
		if got := response.Header.Get("Server"); got != "lane" {
			return took, fmt.Errorf("got a response of %q, want the lane's", got)
		}
		return took, response.Body.Close()
	})
	s.await("only the one that speaks TLS is open", func() bool { return s.lane.Open() <= 1 })
}

func dial(address string) (net.Conn, error) {
	if overTLS {
		return tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	}
	return net.Dial("tcp", address)
}

func serverTLS(t *testing.T) *tls.Config {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}, DynamicRecordSizingDisabled: true,
	}
}
