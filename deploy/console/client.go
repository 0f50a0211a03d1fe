package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client sends requests to an operator's port, as a program does.
type Client struct {
	Address  string // host:port
	Token    string
	Operator string // for the audit log
}

// ErrNobody means that no scheduler listens at the address.
var ErrNobody = errors.New("no scheduler answers")

// Rebuild makes the scheduler of a store build, and returns the id of the run.
func (c *Client) Rebuild(ctx context.Context, store, reason string) (id string, err error) {
	form := url.Values{"reason": {reason}, "store": {store}}
	run, err := c.run(ctx, http.MethodPost, "/rebuild", strings.NewReader(form.Encode()))
	return run.ID, err
}

// Follow passes the latest event of a run to told each time that there is a later one, and returns the last event.
func (c *Client) Follow(ctx context.Context, id string, told func(Event)) (Event, error) {
	for seq := 0; ; {
		run, err := c.run(ctx, http.MethodGet, fmt.Sprintf("/runs/%s?after=%d", id, seq), nil)
		if err != nil {
			return Event{}, fmt.Errorf("%w; the audit log of the console says what became of the run", err)
		}
		if run.Last.Seq > seq {
			seq = run.Last.Seq
			told(run.Last)
		}
		if run.Ended {
			return run.Last, nil
		}
	}
}

// run sends a request that begins a run.
func (c *Client) run(ctx context.Context, method, path string, form io.Reader) (run runAnswer, err error) {
	response, err := c.do(ctx, method, path, form)
	if err != nil {
		return run, err
	}
	defer func() { _ = response.Body.Close() }() // it is only read
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&run); err != nil {
		return run, fmt.Errorf("%s does not answer as a scheduler does: %w", c.Address, err)
	}
	return run, nil
}

// do sends a request. A refusal of the port is an error.
func (c *Client) do(ctx context.Context, method, path string, form io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.Address+path, form)
	if err != nil {
		return nil, err
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("X-Operator", c.Operator)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNobody, c.Address, err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // it is only read
	var refused struct {
		Message string `json:"message"`
	}
	if err := json.NewDecoder(response.Body).Decode(&refused); err != nil || refused.Message == "" {
		refused.Message = response.Status
	}
	return nil, fmt.Errorf("the scheduler at %s refuses: %s", c.Address, refused.Message)
}
