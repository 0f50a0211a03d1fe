package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/picks"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
	"gridcast/snapshots"
)

// EnterDrivers enters the drivers of a round, its qualifying or its grid, as codes in the form of
// stewards.Roster.Read. The entry wins over the sources until a person releases it.
type EnterDrivers struct {
	reasoned

	Key   int64          `arg:"" form:"session" help:"Session key of the round, from rounds list."`
	Block assemble.Block `kong:"-"` // Entries, Qualifying or Grid
	Text  string         `name:"order" form:"order" help:"The same on the command line: VER,NOR,RUS." placeholder:"CODES" env:"-"`
}

// ErrNoBlock means that a block of a round cannot be entered as an order of drivers.
var ErrNoBlock = errors.New("only entries, qualifying and grid can be entered as an order of drivers")

// ReleaseFacts drops facts of a round that people entered: the sources are believed again.
type ReleaseFacts struct {
	published

	Key   int64          `arg:"" form:"session" help:"Session key of the round, from facts list."`
	Block assemble.Block `arg:"" optional:"" help:"The part to release: ${enum}. Default: every part entered by hand." enum:",calendar,start,sessions,entries,qualifying,grid" default:""`
}

// BlockWords names the blocks of a round for people.
var BlockWords = map[assemble.Block]string{
	assemble.Calendar: "place in the calendar", assemble.Start: "start", assemble.Sessions: "other sessions",
	assemble.Entries: "entries", assemble.Qualifying: "qualifying", assemble.Grid: "grid",
}

// Roster returns the drivers who may take part in a round, including entries made by people.
func (o *Operator) Roster(ctx context.Context, session int64) (*stewards.Roster, *almanac.Round, error) {
	v, r, err := o.roundNow(ctx, session)
	if err != nil {
		return nil, nil, err
	}
	var entries []season.Entry
	if o.Ingest != nil {
		hand, err := o.Ingest.Manual(ctx)
		if err != nil {
			return nil, nil, err
		}
		if entered, ok := hand.Find(assemble.BlockID{Year: r.Year, GrandPrix: r.Facts.GrandPrix, Block: assemble.Entries}); ok {
			entries = entered.Entered.Entries
		}
	}
	return stewards.NewRoster(v, r.Year, r.Facts.GrandPrix, entries), r, nil
}

// Template returns the known drivers of a block, in the form in which EnterDrivers reads them.
func (o *Operator) Template(ctx context.Context, session int64, block assemble.Block) (string, error) {
	roster, r, err := o.Roster(ctx, session)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	switch block {
	case assemble.Entries:
		fmt.Fprintf(&b, "# Entries of the %s: a driver a line. Take out who does not race; another car: LAW = red-bull, 30\n"+
			"# A driver who was never there: LIN = Arvid Lindblad, GBR, racing-bulls, 41\n", label(r))
	case assemble.Qualifying:
		fmt.Fprintf(&b, "# Qualifying of the %s: put the drivers in order; those without a place come after a line with a dash.\n", label(r))
	default:
		fmt.Fprintf(&b, "# Grid of the %s: put the drivers in order; those who start from the pit lane come after a line with a dash.\n", label(r))
	}
	for _, s := range KnownOrder(roster, r, block) {
		fmt.Fprintf(&b, "%s  # %s, %s, %d\n", s.Code, s.Name, roster.Team(s.Team), s.Number)
	}
	return b.String(), nil
}

// KnownOrder returns the drivers of a block as far as they are known: the grid in order, then the others of
// qualifying, then the other entries.
func KnownOrder(roster *stewards.Roster, r *almanac.Round, block assemble.Block) []stewards.Starter {
	var drivers []season.DriverID
	if block == assemble.Grid {
		for _, slot := range r.Facts.Grid {
			drivers = append(drivers, slot.Driver)
		}
	}
	if block != assemble.Entries {
		for _, row := range r.Facts.Qualifying {
			drivers = append(drivers, row.Driver)
		}
	}
	for _, s := range roster.Known {
		if s.Entered {
			drivers = append(drivers, s.Driver)
		}
	}
	var order []stewards.Starter
	for i, driver := range drivers {
		at := slices.IndexFunc(roster.Known, func(s stewards.Starter) bool { return s.Driver == driver })
		if at >= 0 && !slices.Contains(drivers[:i], driver) {
			order = append(order, roster.Known[at])
		}
	}
	return order
}

// ResultTemplate returns the known result of a round, or of its sprint, in the form in which results are
// entered: the placed drivers in finishing order, with known gaps. Without entries it lists the drivers of the last round.
func (o *Operator) ResultTemplate(ctx context.Context, session int64, sprint bool) (string, error) {
	r, err := o.Round(ctx, session)
	if err != nil {
		return "", err
	}
	of := stewards.Session{Round: r, Sprint: sprint}
	rows := of.Counts()
	known := rows != nil
	if !known {
		rows = of.TookPart()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: put the drivers in finishing order, take out those without a place. Gaps are optional.\n", label(r))
	for _, row := range r.WithDetails(rows, of.Results()) {
		line := fmt.Sprintf("%s  # %s, %s", r.Code(row.Driver)+stewards.Gap(row), r.Driver(row.Driver).Name, r.Team(row.Team).Name)
		if known && row.Position == 0 {
			line = "# without a place: " + line
		}
		b.WriteString(line + "\n")
	}
	if len(rows) > 0 {
		return b.String(), nil
	}
	roster, _, err := o.Roster(ctx, session)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "# No entries are known, so these are the drivers of the last round: enter the entries first, gridcast entries set %d --template\n", session)
	for _, s := range roster.Known {
		if s.Entered {
			fmt.Fprintf(&b, "%s  # %s, %s\n", s.Code, s.Name, roster.Team(s.Team))
		}
	}
	return b.String(), nil
}

func (d EnterDrivers) look(ctx context.Context, o *Operator) (*Plan, error) {
	if o.Ingest == nil {
		return nil, errNoFacts
	}
	action, ok := map[assemble.Block]auditlog.Verb{
		assemble.Entries: auditlog.SetEntries, assemble.Qualifying: auditlog.SetQualifying, assemble.Grid: auditlog.SetGrid,
	}[d.Block]
	if !ok {
		return nil, fmt.Errorf("%q: %w", d.Block, ErrNoBlock)
	}
	roster, r, err := o.Roster(ctx, d.Key)
	if err != nil {
		return nil, err
	}
	word, name, entries := BlockWords[d.Block], label(r), d.Block == assemble.Entries
	refuse := func(format string, args ...any) (*Plan, error) {
		return nil, fmt.Errorf("%s of the %s: %w", word, name, fmt.Errorf(format, args...))
	}
	if r.Result != nil {
		return refuse("its result is verified, and nothing follows from it any more; a wrong result is corrected (gridcast results correct %d)", d.Key)
	}
	list, err := roster.Read(d.Text)
	if err != nil {
		return refuse("%w", err)
	}
	if len(list.Times) > 0 && d.Block != assemble.Qualifying {
		return refuse("only qualifying has times; write the drivers' codes alone")
	}
	if s, ok := list.Unnumbered(); ok && entries {
		return refuse("%s has no car number: write %s = %s, NUMBER", s.Code, s.Code, s.Team)
	}
	if strangers := roster.Strangers(list); len(strangers) > 0 && !entries {
		return refuse("not entered in this round: %s; enter who takes part first (gridcast entries set %d)", strings.Join(strangers, ", "), r.Session)
	}
	entry := ingest.DriversEntry(r, d.Block, roster, list)
	p, err := o.previewFacts(ctx, r, entry)
	if err != nil {
		return nil, err
	}
	p.Title = fmt.Sprintf("Enter the %s of the %s", word, name)
	p.Question = fmt.Sprintf("Is this the %s of the %s?", word, r.Facts.Name)
	text := fmt.Sprintf("The %s of the %s is what you entered, until it is released.", word, name)
	if entries {
		p.Question = fmt.Sprintf("Are these the entries of the %s?", r.Facts.Name)
		text = fmt.Sprintf("The entries of the %s are those that you entered, until they are released.", name)
	} else {
		order := "In order: " + strings.Join(CodesOf(list.Placed), " ") + "."
		if len(list.Unplaced) > 0 {
			order += map[assemble.Block]string{assemble.Grid: " From the pit lane: ", assemble.Qualifying: " Without a place: "}[d.Block] + strings.Join(CodesOf(list.Unplaced), " ") + "."
		}
		p.Effects = slices.Insert(p.Effects, 0, order)
	}
	return o.planEntry(r, entry, roundEntry(action, d.Key), p, text), nil
}

// planEntry plans to enter facts of a round. The text is that of the answer.
func (o *Operator) planEntry(r *almanac.Round, entry ingest.ManualEntry, audited auditlog.Intent, p Preview, text string) *Plan {
	return &Plan{entry: audited, Preview: p, do: func(ctx context.Context, request Request) (Answer, error) {
		answer, err := o.enter(ctx, entry, request)
		answer.Record, answer.Text = r, text
		return answer, err
	}}
}

// CodesOf returns the codes of drivers.
func CodesOf(list []stewards.Starter) []string {
	return view.Each(list, func(s stewards.Starter) string { return s.Code })
}

var errNoFacts = errors.New("facts cannot be entered here: this process does not assemble the archive")

// enter stores the facts that a person entered and applies them.
func (o *Operator) enter(ctx context.Context, entry ingest.ManualEntry, request Request) (Answer, error) {
	entry.Actor, entry.Reason = request.Actor, request.Reason
	for i := range entry.Statements {
		entry.Statements[i].Forced = request.Force
	}
	now := o.Now()
	if err := o.Ingest.Enter(ctx, now, entry); err != nil {
		return Answer{}, err
	}
	report, err := o.Ingest.Apply(ctx, now)
	if err != nil {
		return Answer{}, fmt.Errorf("the entry is stored, and applied once this is fixed: %w", err)
	}
	for _, c := range report.Held {
		if c.Source == assemble.ManualSource && slices.ContainsFunc(entry.Statements, func(s ingest.Statement) bool { return s.BlockID == c.BlockID() }) {
			return Answer{}, fmt.Errorf("the entry is stored, but not applied: %s", o.refusal(ctx, []assemble.Proposal{c}, unnamed))
		}
	}
	done := Answer{Events: report.Events}
	if report.Changed || len(report.Events) > 0 {
		done.Unpublished = "facts entered by hand"
	}
	return done, nil
}

// previewFacts describes the effects of an entry for a round: the changed facts, the pick, and the documents
// that clients see.
func (o *Operator) previewFacts(ctx context.Context, r *almanac.Round, entry ingest.ManualEntry) (Preview, error) {
	v, err := o.known(ctx)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Effects: []string{}}
	out, err := o.Ingest.Trial(ctx, v.At, entry)
	if err != nil {
		return Preview{}, err
	}
	if p.Refusal = o.refusal(ctx, out.Held, unnamed); p.Refusal != "" {
		for i := range entry.Statements {
			entry.Statements[i].Forced = true
		}
		if out, err = o.Ingest.Trial(ctx, v.At, entry); err != nil {
			return Preview{}, err
		}
	}
	state := o.Ledger.Fold()
	p.Seen = digest(struct{ Round, Entry, Head any }{SeenRound(r), entry, state.Head()})
	archive, err := season.New(out.Facts)
	if err != nil {
		return Preview{}, err
	}
	hand, err := o.Ingest.Manual(ctx)
	if err != nil {
		return Preview{}, err
	}
	after := almanac.Join(archive.AsOf(v.At), state, r.Year)
	p.changedFacts(r, entry, &out, hand, after)
	o.follows(ctx, &p, v, r, archive, after, &out)
	return p, nil
}

// changedFacts adds the facts that an entry for a round changes in a trial, and the sources that differ from it. An archive for
// practice holds facts of later instants too, which a preview must not show.
func (p *Preview) changedFacts(r *almanac.Round, entry ingest.ManualEntry, out *assemble.Output, hand *ingest.ManualLog, after *almanac.Almanac) {
	known := func(id assemble.BlockID) bool {
		_, byHand := hand.Find(id)
		return assemble.Has(id.Block, r.Facts) || byHand && len(entry.Released) == 0
	}
	for _, s := range entry.Statements {
		if n := len(s.Entered.Entries) + len(s.Entered.Qualifying) + len(s.Entered.Grid); !known(s.BlockID) {
			p.Effects = append(p.Effects, fmt.Sprintf("%s of %s; until now nothing was known of it.", view.Sentence(BlockWords[s.Block]), view.Count(n, "1 driver", "drivers")))
		}
	}
	for _, id := range entry.Released {
		if !known(id) {
			p.Effects = append(p.Effects, fmt.Sprintf("%s: nothing is known of it until a source has it.", view.Sentence(BlockWords[id.Block])))
		}
	}
	ofRound := func(c assemble.Proposal) bool { return c.Year == r.Year && c.GrandPrix == r.Facts.GrandPrix }
	named := r
	if found, err := after.Round(r.Session); err == nil {
		named = found // it knows the codes of new drivers
	}
	for _, c := range out.Applied {
		if c.Source == assemble.ManualSource && ofRound(c) && known(c.BlockID()) {
			p.Effects = append(p.Effects, fmt.Sprintf("%s: %s.", view.Sentence(BlockWords[c.Block]), lines(named, c.Lines)))
		}
	}
	if len(p.Effects) == 0 {
		p.Effects = append(p.Effects, "It is what is in use already; entered by hand it stays so, whatever a source says.")
	}
	for _, c := range out.Disputed {
		entered := slices.ContainsFunc(entry.Statements, func(s ingest.Statement) bool { return s.BlockID == c.BlockID() })
		if ofRound(c) && entered && assemble.Has(c.Block, r.Facts) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s says otherwise: %s.", c.Source, lines(r, c.Lines)))
		}
	}
}

// refusal returns why an entry is not used unless it is forced, and the version that clients keep; empty: the
// entry is used. about returns the beginning of each reason.
func (o *Operator) refusal(ctx context.Context, held []assemble.Proposal, about func(assemble.Proposal) string) string {
	var reasons []string
	for _, c := range held {
		if c.Source == assemble.ManualSource {
			for _, refusal := range c.Refused {
				reasons = append(reasons, about(c)+refusal.Reason)
			}
		}
	}
	if len(reasons) > 0 {
		if pointer, _, err := snapshots.LoadPointer(ctx, o.Store); err == nil {
			reasons = append(reasons, fmt.Sprintf("clients keep version %d", pointer.Version))
		}
	}
	return strings.Join(reasons, "; ")
}

// unnamed begins a reason that needs no name, because the operator entered one round.
func unnamed(assemble.Proposal) string { return "" }

// follows adds to a preview the effects on a round's pick and on clients. archive is the result of a trial,
// and after its almanac of the year.
func (o *Operator) follows(ctx context.Context, p *Preview, v *season.View, r *almanac.Round, archive *season.Archive, after *almanac.Almanac, out *assemble.Output) {
	arrived := o.Ingest.Arrived(r.Year, r.Facts.GrandPrix)
	for _, c := range out.Applied {
		if c.Year == r.Year && c.GrandPrix == r.Facts.GrandPrix && c.Block == assemble.Qualifying {
			arrived = v.At
		}
	}
	state := o.Ledger.Fold()
	p.Effects = append(p.Effects, o.pickToCome(ctx, archive, state, r, v.At, arrived)...)
	before := almanac.Join(v, state, r.Year)
	if seen := effects(before, after, r.Session); len(seen) > 0 && (len(p.Effects) == 0 || seen[0] != noEffect) {
		p.Effects = append(p.Effects, seen...)
	}
	p.compareVariants(before, after, r.Year)
}

// pickToCome describes the pick that archive leads to for a round without a pick, and the instant of its
// freeze.
func (o *Operator) pickToCome(ctx context.Context, archive *season.Archive, state *ledger.Fold, r *almanac.Round, now, arrived time.Time) []string {
	next, ok := picks.FindNext(archive, state, r, now, arrived)
	if !ok {
		return nil
	}
	when := "at once"
	if !next.At.IsZero() {
		when = "at " + minute(next.At)
	}
	made := fmt.Sprintf("The pick is made %s", when)
	if o.Model == nil {
		return []string{made + "."}
	}
	forecast, err := next.Forecast(o.Model(ctx))
	switch {
	case errors.Is(err, predict.ErrNobody):
		return []string{"There is no pick: too few are known to take part."}
	case err != nil:
		return []string{made + "."}
	case forecast.Pickable() != nil:
		return []string{view.Sentence(forecast.Pickable().Error()) + "."}
	}
	names := strings.Join(view.Each(forecast.Podium[:], next.Name), " ")
	return []string{fmt.Sprintf("%s, on %s: %s (%.1f %%).", made, basisWords[string(forecast.Basis.Order)], names, 100*forecast.Winner().Win)}
}

var basisWords = map[string]string{"grid": "the grid", "qualifying": "qualifying", "form": "form alone"}

const mostLines = 6

func lines(r *almanac.Round, all []assemble.Line) string {
	var changes []string
	for _, l := range all {
		about := cmp.Or(r.Code(season.DriverID(l.About)), l.About)
		switch {
		case len(changes) == mostLines:
			return fmt.Sprintf("%s; and %d more", strings.Join(changes, "; "), len(all)-mostLines)
		case l.Is == "":
			changes = append(changes, about+" out")
		case l.Was == "":
			changes = append(changes, about+" "+l.Is)
		default:
			changes = append(changes, fmt.Sprintf("%s %s → %s", about, l.Was, l.Is))
		}
	}
	return strings.Join(changes, "; ")
}

// places returns the blocks to release.
func (d ReleaseFacts) places(ctx context.Context, o *Operator) (*almanac.Round, []assemble.BlockID, error) {
	if o.Ingest == nil {
		return nil, nil, errNoFacts
	}
	_, r, err := o.roundNow(ctx, d.Key)
	if err != nil {
		return nil, nil, err
	}
	hand, err := o.Ingest.Manual(ctx)
	if err != nil {
		return nil, nil, err
	}
	var places []assemble.BlockID
	var stand []string
	for _, s := range hand.Active() {
		if s.Year != r.Year || s.GrandPrix != r.Facts.GrandPrix {
			continue
		}
		stand = append(stand, string(s.Block))
		if d.Block == "" || d.Block == s.Block {
			places = append(places, s.BlockID)
		}
	}
	switch {
	case len(stand) == 0:
		return nil, nil, fmt.Errorf("release facts of the %s: nobody entered any; gridcast facts list shows what was entered", label(r))
	case len(places) == 0:
		return nil, nil, fmt.Errorf("release %q of the %s: nobody entered that; entered are %s", d.Block, label(r), strings.Join(stand, ", "))
	}
	return r, places, nil
}

func (d ReleaseFacts) look(ctx context.Context, o *Operator) (*Plan, error) {
	r, places, err := d.places(ctx, o)
	if err != nil {
		return nil, err
	}
	p, err := o.previewFacts(ctx, r, ingest.ManualEntry{Released: places})
	if err != nil {
		return nil, err
	}
	words := view.Each(places, func(place assemble.BlockID) string { return BlockWords[place.Block] })
	p.Title = fmt.Sprintf("Release the %s of the %s", strings.Join(words, ", "), label(r))
	p.Question = "Follow the sources again?"
	entry := roundEntry(auditlog.ReleaseFacts, d.Key)
	entry.Subject = strings.TrimSpace(entry.Subject + " " + string(d.Block))
	return &Plan{
		entry: entry, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			return d.release(ctx, o, r, places, request)
		},
	}, nil
}

// release drops the facts. If they include the start, release also drops the start in the ledger.
func (d ReleaseFacts) release(ctx context.Context, o *Operator, r *almanac.Round, places []assemble.BlockID, request Request) (Answer, error) {
	answer, err := o.enter(ctx, ingest.ManualEntry{Released: places}, request)
	if err != nil {
		return answer, err
	}
	answer.Text = fmt.Sprintf("The %s follows the sources again.", label(r))
	started := slices.ContainsFunc(places, func(p assemble.BlockID) bool { return p.Block == assemble.Start })
	if started && r.Record.Override.ByPerson && r.Record.Override.Status == ledger.AsPlanned && r.Result == nil {
		v, fresh, err := o.refresh(ctx)
		if err != nil {
			return answer, err
		}
		if r, err = findRound(v, o.Ledger.Fold(), d.Key); err != nil {
			return answer, err
		}
		events, err := almanac.Decider{Ledger: fresh, View: v, Actor: request.Actor, Publishable: builder.Publishable}.Decide(ctx, d.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Release(request.Reason) })
		if err != nil {
			return answer, fmt.Errorf("the facts are released, but the start of the round is not: %w", err)
		}
		answer.Events = append(answer.Events, events...)
	}
	answer.Record = r
	return answer, nil
}

// planSession cancels a session of a weekend, or puts it back. The other sessions stay as they are, and a release of the
// sessions follows the sources again.
func (o *Operator) planSession(ctx context.Context, key int64, kind season.SessionKind, cancel bool) (*Plan, error) {
	if o.Ingest == nil {
		return nil, errNoFacts
	}
	_, r, err := o.roundNow(ctx, key)
	if err != nil {
		return nil, err
	}
	sessions := slices.Clone(r.Facts.Sessions)
	if r.Facts.Sprint && !slices.ContainsFunc(sessions, func(s season.Session) bool { return s.Kind == season.Sprint }) {
		sessions = append(sessions, season.Session{Kind: season.Sprint, Date: r.Facts.Date.AddDate(0, 0, -1)})
	}
	i := slices.IndexFunc(sessions, func(s season.Session) bool { return s.Kind == kind })
	switch {
	case i < 0:
		return nil, fmt.Errorf("the weekend of the %s has no session %q; it has %s", label(r), kind,
			strings.Join(view.Each(sessions, func(s season.Session) string { return string(s.Kind) }), ", "))
	case cancel && r.Facts.TookPlace(kind):
		return nil, fmt.Errorf("%s of the %s was held: its outcome is known", kind, label(r))
	case r.Facts.Cancelled(kind) && cancel:
		return nil, fmt.Errorf("%s of the %s is cancelled already; gridcast rounds reinstate %d --session %s puts it back", kind, label(r), key, kind)
	case !r.Facts.Cancelled(kind) && !cancel:
		return nil, fmt.Errorf("%s of the %s is not cancelled; gridcast rounds cancel %d --session %s cancels it", kind, label(r), key, kind)
	}
	sessions[i].Cancelled = cancel
	season.SortSessions(sessions)
	entry := ingest.ManualEntry{Statements: []ingest.Statement{{
		BlockID: assemble.BlockID{Year: r.Year, GrandPrix: r.Facts.GrandPrix, Block: assemble.Sessions},
		Entered: ingest.PartialRound{GrandPrix: r.Facts.GrandPrix, Sessions: sessions},
	}}}
	p, err := o.previewFacts(ctx, r, entry)
	if err != nil {
		return nil, err
	}
	action, done := auditlog.CancelRound, "cancelled"
	p.Title, p.Question = fmt.Sprintf("Cancel the %s of the %s", kind, label(r)), fmt.Sprintf("Call the %s off?", kind)
	if !cancel {
		action, done = auditlog.ReinstateRound, "held"
		p.Title, p.Question = fmt.Sprintf("Reinstate the %s of the %s", kind, label(r)), fmt.Sprintf("Put the %s back?", kind)
	}
	audited := roundEntry(action, key)
	audited.Subject += " " + string(kind)
	return o.planEntry(r, entry, audited, p, fmt.Sprintf("The %s of the %s is %s.", kind, label(r), done)), nil
}
