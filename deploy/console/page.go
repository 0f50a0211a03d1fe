package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/scheduler"
)

// page is everything the console shows, at one instant.
type page struct {
	names      map[int64]string // of rounds, by session key
	Operator   string
	MayOperate bool // else they only look
	RaceTime   time.Time
	Speed      float64
	Kind       ledger.Kind
	Run        *runView // the latest, if it was begun lately

	Problem   string // why versions are not built
	Notices   []notice
	Served    served
	Next      *comingRace
	Jobs      []jobView
	Missing   []almanac.MissingFact // facts that are overdue
	Waiting   []waitingResult
	Differing []differingResult
	Control   []controlledRound
	Calendar  string // of the season as it is known, as a table that can be changed and imported
	Season    seasonView
	Record    recordView
	Versions  []versionView
	Keys      []keyView
	Tiers     []string
	Webhooks  []hookView
	Topics    []string // of webhooks
	MaySign   bool     // webhooks can be added and tested here
	Settings  []operator.Setting
	Models    []string // that can make the picks
	Sources   []operator.Source
	Archives  []archive.Listing
	Audit     []auditView
	AuditAll  int // entries in the log
	Damaged   []auditlog.Damage
}

// notice is something the operator should see first, and what to do about it.
type notice struct {
	Urgent  bool
	Text    string
	Advice  string
	Section string // id of the section to go to
}

// shown are the numbers of rows that the page has room for.
const (
	shownVersions = 12
	shownAudit    = 25
	shownArchives = 10
	runStaysFor   = 5 * time.Minute
)

// collect looks at everything once. What can not be read is a notice on the page: the rest is
// needed all the more.
func (c *Console) collect(ctx context.Context, who visitor) page {
	now := c.Operator.Now()
	state := c.Operator.Ledger.Current(now)
	p := page{
		Operator: who.name, MayOperate: who.role == operator.Operate, RaceTime: now, Speed: c.Speed, Kind: state.Kind(),
		Jobs: jobViews(c.Operator.Jobs()), Tiers: c.Operator.Tiers.Names(),
	}
	if run := c.runs.current(); run != nil && (!run.Ended() || time.Since(run.Began) < runStaysFor) {
		view := viewOf(run)
		p.Run = &view
	}
	if c.Problem != nil {
		p.Problem = c.Problem()
	}
	if c.Sources != nil {
		p.Sources = c.Sources()
	}
	reports := AskEdges(ctx, c.Edges)
	p.trouble(c.collectServed(ctx, &p, reports), "The store cannot be read", "Check the storage. Edges go on serving what they have.", "served")
	p.trouble(c.collectSeason(ctx, &p, now, state), "The season cannot be joined with the ledger", "Run gridcast ledger audit: it names the file that does not hold.", "season")
	p.trouble(c.collectVersions(ctx, &p), "The versions cannot be listed", "Check the storage.", "versions")
	p.trouble(c.collectKeys(ctx, &p, reports), "The keys can not be read", "Check the storage. Edges go on with the keys they have.", "keys")
	p.trouble(c.collectWebhooks(ctx, &p), "The webhooks cannot be read", "Check the storage.", "webhooks")
	settings, err := settings.Load(ctx, c.Operator.Store)
	p.trouble(err, "The settings of the store cannot be read", "Check the storage. Picks are made by what each process was told.", "jobs")
	p.Settings, p.Models = operator.SettingsOf(settings), predict.Names
	archives, err := archive.NewStore(c.Operator.Store).List(ctx)
	p.trouble(err, "The archives cannot be listed", "Check the storage.", "sources")
	p.Archives = archives[:min(len(archives), shownArchives)]
	p.trouble(c.collectAudit(ctx, &p), "The audit log can not be read, so nothing can be changed from here", "Check the storage.", "audit")
	p.notices()
	return p
}

// trouble makes a notice of an error.
func (p *page) trouble(err error, what, advice, section string) {
	if err != nil {
		p.Notices = append(p.Notices, notice{Urgent: true, Text: what + ": " + err.Error(), Advice: advice, Section: section})
	}
}

// notices adds what follows from the state as a whole.
func (p *page) notices() {
	add := func(urgent bool, section, advice, format string, args ...any) {
		p.Notices = append(p.Notices, notice{Urgent: urgent, Text: fmt.Sprintf(format, args...), Advice: advice, Section: section})
	}
	if p.Problem != "" {
		add(true, "rebuild", "It is tried again by itself; what is published is served meanwhile.", "Versions are not built: %s", p.Problem)
	}
	if p.Served.Held {
		add(true, "versions", "Release it under Versions once the cause is gone.", "Publishing is held: %s", p.Served.HeldReason)
	}
	if late := p.Served.OverdueBy(p.RaceTime); late > time.Minute && !p.Served.Held {
		add(true, "rebuild", "Rebuild now; if that fails the error says why.", "The published version is overdue by %s", longTime(late))
	}
	for _, d := range p.Served.Refused {
		add(true, "versions", "It stays as it was before. What to do: correct the fact that the reason names, or go back with gridcast archive use, then gridcast rebuild.",
			"The document %s is out of date: what was made in its place is wrong: %s", d.Path, d.Reason)
	}
	for _, d := range p.Damaged {
		add(true, "audit", "It goes on after the damage. Compare the file with a backup: somebody or something changed the record.", "The audit log is damaged at %s", d)
	}
	for _, fact := range p.Missing {
		section := "sources"
		if fact.Code == almanac.ResultMissed {
			section = "waiting"
		}
		add(true, section, "What to do: "+fact.Fix+".", "%s; overdue since %s UTC", sentence(fact.Text), clockTime(fact.Since))
	}
	for _, w := range p.Waiting {
		if w.Digest != "" {
			add(false, "waiting", "Compare it with the official document and verify it.", "The result of the %s waits for verification", w.Name)
		}
	}
	for _, d := range p.Differing {
		add(false, "waiting", "Compare both with the official document. If the source is right, take its classification.",
			"The source has another classification of the %s of %d than the verified one", d.Name, d.Year)
	}
	for _, e := range p.Served.Edges {
		for _, fault := range e.Faults {
			add(true, "served", "What to do: "+fault.Fix+".", "Edge %s %s", e.Name, fault.Text)
		}
		if e.Behind && len(e.Faults) == 0 {
			add(false, "served", "It follows within seconds. If it stays, look at its log.", "Edge %s serves version %d", e.Name, e.Version)
		}
	}
	for _, j := range p.Jobs {
		if j.LastError != "" {
			add(true, "jobs", "It is tried again by itself; run it now once the cause is gone.", "The job %s failed: %s", j.Name, j.LastError)
		}
	}
	for _, s := range p.Sources {
		if s.State != nil && len(s.State.Held) > 0 {
			add(false, "sources", "Look at what differs, and accept it or leave it.", "%s of the source %s wait for you", changes(len(s.State.Held)), s.Name)
		}
		if s.State != nil && len(s.State.Disputed) > 0 {
			add(false, "sources", "A result on which sources disagree does not verify itself.", "The source %s disagrees about %s", s.Name, parts(len(s.State.Disputed)))
		}
		if s.Problem != "" {
			add(true, "sources", "Picks and published data stay as they are. gridcast status says what is missing.", "The source %s fails: %s", s.Name, s.Problem)
		}
	}
	p.webhookNotices(add)
	slices.SortStableFunc(p.Notices, func(a, b notice) int { return cmp.Compare(rank(a.Urgent), rank(b.Urgent)) })
}

// sentence makes text the beginning of one.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func rank(urgent bool) int {
	if urgent {
		return 0
	}
	return 1
}

// jobView is how a job stands.
type jobView struct {
	scheduler.JobStatus
	State string // in a word
	Bad   bool
}

func jobViews(all []scheduler.JobStatus) []jobView {
	views := make([]jobView, len(all))
	for i, s := range all {
		v := jobView{JobStatus: s, State: "waiting"}
		switch {
		case s.Running:
			v.State = "running"
		case s.LastError != "":
			v.State, v.Bad = "failed", true
		case s.Pending:
			v.State = "about to run"
		}
		views[i] = v
	}
	return views
}

// auditView is an entry of the audit log, with its failure if it had one.
type auditView struct {
	auditlog.Line
	Failure string
}

func (c *Console) collectAudit(ctx context.Context, p *page) error {
	if err := c.Operator.Audit.Refresh(ctx); err != nil {
		return err
	}
	entries := c.Operator.Audit.Entries()
	p.AuditAll, p.Damaged = len(entries), c.Operator.Audit.Damage()
	failures := map[int64]string{}
	for _, e := range slices.Backward(entries) {
		if e.Action == auditlog.Failed {
			failures[e.Of] = e.Reason
			continue
		}
		p.Audit = append(p.Audit, auditView{e, failures[e.Seq]})
		if len(p.Audit) == shownAudit {
			break
		}
	}
	return nil
}

func (c *Console) showPage(w http.ResponseWriter, r *http.Request, who visitor) {
	p := c.collect(r.Context(), who)
	c.render(w, http.StatusOK, "page", &p)
}

func (c *Console) collectSeason(ctx context.Context, p *page, now time.Time, state *ledger.Fold) error {
	facts, err := c.Operator.Facts(ctx)
	if err != nil {
		return err
	}
	a := almanac.Join(facts.Archive.AsOf(now), state)
	p.names = roundNames(a)
	p.Next = nextRace(a)
	for _, r := range a.Waiting() {
		p.Waiting = append(p.Waiting, newWaiting(r))
	}
	for _, r := range a.Differing() {
		p.Differing = append(p.Differing, newDiffering(r))
	}
	p.Missing = almanac.Missing(facts.Archive.AsOf(now), state)
	p.Season = newSeason(a)
	p.trouble(c.collectControl(ctx, p, a), "Race control cannot be made", "Check the storage.", "control")
	p.Record = newRecord(a)
	return nil
}
