package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// storage is a store as the binary names it and as the test sees it.
type storage struct {
	blob.Store
	name   string // for --store
	folder string // where each object is a file; empty: nowhere
}

// inDirectory is a new store in a directory.
func inDirectory(t testing.TB) storage {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "store")
	store := must.Get(dirblob.Open(folder))(t)
	return storage{store, "dir:" + folder, folder}
}

// onServer is a new store on an S3 server.
func onServer(t testing.TB, server *s3test.Server) storage {
	t.Helper()
	c := server.Config(t)
	name := fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s", c.Bucket, c.Prefix, c.Endpoint, c.Region)
	folder := ""
	if server.Folder != "" {
		folder = filepath.Join(server.Folder, c.Bucket, c.Prefix)
	}
	return storage{s3test.Store(t, c), name, folder}
}

// age makes every object older.
func (s storage) age(t testing.TB, by time.Duration) {
	t.Helper()
	must.Do(t, filepath.WalkDir(s.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(path, time.Time{}, info.ModTime().Add(-by))
	}))
}

// build publishes by the real binary at an instant of race time.
func (s storage) build(t testing.TB, at string, args ...string) snapshots.Receipt {
	t.Helper()
	args = append([]string{"build", "--json", "--model", "grid-frequency", "--store", s.name, "--now", at}, args...)
	var receipt snapshots.Receipt
	must.Do(t, json.Unmarshal([]byte(gridcast(t, t.TempDir(), args...)), &receipt))
	return receipt
}

// refused runs a command of the real binary, with a variable of the environment (NAME=value, or none), that must
// fail with one line that says all of that. It returns how long it took.
func refused(t testing.TB, variable string, says []string, args ...string) time.Duration {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), variable)
	began := time.Now()
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	var failed *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &failed) || failed.ExitCode() != exitFailed {
		t.Errorf("gridcast %s: ended with %v, want exit status %d", strings.Join(args, " "), err, exitFailed)
	}
	line := strings.TrimSuffix(complaint.String(), "\n")
	must.Show(t, "the error of gridcast "+strings.Join(args, " "), line, says...)
	must.Equal(t, "the further lines of the error of gridcast "+strings.Join(args, " "), 0, strings.Count(line, "\n"))
	return time.Since(began)
}

// TestOnS3 is a short life of the service on a real S3 server: every command is the real
// binary's, and every byte that a client reads is compared with the bucket.
func TestOnS3(t *testing.T) {
	t.Parallel() // fills the time in which others wait
	binary(t)    // skips the test where it must: a goroutine of it could not
	// Nobody listens on port 1. A free port of the usual range may be taken by another test.
	const nowhere = "s3://bucket?region=us-east-1&endpoint=http://127.0.0.1:1"
	down := make(chan time.Duration, 1)
	go func() {
		down <- refused(t, "", []string{"s3://bucket", syscall.ECONNREFUSED.Error()}, "build", "--store", nowhere)
	}() // it is patient
	defer func() { t.Logf("gave up on a server that is down after %.1f s", (<-down).Seconds()) }()
	for kind, start := range map[string]func(testing.TB) *s3test.Server{
		"versitygw": func(t testing.TB) *s3test.Server { return s3test.Versity(t) },
		"minio":     s3test.MinIO,
	} {
		t.Run(kind, func(t *testing.T) {
			s := onServer(t, start(t))
			t.Run("import", func(t *testing.T) { importIntoStore(t, s) })
			t.Run("serve", func(t *testing.T) { serveFromStore(t, s) })
			t.Run("restore", func(t *testing.T) { restoreStore(t, s) })
			t.Run("errors", func(t *testing.T) { misconfigured(t, s) })
		})
	}
}

func importIntoStore(t *testing.T, s storage) {
	release := sourcetest.Path(t, sourcetest.F1DB2024)
	gridcast(t, t.TempDir(), "archive", "import", "f1db", release, "--from", "2024", "--to", "2024", "--store", s.name)
	if out := gridcast(t, t.TempDir(), "archive", "show", "--store", s.name); !slices.Equal(regexp.MustCompile(`\b202[34]\b`).FindAllString(out, 1), []string{"2024"}) {
		t.Errorf("the archive is not the one imported:\n%s", out)
	}
}

// serveFromStore verifies a result, rolls back, releases and prunes while an edge follows.
func serveFromStore(t *testing.T, s storage) {
	dir := t.TempDir()
	if r := s.build(t, "2024-11-24T05:00:00Z"); r.Version != 1 || r.ObjectsWritten == 0 {
		t.Fatalf("first build: %+v", r)
	}
	key := newKey(t, dir, s.name, "pro")
	edge := startServer(t, dir, "edge", "--store", s.name, "--cache-dir", "cache", "--now", "2024-11-24T05:00:00Z")
	c := newClient(edge.url, key)
	sameAsStored(t, s, c)
	winner := func() string { return entry(t, c, 2024022).Winner }
	if w := winner(); w != "" {
		t.Fatalf("won by %s before the race", w)
	}

	must.Show(t, "the list of results", gridcast(t, dir, "results", "list", "--store", s.name, "--now", "2024-11-24T09:00:00Z"), "2024022")
	gridcast(t, dir, "results", "verify", "2024022", "--yes", "--by", "anna", "--store", s.name, "--now", "2024-11-24T09:00:00Z")
	s.build(t, "2024-11-24T09:01:00Z")
	must.Until(t, "the edge serves the result", func() bool { return winner() == "RUS" })
	sameAsStored(t, s, c)

	gridcast(t, dir, "snapshots", "rollback", "1", "--yes", "--reason", "looked wrong", "--store", s.name)
	must.Until(t, "the edge follows the rollback", func() bool { return winner() == "" })
	refused(t, "", []string{"looked wrong"}, "build", "--model", "grid-frequency", "--store", s.name, "--now", "2024-11-24T09:02:00Z")
	s.build(t, "2024-11-24T09:03:00Z", "--release", "--yes", "--reason", "whole again")
	must.Until(t, "the edge follows the release", func() bool { return winner() == "RUS" })

	prune := func() []blob.Info {
		return printed[snapshots.Pruned](t, dir, "snapshots", "prune", "--yes", "--keep", "1", "--store", s.name).Removed
	}
	if removed := prune(); len(removed) > 0 {
		t.Errorf("pruned objects younger than a day: %+v", removed)
	}
	if s.folder != "" {
		s.age(t, 25*time.Hour)
		removed := prune()
		must.Hold(t, slices.ContainsFunc(removed, func(o blob.Info) bool { return o.Key == snapshots.ManifestKey(2) }),
			"pruned %+v, want the manifest of version 2 among them", removed)
	}
	gridcast(t, dir, "snapshots", "verify", "--store", s.name)
	gridcast(t, dir, "ledger", "audit", "--store", s.name)
	sameAsStored(t, s, c)
}

// restoreStore loses the bucket behind a running edge that has served a later version than the
// backup's, and puts the backup back by one command, which asks the edge.
func restoreStore(t *testing.T, s storage) {
	dir := t.TempDir()
	key, admin := newKey(t, dir, s.name, "pro"), porttest.Address(t)
	edge := startServer(t, dir, "edge", "--store", s.name, "--cache-dir", "cache", "--admin-listen", admin, "--now", "2024-11-24T10:00:00Z")
	c := newClient(edge.url, key)
	const qatar = 2024023
	status := func() string { return string(entry(t, c, qatar).Status) }
	gridcast(t, dir, "store", "backup", "backup", "--store", s.name, "--by", "anna", "--reason", "every night")

	gridcast(t, dir, "rounds", "postpone", "2024023", "--yes", "--by", "anna", "--reason", "track works", "--store", s.name, "--now", "2024-11-24T10:00:00Z")
	served := s.build(t, "2024-11-24T10:01:00Z").Version
	must.Until(t, "the edge serves what the backup has not", func() bool { return status() == "postponed" })
	for info, err := range s.List(t.Context(), "") {
		if err == nil {
			err = s.Delete(t.Context(), info.Key)
		}
		must.Do(t, err)
	}

	restored := printed[backup.Restored](t, dir, "store", "restore", "backup", "--edges", admin, "--yes", "--by", "ben", "--reason", "the bucket was deleted", "--store", s.name)
	if len(restored.Lost) == 0 || restored.Version != served+1 {
		t.Errorf("after version %d the restore prints %+v, want version %d and the lost one", served, restored, served+1)
	}
	must.Until(t, "the edge serves the backup", func() bool { return status() == "scheduled" })
	sameAsStored(t, s, c)
	gridcast(t, dir, "ledger", "audit", "--store", s.name)
	lost := false
	for info, err := range s.List(t.Context(), "audit/") {
		must.Do(t, err)
		o := must.Get(s.Get(t.Context(), info.Key, blob.MaxDocument))(t)
		lost = lost || bytes.Contains(o.Data, []byte(`"action":"restore_store"`)) && bytes.Contains(o.Data, []byte("the bucket was deleted"))
	}
	must.Hold(t, lost, "the audit log does not say that the store was restored")
	s.build(t, "2024-11-24T10:02:00Z")
}

// sameAsStored compares the answers to a client with the current version in the store.
func sameAsStored(t *testing.T, s storage, c *client) {
	t.Helper()
	version := must.Get(snapshots.LoadBase(t.Context(), s, nil))(t)
	for path, target := range map[string]string{
		"standings/drivers/2024": "/standings?type=drivers&year=2024", "standings/constructors/2024": "/standings?type=constructors",
		"calendar/2024": "/calendar", "drivers": "/drivers", "predictions/2024": "/predictions", "accuracy/all": "/accuracy",
	} {
		body := bodyOf(t, version, path)
		if a := c.get(t, target); !bytes.Equal(a.body, body) {
			t.Errorf("GET %s is not %s of version %d:\n%s\n%s", target, path, version.Pointer.Version, a.body, body)
		}
	}
	if next := data[wire.NextRace](t, c.get(t, "/next-race")); next.SecondsToLights < 1 {
		t.Errorf("next race: %+v", next)
	}
}

// bodyOf reads the body of a catalog path of a version.
func bodyOf(t testing.TB, version *snapshots.Base, path string) []byte {
	t.Helper()
	entry, ok := version.Entry(path)
	if !ok {
		t.Fatalf("version %d has no %s", version.Pointer.Version, path)
	}
	return must.Get(version.Body(t.Context(), entry))(t)
}

// misconfigured gives the binary a store that it can not use, in every usual way.
func misconfigured(t *testing.T, s storage) {
	noBucket := strings.Replace(s.name, "s3://bucket-", "s3://nobody-made-", 1)
	for _, command := range [][]string{{"build"}, {"snapshots", "list"}, {"keys", "list"}, {"ledger", "audit"}} {
		refused(t, "", []string{s3blob.ErrNoBucket.Error(), "nobody-made-"}, append(command, "--store", noBucket)...)
	}
	edgeWaits(t, "", noBucket, s3blob.ErrNoBucket.Error())

	credentials := []string{s3blob.ErrCredentials.Error(), "AWS_SECRET_ACCESS_KEY", s.String()}
	for _, variable := range []string{"AWS_SECRET_ACCESS_KEY=wrong", "AWS_ACCESS_KEY_ID=nobody"} {
		t.Run(variable, func(t *testing.T) {
			for _, command := range [][]string{{"build"}, {"snapshots", "list"}, {"keys", "list"}, {"ledger", "audit"}} {
				refused(t, variable, credentials, append(command, "--store", s.name)...)
			}
			edgeWaits(t, variable, s.name, s3blob.ErrCredentials.Error())
		})
	}
}

// edgeWaits starts an edge that has nothing to serve, with a variable of the environment: it says why, and is
// not ready.
func edgeWaits(t *testing.T, variable, store, says string) {
	t.Helper()
	address := porttest.Address(t)
	edge := begin(t, t.TempDir(), "http://"+address, []string{"edge", "--store", store, "--listen", address}, variable)
	edge.await(t, func() bool { return edge.output.Says(says) })
	edge.await(t, func() bool { return edge.answers("/healthz") })
	must.Hold(t, !edge.answers("/readyz"), "an edge without data is ready")
}
