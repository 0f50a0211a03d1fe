package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/notes"
)

// signatures checks the keys that sign and those that are trusted, and that the store is signed by them.
func (d *doctor) signatures(ctx context.Context, cfg edge.Config) {
	list, _, listErr := keys.Load(ctx, d.store)
	if d.Role != "edge" {
		d.signer(ctx, signer{
			check: "signing", flag: "--sign", files: d.Sign, read: d.Signers, sign: "gridcast build --new-key", signed: d.versionSigned,
			missing: "versions are not signed, and the ledger has no public log: anyone with write access to the store can publish",
		})
		d.signer(ctx, signer{
			check: "key signing", flag: "--sign-keys", files: d.SignKeys, read: d.KeySigners, sign: "gridcast keys sign",
			missing: "this process signs no list of API keys; a host of operators may",
			signed: func(_ context.Context, t notes.Trust) error {
				if listErr != nil || len(list.Keys) == 0 {
					return nil //nolint:nilerr // the check of the keys reports it
				}
				return list.SignedBy(t)
			},
		})
	}
	if d.Role == "scheduler" {
		return
	}
	show := "gridcast signing show FILE   # on the host that signs; deploy/docs/signing.md"
	switch err := d.versionSigned(ctx, cfg.Trust); {
	case cfg.Trust.Empty():
		d.found("trust", Note, show, "the edge serves any version that the store calls current; --trust VKEY serves signed ones alone")
	case err != nil:
		d.failed("trust", "gridcast build --sign FILE   # with a key that the edge trusts", err)
	default:
		d.found("trust", Good, "", "a trusted key has signed the current version")
	}
	switch {
	case cfg.TrustKeys.Empty():
		d.found("key trust", Note, show, "anyone with write access to the store can make API keys; --trust-keys VKEY accepts a signed list alone")
	case listErr == nil && list.SignedBy(cfg.TrustKeys) != nil:
		d.failed("key trust", "gridcast keys sign --sign-keys FILE", list.SignedBy(cfg.TrustKeys))
	default:
		d.found("key trust", Good, "", "a trusted key has signed the list of API keys")
	}
}

// versionSigned returns an error unless a trusted key has signed the current version, if there is one.
func (d *doctor) versionSigned(ctx context.Context, trust notes.Trust) error {
	pointer, _, err := snapshots.LoadPointer(ctx, d.store)
	if err != nil {
		return nil //nolint:nilerr // the check of the version reports it
	}
	return snapshots.CheckNote(ctx, d.store, pointer.Version, trust)
}

// again returns the command that makes the files of an identity readable again, and last the words about another identity,
// which edges or people would have to learn.
func again(err error, last string, files ...string) string {
	list := strings.Join(files, " ")
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("chown %d %s   # as root, if that user runs the service", os.Getuid(), list)
	}
	return "cp COPY " + list + "   # from where the copies of secrets are; " + last
}

// signer is the check of the private keys of a flag.
type signer struct {
	check, flag string
	files       []string
	read        func() (*notes.Signers, error)
	missing     string                                   // the consequence without such a key
	sign        string                                   // the command that signs
	signed      func(context.Context, notes.Trust) error // fails unless one of the keys has signed
}

// signer checks that only their owner can read the private keys, and that they have signed.
func (d *doctor) signer(ctx context.Context, of signer) {
	check, flag, files := of.check, of.flag, of.files
	key, err := of.read()
	if err != nil {
		d.failed(check, again(err, "a new key only without a copy: deploy/docs/signing.md", files...), err)
		return
	}
	if key == nil {
		d.found(check, Note, "gridcast signing new FILE   # then "+flag+" FILE; deploy/docs/signing.md", "%s", of.missing)
		return
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
			d.found(check, Problem, "chmod 600 "+quoted(file), "others on this machine can read %s, and sign as gridcast", file)
			return
		}
	}
	if err := of.signed(ctx, key.Trust()); err != nil {
		state, holds := Note, "what the store holds now"
		if check == "signing" {
			state, holds = Problem, "the current version, so no version can follow it"
		}
		d.found(check, state, of.sign+" "+flag+" "+strings.Join(files, " "+flag+" ")+"   # if that key is meant; deploy/docs/signing.md", "%s has not signed %s: %s", key.Origin(), holds, oneLine(err))
		return
	}
	d.found(check, Good, "", "%s signs", key.Origin())
}
