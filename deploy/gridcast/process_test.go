package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
)

// process is a running gridcast.
type process struct {
	cmd    *exec.Cmd
	url    string // http://host:port of the API
	output must.Buffer
	ended  chan error // the error of the ended process, or nil
	killed bool       // by the test
}

// startServer starts a serving command of the real binary in dir and waits until it is ready.
// It is ended, and must end well, when the test ends.
func startServer(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	address := porttest.Address(t)
	if args[0] == "serve" {
		args = append(args, "--operator-listen", "127.0.0.1:0")
	}
	return launch(t, dir, "http://"+address, "/readyz", append(args, "--listen", address))
}

// startScheduler starts a scheduler and waits until the operator's port answers, which is its url. The
// operator's token is in the file "token" of dir.
func startScheduler(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	address := porttest.Address(t)
	return launch(t, dir, "http://"+address, "/readyz",
		append([]string{"scheduler", "--operator-listen", address, "--operator-token-file", "token"}, args...))
}

// launch starts the real binary in dir and waits until it answers on the path.
func launch(t testing.TB, dir, url, path string, args []string) *process {
	t.Helper()
	p := begin(t, dir, url, args)
	p.await(t, func() bool { return p.answers(path) })
	return p
}

// begin is launch without the wait, and with further variables of the environment, each NAME=value.
func begin(t testing.TB, dir, url string, args []string, variables ...string) *process {
	t.Helper()
	return beginProgram(t, binary(t), dir, url, args, variables...)
}

// beginProgram is begin for another build of gridcast.
func beginProgram(t testing.TB, program, dir, url string, args []string, variables ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), url: url, ended: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), variables...)
	if demo := slices.Index(args, "--demo-speed"); args[0] == "edge" && !slices.Contains(args, "--cache-dir") || demo > 0 && args[demo+1] != "1" {
		// Without a folder the edge makes no downloads, which take half a second of CPU time a season. A demo at a
		// high speed would make them anew for each version.
		p.cmd.Env = append(p.cmd.Env, "TMPDIR="+os.DevNull)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	must.Do(t, p.cmd.Start())
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gridcast %s printed:\n%s", strings.Join(args, " "), p.output.String())
		}
		if p.killed {
			return
		}
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-p.ended:
			if err != nil {
				t.Errorf("gridcast %s ended with %v:\n%s", strings.Join(args, " "), err, p.output.String())
			}
		case <-time.After(2 * time.Minute):
			_ = p.cmd.Process.Kill()
			t.Errorf("gridcast %s does not end", strings.Join(args, " "))
		}
	})
	return p
}

// answers says whether a GET of the path succeeds.
func (p *process) answers(path string) bool {
	response, err := http.Get(p.url + path)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// end ends the process as an operator does, by SIGTERM, and it must end well.
func (p *process) end(t testing.TB) {
	t.Helper()
	must.Do(t, p.cmd.Process.Signal(syscall.SIGTERM))
	err := <-p.ended
	p.ended <- err // for the end of the test
	if err != nil {
		t.Fatalf("gridcast ended with %v:\n%s", err, p.output.String())
	}
}

// kill ends the process as a crash does, by SIGKILL.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.killed = true
	must.Do(t, p.cmd.Process.Kill())
	<-p.ended
}

// await polls until the condition holds. It fails the test if the process ends, or after four minutes.
func (p *process) await(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); {
		if condition() {
			return
		}
		select {
		case err := <-p.ended:
			p.ended <- err // for the end of the test
			t.Fatalf("gridcast ended with %v:\n%s", err, p.output.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("gridcast did not get there:\n%s", p.output.String())
}

// gridcast runs a command of the real binary in dir to its end and returns its standard output.
func gridcast(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("gridcast %s: %v\n%s", strings.Join(args, " "), err, failed.Stderr)
		}
		t.Fatalf("gridcast %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// printed runs a command of the real binary in dir with --json and decodes its output.
func printed[T any](t testing.TB, dir string, args ...string) (value T) {
	t.Helper()
	out := gridcast(t, dir, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatalf("gridcast %s --json: %v\n%s", strings.Join(args, " "), err, out)
	}
	return value
}

// newKey creates a key, with more options of the command, and returns it.
func newKey(t testing.TB, dir, store, tier string, more ...string) string {
	t.Helper()
	return printed[createdKey](t, dir, append([]string{"keys", "create", "--name", "test", "--tier", tier, "--store", store}, more...)...).Key
}

// client is a user of the API with a key. It checks every body against the contract.
type client struct {
	url, key string
	http     http.Client
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// connections are shared by all clients, because most clients of a test ask once or in turn.
var connections = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}

func newClient(url, key string) *client {
	return &client{url: url, key: key, http: http.Client{Transport: connections, Timeout: 2 * time.Minute}}
}

// do sends a request with the key, unless the header has a credential already.
func (c *client) do(t testing.TB, method, target string, header http.Header) answer {
	t.Helper()
	a, err := c.ask(context.Background(), method, target, header)
	must.Require(t, err == nil, "%s %s: %v", method, target, err)
	return a
}

// ask is do for a test in which a server may be away.
func (c *client) ask(ctx context.Context, method, target string, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+target, nil)
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if c.key != "" && request.Header.Get("Authorization") == "" && request.Header.Get("X-API-Key") == "" {
		request.Header.Set("X-API-Key", c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, body}, err
}

// get sends a GET. The answer must be a success that satisfies the schema of the endpoint.
func (c *client) get(t testing.TB, path string) answer {
	t.Helper()
	a := c.do(t, http.MethodGet, "/api/v1"+path, nil)
	must.Require(t, a.status == http.StatusOK, "GET %s: got status %d, want 200: %s", path, a.status, a.body)
	name, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "?")
	query := must.Get(url.ParseQuery(rest))(t)
	v := catalog.Variant{Endpoint: catalog.Name(name)}
	if i, ok := catalog.Lookup("/" + name); ok && len(catalog.Endpoints[i].Params) > 0 && catalog.Endpoints[i].Params[0].Name == "type" {
		v.Type = catalog.DriversType
		if query.Get("type") == catalog.ConstructorsType {
			v.Type = catalog.ConstructorsType
		}
	}
	if query.Has("page") {
		v.Page = 1 // the pages of a log have a schema of their own
	}
	must.Succeed(t, fmt.Sprintf("GET %s", path), must.Err(schemas.Decode(v, a.body)))
	return a
}

// data decodes the data of a success.
func data[T any](t testing.TB, a answer) T {
	t.Helper()
	var envelope struct {
		OK   bool `json:"ok"`
		Data T    `json:"data"`
	}
	if err := json.Unmarshal(a.body, &envelope); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return envelope.Data
}

// TestMain makes this test binary the program of the scripts in testdata/script, which starts under another name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case sessionName:
		session()
		return
	case laterRelease:
		version = laterRelease
		main()
	case "gridcast":
		main()
	}
	// Facts come from the files of the tests, and no source is polled.
	if err := os.Setenv("GRIDCAST_NO_SOURCES", "true"); err != nil {
		panic(err)
	}
	// Most tests wait for processes, so several at a time keep two cores busy.
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, 2*runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(browsers{m}.Run())
}

// browsers are the tests of this package, which share a browser.
type browsers struct{ m *testing.M }

// Run runs them with the credentials of every test server. A script sets those of its commands itself.
func (b browsers) Run() int {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": s3test.SecretKey} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return browsertest.Main(b.m)
}

// seasons returns the path of an archive of some of the embedded seasons.
func seasons(t testing.TB, from, to int) string {
	t.Helper()
	return archiveFile(t, archivetest.Seasons(t, from, to))
}

// lateSeason returns the path of an archive of 2024 from its 18th round on, for tests of the weekend of Las Vegas that
// look at the rounds of these weeks alone. The rest of the season and the one before it have most of the documents.
func lateSeason(t testing.TB) string {
	t.Helper()
	facts := archivetest.Seasons(t, 2024, 2024)
	rounds := facts.Seasons[0].Rounds[17:]
	for i := range rounds {
		rounds[i].DriverStandings, rounds[i].TeamStandings = nil, nil // those of F1DB count all rounds
	}
	facts.Seasons[0].Rounds = rounds
	return archiveFile(t, facts)
}

// archiveFile returns the path of an archive of facts.
func archiveFile(t testing.TB, facts season.Facts) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.archive")
	must.Do(t, archive.WriteFile(path, archivetest.Stored(t, facts)))
	return path
}

// maxBinary bounds the size of the binary, because it is copied to every edge. Templates find
// methods by name, so the linker keeps every exported method of a library with many types. The client of Redis has
// a method for each command: 8 MB of the binary are its. The sandbox, usage, measurements and pictures of the pages have .7 MB.
const maxBinary = 42_500_000

func TestBinarySize(t *testing.T) {
	info := must.Get(os.Stat(binary(t)))(t)
	t.Logf("the binary is %.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxBinary {
		t.Errorf("the binary is %d bytes, may be %d", info.Size(), maxBinary)
	}
}

// binary returns the path of the real binary, which is built once.
func binary(t testing.TB) string {
	t.Helper()
	must.Long(t, "runs the real binary")
	return must.Get(must.Binary())(t)
}
