package console

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/deploy/view"
	"gridcast/scheduler"
	"gridcast/schemas/frame"
)

type page struct {
	names map[int64]string // of rounds, by session key
	alone bool             // the page shows the running race alone

	Operator   string
	MayOperate bool // otherwise they can only read
	RaceTime   time.Time
	Speed      float64
	Kind       ledger.Kind
	Run        *runAnswer // the latest run, if it is recent
	Problem    string     // why versions are not built
	Notices    []notice
	Release    string // of the program

	Served   served
	Next     *view.Round  // the scheduled one that starts first; nil if none is known
	Race     *raceSection // nil: none may be observed now
	Results  resultsSection
	Control  controlSection
	Season   seasonSection
	Record   recordSection
	Versions []view.VersionRow
	Keys     keysSection
	Webhooks webhooksSection
	Jobs     []scheduler.JobStatus
	Settings settingsSection
	Sources  sourcesSection
	Audit    auditSection
}

// resultsSection lists the results that need a decision: the last ones of each kind, and how many there are.
type resultsSection struct {
	Waiting      []waitingResult // the source has a classification
	AllWaiting   int
	All, Earlier string          // all of them and those that are not shown, for people; empty: there are none
	Missing      []waitingResult // the source has none
	Differing    []differingResult
	AllDiffering int
}

type settingsSection struct {
	List   []operator.Setting
	Models []string
}

// sourcesSection lists the sources of facts, the overdue facts, and the archives of the store.
type sourcesSection struct {
	List     []operator.Source
	Missing  []almanac.MissingFact
	Archives []archive.Listing
}

func (s *sourcesSection) states() (states []ingest.PollState) {
	for _, source := range s.List {
		if source.State != nil {
			states = append(states, *source.State)
		}
	}
	return states
}

type auditSection struct {
	List    []auditRow
	All     int // entries in the log
	Damaged []auditlog.Damage
}

// notice is a problem with its remedy, at the top of the page.
type notice struct {
	Urgent  bool
	Text    string
	Advice  string
	Section string // id of the section to go to
}

// The page shows at most so many rows.
const (
	shownVersions = 12
	shownAudit    = 25
	shownArchives = 10
	runStaysFor   = 5 * time.Minute
)

// collect reads everything once, with the picks of one season. A failed read becomes a notice, because then the rest
// is needed all the more.
func (c *Console) collect(ctx context.Context, who visitor, year int) page {
	now := c.Operator.Now()
	state := c.Operator.Ledger.Current(now)
	p := page{
		Operator: who.name, MayOperate: who.role == operator.Operate, RaceTime: now, Speed: c.Speed, Kind: state.Kind(), Release: c.Release,
		Jobs: c.Operator.Jobs(),
	}
	if run := c.runs.current(); run != nil && (!run.Last().Ends() || time.Since(run.Began) < runStaysFor) {
		answer := answerOf(run)
		p.Run = &answer
	}
	if c.Problem != nil {
		p.Problem = c.Problem()
	}
	if c.Sources != nil {
		p.Sources.List = c.Sources()
	}
	reports := AskEdges(ctx, c.Edges)
	p.trouble(c.collectServed(ctx, &p, reports), "The store cannot be read", "Check the storage. Edges go on serving what they have.", "served")
	c.collectRace(ctx, &p)
	p.trouble(c.collectSeason(ctx, &p, now, state, year), "The season cannot be joined with the ledger", "Run gridcast ledger audit: it names the damaged file.", "season")
	p.trouble(c.collectVersions(ctx, &p), "The versions cannot be listed", "Check the storage.", "versions")
	p.trouble(c.collectKeys(ctx, &p), "The keys cannot be read", "Check the storage. Edges go on with the keys they have.", "keys")
	p.trouble(c.collectWebhooks(ctx, &p), "The webhooks cannot be read", "Check the storage.", "webhooks")
	settings, err := settings.Load(ctx, c.Operator.Store)
	p.trouble(err, "The settings of the store cannot be read", "Check the storage. Each process uses its own flags meanwhile.", "jobs")
	p.Settings = settingsSection{operator.SettingsOf(settings), predict.Names}
	archives, err := archive.NewStore(c.Operator.Store).List(ctx)
	p.trouble(err, "The archives cannot be listed", "Check the storage.", "sources")
	p.Sources.Archives = archives[:min(len(archives), shownArchives)]
	p.trouble(c.collectAudit(ctx, &p), "The audit log cannot be read, so no action can be applied here", "Check the storage.", "audit")
	p.notices()
	return p
}

// Fold returns the attributes of the fold of a section: it is open while a notice points to the section. The next
// race is open too until it starts, and then the running race until its result waits. In a narrow window the other sections show their heading alone.
func (p *page) Fold(section string) template.HTMLAttr {
	for _, n := range p.Notices {
		if n.Section == section || section == "control" && strings.HasPrefix(n.Section, "facts-") || section == "season" && n.Section == "championship" {
			return " open data-due"
		}
	}
	switch {
	case section == "next" && p.Race == nil:
		return " open"
	case section == "race" && (p.alone || !slices.ContainsFunc(p.Results.Waiting, func(w waitingResult) bool { return w.Session == p.Race.SessionKey })):
		return " open data-due"
	}
	return ""
}

func (p *page) trouble(err error, what, advice, section string) {
	if err != nil {
		p.add(true, section, advice, "%s: %s", what, err)
	}
}

// blocksMissed are the parts of a round that a person can enter at once, by the fact that is missing.
var blocksMissed = map[almanac.MissingCode]assemble.Block{almanac.QualifyingMissed: assemble.Qualifying, almanac.GridMissed: assemble.Grid}

// notices adds the notices about the state that was read, and puts the urgent ones first.
func (p *page) notices() {
	p.versionNotices()
	for _, d := range p.Audit.Damaged {
		p.add(true, "audit", "Later entries are still recorded. A file of the log was changed: compare it with a backup.", "The audit log is damaged at %s", d)
	}
	p.factNotices()
	p.resultNotices()
	for _, e := range p.Served.Edges {
		for _, fault := range e.Faults {
			p.add(true, "served", "What to do: "+fault.Fix+".", "Edge %s %s", e.Name, fault.Text)
		}
		if e.Behind && len(e.Faults) == 0 {
			p.add(false, "served", "It should follow within seconds. If it does not, read its log.", "Edge %s serves version %d", e.Name, e.Status.Version)
		}
	}
	for _, j := range p.Jobs {
		if j.LastError != "" {
			p.add(true, "jobs", "The scheduler runs it again by itself; run it now once the cause is gone.", "The job %s failed: %s", j.Name, j.LastError)
		}
	}
	p.sourceNotices()
	p.webhookNotices()
	p.usageNotices()
	slices.SortStableFunc(p.Notices, func(a, b notice) int { return cmp.Compare(rank(a.Urgent), rank(b.Urgent)) })
}

func (p *page) add(urgent bool, section, advice, format string, args ...any) {
	p.Notices = append(p.Notices, notice{Urgent: urgent, Text: fmt.Sprintf(format, args...), Advice: advice, Section: section})
}

func (p *page) versionNotices() {
	if p.Problem != "" {
		p.add(true, "rebuild", "The scheduler tries again by itself. Clients get the published version meanwhile.", "Versions are not built: %s", p.Problem)
	}
	if p.Served.Held {
		p.add(true, "versions", "Clients get the version rolled back to. Release it under Versions once the cause is gone.", "Publishing is held: %s", p.Served.HeldReason)
	}
	if late := p.Served.OverdueBy(p.RaceTime); late > time.Minute && !p.Served.Held {
		p.add(true, "rebuild", "Clients get the older version. Rebuild now; if it fails, the error names the cause.", "The published version is overdue by %s", frame.LongTime(late))
	}
	const refused = "What to do: correct the fact that the reason names, or go back with gridcast archive use, then gridcast rebuild."
	switch of := p.Served.Refused; {
	case len(of) > 1:
		p.add(true, "versions", refused, "%d documents keep an earlier content. The document %s", len(of), of[0])
	case len(of) == 1:
		p.add(true, "versions", refused, "The document %s", of[0])
	}
}

// factNotices adds the overdue facts. Each leads to the section where a person can enter it.
func (p *page) factNotices() {
	unanswered := operator.Unanswered(p.Sources.states())
	for _, fact := range view.Missing(p.Sources.Missing, unanswered) {
		section := "sources"
		switch fact.Code {
		case almanac.ResultMissed:
			section = "waiting"
		case almanac.PickMissing:
			section = "control"
		case almanac.DecisionWaits:
			section = "championship"
		case almanac.QualifyingMissed, almanac.GridMissed:
			if section = "control"; fact.Session != 0 { // else it sums up several rounds
				section = fmt.Sprintf("facts-%d-%s", fact.Session, blocksMissed[fact.Code])
			}
		}
		p.add(fact.Urgent || !unanswered, section, "What to do: "+fact.Fix+".", "%s; overdue since %s UTC", view.Sentence(fact.Text), clockTime(fact.Since))
	}
}

func (p *page) resultNotices() {
	switch n := p.Results.AllWaiting; {
	case n > 1:
		p.add(false, "waiting", "Compare each with the official document and verify it.", "%s wait for verification", p.Results.All)
	case n == 1:
		p.add(false, "waiting", "Compare it with the official document and verify it.", "The result of the %s waits for verification", p.Results.Waiting[0].Name)
	}
	switch n := p.Results.AllDiffering; {
	case n > 1:
		p.add(false, "waiting", "Compare each with the official document. If the source is right, take its classification.",
			"The source has other classifications of %d races than the verified ones", n)
	case n == 1:
		d := p.Results.Differing[0]
		p.add(false, "waiting", "Compare both with the official document. If the source is right, take its classification.",
			"The source has another classification of the %s of %d than the verified one", d.Name, d.Year)
	}
}

func (p *page) sourceNotices() {
	for _, s := range p.Sources.List {
		if s.State != nil && len(s.State.Held) > 0 {
			p.add(false, "sources", "Compare the differences, and accept the change or leave it held.", "%s of the source %s wait for you", view.Count(len(s.State.Held), "One change", "changes"), s.Name)
		}
		if s.State != nil && len(s.State.Disputed) > 0 {
			p.add(false, "sources", "A result on which sources disagree does not verify itself.", "The source %s disagrees about %s", s.Name, view.Count(len(s.State.Disputed), "one part of a round", "parts of rounds"))
		}
		if s.Problem != "" {
			p.add(true, "sources", "Picks and published data stay. gridcast status lists the missing facts.", "The source %s fails: %s", s.Name, s.Problem)
		}
	}
}

func rank(urgent bool) int {
	if urgent {
		return 0
	}
	return 1
}

// auditRow is an entry of the audit log, with the reason if the action failed.
type auditRow struct {
	auditlog.AuditLine
	Failure string
}

func (c *Console) collectAudit(ctx context.Context, p *page) error {
	if err := c.Operator.Audit.Refresh(ctx); err != nil {
		return err
	}
	entries := c.Operator.Audit.Entries()
	p.Audit.All, p.Audit.Damaged = len(entries), c.Operator.Audit.Damage()
	failures := map[int64]string{}
	for _, e := range slices.Backward(entries) {
		if e.Action == auditlog.Failed {
			failures[e.Of] = e.Reason
			continue
		}
		p.Audit.List = append(p.Audit.List, auditRow{e, failures[e.Seq]})
		if len(p.Audit.List) == shownAudit {
			break
		}
	}
	return nil
}

func (c *Console) showPage(w http.ResponseWriter, r *http.Request, who visitor) {
	year, _ := strconv.Atoi(r.URL.Query().Get("season")) // otherwise the current one
	p, name := c.collect(r.Context(), who, year), "page"
	if r.URL.Path == racePath {
		p.alone, name = true, "race-page"
	}
	c.render(w, http.StatusOK, name, &p)
}

func (c *Console) collectSeason(ctx context.Context, p *page, now time.Time, state *ledger.Fold, year int) error {
	facts, err := c.Operator.Facts(ctx)
	if err != nil {
		return err
	}
	a := almanac.Join(facts.Archive.AsOf(now), state)
	p.names = roundNames(a)
	if coming := a.Coming(); len(coming) > 0 {
		next := view.RoundOf(coming[0])
		p.Next = &next
	}
	p.Results = newResults(a)
	p.Sources.Missing = almanac.Missing(facts.Archive.AsOf(now), state, now)
	p.Season = newSeason(a, year)
	p.trouble(c.collectControl(ctx, p, a), "Race control cannot be made", "Check the storage.", "control")
	p.Record = newRecord(a)
	return nil
}
