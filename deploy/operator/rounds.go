package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	"gridcast/deploy/view"
)

// decision is an action about one round that becomes events of the ledger.
type decision struct {
	action          auditlog.Verb
	key             int64
	title, question string // %s is the round
	// warn adds to a preview; may be nil.
	warn   func(r *almanac.Round, now time.Time, p *Preview)
	decide func(r *almanac.Round, reason string) ([]ledger.Event, error)
}

// VerifyResult confirms the source's classification of a round. It needs no reason.
type VerifyResult struct {
	Key int64 `arg:"" optional:"" form:"session" help:"Session key of the round, from results list."`
}

func (d VerifyResult) look(ctx context.Context, o *Operator) (*Plan, error) {
	return decision{
		action: auditlog.VerifyResult, key: d.Key,
		title: "Verify the result of the %s", question: "Is this the result of the %s?",
		decide: func(r *almanac.Round, _ string) ([]ledger.Event, error) { return r.Verify() },
	}.plan(ctx, o)
}

// VerifyResults confirms the source's classifications of all rounds that wait. It needs no reason.
type VerifyResults struct {
	publishing

	Year int `help:"With --all: only the results of this season." placeholder:"YEAR" env:"-"`
}

func (d VerifyResults) look(ctx context.Context, o *Operator) (*Plan, error) {
	v, err := o.known(ctx)
	if err != nil {
		return nil, err
	}
	rounds := slices.DeleteFunc(builder.Waiting(v, o.Ledger.Fold()), func(r *almanac.Round) bool { return d.Year != 0 && r.Year != d.Year })
	if len(rounds) == 0 {
		return nil, errors.New("verify all results: no result waits")
	}
	seen := map[int64]string{}
	for _, r := range rounds {
		seen[r.Session] = SeenRound(r)
	}
	what := view.Results(rounds)
	p := Preview{Title: "Verify " + what, Question: "Verify " + what + "?", Seen: digest(seen), Effects: []string{"The source's classifications count from now on."}}
	earlier, shown := view.Recent(rounds)
	if len(earlier) > 0 {
		p.Effects = append(p.Effects, "Among them: "+view.Results(earlier)+".")
	}
	for _, r := range shown {
		p.Effects = append(p.Effects, fmt.Sprintf("%s won the %s (%d).", r.Driver(almanac.Podium(r.Source())[0]).Name, label(r), r.Session))
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.VerifyResult, Subject: what}, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			v, fresh, err := o.refresh(ctx)
			if err != nil {
				return Answer{}, err
			}
			events, err := builder.VerifyWaiting(ctx, fresh, v, request.Actor, request.Reason, func(r *almanac.Round) bool { return seen[r.Session] == SeenRound(r) })
			answer := Answer{Events: events, Unpublished: "results verified", Text: fmt.Sprintf("%d of %d results are verified.", len(events), len(rounds))}
			if len(events) == 0 && err == nil {
				err = ErrStale
			}
			return answer, err
		},
	}, nil
}

// EnterResult verifies a classification that a person wrote down. The round must have no verified result
// yet.
type EnterResult struct {
	published

	Key      int64  `arg:"" form:"session" help:"Session key of the round, from results list."`
	Order    Codes  `help:"The drivers in finishing order, by code: VER,NOR,RUS. Missing drivers have no place." placeholder:"CODES" env:"-"`
	Document []byte `kong:"-" form:"-"` // the whole classification as JSON, in the form of stewards.ReadClassification
}

// Rows returns the entered classification of a round and of its sprint.
func (d EnterResult) Rows(r *almanac.Round) (rows, sprint []ledger.Row, err error) {
	return Classification{Order: d.Order, Document: d.Document}.Rows(r)
}

func (d EnterResult) look(ctx context.Context, o *Operator) (*Plan, error) {
	return decision{
		action: auditlog.EnterResult, key: d.Key,
		title: "Enter the result of the %s", question: "Is this the result of the %s?",
		warn: func(r *almanac.Round, now time.Time, p *Preview) {
			p.Refusal = early(r, now)
			Classification{Order: d.Order, Document: d.Document}.warn(r, p)
		},
		decide: func(r *almanac.Round, reason string) ([]ledger.Event, error) {
			if r.Result != nil {
				return nil, fmt.Errorf("enter the result of %d: one is verified already; gridcast results correct makes another revision", r.Session)
			}
			return Classification{Order: d.Order, Document: d.Document}.correct(r, reason)
		},
	}.plan(ctx, o)
}

// CorrectResult makes another classification the next revision of a result.
type CorrectResult struct {
	published
	Classification

	Key int64 `arg:"" form:"session" help:"Session key of the round, from results list."`
}

func (d CorrectResult) look(ctx context.Context, o *Operator) (*Plan, error) {
	return decision{
		action: auditlog.CorrectResult, key: d.Key,
		title: "Correct the result of the %s", question: "Correct the result of the %s?",
		warn: func(r *almanac.Round, now time.Time, p *Preview) {
			if r.Result == nil {
				p.Warnings = append(p.Warnings, "Nothing is verified yet: this is its first verified result.")
				p.Refusal = early(r, now)
			}
			if len(d.Order)+len(d.Document) > 0 {
				d.warn(r, p)
			}
		},
		decide: d.correct,
	}.plan(ctx, o)
}

// PostponeRound takes a round off its date.
type PostponeRound struct {
	published

	Key int64 `arg:"" form:"session" help:"Session key of the round, from rounds list."`
}

func (d PostponeRound) look(ctx context.Context, o *Operator) (*Plan, error) {
	return decision{
		action: auditlog.PostponeRound, key: d.Key,
		title: "Postpone the %s", question: "Take the %s off its date?",
		decide: (*almanac.Round).Postpone,
	}.plan(ctx, o)
}

// CancelRound calls a round off, or one session of its weekend.
type CancelRound struct {
	published

	Key     int64              `arg:"" form:"session" help:"Session key of the round, from rounds list."`
	Session season.SessionKind `form:"part" help:"Cancel only this session of the weekend, such as sprint or practice-1." placeholder:"SESSION" env:"-"`
}

func (d CancelRound) look(ctx context.Context, o *Operator) (*Plan, error) {
	if d.Session != "" {
		return o.planSession(ctx, d.Key, d.Session, true)
	}
	return decision{
		action: auditlog.CancelRound, key: d.Key,
		title: "Cancel the %s", question: "Call the %s off?",
		decide: (*almanac.Round).Cancel,
	}.plan(ctx, o)
}

// MoveRound gives a round another start.
type MoveRound struct {
	published

	Key   int64     `arg:"" form:"session" help:"Session key of the round, from rounds list."`
	Start time.Time `required:"" help:"The new start, RFC 3339." placeholder:"INSTANT" env:"-"`
}

func (d MoveRound) look(ctx context.Context, o *Operator) (*Plan, error) {
	return decision{
		action: auditlog.MoveRound, key: d.Key,
		title: "Move the %s", question: "Move the start of the %s to " + minute(d.Start) + "?",
		warn:   func(r *almanac.Round, _ time.Time, p *Preview) { warnOf(r, d.Start, p) },
		decide: func(r *almanac.Round, reason string) ([]ledger.Event, error) { return r.Move(d.Start, reason) },
	}.plan(ctx, o)
}

// warnOf warns of a start in another year than the season's, and of the races that start less than a day from it.
func warnOf(r *almanac.Round, start time.Time, p *Preview) {
	if start.Year() != r.Year {
		p.Warnings = append(p.Warnings, fmt.Sprintf("The season is that of %d, and this start is in %d.", r.Year, start.Year()))
	}
	for _, other := range r.Season() {
		if apart := other.Start.Sub(start).Abs(); other.Session != r.Session && !other.Off() && apart < 24*time.Hour {
			p.Warnings = append(p.Warnings, fmt.Sprintf("The %s starts at %s, %s from this start.", other.Facts.Name, minute(other.Start), apart))
		}
	}
}

// ReinstateRound puts back a postponed or cancelled round, or a cancelled session of its weekend.
type ReinstateRound struct {
	published

	Key     int64              `arg:"" form:"session" help:"Session key of the round, from rounds list."`
	Start   time.Time          `help:"The new start, RFC 3339; default: the one in the calendar. It may have passed, for a race that was held." placeholder:"INSTANT" env:"-"`
	Session season.SessionKind `form:"part" help:"Put back only this session of the weekend." placeholder:"SESSION" env:"-"`
}

func (d ReinstateRound) look(ctx context.Context, o *Operator) (*Plan, error) {
	if d.Session != "" {
		return o.planSession(ctx, d.Key, d.Session, false)
	}
	return decision{
		action: auditlog.ReinstateRound, key: d.Key,
		title: "Reinstate the %s", question: "Put the %s back into the calendar?",
		warn:   func(r *almanac.Round, _ time.Time, p *Preview) { warnOf(r, cmp.Or(d.Start, r.Start), p) },
		decide: func(r *almanac.Round, reason string) ([]ledger.Event, error) { return r.Reinstate(d.Start, reason) },
	}.plan(ctx, o)
}

// ReleaseRound drops a start that a person gave a round: the round follows the sources again.
type ReleaseRound struct {
	published

	Key int64 `arg:"" form:"session" help:"Session key of the round, from rounds list."`
}

func (d ReleaseRound) look(ctx context.Context, o *Operator) (*Plan, error) {
	return decision{
		action: auditlog.ReleaseRound, key: d.Key,
		title: "Release the start of the %s",
		warn: func(r *almanac.Round, _ time.Time, p *Preview) {
			p.Question = fmt.Sprintf("Let the %s start when the sources say, now %s?", r.Facts.Name, minute(r.Facts.StartsAt()))
		},
		decide: (*almanac.Round).Release,
	}.plan(ctx, o)
}

// Classification describes a result in one of three ways: a whole document, an order of drivers, or rulings
// of the stewards. The zero value is the source's present classification of race and sprint.
type Classification struct {
	Order       Codes                    `help:"The drivers in finishing order, by code: VER,NOR,RUS. Missing drivers have no place." placeholder:"CODES" env:"-"`
	Document    []byte                   `kong:"-" form:"-"` // the whole classification as JSON, in the form of stewards.ReadClassification
	Sprint      bool                     `help:"The order or the rulings are of the weekend's sprint; the race stays as it is." env:"-"`
	Disqualify  []string                 `help:"Disqualify a driver, by code or id; repeat for more." placeholder:"DRIVER" env:"-"`
	TimePenalty map[string]time.Duration `form:"-" help:"A penalty on a driver's time; repeat for more." placeholder:"DRIVER=5s" env:"-"`
}

// ReadForm reads the time penalty, which a form has in two fields.
func (c *Classification) ReadForm(field func(string) string) error {
	driver, text := field("penalised"), field("penalty")
	if driver == "" && text == "" {
		return nil
	}
	penalty, err := time.ParseDuration(text + "s")
	if err != nil || penalty <= 0 || driver == "" {
		return errors.New("a time penalty needs a driver and seconds, such as NOR and 5")
	}
	c.TimePenalty = map[string]time.Duration{driver: penalty}
	return nil
}

// shortestRace is a lower bound for the duration of a race over its full distance. The shortest, Monza in
// 2003, took 1 hour and 14 minutes.
const shortestRace = time.Hour

// early refuses a result that a person enters before the race can be over.
func early(r *almanac.Round, now time.Time) string {
	since := now.Sub(r.Start).Round(time.Second)
	if since >= shortestRace {
		return ""
	}
	return fmt.Sprintf("the race began %s ago and cannot be over", since)
}

// warn says how many drivers of the round have no place. It refuses a classification in which under half have one.
func (c Classification) warn(r *almanac.Round, p *Preview) {
	rows, sprint, err := c.Rows(r)
	if err != nil {
		return // as decide says
	}
	tables := map[string][]ledger.Row{"race": rows, "sprint": sprint}
	if c.Sprint {
		delete(tables, "race") // it stays
	}
	for _, of := range slices.Sorted(maps.Keys(tables)) {
		field, placed := map[season.DriverID]bool{}, map[season.DriverID]bool{}
		for _, driver := range r.Field() {
			field[driver] = true
		}
		for _, row := range tables[of] {
			field[row.Driver] = true
			if row.Position > 0 {
				placed[row.Driver] = true
			}
		}
		without := len(field) - len(placed)
		if tables[of] == nil || without == 0 {
			continue
		}
		text := fmt.Sprintf("%d of %d drivers have no place", without, len(field))
		if of == "sprint" {
			text += " in the sprint"
		}
		p.Warnings = append(p.Warnings, text+".")
		if 2*len(placed) < len(field) {
			p.Refusal = cmp.Or(p.Refusal, text)
		}
	}
}

// Rows returns the classification of the race and of its sprint. A nil sprint leaves the valid one alone.
// Both are nil if the source's classification is meant and the source has none.
func (c Classification) Rows(r *almanac.Round) (rows, sprint []ledger.Row, err error) {
	ruling := stewards.Ruling{Penalties: map[season.DriverID]time.Duration{}}
	for _, text := range c.Disqualify {
		driver, err := r.FindDriver(text)
		if err != nil {
			return nil, nil, fmt.Errorf("disqualify: %w", err)
		}
		ruling.Disqualified = append(ruling.Disqualified, driver)
	}
	for _, text := range slices.Sorted(maps.Keys(c.TimePenalty)) {
		driver, err := r.FindDriver(text)
		if err != nil {
			return nil, nil, fmt.Errorf("time penalty: %w", err)
		}
		if _, twice := ruling.Penalties[driver]; twice {
			return nil, nil, fmt.Errorf("time penalty: %s is given twice", driver)
		}
		ruling.Penalties[driver] = c.TimePenalty[text]
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
		return nil, nil, errors.New("give one of these: a whole classification, an order, or rulings")
	case c.Sprint && len(c.Document) > 0:
		return nil, nil, errors.New("a document contains the sprint already: leave out --sprint")
	case c.Sprint && !r.Facts.HasSprint():
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

// correct returns the event that makes the classification the next revision of a result.
func (c Classification) correct(r *almanac.Round, reason string) ([]ledger.Event, error) {
	rows, sprint, err := c.Rows(r)
	if err != nil {
		return nil, err
	}
	return r.Correct(rows, sprint, reason)
}

func minute(t time.Time) string { return t.UTC().Format("2 January 2006 15:04 UTC") }

func label(r *almanac.Round) string { return fmt.Sprintf("%s of %d", r.Facts.Name, r.Year) }

// Almanac joins the facts and the ledger of the store as of now.
func (o *Operator) Almanac(ctx context.Context) (*almanac.Almanac, error) {
	v, err := o.known(ctx)
	if err != nil {
		return nil, err
	}
	return almanac.Join(v, o.Ledger.Current(v.At)), nil
}

// Round returns a round by its session key as of now.
func (o *Operator) Round(ctx context.Context, session int64) (*almanac.Round, error) {
	a, err := o.Almanac(ctx)
	if err != nil {
		return nil, err
	}
	return a.Round(session)
}

// known returns the facts that are known now, after a refresh of the ledger.
func (o *Operator) known(ctx context.Context) (*season.View, error) {
	v, _, err := o.refresh(ctx)
	return v, err
}

// refresh is known that also returns the refreshed ledger, for appends.
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

// roundNow returns a round by its session key, as the ledger has it, and the facts that are known now.
func (o *Operator) roundNow(ctx context.Context, session int64) (*season.View, *almanac.Round, error) {
	v, err := o.known(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := findRound(v, o.Ledger.Fold(), session)
	return v, r, err
}

// findRound returns a round of any season by its session key.
func findRound(v *season.View, s *ledger.Fold, session int64) (*almanac.Round, error) {
	return almanac.Join(v, s, ledger.YearOf(session)).Round(session)
}

// SeenRound identifies the visible state of a round: its record, the source's classifications, and the decisions about the
// championships of its season.
func SeenRound(r *almanac.Round) string {
	return digest(struct {
		Record         ledger.RoundRecord
		Source, Sprint []ledger.Row
		Championship   []ledger.ChampionshipDecision
	}{r.Record, r.Source(), r.SourceSprint(), r.Championship()})
}

// notGiven is the reason of an action that is only previewed.
const notGiven = "not given yet"

func roundEntry(action auditlog.Verb, session int64) auditlog.Intent {
	return auditlog.Intent{Action: action, Subject: strconv.FormatInt(session, 10)}
}

// plan tries the decision on the present ledger. The effects on clients take a while to compute, so explain
// adds them.
func (d decision) plan(ctx context.Context, o *Operator) (*Plan, error) {
	v, fresh, err := o.refresh(ctx)
	if err != nil {
		return nil, err
	}
	r, err := findRound(v, o.Ledger.Fold(), d.key)
	if err != nil {
		return nil, err
	}
	events, err := d.decide(r, notGiven)
	if err != nil {
		return nil, err
	}
	_, trial, err := r.Trial(events)
	if err != nil {
		return nil, refused(r, err)
	}
	p := &Plan{entry: roundEntry(d.action, d.key), Preview: Preview{Title: fmt.Sprintf(d.title, label(r)), Seen: SeenRound(r)}}
	if d.question != "" {
		p.Question = fmt.Sprintf(d.question, r.Facts.Name)
	}
	if d.warn != nil {
		d.warn(r, o.Now(), &p.Preview)
	}
	p.explain = func(p *Preview) {
		before := almanac.Join(v, o.Ledger.Fold())
		after := almanac.Join(v, trial)
		if c := events[0].Championship; c != nil {
			p.Effects = championshipEffects(before, after, c, r.Year)
		} else {
			p.Effects = effects(before, after, d.key)
		}
		p.compareVariants(before, after, r.Year)
	}
	p.do = func(ctx context.Context, request Request) (Answer, error) {
		return d.apply(ctx, o, fresh, request, p.Seen)
	}
	return p, nil
}

// refused adds the possible actions to an error of the ledger.
func refused(r *almanac.Round, err error) error {
	var refusal *ledger.RefusedError
	if !errors.As(err, &refusal) || refusal.Event.Championship != nil {
		return err
	}
	allowed := r.Allowed()
	if len(allowed) == 0 {
		return fmt.Errorf("%s (%d): %w; nothing can be decided about it now", label(r), r.Session, refusal.Err)
	}
	names := view.Each(allowed, func(d almanac.Decision) string { return string(d) })
	return fmt.Errorf("%s (%d): %w; what can be done about it now: %s", label(r), r.Session, refusal.Err, strings.Join(names, ", "))
}

// apply appends the decision to the ledger, if the round is still the one that was seen.
func (d decision) apply(ctx context.Context, o *Operator, fresh ledger.Fresh, request Request, seen string) (Answer, error) {
	facts, err := o.Facts(ctx)
	if err != nil {
		return Answer{}, err
	}
	v := facts.Archive.AsOf(o.Now())
	events, err := almanac.Decider{Ledger: fresh, View: v, Actor: request.Actor, Publishable: builder.Publishable}.Decide(ctx, d.key, func(r *almanac.Round) ([]ledger.Event, error) {
		if SeenRound(r) != seen {
			return nil, fmt.Errorf("%s: %w", label(r), ErrStale)
		}
		return d.decide(r, request.Reason)
	})
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Events: events, Unpublished: fmt.Sprintf("%s %d", strings.ReplaceAll(string(events[0].Type), "_", " "), d.key)}
	r, err := findRound(v, o.Ledger.Fold(), d.key)
	if err != nil {
		return answer, err
	}
	answer.Record = r
	switch {
	case events[0].Championship != nil:
		answer.Text = fmt.Sprintf(d.title, label(r)) + ": done."
	case events[0].Result != nil:
		answer.Text = fmt.Sprintf("Revision %d of the %s is verified.", events[0].Result.Revision, label(r))
	default:
		answer.Text = fmt.Sprintf("The %s is %s, start %s.", label(r), view.State(r.State), minute(r.Start))
	}
	return answer, nil
}

// effects describes the differences that clients would see in a round and in everything that depends on it.
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
		add("The round is %s; until now: %s.", view.State(y.State), view.State(x.State))
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

const mostMoves = 4

func standingEffects(before, after *almanac.Almanac, year int) []string {
	x, hadYear := before.Year(year)
	y, hasYear := after.Year(year)
	if !hadYear || !hasYear {
		return nil
	}
	drivers := moved("drivers", x.Drivers(), y.Drivers(), func(row almanac.DriverStanding) (string, string, almanac.Tally) {
		return string(row.Driver.ID), row.Driver.Name, row.Tally
	})
	return append(drivers, moved("constructors", x.Constructors(), y.Constructors(), func(row almanac.ConstructorStanding) (string, string, almanac.Tally) {
		return string(row.Team.ID) + " " + row.Engine, row.Team.Name, row.Tally
	})...)
}

// moved describes the rows of a championship that change. of returns the identity, the name and the tally of a row.
func moved[R any](what string, before, after []R, of func(R) (id, name string, tally almanac.Tally)) []string {
	tallies := map[string]almanac.Tally{}
	for _, row := range before {
		id, _, tally := of(row)
		tallies[id] = tally
	}
	var moves []string
	for _, row := range after {
		id, name, is := of(row)
		was := tallies[id]
		if was == is {
			continue
		}
		move := fmt.Sprintf("%s %g → %g points", name, was.Points, is.Points)
		switch {
		case is.Excluded && !was.Excluded:
			moves = slices.Insert(moves, 0, fmt.Sprintf("%s, %g points, has no rank", name, is.Points))
			continue
		case was.Position != is.Position && was.Position != 0:
			move += fmt.Sprintf(", P%d → P%d", was.Position, is.Position)
		}
		moves = append(moves, move)
	}
	switch n := len(moves); {
	case n == 0:
		return nil
	case n > mostMoves:
		return []string{fmt.Sprintf("Standings of the %s: %s; and %d more.", what, strings.Join(moves[:mostMoves], "; "), n-mostMoves)}
	default:
		return []string{fmt.Sprintf("Standings of the %s: %s.", what, strings.Join(moves, "; "))}
	}
}

func next(a *almanac.Almanac) string {
	if coming := a.Coming(); len(coming) > 0 {
		return fmt.Sprintf("the %s on %s", label(coming[0]), minute(coming[0].Start))
	}
	return "none"
}

// compareVariants lists the variants of a season, and those without one, whose bytes differ between two almanacs. It
// refuses an action after which they cannot be rendered. An earlier refusal stays.
func (p *Preview) compareVariants(before, after *almanac.Almanac, year int) {
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
		return // the published season cannot be compared, so it stays
	}
	y, err := bodies(after)
	if err != nil {
		p.Refusal = cmp.Or(p.Refusal, "the documents for clients cannot be rendered: "+err.Error())
		return
	}
	for path, body := range x {
		if y[path] == body { // no body is empty
			delete(x, path)
			delete(y, path)
		}
	}
	maps.Copy(x, y)
	p.Variants = slices.Sorted(maps.Keys(x))
}
