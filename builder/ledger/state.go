package ledger

import (
	"iter"
	"maps"
	"slices"
	"time"

	"gridcast/builder/season"
)

// State is what the events of a ledger up to some instant add up to. It is immutable and safe
// for concurrent use; the slices and pointers it hands out are shared: read only.
type State struct {
	kind     Kind
	opened   time.Time
	at       time.Time
	head     Head
	keys     map[roundID]int64
	sessions map[int64]*Session
	order    []int64 // the keys of sessions, ascending
	breaches []Breach
}

// roundID names a round through renumbering.
type roundID struct {
	year      int
	grandPrix season.GrandPrixID
}

// Breach is an event in the store that breaks a rule. Readers act as if it were not there.
type Breach struct {
	Seq   int64 // of its file
	Event Event
	Err   error
}

func newState() *State {
	return &State{keys: map[roundID]int64{}, sessions: map[int64]*Session{}}
}

// clone returns a copy that can be changed without s being changed. Keys and sessions are
// shared: see State.assign and State.change.
func (s *State) clone() *State {
	c := *s
	c.sessions = maps.Clone(s.sessions)
	c.breaches = slices.Clip(s.breaches)
	return &c
}

// Kind says whether the ledger is real or simulated; AnyKind before it was opened.
func (s *State) Kind() Kind { return s.kind }

// OpenedAt is the instant of the first event: the archive vouches for every race that had
// ended before it. It is zero before the ledger was opened.
func (s *State) OpenedAt() time.Time { return s.opened }

// At is the instant of the last event; zero if there is none.
func (s *State) At() time.Time { return s.at }

// Head is the last file the state was made from.
func (s *State) Head() Head { return s.head }

// Key returns the session key of a round, if it has one.
func (s *State) Key(year int, gp season.GrandPrixID) (key int64, ok bool) {
	key, ok = s.keys[roundID{year, gp}]
	return key, ok
}

// Session returns what is recorded of a session key, if it was ever assigned.
func (s *State) Session(key int64) (Session, bool) {
	session, ok := s.sessions[key]
	if !ok {
		return Session{}, false
	}
	return *session, true
}

// Sessions yields every session by ascending key. Within a year that need not be the order of
// the calendar.
func (s *State) Sessions() iter.Seq[Session] {
	return func(yield func(Session) bool) {
		for _, key := range s.order {
			if !yield(*s.sessions[key]) {
				return
			}
		}
	}
}

// Breaches lists the events that readers ignore, in order. It is empty unless something other
// than Append wrote to the store.
func (s *State) Breaches() []Breach { return s.breaches }
