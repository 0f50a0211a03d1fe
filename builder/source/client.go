package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"gridcast/snapshots/retry"
)

// Client sends requests to one upstream. They are conditional, stay within a budget and go to allowed
// hosts only. The client checks the type and the size of every answer itself. It is safe for
// concurrent use.
type Client struct {
	config  ClientConfig
	http    *http.Client
	buckets []*rate.Limiter // per second and per hour
}

// ClientConfig configures the requests to an upstream.
type ClientConfig struct {
	// Hosts are the allowed host names, redirects included. They need https, except for addresses of
	// the loopback interface.
	Hosts []string
	// UserAgent names the program and an address of its operator.
	UserAgent string
	// PerSecond and PerHour limit the requests: two token buckets in series, filled in race time. A
	// bucket holds at most the tokens of its period.
	PerSecond, PerHour int
	// Paced makes Get wait in real time for the bucket per second instead of failing, because one
	// payload takes several requests.
	Paced bool
	// MaxBytes limits the size of a body.
	MaxBytes int64
	// ContentTypes are the accepted media types.
	ContentTypes []string
	// RetryDelay is the approximate wait, in real time, before the one retry after a broken connection
	// or a status that may pass by itself (see package retry), without a Retry-After.
	RetryDelay time.Duration
}

// Time limits of one request, all in real time: they bound sockets, not schedules.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = 2 * time.Minute
	maxRedirects   = 3
)

// Validators come with an answer and make the next request conditional.
type Validators struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// Answer is an answer with an accepted type and size.
type Answer struct {
	NotModified bool
	Body        []byte
	Validators
}

// Fault says why an upstream gave no usable answer.
type Fault struct { //nolint:errname // the operators' word for a failing upstream
	Kind       FaultKind
	Status     int           // of HTTP; 0 if there was no response
	Detail     string        // the upstream's own reason, if it is JSON; untrusted text
	RetryAfter time.Duration // requested by the upstream; 0: none
	Err        error
}

// FaultKind sorts faults by their meaning for the operator. It is a label of metrics.
type FaultKind string

// The kinds of faults.
const (
	Unreachable FaultKind = "unreachable" // no connection, a broken one, a time limit, a 5xx
	Throttled   FaultKind = "throttled"   // a 429, or our own limit is reached
	Refused     FaultKind = "refused"     // a 401, 403 or another 4xx, which seldom passes soon
	Malformed   FaultKind = "malformed"   // an unexpected type, size or form
)

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// NewClient returns a client with connections of its own.
func NewClient(config ClientConfig) *Client {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: headerTimeout}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    headerTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true, // packed answers say so by their content type
	}
	once := retry.Rule{First: max(config.RetryDelay, time.Millisecond), Longest: max(config.RetryDelay, time.Millisecond), Max: 1}
	c := &Client{
		config: config,
		buckets: []*rate.Limiter{
			rate.NewLimiter(rate.Limit(config.PerSecond), config.PerSecond),
			rate.NewLimiter(rate.Limit(float64(config.PerHour)/time.Hour.Seconds()), config.PerHour),
		},
	}
	c.http = &http.Client{
		Transport: once.RoundTripper(transport, func(err error) bool { return errors.Is(err, errHost) }),
		Timeout:   requestTimeout,
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("%w: more than %d redirects", errHost, maxRedirects)
			}
			// A redirect never gets credentials, not even those in the URL of the first request.
			request.Header.Del("Authorization")
			request.Header.Del("Cookie")
			request.URL.User = nil
			return c.allowed(request.URL)
		},
	}
	return c
}

var errHost = errors.New("not allowed")

// allowed returns an error that wraps errHost if the URL is not allowed.
func (c *Client) allowed(u *url.URL) error {
	host := u.Hostname()
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case !slices.Contains(c.config.Hosts, host):
		return fmt.Errorf("%w: host %q is not one of %s", errHost, host, strings.Join(c.config.Hosts, ", "))
	case u.Scheme == "https", u.Scheme == "http" && loopback:
		return nil
	}
	return fmt.Errorf("%w: %s without TLS", errHost, u.Redacted())
}

// Get requests a URL, conditionally if there are validators. now is race time, which fills the
// buckets. An error is a *Fault.
func (c *Client) Get(ctx context.Context, now time.Time, target string, known Validators) (Answer, error) {
	u, err := url.Parse(target)
	if err != nil {
		return Answer{}, &Fault{Kind: Malformed, Err: fmt.Errorf("get %q: %w", target, err)}
	}
	fault := func(kind FaultKind, status int, err error) error {
		return &Fault{Kind: kind, Status: status, Err: fmt.Errorf("get %s: %w", u.Redacted(), err)}
	}
	if err := c.allowed(u); err != nil {
		return Answer{}, fault(Refused, 0, err)
	}
	if err := c.spend(ctx, now, u); err != nil {
		return Answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return Answer{}, fault(Malformed, 0, err)
	}
	request.Header.Set("User-Agent", c.config.UserAgent)
	request.Header.Set("Accept", strings.Join(c.config.ContentTypes, ", "))
	if known.ETag != "" {
		request.Header.Set("If-None-Match", known.ETag)
	}
	if known.LastModified != "" {
		request.Header.Set("If-Modified-Since", known.LastModified)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if errors.Is(err, errHost) {
			return Answer{}, fault(Refused, 0, err)
		}
		return Answer{}, fault(Unreachable, 0, readable(err))
	}
	defer func() { _ = response.Body.Close() }() // read to its end or given up
	answer := Answer{Validators: Validators{response.Header.Get("ETag"), response.Header.Get("Last-Modified")}}
	switch {
	case response.StatusCode == http.StatusNotModified && known != (Validators{}):
		answer.NotModified, answer.Validators = true, known
		return answer, nil
	case response.StatusCode == http.StatusTooManyRequests, response.StatusCode >= 500:
		kind := Unreachable
		if response.StatusCode == http.StatusTooManyRequests {
			kind = Throttled
		}
		return Answer{}, &Fault{
			Kind: kind, Status: response.StatusCode, RetryAfter: retry.After(response.Header, now, maxRetryAfter),
			Err: fmt.Errorf("get %s: %s", u.Redacted(), response.Status),
		}
	case response.StatusCode != http.StatusOK:
		return Answer{}, c.refused(u, response)
	}
	// An outage often answers 200 with a page, so check the type before the body.
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(c.config.ContentTypes, mediaType) {
		return Answer{}, fault(Malformed, response.StatusCode, fmt.Errorf("content type %q, want %s",
			response.Header.Get("Content-Type"), strings.Join(c.config.ContentTypes, " or ")))
	}
	// The length in the header may be wrong: it does not replace the limit.
	answer.Body, err = io.ReadAll(io.LimitReader(response.Body, c.config.MaxBytes+1))
	switch {
	case err != nil:
		return Answer{}, fault(Unreachable, response.StatusCode, fmt.Errorf("after %d bytes: %w", len(answer.Body), err))
	case int64(len(answer.Body)) > c.config.MaxBytes:
		return Answer{}, fault(Malformed, response.StatusCode, fmt.Errorf("more than %d bytes", c.config.MaxBytes))
	}
	return answer, nil
}

// spend takes a token out of every bucket, or returns a *Fault and takes none. For a paced upstream it waits for the
// bucket per second.
func (c *Client) spend(ctx context.Context, now time.Time, u *url.URL) (err error) {
	var taken []*rate.Reservation
	defer func() {
		if err != nil {
			for _, reserved := range taken {
				reserved.CancelAt(now)
			}
		}
	}()
	for i, bucket := range c.buckets {
		reserved := bucket.ReserveN(now, 1)
		taken = append(taken, reserved)
		wait := reserved.DelayFrom(now)
		if reserved.OK() && (wait <= 0 || i == 0 && c.config.Paced && wait <= time.Second) {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
				return &Fault{Kind: Unreachable, Err: fmt.Errorf("get %s: %w", u.Redacted(), ctx.Err())}
			}
		}
		return &Fault{
			Kind: Throttled, RetryAfter: wait,
			Err: fmt.Errorf("get %s: our own budget of %d a second and %d an hour is spent", u.Redacted(), c.config.PerSecond, c.config.PerHour),
		}
	}
	return nil
}

// maxDetail limits the bytes that are read of an error page.
const maxDetail = 4 << 10

// refused returns the *Fault of an answer with another status than 200, and the reason in its body.
func (c *Client) refused(u *url.URL, response *http.Response) error {
	f := &Fault{Kind: Refused, Status: response.StatusCode, Err: fmt.Errorf("get %s: %s", u.Redacted(), response.Status)}
	if mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return f
	}
	var said struct{ Detail, Error string }
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDetail))
	if err != nil || json.Unmarshal(body, &said) != nil {
		return f
	}
	f.Detail = strings.ToValidUTF8(cmp.Or(said.Detail, said.Error), "")
	if f.Detail != "" {
		f.Err = fmt.Errorf("%w: %.200q", f.Err, f.Detail)
	}
	return f
}

// readable says in words why a host did not answer.
func readable(err error) error {
	var unresolved *net.DNSError
	switch {
	case errors.As(err, &unresolved):
		return fmt.Errorf("%s cannot be resolved", unresolved.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the host refuses the connection")
	}
	return err
}

// maxRetryAfter limits the wait that an upstream may request.
const maxRetryAfter = time.Hour
