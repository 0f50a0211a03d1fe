// Package jolpica reads Jolpica (https://github.com/jolpica/jolpica-f1), the successor of Ergast, into
// season values. Its terms are non-commercial: gridcast compares its facts with others and publishes
// them only if the operator has accepted the terms.
//
// The package reads the calendar, qualifying, sprints, and classifications with the grid. Foreign
// names and forms stop here.
package jolpica

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"gridcast/builder/season"
	"gridcast/builder/source"
)

// URL is the address of Jolpica's API.
const URL = "https://api.jolpi.ca/ergast/f1"

// Every is the interval between two polls. Jolpica caches its answers for an hour, and a poll of two
// seasons takes 34 of the 500 requests per hour.
const Every = 15 * time.Minute

// Jolpica allows four requests per second and 500 per hour. We stay below.
const (
	perSecond = 3
	perHour   = 300
)

const (
	pageRows = 100     // Jolpica's limit
	maxRows  = 2000    // per resource and season; 24 races with 22 cars have 528
	maxPage  = 4 << 20 // bytes
)

//go:embed equivalents.txt
var equivalentsText string

// Names returns the table of Jolpica's names.
func Names() (source.Equivalents, error) {
	return source.ReadEquivalents("builder/source/jolpica/equivalents.txt", equivalentsText)
}

type upstream struct{ *source.API }

// New returns Jolpica at the URL of its API. An API on this machine has no request limits.
func New(base, userAgent string) (source.Upstream, error) {
	config := source.ClientConfig{UserAgent: userAgent, PerSecond: perSecond, PerHour: perHour, MaxBytes: maxPage}
	licence := source.Licence{Name: "CC BY-NC-SA 4.0", NonCommercial: true}
	api, err := source.NewAPI("jolpica", licence, base, config, Names)
	if err != nil {
		return nil, err
	}
	return &upstream{api}, nil
}

// payload holds the pages as they came.
type payload struct {
	From  int    `json:"from"`
	To    int    `json:"to"`
	Pages []page `json:"pages"`
}

type page struct {
	Year     int             `json:"year"`
	Resource string          `json:"resource"`
	Body     json.RawMessage `json:"body"`
}

// The resources of a season. A season that has not begun has the first alone.
var resources = []string{"races", "qualifying", "sprint", "results", "driverstandings", "constructorstandings"}

func (u *upstream) Fetch(ctx context.Context, now time.Time, from, to int, known source.Known) (source.Payload, error) {
	requests := u.At(now)
	p := payload{From: from, To: to}
	for year := from; year <= to; year++ {
		for _, resource := range resources {
			if resource != "races" && year > now.UTC().Year() {
				continue
			}
			pages, err := allPages(ctx, requests, year, resource)
			if err != nil {
				return source.Payload{}, err
			}
			p.Pages = append(p.Pages, pages...)
		}
	}
	return source.PackPayload(p, known)
}

// allPages fetches a resource of a season page by page. If the total differs between pages, the
// resource changed meanwhile and its pages do not fit together: that is a fault.
func allPages(ctx context.Context, requests source.Requests, year int, resource string) ([]page, error) {
	var pages []page
	var total int
	for offset := 0; offset == 0 || offset < total; offset += pageRows {
		path := fmt.Sprintf("%d/%s.json?limit=%d&offset=%d", year, resource, pageRows, offset)
		var body json.RawMessage
		if err := requests.Get(ctx, path, &body); err != nil {
			return nil, err
		}
		var head struct {
			MRData struct{ Total, Limit, Offset text }
		}
		if err := json.Unmarshal(body, &head); err != nil {
			return nil, requests.Malformed(path, "%w", err)
		}
		rows, err := strconv.Atoi(string(head.MRData.Total))
		switch {
		case err != nil || rows < 0 || rows > maxRows:
			return nil, requests.Malformed(path, "total %q, want a number of rows up to %d", head.MRData.Total, maxRows)
		case offset > 0 && rows != total:
			return nil, requests.Malformed(path, "the total went from %d to %d between two pages", total, rows)
		case head.MRData.Limit != text(strconv.Itoa(pageRows)) || head.MRData.Offset != text(strconv.Itoa(offset)):
			return nil, requests.Malformed(path, "it is the page of offset %q with limit %q", head.MRData.Offset, head.MRData.Limit)
		}
		total = rows
		pages = append(pages, page{year, resource, body})
	}
	return pages, nil
}

func (u *upstream) Read(packed []byte) (source.Document, error) {
	var p payload
	if err := source.Decode(packed, &p); err != nil {
		return source.Document{}, fmt.Errorf("read jolpica: %w", err)
	}
	r := reader{names: u.Names, races: make(map[int]map[text]*race), out: season.NewFacts()}
	for _, page := range p.Pages {
		if err := r.page(page); err != nil {
			return source.Document{}, fmt.Errorf("read jolpica: %s of %d: %w", page.Resource, page.Year, err)
		}
	}
	facts := r.facts()
	return source.Document{
		Source: u.Name(), Revision: source.RevisionOf(packed), From: p.From, To: p.To, Facts: facts, Unread: r.unread, Notes: r.notes, Sparse: true,
	}, nil
}
