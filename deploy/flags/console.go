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
		if err := WriteSecret(f.OperatorTokenFile, token+"\n"); err != nil {
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

// WriteSecret writes a new file that only its owner can read, and makes its folder. The file must not exist.
func WriteSecret(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
