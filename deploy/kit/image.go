package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user of the image. It is not root and has no other rights on any host.
const nobody = 65532

// image assembles an image from nothing, without Docker: certificate authorities, a user, folders to mount,
// and the binary. docker load, podman load and registry tools read its format.
func (r release) image(arch, binary, to string) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\ngridcast:x:%d:%d:gridcast:/var/lib/gridcast:/sbin/nologin\n", nobody, nobody)
	group := fmt.Sprintf("root:x:0:\ngridcast:x:%d:\n", nobody)
	base := []file{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, data: []byte(group)},
		{path: "etc/passwd", mode: 0o644, data: []byte(passwd)},
		{path: "etc/ssl/", mode: 0o755},
		{path: "etc/ssl/certs/", mode: 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
		{path: "tmp/", mode: 0o1777},
		{path: "var/", mode: 0o755},
		{path: "var/cache/", mode: 0o755},
		{path: "var/cache/gridcast/", mode: 0o700, owner: nobody},
		{path: "var/lib/", mode: 0o755},
		{path: "var/lib/gridcast/", mode: 0o700, owner: nobody},
	}
	app := []file{{path: "usr/", mode: 0o755}, {path: "usr/local/", mode: 0o755}, {path: "usr/local/bin/", mode: 0o755}, {path: "usr/local/bin/gridcast", mode: 0o755, data: program}}
	image := mutate.MediaType(empty.Image, "application/vnd.oci.image.manifest.v1+json")
	image = mutate.ConfigMediaType(image, "application/vnd.oci.image.config.v1+json")
	for _, files := range [][]file{base, app} { // the layer that changes least comes first
		data, err := r.layer(files)
		if err != nil {
			return err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithCompressedCaching) // its hash and its file need the same bytes
		if err != nil {
			return fmt.Errorf("make a layer: %w", err)
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.Time}, CreatedBy: "deploy/kit"}}); err != nil {
			return fmt.Errorf("add a layer: %w", err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.Time}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", nobody, nobody), Entrypoint: []string{"/usr/local/bin/gridcast"}, WorkingDir: "/var/lib/gridcast",
		Env:          []string{"PATH=/usr/local/bin", "GRIDCAST_LISTEN=0.0.0.0:8080"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}}, StopSignal: "SIGTERM",
		Labels: map[string]string{"org.opencontainers.image.title": "gridcast", "org.opencontainers.image.version": r.Version},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	tag, err := name.NewTag("gridcast:" + r.Version)
	if err != nil {
		return fmt.Errorf("version %q: %w", r.Version, err)
	}
	return tarball.WriteToFile(to, tag, image)
}

// file is a file of a layer, or a folder if its name ends in a slash.
type file struct {
	path  string
	mode  int64
	owner int
	data  []byte
}

func (r release) layer(files []file) ([]byte, error) {
	var packed bytes.Buffer
	pack := tar.NewWriter(&packed)
	for _, f := range files {
		kind := byte(tar.TypeReg)
		if f.path[len(f.path)-1] == '/' {
			kind = tar.TypeDir
		}
		header := &tar.Header{Typeflag: kind, Name: f.path, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.data)), ModTime: r.Time, Format: tar.FormatPAX}
		if err := pack.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.path, err)
		}
		if _, err := pack.Write(f.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.path, err)
		}
	}
	return packed.Bytes(), pack.Close()
}

// authorities returns the certificate authorities that Mozilla trusts, at the version of go.mod. The machine's
// own would make a different image on each machine.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // its trust is limited, which a file cannot express
		}
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer returns no error
	}
	return text.Bytes()
}
