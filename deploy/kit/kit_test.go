package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

var when = time.Unix(1795320000, 0).UTC()

// checkout is a release of this checkout for this machine's processor. It has only the binary, which all tests share.
var checkout = release{Version: "v1.2.3", Source: "../..", Time: when}

// program links the binary of the checkout, whose packages are in the cache, and returns its path.
var program = sync.OnceValues(func() (string, error) {
	path := checkout.binary(runtime.GOARCH)
	return path, checkout.build(runtime.GOARCH, path)
})

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "kit")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	checkout.Out = folder
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// Two releases of one commit, made in different folders, have equal bytes and match their checksums.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	if _, err := program(); err != nil {
		t.Fatal(err)
	}
	first := checkout
	if err := first.pack([]string{runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}
	t.Run("reproducible", func(t *testing.T) {
		copied := filepath.Join(t.TempDir(), "elsewhere")
		if output, err := exec.Command("sh", "-c", "mkdir "+copied+" && cd ../.. && tar cf - --exclude=.git --exclude=.var . | tar xf - -C "+copied+" && mkdir "+copied+"/.var && ln -s $PWD/.var/node "+copied+"/.var/node").CombinedOutput(); err != nil {
			t.Fatalf("copy the checkout: %v\n%s", err, output)
		}
		second := release{Version: first.Version, Source: copied, Out: t.TempDir(), Time: first.Time}
		if err := second.make([]string{runtime.GOARCH}); err != nil {
			t.Fatal(err)
		}
		for _, name := range names(t, first.Out) {
			if one, other := read(t, first.Out, name), read(t, second.Out, name); !bytes.Equal(one, other) {
				t.Errorf("%s differs between two releases of the same files (%d and %d bytes)", name, len(one), len(other))
			}
		}
	})
	t.Run("binary", func(t *testing.T) { holdsBinary(t, first) })
	t.Run("archive", func(t *testing.T) { holdsArchive(t, first) })
	t.Run("materials", func(t *testing.T) { holdsMaterials(t, first) })
	t.Run("note", func(t *testing.T) { holdsNote(t, first) })
	t.Run("clients", func(t *testing.T) { holdsClients(t, first) })
	t.Run("checksums", func(t *testing.T) {
		for line := range strings.Lines(string(read(t, first.Out, "SHA256SUMS"))) {
			sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			if got := fmt.Sprintf("%x", sha256.Sum256(read(t, first.Out, name))); got != sum {
				t.Errorf("%s: got %s, want %s", name, got, sum)
			}
		}
	})
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	if len(list) != 5 {
		t.Fatalf("got %v, want binary, archive, materials, clients and checksums", list)
	}
	return list
}

func read(t *testing.T, folder, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The note is that of the checksums, and a program that knows the key of the releaser alone opens it. A changed checksum and
// another key are refused. A release without a key has none.
func holdsNote(t *testing.T, r release) {
	if _, err := os.Stat(filepath.Join(r.Out, "SHA256SUMS.note")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a release without a key has a note: %v", err)
	}
	private, public, err := note.GenerateKey(nil, "example.com/releases")
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := note.GenerateKey(nil, "example.com/releases")
	if err != nil {
		t.Fatal(err)
	}
	r.Key, r.Commit = filepath.Join(t.TempDir(), "key"), "abc123"
	if err := os.WriteFile(r.Key, []byte(private+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sums := string(read(t, r.Out, "SHA256SUMS"))
	if err := r.sign(sums); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.Out, "SHA256SUMS.note")
	defer os.Remove(path)
	open := func(key string) (string, error) {
		output, err := exec.Command(filepath.Join(r.Out, "gridcast-"+runtime.GOARCH), "signing", "open", path, "--key", key).CombinedOutput()
		return string(output), err
	}
	if got, err := open(public); err != nil || got != "# gridcast v1.2.3, commit abc123\n"+sums {
		t.Errorf("gridcast signing open: %v\n%s\nwant the checksums\n%s", err, got, sums)
	}
	check := exec.Command("sha256sum", "--check", "-")
	opened, _ := open(public)
	check.Dir, check.Stdin = r.Out, strings.NewReader(opened)
	if output, err := check.CombinedOutput(); err != nil || bytes.Count(output, []byte(": OK")) != 3 {
		t.Errorf("sha256sum --check: %v\n%s", err, output)
	}
	if got, err := open(other); err == nil || !strings.Contains(got, "not signed by a trusted key") {
		t.Errorf("with another key: %v, %s", err, got)
	}
	changed := bytes.Replace(read(t, r.Out, "SHA256SUMS.note"), []byte(sums[:8]), []byte("00000000"), 1)
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := open(public); err == nil || !strings.Contains(got, "not signed by a trusted key") {
		t.Errorf("with a changed checksum: %v, %s", err, got)
	}
}

// The typed clients compile, and read a running service: the one for Go, and where npm is the one for TypeScript.
func holdsClients(t *testing.T, r release) {
	folder := t.TempDir()
	if output, err := exec.Command("tar", "-xzf", filepath.Join(r.Out, "gridcast-v1.2.3-clients.tar.gz"), "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	run := func(dir string, words ...string) string {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		var faults bytes.Buffer
		cmd.Stderr = &faults
		output, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", words, err, output, &faults)
		}
		return string(output)
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("go/use/main.go", usesGo)
	run(filepath.Join(folder, "go"), "go", "build", "-o", "used", "./use")
	programs := map[string][]string{"go": {"./used"}}
	if _, err := os.Stat(filepath.Join(folder, "typescript")); err != nil {
		t.Log("no client for TypeScript:", errNoTypeScript)
	} else {
		modules, err := filepath.Abs("../../.var/node/node_modules")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(modules, filepath.Join(folder, "typescript/node_modules")); err != nil {
			t.Fatal(err)
		}
		write("typescript/use.ts", usesTypeScript)
		run(filepath.Join(folder, "typescript"), filepath.Join(modules, ".bin/tsc"), "--strict", "--skipLibCheck", "--target", "es2022", "--module", "node16", "--moduleResolution", "node16", "--outDir", "js", "use.ts")
		programs["typescript"] = []string{"node", "js/use.js"}
	}
	service, err := filepath.Abs(filepath.Join(r.Out, "gridcast-"+runtime.GOARCH))
	if err != nil {
		t.Fatal(err)
	}
	url, key := demonstration(t, service) // last, so that it ends before it derives odds
	for language, words := range programs {
		if got := run(filepath.Join(folder, language), append(words, url, key)...); got != "24 rounds, the next race is the Las Vegas Grand Prix\n" {
			t.Errorf("%s: got %q", language, got)
		}
	}
}

const usesGo = `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	gridcast "gridcast/client"
)

func main() {
	ctx := context.Background()
	client, err := gridcast.NewClientWithResponses(os.Args[1], gridcast.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-API-Key", os.Args[2])
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	calendar, err := client.GetCalendarWithResponse(ctx, &gridcast.GetCalendarParams{})
	if err != nil {
		log.Fatal(err)
	}
	next, err := client.GetNextRaceWithResponse(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d rounds, the next race is the %s\n", len(calendar.JSON200.Data), next.JSON200.Data.Name)
}
`

const usesTypeScript = `import { gridcast } from "./client";

async function main() {
  const client = gridcast(process.argv[2]!, process.argv[3]!);
  const calendar = await client.GET("/api/v1/calendar");
  const next = await client.GET("/api/v1/next-race");
  if (!calendar.data || !next.data) throw new Error("no data");
  const rounds: number = calendar.data.data.length;
  const name: string = next.data.data.name;
  console.log(rounds + " rounds, the next race is the " + name);
}

main().catch((error: unknown) => { console.error(error); process.exit(1); });
`

// demonstration starts the service on embedded seasons until the test ends, and returns its address and a key.
func demonstration(t *testing.T, program string) (url, key string) {
	t.Helper()
	folder := t.TempDir()
	printed, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", "--demo", "--demo-speed", "1", "--listen", "127.0.0.1:0", "--operator-listen", "127.0.0.1:0")
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, printed, printed
	cmd.Env = append(os.Environ(), "TMPDIR="+os.DevNull) // without a folder for them it makes no downloads
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
		printed.Close()
	})
	told := regexp.MustCompile(`(?s)gridcast serves (\S+).*\n  pro +\d+  (\S+)`)
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if m := told.FindSubmatch(read(t, folder, "log")); m != nil {
			return string(m[1]), string(m[2])
		}
		select {
		case <-ended:
			t.Fatalf("the demonstration ended:\n%s", read(t, folder, "log"))
		default:
		}
	}
	t.Fatalf("the demonstration does not serve:\n%s", read(t, folder, "log"))
	return "", ""
}

// The binary is static, prints its version, and contains no folder of the build machine.
func holdsBinary(t *testing.T, r release) {
	path := filepath.Join(r.Out, "gridcast-"+runtime.GOARCH)
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it is not static: %v, %v", libraries, err)
	}
	output, err := exec.Command(path, "version").Output()
	if err != nil || string(output) != "gridcast "+r.Version+"\n" {
		t.Errorf("it says %q, %v", output, err)
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if data := read(t, r.Out, "gridcast-"+runtime.GOARCH); bytes.Contains(data, []byte(here+"/deploy")) {
		t.Errorf("it names the folder it was built in, %s", here)
	}
}

func holdsArchive(t *testing.T, r release) {
	zip, err := gzip.NewReader(bytes.NewReader(read(t, r.Out, "gridcast-v1.2.3-linux-"+runtime.GOARCH+".tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	pack := tar.NewReader(zip)
	found := map[string]bool{}
	for {
		header, err := pack.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = true
		if header.Uid != 0 || header.Uname != "" || !header.ModTime.Equal(when) {
			t.Errorf("%s tells who packed it, or when: %+v", header.Name, header)
		}
	}
	for _, want := range []string{
		"gridcast", "deploy/CHANGELOG.md", "deploy/docs/installation.md", "deploy/systemd/gridcast-edge@.service",
		"deploy/prometheus/alerts.yaml", "deploy/grafana/gridcast.json", "deploy/kubernetes/edge.yaml", "deploy/compose/compose.yaml", "deploy/s3/policy.json",
	} {
		if !found[want] {
			t.Errorf("%s is not in the archive", want)
		}
	}
}

func holdsMaterials(t *testing.T, r release) {
	var bill struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(read(t, r.Out, "gridcast-v1.2.3-linux-"+runtime.GOARCH+".cdx.json"), &bill); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, c := range bill.Components {
		found[c.Name] = c.Version
	}
	// Compare the linker's record with the modules that go list names.
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./deploy/gridcast")
	list.Dir, list.Env = r.Source, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(output)) {
		path, version, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && found[path] != version {
			t.Errorf("%s %s: the bill of materials says %q", path, version, found[path])
		}
	}
	if bill.BOMFormat != "CycloneDX" || found["std"] != runtime.Version() {
		t.Errorf("got %s, std %s, want CycloneDX, %s", bill.BOMFormat, found["std"], runtime.Version())
	}
}
