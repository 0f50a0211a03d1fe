package render

import (
	"math"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/schemas/wire"
)

// verifiedRows returns a verified result with the details that were verified. The source adds details that were
// unknown then, unless it differs: its details belong to another classification.
func verifiedRows(r *almanac.Round) (race, sprint []ledger.Row) {
	race, sprint = r.Result.Rows, r.Sprint()
	differs := r.Differs()
	if !differs {
		race = r.WithDetails(race, r.Facts.Results)
	}
	if !differs || r.Result.Sprint == nil {
		sprint = r.WithDetails(sprint, r.Facts.SprintResults)
	}
	return race, sprint
}

func resultRecord(y *almanac.Year, r *almanac.Round) wire.ResultRecord {
	race, sprint := verifiedRows(r)
	rec := wire.ResultRecord{
		SessionKey: r.Session, GPName: r.Facts.Name, Revisions: revisions(r),
		Race: classification(y, r, race),
	}
	if sprint != nil {
		rec.Sprint = classification(y, r, sprint)
	}
	return rec
}

// revisions lists the verifications of a round's result, oldest first.
func revisions(r *almanac.Round) []wire.Revision {
	list := make([]wire.Revision, 0, len(r.Record.Revisions))
	for _, v := range r.Record.Revisions {
		list = append(list, wire.Revision{Revision: v.Revision, At: wire.Instant(v.At), By: role(v.Actor), Reason: v.Reason})
	}
	return list
}

var outcomes = map[season.Outcome]wire.ResultStatus{
	"": wire.NotClassified, season.NotClassified: wire.NotClassified, // a correction gives no reason
	season.DidNotFinish: wire.DidNotFinish, season.DidNotStart: wire.DidNotStart, season.Disqualified: wire.Disqualified,
	season.DidNotQualify: wire.DidNotQualify, season.DidNotPreQualify: wire.DidNotPreQualify,
	season.DidNotPractise: wire.DidNotPractise, season.ExcludedBeforeStart: wire.Excluded,
}

func statusOf(row *ledger.Row) wire.ResultStatus {
	if row.Position > 0 {
		return wire.Classified
	}
	return outcomes[row.Status]
}

// classification lists verified rows by position. Rows without a position come last.
func classification(y *almanac.Year, r *almanac.Round, verified []ledger.Row) []wire.ResultRow {
	verified = slices.SortedStableFunc(slices.Values(verified), func(a, b ledger.Row) int { return season.ComparePlaces(a.Position, b.Position) })
	rows := make([]wire.ResultRow, len(verified))
	for i, v := range verified {
		rows[i] = wire.ResultRow{
			Position: v.Position, Driver: y.Codes()[v.Driver], DriverID: r.Lasting(v.Driver), Name: r.Driver(v.Driver).Name,
			Team: r.Team(v.Team).Name, TeamID: string(v.Team),
			TeamColour: r.Colour(v.Team), Number: v.Number, Status: statusOf(&v), Grid: v.Grid, Laps: v.Laps,
			TimeMS: v.TimeMS, GapMS: v.GapMS, GapLaps: v.GapLaps, Points: v.Points, Reason: v.Reason, Shared: v.Shared,
		}
	}
	return rows
}

// role names the kind of actor, because names of people are not published.
func role(actor string) string {
	kind, _, _ := strings.Cut(actor, ":")
	switch kind {
	case "source", ledger.RuleActor, ledger.ArchiveActor, "builder":
		return kind
	}
	return "operator"
}

// weekend describes place and time of a round. It leaves out a cancelled session, and one whose planned start is not before
// the race's: the race has been moved, and the source has no new times for the rest yet.
func weekend(r *almanac.Round) wire.Weekend {
	w := wire.Weekend{
		SessionKey: r.Session, Round: r.Facts.Number, GPName: r.Facts.Name, GPID: string(r.Facts.GrandPrix),
		Circuit: wire.Circuit{
			ID: string(r.Circuit.ID), Name: r.Circuit.Name, Locality: r.Circuit.Locality, Country: r.Circuit.Country,
			TimeZone: season.TimeZone(r.Circuit.ID),
		},
		Sprint: r.Facts.HasSprint(), Status: Status(r.State), Sessions: []wire.WeekendSession{},
	}
	for _, c := range r.Record.Override.Changes {
		if c.Type == ledger.RoundReleased && c.Was.Equal(c.Start) {
			continue // the sources have the same start
		}
		if w.Reason = c.Reason; !c.Was.IsZero() {
			w.Was = wire.Instant(c.Was)
		}
	}
	if time.Time(w.Was).Equal(r.Start) {
		w.Was = wire.Instant{}
	}
	w.Sessions = append(w.Sessions, earlier(r, false)...)
	race := wire.WeekendSession{Session: "race", Date: r.Start.UTC().Format(time.DateOnly), Status: Status(r.State)}
	if !r.Provisional {
		race.DateStart = wire.Instant(r.Start)
	} else if r.Facts.AssumedHour != 0 {
		race.ProvisionalStart = wire.Instant(r.Start)
	}
	w.Sessions = append(w.Sessions, race)
	return w
}

// earlier returns the sessions before the race that are held, or those that are cancelled.
func earlier(r *almanac.Round, cancelled bool) (list []wire.WeekendSession) {
	for _, s := range r.Facts.Sessions {
		if start := max(s.Start.Unix(), s.Date.Unix()); start >= r.Start.Unix() || r.Facts.Cancelled(s.Kind) != cancelled {
			continue
		}
		session := wire.WeekendSession{
			Session: sessionName(s.Kind), Date: s.Date.Format(time.DateOnly),
			DateStart: wire.Instant(s.Start), Status: sessionStatus(r, s.Kind),
		}
		if !s.Start.IsZero() {
			session.Date = s.Start.UTC().Format(time.DateOnly)
		}
		if cancelled {
			session.Status = wire.Cancelled
		}
		list = append(list, session)
	}
	return list
}

// sessionStatus returns the status of a session before the race: finished once its outcome is known or the race
// is under way, otherwise the weekend's.
func sessionStatus(r *almanac.Round, kind season.SessionKind) wire.Status {
	if r.Facts.TookPlace(kind) {
		return wire.Finished
	}
	switch r.State {
	case almanac.Live, almanac.AwaitingResult, almanac.Finished:
		return wire.Finished
	}
	return Status(r.State)
}

func changes(a *almanac.Almanac, year int) []wire.Change {
	list := a.Changes(year)
	records := make([]wire.Change, 0, len(list))
	for _, c := range list {
		y, _ := a.Year(c.Round.Year)
		rec := wire.Change{
			SessionKey: c.Round.Session, GPName: c.Round.Facts.Name, Kind: changeKinds[c.Type], At: wire.Instant(c.At), By: role(c.Actor),
			Reason: c.Reason,
		}
		switch c.Type {
		case ledger.ResultVerified:
			rec.Old, rec.New = &wire.ChangeState{Revision: c.Old.Revision}, &wire.ChangeState{Revision: c.New.Revision}
			rec.Old.Race, rec.New.Race = changedRows(y, c.Round, c.Old.Rows, c.New.Rows)
			if c.Old.Sprint != nil && c.New.Sprint != nil { // otherwise it followed the source until then
				rec.Old.Sprint, rec.New.Sprint = changedRows(y, c.Round, c.Old.Sprint, c.New.Sprint)
			}
		case ledger.PickVoided:
			rec.Old = &wire.ChangeState{Prediction: prediction(y, c.Pick)}
		case ledger.DriverWithdrawn, ledger.DriverReturned:
			rec.Driver, rec.DriverID = y.Codes()[c.Driver], c.Round.Lasting(c.Driver)
		case ledger.ChampionshipDecided:
			rec.Championship = changedChampionship(c.Championship, c.Restored)
			rec.Championship.Name, rec.Championship.ID = c.Competitor()
		case ledger.KeysAssigned:
			rec.New = &wire.ChangeState{Status: wire.Scheduled, DateStart: wire.Instant(c.NewStart)}
		case ledger.RoundMoved:
			rec.Old, rec.New = &wire.ChangeState{DateStart: wire.Instant(c.OldStart)}, &wire.ChangeState{DateStart: wire.Instant(c.NewStart)}
		default:
			rec.Old = &wire.ChangeState{Status: Status(c.OldState), DateStart: wire.Instant(c.OldStart)}
			rec.New = &wire.ChangeState{Status: Status(c.NewState), DateStart: wire.Instant(c.NewStart)}
		}
		records = append(records, rec)
	}
	return records
}

// changedChampionship returns the decision of a change without the name of its competitor.
func changedChampionship(c *ledger.Championship, restored bool) *wire.ChangedChampionship {
	return &wire.ChangedChampionship{
		Type: almanac.ChampionshipName(c.Constructors), ID: c.Competitor, Engine: string(c.Engine),
		Decision: ruling(c), Points: math.Abs(c.Points), Restored: restored,
	}
}

// changedRows returns the rows that differ between two classifications, from each side.
func changedRows(y *almanac.Year, r *almanac.Round, before, after []ledger.Row) (old, revised []wire.ChangedRow) {
	row := func(l *ledger.Row) wire.ChangedRow {
		return wire.ChangedRow{
			Position: l.Position, Driver: y.Codes()[l.Driver], DriverID: r.Lasting(l.Driver), Team: r.Team(l.Team).Name, TeamID: string(l.Team), Points: l.Points,
		}
	}
	for _, p := range almanac.Compare(before, after) {
		if p.Changed() && p.Before != nil {
			old = append(old, row(p.Before))
		}
		if p.Changed() && p.After != nil {
			revised = append(revised, row(p.After))
		}
	}
	return old, revised
}
