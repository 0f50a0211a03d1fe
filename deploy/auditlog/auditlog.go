// Package auditlog is the append-only record of what operators did: who, when, what and why.
//
// It is a chain of files under audit/, one for each entry. The ledger says what was decided about
// the season; this log also has what leaves no trace there: rebuilds, rollbacks, keys, jobs
// started by hand.
//
// An entry is written before the change that it announces: what cannot be recorded is not done.
// If the change then fails, a second entry says so. Instants are real time, in UTC.
//
// A damaged file does not end the log, because revoking a leaked key must not depend on the past
// being whole. Readers skip the file and name it in Log.Damage; the next change is preceded by an
// entry DamageFound, which quotes the hash of the damaged bytes. So the damage cannot be undone
// unseen, and what comes after it is held together by the chain again.
package auditlog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
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
	SetEntries     Verb = "set_entries" // facts entered by hand, also the next three
	SetQualifying  Verb = "set_qualifying"
	SetGrid        Verb = "set_grid"
	ImportCalendar Verb = "import_calendar"
	ReleaseFacts   Verb = "release_facts"
	AcceptChange   Verb = "accept_change" // of a source, that waited for a person
	AliasSource    Verb = "alias"         // two identities are one
	ChangeRound    Verb = "change_round"  // what logs of before have for any of these
	Rollback       Verb = "rollback"
	Release        Verb = "release" // of a held pointer
	RunJob         Verb = "run_job"
	CreateKey      Verb = "create_key"
	RotateKey      Verb = "rotate_key"
	RevokeKey      Verb = "revoke_key"
	ExpireKey      Verb = "expire_key"
	SetOrigins     Verb = "set_origins" // of a key
	PutArchive     Verb = "put_archive"
	Prune          Verb = "prune"
	ChangeSettings Verb = "change_settings" // by command, or by what a process was told at its start

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
	// DamageFound says that the file Subject of this log is damaged. Nobody did it on purpose: it
	// is written with the next change, by the name of Recorder.
	DamageFound Verb = "damage_found"
)

// Recorder is the actor of the entries that the log makes itself.
const Recorder = "auditlog"

// Intent is the action that an operator is about to perform. Its texts are printable and at most chain.MaxText bytes.
type Intent struct {
	Actor   string // "operator:anna"
	Action  Verb
	Subject string // what it is done to: a session key, a version, a key's id; may be empty
	Reason  string // why, in the operator's words; may be empty
}

// Line is one line of the log.
type Line struct {
	Seq      int64     `json:"seq"`      // 1 for the first
	Previous string    `json:"previous"` // lower-case hex SHA-256 of the file before; empty in the first
	ID       string    `json:"id"`       // unique; tells a lost answer from a lost race
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	Action   Verb      `json:"action"`
	Subject  string    `json:"subject,omitzero"`
	Reason   string    `json:"reason,omitzero"`  // of a failure: the error
	Of       int64     `json:"of,omitzero"`      // of a failure: the entry that announced the change
	Damaged  string    `json:"damaged,omitzero"` // of damage: lower-case hex SHA-256 of the bytes that were found; empty if they could not be read
}

// Damage is a file that is not what it should be.
type Damage struct {
	Key    string // of the file
	SHA256 string // of what is there, lower-case hex; empty if that could not be read
	Reason string
}

func (d Damage) String() string { return d.Key + ": " + d.Reason }

// Log is the log in a store, as far as it has been read. It is safe for concurrent use; any
// number of Logs, in any number of processes, may append to the same store.
type Log struct {
	files chain.Chain
	now   func() time.Time

	mu      sync.Mutex // held through the I/O of moving on
	head    chain.Head // the last file, whole or not
	broken  bool       // the last file is damaged, so that the link of the next one proves nothing
	entries []Line     // never changed, but appended to or replaced
	damage  []Damage   // likewise
	noted   map[Damage]bool
}

// Load reads the log in store. A store without one has an empty log. Damage is no error: see
// Log.Damage. The error is that of a store that cannot be listed.
func Load(ctx context.Context, store blob.Store) (*Log, error) {
	l := &Log{files: chain.Chain{Store: store, Prefix: Prefix}, now: time.Now}
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
		// It is named by what lies behind it, which stays where it is when the gap is filled.
		l.found(Damage{Key: rest.Beyond, Reason: fmt.Sprintf("it is there, although there is no %s", rest.Gap.Key)})
	}
	return nil
}

// Refresh reads what was appended since by others.
func (l *Log) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh(ctx)
}

func (l *Log) refresh(ctx context.Context) error {
	files, err := l.files.After(ctx, l.head.Seq)
	if err != nil && ctx.Err() == nil {
		// One file may be unreadable, or the whole store: a listing tells, and how to go on.
		if l.load(ctx) == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	for _, f := range files {
		l.extend(f)
	}
	return nil
}

// extend moves on to the file after the head, whatever it is.
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
	var e Line
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
		// It was written when the file before could not be read, and says so.
	case !broken && !l.fills(before.Seq):
		// Either file may be the one that was changed. The entry is readable, so it is shown.
		l.found(Damage{key, hash, fmt.Sprintf("expected %s, found %s", wrong.Want, wrong.Got)})
	}
	if e.Action == DamageFound {
		l.noted[Damage{Key: e.Subject, SHA256: e.Damaged}] = true
	}
	l.entries = append(l.entries, e)
}

// fills says whether the entry, the last one, was put where a file was missing. The file after
// it names the one that was there before.
func (l *Log) fills(seq int64) bool {
	if len(l.entries) == 0 {
		return false
	}
	last := l.entries[len(l.entries)-1]
	return last.Seq == seq && last.Action == DamageFound && last.Subject == l.files.Key(seq+1)
}

func (l *Log) found(d Damage) { l.damage = append(l.damage, d) }

// Entries returns the whole entries that have been read, oldest first. It is shared: read only.
func (l *Log) Entries() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[:len(l.entries):len(l.entries)]
}

// Damage returns what is wrong with the files that have been read, in their order; empty if the
// log is whole. Whoever shows the log shows this first. It is shared: read only.
func (l *Log) Damage() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damage[:len(l.damage):len(l.damage)]
}

// Do announces the change and makes it. If the log cannot be written the change is not made;
// if the change fails that is noted too. The error is that of the log or of do.
func (l *Log) Do(ctx context.Context, c Intent, do func() error) error {
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
func (l *Log) Announce(ctx context.Context, c Intent) (Line, error) {
	e, err := l.announce(ctx, c)
	if err != nil {
		return Line{}, fmt.Errorf("%s was not done, because it could not be recorded: %w", c.Action, err)
	}
	return e, nil
}

func (l *Log) announce(ctx context.Context, c Intent) (Line, error) {
	if c.Actor == "" || c.Action == "" {
		return Line{}, errors.New("actor and action are required")
	}
	if err := cmp.Or(chain.CheckText("actor", c.Actor), chain.CheckText("subject", c.Subject), chain.CheckText("reason", c.Reason)); err != nil {
		return Line{}, err
	}
	return l.append(ctx, Line{Actor: c.Actor, Action: c.Action, Subject: c.Subject, Reason: c.Reason})
}

// Failed is the second half of Do: it notes why an announced change did not take place, also
// when the end of ctx is why.
func (l *Log) Failed(ctx context.Context, announced Line, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failureTimeout)
	defer cancel()
	_, err := l.append(ctx, Line{Actor: announced.Actor, Action: Failed, Subject: announced.Subject, Reason: Printable(why.Error()), Of: announced.Seq})
	return err
}

// failureTimeout is how long it may take to record that a change failed.
const failureTimeout = 10 * time.Second

// Printable is a text of somebody else, such as an error, as an entry may have it: on one line, with a
// space for what does not print, cut at chain.MaxText.
func Printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	if len(text) > chain.MaxText {
		text = strings.ToValidUTF8(text[:chain.MaxText], "")
	}
	return text
}

// append adds an entry at the head, wherever that is by then, and before it one for each damage
// that nobody has noted yet. What others have appended is read when it keeps an entry from being written,
// and not before. The id makes the bytes of an entry unlike anybody else's, as Append of the chain requires.
func (l *Log) append(ctx context.Context, e Line) (Line, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		next := e
		noted := slices.IndexFunc(l.damage, func(d Damage) bool { return !l.noted[Damage{Key: d.Key, SHA256: d.SHA256}] })
		if noted >= 0 {
			d := l.damage[noted]
			next = Line{Actor: Recorder, Action: DamageFound, Subject: d.Key, Reason: Printable(d.Reason), Damaged: d.SHA256}
		}
		next.ID, next.At = rand.Text(), l.now().UTC().Round(0)
		next.Seq, next.Previous = l.head.Seq+1, l.head.Hash
		data, err := chain.Encode(next)
		if err != nil {
			return Line{}, fmt.Errorf("append to the audit log: %w", err)
		}
		_, won, err := l.files.Append(ctx, l.head, data)
		theirs := !won && (err == nil || errors.Is(err, blob.ErrConflict)) // perhaps a file that cannot be read
		switch {
		case theirs:
			if err := l.refresh(ctx); err != nil {
				return Line{}, fmt.Errorf("append to the audit log: %w", err)
			}
		case err != nil && noted >= 0:
			return Line{}, fmt.Errorf("append to the audit log: note the damage of %s: %w", next.Subject, err)
		case err != nil:
			return Line{}, fmt.Errorf("append to the audit log: %w", err)
		default:
			l.extend(chain.File{Seq: next.Seq, Data: data})
			if noted < 0 {
				return next, nil
			}
		}
	}
}
