package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
)

// parser makes the action that a form asks for.
type parser func(c *Console, r *http.Request) (operator.Action, error)

// actions are the forms of the console, by path. Beside the fields of its action each form has: reason;
// seen, the state that the operator looked at; confirm, the answer to the question of the preview; force, to
// apply an action that the preview refuses.
var actions = map[string]parser{
	"POST /rebuild":                     form[operator.Rebuild],
	"POST /release":                     form[operator.ReleasePublishing],
	"POST /prune":                       form[operator.Prune],
	"POST /settings":                    form[operator.ChangeSettings],
	"POST /ledger/audit":                form[operator.AuditLedger],
	"POST /versions/{version}/rollback": form[operator.Rollback],
	"POST /versions/{version}/verify":   form[operator.CheckVersion],
	"POST /jobs/{job}/run":              form[operator.RunJob],
	"POST /results/verify":              form[operator.VerifyResults],
	"POST /results/{session}/verify":    form[operator.VerifyResult],
	"POST /results/{session}/enter":     form[operator.EnterResult],
	"POST /results/{session}/correct":   form[operator.CorrectResult],
	"POST /rounds/{session}/postpone":   form[operator.PostponeRound],
	"POST /rounds/{session}/cancel":     form[operator.CancelRound],
	"POST /rounds/{session}/move":       form[operator.MoveRound],
	"POST /rounds/{session}/reinstate":  form[operator.ReinstateRound],
	"POST /rounds/{session}/release":    form[operator.ReleaseRound],
	"POST /championship/{year}":         parseDecision,
	"POST /championship/{year}/restore": form[operator.RestoreCompetitor],
	"POST /championship/{year}/accept":  form[operator.AcceptDecision],
	"POST /race/{session}/order":        form[operator.SetOrder],
	"POST /facts/{session}/{block}":     form[operator.EnterDrivers],
	"POST /rounds/{session}/facts":      form[operator.ReleaseFacts],
	"POST /sources/changes/{id}/accept": form[operator.AcceptChange],
	"POST /sources/alias":               form[operator.MergeIdentities],
	"POST /calendar":                    parseCalendar,
	"POST /keys":                        form[operator.CreateKey],
	"POST /keys/prune":                  form[operator.PruneKeys],
	"POST /keys/{key}/revoke":           form[operator.RevokeKey],
	"POST /keys/{key}/rotate":           form[operator.RotateKey],
	"POST /keys/{key}/expire":           form[operator.ExpireKey],
	"POST /keys/{key}/tier":             form[operator.SetTier],
	"POST /keys/{key}/origins":          form[operator.SetOrigins],
	"POST /webhooks":                    form[operator.AddWebhook],
	"POST /webhooks/{hook}/rotate":      form[operator.RotateWebhook],
	"POST /webhooks/{hook}/test":        form[operator.TestWebhook],
	"POST /webhooks/{hook}/pause":       form[operator.PauseWebhook],
	"POST /webhooks/{hook}/resume":      form[operator.ResumeWebhook],
	"POST /webhooks/{hook}/remove":      form[operator.RemoveWebhook],
	"POST /archive":                     (*Console).parseImport,
	"POST /archive/use":                 form[operator.UseArchive],
}

// form reads the fields of an action from a form.
func form[A operator.Action](_ *Console, r *http.Request) (operator.Action, error) {
	var a A
	err := decode(r, &a)
	return a, err
}

// parseDecision makes the action of the form about a championship, by its field decision.
func parseDecision(c *Console, r *http.Request) (operator.Action, error) {
	switch decision := r.FormValue("decision"); decision {
	case "deduct":
		return form[operator.DeductPoints](c, r)
	case "add":
		return form[operator.AddPoints](c, r)
	case "exclude", "new-entry":
		return form[operator.ExcludeCompetitor](c, r)
	default:
		return nil, fmt.Errorf("decision: %q is none of deduct, add, exclude and new-entry", decision)
	}
}

// act applies the action of a form. If the action has a question, act first answers with status 428 and the
// preview, as a page with a second form or as JSON.
func (c *Console) act(parse parser) operatorFunc {
	return func(w http.ResponseWriter, r *http.Request, who visitor) {
		action, err := parse(c, r)
		if err != nil {
			c.refuseAction(w, r, err)
			return
		}
		request := operator.Request{Actor: who.actor(), Reason: field(r, "reason"), Seen: r.PostFormValue("seen"), Force: r.PostFormValue("force") != ""}
		confirmed := r.PostFormValue("confirm") != ""
		var (
			before    *snapshots.Base // the version published now
			beforeErr error
			reading   sync.WaitGroup
		)
		reading.Go(func() { before, beforeErr = c.loadBase(r.Context()) })
		plan, err := c.Operator.Look(r.Context(), action, request)
		if err == nil && (!confirmed || request.Seen == "") { // otherwise nobody reads the preview
			plan.Explain()
		}
		reading.Wait()
		if err == nil && !plan.Brief && !errors.Is(beforeErr, snapshots.ErrDamaged) { // a rollback is the way out of damage
			err = beforeErr
		}
		switch {
		case err != nil:
			c.refuseAction(w, r, err)
		case !request.Force && (plan.Refusal != "" || plan.Question != "" && !confirmed):
			c.ask(w, r, plan.Preview)
		case plan.Brief:
			answer, err := plan.Apply(r.Context())
			if err != nil {
				c.refuseAction(w, r, err)
				return
			}
			c.answer(w, r, answer)
		default:
			c.start(w, r, plan, before)
		}
	}
}

type createdSecret struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	Name  string `json:"name,omitzero"` // of a key, as is the tier
	Tier  string `json:"tier,omitzero"`
	Title string `json:"title,omitzero"` // of a secret
	Text  string `json:"text"`
	Back  string `json:"-"`
}

func (c *Console) answer(w http.ResponseWriter, r *http.Request, answer operator.Answer) {
	shown := createdSecret{Key: answer.Secret, Text: answer.Text}
	switch record := answer.Record.(type) {
	case keys.StoredKey:
		shown.ID, shown.Name, shown.Tier, shown.Back = record.ID, record.Name, record.Tier, "/#keys"
	case webhook.Hook:
		shown.ID, shown.Title, shown.Back = record.ID, "Secret of the webhook to "+record.Host(), "/#webhooks"
	default:
		panic(fmt.Sprintf("BUG: no page shows a %T", record))
	}
	switch page := wantsPage(r); {
	case shown.Key != "" && page:
		c.render(w, http.StatusOK, "secret", shown)
	case shown.Key != "":
		writeJSON(w, http.StatusOK, shown)
	case page:
		http.Redirect(w, r, shown.Back, http.StatusSeeOther)
	default:
		writeJSON(w, http.StatusOK, map[string]string{"id": shown.ID, "text": shown.Text})
	}
}

// refuseAction answers with the reason for a refusal, and with the remedy if there is one.
func (c *Console) refuseAction(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusUnprocessableEntity
	switch {
	case errors.Is(err, errNotFound), errors.Is(err, keys.ErrNoKey), errors.Is(err, webhook.ErrNoHook), errors.Is(err, operator.ErrNoJob), errors.Is(err, operator.ErrNoBlock):
		status = http.StatusNotFound
	case errors.Is(err, operator.ErrStale), errors.Is(err, operator.ErrOtherStore):
		status = http.StatusConflict
	}
	c.refuse(w, r, status, explain(err))
}

// confirmation is a preview and the fields of its form, for the second form.
type confirmation struct {
	operator.Preview
	Action string
	Back   string     // see back
	Fields url.Values // those of the form
}

const racePath = "/race"

// back is the page that a form leads back to: for an action on a round the page with its season.
func back(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, racePath+"/") {
		return racePath
	}
	session, err := strconv.ParseInt(r.PathValue("session"), 10, 64)
	if err != nil {
		return "/"
	}
	return fmt.Sprintf("/?season=%d#season", ledger.YearOf(session))
}

func (c *Console) ask(w http.ResponseWriter, r *http.Request, p operator.Preview) {
	if !wantsPage(r) {
		writeJSON(w, http.StatusPreconditionRequired, map[string]any{
			"ok": false, "error": "confirm", "message": strings.TrimSpace(p.Question + " Send the form again with seen and confirm=yes."), "preview": p,
		})
		return
	}
	fields := maps.Clone(r.PostForm)
	for _, name := range []string{"seen", "confirm", "force"} { // the second form has its own
		delete(fields, name)
	}
	c.render(w, http.StatusPreconditionRequired, "ask", confirmation{Preview: p, Action: r.URL.Path, Back: back(r), Fields: fields})
}

// start answers at once with a run and applies the plan in the background. The run ends when edges serve the
// version, if the action has one built. After Close start refuses the plan.
func (c *Console) start(w http.ResponseWriter, r *http.Request, plan *operator.Plan, before *snapshots.Base) {
	c.starting.Lock()
	if c.ctx.Err() != nil {
		c.starting.Unlock()
		c.refuse(w, r, http.StatusServiceUnavailable, "The scheduler is stopping, so nothing was changed. What to do: send the form again once it runs.")
		return
	}
	run := c.runs.begin(plan.Title, plan.Request.Actor, back(r))
	plan.Request.Progress = func(phase string, done, total int) { run.add(Event{Phase: Phase(phase), Done: done, Total: total}) }
	c.wg.Go(func() {
		last, err := c.apply(c.ctx, run, plan, before)
		if err != nil {
			c.Log.Warn("operator's request failed", "what", plan.Title, "operator", run.Operator, "err", err)
			run.add(Event{Phase: Failed, Error: explain(err)})
			return
		}
		c.Log.Info("operator's request done", "what", plan.Title, "operator", run.Operator)
		last.Phase = Done
		run.add(last)
	})
	c.starting.Unlock()
	c.answerRun(w, r, run)
}

// apply applies a plan. If the action leaves something unpublished, apply has a version built and waits for
// the edges. before is the version published at the time of the plan; nil: it could not be read.
func (c *Console) apply(ctx context.Context, run *Run, plan *operator.Plan, before *snapshots.Base) (Event, error) {
	run.add(Event{Phase: Prepare, Text: "recording it"})
	answer, err := plan.Apply(ctx)
	if err != nil {
		return Event{}, err
	}
	if answer.Unpublished != "" {
		run.add(Event{Phase: Prepare, Text: answer.Text})
		if c.Operator.Hold != nil {
			defer c.Operator.Hold()()
		}
		outcome, err := c.Operator.Build(ctx, builder.Request{At: c.Operator.Now(), Reason: answer.Unpublished, Progress: plan.Request.Progress})
		var unsettled *builder.UnsettledError
		switch {
		case outcome.Version > 0 && errors.As(err, &unsettled): // the notices on the page say it too
			run.add(Event{Phase: Prepare, Text: err.Error()})
		case err != nil:
			return Event{}, fmt.Errorf("%s But it is not published: %w", answer.Text, err)
		}
		// The service may have noticed the action and published its effects before this build had its turn.
		if before != nil && outcome.Version != before.Pointer.Version {
			outcome.Unchanged = false
		}
		answer.Receipt = &outcome.Receipt
	}
	switch {
	case answer.Receipt == nil:
		return Event{Text: answer.Text}, nil
	case answer.Unpublished == "": // otherwise the service notifies them
		Notify(ctx, c.Edges)
	}
	result, err := c.awaitServed(ctx, run, before, *answer.Receipt)
	return Event{Result: &result, Text: result.summary()}, err
}
