package flags

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gridcast/deploy/console"
)

// Console configures the operator's port.
type Console struct {
	KeySigning
	OperatorListen    string   `help:"Address of the console for operators; empty: no console. Keep it private, because the token permits everything." default:"127.0.0.1:8090" placeholder:"HOST:PORT"`
	OperatorTokenFile string   `help:"A file with the operator's token; the first start creates it." default:".var/operator-token" placeholder:"FILE" type:"path"`
	LiveTokenFile     string   `help:"A file with a token that may only send observations of the running race: POST /live on the operator's port. Empty: nobody can send them there." placeholder:"FILE" type:"path"`
	Edges             []string `help:"The admin ports of the edges, for the console." placeholder:"URL"`
}

// Token reads the operator's token, or creates one.
func (f *Console) Token() (string, error) {
	if _, err := os.Stat(f.OperatorTokenFile); errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		if err := WriteSecret(f.OperatorTokenFile, token+"\n", os.Link); err != nil {
			return "", fmt.Errorf("make the operator's token: %w", err)
		}
		return token, nil
	}
	return readToken("the operator's token", f.OperatorTokenFile)
}

// LiveToken reads the token that may send observations; empty if there is none.
func (f *Console) LiveToken() (string, error) {
	if f.LiveTokenFile == "" {
		return "", nil
	}
	return readToken("the token for observations", f.LiveTokenFile)
}

func readToken(what, file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < console.MinToken {
		return "", fmt.Errorf("read %s: %s holds %d characters, want at least %d", what, file, len(token), console.MinToken)
	}
	return token, nil
}

// WriteSecret writes a file that only its owner can read, and makes its folder. After an error there is no new file.
// With os.Link as place an existing file is an error, with os.Rename it is replaced.
func WriteSecret(file, text string, place func(from, to string) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".secret-*") // private by default
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after a rename there is nothing to remove
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), file)
}
