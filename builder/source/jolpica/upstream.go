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
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
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

// Names returns the table of Jolpica's names. It reads the table once.
var Names = sync.OnceValues(func() (source.Equivalents, error) {
	return source.ReadEquivalents("builder/source/jolpica/equivalents.txt", equivalentsText)
})

type upstream struct {
	names  source.Equivalents
	base   string
	client *source.Client
}

// New returns Jolpica at the URL of its API. An API on this machine has no request limits.
func New(base, userAgent string) (source.Upstream, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	host, err := source.Host(base)
	if err != nil {
		return nil, err
	}
	if strings.Contains(base, "?") {
		return nil, errors.New("its URL must be https://host/path, without parameters")
	}
	config := source.ClientConfig{
		Hosts: []string{host}, UserAgent: userAgent, PerSecond: perSecond, PerHour: perHour, Paced: true, MaxBytes: maxPage,
		ContentTypes: []string{"application/json"}, RetryDelay: time.Second,
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		config.PerSecond, config.PerHour, config.RetryDelay = 1000, 100_000, time.Millisecond
	}
	return &upstream{names, strings.TrimSuffix(base, "/"), source.NewClient(config)}, nil
}

func (*upstream) Name() string { return "jolpica" }

func (*upstream) Licence() source.Licence {
	return source.Licence{Name: "CC BY-NC-SA 4.0", NonCommercial: true}
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
	began := time.Now()
	get := func(target string) ([]byte, error) { // race time goes on while the requests take real time
		answer, err := u.client.Get(ctx, now.Add(time.Since(began)), target, source.Validators{})
		return answer.Body, err
	}
	p := payload{From: from, To: to}
	for year := from; year <= to; year++ {
		for _, resource := range resources {
			if resource != "races" && year > now.UTC().Year() {
				continue
			}
			pages, err := u.pages(get, year, resource)
			if err != nil {
				return source.Payload{}, err
			}
			p.Pages = append(p.Pages, pages...)
		}
	}
	packed, err := source.Encode(p)
	if err != nil {
		return source.Payload{}, &source.Fault{Kind: source.Malformed, Err: err}
	}
	return source.NewPayload(packed, source.RevisionOf(packed), source.Validators{}, known), nil
}

// pages fetches a resource of a season page by page. If the total differs between pages, the
// resource changed meanwhile and its pages do not fit together: that is a fault.
func (u *upstream) pages(get func(target string) ([]byte, error), year int, resource string) ([]page, error) {
	var pages []page
	var total int
	for offset := 0; offset == 0 || offset < total; offset += pageRows {
		target := fmt.Sprintf("%s/%d/%s.json?limit=%d&offset=%d", u.base, year, resource, pageRows, offset)
		malformed := func(format string, args ...any) ([]page, error) {
			return nil, &source.Fault{Kind: source.Malformed, Err: fmt.Errorf("get %s: %w", target, fmt.Errorf(format, args...))}
		}
		body, err := get(target)
		if err != nil {
			return nil, err
		}
		var head struct {
			MRData struct{ Total, Limit, Offset text }
		}
		if err := json.Unmarshal(body, &head); err != nil {
			return malformed("%w", err)
		}
		rows, err := strconv.Atoi(string(head.MRData.Total))
		switch {
		case err != nil || rows < 0 || rows > maxRows:
			return malformed("total %q, want a number of rows up to %d", head.MRData.Total, maxRows)
		case offset > 0 && rows != total:
			return malformed("the total went from %d to %d between two pages", total, rows)
		case head.MRData.Limit != text(strconv.Itoa(pageRows)) || head.MRData.Offset != text(strconv.Itoa(offset)):
			return malformed("it is the page of offset %q with limit %q", head.MRData.Offset, head.MRData.Limit)
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
	r := reader{names: u.names, races: make(map[int]map[[2]text]*race), out: season.NewFacts()}
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
