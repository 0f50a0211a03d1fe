package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/operator"
	"gridcast/snapshots"
)

// DefaultEdgesWait is the default of Config.EdgesWait. An edge whose storage answers takes a
// version in about a second.
const DefaultEdgesWait = 15 * time.Second

// askEvery is the interval at which a run polls an edge.
const askEvery = 20 * time.Millisecond

// awaitServed waits until the edges serve a published version, and lists the variants that differ from those in before.
func (c *Console) awaitServed(ctx context.Context, run *Run, before *snapshots.Base, receipt snapshots.Receipt) (Result, error) {
	result := Result{
		Version: receipt.Version, Unchanged: receipt.Unchanged, Changed: []string{},
		ObjectsWritten: receipt.ObjectsWritten, ObjectsReused: receipt.ObjectsReused, BuildSeconds: receipt.Seconds,
	}
	c.awaitEdges(ctx, run, &result) // first, because the edges take a while
	if before == nil || before.Pointer.Version == receipt.Version {
		return result, nil
	}
	var m snapshots.Manifest
	if receipt.Base != nil {
		m = receipt.Base.Manifest
	} else {
		var err error
		if m, err = snapshots.LoadManifest(ctx, c.Operator.Store, receipt.Version); err != nil {
			return Result{}, err
		}
	}
	for _, e := range m.Entries {
		if old, ok := before.Entry(e.Path); !ok || old.SHA256 != e.SHA256 {
			result.Changed = append(result.Changed, e.Path)
		}
	}
	return result, nil
}

// awaitEdges waits until every edge serves the version, or a later one.
func (c *Console) awaitEdges(ctx context.Context, run *Run, result *Result) {
	ctx, cancel := context.WithTimeout(ctx, c.EdgesWait)
	defer cancel()
	result.Edges = make([]EdgeResult, len(c.Edges))
	var served sync.Mutex
	count := 0
	run.add(Event{Phase: Serve, Total: len(c.Edges), Text: fmt.Sprintf("version %d is published; edges take it", result.Version)})
	var wg sync.WaitGroup
	for i, e := range c.Edges {
		wg.Go(func() {
			r := EdgeResult{Name: e.Name(), Problem: awaitVersion(ctx, e, result.Version)}
			r.Seconds = time.Since(run.Began).Seconds()
			result.Edges[i] = r
			if r.Problem == "" {
				served.Lock()
				defer served.Unlock()
				count++
				run.add(Event{Phase: Serve, Done: count, Total: len(c.Edges), Text: r.Name + " serves it"})
			}
		})
	}
	wg.Wait()
	result.ServedSeconds = time.Since(run.Began).Seconds()
	if count > 0 && count == len(c.Edges) {
		result.ServedSince = time.Now().UTC()
	}
}

// awaitVersion returns why the edge does not serve the version, or nothing once it does.
func awaitVersion(ctx context.Context, e Edge, version int64) string {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	problem := ""
	for {
		status, err := e.Status(ctx)
		switch {
		case err == nil && status.Version >= version:
			return ""
		case ctx.Err() != nil: // the earlier problem is more precise
		case err != nil:
			problem = err.Error()
		case status.StoreProblem != "":
			problem = "it cannot read the store: " + status.StoreProblem
		default:
			problem = fmt.Sprintf("it still serves version %d", status.Version)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return problem
		}
	}
}

func (r Result) summary() string {
	if r.Unchanged {
		return fmt.Sprintf("Nothing has changed: version %d is up to date.", r.Version)
	}
	text := fmt.Sprintf("Version %d, %d variants changed, ", r.Version, len(r.Changed))
	var behind []string
	for _, e := range r.Edges {
		if e.Problem != "" {
			behind = append(behind, e.Name)
		}
	}
	switch {
	case len(r.Edges) == 0:
		return text + "is published. Name the edges with --edges to see when they serve it."
	case len(behind) > 0:
		return text + "is published, but not served by " + strings.Join(behind, " and ") + "."
	}
	return fmt.Sprintf("%sserved since %s UTC, %.2f s after you asked.", text, r.ServedSince.Format("15:04:05"), r.ServedSeconds)
}

// remedies are the errors that an operator can mend.
var remedies = []struct {
	err    error
	advice string
}{
	{snapshots.ErrHeld, "a rollback holds publishing; press “Release and build” once the cause is gone"},
	{operator.ErrStale, "another operator or a source changed it; reload the page and look again"},
	{ledger.ErrAlreadyVerified, "somebody was faster; correct it, with a reason"},
	{snapshots.ErrBaseChanged, "another version was published meanwhile; look at it and try again"},
	{snapshots.ErrMayNotFollow, "nothing was published; check that ledger and archive are the ones you mean"},
	{context.Canceled, "the scheduler is stopping; try again once it runs"},
}

func explain(err error) string {
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return err.Error() + ". What to do: " + r.advice + "."
		}
	}
	return err.Error()
}
