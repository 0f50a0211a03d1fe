package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob/chain"
)

// Kind says whether the picks of a ledger were made in real time or in hindsight.
type Kind string

// The kinds of ledger. They never mix.
const (
	Real      Kind = "real"
	Simulated Kind = "simulated"

	// AnyKind is for readers that take either, such as an audit. Nobody can append with it.
	AnyKind Kind = ""
)

// Actors that are no operator. An operator is "operator:anna", a source "source:f1db@COMMIT".
const (
	ArchiveActor = "archive" // the archive vouches for a result that it had long before: see ResultVerified
	RuleActor    = "rule"    // a rule of the settings decided
	sourcePrefix = "source:"
)

// SourceActor names a source at a revision as an actor.
func SourceActor(source, revision string) string { return sourcePrefix + source + "@" + revision }

// IsSource says that the actor is a source, and no person.
func IsSource(actor string) bool { return strings.HasPrefix(actor, sourcePrefix) }

// Type names what an event says.
type Type string

// The events, each with the fields that it uses besides ID, At, Made and Actor. Fields in
// brackets may be absent.
const (
	Opened          Type = "opened"           // first event: Kind [Archive]
	KeysAssigned    Type = "keys_assigned"    // Keys
	PickFrozen      Type = "pick_frozen"      // Session, Pick, Start [GridKnown, Archive, Basis, Chances]
	PickVoided      Type = "pick_voided"      // Session, Reason
	LivePickFrozen  Type = "live_pick_frozen" // Session, Pick, Checkpoint, Start [Archive, Chances, Lap, DataAge]
	ResultVerified  Type = "result_verified"  // Session, Result, Start [Reason, needed from revision 2 on]
	RoundPostponed  Type = "round_postponed"  // Session, Reason [Was, if the hour was known]
	RoundCancelled  Type = "round_cancelled"  // Session, Reason; never by a source
	RoundMoved      Type = "round_moved"      // Session, Reason, Start, Was
	RoundReinstated Type = "round_reinstated" // Session, Reason [Start, if it has a new one]
	RoundReleased   Type = "round_released"   // Session, Reason, Start, Was: from now on the start follows the sources again
	DriverRenamed   Type = "driver_renamed"   // From, To [Reason]
)

// Event is one fact. Fields that its Type does not use are zero and absent from the file.
// ID, At, Made and Actor are filled in by Append. Ids of drivers are for ever: an event keeps the
// one that was current when it was written, and State speaks of the one that is current now.
type Event struct {
	ID      string    `json:"id"` // unique; tells a lost answer from a lost race
	Type    Type      `json:"type"`
	At      time.Time `json:"at"`    // race time, UTC; never before that of the event before
	Actor   string    `json:"actor"` // who or what decided: "builder", "operator:anna"
	Session int64     `json:"session_key,omitzero"`
	Reason  string    `json:"reason,omitzero"`

	Kind       Kind            `json:"kind,omitzero"`
	Keys       []KeyAssignment `json:"keys,omitzero"`
	Pick       *Pick           `json:"pick,omitzero"`
	Checkpoint int             `json:"checkpoint_pct,omitzero"` // of the scheduled distance; 0 with a live pick: end of lap 1
	Start      time.Time       `json:"start,omitzero"`          // lights out that is valid from this event on
	Was        time.Time       `json:"was,omitzero"`            // lights out that was valid until this event changed it
	GridKnown  bool            `json:"grid_known,omitzero"`     // a pick made with the grid
	Result     *Classification `json:"result,omitzero"`

	// The fields below make a file one of format 2.

	// Made is what the clock of the writer showed, if that was before At: the head had an instant
	// in the future, because some clock had been ahead. The rules are judged by Made.
	Made    time.Time       `json:"made_at,omitzero"`
	Archive string          `json:"archive,omitzero"` // lower-case hex SHA-256 of the archive that it was made from
	Basis   Basis           `json:"basis,omitzero"`
	Chances []Chance        `json:"chances,omitzero"`
	Lap     int             `json:"lap,omitzero"`         // laps that the leader had completed
	DataAge int64           `json:"data_age_ms,omitzero"` // how old the timing data were, in milliseconds
	From    season.DriverID `json:"from,omitzero"`        // the id of before
	To      season.DriverID `json:"to,omitzero"`          // the id from now on
}

// KeyAssignment binds a session key to a round for ever.
type KeyAssignment struct {
	Session   int64              `json:"session_key"`
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
}

// Pick is a prediction as frozen.
type Pick struct {
	P1             season.DriverID `json:"p1"`
	P2             season.DriverID `json:"p2"`
	P3             season.DriverID `json:"p3"`
	WinProbability float64         `json:"win_probability"` // of P1, in (0, 1]
	Model          string          `json:"model"`           // name and version of what made it
}

// Basis says what a pick was made from.
type Basis string

// The bases of a pick.
const (
	OnGrid       Basis = "grid"
	OnQualifying Basis = "qualifying" // counts as made with the grid when the round is postponed
	OnForm       Basis = "form"       // neither was known
)

// Certain is the chance of what is certain, in millionths.
const Certain = 1_000_000

// Chance is what a driver's chances were when a pick was frozen, in millionths: integers, so that
// they and what follows from them are the same on every processor.
type Chance struct {
	Driver season.DriverID `json:"driver"`
	Win    int             `json:"win"`
	Podium int             `json:"podium"`
}

// Classification is a result as verified: the whole of it, in the order of the source.
type Classification struct {
	Revision int   `json:"revision"` // 1 for the first
	Rows     []Row `json:"rows"`
	Sprint   []Row `json:"sprint,omitzero"` // of the weekend's sprint; nil: as before, or as the source has it
}

// Row is a line of a classification.
type Row struct {
	Driver   season.DriverID `json:"driver"`
	Team     season.TeamID   `json:"team"`
	Engine   season.EngineID `json:"engine,omitzero"`
	Position int             `json:"position,omitzero"` // 0: not classified
	Points   float64         `json:"points,omitzero"`
	Shared   bool            `json:"shared,omitzero"` // the driver shared the car of the first row with this position
}

// Winner returns the driver on the first place; the first of them if the win was shared.
func (c *Classification) Winner() season.DriverID {
	for _, row := range c.Rows {
		if row.Position == 1 {
			return row.Driver
		}
	}
	return ""
}

// When is the instant of the event by the clock of its writer, by which it is judged.
func (e Event) When() time.Time {
	if e.Made.IsZero() {
		return e.At
	}
	return e.Made
}

// String says in a few words what the event decided, without its type and its session.
func (e Event) String() string {
	to := ""
	if !e.Start.IsZero() {
		to = "to " + e.Start.UTC().Format("2006-01-02 15:04:05")
	}
	switch {
	case e.Type == Opened:
		return string(e.Kind)
	case e.Type == KeysAssigned:
		return fmt.Sprintf("%d keys", len(e.Keys))
	case e.Pick != nil:
		return fmt.Sprintf("%s %.1f %%, %s, %s", e.Pick.P1, 100*e.Pick.WinProbability, e.Pick.P2, e.Pick.P3)
	case e.Result != nil:
		return strings.TrimSpace(fmt.Sprintf("revision %d, won by %s %s", e.Result.Revision, e.Result.Winner(), e.Reason))
	case e.Type == RoundMoved, e.Type == RoundReinstated, e.Type == RoundReleased:
		return strings.TrimSpace(to + " " + e.Reason)
	case e.Type == DriverRenamed:
		return fmt.Sprintf("%s to %s", e.From, e.To)
	default:
		return e.Reason
	}
}

// Freeze returns the event that freezes the pick of a round. The start is the one now valid,
// see Record.Start; gridKnown says that the pick was made with the grid. What it was made from
// (Archive, Basis, Chances) can be added to the event.
func Freeze(session int64, pick Pick, start time.Time, gridKnown bool) Event {
	return Event{Type: PickFrozen, Session: session, Pick: &pick, Start: start.UTC(), GridKnown: gridKnown}
}

// FreezeLive returns the event that freezes a live pick at a checkpoint, in percent of the
// scheduled distance, 0 for the end of lap 1. The start is that of the race. What it was made
// from (Chances, Lap, DataAge) can be added to the event.
func FreezeLive(session int64, pick Pick, start time.Time, checkpoint int) Event {
	return Event{Type: LivePickFrozen, Session: session, Pick: &pick, Start: start.UTC(), Checkpoint: checkpoint}
}

// Rename returns the event by which a driver has another id from now on. What the ledger said of
// the old one, and what older programs still say of it, is said of the new one.
func Rename(from, to season.DriverID) Event { return Event{Type: DriverRenamed, From: from, To: to} }

// Verify returns the event that vouches for a classification as the next revision of the
// result. The start is the one that was valid; the reason is required from the second revision
// on, and says why the first was not the last word. The rows of the sprint can be added to its
// Result.
func (r *Record) Verify(rows []Row, start time.Time, reason string) Event {
	return Event{
		Type: ResultVerified, Session: r.Key, Start: start.UTC(), Reason: reason,
		Result: &Classification{Revision: len(r.Revisions) + 1, Rows: rows},
	}
}

// Postpone returns the events that take the round off its date, to be held later: the
// decision, and the end of a pick that was made before the grid. Was is the start valid until
// now, zero if its hour is unknown.
func (r *Record) Postpone(was time.Time, reason string) []Event {
	events := []Event{{Type: RoundPostponed, Session: r.Key, Was: was.UTC(), Reason: reason}}
	if r.Pick != nil && !r.Pick.afterQualifying() {
		events = append(events, Event{Type: PickVoided, Session: r.Key, Reason: "postponed before the grid was known"})
	}
	return events
}

// Cancel returns the events that call the round off: the decision, and the end of its pick.
func (r *Record) Cancel(reason string) []Event {
	events := []Event{{Type: RoundCancelled, Session: r.Key, Reason: reason}}
	if r.Pick != nil {
		events = append(events, Event{Type: PickVoided, Session: r.Key, Reason: "cancelled"})
	}
	return events
}

// Move returns the event that gives the round another start. Was is the one valid until now.
func (r *Record) Move(was, start time.Time, reason string) Event {
	return Event{Type: RoundMoved, Session: r.Key, Was: was.UTC(), Start: start.UTC(), Reason: reason}
}

// Reinstate returns the event that puts a postponed or cancelled round back, at a start or,
// if that is zero, at the one that its calendar says.
func (r *Record) Reinstate(start time.Time, reason string) Event {
	return Event{Type: RoundReinstated, Session: r.Key, Start: start.UTC(), Reason: reason}
}

// Release returns the event by which a person lets go of the start that they gave the round: it
// follows the sources again. Was is the start valid until now, start the one that the sources
// say, which may be the same.
func (r *Record) Release(was, start time.Time, reason string) Event {
	return Event{Type: RoundReleased, Session: r.Key, Was: was.UTC(), Start: start.UTC(), Reason: reason}
}

// Prefix begins the key of every ledger file.
const Prefix = "ledger/"

// Key returns the store key of file seq. Numbers are padded to eight digits, so that keys in
// ascending order are files in order.
func Key(seq int64) string { return chain.Chain{Prefix: Prefix}.Key(seq) }

// The formats of a file. A file has the lowest one that can say what it says, so that the files
// of a program that says nothing new can be read by an older one.
const (
	format1 = 0 // its number is left out
	format2 = 2
)

// File is the content of one ledger file, the events of one append.
//
// Its bytes are canonical: compact JSON in the order of these fields, nothing escaped that
// need not be, no newline at the end. Equal files have equal bytes, and DecodeFile accepts no
// other form. Together with the checksum that makes a change of any byte visible in the file
// itself; that a file was replaced by another valid one shows in the file after it, or by a
// hash noted earlier.
type File struct {
	Seq      int64   `json:"seq"`             // 1 for the first
	Previous string  `json:"previous"`        // lower-case hex SHA-256 of the file before; empty in the first
	Format   int     `json:"format,omitzero"` // absent, or 2 if an event needs it; set by Encode
	Kind     Kind    `json:"kind"`            // of the whole ledger
	Events   []Event `json:"events"`          // at least one; all of one instant
	Checksum string  `json:"checksum"`        // lower-case hex SHA-256 of this file with an empty checksum

	// Hash is the lower-case hex SHA-256 of these bytes, by which the file after it names it; empty
	// in a file that was not read from a ledger.
	Hash string `json:"-"`
}

// needsFormat2 says that the event uses a type or a field that format 1 does not have.
func (e Event) needsFormat2() bool {
	return e.Type == RoundReleased || e.Type == DriverRenamed ||
		!e.Made.IsZero() || e.Archive != "" || e.Basis != "" || e.Chances != nil || e.Lap != 0 || e.DataAge != 0 ||
		e.From != "" || e.To != "" || (e.Result != nil && e.Result.Sprint != nil)
}

// Encode returns the bytes of the file. Format and checksum of f are not looked at but made anew.
func (f File) Encode() ([]byte, error) {
	f.Format, f.Checksum = format1, ""
	if slices.ContainsFunc(f.Events, Event.needsFormat2) {
		f.Format = format2
	}
	plain, err := chain.Encode(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Key(f.Seq), err)
	}
	f.Checksum = chain.Hash(plain)
	data, err := chain.Encode(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Key(f.Seq), err)
	}
	return data, nil
}

// DecodeFile reads the bytes of a file. It refuses every form but the one that Encode makes,
// and so unknown fields, repeated fields and a wrong checksum; for a later format the error wraps
// ErrNewer. It does not judge the events.
func DecodeFile(data []byte) (File, error) {
	var f File
	err := json.Unmarshal(data, &f)
	if f.Format > format2 {
		return File{}, fmt.Errorf("it is of format %d, and formats up to %d are known: %w", f.Format, format2, ErrNewer)
	}
	if err != nil {
		return File{}, fmt.Errorf("not a ledger file: %w", err)
	}
	again, err := f.Encode()
	if err != nil {
		return File{}, err
	}
	if bytes.Equal(again, data) {
		return f, nil
	}
	if sum := f.Checksum; len(again) == len(data) && !bytes.Contains(again, []byte(sum)) {
		return File{}, fmt.Errorf("checksum %s does not fit the content", sum)
	}
	return File{}, errors.New("not in canonical form")
}
