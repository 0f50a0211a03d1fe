package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
)

type resultsCmds struct {
	List    resultsListCmd    `cmd:"" help:"List the results that wait to be verified, those that the source has otherwise by now, and the last that were verified."`
	Show    resultsShowCmd    `cmd:"" help:"Show a classification next to the pick and to the last verified revision."`
	Verify  resultsVerifyCmd  `cmd:"" help:"Vouch for the source's classification."`
	Enter   resultsEnterCmd   `cmd:"" help:"Enter the result of a race for which the source has none."`
	Correct resultsCorrectCmd `cmd:"" help:"Make another revision of a result, or of its sprint; without --file, --order and rulings it is the source's present one."`
}

type resultsListCmd struct {
	flags.Rounds `embed:""`
	Recent       int `help:"How many verified results to list." default:"5"`
}

// listedResult is a row of results list --json.
type listedResult struct {
	SessionKey int64      `json:"session_key"`
	Year       int        `json:"year"`
	Name       string     `json:"gp_name"`
	Start      time.Time  `json:"start"`
	State      string     `json:"state"`
	Winner     string     `json:"winner,omitzero"`
	Picked     string     `json:"picked,omitzero"`
	Revision   int        `json:"revision,omitzero"`
	VerifiedAt *time.Time `json:"verified_at,omitempty"`
	By         string     `json:"by,omitzero"`
}

// How a result stands.
const (
	noResult      = "no result in the source yet"
	waiting       = "waiting"
	verified      = "verified"
	sourceDiffers = "verified, the source differs"
	vouchedFor    = "vouched for by the archive"
)

func standingOf(r *almanac.Round) string {
	switch {
	case r.Vouched():
		return vouchedFor
	case r.Differs():
		return sourceDiffers
	case r.Record.Result() != nil:
		return verified
	case r.Source() == nil:
		return noResult
	default:
		return waiting
	}
}

func newListedResult(r *almanac.Round) listedResult {
	l := listedResult{SessionKey: r.Session, Year: r.Year, Name: r.Facts.Name, Start: r.Start.UTC(), State: standingOf(r)}
	rows := r.Valid()
	if rows == nil {
		rows = r.Source()
	}
	l.Winner = r.Code(almanac.Podium(rows)[0])
	if r.Pick != nil {
		l.Picked = r.Code(r.Pick.P1)
	}
	if last := r.Record.Result(); last != nil {
		l.Revision, l.VerifiedAt, l.By = last.Revision, &last.At, last.Actor
	}
	return l
}

func (c *resultsListCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	a, err := o.Almanac(ctx)
	if err != nil {
		return err
	}
	done := slices.DeleteFunc(a.Verified(), (*almanac.Round).Differs)
	rounds := slices.Concat(a.Waiting(), a.Differing(), done[:min(max(c.Recent, 0), len(done))])
	listed := make([]listedResult, len(rounds))
	rows := make([][]any, len(rounds))
	for i, r := range rounds {
		listed[i] = newListedResult(r)
		l := &listed[i]
		revision, at := "", ""
		if l.VerifiedAt != nil {
			revision, at = strconv.Itoa(l.Revision), terminal.Time(*l.VerifiedAt)
		}
		rows[i] = []any{l.SessionKey, l.Name, terminal.Time(l.Start), l.State, l.Winner, l.Picked, revision, at, l.By}
	}
	if s.JSON {
		s.PrintJSON(listed)
		return nil
	}
	if len(rows) == 0 {
		s.Printf("no result waits to be verified\n")
		return nil
	}
	s.PrintTable([]any{"session", "round", "start", "result", "won by", "picked", "revision", "verified", "by"}, rows)
	return nil
}

type resultsShowCmd struct {
	flags.Rounds `embed:""`
	Key          int64 `arg:"" help:"Session key of the round, from results list."`
}

// shownResult is the answer of results show --json. Source and Valid can be edited and given to
// results correct --file.
type shownResult struct {
	listedResult
	Pick    *shownPick             `json:"pick,omitempty"`
	Source  *ledger.Classification `json:"source,omitempty"` // the source's present classification
	Valid   *ledger.Classification `json:"valid,omitempty"`  // the one that counts
	History []shownRevision        `json:"history,omitempty"`
}

// shownPick is the frozen pick, drivers by code.
type shownPick struct {
	P1            string    `json:"p1"`
	P2            string    `json:"p2"`
	P3            string    `json:"p3"`
	ConfidencePct float64   `json:"confidence_pct"`
	Model         string    `json:"model"`
	FrozenAt      time.Time `json:"frozen_at"`
	LightsOut     time.Time `json:"lights_out"` // as valid when it was frozen
	GridKnown     bool      `json:"grid_known"`
}

type shownRevision struct {
	Revision int       `json:"revision"`
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	Reason   string    `json:"reason,omitzero"`
}

func (c *resultsShowCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	r, err := round(ctx, o, c.Key)
	if err != nil {
		return err
	}
	if s.JSON {
		s.PrintJSON(newShownResult(r))
		return nil
	}
	printResult(s, r)
	return nil
}

// round returns the present state of a round.
func round(ctx context.Context, o *operator.Operator, session int64) (*almanac.Round, error) {
	a, err := o.Almanac(ctx)
	if err != nil {
		return nil, err
	}
	return a.Round(session)
}

func newShownResult(r *almanac.Round) shownResult {
	shown := shownResult{listedResult: newListedResult(r), Valid: r.Result}
	if p := r.Pick; p != nil {
		shown.Pick = &shownPick{
			P1: r.Code(p.P1), P2: r.Code(p.P2), P3: r.Code(p.P3), ConfidencePct: math.Round(1000*p.WinProbability) / 10, Model: p.Model,
			FrozenAt: p.FrozenAt, LightsOut: p.Start, GridKnown: p.GridKnown,
		}
	}
	if source := r.Source(); source != nil {
		shown.Source = &ledger.Classification{Rows: source, Sprint: r.SourceSprint()}
	}
	for _, v := range r.Record.Revisions {
		shown.History = append(shown.History, shownRevision{v.Revision, v.At, v.Actor, v.Reason})
	}
	return shown
}

// printResult shows the source's classification next to pick and verified revision.
func printResult(s *terminal.Streams, r *almanac.Round) {
	printHeading(s, r)
	rows, other := r.Valid(), r.Source() // what counts, and beside it where the source differs
	if rows == nil {
		rows, other = other, nil
	}
	if rows == nil {
		s.Printf("\nThe source has no classification yet; results enter takes one by hand.\n")
		return
	}
	s.Printf("\n%s\n", classificationTable(r, rows, other))
	sprint, other := r.Sprint(), r.SourceSprint()
	if sprint == nil {
		sprint, other = other, nil
	}
	if sprint == nil {
		return
	}
	s.Printf("\nsprint\n%s\n", classificationTable(r, sprint, other))
}

// classificationTable shows the rows of a classification, and their differences from another one; nil: there is
// no other.
func classificationTable(r *almanac.Round, shown, other []ledger.Row) string {
	var table [][]any
	for _, row := range view.Compare(r, other, shown) {
		counts := ""
		if other != nil && row.Changed {
			counts = "differs: " + row.Before
		}
		table = append(table, []any{row.Place, row.Code, row.Name, row.Team, row.Points, row.Picked, counts})
	}
	return terminal.Table([]any{"place", "driver", "name", "team", "points", "picked", "source"}, table)
}

// printHeading says how a round and its result stand.
func printHeading(s *terminal.Streams, r *almanac.Round) {
	s.Printf("round     %d %s of %d, start %s\nresult    %s\n", r.Session, r.Facts.Name, r.Year, startCell(r), standingOf(r))
	for _, v := range r.Record.Revisions {
		s.Printf("revision  %d at %s by %s %s\n", v.Revision, terminal.Time(v.At), v.Actor, v.Reason)
	}
	if r.Pick == nil {
		s.Printf("pick      none\n")
		return
	}
	pick := view.PickOf(r)
	s.Printf("pick      %s, %s, frozen %s\n", strings.Join(pick.Places[:], " "), pick.Confidence, terminal.Time(pick.FrozenAt))
}

type resultsVerifyCmd struct {
	flags.Rounds         `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
	Key                  int64 `arg:"" help:"Session key of the round, from results list."`
}

func (c *resultsVerifyCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	r, err := round(ctx, o, c.Key)
	if err != nil {
		return err
	}
	if _, err := r.Verify(); err == nil && !s.JSON {
		printResult(s, r)
	}
	done, err := c.Apply(ctx, s, o, operator.VerifyResult{Key: c.Key}, operator.Request{Reason: c.Reason})
	if err != nil {
		return err
	}
	printVerified(s, done)
	return nil
}

func printVerified(s *terminal.Streams, done operator.Answer) {
	if s.JSON {
		s.PrintJSON(done.Events)
		return
	}
	s.Printf("\n%s A running scheduler publishes it, else gridcast build does.\n", done.Text)
}

// resultFlags says which classification is meant.
type resultFlags struct {
	flags.Rounds         `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
	Key                  int64  `arg:"" help:"Session key of the round, from results list."`
	File                 string `help:"The drivers in finishing order, a code a line as --template writes them, gaps such as +5.2s optional; or the whole classification as JSON, in the form of results show --json." placeholder:"FILE" type:"path" env:"-"`
	Order                string `help:"The drivers in finishing order, by code: VER,NOR,RUS. Who is not named has no place." placeholder:"CODES" env:"-"`
	Force                bool   `help:"Also when the race cannot be over yet." env:"-"`
	Template             bool   `help:"Only print what is known of the result, to be put in order and given as --file." env:"-"`
}

func (c *resultFlags) classification() (result operator.Classification, err error) {
	result.Order = codes(c.Order)
	if c.File == "" {
		return result, nil
	}
	file, err := os.ReadFile(c.File)
	if err != nil {
		return result, fmt.Errorf("read classification: %w", err)
	}
	if text := bytes.TrimSpace(file); len(text) > 0 && text[0] != '{' { // codes, as --template writes them
		result.Order = append(result.Order, codes(string(text))...)
		return result, nil
	}
	result.Document = file
	return result, nil
}

// codes reads drivers' codes with anything between them. What follows a # is a remark; gaps, such as
// +5.2s or +1 lap, may stand after a code and say nothing here.
func codes(text string) []string {
	var codes []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		line = gap.ReplaceAllString(line, " ")
		codes = append(codes, strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' })...)
	}
	return codes
}

// gap is how far behind a driver finished.
var gap = regexp.MustCompile(`(?i)\+\s*[0-9][0-9:.,]*\s*(s|sec|laps?)?\b`)

type resultsEnterCmd struct {
	resultFlags `embed:""`
}

func (c *resultsEnterCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Template {
		return c.template(ctx, s, false)
	}
	result, err := c.classification()
	if err != nil {
		return err
	}
	if c.File == "" && c.Order == "" {
		return terminal.Usagef("give the result: --order with the drivers' codes, or --file with the whole classification")
	}
	return c.enter(ctx, s, result, operator.EnterResult{Key: c.Key, Order: result.Order, Document: result.Document})
}

func (c *resultFlags) template(ctx context.Context, s *terminal.Streams, sprint bool) error {
	o, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	text, err := o.ResultTemplate(ctx, c.Key, sprint)
	if err != nil {
		return err
	}
	s.Printf("%s", text)
	return nil
}

// enter shows what the result changes and carries the action out.
func (c *resultFlags) enter(ctx context.Context, s *terminal.Streams, result operator.Classification, action operator.Action) error {
	o, err := c.Rounds.Operator(ctx, s)
	if err != nil {
		return err
	}
	r, err := round(ctx, o, c.Key)
	if err != nil {
		return err
	}
	rows, sprint, err := result.Rows(r)
	if err != nil {
		return err
	}
	if len(rows) > 0 && !s.JSON {
		printCorrection(s, r, rows, sprint)
	}
	done, err := c.Apply(ctx, s, o, action, operator.Request{Reason: c.Reason, Force: c.Force})
	if err != nil {
		return err
	}
	printVerified(s, done)
	return nil
}

type resultsCorrectCmd struct {
	resultFlags `embed:""`
	Sprint      bool                     `help:"The order or the rulings are of the weekend's sprint; the race stays as it is." env:"-"`
	Disqualify  []string                 `help:"A driver who loses their place, by code or id; repeat for more." placeholder:"DRIVER" env:"-"`
	TimePenalty map[string]time.Duration `help:"A penalty on a driver's time; repeat for more." placeholder:"DRIVER=5s" env:"-"`
}

func (c *resultsCorrectCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Template {
		return c.template(ctx, s, c.Sprint)
	}
	result, err := c.classification()
	if err != nil {
		return err
	}
	result.Sprint, result.Disqualify, result.TimePenalty = c.Sprint, c.Disqualify, c.TimePenalty
	return c.enter(ctx, s, result, operator.CorrectResult{Key: c.Key, Classification: result})
}

// printCorrection shows what a correction changes, for drivers and teams. Of the sprint, nil stays as it is.
func printCorrection(s *terminal.Streams, r *almanac.Round, rows, sprint []ledger.Row) {
	printHeading(s, r)
	before := r.Valid()
	if before == nil {
		before = r.Source()
		s.Printf("\nNothing is verified yet; this is next to the source's classification.\n")
	}
	changed := printDifference(s, r, "", before, rows)
	if before = r.Sprint(); before != nil && sprint != nil {
		changed = printDifference(s, r, "sprint\n", before, sprint) || changed
	}
	if !changed {
		s.Printf("\nThe classification stays as it is.\n")
	}
}

// printDifference shows below a title what one classification has otherwise than another, and says whether
// there is anything.
func printDifference(s *terminal.Streams, r *almanac.Round, title string, before, after []ledger.Row) (changed bool) {
	var drivers, teams [][]any
	for _, row := range view.Compare(r, before, after) {
		if row.Changed {
			drivers = append(drivers, []any{row.Code, row.Name, row.Before, row.After, row.Change})
		}
	}
	if len(drivers) == 0 {
		return false
	}
	s.Printf("\n%s%s\n", title, terminal.Table([]any{"driver", "name", "was", "is", "points"}, drivers))
	for _, t := range almanac.CompareTeams(before, after) {
		teams = append(teams, []any{r.Team(t.Team).Name, fmt.Sprintf("%+g", t.Points)})
	}
	if len(teams) == 0 {
		return true
	}
	s.Printf("\n%s\n", terminal.Table([]any{"team", "points"}, teams))
	return true
}
