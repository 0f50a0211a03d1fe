package edge_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob/memblob"
)

// file is an incompressible download of n bytes.
func file(n int, seed byte) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return data
}

// awaitDownloads waits until the edge has copies of all downloads of a version.
func (w *world) awaitDownloads(version int64) {
	w.t.Helper()
	w.await("downloads on disk", func() bool { return w.edge.DownloadsMade() == version })
}

func inDir(dir string) option {
	return func(c *edge.Config, _ *edge.Deps, _ *setup) { c.CacheDir = dir }
}

// TestDownload requests the file of a season in every way, with a folder for copies and without.
func TestDownload(t *testing.T) {
	for _, dir := range []string{t.TempDir(), ""} {
		w := newWorld(t, inDir(dir))
		r := w.get("/api/v1/bulk")
		must.Hold(t, r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "", "a version without downloads: got %d", r.StatusCode)
		older, current := file(70_000, 1), file(1000, 2)
		edgetest.PublishBulk(t, w.store, map[int][]byte{2023: older, 2024: current})
		w.awaitDownloads(2)
		full := w.get("/api/v1/bulk?year=2023")
		must.Hold(t, full.StatusCode == http.StatusOK && bytes.Equal(full.body, older), "got %d with %d bytes, want the file", full.StatusCode, len(full.body))
		var status struct {
			Data edge.StatusDocument `json:"data"`
		}
		must.Do(t, json.Unmarshal(w.do("GET", "/status").body, &status))
		if got := status.Data.Downloads; len(got) != 2 || got[0].Year != 2023 || got[0].Size != 70_000 || !got[0].Ready || !strings.HasPrefix(got[0].SHA256, strings.Trim(full.Header.Get("ETag"), `"`)) {
			t.Errorf("/status says %+v", got)
		}
		sent := uint64(len(r.body) + len(full.body))
		w.await("the bytes of the file to be counted", func() bool { return w.edge.Usage().Keys[0].Bytes == sent })
		place := w.edge.DownloadFolder()
		must.Do(t, w.stop())
		_, err := os.Stat(place)
		must.Hold(t, (err == nil) == (dir != ""), "after the end, the folder %s: %v", place, err)
	}
}

// countedDownloads counts the files that it makes.
type countedDownloads struct {
	edge.Downloads
	made atomic.Int64
}

func (d *countedDownloads) Make(v *snapshots.Version, year int) ([]byte, error) {
	d.made.Add(1)
	return d.Downloads.Make(v, year)
}

// TestDownloadsAreMadeOnce: the edge makes the files of the last of several versions in a row alone. It finds those on
// its disk at once.
func TestDownloadsAreMadeOnce(t *testing.T) { inBubble(t, madeOnce) }

func madeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[a-z]*") // a pattern that does not match itself
	counted := &countedDownloads{Downloads: edgetest.Downloads{}}
	start := func(options ...option) *world {
		return newWorld(t, append(options, piped, inDir(dir), func(_ *edge.Config, d *edge.Deps, s *setup) {
			d.Downloads, s.quiet = counted, 3*time.Second
		})...)
	}
	w := start()
	for n := range 3 {
		edgetest.PublishBulk(t, w.store, map[int][]byte{2023: file(100, byte(n)), 2024: file(200, byte(n))})
		w.await("served", func() bool { return w.edge.Status().Version == int64(2+n) })
		must.Advance(time.Second)
	}
	made := counted.made.Load()
	must.Hold(t, made == 0, "made %d files while other versions followed, want none", made)
	w.awaitDownloads(4)
	made = counted.made.Load()
	must.Hold(t, made == 2, "made %d files, want those of the last version alone", made)
	must.Do(t, w.stop())
	again := start(func(_ *edge.Config, d *edge.Deps, s *setup) {
		d.Store, s.keys, s.version, s.copied = w.store, false, false, true
	})
	began := time.Now()
	again.awaitDownloads(4)
	if waited := time.Since(began); waited > 2*time.Second || counted.made.Load() != 2 {
		t.Errorf("after a restart: %d files made, found after %v", counted.made.Load()-2, waited)
	}
}

// TestDamagedCopyIsNotSent uses copies that were changed, cut short and removed on the disk.
func TestDamagedCopyIsNotSent(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, inDir(dir))
	want := file(50_000, 3)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2024: want})
	w.awaitDownloads(2)
	copies, err := filepath.Glob(filepath.Join(dir, "downloads", "*.zip"))
	must.Require(t, err == nil && len(copies) == 1, "got %v, %v, want one file", copies, err)
	for _, tt := range []struct {
		decision string
		damage   func() error
	}{
		{"changed", func() error {
			return os.WriteFile(copies[0], append(bytes.Clone(want[:49_999]), want[49_999]^1), 0o600)
		}},
		{"cut short", func() error { return os.Truncate(copies[0], 10) }},
		{"removed", func() error { return os.Remove(copies[0]) }},
	} {
		must.Do(t, tt.damage())
		if r := w.get("/api/v1/bulk"); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d with %d bytes, want a 503", tt.decision, r.StatusCode, len(r.body))
		}
		w.awaitDownloads(2)
		r := w.get("/api/v1/bulk")
		must.Hold(t, bytes.Equal(r.body, want), "%s: got %d with %d bytes, want the file made again", tt.decision, r.StatusCode, len(r.body))
	}
}

// TestDownloadsWithoutStorage starts from another edge's copies on disk, one of them damaged.
func TestDownloadsWithoutStorage(t *testing.T) {
	dir := t.TempDir()
	first := newWorld(t, inDir(dir))
	want := file(5000, 4)
	edgetest.PublishBulk(t, first.store, map[int][]byte{2023: file(100, 5), 2024: want})
	first.awaitDownloads(2)
	first.await("copy on disk", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "version", "current.json"))
		return err == nil && bytes.Contains(data, []byte(`"version":2`))
	})
	older := file(100, 5)
	damaged := filepath.Join(dir, "downloads", snapshots.Digest(older)+"-"+snapshots.Digest(older)+".zip")
	must.Do(t, first.stop())
	must.Do(t, os.WriteFile(damaged, nil, 0o600))
	second := newWorld(t, inDir(dir), withoutKeys, withoutVersion, func(_ *edge.Config, d *edge.Deps, s *setup) {
		d.Store = dead(d.Store)
		s.copied = true
	})
	second.key = first.key
	second.await("copy found", func() bool { s := second.edge.Status(); return len(s.Downloads) == 2 && s.Downloads[1].Ready })
	r := second.get("/api/v1/bulk")
	must.Hold(t, bytes.Equal(r.body, want), "got %d with %d bytes, want the copy", r.StatusCode, len(r.body))
	r = second.get("/api/v1/bulk?year=2023")
	must.Hold(t, bytes.Equal(r.body, older), "the damaged copy: got %d with %d bytes, want the file made again", r.StatusCode, len(r.body))
}

// TestDownloadsAfterARestore: a store restored from a backup has earlier downloads, which
// the edge no longer has on its disk. The edge makes them again, and then sends none of the later files for them.
func TestDownloadsAfterARestore(t *testing.T) { inBubble(t, restoredDownloads) }

func restoredDownloads(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, piped, inDir(dir))
	before, same := file(5000, 11), file(300, 12)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2023: same, 2024: before})
	w.awaitDownloads(2)
	place := memblob.New()
	must.Get(backup.Make(t.Context(), w.store, place, time.Now(), nil))(t)
	lost := file(700, 13)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2023: same, 2024: lost})
	w.awaitDownloads(3)
	gone := filepath.Join(dir, "downloads", snapshots.Digest(before)+"-"+snapshots.Digest(before)+".zip")
	w.await("the old file gone", func() bool { _, err := os.Stat(gone); return os.IsNotExist(err) })

	var keys []string
	for info, err := range w.store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	for _, key := range keys {
		must.Do(t, w.store.Delete(t.Context(), key))
	}
	r := w.get("/api/v1/bulk")
	must.Hold(t, bytes.Equal(r.body, lost), "while the store is lost: got %d with %d bytes, want what the disk has", r.StatusCode, len(r.body))
	restored := must.Get(backup.Restore(t.Context(), backup.Restoring{Store: w.store, Backup: place, Builder: "test", Above: 3}))(t)
	w.awaitDownloads(restored.Version)
	for year, want := range map[string][]byte{"2023": same, "2024": before} {
		r := w.get("/api/v1/bulk?year=" + year)
		must.Hold(t, bytes.Equal(r.body, want), "restored, %s: got %d with %d bytes, want the %d of the backup", year, r.StatusCode, len(r.body), len(want))
	}
}

// begin requests the current season's file on its own connection and reads the head of the answer.
func (w *world) begin() (status int, length int64, rest *bufio.Reader) {
	w.t.Helper()
	return w.beginOn(w.dial(), "pro")
}

func (w *world) beginOn(c net.Conn, key string) (status int, length int64, rest *bufio.Reader) {
	w.t.Helper()
	must.Get(io.WriteString(c, request("GET", "/api/v1/bulk", "X-API-Key: "+w.key[key])))(w.t)
	rest = bufio.NewReader(c)
	r := must.Get(http.ReadResponse(rest, nil))(w.t)
	return r.StatusCode, r.ContentLength, rest
}

// stall requests the current season's file from a loopback address, with a small receive buffer, and never reads.
func (w *world) stall(host byte, key string) {
	w.t.Helper()
	dialer := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)},
		Control: func(_, _ string, socket syscall.RawConn) (err error) {
			return errors.Join(socket.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
			}), err)
		},
	}
	c := must.Get(dialer.Dial("tcp", w.listener.Addr().String()))(w.t)
	w.t.Cleanup(func() { c.Close() })
	must.Get(io.WriteString(c, request("GET", "/api/v1/bulk", "X-API-Key: "+w.key[key])))(w.t)
}

// TestDownloadsAreShared: neither a key nor an address with stalled downloads keeps the others from theirs.
func TestDownloadsAreShared(t *testing.T) {
	for _, tt := range []struct {
		decision string
		held     int
		stall    func(w *world, i int)
	}{
		{"one key from many addresses", 8, func(w *world, i int) { w.stall(byte(2+i), "standard") }},
		{"one address with several keys", 16, func(w *world, i int) { w.stall(2, []string{"standard", "trial", "sandbox"}[i%3]) }},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			w := newWorld(t)
			want := file(16<<20, 14)
			edgetest.PublishBulk(t, w.store, map[int][]byte{2024: want})
			w.awaitDownloads(2)
			for i := range 66 {
				tt.stall(w, i)
			}
			w.await("the share in use", func() bool { return w.edge.Downloading() == tt.held })
			r := w.get("/api/v1/bulk")
			must.Hold(t, bytes.Equal(r.body, want), "another key: got %d with %d bytes, want the file", r.StatusCode, len(r.body))
		})
	}
}

// fromAddress is a connection from another address.
type fromAddress struct {
	net.Conn
	host byte
}

func (c fromAddress) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, c.host), Port: 1}
}

// TestSlowestDownloadIsEvicted: when all slots are in use, the next client takes that of the slowest one. A client
// keeps its slot while its rate is still unknown.
func TestSlowestDownloadIsEvicted(t *testing.T) { inBubble(t, slowestEvicted) }

func slowestEvicted(t *testing.T) {
	w := newWorld(t, piped)
	want := file(1<<20, 15)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2024: want})
	w.awaitDownloads(2)
	w.edge.SetDownloads(4, 8<<10)
	from := func(host byte) net.Conn {
		client, server := net.Pipe()
		t.Cleanup(func() { client.Close() })
		w.listener.(*edgetest.Listener).Hand(fromAddress{server, host})
		return client
	}
	var rests []*bufio.Reader
	for i, key := range []string{"trial", "standard", "pro", "sandbox"} {
		status, length, rest := w.beginOn(from(byte(i)), key)
		must.Require(t, status == 200 && length == int64(len(want)), "%s: got %d, %d bytes", key, status, length)
		if key != "standard" {
			must.Get(io.CopyN(io.Discard, rest, 200<<10))(t)
		}
		rests = append(rests, rest)
	}
	status, _, _ := w.beginOn(from(5), "widget")
	must.Hold(t, status == http.StatusServiceUnavailable, "at once: got %d, want 503", status)
	must.Advance(2 * time.Second)
	if status, _, rest := w.beginOn(from(6), "widget"); status != http.StatusOK {
		t.Errorf("later: got %d, want 200", status)
	} else if got, err := io.ReadAll(io.LimitReader(rest, int64(len(want)))); !bytes.Equal(got, want) {
		t.Errorf("later: got %d bytes, %v, want the file", len(got), err)
	}
	for i, rest := range rests {
		n, err := io.Copy(io.Discard, io.LimitReader(rest, int64(len(want)-200<<10)))
		whole := n == int64(len(want)-200<<10)
		must.Hold(t, whole == (i != 1), "client %d: %d more bytes, %v", i, n, err)
	}
}

// TestPatienceFollowsBytes: a large file does not let a client that accepts nothing keep its slot for longer.
func TestPatienceFollowsBytes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var timeout time.Duration
		w := newWorld(t, piped, func(c *edge.Config, _ *edge.Deps, _ *setup) { timeout = c.WriteTimeout })
		edgetest.PublishBulk(t, w.store, map[int][]byte{2024: file(4<<20, 16)})
		w.awaitDownloads(2)
		began := time.Now()
		_, length, rest := w.begin()
		w.await("the file closed", func() bool { return w.edge.Downloading() == 0 })
		waited := time.Since(began)
		must.Hold(t, waited <= 3*timeout, "the slot was free after %v, want about %v", waited, timeout)
		n, err := io.Copy(io.Discard, rest)
		must.Hold(t, n < length, "got %d of %d bytes, %v: want the connection closed before", n, length, err)
	})
}

// TestSlowReaderGetsWhatItBegan: the transfer takes longer than the server's deadline for short answers, and
// meanwhile another version replaces the file. Requests beyond the allowed number wait.
func TestSlowReaderGetsWhatItBegan(t *testing.T) { inBubble(t, slowReader) }

func slowReader(t *testing.T) {
	dir := t.TempDir()
	var timeout time.Duration
	w := newWorld(t, piped, inDir(dir), func(c *edge.Config, _ *edge.Deps, _ *setup) { timeout = c.WriteTimeout })
	w.edge.SetDownloads(1, 1<<10)
	want := file(1<<20, 6)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2024: want})
	w.awaitDownloads(2)
	status, length, rest := w.begin()
	must.Require(t, status == 200 && length == int64(len(want)), "got %d, %d bytes", status, length)
	r := w.get("/api/v1/bulk")
	must.Hold(t, r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "", "one too many: got %d", r.StatusCode)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2024: file(10, 7)})
	w.awaitDownloads(3)
	w.await("the old file gone", func() bool { copies, _ := filepath.Glob(filepath.Join(dir, "downloads", "*")); return len(copies) == 1 })
	must.Advance(2 * timeout)
	got := make([]byte, length)
	if _, err := io.ReadFull(rest, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the rest: %v, equal: %t", err, bytes.Equal(got, want))
	}
	w.await("the file closed", func() bool { return w.edge.Downloading() == 0 })
	r = w.get("/api/v1/bulk")
	must.Hold(t, r.StatusCode == http.StatusOK && len(r.body) == 10, "afterwards: got %d with %d bytes, want the new file", r.StatusCode, len(r.body))
}

// TestDownloadsAreNotInMemory sends a file several times and counts all allocations.
func TestDownloadsAreNotInMemory(t *testing.T) {
	w := newWorld(t)
	const size = 24 << 20
	times := 6
	if testing.Short() {
		times = 2
	}
	edgetest.PublishBulk(t, w.store, map[int][]byte{2024: file(size, 9)})
	w.awaitDownloads(2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	buffer := make([]byte, 64<<10)
	for range times {
		status, length, rest := w.begin()
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(rest, length), buffer)
		if status != 200 || n != size || err != nil {
			t.Fatalf("got %d, %d bytes, %v", status, n, err)
		}
	}
	runtime.ReadMemStats(&after)
	got := after.TotalAlloc - before.TotalAlloc
	must.Hold(t, got <= size/4, "%d bytes were allocated to send %d", got, times*size)
}

// TestDownloadsWithoutADisk: if no folder is writable, the edge serves everything else.
func TestDownloadsWithoutADisk(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	w := newWorld(t)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2024: file(10, 10)})
	w.await("version", func() bool { return w.edge.Status().Version == 2 })
	r := w.get("/api/v1/bulk")
	must.Hold(t, r.StatusCode == http.StatusServiceUnavailable, "got %d, want a 503", r.StatusCode)
	r = w.get("/api/v1/calendar")
	must.Hold(t, r.StatusCode == http.StatusOK, "the calendar: got %d", r.StatusCode)
	d := w.edge.Status().Downloads
	must.Hold(t, len(d) == 0, "the status says %+v", d)
}
