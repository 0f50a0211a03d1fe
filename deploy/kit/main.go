// Command kit makes a release of gridcast: for each platform a static binary in an archive with
// everything that an operator installs, and a bill of materials; typed clients of the API; the checksums of all of it, and
// a signed note over them. The same commit and version give the same bytes, on any machine with the same Go.
//
//	cd deploy/kit && go run . --version v1.2.0 --out ../../.var/release
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"golang.org/x/mod/sumdb/note"
)

// release names the inputs and the outputs of a release.
type release struct {
	Version string
	Source  string // the root of the checkout
	Out     string // a folder, whose content is replaced
	Time    time.Time
	Commit  string // stamped into the binary, and named in the note
	Key     string // a file with the private key of the releaser, as gridcast signing new writes it; empty: not signed
}

// platforms are the processors of a release, all for Linux.
var platforms = []string{"amd64", "arm64"}

func main() {
	r := release{}
	flag.StringVar(&r.Version, "version", "", "stamped into the binary: the tag")
	flag.StringVar(&r.Source, "source", "../..", "root of the checkout")
	flag.StringVar(&r.Out, "out", "../../.var/release", "folder for what is made")
	epoch := flag.Int64("time", 0, "when the commit was made, in seconds since 1970: git log -1 --format=%ct")
	flag.StringVar(&r.Commit, "commit", "unknown", "stamped into the binary: git rev-parse HEAD")
	flag.StringVar(&r.Key, "sign", "", "file with the private key that signs the checksums, as gridcast signing new writes it")
	clients := flag.String("clients", "", "write only the typed clients, to this folder")
	only := flag.String("platform", "", "only this one: amd64 or arm64")
	flag.Parse()
	r.Time = time.Unix(*epoch, 0).UTC()
	made := platforms
	if *only != "" {
		made = []string{*only}
	}
	var err error
	if *clients != "" {
		err = r.clients(*clients)
	} else {
		err = r.make(made)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kit:", err)
		os.Exit(1)
	}
}

// make links the binaries and packs them.
func (r release) make(platforms []string) error {
	if r.Version == "" {
		return errors.New("--version is required: the tag that the binary shows")
	}
	if err := os.MkdirAll(r.Out, 0o750); err != nil {
		return err
	}
	for _, arch := range platforms {
		if err := r.build(arch, r.binary(arch)); err != nil {
			return err
		}
	}
	return r.pack(platforms)
}

// binary returns the place of the platform's binary.
func (r release) binary(arch string) string { return filepath.Join(r.Out, "gridcast-"+arch) }

// pack writes everything that is made of the binaries, the checksums last.
func (r release) pack(platforms []string) error {
	var files []string
	for _, arch := range platforms {
		name, binary := fmt.Sprintf("gridcast-%s-linux-%s", r.Version, arch), r.binary(arch)
		if err := r.archive(binary, filepath.Join(r.Out, name+".tar.gz")); err != nil {
			return err
		}
		if err := r.materials(binary, filepath.Join(r.Out, name+".cdx.json")); err != nil {
			return err
		}
		files = append(files, name+".tar.gz", name+".cdx.json")
	}
	clients := fmt.Sprintf("gridcast-%s-clients.tar.gz", r.Version)
	if err := r.packClients(filepath.Join(r.Out, clients)); err != nil {
		return err
	}
	files = append(files, clients)
	slices.Sort(files)
	var sums strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(r.Out, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), file)
	}
	if err := os.WriteFile(filepath.Join(r.Out, "SHA256SUMS"), []byte(sums.String()), 0o600); err != nil {
		return err
	}
	return r.sign(sums.String())
}

// sign writes the note SHA256SUMS.note over the checksums. Its first line is the name of the key, as in every note of
// gridcast, and the second names version and commit. Without a key it says that the release is not signed.
func (r release) sign(sums string) error {
	to := filepath.Join(r.Out, "SHA256SUMS.note")
	if r.Key == "" {
		fmt.Fprintln(os.Stderr, "kit: this release is not signed: --sign FILE signs it")
		if err := os.Remove(to); !errors.Is(err, fs.ErrNotExist) { // of an earlier release in this folder
			return err
		}
		return nil
	}
	private, err := os.ReadFile(r.Key)
	if err != nil {
		return fmt.Errorf("read the key of the releaser: %w", err)
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(private)))
	if err != nil {
		return fmt.Errorf("%s holds no private key, as gridcast signing new writes it: %w", r.Key, err)
	}
	signed, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n# gridcast %s, commit %s\n%s", signer.Name(), r.Version, r.Commit, sums)}, signer)
	if err != nil {
		return fmt.Errorf("sign the checksums: %w", err)
	}
	return os.WriteFile(to, signed, 0o600) //nolint:gosec // G703: the folder comes from the command line
}

// packClients writes the archive of the typed clients.
func (r release) packClients(to string) error {
	folder, err := os.MkdirTemp("", "clients")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	err = r.clients(folder)
	if errors.Is(err, errNoTypeScript) {
		fmt.Fprintln(os.Stderr, "kit: the release has no client for TypeScript:", err)
	} else if err != nil {
		return fmt.Errorf("generate the clients: %w", err)
	}
	return r.tarball(to, func(add addFile) error { return addFolder(add, folder, folder) })
}

// build makes the static binary. Its bytes depend neither on the folder nor on the machine.
func (r release) build(arch, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+r.Version+" -X main.commit="+r.Commit, "-o", binary, "./deploy/gridcast") //nolint:gosec // G204: the version comes from the command line
	cmd.Dir = r.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", arch, err, output)
	}
	return nil
}

// shipped are the parts of deploy that an operator installs.
var shipped = []string{"CHANGELOG.md", "alertmanager", "caddy", "cdn", "compose", "docs", "grafana", "kubernetes", "nginx", "prometheus", "s3", "systemd"}

// addFile adds a file to an archive under a name.
type addFile func(from, name string, mode int64) error

// archive packs the binary and the shipped files.
func (r release) archive(binary, to string) error {
	return r.tarball(to, func(add addFile) error {
		if err := add(binary, "gridcast", 0o755); err != nil {
			return err
		}
		for _, part := range shipped {
			if err := addFolder(add, r.Source, filepath.Join(r.Source, "deploy", part), ".go", "_test.yaml"); err != nil {
				return fmt.Errorf("pack %s: %w", part, err)
			}
		}
		return nil
	})
}

// addFolder adds the files of a folder in lexical order, under their names below root, less those with one of the endings.
func addFolder(add addFile, root, folder string, less ...string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.ContainsFunc(less, func(ending string) bool { return strings.HasSuffix(path, ending) }) {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return add(path, filepath.ToSlash(inside), 0o644)
	})
}

// tarball writes an archive in a fixed order, with one owner and one time.
func (r release) tarball(to string, fill func(addFile) error) error {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	pack := tar.NewWriter(zip)
	err := fill(func(from, name string, mode int64) error {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: r.Time, Format: tar.FormatPAX}
		if err := pack.WriteHeader(header); err != nil {
			return err
		}
		_, err = pack.Write(data)
		return err
	})
	if err := errors.Join(err, pack.Close(), zip.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o600)
}

// materials writes the bill of materials of a binary, from the linker's record in it.
func (r release) materials(binary, to string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read what %s is made of: %w", binary, err)
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{
		Timestamp: r.Time.Format(time.RFC3339),
		Component: &cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, Name: "gridcast", Version: r.Version, BOMRef: "gridcast"},
	}
	components := []cyclonedx.Component{{
		Type: cyclonedx.ComponentTypeLibrary, BOMRef: "std", Name: "std", Version: info.GoVersion,
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	for _, module := range info.Deps {
		components = append(components, cyclonedx.Component{
			Type: cyclonedx.ComponentTypeLibrary, BOMRef: module.Path, Name: module.Path, Version: module.Version,
			PackageURL: "pkg:golang/" + module.Path + "@" + module.Version,
		})
	}
	bill.Components = &components
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return err
	}
	return os.WriteFile(to, text.Bytes(), 0o600)
}
