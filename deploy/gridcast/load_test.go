package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
)

// manyKeys creates keys in the store, so that no limit is met.
func manyKeys(t testing.TB, store blob.Store, n int) []string {
	t.Helper()
	created := make([]string, n)
	must.Do(t, keys.Update(t.Context(), store, func(doc *keys.List) error {
		for i := range created {
			var err error
			if _, created[i], err = doc.Create(keys.Request{Name: "load", Tier: "pro"}, time.Now()); err != nil {
				return err
			}
		}
		return nil
	}))
	return created
}

// load is clients that ask several edges at a steady rate, as through a balancer.
type load struct {
	client http.Client
	keys   []string

	// edges are asked in turn. A request holds mu for reading, so that no request is open while mu is
	// locked.
	mu    sync.RWMutex
	edges []string

	counts sync.Mutex // guards the fields below
	sent   int
	failed int
	faults []error // the first few
	took   []time.Duration
}

// loadTargets are the paths that clients ask for.
var loadTargets = []string{"/standings", "/standings?year=2024", "/calendar", "/drivers", "/predictions", "/next-race", "/accuracy"}

func newLoad(keys []string, edges ...string) *load {
	return &load{keys: keys, edges: edges, client: http.Client{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, Timeout: time.Minute,
	}}
}

// run asks perSecond times a second, until ctx ends.
func (l *load) run(ctx context.Context, perSecond int) {
	const workers = 8
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	requests := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for n := range requests {
				l.request(n)
			}
		})
	}
	for n := 0; ctx.Err() == nil; n++ {
		<-tick.C
		requests <- n
	}
	close(requests)
	group.Wait()
}

// request sends the nth request and notes how it went.
func (l *load) request(n int) {
	l.mu.RLock()
	edge := l.edges[n%len(l.edges)]
	began := time.Now()
	err := l.ask(edge+"/api/v1"+loadTargets[n%len(loadTargets)], l.keys[n%len(l.keys)])
	took := time.Since(began)
	l.mu.RUnlock()

	l.counts.Lock()
	defer l.counts.Unlock()
	l.sent++
	l.took = append(l.took, took)
	if err == nil {
		return
	}
	if l.failed++; l.failed <= 10 {
		l.faults = append(l.faults, err)
	}
}

// ask returns an error unless the answer is a success with a body that matches its entity tag.
func (l *load) ask(url, key string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", key)
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", url, err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: status %d: %s", url, response.StatusCode, body)
	case !strings.Contains(url, "/next-race") && response.Header.Get("ETag") != tagOf(body):
		return fmt.Errorf("%s: tag %s, that of the body is %s", url, response.Header.Get("ETag"), tagOf(body))
	}
	return nil
}

// tagOf is the entity tag that a body must have.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:])[:32] + `"`
}

// balance asks only these edges from now on. When it returns, no other edge has an open request.
func (l *load) balance(edges ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.edges = edges
}

// report logs the number of requests and their times, and fails the test if one failed.
func (l *load) report(t testing.TB) {
	t.Helper()
	l.counts.Lock()
	defer l.counts.Unlock()
	must.Require(t, l.sent != 0, "nothing was asked")
	for _, err := range l.faults {
		t.Errorf("failed: %v", err)
	}
	t.Logf("%d requests, %d failed, %s", l.sent, l.failed, quantiles(l.took))
}

// quantiles describes how long things took.
func quantiles(took []time.Duration) string {
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1)+0.5)].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("median %v, p99 %v, slowest %v of %d", at(0.5), at(0.99), at(1), len(took))
}

// killCount makes TestKilledBuilders kill another number of builders, at most 60.
const killCount = "GRIDCAST_KILLS"

// TestKilledBuilders kills builders at random moments, most of them while they publish. An edge
// follows and clients read from it: every body matches its tag and a published manifest, and versions
// never go back. In the end prune removes the remains of the killed builders.
func TestKilledBuilders(t *testing.T) {
	t.Parallel() // fills the time in which others wait
	kills := 5
	if text := os.Getenv(killCount); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", killCount, err)
		}
	}
	t.Run("directory", func(t *testing.T) { killBuilders(t, inDirectory(t), kills, 1) })
	t.Run("versitygw", func(t *testing.T) { killBuilders(t, onServer(t, s3test.Versity(t)), kills, 2) })
}

func killBuilders(t *testing.T, s storage, kills int, seed uint64) {
	instants := changingInstants(t)
	random := rand.New(rand.NewPCG(seed, seed))
	s.build(t, instants[0].Add(-time.Hour).Format(time.RFC3339), "--archive", seasons(t, 2024, 2024))
	last := s.attempt(t, instants[0], alive)
	keys := manyKeys(t, s, 40)
	edge := startServer(t, t.TempDir(), "edge", "--store", s.name)
	r := readFrom(t, edge, keys)

	window := 50 * time.Millisecond // from claim to end of a build that is left alone
	died, abandoned := 0, 0
	for i, at := range instants[1 : len(instants)-1] {
		if died >= kills && abandoned > 0 {
			break
		}
		// Every fourth survives, because the killed ones before it must not block it.
		moment := moment{afterClaim: within(random, window)}
		switch i % 4 {
		case 0: // some die while they publish, even on a fast machine
			moment.afterClaim = 1
		case 1:
			moment.beforeClaim = within(random, 200*time.Millisecond)
		case 3:
			moment = alive
		}
		next := s.attempt(t, at, moment)
		switch {
		case next.version < last.version:
			t.Fatalf("the current version went from %d to %d", last.version, next.version)
		case moment == alive && next.version == last.version:
			t.Fatalf("the build of %s published nothing", at)
		case moment == alive:
			window = next.published
		case next.killed:
			died++
			if s.lastClaim(t) > next.version {
				abandoned++
			}
		}
		last = next
	}
	must.Require(t, died >= kills, "only %d builders were killed: the rest were done before", died)
	last = s.attempt(t, instants[len(instants)-1], alive)
	must.Until(t, "the edge serves the last version", func() bool { return servedVersion(t, edge) == last.version })
	r.stop()
	r.check(t, s)
	s.pruneLeftovers(t, died)
}

// changingInstants lists when something changes in the season of 2024: a pick is
// frozen, the lights go out, a result is verified. The first is before them.
func changingInstants(t *testing.T) []time.Time {
	t.Helper()
	instants := []time.Time{time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC)}
	for _, year := range archivetest.Seasons(t, 2024, 2024).Seasons {
		for i := range year.Rounds {
			r := &year.Rounds[i]
			start := r.StartsAt()
			instants = append(instants, r.GridKnownAt().Add(time.Minute), start.Add(time.Minute), start.Add(5*time.Hour))
		}
	}
	return instants
}

// moment says when a builder is killed: beforeClaim after its start or, if that is zero, afterClaim after
// it has claimed a number.
type moment struct{ beforeClaim, afterClaim time.Duration }

func within(random *rand.Rand, d time.Duration) time.Duration {
	return 1 + time.Duration(random.Int64N(int64(d)))
}

// alive is a moment that never comes.
var alive = moment{afterClaim: time.Hour}

// attempted is the outcome of a build.
type attempted struct {
	version   int64 // that is current afterwards, and whole
	killed    bool
	published time.Duration // how long the build lived after its claim
}

// attempt starts a build at an instant of race time and kills it at a moment.
func (s storage) attempt(t *testing.T, at time.Time, m moment) attempted {
	t.Helper()
	claim := fmt.Sprintf("versions/%d.json", s.lastClaim(t)+1)
	builder := exec.Command(binary(t), "build", "--store", s.name, "--model", "grid-frequency",
		"--auto-verify-after", "30m", "--now", at.Format(time.RFC3339))
	builder.Dir = t.TempDir()
	var output must.Buffer
	builder.Stdout, builder.Stderr = &output, &output
	must.Do(t, builder.Start())
	ended := make(chan struct{})
	var err error
	go func() {
		err = builder.Wait()
		close(ended)
	}()
	wait := m.beforeClaim
	if wait == 0 {
		s.awaitObject(t, claim, ended)
		wait = m.afterClaim
	}
	claimed := time.Now()
	select {
	case <-ended:
	case <-time.After(wait):
		_ = builder.Process.Kill() // it may just have ended
		<-ended
	}
	result := attempted{killed: err != nil && builder.ProcessState.ExitCode() < 0, published: time.Since(claimed)}
	if err != nil && !result.killed {
		t.Fatalf("build at %s: %v\n%s", at, err, output.String())
	}
	version, err := snapshots.Verify(t.Context(), s, 0, nil)
	if err = errors.Join(append(version.Faults, err)...); err != nil {
		t.Fatalf("the current version after a build at %s: %v", at, err)
	}
	result.version = version.Version
	return result
}

// awaitObject returns when the store has the object, or the builder has ended. It looks for the file of the object: a
// request a millisecond costs both the test and the server more than the builder.
func (s storage) awaitObject(t *testing.T, key string, ended <-chan struct{}) {
	t.Helper()
	for tick := time.Tick(time.Millisecond); ; {
		select {
		case <-tick:
			if _, err := os.Stat(filepath.Join(s.folder, key)); err == nil {
				return
			}
		case <-ended:
			return
		}
	}
}

// lastClaim is the highest number that any builder has claimed.
func (s storage) lastClaim(t *testing.T) int64 {
	t.Helper()
	last := int64(0)
	for info, err := range s.List(t.Context(), "versions/") {
		must.Do(t, err)
		var version int64
		if _, err := fmt.Sscanf(info.Key, "versions/%d.json", &version); err != nil {
			t.Fatalf("claim %s: %v", info.Key, err)
		}
		last = max(last, version)
	}
	return last
}

func (s storage) versions(t *testing.T) []snapshots.Summary {
	t.Helper()
	return must.Get(snapshots.List(t.Context(), s))(t)
}

// pruneLeftovers makes everything two days old, prunes by the real binary, and compares the remaining
// objects with those that the current version needs.
func (s storage) pruneLeftovers(t *testing.T, died int) {
	t.Helper()
	abandoned := 0
	for _, version := range s.versions(t) {
		if version.Status == snapshots.Unpublished {
			abandoned++
		}
	}
	must.Hold(t, abandoned != 0, "no builder was killed while it published: nothing was tested")
	before := len(s.unneeded(t))
	s.age(t, 48*time.Hour)
	gridcast(t, t.TempDir(), "snapshots", "prune", "--yes", "--keep", "1", "--store", s.name)
	if left := s.unneeded(t); len(left) > 0 {
		t.Errorf("prune left what nothing needs: %v", left)
	}
	t.Logf("%d builders killed, %d of them with a number that was never published; prune removed %d objects", died, abandoned, before)
	gridcast(t, t.TempDir(), "snapshots", "verify", "--store", s.name)
}

// unneeded lists the objects, and in a directory the unfinished files, that do not belong to the current
// version, the record, the keys or the archive.
func (s storage) unneeded(t *testing.T) []string {
	t.Helper()
	base := must.Get(snapshots.LoadBase(t.Context(), s, nil))(t)
	needed := map[string]bool{
		snapshots.PointerKey: true, snapshots.ManifestKey(base.Pointer.Version): true,
		fmt.Sprintf("versions/%d.json", base.Pointer.Version): true, "archive.json": true, "settings.json": true, "keys/keys.json": true,
		"copies/settings.json": true, "copies/keys/keys.json": true,
	}
	for _, object := range base.Manifest.Objects() {
		key := object.Key
		needed[key] = true
	}
	var left []string
	for info, err := range s.List(t.Context(), "") {
		must.Do(t, err)
		if !needed[info.Key] && !strings.HasPrefix(info.Key, "ledger/") && !strings.HasPrefix(info.Key, "archives/") && !strings.HasPrefix(info.Key, "audit/") {
			left = append(left, info.Key)
		}
	}
	half, err := os.ReadDir(filepath.Join(s.folder, "@new"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, file := range half {
		left = append(left, "@new/"+file.Name())
	}
	return left
}

// TestDrain stops the real binary under a thousand busy connections.
func TestDrain(t *testing.T) {
	s := inDirectory(t)
	s.build(t, "2024-11-24T05:00:00Z", "--archive", lateSeason(t))
	key := manyKeys(t, s, 1)[0]
	admin := porttest.Address(t)
	drain(t, startServer(t, t.TempDir(), "edge", "--store", s.name, "--now", "2024-11-24T05:00:00Z",
		"--tiers", "pro=1000000000", "--admin-listen", admin), admin, key)
}

// drain checks the promises of a stopping edge. It answers every request that it counts in full, also
// one of which only half has arrived. A connection ends without an answer only before its next
// request is read. New connections are refused, and the process ends well and in time.
func drain(t *testing.T, p *process, admin, key string) {
	const connections, before = 1000, 5 // answers on a connection, on average, before the signal
	address := strings.TrimPrefix(p.url, "http://")
	request := []byte("GET /api/v1/standings HTTP/1.1\r\nHost: gridcast\r\nX-API-Key: " + key + "\r\n\r\n")
	standings := newClient(p.url, key).get(t, "/standings").body
	half := newAsker(t, address, request, standings)
	askers := make([]*asker, connections)
	for i := range askers {
		askers[i] = newAsker(t, address, request, standings)
	}
	var answered atomic.Int64
	answered.Store(2) // that above, and the first of half
	var asking sync.WaitGroup
	busy := make(chan struct{})
	ends := make([]error, connections)
	for i, a := range askers {
		asking.Go(func() {
			ends[i] = a.ask(func() {
				if answered.Add(1) == 2+before*connections {
					close(busy)
				}
			})
		})
	}
	select {
	case <-busy:
	case <-time.After(3 * time.Minute):
		t.Fatalf("only %d answers in three minutes", answered.Load())
	}
	// A request and half of another arrive together. When the first is answered the edge has read both,
	// and it does not end before the rest of the second arrives.
	half.request = append(slices.Clone(request), request[:20]...)
	must.Do(t, half.exchange())
	half.request = request[20:]
	began := time.Now()
	must.Do(t, p.cmd.Process.Signal(syscall.SIGTERM))
	asking.Wait()
	silent := 0
	for i, a := range askers {
		switch err := ends[i]; {
		case errors.Is(err, errSilent):
			silent++
		case err != nil:
			t.Errorf("connection %d, after %d answers: %v", i, a.answered, err)
		}
	}
	if counted := answersOf(t, admin, "standings"); counted != answered.Load() {
		t.Errorf("%d requests were counted and %d answered", counted, answered.Load())
	}
	p.refuses(t, address)
	if took := time.Since(began); took > edge.DefaultConfig().ReadTimeout {
		t.Fatalf("the connections ended only after %v", took)
	}
	must.Fail(t, "the request of which half had come", half.exchange(), errLast)
	select {
	case err := <-p.ended:
		p.ended <- err // for the end of the test
		must.Hold(t, err == nil, "the edge ended with %v, want exit status 0", err)
	case <-time.After(edge.DefaultConfig().DrainTimeout):
		t.Error("the edge does not end")
	}
	t.Logf("%d answers on %d connections, %d of which ended without another; ended %.2f s after the signal",
		answered.Load(), connections, silent, time.Since(began).Seconds())
}

var answersCounted = regexp.MustCompile(`(?m)^gridcast_edge_requests_total\{endpoint="(\w+)",.*\} (\S+)$`)

// answersOf returns how many answers of an endpoint the edge has counted.
func answersOf(t testing.TB, admin, endpoint string) int64 {
	t.Helper()
	total := int64(0)
	for _, m := range answersCounted.FindAllStringSubmatch(exposed(t, admin), -1) {
		if m[1] == endpoint {
			count := must.Get(strconv.ParseFloat(m[2], 64))(t)
			total += int64(count)
		}
	}
	return total
}

// refuses fails the test unless new connections are refused, while the process still runs.
func (p *process) refuses(t *testing.T, address string) {
	t.Helper()
	p.await(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close() // it came before the edge stopped listening
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	select {
	case err := <-p.ended:
		p.ended <- err // for the end of the test
		t.Fatalf("the edge has ended with half a request read: %v", err)
	default:
	}
}

// asker repeats one request on one connection.
type asker struct {
	conn     net.Conn
	reader   *bufio.Reader
	request  []byte
	answered int
	want     []byte // body of every answer
}

// errSilent is the end of a connection without a byte of an answer: the edge closed it while it was
// idle, before the request arrived.
var errSilent = errors.New("ended without an answer")

// silent returns errSilent for the errors of such an end.
func silent(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return errSilent
	}
	return err
}

func newAsker(t testing.TB, address string, request, want []byte) *asker {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	must.Do(t, conn.SetDeadline(time.Now().Add(5*time.Minute)))
	return &asker{conn: conn, reader: bufio.NewReader(conn), request: request, want: want}
}

// ask exchanges until the connection ends.
func (a *asker) ask(answered func()) error {
	for {
		err := a.exchange()
		if errors.Is(err, errLast) {
			answered()
			return nil
		}
		if err != nil {
			return err
		}
		answered()
	}
}

// errLast comes with an answer that closes the connection.
var errLast = errors.New("the last answer")

// exchange sends the request and reads its answer, which must be complete and have the expected body.
func (a *asker) exchange() error {
	if _, err := a.conn.Write(a.request); err != nil {
		return silent(err)
	}
	if _, err := a.reader.Peek(1); err != nil {
		return silent(err)
	}
	response, err := http.ReadResponse(a.reader, nil)
	if err != nil {
		return fmt.Errorf("head of a response that has begun: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("body of a response that has begun: %w", err)
	}
	if response.StatusCode != http.StatusOK || !bytes.Equal(body, a.want) {
		return fmt.Errorf("answer %d: status %s, with %s", a.answered, response.Status, body)
	}
	a.answered++
	if response.Close {
		return errLast
	}
	return nil
}
