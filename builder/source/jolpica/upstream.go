// Package jolpica reads Jolpica (https://github.com/jolpica/jolpica-f1), which goes on with the API
// that Ergast had, into season values. Its terms are non-commercial: gridcast compares with it, and
// publishes facts of it only where the operator has accepted the terms.
//
// Of a season it takes the calendar, qualifying, sprints and classifications with the places on the
// grid, which come with them. Foreign names and forms stop here.
package jolpica

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/source"
)

// URL is where Jolpica is to be had.
const URL = "https://api.jolpi.ca/ergast/f1"

// Every is how long an answer counts as fresh: Jolpica's own cache holds it for an hour, and a look
// at two seasons takes 34 of the 500 requests that it allows in one.
const Every = 15 * time.Minute

// Jolpica allows four requests a second and 500 an hour of an address; less is asked.
const (
	perSecond = 3
	perHour   = 300
)

const (
	pageRows = 100     // the most that Jolpica gives at once
	maxRows  = 2000    // of a resource of a season: 24 races with 22 cars have 528
	maxPage  = 4 << 20 // bytes
)

//go:embed equivalents.txt
var equivalentsText string

type upstream struct {
	base   string
	client *source.Client
	names  source.Equivalents
}

// New returns Jolpica at the URL of its API. One on this machine is asked as fast as it answers.
func New(base, userAgent string) (source.Upstream, error) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" {
		return nil, fmt.Errorf("source URL %q: want https://host/path", base)
	}
	names, err := source.ReadEquivalents("builder/source/jolpica/equivalents.txt", equivalentsText)
	if err != nil {
		return nil, err
	}
	config := source.ClientConfig{
		Hosts: []string{u.Hostname()}, UserAgent: userAgent, PerSecond: perSecond, PerHour: perHour, Paced: true,
		MaxBytes: maxPage, ContentTypes: []string{"application/json"}, RetryDelay: time.Second,
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		config.PerSecond, config.PerHour, config.RetryDelay = 1000, 100_000, time.Millisecond
	}
	return &upstream{strings.TrimSuffix(base, "/"), source.NewClient(config), names}, nil
}

func (*upstream) Name() string { return "jolpica" }

func (*upstream) Licence() source.Licence {
	return source.Licence{Name: "CC BY-NC-SA 4.0", Credit: "Jolpica (https://github.com/jolpica/jolpica-f1)", NonCommercial: true} //nolint:gosec // G101: no credentials
}

// payload is what Fetch packs: the pages as they came.
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

// The resources of a season. Only the first is known of one that has not begun.
var resources = []string{"races", "qualifying", "sprint", "results", "driverstandings", "constructorstandings"}

func (u *upstream) Fetch(ctx context.Context, now time.Time, from, to int, known source.Known) (source.Payload, error) {
	began := time.Now() // of the requests of one payload, which take real time to send
	p := payload{From: from, To: to}
	for year := from; year <= to; year++ {
		for _, resource := range resources {
			if resource != "races" && year > now.UTC().Year() {
				continue
			}
			pages, err := u.pages(ctx, func() time.Time { return now.Add(time.Since(began)) }, year, resource)
			if err != nil {
				return source.Payload{}, err
			}
			p.Pages = append(p.Pages, pages...)
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

// pages asks for a resource of a season page by page. A total that changes between pages is a
// resource that changed meanwhile: then nothing fits together and it is asked for another time.
func (u *upstream) pages(ctx context.Context, now func() time.Time, year int, resource string) ([]page, error) {
	var pages []page
	var total int
	for offset := 0; offset == 0 || offset < total; offset += pageRows {
		target := fmt.Sprintf("%s/%d/%s.json?limit=%d&offset=%d", u.base, year, resource, pageRows, offset)
		answer, err := u.client.Get(ctx, now(), target, source.Validators{})
		if err != nil {
			return nil, err
		}
		malformed := func(format string, args ...any) error {
			return &source.Fault{Kind: source.Malformed, Err: fmt.Errorf("get %s: %w", target, fmt.Errorf(format, args...))}
		}
		var head struct {
			MRData struct{ Total, Limit, Offset text }
		}
		if err := json.Unmarshal(answer.Body, &head); err != nil {
			return nil, malformed("%w", err)
		}
		rows, err := strconv.Atoi(string(head.MRData.Total))
		switch {
		case err != nil || rows < 0 || rows > maxRows:
			return nil, malformed("total %q, want a number of rows up to %d", head.MRData.Total, maxRows)
		case offset > 0 && rows != total:
			return nil, malformed("the total went from %d to %d between two pages", total, rows)
		case head.MRData.Limit != text(strconv.Itoa(pageRows)) || head.MRData.Offset != text(strconv.Itoa(offset)):
			return nil, malformed("it is the page of offset %q with limit %q", head.MRData.Offset, head.MRData.Limit)
		}
		total = rows
		pages = append(pages, page{year, resource, answer.Body})
	}
	return pages, nil
}

func (u *upstream) Read(packed []byte) (source.Document, error) {
	var p payload
	if err := source.Unpack(packed, &p); err != nil {
		return source.Document{}, fmt.Errorf("read jolpica: %w", err)
	}
	r := newReader(u.names)
	for _, page := range p.Pages {
		if err := r.page(page); err != nil {
			return source.Document{}, fmt.Errorf("read jolpica: %s of %d: %w", page.Resource, page.Year, err)
		}
	}
	sum := sha256.Sum256(packed)
	facts, err := r.facts()
	if err != nil {
		return source.Document{}, fmt.Errorf("read jolpica: %w", err)
	}
	return source.Document{
		Source: u.Name(), Revision: hex.EncodeToString(sum[:])[:12], From: p.From, To: p.To, Facts: facts, Notes: r.notes, Sparse: true,
	}, nil
}
