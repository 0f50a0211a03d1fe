package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"gridcast/builder/tiles"
	"gridcast/deploy/flags"
	"gridcast/deploy/terminal"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

type ledgerProveCmd struct {
	flags.Storage
	Session int64 `arg:"" help:"The session key of the round, such as 2024022."`
}

// Run prints the proof that the public log has the frozen pick of a round, as edges serve it below /log/proof/.
func (c *ledgerProveCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	base, err := snapshots.LoadBase(ctx, store, nil)
	if err != nil {
		return err
	}
	if _, ok := base.Entry(tiles.Checkpoint); !ok {
		return errors.New("the current version has no public log, because no key has signed it: gridcast build --sign FILE")
	}
	entry, ok := base.Entry(fmt.Sprint(tiles.ProofFolder, c.Session))
	if !ok {
		return fmt.Errorf("version %d has no proof of %d, because its ledger has no frozen pick of that round; gridcast ledger list shows the events, and the next build publishes them: gridcast build --sign FILE", base.Pointer.Version, c.Session)
	}
	proof, err := base.Body(ctx, entry)
	if err == nil {
		s.Print(map[string]string{"proof": string(proof)}, "%s", terminal.Lines(proof))
	}
	return err
}

type ledgerVerifyCmd struct {
	File string   `arg:"" help:"A proof from gridcast ledger prove, or from /log/proof/ of an edge." type:"path"`
	Keys []string `name:"key" required:"" help:"The publisher's verifier key; may be repeated." placeholder:"VKEY" env:"-"`
}

// Run checks a proof without the store.
func (c *ledgerVerifyCmd) Run(s *terminal.Streams) error {
	trust, err := notes.NewTrust(c.Keys...)
	if err != nil {
		return terminal.Usagef("--key: %w", err)
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	proven, err := tiles.CheckProof(text, trust)
	if err != nil {
		return fmt.Errorf("%s proves nothing: %w", c.File, err)
	}
	if s.PrintedJSON(proven) {
		return nil
	}
	s.Printf("The log of %s with %d files has file %d of the ledger:\n", proven.Origin, proven.Size, proven.File.Seq)
	for _, e := range proven.File.Events {
		s.Printf("  %s  %s  %s  %s\n", terminal.Time(e.When()), e.Type, terminal.Number(e.Session), e.String())
	}
	return nil
}

type verifyCmd struct {
	URL    string   `arg:"" help:"A request to the API, such as https://api.example.com/api/v1/standings?year=2026."`
	Keys   []string `name:"key" required:"" help:"The publisher's verifier key; may be repeated." placeholder:"VKEY" env:"-"`
	APIKey string   `name:"api-key" help:"The API key for the request." env:"GRIDCAST_API_KEY"`
}

type signedAnswer struct {
	Path    string `json:"path"` // in the manifest
	SHA256  string `json:"sha256"`
	Version int64  `json:"version"`
	Origin  string `json:"origin"`

	BuiltAt time.Time `json:"built_at"` // race time
}

func (c *verifyCmd) Run(ctx context.Context, s *terminal.Streams) error {
	trust, err := notes.NewTrust(c.Keys...)
	if err != nil {
		return terminal.Usagef("--key: %w", err)
	}
	target, err := url.Parse(c.URL)
	if err != nil || target.Host == "" {
		return terminal.Usagef("%q is no URL such as https://api.example.com/api/v1/standings", c.URL)
	}
	site := &signedSite{root: target.Scheme + "://" + target.Host, trust: trust, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // another host must not get the API key
		Timeout:       time.Minute, Transport: &http.Transport{DisableCompression: true, Proxy: http.ProxyFromEnvironment},
	}}
	var found signedAnswer
	for range 3 { // the edge may take another version between two requests
		if found, err = site.compare(ctx, target, c.APIKey); !errors.Is(err, errDiffers) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("verify %s: %w", c.URL, err)
	}
	s.Print(found, "The answer is %s of version %d, as %s signed it.\nbuilt  %s\nsha256 %s\n", found.Path, found.Version, found.Origin, terminal.Time(found.BuiltAt), found.SHA256)
	return nil
}

var errDiffers = errors.New("the answer is another one than the publisher signed")

// signedSite reads the signed manifest of an edge, like a store.
type signedSite struct {
	blob.Store // nil: only Get is used

	root   string
	trust  notes.Trust
	client *http.Client
	opened notes.Note
}

func (w *signedSite) compare(ctx context.Context, target *url.URL, key string) (signedAnswer, error) {
	body, err := w.read(ctx, target.String(), key, maxAnswer)
	if err != nil {
		return signedAnswer{}, err
	}
	m, err := snapshots.LoadManifest(ctx, w, 0)
	if err != nil {
		return signedAnswer{}, err
	}
	path, err := storedPath(target, &m)
	if err != nil {
		return signedAnswer{}, err
	}
	got := signedAnswer{Path: path, SHA256: snapshots.Digest(body), Version: m.Version, Origin: w.opened.Origin, BuiltAt: m.BuiltAt}
	if want := m.ByPath()[path].SHA256; got.SHA256 != want {
		return got, fmt.Errorf("%w: its hash is %s, version %d has %q for %s", errDiffers, got.SHA256, m.Version, want, path)
	}
	return got, nil
}

const maxAnswer = 64 << 20

// storedPath returns the path in the manifest of the answer to a request.
func storedPath(target *url.URL, m *snapshots.Manifest) (string, error) {
	for _, f := range catalog.Feeds {
		if target.Path == f.Path {
			return f.Stored, nil
		}
	}
	if strings.HasPrefix(target.Path, "/"+catalog.Portraits) {
		return target.Path[1:], nil
	}
	name, api := strings.CutPrefix(strings.TrimSuffix(target.Path, "/"), catalog.BasePath)
	i, ok := catalog.Lookup(name)
	if !api || !ok {
		return "", fmt.Errorf("%s is no path of the API or a feed", target.Path)
	}
	e := &catalog.Endpoints[i]
	switch {
	case e.Computed:
		return "", fmt.Errorf("the edge completes %s for every request, so nobody signs its answer; /weekends has the starts and /predictions the pick", name)
	case e.File:
		return "", fmt.Errorf("the edge makes the file of %s, so nobody signs it; its parts are the documents of the other endpoints", name)
	}
	v, err := e.Select([]byte(target.RawQuery), catalog.Known{Seasons: m.Seasons, Current: m.CurrentSeason, Past: m.DefaultYears})
	if err != nil {
		return "", err
	}
	published := slices.ContainsFunc(m.Entries, func(entry snapshots.ManifestEntry) bool { return entry.Path == v.Path() })
	if v.SessionKey != 0 && !published { // an unknown session has the empty list
		v = catalog.Variant{Endpoint: v.Endpoint, SessionKey: catalog.NoSession}
	}
	return v.Path(), nil
}

func (w *signedSite) String() string { return w.root }

// Get reads the file of a manifest. In place of the pointer it returns the version of the signed note.
func (w *signedSite) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	if key != snapshots.PointerKey {
		data, err := w.read(ctx, w.root+"/signed/"+key, "", limit)
		return blob.Object{Data: data}, err
	}
	data, err := w.read(ctx, w.root+"/signed/note", "", notes.MaxSize)
	if err != nil {
		return blob.Object{}, err
	}
	var p snapshots.Pointer
	if p, w.opened, err = snapshots.ReadNote(w.trust, data); err != nil {
		return blob.Object{}, err
	}
	pointer, err := json.Marshal(p)
	return blob.Object{Data: pointer}, err
}

func (w *signedSite) read(ctx context.Context, address, key string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		request.Header.Set("X-API-Key", key)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return blob.ReadAll(response.Body, response.ContentLength, limit)
	case http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants an API key: --api-key KEY", address)
	}
	return nil, fmt.Errorf("%s answers %q; an edge has /signed/ and /log/ while the publisher signs its versions", address, response.Status)
}
