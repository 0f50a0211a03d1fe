package redislimit

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// flights is how many batches of questions may wait for Redis at once, each on its own connection.
const flights = 8

// errShifted means that an answer belongs to another question.
var errShifted = errors.New("redis answered another question")

// client asks Redis in batches: questions that arrive during a round trip travel together in the next one. go-redis
// holds the connections, signs in, and follows the redirects of a cluster. Its own batches, AutoPipeline, are
// experimental. It never repeats a question, because Redis may have counted one whose answer is lost. The first redirect
// of a single server shows that the server is part of a cluster.
type client struct {
	servers
	timeout time.Duration // with an answer
	number  int64         // of the first question; random, so that answers to other edges differ

	mu      sync.Mutex // guards the following
	redis   redis.UniversalClient
	cluster bool
	asked   int64 // questions so far
	waiting []*question
	flying  int
}

// question is a command of a caller.
type question struct {
	*redis.Cmd
	done chan struct{} // closed with the answer
}

// NoRetry overrides the method of the command: go-redis must not send it twice.
func (*question) NoRetry() bool { return true }

func newClient(s servers, timeout time.Duration) *client {
	logging.Disable()                                                        // errors are returned, too
	c := &client{servers: s, timeout: timeout, number: rand.Int64N(1 << 52)} //nolint:gosec // G404: it need not be secret
	c.cluster = len(s.addresses) > 1 && s.masterSet == ""
	c.redis = s.open(c.cluster)
	return c
}

// close ends all connections. Later questions fail.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.redis.Close()
}

// renew replaces all connections of used, if that is still the present client.
func (c *client) renew(used redis.UniversalClient, cluster bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.redis != used {
		return
	}
	_ = used.Close()
	c.cluster = c.cluster || cluster
	c.redis = c.open(c.cluster)
}

// next returns the number of a question, and the connections on which it is asked.
func (c *client) next() (used redis.UniversalClient, number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.redis, c.number + c.asked
}

// do sends a command, and returns the answer. A server that turns out to be part of a cluster is asked again as one.
// Connections are replaced if their answers are shifted or their user lost a right or a password.
func (c *client) do(ctx context.Context, words ...any) (any, error) {
	for again := true; ; again = false {
		q := &question{redis.NewCmd(ctx, words...), make(chan struct{})}
		c.mu.Lock()
		used := c.redis
		c.waiting = append(c.waiting, q)
		takeOff := c.flying < flights
		if takeOff {
			c.flying++
		}
		c.mu.Unlock()
		if takeOff {
			go c.fly() //nolint:gosec // G118: it asks for other callers, too
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		reply, err := q.Result()
		_, nodes := used.(*redis.ClusterClient)
		switch {
		case err == nil:
			return reply, nil
		case !nodes && redis.HasErrorPrefix(err, "MOVED"):
			c.renew(used, true)
			if again {
				continue
			}
		case nodes:
			used.(*redis.ClusterClient).ReloadState(ctx) // another server may have taken over
		}
		for _, kind := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "READONLY"} {
			if strings.Contains(err.Error(), kind) {
				c.renew(used, false)
			}
		}
		return nil, err
	}
}

// fly sends batches as long as questions wait.
func (c *client) fly() {
	for {
		runtime.Gosched() // lets questions join that are about to
		c.mu.Lock()
		batch, pipe := c.waiting, c.redis.Pipeline()
		c.waiting = nil
		if len(batch) == 0 {
			c.flying--
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		for _, q := range batch {
			_ = pipe.Process(ctx, q) // it only queues
		}
		_, err := pipe.Exec(ctx)
		cancel()
		for _, q := range batch {
			if q.Val() == nil && q.Err() == nil { // go-redis leaves it out if Redis refuses to sign in
				q.SetErr(err)
			}
			close(q.done)
		}
	}
}

// servers holds the addresses of Redis and the way to sign in.
type servers struct {
	addresses      []string // of a server, of servers of a cluster, or of sentinels
	masterSet      string   // the master that sentinels know; empty: there are none
	user, password string
	passwordFile   string // instead of password, read for each connection; or empty
	db             int
	tls            *tls.Config // nil: without
}

// parse reads the URL of a configuration. Its errors do not show the password.
func parse(text string, roots *x509.CertPool) (servers, error) {
	want := errors.New("limits in Redis: want a URL such as redis://host:6379")
	u, err := url.Parse(text)
	if err != nil {
		return servers{}, want
	}
	q := u.Query()
	s := servers{masterSet: q.Get("master_set"), user: u.User.Username()}
	s.password, _ = u.User.Password()
	for _, host := range append([]string{u.Host}, q["addr"]...) {
		address := url.URL{Host: host}
		s.addresses = append(s.addresses, net.JoinHostPort(cmp.Or(address.Hostname(), "localhost"), cmp.Or(address.Port(), "6379")))
	}
	switch u.Scheme {
	case "redis", "valkey":
	case "rediss", "valkeys":
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: cmp.Or(u.Hostname(), "localhost")}
	default:
		return servers{}, want
	}
	if s.db, err = strconv.Atoi(cmp.Or(q.Get("db"), strings.Trim(u.Path, "/"), "0")); err != nil {
		return servers{}, want
	}
	return s, nil
}

// credentials returns user and password as they are now.
func (s *servers) credentials(context.Context) (user, password string, err error) {
	if s.passwordFile == "" {
		return s.user, s.password, nil
	}
	text, err := os.ReadFile(s.passwordFile)
	if err == nil && strings.TrimSpace(string(text)) == "" {
		err = fmt.Errorf("%s is empty, want the password of Redis", s.passwordFile)
	}
	return s.user, strings.TrimSpace(string(text)), err
}

// open returns a client of go-redis without connections.
func (s *servers) open(cluster bool) redis.UniversalClient {
	opts := &redis.UniversalOptions{
		Addrs: s.addresses, DB: s.db, IsClusterMode: cluster, CredentialsProviderContext: s.credentials,
		Dialer: s.dial, DialTimeout: dialTimeout, DialerRetries: 1,
		MaxRetries: -1, MinRetryBackoff: -1, // redirects follow at once
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		PoolSize: flights, PipelinePoolSize: -1, ReadBufferSize: bufferSize, WriteBufferSize: bufferSize,
	}
	if s.masterSet != "" {
		opts.Addrs, opts.Dialer = s.addresses[:1], s.dialMaster
	}
	return redis.NewUniversalClient(opts)
}

// dial connects to a server.
func (s *servers) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if s.tls != nil {
		dialer = &tls.Dialer{Config: s.tls}
	}
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if plain, ok := c.(*net.TCPConn); ok { // go-redis looks for its end before it uses an idle one
		return struct {
			*bounded
			syscall.Conn
		}{&bounded{Conn: c}, plain}, nil
	}
	return &bounded{Conn: c}, nil
}

// dialMaster connects to the master that the first sentinel with an answer names. go-redis' own client for sentinels
// is not used: an answer without an address ends its process.
func (s *servers) dialMaster(ctx context.Context, network, _ string) (net.Conn, error) {
	var faults []error
	for _, address := range s.addresses {
		user, password, err := s.credentials(ctx)
		if err != nil {
			return nil, err
		}
		sentinel := redis.NewSentinelClient(&redis.Options{
			Addr: address, Username: user, Password: password, Dialer: s.dial, DialTimeout: dialTimeout, DialerRetries: 1,
			MaxRetries: -1, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		})
		master, err := sentinel.GetMasterAddrByName(ctx, s.masterSet).Result()
		_ = sentinel.Close()
		if errors.Is(err, redis.Nil) || err == nil && len(master) != 2 {
			err = fmt.Errorf("the sentinel %s does not know the master %s", address, s.masterSet)
		}
		if err == nil {
			return s.dial(ctx, network, net.JoinHostPort(master[0], master[1]))
		}
		faults = append(faults, err)
	}
	return nil, errors.Join(faults...)
}
