package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
)

type resultsCmds struct {
	List    resultsListCmd    `cmd:"" help:"List the results to verify, the verified ones from which the source now differs, and the last verified ones."`
	Show    resultsShowCmd    `cmd:"" help:"Show a classification next to the pick and to the last verified revision."`
	Verify  resultsVerifyCmd  `cmd:"" help:"Verify the source's classification."`
	Enter   resultsEnterCmd   `cmd:"" help:"Enter the result of a race if the source has none."`
	Correct resultsCorrectCmd `cmd:"" help:"Revise a result or its sprint; without --file, --order and rulings to the source's present classification."`
}

type resultsListCmd struct {
	flags.Rounds
	Recent int  `help:"How many verified results to list." default:"5"`
	All    bool `help:"List every result that waits or is missing; default: the last five of each." env:"-"`
}

// listedResult is a row of results list --json.
type listedResult struct {
	SessionKey int64     `json:"session_key"`
	Year       int       `json:"year"`
	Name       string    `json:"gp_name"`
	Start      time.Time `json:"start"`
	State      string    `json:"state"`
	Winner     string    `json:"winner,omitzero"`
	Picked     string    `json:"picked,omitzero"`
	Revision   int       `json:"revision,omitzero"`
	VerifiedAt time.Time `json:"verified_at,omitzero"`
	By         string    `json:"by,omitzero"`
}

func standingOf(r *almanac.Round) string {
	switch {
	case r.Vouched():
		return "vouched for by the archive"
	case r.Differs():
		return "verified, the source differs"
	case r.Record.Result() != nil:
		return "verified"
	case r.Source() == nil:
		return "no result in the source yet"
	default:
		return "waiting"
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
		l.Revision, l.VerifiedAt, l.By = last.Revision, last.At, last.Actor
	}
	return l
}

func (c *resultsListCmd) Run(s *terminal.Streams, a *almanac.Almanac) error { //nolint:unparam // kong wants an error
	done := slices.DeleteFunc(a.Verified(), (*almanac.Round).Differs)
	unentered, waiting := view.Waiting(a)
	if !c.All && !s.JSON {
		var earlier []*almanac.Round
		if earlier, waiting = view.Recent(waiting); len(earlier) > 0 {
			s.Printf("Waiting, too: %s (--all lists them, gridcast results verify --all verifies them)\n", view.Results(earlier))
		}
		if earlier, unentered = view.Recent(unentered); len(earlier) > 0 {
			s.Printf("Missing, too: %s (--all lists them)\n", view.Results(earlier))
		}
	}
	rounds := slices.Concat(unentered, waiting, a.Differing(), done[:min(max(c.Recent, 0), len(done))])
	listed := view.Each(rounds, newListedResult)
	header := []any{"session", "round", "start", "result", "won by", "picked", "revision", "verified", "by"}
	terminal.PrintRows(s, listed, "no result waits to be verified", header, func(l listedResult) []any {
		return []any{
			l.SessionKey, l.Name, terminal.Time(l.Start), l.State, l.Winner, l.Picked, terminal.Number(l.Revision), terminal.Time(l.VerifiedAt), operator.Who(l.By),
		}
	})
	return nil
}

type resultsShowCmd struct {
	flags.Rounds
	Key int64 `arg:"" help:"Session key of the round, from results list."`
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

func (c *resultsShowCmd) Run(s *terminal.Streams, a *almanac.Almanac) error {
	r, err := a.Round(c.Key)
	if err != nil {
		return err
	}
	if !s.PrintedJSON(newShownResult(r)) {
		printResult(s, r)
	}
	return nil
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
	if !printClassification(s, r, "", r.Valid(), r.Source()) {
		s.Printf("\nThe source has no classification yet; results enter takes one by hand.\n")
		return
	}
	printClassification(s, r, "sprint\n", r.Sprint(), r.SourceSprint())
}

// printClassification prints the valid rows below a title, and beside them their differences from those of the source.
// Without valid rows it prints those of the source; false: there are none either.
func printClassification(s *terminal.Streams, r *almanac.Round, title string, valid, source []ledger.Row) bool {
	if valid == nil {
		valid, source = source, nil
	}
	if valid == nil {
		return false
	}
	s.Printf("\n%s", terminal.Lines(title))
	header := []any{"place", "driver", "name", "team", "points", "picked", "source"}
	s.PrintTable(header, view.Each(view.Compare(r, source, valid), func(row view.Result) []any {
		counts := ""
		if source != nil && row.Changed {
			counts = "differs: " + row.Before
		}
		return []any{row.Place, row.Code, row.Name, row.Team, row.Points, row.Picked, counts}
	}))
	return true
}

func printHeading(s *terminal.Streams, r *almanac.Round) {
	s.Printf("round     %d %s of %d, start %s\nresult    %s\n", r.Session, r.Facts.Name, r.Year, startCell(r), standingOf(r))
	for _, v := range r.Record.Revisions {
		s.Printf("revision  %d at %s by %s %s\n", v.Revision, terminal.Time(v.At), operator.Who(v.Actor), v.Reason)
	}
	if r.Pick == nil {
		s.Printf("pick      none\n")
		return
	}
	pick := view.PickOf(r)
	s.Printf("pick      %s, %s, frozen %s\n", strings.Join(pick.Places[:], " "), pick.Confidence, terminal.Time(pick.FrozenAt))
}

type resultsVerifyCmd struct {
	flags.Rounds
	flags.Action
	operator.VerifyResult
	operator.VerifyResults
	All bool `help:"Verify every result that waits." env:"-"`
}

func (c *resultsVerifyCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.All == (c.Key != 0) || !c.All && c.Year != 0 {
		return terminal.Usagef("give the session key of a round, or --all for every result that waits")
	}
	o, err := c.Rounds.Operator(ctx, s)
	if err != nil {
		return err
	}
	if c.All {
		return c.ApplyAndPrint(ctx, s, o, c.VerifyResults, operator.Request{}, printVerified)
	}
	r, err := o.Round(ctx, c.Key)
	if err != nil {
		return err
	}
	if _, err := r.Verify(); err == nil && !s.JSON {
		printResult(s, r)
	}
	return c.ApplyAndPrint(ctx, s, o, c.VerifyResult, operator.Request{}, printVerified)
}

func printVerified(s *terminal.Streams, answer operator.Answer) {
	s.Print(answer.Events, "\n%s A running scheduler publishes it, else gridcast build does.\n", answer.Text)
}

type resultFlags struct {
	flags.Rounds
	flags.Action
	File     string `help:"The drivers in finishing order, a code a line as --template writes them, gaps such as +5.2s optional; or the whole classification as JSON, in the form of results show --json." placeholder:"FILE" type:"path" env:"-"`
	Force    bool   `help:"Enter it although the race cannot be over yet, or under half of the drivers have a place." env:"-"`
	Template bool   `help:"Only print the known result, as a file to put in order for --file." env:"-"`
}

// readFile appends the codes of the file to the order, or sets the document to a classification as JSON. It refuses an
// empty file, because a correction without order and document takes the source's classification.
func (c *resultFlags) readFile(order *operator.Codes, document *[]byte) error {
	if c.File == "" {
		return nil
	}
	file, err := readFile(c.File)
	if err != nil {
		return err
	}
	switch text := bytes.TrimSpace(file); {
	case len(text) == 0:
		return fmt.Errorf("%s is empty: it must hold the drivers' codes, or a classification as JSON", c.File)
	case text[0] == '{':
		*document = file
		return nil
	}
	var codes operator.Codes
	if err := codes.UnmarshalText(file); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	*order = append(*order, codes...)
	return nil
}

// template prints the known result of a round, for an operator to put in order.
func (c *resultFlags) template(ctx context.Context, s *terminal.Streams, key int64, sprint bool) error {
	o, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	text, err := o.ResultTemplate(ctx, key, sprint)
	s.Printf("%s", terminal.Lines(text)) // empty after an error
	return err
}

type enteredResult interface {
	operator.Action
	Rows(r *almanac.Round) (rows, sprint []ledger.Row, err error)
}

func (c *resultFlags) enter(ctx context.Context, s *terminal.Streams, key int64, action enteredResult) error {
	o, err := c.Rounds.Operator(ctx, s)
	if err != nil {
		return err
	}
	r, err := o.Round(ctx, key)
	if err != nil {
		return err
	}
	rows, sprint, err := action.Rows(r)
	if err != nil {
		return err
	}
	if len(rows) > 0 && !s.JSON {
		printCorrection(s, r, rows, sprint)
	}
	return c.ApplyAndPrint(ctx, s, o, action, operator.Request{Force: c.Force}, printVerified)
}

type resultsEnterCmd struct {
	resultFlags
	operator.EnterResult
}

func (c *resultsEnterCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Template {
		return c.template(ctx, s, c.Key, false)
	}
	if c.File == "" && len(c.Order) == 0 {
		return terminal.Usagef("give the result: --order with the drivers' codes, or --file with the whole classification")
	}
	if err := c.readFile(&c.Order, &c.Document); err != nil {
		return err
	}
	return c.enter(ctx, s, c.Key, c.EnterResult)
}

type resultsCorrectCmd struct {
	resultFlags
	operator.CorrectResult
}

func (c *resultsCorrectCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Template {
		return c.template(ctx, s, c.Key, c.Sprint)
	}
	if err := c.readFile(&c.Order, &c.Document); err != nil {
		return err
	}
	return c.enter(ctx, s, c.Key, c.CorrectResult)
}

// printCorrection prints the changes for drivers and teams. A nil sprint means that the sprint stays.
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

// printDifference prints the differences of two classifications below a title, and reports whether there
// are any.
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
	s.Printf("\n%s", terminal.Lines(title))
	s.PrintTable([]any{"driver", "name", "was", "is", "points"}, drivers)
	for _, t := range almanac.CompareTeams(before, after) {
		teams = append(teams, []any{r.Team(t.Team).Name, fmt.Sprintf("%+g", t.Points)})
	}
	if len(teams) > 0 {
		s.Printf("\n")
		s.PrintTable([]any{"team", "points"}, teams)
	}
	return true
}
