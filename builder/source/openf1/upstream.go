// Package openf1 reads OpenF1 (https://openf1.org) into season values. Its terms are non-commercial:
// gridcast compares its facts with others and publishes them only if the operator has accepted the
// terms. OpenF1 alone has the starting grid before the start.
//
// The package reads the calendar of a season, and qualifying, grid, sprint and classification of the
// rounds around now. During a session OpenF1 refuses callers without an account: its last document
// stays in use until a later poll succeeds. Foreign names and forms stop here.
package openf1

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gridcast/builder/season"
	"gridcast/builder/source"
)

// URL is the address of OpenF1's API.
const URL = "https://api.openf1.org/v1"

// Every is the interval between two polls.
const Every = 5 * time.Minute

// OpenF1 allows three requests per second and 30 per minute. We stay below.
const (
	perSecond = 2
	perMinute = 25
	perHour   = 400
)

const maxBody = 8 << 20 // bytes

// The rounds around now by the date of their races: results are corrected for days after the race,
// and a grid appears on the day before.
const (
	windowBefore = 10 * 24 * time.Hour
	windowAfter  = 4 * 24 * time.Hour
)

//go:embed equivalents.txt
var equivalentsText string

// Names returns the table of OpenF1's names.
func Names() (source.Equivalents, error) {
	return source.ReadEquivalents("builder/source/openf1/equivalents.txt", equivalentsText)
}

type upstream struct{ *source.API }

// New returns OpenF1 at the URL of its API. An API on this machine has no request limits.
func New(base, userAgent string) (source.Upstream, error) {
	config := source.ClientConfig{
		UserAgent: userAgent, PerSecond: perSecond, PerMinute: perMinute, PerHour: perHour, MaxBytes: maxBody,
	}
	licence := source.Licence{Name: "CC BY-NC-SA 4.0", NonCommercial: true}
	api, err := source.NewAPI("openf1", licence, base, config, Names)
	if err != nil {
		return nil, err
	}
	return &upstream{api}, nil
}

// payload holds the answers by resource and key. The keys of objects are sorted, because OpenF1
// changes their order.
type payload struct {
	Year     int                          `json:"year"` // the first
	To       int                          `json:"to"`
	Meetings []meeting                    `json:"meetings"`
	Sessions []session                    `json:"sessions"`
	Details  map[string]map[int][]sayings `json:"details"` // by resource and session_key
	Overdue  []int                        `json:"overdue"` // sessions that ended without a result
}

type sayings = map[string]jsontext.Value

func (u *upstream) Fetch(ctx context.Context, now time.Time, _, _ int, known source.Known) (source.Payload, error) {
	requests := u.At(now)
	get := func(into any, resource, filter string, key int) error {
		err := requests.Get(ctx, fmt.Sprintf("%s?%s=%d", resource, filter, key), into)
		var fault *source.Fault
		if errors.As(err, &fault) && fault.Status == http.StatusNotFound && strings.HasPrefix(fault.Detail, "No results") {
			return nil // without rows OpenF1 answers an empty list, or a 404 with that word
		}
		return err
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
	return source.PackPayload(p, known)
}

// lateAfter is the wait after a session until a note says that its result is missing.
const lateAfter = 2 * time.Hour

func (u *upstream) Read(packed []byte) (source.Document, error) {
	var p payload
	if err := source.Unpack(packed, &p); err != nil {
		return source.Document{}, fmt.Errorf("read openf1: %w", err)
	}
	r := reader{names: u.Names, p: &p, out: season.NewFacts()}
	facts, err := r.facts()
	if err != nil {
		return source.Document{}, fmt.Errorf("read openf1: %w", err)
	}
	return source.Document{
		Source: u.Name(), Revision: source.RevisionOf(packed), From: p.Year, To: p.To, Facts: facts, Notes: r.notes, Sparse: true,
	}, nil
}
