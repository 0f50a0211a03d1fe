package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
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
		if output, err := exec.Command("sh", "-c", "mkdir "+copied+" && cd ../.. && tar cf - --exclude=.git --exclude=.var . | tar xf - -C "+copied).CombinedOutput(); err != nil {
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
	t.Run("image", func(t *testing.T) { holdsImage(t, first) })
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
		t.Fatalf("got %v, want binary, archive, materials, image and checksums", list)
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

// The image's layers hold a binary, authorities and a user, and nothing else. The image runs as nobody in a
// read-only root.
func holdsImage(t *testing.T, r release) {
	image, err := tarball.ImageFromPath(filepath.Join(r.Out, "gridcast-v1.2.3-linux-"+runtime.GOARCH+".image.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/gridcast"}) || config.Architecture != runtime.GOARCH {
		t.Errorf("got user %q, entry point %v, for %s", c.User, c.Entrypoint, config.Architecture)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	var got []string
	for i, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		pack := tar.NewReader(content)
		for {
			header, err := pack.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d %s %o %d", i, header.Name, header.Mode, header.Uid))
			path := filepath.Join(root, header.Name)
			if header.Typeflag == tar.TypeDir {
				err = os.MkdirAll(path, 0o755)
			} else {
				var data []byte
				if data, err = io.ReadAll(pack); err == nil {
					err = os.WriteFile(path, data, os.FileMode(header.Mode))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		"0 etc/ 755 0", "0 etc/group 644 0", "0 etc/passwd 644 0", "0 etc/ssl/ 755 0", "0 etc/ssl/certs/ 755 0",
		"0 etc/ssl/certs/ca-certificates.crt 644 0", "0 tmp/ 1777 0", "0 var/ 755 0", "0 var/cache/ 755 0",
		"0 var/cache/gridcast/ 700 65532", "0 var/lib/ 755 0", "0 var/lib/gridcast/ 700 65532",
		"1 usr/ 755 0", "1 usr/local/ 755 0", "1 usr/local/bin/ 755 0", "1 usr/local/bin/gridcast 755 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the files\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(read(t, root, "etc/ssl/certs/ca-certificates.crt")) || bytes.Count(read(t, root, "etc/ssl/certs/ca-certificates.crt"), []byte("BEGIN")) < 100 {
		t.Error("it has no authorities to trust")
	}
	if !bytes.Equal(read(t, root, "usr/local/bin/gridcast"), read(t, r.Out, "gridcast-"+runtime.GOARCH)) {
		t.Error("its binary is another one")
	}
	if os.Getuid() != 0 {
		t.Log("not run: only root may change the root of a process, and no container runtime is asked for")
		return
	}
	// Do the work of a container runtime without namespaces: the image's files as root, its user, its command.
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"version"}, {"archive", "show"}} {
		cmd := exec.Command("/usr/local/bin/gridcast", words...)
		cmd.Path, cmd.Dir, cmd.Env = "/usr/local/bin/gridcast", "/var/lib", config.Config.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("in the image's root, gridcast %v: %v\n%s", words, err, output)
		}
	}
}
