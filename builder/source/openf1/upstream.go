// Package openf1 reads OpenF1 (https://openf1.org) into season values. Its terms are non-commercial:
// gridcast compares with it, and publishes facts of it only where the operator has accepted the
// terms. It has the starting grid before the start, which no other source has.
//
// Of a season it takes the calendar, and of the rounds about now qualifying, grid, sprint and
// classification. While a session is under way it answers nobody without an account: then it is
// asked again later, and what it said last stays. Foreign names and forms stop here.
package openf1

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gridcast/builder/source"
)

// URL is where OpenF1 is to be had.
const URL = "https://api.openf1.org/v1"

// Every is how long an answer counts as fresh.
const Every = 5 * time.Minute

// OpenF1 allows three requests a second and 30 a minute of an address; less is asked.
const (
	perSecond = 2
	perMinute = 25
	perHour   = 400
)

const maxBody = 8 << 20 // bytes

// The rounds about now, by their races: a result is corrected for days, and a grid is there on the
// day before.
const (
	windowBefore = 10 * 24 * time.Hour
	windowAfter  = 4 * 24 * time.Hour
)

//go:embed equivalents.txt
var equivalentsText string

type upstream struct {
	base   string
	client *source.Client
	names  source.Equivalents
}

// New returns OpenF1 at the URL of its API. One on this machine is asked as fast as it answers.
func New(base, userAgent string) (source.Upstream, error) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("source URL %q: want https://host/path", base)
	}
	names, err := source.ReadEquivalents("builder/source/openf1/equivalents.txt", equivalentsText)
	if err != nil {
		return nil, err
	}
	config := source.ClientConfig{
		Hosts: []string{u.Hostname()}, UserAgent: userAgent, PerSecond: perSecond, PerMinute: perMinute, PerHour: perHour, Paced: true,
		MaxBytes: maxBody, ContentTypes: []string{"application/json"}, RetryDelay: time.Second,
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		config.PerSecond, config.PerMinute, config.PerHour, config.RetryDelay = 1000, 100_000, 100_000, time.Millisecond
	}
	return &upstream{strings.TrimSuffix(base, "/"), source.NewClient(config), names}, nil
}

func (*upstream) Name() string { return "openf1" }

func (*upstream) Licence() source.Licence {
	return source.Licence{Name: "CC BY-NC-SA 4.0", Credit: "OpenF1 (https://openf1.org)", NonCommercial: true} //nolint:gosec // G101: no credentials
}

// payload is what Fetch packs: the answers by resource and key, with the keys of objects in order,
// which OpenF1 changes.
type payload struct {
	Year     int                          `json:"year"` // the first
	To       int                          `json:"to"`
	Meetings []meeting                    `json:"meetings"`
	Sessions []session                    `json:"sessions"`
	Details  map[string]map[int][]sayings `json:"details"` // by resource and session_key
	Overdue  []int                        `json:"overdue"` // sessions that are over and without a result
}

type sayings = map[string]json.RawMessage

func (u *upstream) Fetch(ctx context.Context, now time.Time, _, _ int, known source.Known) (source.Payload, error) {
	began := time.Now() // of the requests of one payload, which take real time to send
	get := func(into any, resource, filter string, key int) error {
		return u.get(ctx, now.Add(time.Since(began)), into, fmt.Sprintf("%s/%s?%s=%d", u.base, resource, filter, key))
	}
	p := payload{Year: now.Add(-windowBefore).UTC().Year(), To: now.UTC().Year(), Details: make(map[string]map[int][]sayings)}
	for year := p.Year; year <= p.To; year++ {
		var meetings []meeting
		var sessions []session
		if err := get(&meetings, "meetings", "year", year); err != nil {
			return source.Payload{}, err
		}
		if err := get(&sessions, "sessions", "year", year); err != nil {
			return source.Payload{}, err
		}
		p.Meetings, p.Sessions = append(p.Meetings, meetings...), append(p.Sessions, sessions...)
	}
	detail := func(resource string, key int) error {
		rows := []sayings{}
		if err := get(&rows, resource, "session_key", key); err != nil {
			return err
		}
		if p.Details[resource] == nil {
			p.Details[resource] = make(map[int][]sayings)
		}
		p.Details[resource][key] = rows
		return nil
	}
	for _, race := range p.Sessions {
		if race.Name != raceName || race.Cancelled || race.Start.Before(now.Add(-windowBefore)) || race.Start.After(now.Add(windowAfter)) {
			continue
		}
		for _, s := range p.Sessions {
			if s.Meeting != race.Meeting || !outcomes[s.Name] || s.End.After(now) {
				continue
			}
			resources := []string{"drivers", "session_result"}
			if s.Name == qualifyingName {
				resources = append(resources, "starting_grid")
			}
			for _, resource := range resources {
				if err := detail(resource, s.Key); err != nil {
					return source.Payload{}, err
				}
			}
			if len(p.Details["session_result"][s.Key]) == 0 && now.Sub(s.End) > lateAfter {
				p.Overdue = append(p.Overdue, s.Key)
			}
		}
	}
	packed, err := source.Pack(p)
	if err != nil {
		return source.Payload{}, &source.Fault{Kind: source.Malformed, Err: err}
	}
	sum := sha256.Sum256(packed)
	revision := hex.EncodeToString(sum[:])
	if revision == known.SHA256 {
		return source.Payload{NotModified: true}, nil
	}
	return source.Payload{Packed: packed, Revision: revision[:12]}, nil
}

// lateAfter is how long after a session its result may be missing before people are told.
const lateAfter = 2 * time.Hour

// get asks for a list. That there are no rows is said by an empty list, or by a 404 with that word.
func (u *upstream) get(ctx context.Context, now time.Time, into any, target string) error {
	answer, err := u.client.Get(ctx, now, target, source.Validators{})
	var fault *source.Fault
	if errors.As(err, &fault) && fault.Status == http.StatusNotFound && strings.HasPrefix(fault.Detail, "No results") {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(bytes.TrimSpace(answer.Body), into); err != nil {
		return &source.Fault{Kind: source.Malformed, Err: fmt.Errorf("get %s: %w", target, err)}
	}
	return nil
}

func (u *upstream) Read(packed []byte) (source.Document, error) {
	var p payload
	if err := source.Unpack(packed, &p); err != nil {
		return source.Document{}, fmt.Errorf("read openf1: %w", err)
	}
	r := newReader(u.names, &p)
	facts, err := r.facts()
	if err != nil {
		return source.Document{}, fmt.Errorf("read openf1: %w", err)
	}
	sum := sha256.Sum256(packed)
	return source.Document{
		Source: u.Name(), Revision: hex.EncodeToString(sum[:])[:12], From: p.Year, To: p.To, Facts: facts, Notes: r.notes, Sparse: true,
	}, nil
}
