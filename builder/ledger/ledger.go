package ledger

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

var (
	// ErrNotOpened says that the store holds no ledger.
	ErrNotOpened = errors.New("there is no ledger")
	// ErrKind says that the ledger is of the other kind, or the caller did not say which he wants.
	ErrKind = errors.New("wrong kind of ledger")
	// ErrOlder says that an event is older than the last one: the caller's clock is behind.
	ErrOlder = errors.New("older than the head of the ledger")
)

// parallelReads bounds how many files are fetched at a time.
const parallelReads = 16

// Ledger is the record in a store, as far as it has been read. It is safe for concurrent use;
// any number of Ledgers, in any number of processes, may append to the same store.
type Ledger struct {
	store blob.Store
	kind  Kind // what the caller wants; AnyKind: to read only

	mu   sync.Mutex // held to move on to a later record, through the I/O that it takes
	read atomic.Pointer[record]
}

// record is what has been read: immutable but for its spare capacity, which only the holder
// of Ledger.mu uses.
type record struct {
	files []Entry
	chain chain
	state *State // folded from all files
}

// Entry is a file of the ledger and its hash.
type Entry struct {
	File
	Hash string // lower-case hex SHA-256 of the file
}

// Open returns the ledger in store, which must be of the kind; if there is none, it starts
// one at the instant, in the name of the actor.
func Open(ctx context.Context, store blob.Store, kind Kind, at time.Time, actor string) (*Ledger, error) {
	if err := checkKind(kind); err != nil {
		return nil, fmt.Errorf("open the ledger in %s: %w: %w", store, ErrKind, err)
	}
	l, err := load(ctx, store, kind)
	if err != nil {
		return nil, fmt.Errorf("open the ledger in %s: %w", store, err)
	}
	_, err = l.Append(ctx, at, actor, func(s *State) ([]Event, error) {
		if s.Kind() != AnyKind {
			return nil, nil
		}
		return []Event{{Type: Opened, Kind: kind}}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("open the ledger in %s: %w", store, err)
	}
	return l, nil
}

// Load returns the ledger in store, which must be of the kind unless that is AnyKind, without
// ever writing. The error wraps ErrNotOpened if there is none, ErrKind if it is of the other
// kind, and a *DamageError if it is not whole.
func Load(ctx context.Context, store blob.Store, kind Kind) (*Ledger, error) {
	l, err := load(ctx, store, kind)
	if err == nil && l.Head().Seq == 0 {
		err = ErrNotOpened
	}
	if err != nil {
		return nil, fmt.Errorf("load the ledger in %s: %w", store, err)
	}
	return l, nil
}

func load(ctx context.Context, store blob.Store, kind Kind) (*Ledger, error) {
	l := &Ledger{store: store, kind: kind}
	l.read.Store(&record{state: newState()})
	last, _, err := listed(ctx, store)
	if err != nil {
		return nil, err
	}
	files, err := fetch(ctx, store, last)
	if err != nil {
		return nil, err
	}
	if err := l.extend(files); err != nil {
		return nil, err
	}
	return l, l.Refresh(ctx)
}

// listed returns the highest sequence number in the store, 0 for none, and the keys that are
// not those of ledger files. A listing may miss files that are just being written, so what is
// below the number is for Get to say.
func listed(ctx context.Context, store blob.Store) (last int64, strangers []string, err error) {
	for info, err := range store.List(ctx, Prefix) {
		if err != nil {
			return 0, nil, err
		}
		seq, ok := parseKey(info.Key)
		if !ok {
			strangers = append(strangers, info.Key)
		}
		last = max(last, seq)
	}
	return last, strangers, nil
}

// fetch returns the bytes of files 1 to last. The bytes of a missing file are nil.
func fetch(ctx context.Context, store blob.Store, last int64) ([][]byte, error) {
	files := make([][]byte, last)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i := range files {
		group.Go(func() error {
			object, err := store.Get(ctx, Key(int64(i)+1), blob.MaxDocument)
			if errors.Is(err, blob.ErrNotFound) {
				return nil
			}
			files[i] = append([]byte{}, object.Data...) // an empty file is not a missing one
			return err
		})
	}
	return files, group.Wait()
}

// Refresh reads what was appended since by others. It costs one read if that is nothing. After
// an error the ledger is what it was before.
func (l *Ledger) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh(ctx)
}

func (l *Ledger) refresh(ctx context.Context) error {
	var files [][]byte
	for seq := l.Head().Seq + 1; ; seq++ {
		object, err := l.store.Get(ctx, Key(seq), blob.MaxDocument)
		if errors.Is(err, blob.ErrNotFound) {
			return l.extend(files)
		}
		if err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		files = append(files, object.Data)
	}
}

// extend moves on to a record with these files at its end. The caller holds mu, or is the only
// one to know l.
func (l *Ledger) extend(files [][]byte) error {
	if len(files) == 0 {
		return nil
	}
	next := *l.read.Load()
	next.state = next.state.clone()
	for _, data := range files {
		f, damage := next.chain.next(data)
		if damage != nil {
			return damage
		}
		if l.kind != AnyKind && f.Kind != l.kind {
			return fmt.Errorf("%w: it is %s, not %s", ErrKind, f.Kind, l.kind)
		}
		next.files = append(next.files, Entry{File: f, Hash: next.chain.head.Hash})
		next.state.add(f, next.chain.head)
	}
	l.read.Store(&next)
	return nil
}

// Head returns the last file that has been read.
func (l *Ledger) Head() Head { return l.read.Load().chain.head }

// State returns what all events that have been read add up to.
func (l *Ledger) State() *State { return l.read.Load().state }

// AsOf returns what the events up to t, inclusive, add up to.
func (l *Ledger) AsOf(t time.Time) *State {
	r := l.read.Load()
	if !r.state.at.After(t) {
		return r.state
	}
	known := sort.Search(len(r.files), func(i int) bool { return r.files[i].Events[0].At.After(t) })
	return r.upTo(known)
}

// UpTo returns what the events of the files up to seq, inclusive, add up to: what somebody saw
// for whom that was the head. Files that have not been read are left out.
func (l *Ledger) UpTo(seq int64) *State {
	r := l.read.Load()
	return r.upTo(int(min(max(seq, 0), int64(len(r.files)))))
}

// upTo folds the first n files.
func (r *record) upTo(n int) *State {
	state := newState()
	for _, f := range r.files[:n] {
		state.add(f.File, Head{Seq: f.Seq, Hash: f.Hash})
	}
	return state
}

// Entries returns the files that have been read, oldest first. They are shared: read only.
func (l *Ledger) Entries() []Entry {
	r := l.read.Load()
	return r.files[:len(r.files):len(r.files)]
}
