package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/deploy/auditlog"
)

// RoundAction is a decision about one round: Verify, Enter, Correct, Postpone, Cancel, Move, Reinstate
// or ReleaseRound. It becomes events of the ledger.
type RoundAction struct {
	action  auditlog.Action
	session int64
	decide  func(r *almanac.Round, reason string) ([]ledger.Event, error)

	title, question string // %s is the round
	// look adds to a preview what is out of the ordinary; may be nil.
	look func(r *almanac.Round, now time.Time, p *Preview)
}

// VerifyResult vouches for the source's classification of a round. It needs no reason.
func VerifyResult(session int64) RoundAction {
	return RoundAction{
		action: auditlog.VerifyResult, session: session,
		title: "Verify the result of the %s", question: "Is this the result of the %s?",
		decide: func(r *almanac.Round, _ string) ([]ledger.Event, error) { return r.Verify() },
	}
}

// EnterResult makes a classification that a person has written down the first verified one.
func EnterResult(session int64, result Classification) RoundAction {
	return RoundAction{
		action: auditlog.EnterResult, session: session,
		title: "Enter the result of the %s", question: "Is this the result of the %s?",
		look: func(r *almanac.Round, now time.Time, p *Preview) { p.Refusal = early(r, now) },
		decide: func(r *almanac.Round, reason string) ([]ledger.Event, error) {
			if r.Result != nil {
				return nil, fmt.Errorf("enter the result of %d: one is verified already; another revision is made with correct", r.Session)
			}
			rows, sprint, err := result.Rows(r)
			if err != nil {
				return nil, err
			}
			return r.Correct(rows, sprint, reason)
		},
	}
}

// CorrectResult makes another classification the next revision of a result.
func CorrectResult(session int64, result Classification) RoundAction {
	return RoundAction{
		action: auditlog.CorrectResult, session: session,
		title: "Correct the result of the %s", question: "Correct the result of the %s?",
		look: func(r *almanac.Round, now time.Time, p *Preview) {
			if r.Result == nil {
				p.Warnings = append(p.Warnings, "Nothing is verified yet: this is its first verified result.")
				p.Refusal = early(r, now)
			}
		},
		decide: func(r *almanac.Round, reason string) ([]ledger.Event, error) {
			rows, sprint, err := result.Rows(r)
			if err != nil {
				return nil, err
			}
			return r.Correct(rows, sprint, reason)
		},
	}
}

// PostponeRound takes a round off its date.
func PostponeRound(session int64) RoundAction {
	return RoundAction{
		action: auditlog.PostponeRound, session: session,
		title: "Postpone the %s", question: "Take the %s off its date?",
		decide: (*almanac.Round).Postpone,
	}
}

// CancelRound calls a round off.
func CancelRound(session int64) RoundAction {
	return RoundAction{
		action: auditlog.CancelRound, session: session,
		title: "Cancel the %s", question: "Call the %s off?",
		decide: (*almanac.Round).Cancel,
	}
}

// MoveRound gives a round another start.
func MoveRound(session int64, start time.Time) RoundAction {
	return RoundAction{
		action: auditlog.MoveRound, session: session,
		title: "Move the %s", question: "Move the start of the %s to " + minute(start) + "?",
		decide: func(r *almanac.Round, reason string) ([]ledger.Event, error) { return r.Move(start, reason) },
	}
}

// ReinstateRound puts a postponed or cancelled round back, with a start or, if that is zero, at the one
// in the calendar.
func ReinstateRound(session int64, start time.Time) RoundAction {
	return RoundAction{
		action: auditlog.ReinstateRound, session: session,
		title: "Reinstate the %s", question: "Put the %s back into the calendar?",
		decide: func(r *almanac.Round, reason string) ([]ledger.Event, error) { return r.Reinstate(start, reason) },
	}
}

// ReleaseRound lets go of a start that somebody gave a round: it follows the sources again.
func ReleaseRound(session int64) RoundAction {
	return RoundAction{
		action: auditlog.ReleaseRound, session: session,
		title: "Release the start of the %s",
		look: func(r *almanac.Round, _ time.Time, p *Preview) {
			p.Question = fmt.Sprintf("Let the %s start when the sources say, now %s?", r.Facts.Name, minute(r.Facts.StartsAt()))
		},
		decide: (*almanac.Round).Release,
	}
}

// Classification says which classification is meant, in one of the ways in which people say it.
// The zero value is the source's present one, of the race and of the sprint.
type Classification struct {
	Sprint     bool                     // order, rulings or what the source says are of the sprint alone
	Document   []byte                   // the whole classification as JSON, in the form of stewards.ReadClassification
	Order      []string                 // drivers in finishing order, by code or id; who is not named has no place
	Disqualify []string                 // drivers who lose their place
	Penalties  map[string]time.Duration // added to a driver's time
}

// shortestRace is the time before which no race over its full distance has ended: the shortest,
// Monza in 2003, took 1 hour and 14 minutes.
const shortestRace = time.Hour

// early says why a result that a person enters cannot be one yet.
func early(r *almanac.Round, now time.Time) string {
	since := now.Sub(r.Start).Round(time.Second)
	if since >= shortestRace {
		return ""
	}
	return fmt.Sprintf("the race began %s ago and cannot be over", since)
}

// Rows is the classification of a round that is meant, and that of its sprint, of which nil stands for the
// one that counts. Both are nil if the source is meant and has none.
func (c Classification) Rows(r *almanac.Round) (rows, sprint []ledger.Row, err error) {
	ruling := stewards.Ruling{Penalties: map[season.DriverID]time.Duration{}}
	for _, text := range c.Disqualify {
		driver, err := r.FindDriver(text)
		if err != nil {
			return nil, nil, fmt.Errorf("disqualify: %w", err)
		}
		ruling.Disqualified = append(ruling.Disqualified, driver)
	}
	for text, penalty := range c.Penalties {
		driver, err := r.FindDriver(text)
		if err != nil {
			return nil, nil, fmt.Errorf("time penalty: %w", err)
		}
		ruling.Penalties[driver] = penalty
	}
	ways := 0
	for _, given := range []bool{len(c.Document) > 0, len(c.Order) > 0, !ruling.Empty()} {
		if given {
			ways++
		}
	}
	session := stewards.Session{Round: r, Sprint: c.Sprint}
	switch {
	case ways > 1:
		return nil, nil, errors.New("a whole classification, an order, and a ruling are three ways to say a result: give one of them")
	case c.Sprint && len(c.Document) > 0:
		return nil, nil, errors.New("a document says by itself what is of the sprint: give it without saying that it is")
	case c.Sprint && !r.Facts.Sprint:
		return nil, nil, fmt.Errorf("the weekend of %d had no sprint", r.Session)
	case len(c.Document) > 0:
		rows, sprint, err = stewards.ReadClassification(r, c.Document)
	case len(c.Order) > 0:
		rows, err = stewards.Order(session, c.Order)
	case !ruling.Empty():
		rows, err = ruling.Apply(session)
	case c.Sprint:
		rows = r.SourceSprint()
	default:
		return r.Source(), r.SourceSprint(), nil
	}
	if c.Sprint {
		rows, sprint = nil, rows
	}
	if err == nil && rows == nil && sprint != nil {
		if rows = (stewards.Session{Round: r}).Counts(); rows == nil {
			err = fmt.Errorf("the sprint of %d is verified with the race, which has no classification yet", r.Session)
		}
	}
	return rows, sprint, err
}

func label(r *almanac.Round) string { return fmt.Sprintf("%s of %d", r.Facts.Name, r.Year) }

// Almanac is where every round stands now, by the facts and the ledger as they are in the store.
func (o *Operator) Almanac(ctx context.Context) (*almanac.Almanac, error) {
	v, err := o.view(ctx)
	if err != nil {
		return nil, err
	}
	return almanac.Join(v, o.Ledger.Current(v.At)), nil
}

// view is what is known now, with the ledger up to date.
func (o *Operator) view(ctx context.Context) (*season.View, error) {
	v, _, err := o.refresh(ctx)
	return v, err
}

// refresh is view, with the ledger to append to.
func (o *Operator) refresh(ctx context.Context) (*season.View, ledger.Fresh, error) {
	if o.Ledger == nil || o.Facts == nil {
		return nil, ledger.Fresh{}, ledger.ErrNotOpened
	}
	fresh, err := o.Ledger.Refresh(ctx)
	if err != nil {
		return nil, fresh, err
	}
	facts, err := o.Facts(ctx)
	if err != nil {
		return nil, fresh, err
	}
	return facts.Archive.AsOf(o.Now()), fresh, nil
}

// SeenRound names what is shown of a round: the record of it and the source's classifications.
func SeenRound(r *almanac.Round) string {
	return digest(struct {
		Record         ledger.Record
		Source, Sprint []ledger.Row
	}{r.Record, r.Source(), r.SourceSprint()})
}

// notGiven stands for the reason of an action that is looked at before anybody gave one.
const notGiven = "not given yet"

func (d RoundAction) needsReason() bool { return d.action != auditlog.VerifyResult }

func (d RoundAction) entry() auditlog.Change { return roundEntry(d.action, d.session) }

func roundEntry(action auditlog.Action, session int64) auditlog.Change {
	return auditlog.Change{Action: action, Subject: strconv.FormatInt(session, 10)}
}

// preview says what the ledger would take, and what clients would see of it.
func (d RoundAction) preview(ctx context.Context, o *Operator) (Preview, error) {
	v, fresh, err := o.refresh(ctx)
	if err != nil {
		return Preview{}, err
	}
	before := almanac.Join(v, o.Ledger.State())
	p, trial, err := d.trial(before, o.Now())
	if err != nil {
		return Preview{}, err
	}
	p.fresh = fresh
	after := almanac.Join(v, trial)
	p.Effects = effects(before, after, d.session)
	year := ledger.YearOf(d.session)
	if p.Variants, err = changedVariants(before, after, year); err != nil && p.Refusal == "" {
		p.Refusal = "what clients would get cannot be rendered: " + err.Error()
	}
	return p, nil
}

// check implements checked. That what follows can be rendered is checked again by what does it.
func (d RoundAction) check(ctx context.Context, o *Operator) (Preview, error) {
	v, fresh, err := o.refresh(ctx)
	if err != nil {
		return Preview{}, err
	}
	p, _, err := d.trial(almanac.Join(v, o.Ledger.State(), ledger.YearOf(d.session)), o.Now())
	p.fresh = fresh
	return p, err
}

// trial is the preview of the action but for what clients would see of it, and the ledger after it.
func (d RoundAction) trial(before *almanac.Almanac, now time.Time) (Preview, *ledger.State, error) {
	r, err := before.Round(d.session)
	if err != nil {
		return Preview{}, nil, err
	}
	events, err := d.decide(r, notGiven)
	if err != nil {
		return Preview{}, nil, err
	}
	_, trial, err := r.Trial(events)
	if err != nil {
		return Preview{}, nil, refused(r, err)
	}
	p := Preview{Title: fmt.Sprintf(d.title, label(r)), Seen: SeenRound(r)}
	if d.question != "" {
		p.Question = fmt.Sprintf(d.question, r.Facts.Name)
	}
	if d.look != nil {
		d.look(r, now, &p)
	}
	return p, trial, nil
}

// refused says what the ledger does not take, and what it would take instead.
func refused(r *almanac.Round, err error) error {
	var refusal *ledger.RefusedError
	if !errors.As(err, &refusal) {
		return err
	}
	allowed := r.Allowed()
	if len(allowed) == 0 {
		return fmt.Errorf("%s (%d): %w; nothing can be decided about it now", label(r), r.Session, refusal.Err)
	}
	list := make([]string, len(allowed))
	for i, action := range allowed {
		list[i] = string(action)
	}
	return fmt.Errorf("%s (%d): %w; what can be done about it now: %s", label(r), r.Session, refusal.Err, strings.Join(list, ", "))
}

// do appends the decision to the ledger, if the round is still what p was made from.
func (d RoundAction) do(ctx context.Context, o *Operator, request Request, p Preview) (Answer, error) {
	facts, err := o.Facts(ctx)
	if err != nil {
		return Answer{}, err
	}
	v := facts.Archive.AsOf(o.Now())
	events, err := almanac.Decide(ctx, p.fresh, v, request.Actor, d.session, builder.Publishable, func(r *almanac.Round) ([]ledger.Event, error) {
		if SeenRound(r) != p.Seen {
			return nil, fmt.Errorf("%s: %w", label(r), ErrChanged)
		}
		return d.decide(r, request.Reason)
	})
	if err != nil {
		return Answer{}, err
	}
	done := Answer{Events: events, Unpublished: fmt.Sprintf("%s %d", strings.ReplaceAll(string(events[0].Type), "_", " "), d.session)}
	r, err := almanac.Join(v, o.Ledger.State(), ledger.YearOf(d.session)).Round(d.session)
	if err != nil {
		return done, err
	}
	done.Round = r
	if events[0].Result != nil {
		done.Text = fmt.Sprintf("Revision %d of the %s is verified.", events[0].Result.Revision, label(r))
	} else {
		done.Text = fmt.Sprintf("The %s is %s, start %s.", label(r), stateWords[r.State], minute(r.Start))
	}
	return done, nil
}

// stateWords are the states of a round as people call them.
var stateWords = map[almanac.State]string{
	almanac.Scheduled: "scheduled", almanac.Live: "live", almanac.AwaitingResult: "awaiting its result",
	almanac.Finished: "finished", almanac.Postponed: "postponed", almanac.Cancelled: "cancelled",
}

// effects says what clients would see differently of a round, and of what follows from it.
func effects(before, after *almanac.Almanac, session int64) []string {
	x, err := before.Round(session)
	if err != nil {
		return nil
	}
	y, err := after.Round(session)
	if err != nil {
		return nil
	}
	var text []string
	add := func(format string, args ...any) { text = append(text, fmt.Sprintf(format, args...)) }
	if x.State != y.State {
		add("The round is %s; until now: %s.", stateWords[y.State], stateWords[x.State])
	}
	if !x.Start.Equal(y.Start) {
		add("Lights out is at %s; until now: %s.", minute(y.Start), minute(x.Start))
	}
	switch was, is := winner(x), winner(y); {
	case is != "" && was == "":
		add("The winner is %s.", is)
	case is != was:
		add("The winner is %s; until now: %s.", is, was)
	case is != "" && !slices.Equal(x.Valid(), y.Valid()):
		add("The winner stays %s; places or points below change.", is)
	}
	if x.Result != nil && !slices.Equal(x.Sprint(), y.Sprint()) {
		add("Places or points of the sprint change.")
	}
	text = append(text, pickEffect(x, y)...)
	text = append(text, standingEffects(before, after, x.Year)...)
	if was, is := next(before), next(after); was != is {
		add("The next race is %s; until now: %s.", is, was)
	}
	if len(text) == 0 {
		text = []string{noEffect}
	}
	return text
}

const noEffect = "Clients see no difference."

func winner(r *almanac.Round) string {
	for _, row := range r.Valid() {
		if row.Position == 1 {
			return r.Driver(row.Driver).Name
		}
	}
	return ""
}

// pickEffect says what becomes of the pick.
func pickEffect(x, y *almanac.Round) []string {
	if x.Pick == nil {
		return nil
	}
	pick := fmt.Sprintf("The pick %s %s %s (%.1f %%)", x.Code(x.Pick.P1), x.Code(x.Pick.P2), x.Code(x.Pick.P3), 100*x.Pick.WinProbability)
	score := func(r *almanac.Round) string {
		if r.Pick == nil || r.Result == nil {
			return ""
		}
		hit, onPodium := almanac.Podium(r.Result.Rows).Score(almanac.Picked(r.Pick))
		if hit {
			return fmt.Sprintf("the winner was picked, %d of 3 on the podium", onPodium)
		}
		return fmt.Sprintf("the winner was not picked, %d of 3 on the podium", onPodium)
	}
	switch {
	case y.Pick == nil:
		return []string{pick + " is void, for ever."}
	case score(x) != score(y):
		return []string{pick + " is scored: " + score(y) + "."}
	default:
		return []string{pick + " stands."}
	}
}

// mostMoves is how many changes of a championship a preview lists.
const mostMoves = 4

// standingEffects says what changes in the championships of a season.
func standingEffects(before, after *almanac.Almanac, year int) []string {
	x, hadYear := before.Year(year)
	y, hasYear := after.Year(year)
	if !hadYear || !hasYear {
		return nil
	}
	var text []string
	drivers := map[season.DriverID]almanac.Tally{}
	for _, row := range x.Drivers() {
		drivers[row.Driver.ID] = row.Tally
	}
	var moves []string
	for _, row := range y.Drivers() {
		if was := drivers[row.Driver.ID]; was != row.Tally {
			moves = append(moves, move(row.Driver.Name, was, row.Tally))
		}
	}
	text = append(text, moved("drivers", moves)...)
	type car struct {
		team   season.TeamID
		engine string
	}
	teams := map[car]almanac.Tally{}
	for _, row := range x.Constructors() {
		teams[car{row.Team.ID, row.Engine}] = row.Tally
	}
	moves = nil
	for _, row := range y.Constructors() {
		if was := teams[car{row.Team.ID, row.Engine}]; was != row.Tally {
			moves = append(moves, move(row.Team.Name, was, row.Tally))
		}
	}
	return append(text, moved("constructors", moves)...)
}

func move(name string, was, is almanac.Tally) string {
	text := fmt.Sprintf("%s %g → %g points", name, was.Points, is.Points)
	if was.Position != is.Position && was.Position != 0 {
		text += fmt.Sprintf(", P%d → P%d", was.Position, is.Position)
	}
	return text
}

func moved(what string, moves []string) []string {
	switch n := len(moves); {
	case n == 0:
		return nil
	case n > mostMoves:
		return []string{fmt.Sprintf("Standings of the %s: %s; and %d more.", what, strings.Join(moves[:mostMoves], "; "), n-mostMoves)}
	default:
		return []string{fmt.Sprintf("Standings of the %s: %s.", what, strings.Join(moves, "; "))}
	}
}

// next is the next race, as people say it.
func next(a *almanac.Almanac) string {
	if coming := a.Coming(); len(coming) > 0 {
		return fmt.Sprintf("the %s on %s", label(coming[0]), minute(coming[0].Start))
	}
	return "none"
}

// changedVariants lists the variants of a season, and those without one, whose bytes differ
// between two almanacs.
func changedVariants(before, after *almanac.Almanac, year int) ([]string, error) {
	bodies := func(a *almanac.Almanac) (map[string]string, error) {
		all := map[string]string{}
		for _, v := range render.Variants(a) {
			if of := v.Season(); of != 0 && of != year {
				continue
			}
			body, err := render.Body(a, v, a.At)
			if err != nil {
				return nil, err
			}
			all[v.Path()] = string(body)
		}
		return all, nil
	}
	x, err := bodies(before)
	if err != nil {
		return nil, nil //nolint:nilerr // nothing to compare with: whatever is published now stays as it is
	}
	y, err := bodies(after)
	if err != nil {
		return nil, err
	}
	var changed []string
	for path, body := range y {
		if old, ok := x[path]; !ok || old != body {
			changed = append(changed, path)
		}
	}
	for path := range x {
		if _, ok := y[path]; !ok {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	return changed, nil
}
