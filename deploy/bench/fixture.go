//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// raceTime is when the edges of the bench stand: a Wednesday before a race, so that there is a
// countdown.
const raceTime = "2024-07-24T12:00:00Z"

// manyKeys is how many keys the case with many has.
const manyKeys = 100_000

// fixture is what all servers serve: the embedded seasons, published by the real binary.
type fixture struct {
	dir       string
	binary    string
	before    string // the earlier one; empty: there is none
	version   *snapshots.Version
	keys      []string
	redis     string // URL; empty: there is none
	responses responses
}

func newFixture(ctx context.Context, dir, binary, before string) (*fixture, error) {
	f := &fixture{dir: dir}
	var err error
	if f.binary, err = filepath.Abs(binary); err != nil {
		return nil, fmt.Errorf("find %s: %w", binary, err)
	}
	maker := f.binary
	if before != "" {
		if f.before, err = filepath.Abs(before); err != nil {
			return nil, fmt.Errorf("find %s: %w", before, err)
		}
		maker = f.before
	}
	for _, store := range []string{"one", "many"} {
		build := exec.CommandContext(ctx, maker, "build", "--store", "dir:"+f.store(store), "--now", raceTime)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the data: %w\n%s", err, out)
		}
	}
	store, err := dirblob.Open(f.store("one"))
	if err != nil {
		return nil, err
	}
	if f.version, err = snapshots.Open(ctx, store, nil); err != nil {
		return nil, err
	}
	if err := f.createKeys(ctx); err != nil {
		return nil, err
	}
	if err := f.createCertificate(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "keys"), []byte(strings.Join(f.keys, "\n")+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("file of keys: %w", err)
	}
	return f, f.ask(ctx)
}

// The files of the certificate.
const (
	certFile = "certificate.pem"
	keyFile  = "certificate.key"
)

// createCertificate writes the certificate that all servers with TLS have: ECDSA P-256, as most
// public ones are.
func (f *fixture) createCertificate() error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{host}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(f.file(name), pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
	}
	return nil
}

func (f *fixture) file(name string) string { return filepath.Join(f.dir, name) }

func (f *fixture) store(name string) string { return filepath.Join(f.dir, name) }

// createKeys puts all keys into one store and the first of them into the other.
func (f *fixture) createKeys(ctx context.Context) error {
	var all keys.List
	for range manyKeys {
		_, key, err := all.Create(keys.Request{Name: "bench", Tier: "pro"}, time.Now())
		if err != nil {
			return err
		}
		f.keys = append(f.keys, key)
	}
	for name, n := range map[string]int{"one": 1, "many": manyKeys} {
		store, err := dirblob.Open(f.store(name))
		if err != nil {
			return err
		}
		err = keys.Update(ctx, store, func(d *keys.List) error {
			d.Keys = all.Keys[:n]
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
