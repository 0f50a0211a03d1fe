package edge

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// retryListener is a listener that goes on after what passes: a client that has left before it was
// accepted, and a system that has run out of descriptors or memory for another connection. To
// the server each of them would be the end.
type retryListener struct {
	net.Listener
	log *slog.Logger
}

// retrying returns the listener as a retryListener, which is a socket if the listener is.
func retrying(listener net.Listener, log *slog.Logger) net.Listener {
	retry := retryListener{listener, log}
	if socket, ok := listener.(syscall.Conn); ok {
		return struct {
			retryListener
			syscall.Conn
		}{retry, socket}
	}
	return retry
}

// The pauses after a failure: longer with each in a row.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
)

func (l retryListener) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		c, err := l.Listener.Accept()
		if err == nil || !passes(err) {
			return c, err
		}
		l.log.Warn("connection not accepted", "err", err, "again_in", pause)
		time.Sleep(pause)
	}
}

func passes(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// recorder is a listener whose connections remember how each request was written: fasthttp forgets
// how the request line ended, and the empty line after no fields.
type recorder struct{ net.Listener }

func (l recorder) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recorded{Conn: c}, nil
}

// recorded belongs to the goroutine in which the server reads and answers.
type recorded struct {
	net.Conn
	read []byte // by the server, from the beginning of a request on
	used int    // how much of that is the request that head has returned
}

func (c *recorded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read = append(c.read, p[:n]...)
	return n, err
}

// head returns the head of the request that the server has read, from its first line to the empty
// one, until the next call. It must be called once for each request. Where a request is not sound,
// which its first lines say, what it returns for the next one is undefined.
func (c *recorded) head(h *fasthttp.RequestHeader) []byte {
	c.read = append(c.read[:0], c.read[c.used:]...)
	start := 0
	for bytes.HasPrefix(c.read[start:], []byte("\r\n")) { // which the server has skipped
		start += 2
	}
	end := start + bytes.IndexByte(c.read[start:], '\n') + 1
	if fields := h.RawHeaders(); len(fields) > 0 {
		end += len(fields)
	} else {
		end += bytes.IndexByte(c.read[end:], '\n') + 1
	}
	c.used = min(end+max(h.ContentLength(), 0), len(c.read))
	return c.read[start:end]
}

// connectionBound returns how many connections may be open: as many as configured, but so few
// that the store, the cache, Redis and the operators find descriptors too.
func connectionBound(configured int, descriptors uint64) int {
	reserved := min(256, descriptors/2)
	return int(min(uint64(configured), max(1, descriptors-reserved)))
}

// descriptors returns how many files the process may have open.
func descriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("look at the limit of open files: %w", err)
	}
	return limit.Cur, nil
}

// certificate is the pair of PEM files, read again when they change. A pair that cannot be
// read, such as one half written, leaves the last good one in place.
type certificate struct {
	certFile, keyFile string
	config            *tls.Config // whose keys of session tickets follow the pair
	log               *slog.Logger

	mu      sync.Mutex // guards what follows
	pair    *tls.Certificate
	changed [2]time.Time // modification times of the files of pair, or of one refused
	day     int64        // of the ticket keys, Unix time in days
}

func newCertificate(certFile, keyFile string, config *tls.Config, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, config: config, log: log}
	if err := c.load(); err != nil {
		return nil, err
	}
	if err := c.renewTickets(time.Now()); err != nil {
		return nil, err
	}
	return c, nil
}

// get implements tls.Config.GetCertificate. Looking at the files in a handshake needs no
// goroutine, and a handshake costs far more than two calls of stat.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	changed, err := c.modified()
	renewed := err == nil && changed != c.changed
	if renewed {
		if err := c.load(); err != nil {
			c.log.Error("certificate not reloaded, the last one stays", "err", err)
		} else {
			c.log.Info("certificate reloaded", "file", c.certFile)
		}
	}
	if renewed || now.Unix()/secondsADay != c.day {
		if err := c.renewTickets(now); err != nil {
			c.log.Error("keys of session tickets not renewed, the last ones stay", "err", err)
		}
	}
	return c.pair, nil
}

const secondsADay = 24 * 60 * 60

// renewTickets derives the keys of session tickets from the certificate's private key and the
// day. So edges with the same certificate resume one another's sessions, also after a restart,
// and nothing secret lies in the store that anybody who may read it could pass themselves off
// as the service with. Tickets are made with the key of today; those of yesterday are taken, and
// of tomorrow, from an edge whose clock is ahead.
func (c *certificate) renewTickets(now time.Time) error {
	private, err := x509.MarshalPKCS8PrivateKey(c.pair.PrivateKey)
	if err != nil {
		return fmt.Errorf("derive keys of session tickets: %w", err)
	}
	c.day = now.Unix() / secondsADay
	var tickets [][32]byte
	for _, day := range []int64{c.day, c.day - 1, c.day + 1} {
		key, err := hkdf.Key(sha256.New, private, nil, fmt.Sprintf("gridcast session tickets %d", day), 32)
		if err != nil {
			return fmt.Errorf("derive keys of session tickets: %w", err)
		}
		tickets = append(tickets, [32]byte(key))
	}
	c.config.SetSessionTicketKeys(tickets)
	return nil
}

// expires returns when the certificate in use ends.
func (c *certificate) expires() time.Time {
	pair, _ := c.get(nil) // which fails never
	return pair.Leaf.NotAfter
}

func (c *certificate) load() error {
	changed, err := c.modified()
	if err != nil {
		return err
	}
	c.changed = changed
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("load certificate %s: %w", c.certFile, err)
	}
	c.pair = &pair
	return nil
}

func (c *certificate) modified() (times [2]time.Time, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return times, fmt.Errorf("look at certificate: %w", err)
		}
		times[i] = info.ModTime()
	}
	return times, nil
}
