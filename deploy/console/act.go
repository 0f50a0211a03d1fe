package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/deploy/auditlog"
	"gridcast/scheduler"
	"gridcast/snapshots"
)

// actor is the operator as ledger and audit log name him.
func actor(operator string) string { return "operator:" + operator }

// reason is why, in the operator's words.
func reason(r *http.Request) string { return strings.TrimSpace(r.PostFormValue("reason")) }

// progressFunc is told how far a build is.
type progressFunc = func(phase string, done, total int)

// rebuild builds and publishes now. A program may say on which store, so that it does not
// reach the scheduler of another one.
func (c *Console) rebuild(w http.ResponseWriter, r *http.Request, operator string) {
	if store := r.PostFormValue("store"); store != "" && store != c.Store.String() {
		c.refuse(w, r, http.StatusConflict, fmt.Sprintf("this scheduler works on %s, not on %s", c.Store, store))
		return
	}
	why := reason(r)
	if why == "" {
		c.refuse(w, r, http.StatusUnprocessableEntity, "say why in a few words: the reason stands in the version and in the audit log")
		return
	}
	c.publishRun(w, r, publishing{
		title:   "Rebuild: " + why,
		change:  auditlog.Change{Actor: actor(operator), Action: auditlog.Rebuild, Reason: why},
		publish: c.build(builder.Request{Reason: why}),
	})
}

// release ends a hold and builds.
func (c *Console) release(w http.ResponseWriter, r *http.Request, operator string) {
	why := reason(r)
	if why == "" {
		c.refuse(w, r, http.StatusUnprocessableEntity, "say why publishing may go on: the reason stands in the audit log")
		return
	}
	c.publishRun(w, r, publishing{
		title:   "Release and build",
		change:  auditlog.Change{Actor: actor(operator), Action: auditlog.Release, Reason: why},
		publish: c.build(builder.Request{Reason: why, Release: true}),
	})
}

// verifyResult vouches for a classification and publishes what follows from it.
func (c *Console) verifyResult(w http.ResponseWriter, r *http.Request, operator string) {
	key, err := strconv.ParseInt(r.PathValue("session"), 10, 64)
	if err != nil {
		c.refuse(w, r, http.StatusNotFound, "no such session key")
		return
	}
	seen := r.PostFormValue("seen")
	if seen == "" {
		c.refuse(w, r, http.StatusUnprocessableEntity, "the form does not say which classification you looked at; reload the page")
		return
	}
	c.publishRun(w, r, publishing{
		title:     fmt.Sprintf("Verify the result of %d and rebuild", key),
		change:    auditlog.Change{Actor: actor(operator), Action: auditlog.VerifyResult, Subject: strconv.FormatInt(key, 10), Reason: reason(r)},
		firstText: "writing the verification to the ledger",
		first: func(ctx context.Context) error {
			return c.vouch(ctx, key, seen, actor(operator))
		},
		publish: c.build(builder.Request{Reason: fmt.Sprintf("result of %d verified", key)}),
	})
}

// errOtherResult: the source now has another classification than the one that was looked at.
var errOtherResult = errors.New("the classification has changed since it was looked at")

// vouch verifies the source's classification of a round, if it is still the one of the digest.
func (c *Console) vouch(ctx context.Context, key int64, seen, actor string) error {
	v := c.Facts().Archive.AsOf(c.RaceTime())
	_, err := almanac.Decide(ctx, c.Ledger, v, actor, key, func(r *almanac.Round) ([]ledger.Event, error) {
		if rows := r.Source(); rows != nil && digest(rows) != seen {
			return nil, fmt.Errorf("verify %d: %w", key, errOtherResult)
		}
		return r.Verify()
	})
	return err
}

// digest names a classification, to tell whether it is still the one that was looked at.
func digest(rows []ledger.Row) string {
	data, err := json.Marshal(rows)
	if err != nil {
		panic("BUG: rows of a classification: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// build returns the publish step of a build as of the moment it runs.
func (c *Console) build(request builder.Request) func(context.Context, progressFunc) (snapshots.Receipt, error) {
	return func(ctx context.Context, progress progressFunc) (snapshots.Receipt, error) {
		request.At, request.Progress = c.RaceTime(), progress
		outcome, err := c.Build(ctx, request)
		return outcome.Receipt, err
	}
}

// rollback publishes an earlier version again and holds the pointer.
func (c *Console) rollback(w http.ResponseWriter, r *http.Request, operator string) {
	version, ok := c.version(w, r)
	if !ok {
		return
	}
	why := reason(r)
	if why == "" {
		c.refuse(w, r, http.StatusUnprocessableEntity, "say why: clients and colleagues see the reason while publishing is held")
		return
	}
	c.publishRun(w, r, publishing{
		title:  fmt.Sprintf("Roll back to version %d", version),
		change: auditlog.Change{Actor: actor(operator), Action: auditlog.Rollback, Subject: strconv.FormatInt(version, 10), Reason: why},
		publish: func(ctx context.Context, progress progressFunc) (snapshots.Receipt, error) {
			p := *c.Publisher
			p.Progress = progress
			return p.Rollback(ctx, version, c.Name, why, c.RaceTime())
		},
	})
}

// verifyVersion reads every object of a version again and says whether all are what they
// should be. It changes nothing.
func (c *Console) verifyVersion(w http.ResponseWriter, r *http.Request, operator string) {
	version, ok := c.version(w, r)
	if !ok {
		return
	}
	run := c.runs.begin(fmt.Sprintf("Check every object of version %d", version), actor(operator))
	c.wg.Go(func() {
		found, err := snapshots.Verify(c.ctx, c.Store, version, func(_ string, done, total int) {
			run.tell(Event{Phase: Check, Done: done, Total: total})
		})
		switch {
		case err != nil:
			run.tell(Event{Phase: Failed, Error: explain(err)})
		case len(found.Faults) > 0:
			run.tell(Event{Phase: Failed, Error: fmt.Sprintf("%d of %d objects are wrong: %v. What to do: roll back to a version that is whole, then rebuild.",
				len(found.Faults), found.Objects, errors.Join(found.Faults...))})
		default:
			run.tell(Event{Phase: Done, Text: fmt.Sprintf("Version %d is whole: %d objects, %d bytes read and compared.", version, found.Objects, found.Bytes)})
		}
	})
	c.answerRun(w, r, run)
}

// version is the version in the path of a request; false if there is none and the request has
// been answered.
func (c *Console) version(w http.ResponseWriter, r *http.Request) (int64, bool) {
	version, err := strconv.ParseInt(r.PathValue("version"), 10, 64)
	if err != nil || version < 1 {
		c.refuse(w, r, http.StatusNotFound, "no such version")
		return 0, false
	}
	return version, true
}

// runJob has a job run at once and reports how that run went.
func (c *Console) runJob(w http.ResponseWriter, r *http.Request, operator string) {
	name := r.PathValue("job")
	if !slices.ContainsFunc(c.Jobs(), func(s scheduler.Status) bool { return s.Name == name }) {
		c.refuse(w, r, http.StatusNotFound, "no job of that name")
		return
	}
	change := auditlog.Change{Actor: actor(operator), Action: auditlog.RunJob, Subject: name, Reason: reason(r)}
	c.start(w, r, "Run the job "+name, change, func(ctx context.Context, run *Run) (Event, error) {
		outcome, err := c.RunJob(name, "asked for by "+operator)
		if err != nil {
			return Event{}, err
		}
		run.tell(Event{Phase: Change, Text: "waiting for its turn, then running"})
		select {
		case err := <-outcome:
			return Event{Text: "The job " + name + " has run without an error."}, err
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	})
}
