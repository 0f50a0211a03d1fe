// Package auditlog is the append-only record of what operators did: who, when, what and why.
//
// It is kept like the ledger, one file for each entry, audit/00000001.json and so on without a
// gap. Each is created once and names the SHA-256 of the file before, so that a change of the
// past shows. The ledger says what was decided about the season; this log also has what leaves
// no trace there: rebuilds, rollbacks, keys, jobs started by hand.
//
// An entry is written before the change that it announces: what can not be recorded is not
// done. If the change then fails, a second entry says so. Instants are real time, in UTC.
package auditlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"gridcast/snapshots/blob"
)

// Prefix begins the key of every file.
const Prefix = "audit/"

// Action names what an operator does.
type Action string

// The actions.
const (
	Rebuild       Action = "rebuild"
	VerifyResult  Action = "verify_result"
	CorrectResult Action = "correct_result"
	ChangeRound   Action = "change_round" // postpone, cancel, move or reinstate
	Rollback      Action = "rollback"
	Release       Action = "release" // of a held pointer
	RunJob        Action = "run_job"
	CreateKey     Action = "create_key"
	RotateKey     Action = "rotate_key"
	RevokeKey     Action = "revoke_key"
	ExpireKey     Action = "expire_key"
	SetOrigins    Action = "set_origins" // of a key
	PutArchive    Action = "put_archive"
	Prune         Action = "prune"

	// Failed says that the change announced by the entry Of did not take place.
	Failed Action = "failed"
)

// Change is what an operator is about to do.
type Change struct {
	Actor   string // "operator:anna"
	Action  Action
	Subject string // what it is done to: a session key, a version, a key's id; may be empty
	Reason  string // why, in the operator's words; may be empty
}

// Entry is one line of the log.
type Entry struct {
	Seq      int64     `json:"seq"`      // 1 for the first
	Previous string    `json:"previous"` // lower-case hex SHA-256 of the file before; empty in the first
	ID       string    `json:"id"`       // unique; tells a lost answer from a lost race
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	Action   Action    `json:"action"`
	Subject  string    `json:"subject,omitzero"`
	Reason   string    `json:"reason,omitzero"` // of a failure: the error
	Of       int64     `json:"of,omitzero"`     // of a failure: the entry that announced the change
}

// Key returns the store key of an entry.
func Key(seq int64) string { return fmt.Sprintf("%s%08d.json", Prefix, seq) }

// DamageError says that the files are not a whole log, and at which that shows first.
type DamageError struct {
	Key    string
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("audit log damaged at %s: %s", e.Key, e.Reason)
}

// Log is the log in a store, as far as it has been read. It is safe for concurrent use; any
// number of Logs, in any number of processes, may append to the same store.
type Log struct {
	store blob.Store
	now   func() time.Time

	mu      sync.Mutex // held through the I/O of moving on
	entries []Entry    // only appended to
	head    string     // hash of the last file
}

// Load reads the log in store. A store without one has an empty log. The error is a
// *DamageError if the log is not whole.
func Load(ctx context.Context, store blob.Store) (*Log, error) {
	l := &Log{store: store, now: time.Now}
	if err := l.Refresh(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// Refresh reads what was appended since by others.
func (l *Log) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh(ctx)
}

func (l *Log) refresh(ctx context.Context) error {
	for {
		key := Key(int64(len(l.entries)) + 1)
		object, err := l.store.Get(ctx, key)
		if errors.Is(err, blob.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		if err := l.extend(key, object.Data); err != nil {
			return err
		}
	}
}

// extend moves on to the file after the head, if that is what data is.
func (l *Log) extend(key string, data []byte) error {
	var e Entry
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return &DamageError{key, err.Error()}
	}
	if again, err := encode(e); err != nil || !bytes.Equal(again, data) {
		return &DamageError{key, "not in canonical form"}
	}
	if e.Seq != int64(len(l.entries))+1 {
		return &DamageError{key, fmt.Sprintf("it says that it is entry %d", e.Seq)}
	}
	if e.Previous != l.head {
		return &DamageError{key, fmt.Sprintf("it follows a file of the hash %q, the one before has %q", e.Previous, l.head)}
	}
	sum := sha256.Sum256(data)
	l.entries, l.head = append(l.entries, e), hex.EncodeToString(sum[:])
	return nil
}

// Entries returns what has been read, oldest first. It is shared: read only.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[:len(l.entries):len(l.entries)]
}

// Do announces the change and makes it. If the log can not be written the change is not made;
// if the change fails that is noted too. The error is that of the log or of do.
func (l *Log) Do(ctx context.Context, c Change, do func() error) error {
	announced, err := l.Announce(ctx, c)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, l.Failed(ctx, announced, err))
	}
	return nil
}

// Announce is the first half of Do, for a change that is made later: without its entry it must
// not be made.
func (l *Log) Announce(ctx context.Context, c Change) (Entry, error) {
	e, err := l.append(ctx, Entry{Actor: c.Actor, Action: c.Action, Subject: c.Subject, Reason: c.Reason})
	if err != nil {
		return Entry{}, fmt.Errorf("%s was not done, because it could not be recorded: %w", c.Action, err)
	}
	return e, nil
}

// Failed is the second half of Do: it notes why an announced change did not take place, also
// when the end of ctx is why.
func (l *Log) Failed(ctx context.Context, announced Entry, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFailure)
	defer cancel()
	_, err := l.append(ctx, Entry{Actor: announced.Actor, Action: Failed, Subject: announced.Subject, Reason: why.Error(), Of: announced.Seq})
	return err
}

// noteFailure is how long it may take to record that a change failed.
const noteFailure = 10 * time.Second

// append adds an entry at the head, wherever that is by then.
func (l *Log) append(ctx context.Context, e Entry) (Entry, error) {
	if e.Actor == "" || e.Action == "" {
		return Entry{}, errors.New("append to the audit log: actor and action are required")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID, e.At = rand.Text(), l.now().UTC().Round(0)
	for {
		if err := l.refresh(ctx); err != nil {
			return Entry{}, fmt.Errorf("append to the audit log: %w", err)
		}
		e.Seq, e.Previous = int64(len(l.entries))+1, l.head
		won, err := l.create(ctx, e)
		if err != nil {
			return Entry{}, fmt.Errorf("append to the audit log: %w", err)
		}
		if won {
			return e, nil
		}
	}
}

// maxUnknown is how often in a row a write of unknown outcome is made again.
const maxUnknown = 4

// create writes the entry and says whether it is there. False means that another one is. The
// id makes its bytes unlike anybody else's, so reading back always tells.
func (l *Log) create(ctx context.Context, e Entry) (won bool, err error) {
	data, err := encode(e)
	if err != nil {
		return false, err
	}
	key := Key(e.Seq)
	for range maxUnknown {
		_, err = l.store.Create(ctx, key, data)
		if err == nil {
			return true, l.extend(key, data)
		}
		if !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown) {
			return false, err
		}
		object, readErr := l.store.Get(ctx, key)
		switch {
		case readErr == nil && bytes.Equal(object.Data, data):
			return true, l.extend(key, data)
		case readErr == nil:
			return false, nil
		case !errors.Is(readErr, blob.ErrNotFound):
			return false, fmt.Errorf("%w; reading back: %w", err, readErr)
		}
	}
	return false, err
}

// encode returns the bytes of a file: compact JSON in the order of the fields.
func encode(e Entry) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
