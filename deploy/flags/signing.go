package flags

import (
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/notes"
)

// Signing is for commands that publish.
type Signing struct {
	Sign   []string `help:"Sign every version with the private key in this file, as gridcast init makes it; repeat it while a key is replaced. Default: versions are not signed." placeholder:"FILE" type:"path"`
	NewKey bool     `help:"Sign although no key of --sign has signed the current version, for example for the first time." env:"-"`
}

// Signers reads the version key; nil without one.
func (f Signing) Signers() (*notes.Signers, error) {
	s, err := signers("--sign", f.Sign)
	if s != nil {
		s.New = f.NewKey
	}
	return s, err
}

// Equip gives an operator the version key.
func (f Signing) Equip(o *operator.Operator) (err error) {
	o.Sign, err = f.Signers()
	return err
}

// KeySigning is for commands that change the list of API keys.
type KeySigning struct {
	SignKeys []string `help:"Sign changes of API keys with the private key in this file, as gridcast init makes it; repeat it while a key is replaced." placeholder:"FILE" type:"path"`
}

// KeySigners reads the key for the list of API keys; nil without one.
func (f KeySigning) KeySigners() (*notes.Signers, error) { return signers("--sign-keys", f.SignKeys) }

// Equip gives an operator the key for the list of API keys.
func (f KeySigning) Equip(o *operator.Operator) (err error) {
	o.SignKeys, err = f.KeySigners()
	return err
}

func signers(flag string, files []string) (*notes.Signers, error) {
	s, err := notes.ReadSigners(files...)
	if err != nil {
		return nil, terminal.Usagef("%s: %w", flag, err)
	}
	return s, nil
}
