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
	KeySigning        `embed:""`
	OperatorListen    string   `help:"Address of the console for operators; empty: no console. Keep it private, because the token permits everything." default:"127.0.0.1:8090" placeholder:"HOST:PORT"`
	OperatorTokenFile string   `help:"A file with the operator's token; the first start creates it." default:".var/operator-token" placeholder:"FILE" type:"path"`
	LiveTokenFile     string   `help:"A file with a token that may only send observations of the running race: POST /live on the operator's port. Empty: nobody can send them there." placeholder:"FILE" type:"path"`
	Edges             []string `help:"The admin ports of the edges, for the console." placeholder:"URL"`
}

// Token reads the operator's token, or creates one.
func (f *Console) Token() (string, error) {
	data, err := os.ReadFile(f.OperatorTokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return f.makeToken()
	}
	if err != nil {
		return "", fmt.Errorf("read the operator's token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < console.MinToken {
		return "", fmt.Errorf("read the operator's token: %s holds %d characters, want at least %d", f.OperatorTokenFile, len(token), console.MinToken)
	}
	return token, nil
}

// LiveToken reads the token that may send observations; empty if there is none.
func (f *Console) LiveToken() (string, error) {
	if f.LiveTokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(f.LiveTokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token for observations: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < console.MinToken {
		return "", fmt.Errorf("read the token for observations: %s holds %d characters, want at least %d", f.LiveTokenFile, len(token), console.MinToken)
	}
	return token, nil
}

func (f *Console) makeToken() (string, error) {
	if err := os.MkdirAll(filepath.Dir(f.OperatorTokenFile), 0o750); err != nil {
		return "", fmt.Errorf("make the operator's token: %w", err)
	}
	token := rand.Text()
	file, err := os.OpenFile(f.OperatorTokenFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("make the operator's token: %w", err)
	}
	_, err = fmt.Fprintln(file, token)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("make the operator's token: %w", err)
	}
	return token, nil
}
