package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/snapshots/blob"
)

type sourceCmds struct {
	Check  sourceCheckCmd                                         `cmd:"" help:"Show the state of each source, and the changes that wait for an operator."`
	Pull   sourcePullCmd                                          `cmd:"" help:"Poll the sources once, and apply the changes that pass the gates."`
	Trace  sourceTraceCmd                                         `cmd:"" help:"Show the source of each part of a round."`
	Accept actionCmd[loadedFacts, operator.AcceptChange, entered] `cmd:"" help:"Accept a change that waits for an operator."`
	Alias  manualAction[operator.MergeIdentities]                 `cmd:"" help:"Merge two identities of a driver, a team, a circuit or a Grand Prix that sources name differently."`
}

type sourceCheckCmd struct {
	flags.Builder
	flags.Sources
}

// checkedSource is a row of source check --json.
type checkedSource struct {
	ingest.PollState
	Licence   string    `json:"licence,omitzero"`
	NextStart time.Time `json:"next_start,omitzero"` // of the next race, in use
	SaysStart time.Time `json:"says_start,omitzero"` // of the same race, in the source
}

func (c *sourceCheckCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if _, err := c.OpenToRead(ctx); err != nil { // before Ingest makes a store that is missing
		return err
	}
	in, now, err := c.Builder.Ingest(ctx, c.Sources, s)
	if err != nil {
		return err
	}
	if err := in.Vouch(ctx); err != nil {
		return err
	}
	facts, err := in.Facts.Load(ctx)
	if err != nil {
		return err
	}
	var next *almanac.Round // by the facts in use; nil: none is known
	if coming := almanac.Join(facts.Archive.AsOf(now), in.Ledger.Current(now)).Coming(); len(coming) > 0 {
		next = coming[0]
	}
	var checked []checkedSource
	for _, source := range in.Sources {
		row, err := checkSource(ctx, in, source, next)
		if err != nil {
			return err
		}
		checked = append(checked, row)
	}
	if !s.PrintedJSON(checked) {
		printChecked(s, checked, next, now)
	}
	return nil
}

// checkSource returns the state of a source, and the start that it says of the next race.
func checkSource(ctx context.Context, in *ingest.Ingest, source ingest.Source, next *almanac.Round) (checkedSource, error) {
	state, err := ingest.LoadPollState(ctx, in.Store, source.Name())
	row := checkedSource{PollState: state, Licence: source.Licence().Name}
	if err != nil || next == nil {
		return row, err
	}
	document, _, err := in.LastDocument(ctx, source)
	if err != nil {
		return row, err
	}
	row.NextStart = next.Start
	if r, ok := document.Facts.Round(next.Year, next.Facts.GrandPrix); ok {
		row.SaysStart = r.StartsAt()
	}
	return row, nil
}

// printChecked prints the sources as a table, then the changes that need an operator.
func printChecked(s *terminal.Streams, checked []checkedSource, next *almanac.Round, now time.Time) {
	header := []any{"source", "licence", "answered", "revision", "next start", "wait", "state"}
	s.PrintTable(header, view.Each(checked, func(source checkedSource) []any {
		state := cmp.Or(source.Problem(), "good")
		if source.Polled.IsZero() {
			state = "never polled; gridcast source pull"
		}
		return []any{
			source.Source, source.Licence, terminal.Ago(now, source.Answered), source.Revision[:min(12, len(source.Revision))], source.startCell(), len(source.Held), state,
		}
	}))
	if next != nil {
		s.Printf("\nThe next race, the %s, starts at %s.\n", next.Facts.Name, next.Start.UTC().Format(startLayout))
	}
	for _, source := range checked {
		printChanges(s, "These changes wait for an operator (gridcast source accept ID --reason …):", source.Held)
		printChanges(s, "The sources disagree on these; such a result is not verified automatically:", source.Disputed)
		printChanges(s, "Only this source has these, and its terms forbid their use (--accept-terms NAME accepts the terms):", source.Unlicensed)
		for _, note := range source.Notes {
			s.Printf("  %s: %s\n", source.Source, note)
		}
		for _, line := range slices.Concat(source.Standings, source.Lost) {
			s.Printf("  %s\n", line)
		}
	}
}

const startLayout = "2006-01-02 15:04 UTC"

// maxApart is the distance between a source's start and the one in use above which the table shows it.
// Sources round to minutes, and the formation lap takes some.
const maxApart = 5 * time.Minute

// startCell is the source's start of the next race, and its distance from the start in use.
func (c *checkedSource) startCell() string {
	if c.SaysStart.IsZero() {
		return ""
	}
	text := c.SaysStart.UTC().Format(startLayout)
	switch apart := c.SaysStart.Sub(c.NextStart); {
	case apart > maxApart:
		text += fmt.Sprintf(", %s late", apart)
	case apart < -maxApart:
		text += fmt.Sprintf(", %s early", -apart)
	}
	return text
}

// printChanges lists changes with their differences and the reasons to hold them.
func printChanges(s *terminal.Streams, title string, changes []assemble.Proposal) {
	if len(changes) == 0 {
		return
	}
	s.Printf("\n%s\n", title)
	for _, c := range changes {
		s.Printf("\n%s  %s, %s, by %s %.12s\n", c.ID, c.Round(), c.Block, c.Source, c.Revision)
		for _, r := range c.Refused {
			s.Printf("  %s: %s\n", r.Gate, r.Reason)
		}
		s.PrintTable([]any{"", "was", "is"}, view.Each(c.Lines, func(line assemble.Line) []any {
			return []any{line.About, line.Was, line.Is}
		}))
	}
}

// sourcePullCmd polls every source once, for a timer where no scheduler runs. build --all publishes.
type sourcePullCmd struct {
	flags.Builder
	flags.Sources
}

// pulled is the answer of source pull --json.
type pulled struct {
	Asked   []string            `json:"asked"`
	Faults  map[string]string   `json:"faults,omitzero"`
	Taken   []assemble.Proposal `json:"taken"`
	Waiting []assemble.Proposal `json:"waiting"`
	Archive string              `json:"archive"`
	Changed bool                `json:"changed"`
}

func (c *sourcePullCmd) Run(ctx context.Context, s *terminal.Streams) error {
	in, now, err := c.Builder.Ingest(ctx, c.Sources, s)
	if err != nil {
		return err
	}
	if len(in.Sources) == 0 {
		return terminal.Usagef("no source is named: give --source NAME[=URL]")
	}
	report, err := in.Poll(ctx, now, true)
	if err != nil {
		return err
	}
	none := []assemble.Proposal{} // an array also if it is empty
	out := pulled{Asked: report.Polled, Taken: append(none, report.Applied...), Waiting: append(none, report.Held...), Archive: report.Archive, Changed: report.Changed}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(report.Faults)) {
		if out.Faults == nil {
			out.Faults = make(map[string]string)
		}
		out.Faults[name] = report.Faults[name].Error()
		faults = append(faults, fmt.Errorf("%s: %w", name, report.Faults[name]))
	}
	if s.PrintedJSON(out) {
		return errors.Join(faults...)
	}
	for _, change := range report.Applied {
		s.Printf("taken  %s, %s, by %s %.12s\n", change.Round(), change.Block, change.Source, change.Revision)
	}
	for _, event := range report.Events {
		s.Printf("%s  %d  %s\n", event.Type, event.Session, event)
	}
	printChanges(s, "These changes wait for an operator (gridcast source accept ID --reason …):", report.Held)
	if !report.Changed && len(faults) == 0 {
		s.Printf("Nothing new.\n")
	}
	return errors.Join(faults...)
}

type sourceTraceCmd struct {
	flags.Storage
	Key int64 `arg:"" help:"The session key of a round."`
}

// tracedBlock is a row of source trace --json.
type tracedBlock struct {
	Block assemble.Block `json:"block"`
	ingest.Origin
	By     string `json:"by,omitzero"` // the operator who entered or released it
	Reason string `json:"reason,omitzero"`
}

func (c *sourceTraceCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if err != nil {
		return err
	}
	session, ok := l.Fold().Record(c.Key)
	if !ok {
		return fmt.Errorf("trace %d: the ledger has no such session key; gridcast rounds list shows them", c.Key)
	}
	log, err := ingest.LoadFactsLog(ctx, store)
	if err != nil {
		return err
	}
	hand, err := ingest.LoadManual(ctx, store)
	if err != nil {
		return err
	}
	var traced []tracedBlock
	var rows [][]any
	for _, block := range assemble.Blocks() {
		origin, ok := log.Origin(session.Year, session.GrandPrix, block)
		if !ok {
			rows = append(rows, []any{block, "the imported archive", "", "", ""})
			continue
		}
		row, from, by := tracedBlock{Block: block, Origin: origin}, origin.Source, "the gates"
		if origin.Accepted {
			by = "a person"
		}
		if entry := hand.EntryOf(origin); entry != nil {
			row.By, row.Reason = entry.Actor, entry.Reason
			from, by = "entered by hand", strings.TrimSuffix(operator.Who(entry.Actor)+": "+entry.Reason, ": ")
			if origin.Released {
				from = "the earlier value, after a release"
			}
		}
		traced = append(traced, row)
		rows = append(rows, []any{block, from, origin.Revision, origin.At.UTC().Format(time.DateTime), by})
	}
	if s.PrintedJSON(traced) {
		return nil
	}
	s.PrintTable([]any{"part", "source", "revision", "since", "let through by"}, rows)
	aliases := hand.Named()
	renamed := l.Fold().Aliases()
	for _, from := range slices.Sorted(maps.Keys(renamed)) {
		aliases = append(aliases, assemble.Alias{Kind: assemble.DriverAlias, From: string(from), To: string(renamed[from])})
	}
	for _, alias := range aliases {
		s.Printf("%s %s is %s\n", alias.Kind, alias.From, alias.To)
	}
	return nil
}

// loadedFacts opens the store with the last documents of the sources.
type loadedFacts struct{ flags.Manual }

// Operator opens the store for actions on pending changes.
func (f loadedFacts) Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Manual.Operator(ctx, s)
	if err != nil {
		return nil, err
	}
	return o, o.Ingest.Load(ctx)
}
