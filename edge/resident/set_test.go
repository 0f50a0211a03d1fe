package resident_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge/edgetest"
	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

func load(t testing.TB) *resident.Set {
	t.Helper()
	return must.Get(resident.Load(edgetest.Publish(t, memblob.New(), 1), nil))(t)
}

// TestFindAgreesWithTheCatalog compares the map with the general path for every plain
// spelling of every parameter, found or not.
func TestFindAgreesWithTheCatalog(t *testing.T) {
	set := load(t)
	values := []string{"", "type=drivers", "type=constructors", "year=1950", "year=2023", "year=2024", "session_key=2023005", "session_key=2024001"}
	queries := make([]string, 0, len(values)*len(values))
	for _, a := range values {
		for _, b := range values {
			queries = append(queries, strings.Trim(a+"&"+b, "&"))
		}
	}
	found := 0
	for i := range catalog.Endpoints {
		e := &catalog.Endpoints[i]
		for n, query := range slices.Concat(queries, queries) {
			path := e.Path
			if n >= len(queries) {
				path += "/"
			}
			target := strings.TrimSuffix(fmt.Sprintf("%s%s?%s", catalog.BasePath, path, query), "?")
			page := set.Find([]byte(target))
			variant, err := e.Select([]byte(query), set.Known())
			if page == nil {
				continue
			}
			found++
			must.Hold(t, err == nil && set.Page(variant) == page, "%s: the map and the catalog disagree", target)
			must.Hold(t, page.Endpoint == i && (page.Countdown != nil) == e.Computed, "%s: got a page of endpoint %d", target, page.Endpoint)
		}
	}
	must.Hold(t, found >= 466, "got %d targets in the map, want all the plain ones", found)
	for _, target := range []string{
		"", "/", "/standings//", "/standings?", "/standings?year=1999", "/standings?year=2024&year=2024",
		"/predictions?year=2024&session_key=2023005", "/drivers?year=2024",
	} {
		must.Hold(t, set.Find([]byte(catalog.BasePath+target)) == nil, "%s is found", target)
	}
}

func TestSessionWithoutPickIsTheEmptyList(t *testing.T) {
	set := load(t)
	none := set.Page(catalog.Variant{Endpoint: catalog.Predictions, SessionKey: catalog.NoSession})
	got := set.Page(catalog.Variant{Endpoint: catalog.Predictions, SessionKey: 2024020})
	must.Hold(t, got != nil && got == none, "got %p, want %p", got, none)
}

func TestLoadRefusesAnIncompleteVersion(t *testing.T) {
	for _, path := range []string{"drivers", "standings/drivers/1950", "next-race", "predictions/none", "accuracy/all"} {
		golden.Sentence(t, "a version without "+path, must.Err(resident.Load(edgetest.Publish(t, memblob.New(), 1, path), nil)))
	}
}

// TestLapKeepsOtherPages: a lap of a race makes one page anew. Requests for everything else meet the pages that they met
// before.
func TestLapKeepsOtherPages(t *testing.T) {
	store := memblob.New()
	set := must.Get(resident.Load(edgetest.Publish(t, store, 1), nil))(t)
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	m := base.Manifest
	draft := snapshots.Draft{Base: base, About: m.About}
	for _, e := range m.Entries {
		if e.Path != "live" {
			draft.Variants = append(draft.Variants, snapshots.Reused(e))
			continue
		}
		body := must.Get(base.Body(t.Context(), e))(t)
		body = bytes.Replace(body, []byte(`"lap":`), []byte(`"lap":1`), 1)
		draft.Variants = append(draft.Variants, snapshots.New(e.Path, body, nil, e.GeneratedAt))
	}
	must.Get((&snapshots.Publisher{Store: store}).Publish(t.Context(), draft))(t)
	lap := must.Get(snapshots.Open(t.Context(), store, set.Version()))(t)
	after := must.Get(resident.Load(lap, set))(t)
	for target := range set.Targets() {
		if target = strings.TrimSuffix(target, "/"); target == "/api/v1/next-race" { // completed for each request
			continue
		}
		kept := after.Find([]byte(target)) == set.Find([]byte(target))
		must.Hold(t, kept != (target == "/api/v1/live"), "%s has the page of before: %t", target, kept)
	}
}

// The page of a target does not depend on the version loaded before.
func TestLoadAfterAnother(t *testing.T) {
	store := memblob.New()
	var set *resident.Set
	for n, without := range []string{"", "", "probabilities/session/2024001", ""} {
		v := edgetest.Publish(t, store, int64(n), without)
		alone := must.Get(resident.Load(v, nil))(t)
		set = must.Get(resident.Load(v, set))(t)
		want, got := alone.Targets(), set.Targets()
		for target, body := range want {
			if body == nil || got[target] != body {
				t.Errorf("version %d, %s: it finds another body than from nothing", v.Pointer.Version, target)
			}
		}
		must.Hold(t, len(got) == len(want), "version %d has %d targets, want %d", v.Pointer.Version, len(got), len(want))
	}
}

// TestLeanPage answers with the same bytes and tags as a full page, but to zstd as to a client without it. The second
// request for the identity allocates nothing.
func TestLeanPage(t *testing.T) {
	text := []byte(strings.Repeat(`{"position":1,"driver":"NOR"},`, 100))
	body := must.Get(snapshots.NewBody(text))(t)
	page := resident.NewPage(body, resident.JSON, resident.NewField("Cache-Control", "max-age=300"))
	before := map[string]*resident.Response{}
	for _, accepted := range []string{"", "gzip", "br", "identity"} {
		before[accepted] = page.Answer([]byte(accepted), nil)
	}
	before["zstd"], before["gzip, deflate, zstd"] = before["identity"], before["gzip"]
	page.Slim(resident.NewIdentities())
	for accepted, want := range before {
		got := page.Answer([]byte(accepted), nil)
		if plain := accepted == "" || accepted == "identity" || accepted == "zstd"; plain {
			must.Hold(t, bytes.Equal(got.Body, text), "%q: got %d bytes, want the %d of the text", accepted, len(got.Body), len(text))
		} else if !bytes.Equal(got.Body, want.Body) {
			t.Errorf("%q: got another body", accepted)
		}
		n := testing.AllocsPerRun(10, func() { page.Answer([]byte(accepted), nil) })
		must.Hold(t, n == 0, "%q: %v allocations", accepted, n)
		if !bytes.Equal(got.ETag, want.ETag) || got.Status != want.Status {
			t.Errorf("%q: got %d with %s, want %d with %s", accepted, got.Status, got.ETag, want.Status, want.ETag)
		}
		kept := page.Answer([]byte(accepted), want.ETag)
		must.Hold(t, kept.Status == 304, "%q with its tag: got %d, want 304", accepted, kept.Status)
	}
}

// TestIdentitiesAreBounded asks for more identities of past seasons than the edge keeps.
func TestIdentitiesAreBounded(t *testing.T) {
	kept := resident.NewIdentities()
	const size = 1 << 20
	for i := range 20 {
		text := bytes.Repeat([]byte{byte('a' + i)}, size)
		body := must.Get(snapshots.NewBody(text))(t)
		page := resident.NewPage(body, resident.JSON, resident.NewField("Cache-Control", "max-age=300"))
		page.Slim(kept)
		for range 2 {
			if got := page.Answer(nil, nil); !bytes.Equal(got.Body, text) {
				t.Fatalf("page %d: got %d bytes, want the %d of its text", i, len(got.Body), size)
			}
		}
		if got, most := kept.Size(), resident.MaxIdentities; got < size || got > most {
			t.Errorf("after page %d: %d bytes are kept, want at least the last one and at most %d", i, got, most)
		}
	}
}

// TestIdentityIsKeptOnce has two requests for the same page make its identity at once.
func TestIdentityIsKeptOnce(t *testing.T) {
	body := must.Get(snapshots.NewBody(bytes.Repeat([]byte("a"), 1<<10)))(t)
	page := resident.NewPage(body, resident.JSON, resident.NewField("Cache-Control", "max-age=300"))
	kept := resident.NewIdentities()
	first, second := resident.New(200, nil, nil, body.Plain()), resident.New(200, nil, nil, body.Plain())
	got := kept.Keep(page, first)
	must.Hold(t, got == first, "the first request got %p, want its own response %p", got, first)
	if got := kept.Keep(page, second); got != first || kept.Size() != 1<<10 {
		t.Errorf("the second request got %p, and %d bytes are kept; want the response %p of the first, and 1024", got, kept.Size(), first)
	}
}

// TestNextVersionForgetsIdentities asks for the identity of a past season before and after a version.
func TestNextVersionForgetsIdentities(t *testing.T) {
	store := memblob.New()
	first := must.Get(resident.Load(edgetest.Publish(t, store, 1), nil))(t)
	var past []byte
	for target, body := range first.Targets() {
		if resident.Lean(&first.Version().Manifest, body.Entry.Path) && len(body.Encoded) > 0 {
			past = []byte(target)
			break
		}
	}
	if first.Find(past).Answer(nil, nil); first.Identities().Size() == 0 {
		t.Fatal("the identity of a past season is not kept")
	}
	second := must.Get(resident.Load(edgetest.Publish(t, store, 2), first))(t)
	got := second.Identities().Size()
	must.Hold(t, got == 0, "the next version keeps %d bytes that nobody asked for", got)
	if body := second.Find(past).Answer(nil, nil).Body; len(body) == 0 || second.Identities().Size() != len(body) {
		t.Errorf("got %d bytes, of which %d are kept", len(body), second.Identities().Size())
	}
}
