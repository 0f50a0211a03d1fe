package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/deploy/redistest"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
)

// TestScripts runs each script of testdata/script. The archive has one of the embedded seasons, because a version of
// all seasons takes ten times as long. A script that needs others names them, or unsets GRIDCAST_ARCHIVE.
func TestScripts(t *testing.T) {
	t.Parallel() // fills the time in which others wait
	variables := map[string]string{
		"GRIDCAST_NO_SOURCES": "true",
		"GRIDCAST_ARCHIVE":    seasons(t, 2024, 2024),
		"SEASON_2012":         seasons(t, 2012, 2012),
		"SEASONS_2023":        seasons(t, 2023, 2024),
		"SEASONS_2024":        seasons(t, 2024, 2025),
		"SEASONS_2025":        seasons(t, 2025, 2026),
		"ALL_SEASONS":         seasons(t, 2023, 2026),
		"SILENT_SATURDAY":     silentSaturday(t),
	}
	bin := t.TempDir()
	must.Do(t, os.Symlink(must.Get(os.Executable())(t), filepath.Join(bin, "gridcast")))
	path := bin + string(filepath.ListSeparator) + os.Getenv("PATH")
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Cmds: scriptCommands, ContinueOnError: true, Setup: func(env *testscript.Env) error {
		for name, value := range variables {
			env.Setenv(name, value)
		}
		env.Setenv("GOGC", os.Getenv("GOGC"))
		env.Setenv("PATH", path)
		w := &world{TB: env.T().(testing.TB), variables: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}} //nolint:forcetypeassert // as testscript documents it
		for _, variable := range env.Vars {
			name, _, _ := strings.Cut(variable, "=")
			w.variables = append(w.variables, name)
		}
		env.Values[worldOf{}] = w
		return nil
	}})
}

// silentSaturday is an archive of 2024 up to the Saturday noon of Las Vegas, of which nothing is known but when
// it is.
func silentSaturday(t testing.TB) string {
	t.Helper()
	facts := archivetest.Seasons(t, 2024, 2024)
	facts.Lineages, facts.Headshots = nil, season.Headshots{}
	rounds := facts.Seasons[0].Rounds
	for i, r := range rounds {
		if r.Number >= 22 {
			rounds[i] = season.Round{
				Number: r.Number, GrandPrix: r.GrandPrix, Name: r.Name, Circuit: r.Circuit, Street: r.Street, CourseKm: r.CourseKm,
				ScheduledLaps: r.ScheduledLaps, Date: r.Date, Start: r.Start, Sprint: r.Sprint, Sessions: r.Sessions,
			}
		}
	}
	return archiveFile(t, facts)
}

// world is the value of a script that its commands share.
type world struct {
	testing.TB
	s3   *s3test.Server
	f1db *codehosttest.Host
	now  atomic.Pointer[time.Time] // race time of f1db

	session   *sessionOf
	variables []string // names of the variables that every script has
}

// worldOf is the key of a script's world.
type worldOf struct{}

func of(ts *testscript.TestScript) *world {
	return ts.Value(worldOf{}).(*world) //nolint:forcetypeassert // the setup of every script
}

// scriptCommands are the commands of scripts beside gridcast.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"body":        scriptBody,
	"capture":     scriptCapture,
	"certificate": scriptCertificate,
	"exits":       scriptExits,
	"f1db":        scriptF1DB,
	"free":        scriptFree,
	"gridcast":    scriptGridcast,
	"lines":       scriptLines,
	"occupy":      scriptOccupy,
	"redis":       func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("REDIS", redistest.New(of(ts)).Address) },
	"s3":          scriptS3,
}

// wants fails the script unless a command has so many arguments.
func wants(ts *testscript.TestScript, args []string, want int, text string) {
	if len(args) != want {
		ts.Fatalf("usage: %s", text)
	}
}

// scriptCapture sets a variable to the first group of a pattern in the standard output.
func scriptCapture(ts *testscript.TestScript, _ bool, args []string) {
	wants(ts, args, 2, "capture NAME PATTERN")
	match := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if match == nil {
		ts.Fatalf("nothing matches %s", args[1])
	}
	ts.Setenv(args[0], match[1])
}

// scriptLines fails the script if the standard output has more lines.
func scriptLines(ts *testscript.TestScript, _ bool, args []string) {
	wants(ts, args, 1, "lines MOST")
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	if n := strings.Count(ts.ReadFile("stdout"), "\n"); n > most {
		ts.Fatalf("%d lines, want at most %d", n, most)
	}
}

// scriptExits runs a command line of gridcast that must end with an exit status.
func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if status := of(ts).gridcast(ts, args[2:]); status != want {
		ts.Fatalf("gridcast ends with exit status %d, want %d", status, want)
	}
}

// scriptBody prints the published body of a catalog path of the store in the folder "store".
func scriptBody(ts *testscript.TestScript, _ bool, args []string) {
	wants(ts, args, 1, "body PATH")
	store, err := dirblob.Open(ts.MkAbs("store"))
	ts.Check(err)
	version, err := snapshots.LoadBase(of(ts).Context(), store, nil)
	ts.Check(err)
	_, err = ts.Stdout().Write(bodyOf(of(ts), version, args[0]))
	ts.Check(err)
}

// scriptFree sets each variable to the address of a free port.
func scriptFree(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Setenv(name, porttest.Address(of(ts)))
	}
}

// scriptOccupy sets a variable to the address of a port that another program listens on.
func scriptOccupy(ts *testscript.TestScript, _ bool, args []string) {
	wants(ts, args, 1, "occupy NAME")
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = occupied.Close() })
	go func() {
		for {
			c, err := occupied.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	ts.Setenv(args[0], occupied.Addr().String())
}

// scriptCertificate writes NAME.crt and NAME.key, valid from an hour ago until a duration from now.
func scriptCertificate(ts *testscript.TestScript, _ bool, args []string) {
	wants(ts, args, 2, "certificate NAME DURATION")
	left, err := time.ParseDuration(args[1])
	ts.Check(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{args[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// scriptS3 starts an S3 server with users, and acts on it. S3 is the name of the store, BUCKET its bucket.
func scriptS3(ts *testscript.TestScript, _ bool, args []string) {
	w := of(ts)
	owner := func() {
		ts.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
		ts.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	}
	path := func(key string) string {
		return filepath.Join(w.s3.Folder, ts.Getenv("BUCKET"), filepath.FromSlash(w.s3.Config(w).Prefix), filepath.FromSlash(key))
	}
	switch {
	case slices.Equal(args, []string{"start"}):
		w.s3 = s3test.VersityWithUsers(w)
		c := w.s3.Config(w)
		s3test.Store(w, c) // makes the bucket
		ts.Setenv("BUCKET", c.Bucket)
		ts.Setenv("S3", fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s", c.Bucket, c.Prefix, c.Endpoint, c.Region))
		owner()
	case slices.Equal(args, []string{"owner"}):
		owner()
	case len(args) == 3 && args[0] == "user":
		w.s3.AddUser(w, args[1], args[2])
	case slices.Equal(args, []string{"policy"}):
		policy, err := os.ReadFile("../s3/policy.json")
		ts.Check(err)
		c := w.s3.Config(w)
		c.Bucket = ts.Getenv("BUCKET")
		s3test.SetPolicy(w, c, strings.ReplaceAll(string(policy), "BUCKET", c.Bucket))
	case len(args) == 3 && args[0] == "forget":
		ts.Setenv(args[1], strings.Replace(ts.Getenv("S3"), "http://"+w.s3.Address, s3test.Forgetful(w, w.s3, args[2]), 1))
	case len(args) == 4 && args[0] == "replace":
		data, err := os.ReadFile(path(args[1]))
		ts.Check(err)
		ts.Check(os.WriteFile(path(args[1]), bytes.Replace(data, []byte(args[2]), []byte(args[3]), 1), 0o600))
	case len(args) == 2 && args[0] == "list":
		files, err := filepath.Glob(path(args[1]) + "/*")
		ts.Check(err)
		_, err = fmt.Fprint(ts.Stdout(), strings.Join(files, "\n"))
		ts.Check(err)
	default:
		ts.Fatalf("usage: s3 start | user NAME SECRET | owner | policy | forget NAME HEADER | replace OBJECT OLD NEW | list FOLDER")
	}
}

// scriptF1DB serves F1DB's repository as it was at an instant of race time. F1DB is its address as a
// source, NOW the instant.
func scriptF1DB(ts *testscript.TestScript, _ bool, args []string) {
	w := of(ts)
	edit := func(change func(files map[string][]byte)) {
		w.f1db.Edit(codehosttest.Edit{At: *w.now.Load(), Change: change})
	}
	switch {
	case len(args) == 2 && args[0] == "at":
		now, err := time.Parse(time.RFC3339, args[1])
		ts.Check(err)
		w.now.Store(&now)
		ts.Setenv("NOW", args[1])
		if w.f1db == nil {
			w.f1db = codehosttest.New(w, sourcetest.Path(w, sourcetest.F1DBHistory), func() time.Time { return *w.now.Load() })
			ts.Setenv("F1DB", "f1db="+w.f1db.URL)
			ts.Setenv("RELEASE", recentRelease(w))
		}
	case len(args) == 2 && args[0] == "add":
		edit(func(files map[string][]byte) { files[args[1]] = nil })
	case len(args) == 2 && args[0] == "remove":
		edit(func(files map[string][]byte) {
			maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, args[1]) })
		})
	case len(args) == 3 && args[0] == "served":
		requests, archives := w.f1db.Served()
		if got, want := fmt.Sprint(requests, " ", archives), args[1]+" "+args[2]; got != want {
			ts.Fatalf("served %s requests and archives, want %s", got, want)
		}
	default:
		ts.Fatalf("usage: f1db at INSTANT | add FILE | remove PREFIX | served REQUESTS ARCHIVES")
	}
}

// sessionName is the name under which the test binary runs the command lines of a script in one process, each as main
// does: a process for each costs as much as its work. "exec gridcast" in a script starts a process.
const sessionName = "gridcast session"

// request is a command line for a session.
type request struct {
	Dir  string
	Env  map[string]string
	Args []string
}

// response is the end of a command line.
type response struct {
	Status         int
	Stdout, Stderr string
}

// session answers requests from the standard input until it ends.
func session() {
	requests, responses := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	empty, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	os.Stdin = empty // of the commands
	time.Local = time.UTC
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		os.Clearenv()
		for name, value := range r.Env {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
		if err := os.Chdir(r.Dir); err != nil {
			panic(err)
		}
		var stdout, stderr bytes.Buffer
		status := run(context.Background(), r.Args, &stdout, &stderr)
		if err := responses.Encode(response{status, stdout.String(), stderr.String()}); err != nil {
			panic(err)
		}
	}
}

// sessionOf is the session of a script.
type sessionOf struct {
	requests  *json.Encoder
	responses *json.Decoder
	variables []string // names of the variables that the script may set
}

var setVariables = regexp.MustCompile(`(?m)^(?:\[[^]]*\] )?env ((?:\w+=\S*\s*)+)`)

// startSession starts the session of a script. Its end ends the session.
func startSession(ts *testscript.TestScript) (*sessionOf, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: program, Args: []string{sessionName}, Env: os.Environ(), Stderr: os.Stderr}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	script, err := os.ReadFile(filepath.Join("testdata", "script", ts.Name()+".txtar"))
	if err != nil {
		return nil, err
	}
	s := &sessionOf{requests: json.NewEncoder(input), responses: json.NewDecoder(output)}
	for _, m := range setVariables.FindAllStringSubmatch(string(script), -1) {
		for _, variable := range strings.Fields(m[1]) {
			name, _, _ := strings.Cut(variable, "=")
			s.variables = append(s.variables, name)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ts.Defer(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	return s, nil
}

// gridcast runs a command line, and prints what it prints. It returns the exit status.
func (w *world) gridcast(ts *testscript.TestScript, args []string) (status int) {
	if w.session == nil {
		var err error
		w.session, err = startSession(ts)
		ts.Check(err)
	}
	r := request{Dir: ts.MkAbs("."), Env: map[string]string{}, Args: args}
	for _, names := range [][]string{w.variables, w.session.variables} {
		for _, name := range names {
			if value := ts.Getenv(name); value != "" { // main unsets empty variables
				r.Env[name] = value
			}
		}
	}
	ts.Check(w.session.requests.Encode(r))
	var ended response
	ts.Check(w.session.responses.Decode(&ended))
	_, err := io.WriteString(ts.Stdout(), ended.Stdout)
	ts.Check(err)
	_, err = io.WriteString(ts.Stderr(), ended.Stderr)
	ts.Check(err)
	return ended.Status
}

// scriptGridcast runs a command line, which must succeed, or fail after "!".
func scriptGridcast(ts *testscript.TestScript, neg bool, args []string) {
	if status := of(ts).gridcast(ts, args); neg != (status != 0) {
		ts.Fatalf("gridcast ends with exit status %d", status)
	}
}
