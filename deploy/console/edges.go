package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"gridcast/deploy/view"
	"gridcast/edge"
	"gridcast/scheduler/probe"
	"gridcast/schemas/wire"
)

// Edge is an edge, seen from the operator's port.
type Edge interface {
	// Name identifies the edge for people.
	Name() string
	// Status returns the state of the edge.
	Status(ctx context.Context) (edge.StatusDocument, error)
	// Usage returns the counters of each key.
	Usage(ctx context.Context) (edge.UsageDocument, error)
	// Look makes the edge poll the store at once. Without Look it follows within a second or two.
	Look(ctx context.Context)
}

// Local returns an edge in this process.
func Local(e *edge.Edge) Edge { return localEdge{e} }

type localEdge struct{ edge *edge.Edge }

func (l localEdge) Name() string                                        { return "this process" }
func (l localEdge) Status(context.Context) (edge.StatusDocument, error) { return l.edge.Status(), nil }

func (l localEdge) Usage(context.Context) (edge.UsageDocument, error) { return l.edge.Usage(), nil }

func (l localEdge) Look(context.Context) { l.edge.Look() }

// Remote returns the edge with an admin port at an address, host:port or a URL.
func Remote(address string) Edge {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return remoteEdge{strings.TrimSuffix(address, "/")}
}

// Remotes returns the edges at several addresses.
func Remotes(addresses []string) []Edge { return view.Each(addresses, Remote) }

type remoteEdge struct{ url string }

func (r remoteEdge) Name() string {
	_, host, _ := strings.Cut(r.url, "://")
	return probe.Name(host)
}

func (r remoteEdge) Status(ctx context.Context) (edge.StatusDocument, error) {
	return ask[edge.StatusDocument](ctx, r.url+"/status")
}

func (r remoteEdge) Usage(ctx context.Context) (edge.UsageDocument, error) {
	return ask[edge.UsageDocument](ctx, r.url+"/usage")
}

func (r remoteEdge) Look(ctx context.Context) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/look", nil)
	if err != nil {
		return // Status reports the problem
	}
	if response, err := edgeClient.Do(request); err == nil {
		_ = response.Body.Close() // it has none
	}
}

// maxAnswer limits an edge's answer, in bytes: the usage of some 300,000 keys.
const maxAnswer = 64 << 20

var edgeClient = &http.Client{Timeout: 2 * time.Second}

// ask reads a value from the envelope of the API.
func ask[T any](ctx context.Context, address string) (T, error) {
	var answer wire.Success[T]
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	var response *http.Response
	if err == nil {
		response, err = edgeClient.Do(request)
	}
	if err != nil {
		return answer.Data, fmt.Errorf("it does not answer: %w", errors.Unwrap(err)) // a *url.Error, whose text repeats the address
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return answer.Data, fmt.Errorf("%s answers %s; is this an edge's --admin-listen?", probe.Name(address), response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return answer.Data, fmt.Errorf("%s does not answer as an edge does: %w", probe.Name(address), err)
	}
	return answer.Data, nil
}

// EdgeReport is the state of one edge.
type EdgeReport struct {
	Name    string
	Status  edge.StatusDocument
	Problem string // why the edge did not answer; empty: it did
}

// EdgeFault is a problem of an edge, and its remedy.
type EdgeFault struct {
	Text string `json:"text"` // continues "the edge …"
	Fix  string `json:"mend"` // the command
}

// Faults returns the problems of the edge while the given version is published.
func (r *EdgeReport) Faults(published int64) (faults []EdgeFault) {
	add := func(fix, format string, args ...any) {
		faults = append(faults, EdgeFault{fmt.Sprintf(format, args...), fix})
	}
	s := &r.Status
	if r.Problem != "" {
		add("gridcast edge, if it is not running; --edges must name its --admin-listen", "cannot be asked: %s", r.Problem)
		return faults
	}
	if s.Refused != nil && s.Version < published {
		add("gridcast snapshots verify, then gridcast snapshots rollback to a version that is whole", "refused version %d: %s", s.Refused.Version, s.Refused.Reason)
	}
	if s.StoreProblem != "" {
		add("gridcast status, on the edge's machine, gives the same error until the storage is back", "cannot read the store: %s", s.StoreProblem)
	} else if s.Stale && s.Version > 0 {
		add("gridcast edge, started again: it begins with its own copy", "has not known for 30 seconds whether its version is the current one")
	}
	if s.Keys.Problem != "" {
		add("gridcast keys list", "cannot read the keys: %s", s.Keys.Problem)
	}
	if s.Keys.Behind != "" {
		add("gridcast keys list --store, with the store of that edge", "may accept a revoked key: %s", s.Keys.Behind)
	}
	if !s.Ready {
		fix := "gridcast build"
		if !s.Keys.Loaded {
			fix = "gridcast keys create"
		}
		add(fix, "is not ready: %s", s.NotReady)
	}
	if s.Certificate != nil && s.Certificate.Expiring {
		add("a new certificate where gridcast edge --tls-cert and --tls-key point; it is read at once", "has a certificate that is valid until %s only", s.Certificate.Expires)
	}
	if s.LimitsFault != "" {
		add("the Redis of gridcast edge --redis, started again", "counts for itself: %s", s.LimitsFault)
	}
	return faults
}

// Notify makes all edges poll the store concurrently, because a version was published.
func Notify(ctx context.Context, edges []Edge) {
	var notifying sync.WaitGroup
	defer notifying.Wait()
	for _, e := range edges {
		notifying.Go(func() { e.Look(ctx) })
	}
}

// AskEdges polls all edges concurrently.
func AskEdges(ctx context.Context, edges []Edge) []EdgeReport {
	reports := make([]EdgeReport, len(edges))
	var wg sync.WaitGroup
	for i, e := range edges {
		wg.Go(func() {
			r := EdgeReport{Name: e.Name()}
			var err error
			if r.Status, err = e.Status(ctx); err != nil {
				r.Problem = err.Error()
			}
			reports[i] = r
		})
	}
	wg.Wait()
	return reports
}
