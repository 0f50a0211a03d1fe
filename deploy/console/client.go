package console

import (
	"bufio"
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
	response, err := c.do(ctx, http.MethodPost, "/rebuild", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // it is only read
	var run runAnswer
	if err := json.NewDecoder(response.Body).Decode(&run); err != nil {
		return "", fmt.Errorf("%s does not answer as a scheduler does: %w", c.Address, err)
	}
	return run.ID, nil
}

// Follow forwards the events of a run, and returns the last one.
func (c *Client) Follow(ctx context.Context, id string, told func(Event)) (Event, error) {
	response, err := c.do(ctx, http.MethodGet, "/runs/"+id+"/events", nil)
	if err != nil {
		return Event{}, err
	}
	defer func() { _ = response.Body.Close() }() // it is only read
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return Event{}, fmt.Errorf("progress from %s: %w", c.Address, err)
		}
		told(e)
		if e.Ends() {
			return e, nil
		}
	}
	return Event{}, errors.Join(fmt.Errorf("%s stopped telling about its progress; the audit log of the console says what became of it", c.Address), lines.Err())
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
