package flags

import (
	"context"

	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/notes"
)

// Signing is for commands that publish.
type Signing struct {
	Sign []string `help:"Sign every version with the private key in this file, as gridcast init makes it; repeat it while a key is replaced. Default: versions are not signed." placeholder:"FILE" type:"path"`
}

// Signers reads the version key; nil without one.
func (f Signing) Signers() (*notes.Signers, error) { return signers("--sign", f.Sign) }

// KeySigning is for commands that change the list of API keys.
type KeySigning struct {
	SignKeys []string `help:"Sign changes of API keys with the private key in this file, as gridcast init makes it; repeat it while a key is replaced." placeholder:"FILE" type:"path"`
}

// KeySigners reads the key for the list of API keys; nil without one.
func (f KeySigning) KeySigners() (*notes.Signers, error) { return signers("--sign-keys", f.SignKeys) }

func signers(flag string, files []string) (*notes.Signers, error) {
	s, err := notes.ReadSigners(files...)
	if err != nil {
		return nil, terminal.Usagef("%s: %w", flag, err)
	}
	return s, nil
}

// VersionStorage is for actions that publish without a build.
type VersionStorage struct {
	Storage
	Signing
}

// Operator opens the store for actions that publish.
func (f VersionStorage) Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Storage.Operator(ctx, s)
	if err != nil {
		return nil, err
	}
	o.Sign, err = f.Signers()
	return o, err
}

// KeyListStorage is for actions that change the list of API keys.
type KeyListStorage struct {
	Storage
	KeySigning
}

// Operator opens the store for actions on the list of API keys.
func (f KeyListStorage) Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Storage.Operator(ctx, s)
	if err != nil {
		return nil, err
	}
	o.SignKeys, err = f.KeySigners()
	return o, err
}
