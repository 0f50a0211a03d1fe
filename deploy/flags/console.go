package flags

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"gridcast/deploy/console"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/watch"
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
func (f *Console) Token() (*Token, error) {
	if _, err := os.Stat(f.OperatorTokenFile); errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		if err := WriteSecret(f.OperatorTokenFile, token+"\n", os.Link); err != nil {
			return nil, fmt.Errorf("make the operator's token: %w", err)
		}
	}
	return readToken("the operator's token", f.OperatorTokenFile)
}

// LiveToken reads the token that may send observations; nil if there is none.
func (f *Console) LiveToken() (*Token, error) {
	if f.LiveTokenFile == "" {
		return nil, nil //nolint:nilnil // nobody may send observations
	}
	return readToken("the token for observations", f.LiveTokenFile)
}

// Token is the token in a file, which may change while the process runs. It is safe for concurrent use.
type Token struct {
	what, file string
	value      atomic.Pointer[string] // the last good one
}

func readToken(what, file string) (*Token, error) {
	t := &Token{what: what, file: file}
	if _, err := t.read(); err != nil {
		return nil, err
	}
	return t, nil
}

// Value returns the last good token of the file.
func (t *Token) Value() string { return *t.value.Load() }

// read takes the token from the file, and reports whether it replaced another one. An error keeps the last good one.
func (t *Token) read() (replaced bool, err error) {
	data, err := os.ReadFile(t.file)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", t.what, err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < console.MinToken {
		return false, fmt.Errorf("read %s: %s holds %d characters, want at least %d", t.what, t.file, len(token), console.MinToken)
	}
	before := t.value.Swap(&token)
	return before != nil && *before != token, nil
}

// Follow takes each good token that replaces the one in the file, until ctx ends.
func (t *Token) Follow(ctx context.Context, log *slog.Logger) {
	w := watch.New(log, t.file)
	defer w.Close()
	w.Settle = 50 * time.Millisecond // a file that is written in place is empty for a moment
	for ctx.Err() == nil {
		replaced, err := t.read()
		w.Refuse(err)
		if replaced {
			log.Info("token replaced", "file", t.file)
		}
		_ = w.Wait(ctx, time.Minute) // the loop ends with ctx
	}
}

// WriteSecret writes a file that only its owner can read, and makes its folder. After an error there is no new file.
// With os.Link as place an existing file is an error, with os.Rename it is replaced.
func WriteSecret(file, text string, place func(from, to string) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	return dirblob.WriteFile(file, []byte(text), 0o600, place)
}
