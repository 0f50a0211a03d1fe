package openf1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/snapshots/blob"
)

// Watcher reads the running order of a race from OpenF1 and hands over each observation. It needs an account, because
// OpenF1 answers nobody else during a session.
type Watcher struct {
	Base           string // of the API, without a slash at the end
	User, Password string
	Client         *http.Client
	Log            *slog.Logger

	live.Host // of the present Watch

	token    string
	tokenAt  time.Time
	requests []time.Time // of the last minute
	session  int         // OpenF1's key; 0: not found yet
	timing   *timing
	latest   map[string]time.Time // the latest date of an endpoint
	stored   map[int]bool         // laps that the log has
	told     map[string]bool      // faults that were logged

	mu     sync.Mutex // guards health
	health live.Health
}

// Name names the source for operators.
func (w *Watcher) Name() string { return "openf1" }

// The limits of a watcher.
const (
	everyRound     = 11 * time.Second // five requests
	everyWhole     = time.Minute      // reads every endpoint from the start
	overlap        = time.Minute      // of two readings, for rows that come late
	oldGaps        = 10 * time.Minute
	maxPerMinute   = 30
	tokenLife      = 50 * time.Minute
	shortestPause  = 2 * time.Second
	longestPause   = time.Minute
	maxAnswer      = 32 << 20
	requestTimeout = 20 * time.Second
	sinceLayout    = "2006-01-02T15:04:05.000"
)

// Health returns the state of the source.
func (w *Watcher) Health() live.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health
}

// answered records the end of a round of requests, and returns the number of failures in a row.
func (w *Watcher) answered(err error) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.health = live.Health{Answered: w.Now()}
		return 0
	}
	w.health.Failures++
	w.health.Problem = err.Error()
	return w.health.Failures
}

// Watch observes a race until it is over, or until ctx or the time for it ends. Failures are retried with growing pauses.
func (w *Watcher) Watch(ctx context.Context, host live.Host, race live.Fixture, until time.Time) error {
	w.Host = host
	w.session, w.timing, w.latest, w.told = 0, newTiming(), map[string]time.Time{}, map[string]bool{}
	w.stored = map[int]bool{}
	whole := time.Time{} // when everything was read
	for ctx.Err() == nil && w.Now().Before(until) {
		began := w.Now()
		all := began.Sub(whole) >= everyWhole
		err := w.read(ctx, race, all)
		pause := everyRound - w.Now().Sub(began)
		if failures := w.answered(err); failures > 0 {
			pause = backOff(failures, err)
			w.complain(err)
		} else if all {
			whole = began
		}
		over, observeErr := w.handOver(ctx, race)
		if observeErr != nil {
			w.complain(observeErr)
		} else if over && err == nil {
			return nil
		}
		if err := w.Wait(ctx, max(pause, 0)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// complain logs a fault, each text once.
func (w *Watcher) complain(err error) {
	if text := err.Error(); !w.told[text] {
		w.told[text] = true
		w.Log.Warn("running order", "source", "openf1", "err", err)
	}
}

// handOver stores the observations in the rows. It reports whether the race has been over for so long that its last lap has come.
// Observations that are stored already are no news.
func (w *Watcher) handOver(ctx context.Context, race live.Fixture) (over bool, err error) {
	seen, faults := w.timing.observe(race, w.Now(), w.stored)
	for _, fault := range faults {
		w.complain(fault)
	}
	for _, o := range seen {
		if _, fault := w.Observe(ctx, o); fault != nil {
			err = errors.Join(err, fault)
		} else if o.Lap > 0 {
			w.stored[o.Lap] = true
		}
		over = over || o.Phase == live.Over && w.Now().Sub(o.At) > everyWhole
	}
	return over, err
}

// read reads the rows since the last reading, or all of them.
func (w *Watcher) read(ctx context.Context, race live.Fixture, all bool) error {
	if w.session == 0 {
		if err := w.find(ctx, race); err != nil {
			return err
		}
	}
	for _, endpoint := range []string{"laps", "position", "intervals", "race_control", "pit"} {
		query := fmt.Sprintf("%s?session_key=%d", endpoint, w.session)
		switch since := w.latest[endpoint]; {
		case all && endpoint == "intervals" && !since.IsZero(): // older gaps are many, and belong to laps that are stored
			query += "&date%3E=" + since.Add(-oldGaps).UTC().Format(sinceLayout)
		case all || since.IsZero():
		default:
			field := "date"
			if endpoint == "laps" {
				field = "date_start"
			}
			query += "&" + field + "%3E=" + since.Add(-overlap).UTC().Format(sinceLayout)
		}
		answer, err := w.get(ctx, query)
		if err != nil {
			return err
		}
		latest, err := w.timing.merge(endpoint, answer)
		if err != nil {
			return fmt.Errorf("%s: %w", endpoint, err)
		}
		w.latest[endpoint] = season.Later(w.latest[endpoint], latest)
	}
	return nil
}

// find looks for the session of the race: the race of the season that starts next to the planned start.
func (w *Watcher) find(ctx context.Context, race live.Fixture) error {
	answer, err := w.get(ctx, fmt.Sprintf("sessions?year=%d&session_name=Race", race.Start.UTC().Year()))
	if err != nil {
		return err
	}
	var sessions []struct {
		Key   int       `json:"session_key"`
		Start time.Time `json:"date_start"`
	}
	if err := json.Unmarshal(answer, &sessions); err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	const near = 36 * time.Hour // races are a week apart, and a start may be moved to the next day
	best := near
	for _, s := range sessions {
		if away := s.Start.Sub(race.Start).Abs(); away < best {
			best, w.session = away, s.Key
		}
	}
	if w.session == 0 {
		return fmt.Errorf("OpenF1 has no race near %s", race.Start.UTC().Format(time.RFC3339))
	}
	return nil
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	after  time.Duration // that the answer asks to wait; 0: it does not
	query  string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("OpenF1 answered %d to %s", e.status, e.query)
}

// backOff is the pause after failures in a row: it doubles from two seconds to a minute, and half of it is random.
func backOff(failures int, err error) time.Duration {
	pause := max(shortestPause, blob.Backoff{First: shortestPause, Longest: longestPause}.Jittered(failures))
	var status *statusError
	if errors.As(err, &status) {
		pause = max(pause, min(status.after, longestPause))
	}
	return pause
}

// get asks for the rows of a query. No rows are an empty list.
func (w *Watcher) get(ctx context.Context, query string) ([]byte, error) {
	if w.token == "" || w.Now().Sub(w.tokenAt) >= tokenLife {
		if err := w.renew(ctx); err != nil {
			return nil, err
		}
	}
	endpoint, _, _ := strings.Cut(query, "?")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Base+"/"+query, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	answer, status, err := w.send(ctx, request)
	switch {
	case err != nil:
		return nil, err
	case status.status == http.StatusNotFound:
		return []byte("[]"), nil
	case status.status == http.StatusUnauthorized:
		w.token = "" // it may have expired early; the next request fetches another one
	}
	if status.status != http.StatusOK {
		status.query = endpoint
		return nil, status
	}
	return answer, nil
}

func (w *Watcher) renew(ctx context.Context) error {
	form := url.Values{"username": {w.User}, "password": {w.Password}}
	place, err := url.JoinPath(strings.TrimSuffix(w.Base, "/v1"), "token")
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, place, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, status, err := w.send(ctx, request)
	if err != nil {
		return err
	}
	var token struct {
		Access string `json:"access_token"`
	}
	if status.status != http.StatusOK || json.Unmarshal(answer, &token) != nil || token.Access == "" {
		status.query = "token"
		return status
	}
	w.token, w.tokenAt = token.Access, w.Now()
	return nil
}

// send sends a request within the limit of requests in a minute. The error hides the address, which people may paste.
func (w *Watcher) send(ctx context.Context, request *http.Request) ([]byte, *statusError, error) {
	if n := len(w.requests) - maxPerMinute; n >= 0 {
		if wait := w.requests[n].Add(time.Minute).Sub(w.Now()); wait > 0 {
			if err := w.Wait(ctx, wait); err != nil {
				return nil, nil, err
			}
		}
		w.requests = w.requests[n+1:]
	}
	w.requests = append(w.requests, w.Now())
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := w.Client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("OpenF1 does not answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("more than %d bytes", maxAnswer)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("OpenF1's answer breaks off: %w", err)
	}
	status := &statusError{status: response.StatusCode}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		status.after = time.Duration(seconds) * time.Second
	}
	return body, status, nil
}
