// Command kit makes a release of gridcast: for each platform a static binary in an archive with
// everything that an operator installs, an image without a distribution, a bill of materials, and
// the checksums of all of it. The same commit and version give the same bytes, on any machine with
// the same Go.
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
)

// release names the inputs and the outputs of a release.
type release struct {
	Version string
	Source  string // the root of the checkout
	Out     string // a folder, whose content is replaced
	Time    time.Time
}

// platforms are the processors of a release, all for Linux.
var platforms = []string{"amd64", "arm64"}

func main() {
	r := release{}
	flag.StringVar(&r.Version, "version", "", "stamped into the binary: the tag")
	flag.StringVar(&r.Source, "source", "../..", "root of the checkout")
	flag.StringVar(&r.Out, "out", "../../.var/release", "folder for what is made")
	epoch := flag.Int64("time", 0, "when the commit was made, in seconds since 1970: git log -1 --format=%ct")
	only := flag.String("platform", "", "only this one: amd64 or arm64")
	flag.Parse()
	r.Time = time.Unix(*epoch, 0).UTC()
	made := platforms
	if *only != "" {
		made = []string{*only}
	}
	if err := r.make(made); err != nil {
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
		if err := r.image(arch, binary, filepath.Join(r.Out, name+".image.tar")); err != nil {
			return err
		}
		files = append(files, name+".tar.gz", name+".cdx.json", name+".image.tar")
	}
	slices.Sort(files)
	var sums strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(r.Out, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), file)
	}
	return os.WriteFile(filepath.Join(r.Out, "SHA256SUMS"), []byte(sums.String()), 0o600)
}

// build makes the static binary. Its bytes depend neither on the folder nor on the machine.
func (r release) build(arch, binary string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+r.Version, "-o", binary, "./deploy/gridcast") //nolint:gosec // G204: the version comes from the command line
	cmd.Dir = r.Source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", arch, err, output)
	}
	return nil
}

// shipped are the parts of deploy that an operator installs.
var shipped = []string{"CHANGELOG.md", "alertmanager", "caddy", "cdn", "compose", "docs", "grafana", "kubernetes", "nginx", "prometheus", "s3", "systemd"}

// archive packs the binary and the shipped files, in a fixed order, with one owner and one time.
func (r release) archive(binary, to string) error {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	pack := tar.NewWriter(zip)
	add := func(from, name string, mode int64) error {
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
	}
	if err := add(binary, "gridcast", 0o755); err != nil {
		return err
	}
	for _, part := range shipped {
		root := filepath.Join(r.Source, "deploy", part)
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error { // in lexical order
			if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.yaml") {
				return err
			}
			inside, err := filepath.Rel(r.Source, path)
			if err != nil {
				return err
			}
			return add(path, filepath.ToSlash(inside), 0o644)
		})
		if err != nil {
			return fmt.Errorf("pack %s: %w", part, err)
		}
	}
	if err := errors.Join(pack.Close(), zip.Close()); err != nil {
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
