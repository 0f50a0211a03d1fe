//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// raceTime is the race time of the edges: a Wednesday before a race, so that there is a countdown.
const raceTime = "2024-07-24T12:00:00Z"

// host is the name in all requests.
const host = "api.example.org"

// unlimited is the tier of the keys that the edges limit to 1,000,000,000 requests a minute.
const unlimited = "cache"

// fixture is the content that all servers serve: the embedded seasons, published by the real binary.
type fixture struct {
	dir, binary, before string
	version             *snapshots.Version
	key                 string
}

func newFixture(ctx context.Context, dir, binary, before string) (*fixture, error) {
	f := &fixture{dir: dir, before: before}
	var err error
	if f.binary, err = filepath.Abs(binary); err != nil {
		return nil, fmt.Errorf("find %s: %w", binary, err)
	}
	if err := f.build(ctx, raceTime); err != nil {
		return nil, err
	}
	store, err := dirblob.Open(f.file("store"))
	if err != nil {
		return nil, err
	}
	if f.version, err = snapshots.Open(ctx, store, nil); err != nil {
		return nil, err
	}
	if err := keys.Update(ctx, store, func(d *keys.List) error {
		_, f.key, err = d.Create(keys.Request{Name: "bench", Tier: unlimited}, time.Now())
		return err
	}); err != nil {
		return nil, err
	}
	return f, f.createCertificate()
}

// build publishes the data at a race time.
func (f *fixture) build(ctx context.Context, at string) error {
	build := exec.CommandContext(ctx, f.binary, "build", "--store", "dir:"+f.file("store"), "--now", at)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the data at %s: %w\n%s", at, err, out)
	}
	return nil
}

func (f *fixture) file(name string) string { return filepath.Join(f.dir, name) }

// The files of the certificate that every server with TLS uses: ECDSA P-256, as most public ones.
const certFile, keyFile = "certificate.pem", "certificate.key"

func (f *fixture) createCertificate() error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{host}}
	der, certErr := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	pkcs8, keyErr := x509.MarshalPKCS8PrivateKey(private)
	if err := errors.Join(certErr, keyErr,
		os.WriteFile(f.file(certFile), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(f.file(keyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600)); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

// body returns the stored variant whose size is nearest to that of the case.
func (f *fixture) body(c benchCase) *snapshots.Body {
	distance := func(b *snapshots.Body) int { return max(len(b.Identity)-c.size, c.size-len(b.Identity)) }
	var nearest *snapshots.Body
	for path, body := range f.version.All() {
		if _, err := catalog.ParsePath(path); err != nil || body.Entry.ETag == "" {
			continue // feeds have targets of their own, and next-race has no tag
		}
		if nearest == nil || distance(body) < distance(nearest) || distance(body) == distance(nearest) && body.Entry.Path < nearest.Entry.Path {
			nearest = body
		}
	}
	return nearest
}

// target returns the request target of a case.
func (f *fixture) target(c benchCase) string {
	if c.nextRace {
		return catalog.BasePath + "/next-race"
	}
	variant, err := catalog.ParsePath(f.body(c).Entry.Path)
	if err != nil {
		panic("BUG: a published path: " + err.Error())
	}
	return variant.Target()
}
