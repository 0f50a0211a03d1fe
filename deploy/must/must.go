// Package must has the steps that every test takes, in one line a step. Do, Get and Get2 end a test whose set-up fails:
//
//	list := must.Get(keys.Load(t.Context(), store))(t)
//
// Hold, Equal, Fail and Succeed report and go on, Until and Advance wait. Binary is the program itself.
package must

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, or ends the test if err is not nil.
func Get[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Get2 is Get for two values.
func Get2[V, W any](v V, w W, err error) func(t testing.TB) (V, W) {
	return func(t testing.TB) (V, W) {
		t.Helper()
		Do(t, err)
		return v, w
	}
}

// JSON returns the value of a document, or ends the test if it has none of that type.
func JSON[V any](t testing.TB, document []byte) (v V) {
	t.Helper()
	Do(t, json.Unmarshal(document, &v))
	return v
}

// Long skips a test in a short run. The text names the long part.
func Long(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: " + what)
	}
}

// Until waits until condition holds, and ends the test if it does not within four minutes, which a busy machine does not
// need for anything. In a bubble of synctest the wait takes no real time. The text completes "did not happen: ".
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !Within(4*time.Minute, condition) {
		t.Fatalf("did not happen: %s", what)
	}
}

// Hold reports a property that does not hold. Its arguments are evaluated in any case.
func Hold(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// Within waits until condition holds, and reports whether it does before the limit. It looks again after a quarter of the
// time that it has waited, but after a quarter of a second at the latest.
func Within(limit time.Duration, condition func() bool) bool {
	for began := time.Now(); !condition(); {
		waited := time.Since(began)
		if waited > limit {
			return false
		}
		time.Sleep(min(max(waited/4, time.Millisecond), time.Second/4))
	}
	return true
}

// Require is Hold for a property without which the test cannot go on: it ends the test.
func Require(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Equal reports the difference between the value that a test wants and the value that it got.
func Equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Err returns the error of a call with one more result.
func Err[V any](_ V, err error) error { return err }

// Err2 returns the error of a call with two more results.
func Err2[V, W any](_ V, _ W, err error) error { return err }

// Fail reports a call that succeeds, or fails with another error than the wanted one. Without one any error will do.
func Fail(t testing.TB, what string, err error, want ...error) {
	t.Helper()
	switch {
	case len(want) == 0 && err == nil:
		t.Errorf("%s: got no error", what)
	case len(want) > 0 && !errors.Is(err, want[0]):
		t.Errorf("%s: got %v, want %v", what, err, want[0])
	}
}

// Succeed reports a call that fails.
func Succeed(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Show reports each part that a document lacks. It is for parts that code derives. A sentence for people is a golden.
func Show(t testing.TB, document, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q", document, part)
		}
	}
}

// Hide reports each part that a document must not have. An empty part is one: a test that lost its secret shows nothing.
func Hide(t testing.TB, document, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q:\n%s", document, part, text)
		}
	}
}

// Replace returns the text with its first was replaced. It ends the test if there is none, because a change that changes
// nothing tests nothing.
func Replace(t testing.TB, text, was, is string) string {
	t.Helper()
	before, after, ok := strings.Cut(text, was)
	Require(t, ok, "there is no %q to replace in %.200q", was, text)
	return before + is + after
}

// Advance lets time pass in a bubble of synctest, until everything due by then has happened. It panics outside of a bubble.
func Advance(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// Buffer collects output. It is safe for concurrent use, so a test reads it while a process or a logger writes.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// Says reports whether the output until now has every text.
func (b *Buffer) Says(texts ...string) bool {
	output := b.String()
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(output, text) })
}

// String returns the output until now.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Flags are the flags of make build. Packages that tests compile with them are in the build cache.
var Flags = []string{"-trimpath", "-ldflags", "-s -w"}

// Binary returns the path of the real binary. All test packages two folders below the top share the file, because each
// link takes several seconds of CPU time. A lock keeps a package from replacing the file while another runs it.
var Binary = sync.OnceValues(func() (path string, err error) {
	path, err = filepath.Abs("../../.var/test/gridcast")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err != nil {
		return "", err
	}
	lock, err := os.Create(path + ".lock")
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	build := exec.Command("go", slices.Concat([]string{"build"}, Flags, []string{"-o", path, "gridcast/deploy/gridcast"})...) //nolint:gosec // no argument is of a stranger
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build gridcast: %w\n%s", err, output)
	}
	return path, nil
})
