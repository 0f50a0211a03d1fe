package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridcast/builder"
	"gridcast/builder/season"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
)

// parser makes the action that a form asks for. Its error is a *formError.
type parser func(c *Console, r *http.Request) (operator.Action, error)

// actions are the forms of the console, by where they are sent. Each has beside its own fields:
// reason; seen, what the operator looked at; confirm, the answer to the question of its preview;
// force, to do what the preview refuses.
var actions = map[string]parser{
	"POST /rebuild":                     (*Console).parseRebuild,
	"POST /release":                     fixed(operator.ReleasePublishing{}),
	"POST /prune":                       parsePrune,
	"POST /settings":                    parseSettings,
	"POST /ledger/audit":                fixed(operator.AuditLedger{}),
	"POST /versions/{version}/rollback": ofVersion(func(v int64) operator.Action { return operator.Rollback{Version: v} }),
	"POST /versions/{version}/verify":   ofVersion(func(v int64) operator.Action { return operator.CheckVersion{Version: v} }),
	"POST /jobs/{job}/run": func(_ *Console, r *http.Request) (operator.Action, error) {
		return operator.RunJob{Name: r.PathValue("job")}, nil
	},
	"POST /results/{session}/verify": ofRound(func(k int64, _ *http.Request) (operator.Action, error) { return operator.VerifyResult(k), nil }),
	"POST /results/{session}/enter": ofRound(func(k int64, r *http.Request) (operator.Action, error) {
		return operator.EnterResult(k, classification(r)), nil
	}),
	"POST /results/{session}/correct":  ofRound(parseCorrect),
	"POST /rounds/{session}/postpone":  ofRound(func(k int64, _ *http.Request) (operator.Action, error) { return operator.PostponeRound(k), nil }),
	"POST /rounds/{session}/cancel":    ofRound(func(k int64, _ *http.Request) (operator.Action, error) { return operator.CancelRound(k), nil }),
	"POST /rounds/{session}/move":      ofRound(parseMove),
	"POST /rounds/{session}/reinstate": ofRound(parseReinstate),
	"POST /rounds/{session}/release":   ofRound(func(k int64, _ *http.Request) (operator.Action, error) { return operator.ReleaseRound(k), nil }),
	"POST /facts/{session}/{block}":    ofRound(parseFacts),
	"POST /rounds/{session}/facts":     ofRound(parseReleaseFacts),
	"POST /sources/changes/{id}/accept": func(_ *Console, r *http.Request) (operator.Action, error) {
		return operator.AcceptChange{ID: r.PathValue("id")}, nil
	},
	"POST /sources/alias": parseAlias,
	"POST /calendar":      parseCalendar,
	"POST /keys":          parseCreateKey,
	"POST /keys/{key}/revoke": func(_ *Console, r *http.Request) (operator.Action, error) {
		return operator.RevokeKey{ID: r.PathValue("key")}, nil
	},
	"POST /keys/{key}/rotate":      parseRotateKey,
	"POST /keys/{key}/expire":      parseExpireKey,
	"POST /keys/{key}/origins":     parseOrigins,
	"POST /webhooks":               parseAddWebhook,
	"POST /webhooks/{hook}/rotate": parseRotateWebhook,
	"POST /webhooks/{hook}/test":   ofWebhook(func(id string) operator.Action { return operator.TestWebhook{ID: id} }),
	"POST /webhooks/{hook}/pause":  ofWebhook(func(id string) operator.Action { return operator.PauseWebhook{ID: id} }),
	"POST /webhooks/{hook}/resume": ofWebhook(func(id string) operator.Action { return operator.ResumeWebhook{ID: id} }),
	"POST /webhooks/{hook}/remove": ofWebhook(func(id string) operator.Action { return operator.RemoveWebhook{ID: id} }),
	"POST /archive":                (*Console).parseImport,
	"POST /archive/use":            parseUseArchive,
}

// formError is a fault in a form, and the status to refuse it with.
type formError struct {
	status int
	text   string
}

func (e *formError) Error() string { return e.text }

func badForm(format string, args ...any) error {
	return &formError{http.StatusUnprocessableEntity, fmt.Sprintf(format, args...)}
}

func fixed(d operator.Action) parser {
	return func(*Console, *http.Request) (operator.Action, error) { return d, nil }
}

// field is what a form has in a field, without blanks around it.
func field(r *http.Request, name string) string { return strings.TrimSpace(r.PostFormValue(name)) }

// parseRebuild: a program may say on which store, so that it does not reach the scheduler of
// another one.
func (c *Console) parseRebuild(r *http.Request) (operator.Action, error) {
	if store := r.PostFormValue("store"); store != "" && store != c.Operator.Store.String() {
		return nil, &formError{http.StatusConflict, fmt.Sprintf("this scheduler works on %s, not on %s", c.Operator.Store, store)}
	}
	return operator.Rebuild{}, nil
}

func parsePrune(_ *Console, r *http.Request) (operator.Action, error) {
	keep, err := strconv.Atoi(field(r, "keep"))
	if err != nil || keep < 1 {
		return nil, badForm("how many versions to keep: %q: enter a number of at least 1", field(r, "keep"))
	}
	return operator.Prune{Keep: keep}, nil
}

// parseSettings: a field that is left empty leaves its setting as it is.
func parseSettings(_ *Console, r *http.Request) (operator.Action, error) {
	var d operator.ChangeSettings
	if model := field(r, "model"); model != "" {
		d.Model = &model
	}
	for name, rule := range map[string]**time.Duration{"verify": &d.AutoVerifyAfter, "revise": &d.AutoReviseAfter} {
		text := field(r, name)
		if text == "" {
			continue
		}
		hours, err := strconv.ParseFloat(text, 64)
		if err != nil || !(0 <= hours && hours <= 24*365) {
			return nil, badForm("hours after which results %s by rule: %q: enter a number", name, text)
		}
		after := time.Duration(hours * float64(time.Hour)).Round(time.Second)
		*rule = &after
	}
	if field(r, "headshots") == "none" {
		d.Headshots = &season.Headshots{}
	}
	return d, nil
}

func ofVersion(make func(int64) operator.Action) parser {
	return func(_ *Console, r *http.Request) (operator.Action, error) {
		version, err := strconv.ParseInt(r.PathValue("version"), 10, 64)
		if err != nil || version < 1 {
			return nil, &formError{http.StatusNotFound, "no such version"}
		}
		return make(version), nil
	}
}

func ofRound(make func(int64, *http.Request) (operator.Action, error)) parser {
	return func(_ *Console, r *http.Request) (operator.Action, error) {
		key, err := strconv.ParseInt(r.PathValue("session"), 10, 64)
		if err != nil {
			return nil, &formError{http.StatusNotFound, "no such session key"}
		}
		return make(key, r)
	}
}

// classification is the order that a form has, drivers' codes with anything between them.
func classification(r *http.Request) operator.Classification {
	notCode := func(r rune) bool { return (r < 'A' || 'Z' < r) && (r < 'a' || 'z' < r) && r != '-' }
	return operator.Classification{Order: strings.FieldsFunc(r.PostFormValue("order"), notCode)}
}

// parseCorrect: a form gives an order, or drivers who are disqualified, of the race or of the sprint, or
// nothing: then the source's present classification is meant.
func parseCorrect(key int64, r *http.Request) (operator.Action, error) {
	c := classification(r)
	c.Sprint = r.PostFormValue("sprint") != ""
	c.Disqualify = strings.Fields(strings.ReplaceAll(r.PostFormValue("disqualify"), ",", " "))
	if driver, seconds := field(r, "penalised"), field(r, "penalty"); driver != "" || seconds != "" {
		penalty, err := strconv.ParseFloat(seconds, 64)
		if err != nil || penalty <= 0 || driver == "" {
			return nil, badForm("a time penalty needs a driver and seconds, such as NOR and 5")
		}
		c.Penalties = map[string]time.Duration{driver: time.Duration(penalty * float64(time.Second))}
	}
	return operator.CorrectResult(key, c), nil
}

// start reads a start as a browser gives it, which is UTC here, or as an instant.
func start(r *http.Request) (time.Time, error) {
	text := field(r, "start")
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, badForm("the start %q: enter a day and an hour, UTC", text)
}

func parseMove(key int64, r *http.Request) (operator.Action, error) {
	at, err := start(r)
	return operator.MoveRound(key, at), err
}

func parseReinstate(key int64, r *http.Request) (operator.Action, error) {
	if field(r, "start") == "" {
		return operator.ReinstateRound(key, time.Time{}), nil
	}
	at, err := start(r)
	return operator.ReinstateRound(key, at), err
}

func parseCreateKey(_ *Console, r *http.Request) (operator.Action, error) {
	d := operator.CreateKey{Client: field(r, "client"), Tier: r.PostFormValue("tier"), Origins: strings.Fields(r.PostFormValue("origins"))}
	at, err := expiry(r)
	d.Expires = at
	return d, err
}

// expiry reads the last day on which a key is valid; zero if none is given.
func expiry(r *http.Request) (time.Time, error) {
	text := field(r, "expires")
	if text == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, badForm("the last day %q: enter it as 2027-01-31", text)
	}
	return day.AddDate(0, 0, 1), nil
}

func parseRotateKey(_ *Console, r *http.Request) (operator.Action, error) {
	days, err := strconv.Atoi(field(r, "grace"))
	if err != nil || days < 0 {
		return nil, badForm("days for which the old key works on: %q: enter a number", field(r, "grace"))
	}
	return operator.RotateKey{ID: r.PathValue("key"), Grace: time.Duration(days) * 24 * time.Hour}, nil
}

func parseExpireKey(_ *Console, r *http.Request) (operator.Action, error) {
	at, err := expiry(r)
	return operator.ExpireKey{ID: r.PathValue("key"), At: at}, err
}

func parseOrigins(_ *Console, r *http.Request) (operator.Action, error) {
	return operator.SetOrigins{ID: r.PathValue("key"), Origins: strings.Fields(r.PostFormValue("origins"))}, nil
}

// action carries out what a form asks for. What has to be confirmed is first shown: with the
// status 428 and the preview, which a browser without scripts gets as a form of its own.
func (c *Console) action(parse parser) operatorFunc {
	return func(w http.ResponseWriter, r *http.Request, who visitor) {
		action, err := parse(c, r)
		if err != nil {
			c.refuseAction(w, r, err)
			return
		}
		request := operator.Request{Actor: who.actor(), Reason: field(r, "reason"), Seen: r.PostFormValue("seen"), Force: r.PostFormValue("force") != ""}
		var (
			p         operator.Preview
			before    *snapshots.Base // what is published now, of an action that may change that
			beforeErr error
			reading   sync.WaitGroup
		)
		if !quick(action) {
			reading.Go(func() { before, beforeErr = c.loadBase(r.Context()) })
		}
		if r.PostFormValue("confirm") == "" {
			if p, err = c.Operator.Preview(r.Context(), action); err == nil {
				err = p.StillOf(request.Seen)
			}
		} else { // they have answered the question: nobody reads what the action does
			p, err = c.Operator.Check(r.Context(), action, request.Seen)
		}
		reading.Wait()
		if err == nil && !errors.Is(beforeErr, snapshots.ErrDamaged) { // a rollback is the way out of damage
			err = beforeErr
		}
		if err == nil {
			err = operator.Complete(action, request)
		}
		switch {
		case err != nil:
			c.refuseAction(w, r, err)
		case (p.Question != "" || p.Refusal != "") && r.PostFormValue("confirm") == "" && !request.Force,
			p.Refusal != "" && !request.Force:
			c.ask(w, r, p)
		case quick(action):
			done, err := c.Operator.Apply(r.Context(), action, request, p)
			if err != nil {
				c.refuseAction(w, r, err)
				return
			}
			if done.Webhook != nil {
				c.answerWebhook(w, r, done)
				return
			}
			c.answerKey(w, r, done)
		default:
			c.start(w, r, action, request, p, before)
		}
	}
}

// quick says that an action is over at once, and its answer is about a key or a webhook.
func quick(d operator.Action) bool {
	switch d.(type) {
	case operator.CreateKey, operator.RotateKey, operator.RevokeKey, operator.ExpireKey, operator.SetOrigins,
		operator.AddWebhook, operator.RotateWebhook, operator.PauseWebhook, operator.ResumeWebhook, operator.RemoveWebhook:
		return true
	}
	return false
}

// refuseAction says why an action is not done, and what the operator can do about it.
func (c *Console) refuseAction(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusUnprocessableEntity
	var form *formError
	switch {
	case errors.As(err, &form):
		status = form.status
	case errors.Is(err, keys.ErrNoKey), errors.Is(err, webhook.ErrNoHook), errors.Is(err, operator.ErrNoJob):
		status = http.StatusNotFound
	case errors.Is(err, operator.ErrChanged):
		status = http.StatusConflict
	}
	c.refuse(w, r, status, explain(err))
}

// asked is the preview of an action with the form that it came from.
type asked struct {
	operator.Preview
	Action string
	Fields []formField // those of the form
}

type formField struct{ Name, Value string }

// ask shows what an action would do, and how to confirm it.
func (c *Console) ask(w http.ResponseWriter, r *http.Request, p operator.Preview) {
	if !wantsPage(r) {
		writeJSON(w, http.StatusPreconditionRequired, map[string]any{
			"ok": false, "error": "confirm", "message": strings.TrimSpace(p.Question + " Send the form again with seen and confirm=yes."), "preview": p,
		})
		return
	}
	a := asked{Preview: p, Action: r.URL.Path}
	for name, values := range r.PostForm {
		if name != "seen" && name != "confirm" && name != "force" {
			for _, value := range values {
				a.Fields = append(a.Fields, formField{name, value})
			}
		}
	}
	c.render(w, http.StatusPreconditionRequired, "ask", a)
}

// start begins an action that takes a while and answers the request. The action goes on when the
// request is over, and ends with a version being served, where it has one built.
func (c *Console) start(w http.ResponseWriter, r *http.Request, action operator.Action, request operator.Request, p operator.Preview, before *snapshots.Base) {
	run := c.runs.begin(p.Title, request.Actor)
	request.Progress = func(phase string, done, total int) { run.tell(Event{Phase: Phase(phase), Done: done, Total: total}) }
	c.wg.Go(func() {
		last, err := c.apply(c.ctx, run, action, request, p, before)
		if err != nil {
			c.Log.Warn("operator's request failed", "what", p.Title, "operator", request.Actor, "err", err)
			run.tell(Event{Phase: Failed, Error: explain(err)})
			return
		}
		c.Log.Info("operator's request done", "what", p.Title, "operator", request.Actor)
		last.Phase = Done
		run.tell(last)
	})
	c.answerRun(w, r, run)
}

// apply does what was previewed as p while before was published; nil: that could not be read.
func (c *Console) apply(ctx context.Context, run *Run, action operator.Action, request operator.Request, p operator.Preview, before *snapshots.Base) (Event, error) {
	run.tell(Event{Phase: Prepare, Text: "recording it"})
	done, err := c.Operator.Apply(ctx, action, request, p)
	if err != nil {
		return Event{}, err
	}
	if done.Unpublished != "" {
		run.tell(Event{Phase: Prepare, Text: done.Text})
		if c.Operator.Hold != nil {
			defer c.Operator.Hold()()
		}
		outcome, err := c.Operator.Build(ctx, builder.Request{At: c.Operator.Now(), Reason: done.Unpublished, Progress: request.Progress})
		if err != nil {
			return Event{}, fmt.Errorf("%s But it is not published: %w", done.Text, err)
		}
		// The service may have noticed the action, and published what follows from it, before this build had its turn.
		if before != nil && outcome.Version != before.Pointer.Version {
			outcome.Unchanged = false
		}
		done.Receipt = &outcome.Receipt
	}
	switch {
	case done.Receipt == nil:
		return Event{Text: done.Text}, nil
	case done.Unpublished == "": // else the service that built it has told them
		c.tellEdges(ctx)
	}
	result, err := c.awaitServed(ctx, run, before, *done.Receipt)
	return Event{Result: &result, Text: result.summary()}, err
}
