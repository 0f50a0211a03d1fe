package simulate_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// reached counts the named points that the seeds have reached: messages of warnings and errors, and sentinel errors.
type reached struct {
	mu    sync.Mutex
	count map[string]int
}

var points = &reached{count: map[string]int{}}

// sentinels are the exported errors of the packages that the world runs, by package and name.
var sentinels = map[string]error{
	"blob.ErrNotFound": blob.ErrNotFound, "blob.ErrConflict": blob.ErrConflict, "blob.ErrUnknown": blob.ErrUnknown, "blob.ErrUnsynced": blob.ErrUnsynced,
	"blob.ErrDamaged":  blob.ErrDamaged,
	"blob.ErrTooLarge": blob.ErrTooLarge, "blob.ErrUnconditional": blob.ErrUnconditional,
	"snapshots.ErrLower": snapshots.ErrLower, "snapshots.ErrRatchet": snapshots.ErrRatchet, "snapshots.ErrNotAccepted": snapshots.ErrNotAccepted,
	"snapshots.ErrNewKey": snapshots.ErrNewKey, "snapshots.ErrNone": snapshots.ErrNone, "snapshots.ErrDamaged": snapshots.ErrDamaged,
	"snapshots.ErrBuild": snapshots.ErrBuild, "snapshots.ErrNoBase": snapshots.ErrNoBase, "snapshots.ErrUnsigned": snapshots.ErrUnsigned,
	"snapshots.ErrNoSigner": snapshots.ErrNoSigner, "snapshots.ErrMovedBack": snapshots.ErrMovedBack, "snapshots.ErrHeld": snapshots.ErrHeld,
	"snapshots.ErrBaseChanged": snapshots.ErrBaseChanged, "snapshots.ErrMayNotFollow": snapshots.ErrMayNotFollow,
	"notes.ErrUntrusted": notes.ErrUntrusted, "notes.ErrLower": notes.ErrLower,
	"keys.ErrNoKey": keys.ErrNoKey, "keys.ErrInactive": keys.ErrInactive, "keys.ErrFull": keys.ErrFull, "keys.ErrDamaged": keys.ErrDamaged,
	"keys.ErrUntrusted": keys.ErrUntrusted, "keys.ErrNoSigner": keys.ErrNoSigner, "keys.ErrOlder": keys.ErrOlder,
	"ledger.ErrNotOpened": ledger.ErrNotOpened, "ledger.ErrKind": ledger.ErrKind, "ledger.ErrClock": ledger.ErrClock, "ledger.ErrNewer": ledger.ErrNewer,
	"ledger.ErrEarlier": ledger.ErrEarlier, "ledger.ErrAlreadyFrozen": ledger.ErrAlreadyFrozen, "ledger.ErrStarted": ledger.ErrStarted,
	"ledger.ErrPast": ledger.ErrPast, "ledger.ErrNotStarted": ledger.ErrNotStarted, "ledger.ErrAlreadyVerified": ledger.ErrAlreadyVerified,
	"ledger.ErrUnchanged": ledger.ErrUnchanged, "ledger.ErrNotHeld": ledger.ErrNotHeld, "ledger.ErrNoStart": ledger.ErrNoStart,
	"ledger.ErrUnknownSession": ledger.ErrUnknownSession, "ledger.ErrByPerson": ledger.ErrByPerson, "ledger.ErrOlder": ledger.ErrOlder,
	"live.ErrImplausible": live.ErrImplausible, "live.ErrHeld": live.ErrHeld, "live.ErrNoEffect": live.ErrNoEffect,
}

// met counts the sentinels in an error.
func (r *reached) met(w *world, err error) {
	if err == nil {
		return
	}
	w.note("error %v", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			r.count[name]++
		}
	}
}

// handler collects the messages of a process.
func (r *reached) handler(w *world) slog.Handler { return collector{r, w} }

type collector struct {
	r *reached
	w *world
}

func (collector) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (c collector) WithAttrs([]slog.Attr) slog.Handler         { return c }
func (c collector) WithGroup(string) slog.Handler              { return c }

// Handle implements [slog.Handler].
func (c collector) Handle(_ context.Context, record slog.Record) error {
	c.w.note("%s %s", record.Level, record.Message)
	record.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			c.r.met(c.w, err)
		}
		return true
	})
	if record.Level >= slog.LevelWarn {
		c.r.mu.Lock()
		defer c.r.mu.Unlock()
		c.r.count[record.Message]++
	}
	return nil
}

// packages have the messages and errors that are named points.
var packages = []string{"snapshots", "snapshots/blob", "snapshots/notes", "edge/keys", "edge/limit", "edge/limit/redislimit", "builder/ledger", "builder/ingest", "builder/live"}

// declared returns the named points of the packages: the constant message of each warning and error, and each exported error.
func declared(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pkg := range packages {
		for _, path := range must.Get(filepath.Glob("../../" + pkg + "/*.go"))(t) {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					f, ok := n.Fun.(*ast.SelectorExpr)
					if !ok || f.Sel.Name != "Warn" && f.Sel.Name != "Error" || len(n.Args) == 0 {
						break
					}
					if text, ok := n.Args[0].(*ast.BasicLit); ok {
						names = append(names, must.Get(strconv.Unquote(text.Value))(t))
					}
				case *ast.ValueSpec:
					for _, name := range n.Names {
						if strings.HasPrefix(name.Name, "Err") {
							names = append(names, file.Name.Name+"."+name.Name)
						}
					}
				}
				return true
			})
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// elsewhere reads the named points that no simulated week reaches, each with the test that does.
func elsewhere(t *testing.T) map[string]string {
	t.Helper()
	points := map[string]string{}
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/elsewhere.txt"))(t))) {
		if name, test, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			points[name] = test
		}
	}
	return points
}

// TestPoints: each sentinel is in the table, and each point of the other list exists and names a test of the repository.
func TestPoints(t *testing.T) {
	names := declared(t)
	for _, name := range names {
		if strings.Contains(name, ".Err") {
			must.Hold(t, sentinels[name] != nil, "%s is not in the table of sentinels", name)
		}
	}
	for name, test := range elsewhere(t) {
		must.Hold(t, slices.Contains(names, name), "elsewhere.txt has %q, which no package says", name)
		pkg, function, _ := strings.Cut(test, " ")
		found := false
		for _, path := range must.Get(filepath.Glob("../../" + pkg + "/*_test.go"))(t) {
			found = found || strings.Contains(string(must.Get(os.ReadFile(path))(t)), "func "+function+"(")
		}
		must.Hold(t, found, "elsewhere.txt names %q for %q, and there is no such test", test, name)
	}
}

// checkPoints demands that the seeds have reached every named point, but for those that another test reaches.
func checkPoints(t *testing.T, counts []map[string]int) {
	t.Helper()
	all := map[string]int{}
	for _, count := range counts {
		for name, n := range count {
			all[name] += n
		}
	}
	others := elsewhere(t)
	for _, name := range declared(t) {
		if n := all[name]; n > 0 {
			t.Logf("%6d  %s", n, name)
		} else if others[name] == "" {
			t.Errorf("no seed reached %q: let the world reach it, or name the test that does in testdata/elsewhere.txt", name)
		}
	}
}
