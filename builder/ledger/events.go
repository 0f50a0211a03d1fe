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
	BuilderActor = "builder" // a build found it due
	ArchiveActor = "archive" // the archive vouches for a result that it had long before: see ResultVerified
	RuleActor    = "rule"    // a rule of the settings decided
	sourcePrefix = "source:"
)

// SourceActor names a source at a revision as an actor.
func SourceActor(source, revision string) string { return sourcePrefix + source + "@" + revision }

// SourceOf returns the source and the revision of an actor, false for a person.
func SourceOf(actor string) (source, revision string, ok bool) {
	text, ok := strings.CutPrefix(actor, sourcePrefix)
	source, revision, _ = strings.Cut(text, "@")
	return source, revision, ok
}

// IsSource says that the actor is a source, and no person.
func IsSource(actor string) bool {
	_, _, ok := SourceOf(actor)
	return ok
}

// Type is the kind of an event.
type Type string

// The events, each with the fields that it uses besides ID, At, Made and Actor. Fields in
// brackets may be absent. Every other field is zero.
const (
	Opened          Type = "opened"           // first event: Kind [Archive]
	KeysAssigned    Type = "keys_assigned"    // Keys
	PickFrozen      Type = "pick_frozen"      // Session, Pick, Start [GridKnown, Archive, Basis, Chances]
	PickVoided      Type = "pick_voided"      // Session, Reason
	LivePickFrozen  Type = "live_pick_frozen" // Session, Pick, Checkpoint, Start, Observation [Archive, Chances]
	ForecastNoted   Type = "forecast_noted"   // Session, Step, Model, Chances [Archive]
	ResultVerified  Type = "result_verified"  // Session, Result, Start [Reason, needed from revision 2 on]
	ResultsVouched  Type = "results_vouched"  // Archive, Rounds [Reason]
	RoundPostponed  Type = "round_postponed"  // Session, Reason [Was, if the hour was known]
	RoundCancelled  Type = "round_cancelled"  // Session, Reason; never by a source
	RoundMoved      Type = "round_moved"      // Session, Reason, Start, Was
	RoundReinstated Type = "round_reinstated" // Session, Reason [Start, if it has a new one]
	RoundReleased   Type = "round_released"   // Session, Reason, Start, Was: from now on the start follows the sources again
	DriverRenamed   Type = "driver_renamed"   // From, To [Reason]
	CodeChanged     Type = "code_changed"     // Year, Driver, From, To [Reason]

	ChampionshipDecided Type = "championship_decided" // Year, Session, Championship, Reason; never by a source

	DriverWithdrawn Type = "driver_withdrawn" // Session, Driver, Start: a driver of the frozen pick does not start
	DriverReturned  Type = "driver_returned"  // Session, Driver, Start: a withdrawn driver starts after all
)

// Event is one fact. Fields that its Type does not use are zero and absent from the file.
// Append fills in ID, At, Made and Actor. An event keeps the id that a driver had when it was written; Fold
// gives the current id.
type Event struct {
	ID      string    `json:"id"` // unique; tells a lost answer from a lost race
	Type    Type      `json:"type"`
	At      time.Time `json:"at"`    // race time, UTC; never before that of the event before
	Actor   string    `json:"actor"` // the decider: "builder", "operator:anna"
	Session int64     `json:"session_key,omitzero"`
	Reason  string    `json:"reason,omitzero"`

	Kind       Kind            `json:"kind,omitzero"`
	Keys       []KeyAssignment `json:"keys,omitzero"`
	Pick       *Pick           `json:"pick,omitzero"`
	Checkpoint int             `json:"checkpoint_pct,omitzero"` // of the scheduled distance; 0 with a live pick: end of lap 1
	Start      time.Time       `json:"start,omitzero"`          // lights out that is valid from this event on
	Was        time.Time       `json:"was,omitzero"`            // lights out that was valid until this event changed it
	GridKnown  bool            `json:"grid_known,omitzero"`     // the pick was made with the grid
	Result     *Classification `json:"result,omitzero"`

	// Made is the writer's clock, recorded only if it was before At. The head then had an instant in the
	// future, because some clock had been ahead. The rules judge the event by Made.
	Made        time.Time          `json:"made_at,omitzero"`
	Archive     string             `json:"archive,omitzero"` // the archive that the event rests on, by its lower-case hex SHA-256
	Basis       Basis              `json:"basis,omitzero"`
	Chances     []Chance           `json:"chances,omitzero"`
	Observation *Observation       `json:"observation,omitzero"`
	Step        season.SessionKind `json:"step,omitzero"`   // the session of the weekend after which the forecast was made, or StepForm or StepGrid
	Model       string             `json:"model,omitzero"`  // name and version of the model of the forecast
	Rounds      []int64            `json:"rounds,omitzero"` // session keys, ascending
	Year        int                `json:"year,omitzero"`
	Driver      season.DriverID    `json:"driver,omitzero"`
	From        string             `json:"from,omitzero"` // the id or code until this event
	To          string             `json:"to,omitzero"`   // the id or code from this event on

	Championship *Championship `json:"championship,omitzero"` // it counts in the standings from the round of Session on
}

// Championship is a decision about a competitor of a championship that no race shows. Exactly one of Points, Excluded,
// NewEntry and Restores is set.
type Championship struct {
	Constructors bool            `json:"constructors,omitzero"` // of the constructors' championship, else of the drivers'
	Competitor   string          `json:"competitor"`            // the id of the driver or team
	Engine       season.EngineID `json:"engine,omitzero"`       // of a constructor whose engines the season ranks apart
	Points       float64         `json:"points,omitzero"`       // added; negative: taken
	Excluded     bool            `json:"excluded,omitzero"`     // the competitor has no rank; its points stay listed
	// NewEntry excludes the entry of a team that ends with the round before. The team goes on without its points as
	// another entry.
	NewEntry bool   `json:"new_entry,omitzero"`
	Restores string `json:"restores,omitzero"` // the id of the event whose decision ends: the tables are as if it had not been made
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
	Model          string          `json:"model"`           // name and version of the model
}

// Basis is the order of drivers that a pick was made from.
type Basis string

// The bases of a pick.
const (
	OnGrid       Basis = "grid"
	OnQualifying Basis = "qualifying" // counts as made with the grid when the round is postponed
	OnForm       Basis = "form"       // neither was known
)

// The steps of a noted forecast that follow no session.
const (
	StepForm season.SessionKind = "form" // the weekend has begun, and no session is known
	StepGrid season.SessionKind = "grid" // the grid is known
)

// Certain is the chance of a certain outcome, in millionths.
const Certain = 1_000_000

// Chance holds a driver's chances when a pick was frozen or a forecast noted. All numbers are integers
// in millionths, so that every processor derives the same from them. Positions, Points and DNF may be absent.
type Chance struct {
	Driver    season.DriverID `json:"driver"`
	Win       int             `json:"win"`
	Podium    int             `json:"podium"`
	Positions []int           `json:"positions,omitzero"` // of each place of the classification, the first one first
	Points    int             `json:"points,omitzero"`    // expected points, in millionths of a point
	DNF       int             `json:"dnf,omitzero"`       // of not finishing
}

// Observation names the state of a running race from which a live pick was made.
type Observation struct {
	Lap    int       `json:"lap"`    // laps that the leader had completed
	SHA256 string    `json:"sha256"` // lower-case hex SHA-256 of the stored observation
	At     time.Time `json:"at"`     // the instant that it shows
}

// Classification is a whole result as verified, in the order of the source.
type Classification struct {
	Revision int   `json:"revision"` // 1 for the first
	Rows     []Row `json:"rows"`
	// Sprint is the classification of the weekend's sprint. If it is nil, the one verified before counts,
	// else the source's.
	Sprint []Row `json:"sprint,omitzero"`
}

// Row is a line of a classification.
type Row struct {
	Driver   season.DriverID `json:"driver"`
	Team     season.TeamID   `json:"team"`
	Engine   season.EngineID `json:"engine,omitzero"`
	Position int             `json:"position,omitzero"` // 0: not classified
	Points   float64         `json:"points,omitzero"`
	Shared   bool            `json:"shared,omitzero"` // the driver shared the car of the first row with this position
	Details
}

// Details are the facts of a row beside place and points. The ledger records them, so that a result can be
// published from the ledger alone. No decision depends on them: see Row.Same. A zero field is not known.
type Details struct {
	Number  int            `json:"number,omitzero"`   // the one on the car
	Status  season.Outcome `json:"status,omitzero"`   // why the driver has no position
	Grid    int            `json:"grid,omitzero"`     // place on the grid; 0 also from the pit lane
	Laps    *int           `json:"laps,omitzero"`     // completed
	TimeMS  int64          `json:"time_ms,omitzero"`  // of the winner
	GapMS   int64          `json:"gap_ms,omitzero"`   // behind the winner, on the lead lap
	GapLaps int            `json:"gap_laps,omitzero"` // behind the winner, of a lapped car
	Reason  string         `json:"reason,omitzero"`   // why the driver retired, in the source's words
}

// Same says that two rows agree in all but their details.
func (r Row) Same(other Row) bool {
	r.Details, other.Details = Details{}, Details{}
	return r == other
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

// String describes the event in a few words, without its type and session.
func (e Event) String() string {
	switch {
	case e.Type == Opened:
		return string(e.Kind)
	case e.Type == KeysAssigned:
		return fmt.Sprintf("%d keys", len(e.Keys))
	case e.Pick != nil:
		return fmt.Sprintf("%s %.1f %%, %s, %s", e.Pick.P1, 100*e.Pick.WinProbability, e.Pick.P2, e.Pick.P3)
	case e.Result != nil:
		return strings.TrimSpace(fmt.Sprintf("revision %d, won by %s %s", e.Result.Revision, e.Result.Winner(), e.Reason))
	case e.Type == ForecastNoted:
		return fmt.Sprintf("after %s by %s", e.Step, e.Model)
	case e.Type == ResultsVouched:
		return strings.TrimSpace(fmt.Sprintf("%d rounds %s", len(e.Rounds), e.Reason))
	case e.Type == DriverRenamed:
		return fmt.Sprintf("%s to %s", e.From, e.To)
	case e.Championship != nil:
		return fmt.Sprintf("%s of %d: %s, %s", e.Championship.Competitor, e.Year, e.Championship, e.Reason)
	case e.Type == CodeChanged:
		return fmt.Sprintf("%s of %d, %s to %s", e.Driver, e.Year, e.From, e.To)
	case e.Driver != "": // it withdraws or returns
		return string(e.Driver)
	case !e.Start.IsZero():
		return "to " + e.Start.UTC().Format("2006-01-02 15:04:05Z") + " " + e.Reason
	default:
		return e.Reason
	}
}

// String describes the decision in a few words, without its competitor.
func (c *Championship) String() string {
	switch {
	case c.Excluded:
		return "excluded"
	case c.NewEntry:
		return "excluded and entered anew"
	case c.Restores != "":
		return "restored"
	case c.Points < 0:
		return fmt.Sprintf("%g points taken", -c.Points)
	}
	return fmt.Sprintf("%g points added", c.Points)
}

// Freeze returns the event that freezes the pick of a round. The start is the one now valid,
// see RoundRecord.Start; gridKnown says that the pick was made with the grid. The caller may add Archive,
// Basis and Chances to the event.
func Freeze(session int64, pick Pick, start time.Time, gridKnown bool) Event {
	return Event{Type: PickFrozen, Session: session, Pick: &pick, Start: start.UTC(), GridKnown: gridKnown}
}

// FreezeLive returns the event that freezes a live pick at a checkpoint, in percent of the
// scheduled distance, 0 for the end of lap 1. The start is that of the race. The caller may add Archive and
// Chances to the event.
func FreezeLive(session int64, pick Pick, start time.Time, checkpoint int, seen Observation) Event {
	seen.At = seen.At.UTC()
	return Event{Type: LivePickFrozen, Session: session, Pick: &pick, Start: start.UTC(), Checkpoint: checkpoint, Observation: &seen}
}

// Rename returns the event that gives a driver another id. Earlier and later events with the old id then mean
// the new one.
func Rename(from, to season.DriverID) Event {
	return Event{Type: DriverRenamed, From: string(from), To: string(to)}
}

// Verify returns the event that verifies a classification as the next revision of the result. The start is the
// one that was valid. From the second revision on a reason is required. The caller may add the rows of the
// sprint to the Result.
func (r *RoundRecord) Verify(rows []Row, start time.Time, reason string) Event {
	return Event{
		Type: ResultVerified, Session: r.Key, Start: start.UTC(), Reason: reason,
		Result: &Classification{Revision: len(r.Revisions) + 1, Rows: rows},
	}
}

// Postpone returns the events that take the round off its date: the decision, and the end of a pick that was
// made before the grid. Was is the start valid until now, or zero if its hour is unknown.
func (r *RoundRecord) Postpone(was time.Time, reason string) []Event {
	events := []Event{{Type: RoundPostponed, Session: r.Key, Was: was.UTC(), Reason: reason}}
	if r.Pick != nil && !r.Pick.afterQualifying() {
		events = append(events, Event{Type: PickVoided, Session: r.Key, Reason: "postponed before the grid was known"})
	}
	return events
}

// Cancel returns the events that call the round off: the decision, and the end of its pick.
func (r *RoundRecord) Cancel(reason string) []Event {
	events := []Event{{Type: RoundCancelled, Session: r.Key, Reason: reason}}
	if r.Pick != nil {
		events = append(events, Event{Type: PickVoided, Session: r.Key, Reason: "cancelled"})
	}
	return events
}

// Move returns the event that gives the round another start. Was is the start valid until now.
func (r *RoundRecord) Move(was, start time.Time, reason string) Event {
	return Event{Type: RoundMoved, Session: r.Key, Was: was.UTC(), Start: start.UTC(), Reason: reason}
}

// Reinstate returns the event that puts a postponed or cancelled round back. A zero start means the start of
// the calendar.
func (r *RoundRecord) Reinstate(start time.Time, reason string) Event {
	return Event{Type: RoundReinstated, Session: r.Key, Start: start.UTC(), Reason: reason}
}

// Release returns the event that lets the start of the round follow the sources again, after a person decided
// on it. Was is the start valid until now, and start is the sources', which may be the same.
func (r *RoundRecord) Release(was, start time.Time, reason string) Event {
	return Event{Type: RoundReleased, Session: r.Key, Was: was.UTC(), Start: start.UTC(), Reason: reason}
}

// Prefix begins the key of every ledger file.
const Prefix = "ledger/"

// Key returns the store key of file seq. Numbers are padded to eight digits, so that keys in
// ascending order are files in order.
func Key(seq int64) string { return chain.Chain{Prefix: Prefix}.Key(seq) }

// The formats of files. A file has the lowest format in which all its events can be written, so that an earlier
// program reads every file that it can understand, and reports the others as ErrNewer.
const (
	firstFormat = 3 // no reader is kept for the earlier ones
	Format      = 4 // with the events of newTypes
)

// newTypes are the types of events that formats before the last one lack.
var newTypes = []Type{ChampionshipDecided, DriverWithdrawn, DriverReturned}

// File is the content of one ledger file, the events of one append.
//
// Its bytes are canonical: compact JSON in the order of these fields, nothing escaped that
// need not be, no newline at the end. Equal files have equal bytes, and DecodeFile accepts no
// other form. Together with the checksum that makes a change of any byte visible in the file
// itself; that a file was replaced by another valid one shows in the file after it, or by a
// hash noted earlier.
type File struct {
	Seq      int64   `json:"seq"`      // 1 for the first
	Previous string  `json:"previous"` // lower-case hex SHA-256 of the file before; empty in the first
	Format   int     `json:"format"`   // 3 or 4; set by Encode
	Kind     Kind    `json:"kind"`     // of the whole ledger
	Events   []Event `json:"events"`   // at least one; all of one instant
	Checksum string  `json:"checksum"` // lower-case hex SHA-256 of this file with an empty checksum

	// Hash is the lower-case hex SHA-256 of these bytes, by which the file after it names it; empty
	// in a file that was not read from a ledger.
	Hash string `json:"-"`
}

// Encode returns the bytes of the file. It sets format and checksum itself.
func (f File) Encode() ([]byte, error) {
	f.Format, f.Checksum = firstFormat, ""
	if slices.ContainsFunc(f.Events, func(e Event) bool { return slices.Contains(newTypes, e.Type) }) {
		f.Format = Format
	}
	content, _ := chain.Encode(f) // an error comes again with the checksum
	f.Checksum = chain.Hash(content)
	data, err := chain.Encode(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", Key(f.Seq), err)
	}
	return data, nil
}

// DecodeFile reads the bytes of a file. It accepts only the form that Encode makes: unknown fields, repeated
// fields and a wrong checksum are errors. For a later format the error wraps ErrNewer, for an earlier one ErrEarlier. DecodeFile does not
// judge the events.
func DecodeFile(data []byte) (File, error) {
	var f File
	err := json.Unmarshal(data, &f)
	if f.Format > Format {
		return File{}, fmt.Errorf("the file has format %d, and this gridcast reads formats up to %d: %w", f.Format, Format, ErrNewer)
	}
	if 0 < f.Format && f.Format < firstFormat {
		return File{}, fmt.Errorf("the file has format %d, and this gridcast reads formats from %d: %w", f.Format, firstFormat, ErrEarlier)
	}
	if err != nil {
		return File{}, fmt.Errorf("not a ledger file: %w", err)
	}
	canonical, _ := f.Encode() // a decoded file can be encoded
	if bytes.Equal(canonical, data) {
		return f, nil
	}
	if sum := f.Checksum; len(canonical) == len(data) && !bytes.Contains(canonical, []byte(sum)) {
		return File{}, fmt.Errorf("checksum %s does not fit the content", sum)
	}
	return File{}, errors.New("not in canonical form")
}
