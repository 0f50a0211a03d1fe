// Package codehosttest is a code host on loopback for tests. It serves a branch as a tar.gz with the
// commit in its header and an ETag, as the branch was at an instant of race time. It misbehaves on
// command.
package codehosttest

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Host serves one repository. Its methods are safe for concurrent use.
type Host struct {
	URL     string // of the branch as a tar.gz
	Commits []Commit

	now  func() time.Time
	repo string

	mu       sync.Mutex
	blobs    *exec.Cmd
	ask      io.WriteCloser
	answers  *bufio.Reader
	content  map[string][]byte // by blob
	only     map[string][]byte // the files of a branch without a repository
	edits    []Edit
	fault    func(http.ResponseWriter, *http.Request) bool
	packed   map[string][]byte // by commit
	headers  map[fileHeader][]byte
	requests int
	sent     int
}

// Commit is a commit of the branch.
type Commit struct {
	ID      string
	At      time.Time
	Subject string
}

// Edit is a commit of a test, from an instant on. Rename moves whole folders, then Change replaces and
// deletes files by their path in the repository.
type Edit struct {
	At time.Time
	// Committed is the time of the commit, At if it is zero. It also ends the times of earlier edits.
	Committed time.Time
	Rename    map[string]string // folder to folder
	Change    func(files map[string][]byte)
}

// folders are read beside the seasons around a commit. The many old seasons are left out, for speed.
var folders = []string{"drivers", "constructors", "engine-manufacturers", "circuits", "grands-prix", "countries"}

// New starts a host for the repository in a git bundle, as of now(), and ends it with the test.
// The test is skipped where the bundle is missing.
func New(t testing.TB, bundle string, now func() time.Time) *Host {
	t.Helper()
	info, err := os.Stat(bundle)
	if err != nil {
		t.Skipf("needs a git bundle of F1DB's repository at %s: %v", bundle, err)
	}
	repo, err := clone(bundle, info)
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{now: now, repo: repo, content: make(map[string][]byte), packed: make(map[string][]byte)}
	log, err := exec.Command("git", "-C", h.repo, "log", "--first-parent", "--reverse", "--format=%H %cI %s", "main").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		parts := strings.SplitN(strings.TrimSpace(line), " ", 3)
		at, err := time.Parse(time.RFC3339, parts[1])
		if err != nil {
			t.Fatal(err)
		}
		h.Commits = append(h.Commits, Commit{parts[0], at.UTC(), parts[2]})
	}
	h.blobs = exec.Command("git", "-C", h.repo, "cat-file", "--batch")
	if h.ask, err = h.blobs.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.blobs.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.answers = bufio.NewReader(out)
	if err := h.blobs.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.ask.Close()
		_ = h.blobs.Wait()
	})
	h.serve(t)
	return h
}

// clone returns the repository of a bundle. All tests on a machine read the same clone, because making one takes more
// than half a second.
func clone(bundle string, info os.FileInfo) (repo string, err error) {
	repo = filepath.Join(os.TempDir(), fmt.Sprintf("gridcast-codehost-%d-%d-%d", os.Getuid(), info.Size(), info.ModTime().Unix()))
	if _, err := os.Stat(repo); err == nil {
		return repo, nil
	}
	fresh, err := os.MkdirTemp("", "gridcast-codehost-")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("git", "clone", "--quiet", "--bare", "-b", "main", bundle, fresh).CombinedOutput(); err != nil {
		return "", fmt.Errorf("git clone %s: %w\n%s", bundle, err, out)
	}
	if err := os.Rename(fresh, repo); err == nil {
		return repo, nil
	}
	_, err = os.Stat(repo) // another process was faster
	return repo, errors.Join(err, os.RemoveAll(fresh))
}

// Of starts a host for a branch with one commit of these files, at an instant.
func Of(t testing.TB, at time.Time, files map[string][]byte, now func() time.Time) *Host {
	t.Helper()
	h := &Host{now: now, only: files, packed: make(map[string][]byte), Commits: []Commit{{strings.Repeat("0", 40), at, "begin"}}}
	h.serve(t)
	return h
}

func (h *Host) serve(t testing.TB) {
	server := httptest.NewServer(h)
	server.Config.SetKeepAlivesEnabled(false) // a client in a synctest bubble must not wait for a connection
	h.URL = server.URL + "/f1db/f1db/tar.gz/refs/heads/main"
	t.Cleanup(server.Close)
}

// Edit adds commits that the test makes.
func (h *Host) Edit(edits ...Edit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.edits = append(h.edits, edits...)
	sort.SliceStable(h.edits, func(i, j int) bool { return h.edits[i].At.Before(h.edits[j].At) })
}

// Misbehave lets a function answer the requests for which it returns true. Nil ends that.
func (h *Host) Misbehave(fault func(http.ResponseWriter, *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
}

// Served counts the requests, and the archives that were sent.
func (h *Host) Served() (requests, archives int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests, h.sent
}

// Instants returns the instants at which the branch changes, in order.
func (h *Host) Instants() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := make([]time.Time, 0, len(h.Commits)+len(h.edits))
	for _, c := range h.Commits {
		at = append(at, c.At)
	}
	for _, e := range h.edits {
		at = append(at, e.At)
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	fault := h.fault
	h.requests++
	h.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	packed, id, err := h.Archive(h.now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	tag := `"` + id + `"`
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.mu.Lock()
	h.sent++
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-gzip")
	_, _ = w.Write(packed)
}

// Archive returns the branch at an instant and the commit that it names.
func (h *Host) Archive(at time.Time) (packed []byte, id string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, found := slices.BinarySearchFunc(h.Commits, at, func(c Commit, at time.Time) int { return c.At.Compare(at) })
	if !found {
		i--
	}
	if i < 0 {
		return nil, "", fmt.Errorf("the repository has no commit at %s", at.Format(time.RFC3339))
	}
	commit := h.Commits[i]
	id = commit.ID
	edits := 0
	for edits < len(h.edits) && !h.edits[edits].At.After(at) {
		edits++
	}
	if edits > 0 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, edits))
		id = hex.EncodeToString(sum[:20])
	}
	if packed, ok := h.packed[id]; ok {
		return packed, id, nil
	}
	files, err := h.files(commit)
	if err != nil {
		return nil, "", err
	}
	committed := commit.At
	for _, e := range h.edits[:edits] {
		if e.Committed.IsZero() {
			e.Committed = e.At
		}
		committed = e.Committed
		for from, to := range e.Rename {
			for _, name := range slices.Collect(maps.Keys(files)) {
				if rest, ok := strings.CutPrefix(name, from+"/"); ok {
					files[to+"/"+rest] = files[name]
					delete(files, name)
				}
			}
		}
		if e.Change != nil {
			e.Change(files)
		}
	}
	if packed, err = h.pack(files, id, committed); err != nil {
		return nil, "", err
	}
	h.packed[id] = packed
	return packed, id, nil
}

// files returns the files of a commit: things, and the seasons around its year.
func (h *Host) files(c Commit) (map[string][]byte, error) {
	if h.only != nil {
		return maps.Clone(h.only), nil
	}
	args := []string{"-C", h.repo, "ls-tree", "-r", c.ID, "--"}
	for _, folder := range folders {
		args = append(args, "src/data/"+folder)
	}
	for year := c.At.Year() - 1; year <= c.At.Year()+1; year++ {
		args = append(args, "src/data/seasons/"+strconv.Itoa(year))
	}
	list, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-tree %s: %w", c.ID, err)
	}
	files := make(map[string][]byte)
	for line := range strings.Lines(string(list)) {
		about, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		blob := strings.Fields(about)[2]
		if _, ok := h.content[blob]; !ok {
			if h.content[blob], err = h.read(blob); err != nil {
				return nil, err
			}
		}
		files[name] = h.content[blob]
	}
	return files, nil
}

// read asks git for a blob.
func (h *Host) read(blob string) ([]byte, error) {
	if _, err := fmt.Fprintln(h.ask, blob); err != nil {
		return nil, fmt.Errorf("git cat-file %s: %w", blob, err)
	}
	header, err := h.answers.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("git cat-file %s: %w", blob, err)
	}
	fields := strings.Fields(header)
	if len(fields) != 3 {
		return nil, fmt.Errorf("git cat-file %s: %s", blob, header)
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil {
		return nil, fmt.Errorf("git cat-file %s: %s", blob, header)
	}
	content := make([]byte, size+1) // and a line feed
	if _, err := io.ReadFull(h.answers, content); err != nil {
		return nil, fmt.Errorf("git cat-file %s: %w", blob, err)
	}
	return content[:size], nil
}

// pack makes the tar.gz of a branch.
func (h *Host) pack(files map[string][]byte, id string, committed time.Time) ([]byte, error) {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zipped)
	header := tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": id}}
	if err := archive.WriteHeader(&header); err != nil {
		return nil, err
	}
	if err := archive.Flush(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header, err := h.header(name, len(files[name]), committed)
		if err != nil {
			return nil, err
		}
		for _, part := range [][]byte{header, files[name], zeros[:-len(files[name])&(block-1)]} {
			if _, err := zipped.Write(part); err != nil {
				return nil, err
			}
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// block is the size to which a tar fills headers and files up with zeros.
const block = 512

var zeros [block]byte

// header returns the tar header of a file. Headers of the next commit differ by time and checksum alone, and package
// tar takes longer for one than compressing its file.
func (h *Host) header(name string, size int, committed time.Time) ([]byte, error) {
	key := fileHeader{name, size}
	if h.headers[key] == nil {
		var written bytes.Buffer
		header := tar.Header{Typeflag: tar.TypeReg, Name: "f1db-main/" + name, Mode: 0o644, Size: int64(size), ModTime: time.Unix(0, 0)}
		if err := tar.NewWriter(&written).WriteHeader(&header); err != nil {
			return nil, err
		}
		if h.headers == nil {
			h.headers = make(map[fileHeader][]byte)
		}
		h.headers[key] = written.Bytes()
	}
	all := h.headers[key]
	last := all[len(all)-block:] // a long name comes in blocks before it
	copy(last[136:], fmt.Sprintf("%011o", committed.Round(time.Second).Unix()))
	copy(last[148:], "        ")
	sum := 0
	for _, c := range last {
		sum += int(c)
	}
	copy(last[148:], fmt.Sprintf("%06o\x00 ", sum))
	return all, nil
}

// fileHeader identifies the header of a file, but for its time.
type fileHeader struct {
	name string
	size int
}
