package redislimit_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/redistest"
	"gridcast/edge/limit"
	"gridcast/edge/limit/redislimit"
	"gridcast/snapshots/blob/porttest"
)

// exact sends twice the limit to each of the edges and checks that the limit holds, except for
// an edge's first request of a window on a machine too busy to wait for the answer.
func exact(t *testing.T, sources []*redislimit.Source) {
	t.Helper()
	const perMinute = 60
	alone := func() (n int) {
		for _, source := range sources {
			n += int(metric(t, source, "gridcast_edge_limit_alone_total"))
		}
		return n
	}
	c, id, offset, before, allowed := &clients{perMinute: perMinute}, rand.Text(), windowStart(), alone(), 0
	for _, source := range sources {
		c.edges, c.allowed = []limit.Counter{source.Counter(id, offset)}, []int{0}
		allowed += c.take(2 * perMinute)
	}
	if early := alone() - before; allowed < perMinute || allowed > perMinute+early || early > len(sources) {
		t.Errorf("allowed %d of %d, %d of them before Redis answered", allowed, perMinute, early)
	}
}

// TestDatabaseAndPassword uses the other forms of a URL.
func TestDatabaseAndPassword(t *testing.T) {
	t.Parallel()
	redis := newServer(t, "--requirepass", "secret")
	for database, form := range map[string]string{"3": "redis://:secret@%s/3", "4": "valkey://default:secret@%s?db=4", "0": "redis://:secret@%s/"} {
		exact(t, open(t, redislimit.Patient(redislimit.Config{URL: fmt.Sprintf(form, redis.Address), Mode: redislimit.Strict}), 2))
		info, err := exec.Command("redis-cli", "-u", "redis://default:secret@"+redis.Address, "-n", database, "dbsize").Output()
		must.Hold(t, err != nil || strings.TrimSpace(string(info)) == "2", "%s: the database has %s keys, want those of the edges and the limit", form, info)
	}
}

// TestTLS has a Redis whose certificate is signed by an authority of our own.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := certificate(t, dir)
	address := porttest.Address(t)
	_, port, _ := net.SplitHostPort(address)
	newServer(t, "--tls-port", port, "--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"),
		"--tls-ca-cert-file", filepath.Join(dir, "ca.pem"), "--tls-auth-clients", "no")
	for _, mode := range []redislimit.Mode{redislimit.Strict, redislimit.Lease} {
		sources := open(t, redislimit.Patient(redislimit.Config{URL: "rediss://" + address, RootCAs: roots, Mode: mode}), 2)
		exact(t, sources)
		closeAll(sources)
	}
	for name, cfg := range map[string]redislimit.Config{
		"an unknown authority": {URL: "rediss://" + address},
		"another name":         {URL: "rediss://localhost:" + port, RootCAs: roots},
	} {
		cfg.Mode, cfg.Log = redislimit.Strict, slog.New(slog.DiscardHandler)
		source := must.Get(redislimit.Open(t.Context(), cfg))(t)
		defer source.Close()
		must.Hold(t, metric(t, source, "gridcast_edge_limit_redis_up") == 0, "%s: Redis is believed", name)
	}
}

// certificate writes an authority and a certificate for 127.0.0.1, and returns the authority.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	write := func(name, kind string, der []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		must.Do(t, err)
	}
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: authority.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, key.Public(), key)
	write("ca.pem", "CERTIFICATE", root, err)
	signed, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), key)
	write("cert.pem", "CERTIFICATE", signed, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	write("key.pem", "PRIVATE KEY", private, err)
	parsed := must.Get(x509.ParseCertificate(root))(t)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}

// TestCluster shares keys among three servers, and kills one of them.
func TestCluster(t *testing.T) {
	t.Parallel()
	const slots = 16384
	nodes := make([]*server, 3)
	for i := range nodes { // a node forgets a meeting that takes longer than the timeout, and the cluster is never whole
		nodes[i] = newServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "60000", "--cluster-require-full-coverage", "no")
	}
	for i, node := range nodes {
		node.do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1))
		host, port, _ := net.SplitHostPort(nodes[0].Address)
		node.do("CLUSTER", "MEET", host, port)
	}
	var sources []*redislimit.Source
	for _, mode := range []redislimit.Mode{redislimit.Strict, redislimit.Lease} {
		for _, node := range nodes {
			must.Until(t, "the cluster is whole", func() bool { return clusterState(t, node) == "ok" })
		}
		sources = open(t, redislimit.Patient(redislimit.Config{URL: "redis://" + nodes[0].Address + "?addr=" + nodes[1].Address, Mode: mode}), 2)
		var running sync.WaitGroup
		for i := range 30 {
			var allowed atomic.Int64
			offset := windowStart()
			for _, source := range sources {
				c := source.Counter(fmt.Sprintf("%s of %d", mode, i), offset)
				running.Go(func() {
					for range 40 {
						if c.Take(time.Now(), 20).Allowed {
							allowed.Add(1)
						}
					}
				})
			}
			running.Wait()
			got := allowed.Load()
			must.Hold(t, got <= 20+int64(len(sources)) && got >= 18 && (mode != redislimit.Strict || got == 20), "%s, key %d: allowed %d of 20", mode, i, got)
		}
		for _, node := range nodes {
			must.Hold(t, node.do("DBSIZE") != ":0", "%s: the node %s holds no key", mode, node.Address)
		}
		moving := "moving-" + string(mode)
		slot, _ := strconv.Atoi(nodes[0].do("CLUSTER", "KEYSLOT", "gridcast:limit:"+moving)[1:])
		owner := slot * 3 / slots
		next := nodes[(owner+1)%3]
		next.do("CLUSTER", "SETSLOT", strconv.Itoa(slot), "IMPORTING", nodes[owner].do("CLUSTER", "MYID"))
		nodes[owner].do("CLUSTER", "SETSLOT", strconv.Itoa(slot), "MIGRATING", next.do("CLUSTER", "MYID"))
		before := next.do("DBSIZE")
		for i := range 10 {
			d := sources[i%2].Counter(moving, windowStart()).Take(time.Now(), 20)
			must.Hold(t, d.Allowed, "%s, while a slot moves: %+v", mode, d)
		}
		after := next.do("DBSIZE")
		must.Hold(t, after != before, "%s: the key of a slot that moves is not on its new server", mode)
		if mode == redislimit.Strict {
			closeAll(sources)
		}
	}
	nodes[2].Kill()
	for i := range 30 {
		for _, source := range sources {
			allowed := 0
			c := source.Counter(fmt.Sprint("later ", i), windowStart())
			for range 40 {
				if c.Take(time.Now(), 20).Allowed {
					allowed++
				}
			}
			must.Hold(t, allowed <= 20, "without a node, key %d: one edge allowed %d of 20", i, allowed)
		}
	}
	for _, source := range sources {
		must.Until(t, "the rest of the cluster counts", func() bool { return metric(t, source, "gridcast_edge_limit_redis_up") == 1 })
	}
}

// clusterState returns a node's state of its cluster: ok when each node knows the others.
func clusterState(t *testing.T, node *server) string {
	t.Helper()
	c := must.Get(net.Dial("tcp", node.Address))(t)
	defer c.Close()
	fmt.Fprint(c, "CLUSTER INFO\r\n")
	buffer := make([]byte, 1<<12)
	n := must.Get(c.Read(buffer))(t)
	text := string(buffer[:n])
	if !strings.Contains(text, "cluster_state:ok") || !strings.Contains(text, "cluster_slots_ok:16384") {
		return text
	}
	return "ok"
}

// sentinelOf starts a sentinel of a server, which calls it limits.
func sentinelOf(t *testing.T, master *server) *server {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Address)
	address := porttest.Address(t)
	_, own, _ := net.SplitHostPort(address)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	must.Do(t, os.WriteFile(file, fmt.Appendf(nil, "port %s\nbind 127.0.0.1\nsentinel monitor limits %s %s 1\n", own, host, port), 0o600))
	return &server{redistest.Run(t, address, file, "--sentinel"), t}
}

func closeAll(sources []*redislimit.Source) {
	for _, source := range sources {
		source.Close()
	}
}

// TestFailover ends the master, and has the sentinel name another one: the edges find it, and count there exactly.
func TestFailover(t *testing.T) {
	t.Parallel()
	master, next := newServer(t), newServer(t)
	sentinel := sentinelOf(t, master)
	sources := open(t, redislimit.Patient(redislimit.Config{URL: "redis://" + sentinel.Address + "?master_set=limits", Mode: redislimit.Strict}), 2)
	exact(t, sources)
	master.Kill()
	host, port, _ := net.SplitHostPort(next.Address)
	sentinel.do("SENTINEL", "REMOVE", "limits")
	sentinel.do("SENTINEL", "MONITOR", "limits", host, port, "1")
	for i, source := range sources {
		must.Until(t, "the edge counts in the new master", func() bool {
			source.Counter(fmt.Sprint("probe ", i), 0).Take(time.Now(), 1e6)
			return source.Fault() == "" && metric(t, source, "gridcast_edge_limit_edges") == 2
		})
	}
	exact(t, sources)
}

// TestPasswordChanges gives the user another password, and takes a right from it, while two edges count.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	redis := newServer(t, append(strings.Fields("--user edge on >one ~gridcast:* -@all"),
		strings.Fields("+evalsha +eval +time +hmget +hset +expire +zadd +zremrangebyscore +zcard +zrem")...)...)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	}
	write("one")
	config := redislimit.Patient(redislimit.Config{URL: "redis://edge@" + redis.Address, PasswordFile: file, Mode: redislimit.Strict})
	sources := open(t, config, 2)
	exact(t, sources)
	faulty := func(what string) {
		t.Helper()
		for _, source := range sources {
			must.Until(t, what, func() bool { return source.Fault() != "" })
		}
	}
	counting := func(what string) {
		t.Helper()
		for _, source := range sources {
			must.Until(t, what, func() bool { return source.Fault() == "" && metric(t, source, "gridcast_edge_limit_edges") == 2 })
		}
		exact(t, sources)
	}
	redis.do("ACL", "SETUSER", "edge", "<one", ">two")
	redis.do("CLIENT", "KILL", "USER", "edge")
	faulty("the old password no longer counts")
	write("two")
	counting("the new password counts")
	redis.do("ACL", "SETUSER", "edge", "-zadd")
	faulty("a right is missing")
	redis.do("ACL", "SETUSER", "edge", "+zadd")
	counting("the right is back")
	redis.do("ACL", "SETUSER", "edge", ">three") // both are good for a while
	write("three")
	redis.do("ACL", "SETUSER", "edge", "<two")
	redis.do("CLIENT", "KILL", "USER", "edge")
	counting("a password that was announced counts")
	write("")
	config.Log = slog.New(slog.DiscardHandler)
	golden.Sentence(t, "an empty file of the password", must.Err(redislimit.Open(t.Context(), config)), file, "FILE", redis.Address, "ADDRESS")
	wrong := redislimit.Config{URL: "redis://edge:wrong@" + redis.Address, Mode: redislimit.Strict, Log: config.Log}
	must.Show(t, "the error with a wrong password", fmt.Sprint(must.Err(redislimit.Check(t.Context(), wrong))), "WRONGPASS")
	source := must.Get(redislimit.Open(t.Context(), wrong))(t)
	defer source.Close()
	d := source.Counter("key", 0).Take(time.Now(), 2)
	must.Hold(t, d.Allowed && source.Fault() != "", "with a wrong password: got %+v, %s, want the edge to count for itself", d, source)
}

// TestFlush deletes all counts again and again while Redis answers: each edge allows at most the limit.
func TestFlush(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, mode redislimit.Mode) {
		redis := newServer(t)
		c, sum := clientsOf(redis.open(mode, 2), 100), 0
		for range 20 {
			sum = c.take(20)
			redis.do("DEL", "gridcast:limit:key")
		}
		must.Hold(t, c.allowed[0] <= 100 && c.allowed[1] <= 100 && sum >= 100, "allowed %d, want at most 100 on each edge, and together as many", c.allowed)
	})
}

// TestClockOfRedisWasAhead stores a window in Redis that begins in an hour: it is ignored.
func TestClockOfRedisWasAhead(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, mode redislimit.Mode) {
		redis := newServer(t)
		sources := redis.open(mode, 2)
		redis.do("HSET", "gridcast:limit:key", "window", strconv.FormatInt(time.Now().Unix()/limit.Period+60, 10), "count", "1000")
		d := counters(sources)[0].Take(time.Now(), 60)
		must.Hold(t, d.Allowed && d.RetryAfter(time.Now()) <= limit.Period, "got %+v", d)
	})
}

// TestStartWhileRedisHangs opens a source while Redis accepts connections and sends nothing, and
// closes the source again.
func TestStartWhileRedisHangs(t *testing.T) {
	t.Parallel()
	redis := newServer(t)
	redis.Signal(t, syscall.SIGSTOP)
	began := time.Now()
	source := must.Get(redislimit.Open(t.Context(), redislimit.Config{
		URL: "redis://" + redis.Address, Mode: redislimit.Strict, Log: slog.New(slog.DiscardHandler),
	}))(t)
	d := source.Counter("key", 0).Take(time.Now(), 2)
	must.Hold(t, d.Allowed && d.Remaining == 1, "got %+v", d)
	t.Logf("opened after %v", time.Since(began))
	redis.Signal(t, syscall.SIGCONT)
	must.Until(t, "Redis counts", func() bool { return metric(t, source, "gridcast_edge_limit_redis_up") == 1 })
	redis.Signal(t, syscall.SIGSTOP)
	began = time.Now()
	source.Close()
	t.Logf("closed after %v", time.Since(began))
	redis.Signal(t, syscall.SIGCONT)
}
