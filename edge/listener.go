package edge

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"gridcast/snapshots/retry"
	"gridcast/snapshots/watch"
)

// retryListener continues after passing faults: a client that left before accept, or a system
// without descriptors or memory for another connection. The server would stop at each of them.
type retryListener struct {
	net.Listener
	log *slog.Logger
}

func (l retryListener) Accept() (net.Conn, error) {
	backoff := retry.Rule{First: 5 * time.Millisecond, Longest: time.Second}
	for failures := 1; ; failures++ {
		c, err := l.Listener.Accept()
		if err == nil || !passes(err) {
			return c, err
		}
		pause := backoff.Full(failures)
		l.log.Warn("connection not accepted", "err", err, "again_in", pause)
		time.Sleep(pause)
	}
}

func passes(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains([]syscall.Errno{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}, errno)
}

// connectionBound returns the possible number of open connections: the configured number, or fewer,
// so that the store, the cache, Redis and the operators find descriptors too.
func connectionBound(configured int, descriptors uint64) int {
	reserved := min(256, descriptors/2)
	return int(min(uint64(configured), max(1, descriptors-reserved)))
}

// descriptors returns the number of files that the process may open.
func descriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("look at the limit of open files: %w", err)
	}
	return limit.Cur, nil
}

// certificate is the pair of PEM files, read again when they change. An unreadable pair, such as a
// half-written one, leaves the last good one in place.
type certificate struct {
	certFile, keyFile string
	config            *tls.Config // holds the session ticket keys of the pair
	log               *slog.Logger
	pair              atomic.Pointer[tls.Certificate]

	// Owned by the goroutine of follow, once it runs.
	watcher *watch.Watcher
	seen    [2]string // texts of the files of pair, or of a refused pair
	period  int64     // of the ticket keys, Unix time in ticketPeriods
}

func newCertificate(certFile, keyFile string, config *tls.Config, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, config: config, log: log, watcher: watch.New(log, certFile, keyFile)}
	c.watcher.Settle = 50 * time.Millisecond
	_, err := c.load()
	if err == nil {
		err = c.renewTickets(time.Now())
	}
	if err != nil {
		c.watcher.Close()
		return nil, err
	}
	return c, nil
}

// follow reads the pair again when it changes, until ctx ends. It looks at least once a minute, which also renews the
// keys of session tickets in time.
func (c *certificate) follow(ctx context.Context) {
	defer c.watcher.Close()
	for c.watcher.Wait(ctx, time.Minute) == nil {
		now := time.Now()
		changed, err := c.load()
		switch {
		case err != nil:
			c.log.Error("certificate not reloaded, the last one stays", "err", err)
		case changed:
			c.log.Info("certificate reloaded", "file", c.certFile)
		}
		if changed || now.Unix()/ticketPeriod != c.period {
			if err := c.renewTickets(now); err != nil {
				c.log.Error("keys of session tickets not renewed, the last ones stay", "err", err)
			}
		}
	}
}

// ticketPeriod is the life of a ticket key in seconds. A ticket is accepted for one to two periods. The lifetime that
// clients see in a ticket is seven days, because the TLS library has no setting for it.
const ticketPeriod = 6 * 60 * 60

// renewTickets derives the keys of session tickets from the private key, the certificate and the
// period. So edges with the same certificate resume one another's sessions, also after a restart, no
// session outlives its certificate, and the store holds no secret with which its readers could
// impersonate the service. The edge makes tickets with the present key. It also accepts the last one,
// and the next one, from an edge whose clock is ahead.
func (c *certificate) renewTickets(now time.Time) error {
	c.period = now.Unix() / ticketPeriod
	tickets, err := ticketKeys(c.pair.Load(), c.period)
	if err != nil {
		return fmt.Errorf("derive keys of session tickets: %w", err)
	}
	c.config.SetSessionTicketKeys(tickets)
	return nil
}

// ticketKeys returns the keys of a period, first that of new tickets.
func ticketKeys(pair *tls.Certificate, period int64) (tickets [][32]byte, err error) {
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, err
	}
	for _, period := range []int64{period, period - 1, period + 1} {
		key, err := hkdf.Key(sha256.New, private, pair.Certificate[0], fmt.Sprintf("gridcast session tickets %d", period), 32)
		if err != nil {
			return nil, err
		}
		tickets = append(tickets, [32]byte(key))
	}
	return tickets, nil
}

// load reads the pair, and reports whether it is another one than at the last look. It returns the fault of a pair once.
func (c *certificate) load() (changed bool, err error) {
	var texts [2]string
	for i, file := range []string{c.certFile, c.keyFile} {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("read certificate: %w", err)
		}
		texts[i] = string(text)
	}
	if texts == c.seen {
		return false, nil
	}
	c.seen = texts
	pair, err := tls.X509KeyPair([]byte(texts[0]), []byte(texts[1]))
	if err != nil {
		return false, fmt.Errorf("load certificate %s: %w", c.certFile, err)
	}
	c.pair.Store(&pair)
	return true, nil
}
