package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

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
	script, err := os.ReadFile(filepath.Join("testdata", ts.Name()+".txtar"))
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
