package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
)

// Points are points that a decision adds or takes: more than none, and finite.
type Points float64

// UnmarshalText reads a number of points.
func (p *Points) UnmarshalText(text []byte) error {
	points, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(points > 0) || points > 10_000 {
		return fmt.Errorf("points are a number above 0, such as 15 or 7.5, not %q", text)
	}
	*p = Points(points)
	return nil
}

// Competitor names a competitor of a championship, and the first round whose table a decision changes.
type Competitor struct {
	published

	Year         int    `arg:"" form:"year" required:"" help:"The season."`
	ID           string `arg:"" form:"id" required:"" help:"The driver or the team, by identifier, code or name."`
	Constructors bool   `help:"A team of the constructors' championship. Default: a driver of the drivers'." env:"-"`
	Engine       string `help:"The engine of the team, by identifier, where the season ranks its engines apart." placeholder:"ID" env:"-"`
}

// From names the round from which on a decision counts.
type From struct {
	From int64 `help:"Session key of the first round whose table has the decision. Default: the latest round in the table." placeholder:"KEY" env:"-"`
}

// DeductPoints takes points from a competitor of a championship, by a decision that no race shows.
type DeductPoints struct {
	Competitor

	Points Points `arg:"" form:"points" required:"" help:"The points to take."`
	From
}

func (d DeductPoints) look(ctx context.Context, o *Operator) (*Plan, error) {
	return d.plan(ctx, o, auditlog.DeductPoints, fmt.Sprintf("Take %g points from", float64(d.Points)), d.From.From, ledger.Championship{Points: -float64(d.Points)})
}

// AddPoints gives points to a competitor of a championship, by a decision that no race shows.
type AddPoints struct {
	Competitor

	Points Points `arg:"" form:"points" required:"" help:"The points to add."`
	From
}

func (d AddPoints) look(ctx context.Context, o *Operator) (*Plan, error) {
	return d.plan(ctx, o, auditlog.AddPoints, fmt.Sprintf("Add %g points to", float64(d.Points)), d.From.From, ledger.Championship{Points: float64(d.Points)})
}

// ExcludeCompetitor takes the rank in a championship from a competitor. The results stay.
type ExcludeCompetitor struct {
	Competitor
	From

	NewEntry bool `name:"new-entry" form:"-" help:"Exclude the entry of the team that ends with the round before; the team goes on without its points." env:"-"`
}

// ReadForm reads the decision of a form that has several.
func (d *ExcludeCompetitor) ReadForm(field func(string) string) error {
	d.NewEntry = field("decision") == "new-entry"
	return nil
}

func (d ExcludeCompetitor) look(ctx context.Context, o *Operator) (*Plan, error) {
	return d.plan(ctx, o, auditlog.ExcludeCompetitor, "Exclude", d.From.From, ledger.Championship{Excluded: !d.NewEntry, NewEntry: d.NewEntry})
}

// RestoreCompetitor ends a decision about a competitor: the tables are as if it had not been made.
type RestoreCompetitor struct {
	Competitor

	Decision int `help:"Number of the decision, from championship list; needed if several stand." placeholder:"N" env:"-"`
}

func (d RestoreCompetitor) look(ctx context.Context, o *Operator) (*Plan, error) {
	y, is, _, err := d.find(ctx, o)
	if err != nil {
		return nil, err
	}
	var ours []string
	var stand []almanac.ChampionshipDecision
	for n, c := range y.Decisions() {
		if c.EventID != "" && c.Is(is.Constructors, is.Competitor, c.Engine) && (is.Engine == "" || is.Engine == c.Engine) && (d.Decision == 0 || d.Decision == n+1) {
			stand, ours = append(stand, c), append(ours, fmt.Sprintf("%d: %s, %s", n+1, &c.Championship, c.Reason))
		}
	}
	switch {
	case len(stand) == 0:
		return nil, fmt.Errorf("restore %s: no such decision of a person stands; gridcast championship list %d shows all", is.Competitor, y.Year)
	case len(stand) > 1:
		return nil, fmt.Errorf("restore %s: %d decisions stand (%s); say which one with --decision", is.Competitor, len(stand), strings.Join(ours, "; "))
	}
	d.Engine = string(stand[0].Engine)
	return d.plan(ctx, o, auditlog.RestoreCompetitor, "End the decision \""+stand[0].Championship.String()+"\" about", stand[0].Session, ledger.Championship{Restores: stand[0].EventID})
}

// AcceptDecision enters the decision about a competitor that only the source's table shows.
type AcceptDecision struct{ Competitor }

func (d AcceptDecision) look(ctx context.Context, o *Operator) (*Plan, error) {
	y, is, _, err := d.find(ctx, o)
	if err != nil {
		return nil, err
	}
	offers := y.Offers()
	for _, offer := range offers {
		if offer.Constructors == is.Constructors && offer.Competitor == is.Competitor && (is.Engine == "" || is.Engine == offer.Engine) {
			d.Engine = string(offer.Engine)
			return d.plan(ctx, o, auditlog.AcceptDecision, "Accept from the source's table \""+offer.Championship.String()+"\" about", offer.From.Session,
				ledger.Championship{Points: offer.Points, Excluded: offer.Excluded, NewEntry: offer.NewEntry})
		}
	}
	waits := view.Each(offers, func(offer almanac.Offer) string { return offer.String() })
	return nil, fmt.Errorf("accept: the source's table of the %s of %d shows no decision about %s; it shows: %s",
		almanac.ChampionshipName(is.Constructors), y.Year, is.Competitor, cmp.Or(strings.Join(waits, "; "), "none"))
}

// find returns the season and the competitor, whose name is the last value.
func (c Competitor) find(ctx context.Context, o *Operator) (*almanac.Year, ledger.Championship, string, error) {
	is := ledger.Championship{Constructors: c.Constructors, Engine: season.EngineID(c.Engine)}
	a, err := o.Almanac(ctx)
	if err != nil {
		return nil, is, "", err
	}
	y, ok := a.Year(c.Year)
	if !ok || len(y.Rounds) == 0 {
		return nil, is, "", fmt.Errorf("no season %d is known; gridcast archive show lists the seasons", c.Year)
	}
	id, name, err := y.Competitor(c.Constructors, c.ID)
	if before, ok := a.Year(c.Year - 1); err != nil && len(y.Progress()) == 0 && ok { // a decision before the first race
		if earlier, called, found := before.Competitor(c.Constructors, c.ID); found == nil {
			id, name, err = earlier, called, nil
		}
	}
	if errors.Is(err, almanac.ErrNoCompetitor) {
		if _, _, other := y.Competitor(!c.Constructors, c.ID); other == nil && c.Constructors {
			err = fmt.Errorf("%w; without --constructors it is a driver", err)
		} else if other == nil {
			err = fmt.Errorf("%w; with --constructors it is a team", err)
		}
	}
	is.Competitor = id
	return y, is, name, err
}

// plan plans the decision. text is the verb phrase of its title; from is the key of the round, 0 for the default.
func (c Competitor) plan(ctx context.Context, o *Operator, verb auditlog.Verb, text string, from int64, what ledger.Championship) (*Plan, error) {
	y, is, name, err := c.find(ctx, o)
	if err != nil {
		return nil, err
	}
	what.Constructors, what.Competitor, what.Engine = is.Constructors, is.Competitor, is.Engine
	progress := y.Progress()
	first := slices.MinFunc(y.Rounds, func(a, b *almanac.Round) int { return a.Start.Compare(b.Start) }).Session
	counted := func(key int64) bool {
		return slices.ContainsFunc(progress, func(p almanac.Championship) bool { return p.Round.Session == key })
	}
	switch {
	case from == 0 && len(progress) > 0:
		from = progress[len(progress)-1].Round.Session
	case from == 0:
		from = first
	case !counted(from) && (len(progress) > 0 || from != first) && what.Restores == "":
		return nil, fmt.Errorf("a decision counts from a round in the table of %d on, or before the first table from the first round on: %d is neither; gridcast rounds list --year %d shows the keys",
			c.Year, from, c.Year)
	}
	if what.NewEntry && !what.Constructors {
		return nil, errors.New("only a team enters anew: give --constructors")
	}
	championship := almanac.ChampionshipName(what.Constructors) + "' championship"
	return decision{
		action: verb, key: from, title: text + " " + name + ", " + championship + ", from the %s on",
		question: text + " " + name + " in the " + championship + " from the %s on?",
		decide: func(_ *almanac.Round, reason string) ([]ledger.Event, error) {
			return []ledger.Event{{Type: ledger.ChampionshipDecided, Year: c.Year, Session: from, Reason: reason, Championship: &what}}, nil
		},
	}.plan(ctx, o)
}

func championshipEffects(before, after *almanac.Almanac, what *ledger.Championship, year int) []string {
	text := standingEffects(before, after, year)
	if len(text) == 0 {
		text = []string{noEffect}
	}
	if y, ok := after.Year(year); ok && what.Points < 0 {
		least := math.Inf(1)
		for _, row := range y.Drivers() {
			if !what.Constructors && string(row.Driver.ID) == what.Competitor {
				least = row.Points
			}
		}
		for _, row := range y.Constructors() {
			if what.Constructors && string(row.Team.ID) == what.Competitor {
				least = min(least, row.Points)
			}
		}
		if least < 0 {
			text = append(text, fmt.Sprintf("Readers see 0 points: the other %g come off later points.", -least))
		}
	}
	return text
}
