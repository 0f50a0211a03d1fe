package deploy_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"gridcast/deploy/must"
)

// libraries says where each of the libraries that gridcast is built on does its work. A package of work must use
// those names of the library. A package of work, or of more, must not use a rival: another way to the same work. A
// rival that begins with a dot is a method. Packages of except are below one of work and may use rivals.
var libraries = []struct {
	module string
	work   map[string][]string
	more   []string
	rivals []string
	except []string
}{
	{
		module: "github.com/valyala/fasthttp",
		work:   map[string][]string{"edge": {"Server", "RequestCtx", "RequestHeader"}, "edge/resident": {"ResponseHeader"}},
		rivals: []string{
			"net/http.Server", "net/http.Serve", "net/http.ServeTLS", "net/http.ListenAndServe", "net/http.ListenAndServeTLS", "net/http.ReadRequest",
			"net.ListenTCP", "syscall.Accept", "syscall.Accept4", "syscall.Read", "syscall.Write", "golang.org/x/sys/unix.Accept4", "golang.org/x/sys/unix.EpollWait",
			".Hijack", ".HijackSetNoResponse", ".SyscallConn",
		},
		except: []string{"edge/adminport"},
	},
	{
		module: "github.com/go-co-op/gocron/v2",
		work:   map[string][]string{"scheduler": {"NewScheduler", "OneTimeJob", "DurationJob", "WithClock", "WithSingletonMode", "WithEventListeners", "WithMonitor", "WithStopTimeout"}},
		more:   []string{"scheduler/cadence"},
		rivals: []string{"time.NewTicker", "time.Tick", "time.Sleep"},
	},
	{
		module: "github.com/fsnotify/fsnotify",
		work:   map[string][]string{"snapshots/watch": {"NewWatcher"}},
		rivals: []string{"syscall.InotifyInit1", "syscall.InotifyAddWatch", "golang.org/x/sys/unix.InotifyInit1", "golang.org/x/sys/unix.InotifyAddWatch"},
	},
	{
		module: "github.com/minio/minio-go/v7",
		work:   map[string][]string{"snapshots/blob/s3blob": {"New", "Core", "Options", "PutObjectOptions", "GetObjectOptions"}},
		rivals: []string{"net/http.NewRequest", "net/http.NewRequestWithContext", "net/http.Get", "net/http.Post", "crypto/hmac.New"},
	},
	{
		module: "github.com/failsafe-go/failsafe-go",
		work:   map[string][]string{"snapshots/retry": {"NewBuilder", "With", "NewRoundTripper"}},
		more:   []string{"snapshots/blob/s3blob", "builder/source/jolpica", "builder/source/f1db"},
		rivals: []string{"time.Sleep", "time.After", "time.NewTicker"},
	},
	{
		module: "github.com/redis/go-redis/v9",
		work:   map[string][]string{"edge/limit/redislimit": {"NewUniversalClient", "UniversalOptions", "ClusterClient", "NewSentinelClient", "Cmd"}},
		rivals: []string{"bufio.NewReader", "bufio.NewReaderSize", "hash/crc32.ChecksumIEEE", "crypto/sha1.Sum"},
	},
	{
		module: "github.com/klauspost/compress",
		work:   map[string][]string{"snapshots": {"NewWriterLevel", "NewWriter", "NewReader"}, "builder/archive": {"NewWriter", "NewReader"}, "builder/source": {"NewWriter", "NewReader"}},
		rivals: []string{"compress/gzip.NewWriter", "compress/gzip.NewWriterLevel", "compress/gzip.NewReader", "compress/flate.NewWriter", "compress/flate.NewReader"},
	},
}

// TestLibrariesDoTheirWork holds each library to its place.
func TestLibrariesDoTheirWork(t *testing.T) {
	used := names(t)
	for _, l := range libraries {
		for pkg, wanted := range l.work {
			var got []string // names of the library, without its package
			for name := range used[pkg] {
				if path, symbol, _ := cutSymbol(name); below(path, l.module) {
					got = append(got, symbol)
				}
			}
			for _, name := range wanted {
				must.Hold(t, slices.Contains(got, name), "%s does not use %s of %s", pkg, name, l.module)
			}
		}
		ours := func(pkg string) bool {
			in := func(places []string) bool {
				return slices.ContainsFunc(places, func(place string) bool { return below(pkg, place) })
			}
			for place := range l.work {
				if below(pkg, place) && !in(l.except) {
					return true
				}
			}
			return in(l.more)
		}
		for pkg, names := range used {
			for _, rival := range l.rivals {
				must.Hold(t, !names[rival] || !ours(pkg), "%s uses %s beside %s", pkg, rival, l.module)
			}
		}
	}
}

// cutSymbol splits "golang.org/x/mod.Name" before the name.
func cutSymbol(name string) (path, symbol string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// names maps each package of the project to the names of other packages, as "net/http.Server", and the methods and
// fields, as ".Hijack", that its files use outside tests.
func names(t *testing.T) map[string]map[string]bool {
	t.Helper()
	used := map[string]map[string]bool{}
	for pkg, files := range sources(t) {
		used[pkg] = map[string]bool{}
		for _, file := range files {
			imported := map[string]string{} // path by name
			for _, spec := range file.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				imported[importName(path, spec.Name)] = path
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if selector, ok := n.(*ast.SelectorExpr); ok {
					x, _ := selector.X.(*ast.Ident)
					if x != nil && imported[x.Name] != "" {
						used[pkg][imported[x.Name]+"."+selector.Sel.Name] = true
					} else {
						used[pkg]["."+selector.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return used
}

// importName returns the name of an imported package in a file. A path that ends with a version has its name before.
func importName(path string, alias *ast.Ident) string {
	if alias != nil {
		return alias.Name
	}
	parts := strings.Split(path, "/")
	name := parts[len(parts)-1]
	if len(parts) > 1 && len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = parts[len(parts)-2]
	}
	return strings.TrimSuffix(strings.TrimPrefix(name, "go-"), "-go")
}

// TestDependenciesPage compares the tables of deploy/docs/dependencies.md with the direct requirements of go.mod.
func TestDependenciesPage(t *testing.T) {
	text := must.Get(os.ReadFile("../go.mod"))(t)
	module := must.Get(modfile.Parse("go.mod", text, nil))(t)
	page := must.Get(os.ReadFile("docs/dependencies.md"))(t)
	described := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v[^,]+), [0-9-]{10} \\| [^|]+ \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(string(page), -1) {
		described[row[1]] = row[2]
	}
	for _, r := range module.Require {
		if !r.Indirect && described[r.Mod.Path] != r.Mod.Version {
			t.Errorf("%s: the page has the version %q, go.mod has %s", r.Mod.Path, described[r.Mod.Path], r.Mod.Version)
		}
		delete(described, r.Mod.Path)
	}
	for path := range described {
		t.Errorf("the page describes %s, which go.mod does not require", path)
	}
}
