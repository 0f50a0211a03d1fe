// Package auditlog is the append-only record of operators' actions, with their actors, instants and reasons.
//
// The log is a chain of files under audit/, one for each line. The ledger has the decisions about the season. This
// log also has the actions without a trace there: rebuilds, rollbacks, keys, and jobs started by a person.
//
// A line is written before the action that it announces, so an action that cannot be recorded is not performed, except
// for a Prune on a full disk. If the action then fails, a second line says so. Instants are real time, in UTC.
//
// A damaged file does not end the log, because an operator must be able to revoke a leaked key. Readers skip the
// file and name it in Log.Damage. The next line that is written is DamageFound, with the hash of the damaged bytes.
// So nobody can undo the damage unnoticed, and the chain holds the following lines together.
package auditlog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/lock"
)

// Prefix begins the key of every file.
const Prefix = "audit/"

// Verb names the action of an operator.
type Verb string

// The actions.
const (
	Rebuild        Verb = "rebuild"
	VerifyResult   Verb = "verify_result"
	CorrectResult  Verb = "correct_result"
	EnterResult    Verb = "enter_result" // by hand
	PostponeRound  Verb = "postpone_round"
	CancelRound    Verb = "cancel_round"
	MoveRound      Verb = "move_round"
	ReinstateRound Verb = "reinstate_round"
	ReleaseRound   Verb = "release_round"

	DeductPoints      Verb = "deduct_points" // by a decision about a championship, as in the next four
	AddPoints         Verb = "add_points"
	ExcludeCompetitor Verb = "exclude_competitor"
	RestoreCompetitor Verb = "restore_competitor"
	AcceptDecision    Verb = "accept_decision"

	SetEntries     Verb = "set_entries" // facts entered by hand, as in the next two and ImportCalendar
	SetQualifying  Verb = "set_qualifying"
	SetGrid        Verb = "set_grid"
	SetOrder       Verb = "set_order" // of a running race
	ImportCalendar Verb = "import_calendar"
	ReleaseFacts   Verb = "release_facts"
	AcceptChange   Verb = "accept_change" // of a source, that was held for a person
	AliasSource    Verb = "alias"         // two identities are one
	Rollback       Verb = "rollback"
	Release        Verb = "release" // of a held pointer
	RunJob         Verb = "run_job"
	CreateKey      Verb = "create_key"
	RotateKey      Verb = "rotate_key"
	RevokeKey      Verb = "revoke_key"
	ExpireKey      Verb = "expire_key"
	SetTier        Verb = "set_tier"    // of a key
	SetOrigins     Verb = "set_origins" // of a key
	PruneKeys      Verb = "prune_keys"
	SignKeys       Verb = "sign_keys" // the list of API keys
	PutArchive     Verb = "put_archive"
	Prune          Verb = "prune"
	ChangeSettings Verb = "change_settings" // by command, or by a flag of a process

	AddWebhook    Verb = "add_webhook"
	RotateWebhook Verb = "rotate_webhook"
	PauseWebhook  Verb = "pause_webhook" // also by the service, after its failures
	ResumeWebhook Verb = "resume_webhook"
	RemoveWebhook Verb = "remove_webhook"
	TestWebhook   Verb = "test_webhook"

	AddOperator    Verb = "add_operator"
	RevokeOperator Verb = "revoke_operator"
	BackupStore    Verb = "backup_store"
	RestoreStore   Verb = "restore_store"

	// Failed says that the change announced by the entry Of did not take place.
	Failed Verb = "failed"
	// DamageFound says that the file Subject of this log is damaged. Recorder writes it before the next line.
	DamageFound Verb = "damage_found"
)

// Recorder is the actor of the lines that the log adds itself.
const Recorder = "auditlog"

// Intent is the action that an operator is about to perform. Its texts are printable and at most chain.MaxText bytes.
type Intent struct {
	Actor   string // "operator:anna"
	Action  Verb
	Subject string // of the action: a session key, a version, a key's id; may be empty
	Reason  string // in the operator's words; may be empty
}

// AuditLine is one line of the log.
type AuditLine struct {
	Seq      int64     `json:"seq"`      // 1 for the first
	Previous string    `json:"previous"` // lower-case hex SHA-256 of the file before; empty in the first
	ID       string    `json:"id"`       // unique; tells a lost answer from a lost race
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	Action   Verb      `json:"action"`
	Subject  string    `json:"subject,omitzero"`
	Reason   string    `json:"reason,omitzero"`  // of a failure: the error
	Of       int64     `json:"of,omitzero"`      // of a failure: the line that announced the action
	Damaged  string    `json:"damaged,omitzero"` // of damage: lower-case hex SHA-256 of the damaged bytes; empty if they could not be read
}

// Damage is a damaged file of the log.
type Damage struct {
	Key    string // of the file
	SHA256 string // of the damaged bytes, lower-case hex; empty if they could not be read
	Reason string
}

func (d Damage) String() string { return d.Key + ": " + d.Reason }

// Log is the log in a store, as far as it has been read. It is safe for concurrent use; any
// number of Logs, in any number of processes, may append to the same store.
type Log struct {
	files chain.Chain

	mu      lock.Lock   // held through the I/O of moving on
	head    chain.Head  // the last file, whole or not
	broken  bool        // the last file is damaged, so that the link of the next one proves nothing
	entries []AuditLine // never changed, but appended to or replaced
	damage  []Damage    // likewise
	noted   map[Damage]bool
}

// Load reads the log in store, which may be empty. Damage is no error: see Log.Damage. The error is for a store
// that cannot be listed.
func Load(ctx context.Context, store blob.Store) (*Log, error) {
	l := &Log{files: chain.Chain{Store: store, Prefix: Prefix}}
	if err := l.load(ctx); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return l, nil
}

// load reads the log from its first file on.
func (l *Log) load(ctx context.Context) error {
	files, rest, err := l.files.Load(ctx)
	if err != nil {
		return err
	}
	l.head, l.broken, l.entries, l.damage, l.noted = chain.Head{}, false, nil, nil, map[Damage]bool{}
	for _, f := range files {
		l.extend(f)
	}
	if rest.Gap != nil {
		// The damage has the key of the file after the gap, which stays the same when the gap is filled.
		l.found(Damage{Key: rest.Beyond, Reason: fmt.Sprintf("it is there, although there is no %s", rest.Gap.Key)})
	}
	return nil
}

// Refresh reads the lines that others appended since the last time.
func (l *Log) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh(ctx)
}

func (l *Log) refresh(ctx context.Context) error {
	files, err := l.files.After(ctx, l.head.Seq)
	if err != nil {
		// Either one file is unreadable or the whole store: load tells, and goes on after the file.
		if ctx.Err() == nil && l.load(ctx) == nil {
			return nil
		}
		return fmt.Errorf("read the audit log: %w", err)
	}
	for _, f := range files {
		l.extend(f)
	}
	return nil
}

// extend adds the file after the head, whole or damaged.
func (l *Log) extend(f chain.File) {
	key := l.files.Key(f.Seq)
	before, broken := l.head, l.broken
	if f.Err != nil {
		l.head, l.broken = chain.Head{Seq: f.Seq}, true
		l.found(Damage{Key: key, Reason: "cannot be read: " + f.Err.Error()})
		return
	}
	hash := chain.Hash(f.Data)
	l.head, l.broken = chain.Head{Seq: f.Seq, Hash: hash}, false
	var e AuditLine
	if err := chain.Decode(f.Data, &e); err != nil {
		l.broken = true
		l.found(Damage{key, hash, err.Error()})
		return
	}
	_, wrong := l.files.Follow(before, f.Data)
	switch {
	case wrong == nil:
	case e.Seq != f.Seq:
		l.broken = true
		l.found(Damage{key, hash, fmt.Sprintf("expected %s, found %s", wrong.Want, wrong.Got)})
		return
	case e.Action == DamageFound && e.Subject == l.files.Key(before.Seq):
		// The line records that the file before could not be read.
	case !broken && !l.fills(before.Seq):
		// Either of the two files may have been changed. The line is readable, so readers get it.
		l.found(Damage{key, hash, fmt.Sprintf("expected %s, found %s", wrong.Want, wrong.Got)})
	}
	if e.Action == DamageFound {
		l.noted[Damage{Key: e.Subject, SHA256: e.Damaged}] = true
	}
	l.entries = append(l.entries, e)
}

// fills reports whether the last line, of file seq, was written where a file was missing. The file after it still
// names the missing one.
func (l *Log) fills(seq int64) bool {
	if len(l.entries) == 0 {
		return false
	}
	last := l.entries[len(l.entries)-1]
	return last.Seq == seq && last.Action == DamageFound && last.Subject == l.files.Key(seq+1)
}

func (l *Log) found(d Damage) { l.damage = append(l.damage, d) }

// Entries returns the undamaged lines that were read, oldest first. The slice is shared: callers only read it.
func (l *Log) Entries() []AuditLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.entries)
}

// LastBackup returns the announcement of the latest backup that has not failed; its instant is zero if there is none. A
// backup that was killed counts, because nothing has recorded its end.
func (l *Log) LastBackup() AuditLine {
	failed := map[int64]bool{}
	for _, e := range slices.Backward(l.Entries()) {
		switch {
		case e.Action == Failed:
			failed[e.Of] = true
		case e.Action == BackupStore && !failed[e.Seq]:
			return e
		}
	}
	return AuditLine{}
}

// Unnoted returns the damage that no later line has recorded.
func (l *Log) Unnoted() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.damage), func(d Damage) bool { return l.noted[Damage{Key: d.Key, SHA256: d.SHA256}] })
}

// Damage returns the damaged files among those that were read, in their order. It is empty if the log is whole.
// Every view of the log shows the damage first. The slice is shared: callers only read it.
func (l *Log) Damage() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.damage)
}

// Do announces the action and performs it. If the log cannot be written, Do does not perform the action. If the
// action fails, Do records that too. The error is the log's or do's. On a full disk a Prune is announced afterwards,
// because it makes the room for its own line.
func (l *Log) Do(ctx context.Context, c Intent, do func() error) error {
	announced, err := l.announce(ctx, c)
	if c.Action == Prune && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		if err = do(); err == nil {
			_, err = l.announce(ctx, c)
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("%s was not done, because it could not be recorded: %w", c.Action, err)
	}
	failed := do()
	if failed == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failureTimeout) // it is recorded also if ctx has ended
	defer cancel()
	_, err = l.append(ctx, AuditLine{Actor: c.Actor, Action: Failed, Subject: c.Subject, Reason: Printable(failed.Error()), Of: announced.Seq})
	return errors.Join(failed, err)
}

func (l *Log) announce(ctx context.Context, c Intent) (AuditLine, error) {
	if c.Actor == "" || c.Action == "" {
		return AuditLine{}, errors.New("actor and action are required")
	}
	if err := cmp.Or(chain.CheckText("actor", c.Actor), chain.CheckText("subject", c.Subject), chain.CheckText("reason", c.Reason)); err != nil {
		return AuditLine{}, err
	}
	return l.append(ctx, AuditLine{Actor: c.Actor, Action: c.Action, Subject: c.Subject, Reason: c.Reason})
}

// failureTimeout bounds the time for recording a failed action.
const failureTimeout = 10 * time.Second

// Printable makes any text, such as an error, fit for a line of the log.
func Printable(text string) string { return chain.Printable(text, chain.MaxText) }

// Note records each damage that no line has recorded.
func (l *Log) Note(ctx context.Context) error {
	_, err := l.append(ctx, AuditLine{})
	return err
}

// append adds a line at the head, unless it has no action, and before it a line for each damage without one. If another process has taken the
// place, append reads its lines and tries again. The random id makes the bytes of a line unique, as chain.Append
// requires.
func (l *Log) append(ctx context.Context, e AuditLine) (AuditLine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		next := e
		noted := slices.IndexFunc(l.damage, func(d Damage) bool { return !l.noted[Damage{Key: d.Key, SHA256: d.SHA256}] })
		if noted >= 0 {
			d := l.damage[noted]
			next = AuditLine{Actor: Recorder, Action: DamageFound, Subject: d.Key, Reason: Printable(d.Reason), Damaged: d.SHA256}
		} else if e.Action == "" {
			return AuditLine{}, nil
		}
		next.ID, next.At = rand.Text(), time.Now().UTC().Round(0)
		next.Seq, next.Previous = l.head.Seq+1, l.head.Hash
		data, err := chain.Encode(next)
		if err != nil {
			return AuditLine{}, fmt.Errorf("append to the audit log: %w", err)
		}
		_, won, err := l.files.Append(ctx, l.head, data)
		theirs := !won && (err == nil || errors.Is(err, blob.ErrConflict)) // possibly a file that cannot be read
		switch {
		case theirs:
			if err := l.refresh(ctx); err != nil {
				return AuditLine{}, fmt.Errorf("append to the audit log: %w", err)
			}
		case err != nil && noted >= 0:
			return AuditLine{}, fmt.Errorf("append to the audit log: note the damage of %s: %w", next.Subject, err)
		case err != nil:
			return AuditLine{}, fmt.Errorf("append to the audit log: %w", err)
		default:
			l.extend(chain.File{Seq: next.Seq, Data: data})
			if noted < 0 {
				return next, nil
			}
		}
	}
}
