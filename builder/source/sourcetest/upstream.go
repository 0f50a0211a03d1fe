package sourcetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gridcast/builder/source"
)

// Open returns an upstream that reads recordings.
func Open(t testing.TB, open func(base, userAgent string) (source.Upstream, error), api *Replay) source.Upstream {
	t.Helper()
	u, err := open(api.URL, "gridcast-test (operator@example.org)")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Fetched fetches and reads a first document of an upstream.
func Fetched(t testing.TB, u source.Upstream, now time.Time, from, to int) (source.Document, error) {
	t.Helper()
	payload, err := u.Fetch(t.Context(), now, from, to, source.Known{})
	if err != nil {
		return source.Document{}, err
	}
	return u.Read(payload.Packed)
}

// Outages are unusable answers, each with the fault that the operator sees.
type Outages = []struct {
	Name        string
	Status      int
	ContentType string
	Body        string
	Kind        source.FaultKind
	Says        string // part of the reason
}

// TestOutages lets an API answer every request with each outage. A fetch must fail with its fault.
func TestOutages(t *testing.T, start func(testing.TB) *Replay, outages Outages, fetch func(*testing.T, *Replay) error) {
	t.Helper()
	for _, outage := range outages {
		t.Run(outage.Name, func(t *testing.T) {
			api := start(t)
			api.Instead(Answer(outage.Status, outage.ContentType, outage.Body))
			err := fetch(t, api)
			var fault *source.Fault
			if !errors.As(err, &fault) || fault.Kind != outage.Kind || !strings.Contains(err.Error(), outage.Says) {
				t.Errorf("got %v, want a fault of kind %s that says %q", err, outage.Kind, outage.Says)
			}
		})
	}
}
