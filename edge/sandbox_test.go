package edge_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/schemas/docs"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// simulatedClock shows half an hour before lights out at the start of a test, and runs 72 times as fast as real time.
const simulatedClock = "2024-12-08T12:30:00Z@2026-11-20T12:00:30Z*72"

// served is the published version of a store, as its bytes.
func served(t *testing.T, store blob.Store) *snapshots.Version {
	t.Helper()
	return must.Get(snapshots.Open(t.Context(), store, nil))(t)
}

// openSandbox publishes a world in the store of a running edge, and waits until the edge answers from it.
func (w *world) openSandbox(session int64) {
	w.t.Helper()
	edgetest.PublishSandbox(w.t, w.store, nil, simulatedClock, session)
	w.edge.Look()
	w.await("the sandbox", func() bool { return w.edge.Status().Sandbox != nil })
}

// overwrite replaces an object.
func overwrite(t *testing.T, store blob.Store, key, text string) {
	t.Helper()
	o := must.Get(store.Get(t.Context(), key, blob.MaxDocument))(t)
	must.Get(store.Swap(t.Context(), key, o.Tag, []byte(text)))(t)
}

func signer(t *testing.T) *notes.Signers {
	t.Helper()
	file := filepath.Join(t.TempDir(), "version.key")
	must.Do(t, notes.MakeKey(file, "example.com/gridcast"))
	return must.Get(notes.ReadSigners(file))(t)
}

// sandboxStates are the states of a store with respect to its sandbox.
var sandboxStates = []struct {
	name    string
	trusts  bool
	answers bool // from the sandbox
	make    func(t *testing.T, store blob.Store, key *notes.Signers)
}{
	{"absent", false, false, func(*testing.T, blob.Store, *notes.Signers) {}},
	{"present", false, true, func(t *testing.T, store blob.Store, _ *notes.Signers) {
		edgetest.PublishSandbox(t, store, nil, simulatedClock, 1001)
	}},
	{"signed", true, true, func(t *testing.T, store blob.Store, key *notes.Signers) {
		edgetest.PublishSandbox(t, store, key, simulatedClock, 1001)
	}},
	{"unsigned", true, false, func(t *testing.T, store blob.Store, _ *notes.Signers) {
		edgetest.PublishSandbox(t, store, nil, simulatedClock, 1001)
	}},
	{"signed by another key", true, false, func(t *testing.T, store blob.Store, _ *notes.Signers) {
		edgetest.PublishSandbox(t, store, signer(t), simulatedClock, 1001)
	}},
	{"a damaged pointer", false, false, func(t *testing.T, store blob.Store, _ *notes.Signers) {
		edgetest.PublishSandbox(t, store, nil, simulatedClock, 1001)
		overwrite(t, store, snapshots.SandboxFolder+snapshots.PointerKey, "{}")
	}},
	{"a damaged manifest", false, false, func(t *testing.T, store blob.Store, _ *notes.Signers) {
		edgetest.PublishSandbox(t, store, nil, simulatedClock, 1001)
		overwrite(t, store, snapshots.SandboxFolder+snapshots.ManifestKey(1), "other bytes")
	}},
	{"an unreadable clock", false, false, func(t *testing.T, store blob.Store, _ *notes.Signers) {
		edgetest.PublishSandbox(t, store, nil, "yesterday", 1001)
	}},
	{"a real version in its place", true, false, func(t *testing.T, store blob.Store, key *notes.Signers) {
		edgetest.PublishSigned(t, blob.Under(store, snapshots.SandboxFolder), key, 1001)
	}},
}

// TestAnswersByKeyAndWorld asks every path with every kind of key, for every state of the sandbox. A key of the tier sandbox
// is answered from the sandbox if the store has a good one, and from real data otherwise; any other key always gets real
// data.
func TestAnswersByKeyAndWorld(t *testing.T) {
	for _, state := range sandboxStates {
		t.Run(state.name, func(t *testing.T) {
			key := signer(t)
			folder := t.TempDir()
			w := newWorld(t, withoutVersion, perMinute("sandbox", 1000), perMinute("pro", 1000), func(c *edge.Config, d *edge.Deps, s *setup) {
				if state.trusts {
					c.Trust, c.CacheDir = key.Trust(), folder
				}
				edgetest.PublishSigned(t, d.Store, key, 1)
				state.make(t, d.Store, key)
				s.copied = true
			})
			real, simulated := served(t, w.store), (*snapshots.Version)(nil)
			if state.answers {
				simulated = served(t, blob.Under(w.store, snapshots.SandboxFolder))
				w.await("the sandbox", func() bool { s := w.edge.Status().Sandbox; return s != nil && s.Version == 1 })
			} else if state.name != "absent" {
				w.await("the refusal", func() bool { s := w.edge.Status().Sandbox; return s != nil && s.Refused != nil })
			}
			for _, who := range []struct {
				key    string
				status int
				from   *snapshots.Version
			}{
				{w.key["pro"], 200, real},
				{w.key["sandbox"], 200, simulated},
				{keys.Public, 200, simulated},
				{"", 401, nil},
				{w.key["revoked"], 401, nil},
				{keys.TestPrefix + strings.Repeat("x", keys.Length-len(keys.TestPrefix)), 401, nil},
			} {
				from, want := who.from, who.status
				if from == nil && want == 200 {
					if from = real; who.key == keys.Public {
						want = 401
					}
				}
				for _, e := range catalog.Endpoints {
					if e.File {
						continue
					}
					target := catalog.BasePath + e.Path
					r := w.do("GET", target, "X-API-Key: "+who.key)
					if r.StatusCode != want {
						t.Errorf("%s with %.12s: got %d, want %d", target, who.key, r.StatusCode, want)
					}
					if want != 200 {
						continue
					}
					world := r.Header.Get("X-Gridcast-World")
					must.Hold(t, (world == "sandbox") == (from == simulated), "%s with %.12s: marked %q", target, who.key, world)
					if e.Computed {
						continue
					}
					holds := false
					for path, body := range from.All() {
						holds = holds || strings.HasPrefix(path, string(e.Name)) && bytes.Equal(r.body, body.Plain())
					}
					must.Hold(t, holds, "%s with %.12s: got the body of the other world", target, who.key)
				}
			}
			for _, path := range []string{"/calendar.ics", "/changes.atom", "/portraits/lando-norris.svg", "/status", "/signed/note"} {
				r := w.do("GET", "/sandbox"+path)
				want := http.StatusNotFound
				if state.answers && (path != "/signed/note" || state.trusts) {
					want = http.StatusOK
				}
				must.Hold(t, r.StatusCode == want, "/sandbox%s: got %d, want %d", path, r.StatusCode, want)
			}
			for _, f := range catalog.Feeds {
				body, _ := real.Body(f.Stored)
				r := w.do("GET", f.Path)
				must.Hold(t, bytes.Equal(r.body, body.Plain()), "%s: got %.100q", f.Path, r.body)
			}
			for _, r := range []response{w.do("GET", "/status"), w.do("GET", "/sandbox/status")} {
				if r.StatusCode == http.StatusOK {
					service(t, "/status", r)
				}
			}
		})
	}
}

// TestSimulatedVersionIsNotReal puts a signed version of the sandbox where the real one belongs: a signature says nothing
// about the place, so that a writer of the storage could show a simulated result as real.
func TestSimulatedVersionIsNotReal(t *testing.T) {
	key, folder := signer(t), t.TempDir()
	w := newWorld(t, withoutVersion, func(c *edge.Config, d *edge.Deps, _ *setup) {
		c.Trust, c.CacheDir = key.Trust(), folder
		edgetest.PublishSandbox(t, blob.Under(d.Store, ""), key, simulatedClock, 1001)
		for info, err := range d.Store.List(t.Context(), snapshots.SandboxFolder) {
			o, getErr := d.Store.Get(t.Context(), info.Key, blob.MaxDocument)
			_, createErr := d.Store.Create(t.Context(), strings.TrimPrefix(info.Key, snapshots.SandboxFolder), o.Data)
			must.Do(t, errors.Join(err, getErr, createErr))
		}
	})
	w.await("the refusal", func() bool { return w.edge.Status().Refused != nil })
	s := w.edge.Status()
	must.Hold(t, s.Version == 0, "got version %d, %+v", s.Version, s.Refused)
	golden.Sentence(t, "a simulated version in the real world", s.Refused.Reason)
	r := w.get("/api/v1/standings")
	must.Hold(t, r.StatusCode == http.StatusServiceUnavailable, "a real key got %d", r.StatusCode)
}

// TestCountdownOfEachWorld moves real time: the sandbox counts down by the clock in its version, and the real world by race
// time.
func TestCountdownOfEachWorld(t *testing.T) {
	w := newWorld(t)
	w.openSandbox(1001)
	for _, tt := range []struct {
		after           time.Duration
		real, simulated int64
	}{{0, 3600, 1800}, {10 * time.Second, 3600, 1080}, {14 * time.Second, 3600, 72}, {time.Second, 3600, 98 * 24 * 3600}} {
		w.real.add(tt.after)
		for key, want := range map[string]int64{"pro": tt.real, "sandbox": tt.simulated} {
			r := w.do("GET", "/api/v1/next-race", "X-API-Key: "+w.key[key])
			b := must.JSON[wire.Success[wire.NextRace]](t, r.body)
			must.Hold(t, b.Data.SecondsToLights == want, "%s after %v: got %d seconds, want %d", key, tt.after, b.Data.SecondsToLights, want)
		}
	}
}

// TestTagsOfTheOtherWorld sends each world the tag of the other one: it is answered with the body, and not with 304.
func TestTagsOfTheOtherWorld(t *testing.T) {
	w := newWorld(t)
	w.openSandbox(1001)
	tags := map[string]string{}
	for _, key := range []string{"pro", "sandbox", "pro"} {
		r := w.do("GET", "/api/v1/standings", "X-API-Key: "+w.key[key])
		tags[key] = r.Header.Get("ETag")
		must.Show(t, "Vary of "+key, r.Header.Get("Vary"), "Authorization", "X-API-Key")
		must.Hold(t, strings.HasPrefix(r.Header.Get("Cache-Control"), "private, "), "%s: Cache-Control %q", key, r.Header.Get("Cache-Control"))
	}
	for _, key := range []string{"pro", "sandbox"} {
		for of, tag := range tags {
			want := http.StatusOK
			if of == key {
				want = http.StatusNotModified
			}
			r := w.do("GET", "/api/v1/standings", "X-API-Key: "+w.key[key], "If-None-Match: "+tag)
			must.Hold(t, r.StatusCode == want, "%s with the tag of %s: got %d, want %d", key, of, r.StatusCode, want)
		}
	}
}

// TestDownloadsOfEachWorld: both worlds have a file of the same season.
func TestDownloadsOfEachWorld(t *testing.T) {
	w := newWorld(t)
	edgetest.PublishSandbox(t, w.store, nil, simulatedClock, 1001)
	sandbox := blob.Under(w.store, snapshots.SandboxFolder)
	edgetest.PublishBulk(t, w.store, map[int][]byte{2024: []byte("real")})
	edgetest.PublishBulk(t, sandbox, map[int][]byte{2024: []byte("simulated")})
	w.edge.Look()
	w.await("the sandbox", func() bool { return w.edge.Status().Sandbox != nil })
	for key, want := range map[string]string{"pro": "real", "sandbox": "simulated"} {
		w.await("the file for "+key, func() bool {
			r := w.do("GET", "/api/v1/bulk?year=2024", "X-API-Key: "+w.key[key])
			must.Hold(t, r.StatusCode != http.StatusOK || string(r.body) == want, "%s: got %q", key, r.body)
			return r.StatusCode == http.StatusOK
		})
	}
}

// TestSandboxEndsWithItsPointer: its keys then get real data, until the next sandbox, which counts its versions anew. A
// store that has lost everything ends no sandbox.
func TestSandboxEndsWithItsPointer(t *testing.T) {
	key, folder := signer(t), t.TempDir()
	for _, trusts := range []bool{false, true} {
		name := map[bool]string{false: "any version", true: "signed versions"}[trusts]
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withoutVersion, perMinute("sandbox", 1e6), func(c *edge.Config, d *edge.Deps, s *setup) {
				c.CacheDir = filepath.Join(folder, name)
				if trusts {
					c.Trust = key.Trust()
				}
				edgetest.PublishSigned(t, d.Store, key, 1)
				s.copied = true
			})
			from := func(world string, version int64) {
				t.Helper()
				w.await("answers of "+world, func() bool {
					w.edge.Look()
					s := w.edge.Status().Sandbox
					return w.do("GET", "/api/v1/standings", "X-API-Key: "+w.key["sandbox"]).Header.Get("X-Gridcast-World") == world && (s == nil) == (version == 0) && (s == nil || s.Version == version)
				})
			}
			edgetest.PublishSandbox(t, w.store, key, simulatedClock, 1001)
			edgetest.PublishSandbox(t, w.store, key, simulatedClock, 1002)
			from("sandbox", 2)
			must.Get(snapshots.PruneSandbox(t.Context(), w.store, false))(t)
			from("", 0)
			edgetest.PublishSandbox(t, w.store, key, simulatedClock, 1003)
			from("sandbox", 1)
			for info, err := range w.store.List(t.Context(), "") {
				must.Do(t, errors.Join(err, w.store.Delete(t.Context(), info.Key)))
			}
			w.await("the loss", func() bool { w.edge.Look(); return w.edge.Status().Refused != nil })
			from("sandbox", 1)
		})
	}
}

// TestPublicKeyIsLimitedByAddress counts it for each client behind a trusted proxy, beside the keys of the tier.
func TestPublicKeyIsLimitedByAddress(t *testing.T) {
	w := newWorld(t, perMinute("sandbox", 2), func(c *edge.Config, _ *edge.Deps, _ *setup) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		c.AnonymousSlots = 1 << 20 // two addresses hardly ever share one
	})
	ask := func(address string) response {
		return w.do("GET", "/api/v1/drivers", "Authorization: Bearer "+keys.Public, "X-Forwarded-For: "+address, "Origin: https://example.net")
	}
	r := ask("203.0.113.1")
	must.Hold(t, r.StatusCode == http.StatusUnauthorized, "without a sandbox: got %d, want 401", r.StatusCode)
	w.openSandbox(1001)
	for _, address := range []string{"203.0.113.1", "203.0.113.2"} {
		for i, want := range []int{200, 200, 429, 429} {
			r := ask(address)
			limit, remaining, _ := rate(t, r)
			must.Hold(t, r.StatusCode == want && limit == 2 && remaining == max(0, 1-i), "%s, request %d: got %d with %d of %d remaining, want %d", address, i+1, r.StatusCode, remaining, limit, want)
			must.Hold(t, want == 200 || r.Header.Get("Retry-After") != "", "%d without Retry-After", r.StatusCode)
		}
	}
	r = w.do("GET", "/api/v1/drivers", "X-API-Key: "+w.key["sandbox"], "X-Forwarded-For: 203.0.113.1")
	must.Hold(t, r.StatusCode == http.StatusOK, "a key of the tier shares the limit: got %d", r.StatusCode)
}

// TestSwapOfOneWorldLeavesTheOther publishes in one world while clients read both.
func TestSwapOfOneWorldLeavesTheOther(t *testing.T) {
	for swapped, publish := range map[string]func(t *testing.T, store blob.Store, n int64){
		"pro": func(t *testing.T, store blob.Store, n int64) { edgetest.Publish(t, store, n) },
		"sandbox": func(t *testing.T, store blob.Store, n int64) {
			edgetest.PublishSandbox(t, store, nil, simulatedClock, 1000+n)
		},
	} {
		t.Run(swapped, func(t *testing.T) {
			w := newWorld(t, perMinute("pro", 1e9), perMinute("sandbox", 1e9))
			w.openSandbox(1001)
			const published = 5
			seen := map[string][]string{} // bodies by key
			var mu sync.Mutex
			var clients sync.WaitGroup
			stop := make(chan struct{})
			for _, key := range []string{"pro", "sandbox"} {
				once := w.repeat(request("GET", "/api/v1/standings", "X-API-Key: "+w.key[key]))
				clients.Go(func() {
					for {
						_, body, _ := strings.Cut(string(once()), "\r\n\r\n")
						mu.Lock()
						if !slices.Contains(seen[key], body) {
							seen[key] = append(seen[key], body)
						}
						mu.Unlock()
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			w.await("an answer of each first version", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == 2 })
			for n := int64(2); n < published+2; n++ {
				publish(t, w.store, n)
				w.edge.Look()
				w.await("the version", func() bool {
					s := w.edge.Status()
					return swapped == "pro" && s.Version == n || swapped == "sandbox" && s.Sandbox.Version == n
				})
				mu.Lock()
				had := len(seen[swapped])
				mu.Unlock()
				w.await("a client of the version", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen[swapped]) > had || had == int(n) })
			}
			close(stop)
			clients.Wait()
			for key, bodies := range seen {
				want := 1
				if key == swapped {
					want = 1 + published
				}
				must.Hold(t, len(bodies) == want, "%s saw %d bodies of one document, want %d", key, len(bodies), want)
				for _, body := range bodies {
					b := must.JSON[wire.Success[[]wire.DriverStanding]](t, []byte(body))
					must.Hold(t, (b.Data[0].Points > 1000) == (key == "sandbox"), "%s saw %v points", key, b.Data[0].Points)
				}
			}
		})
	}
}

// TestDocumentationOfTheSandbox runs the program of the page against an edge, in a race with a red flag and
// without the wait for lights out. The page and the
// status name the public key.
func TestDocumentationOfTheSandbox(t *testing.T) {
	w := newWorld(t)
	w.openSandbox(edgetest.Suspended)
	for path, want := range map[string]string{
		"/docs/sandbox": keys.Public, "/docs/sandbox.md": keys.Public, "/status": `"key":"` + keys.Public + `"`, "/sandbox/status": `"speed":72,`,
	} {
		must.Show(t, path, string(w.do("GET", path).body), want)
	}
	must.Show(t, "the page /status", string(w.do("GET", "/status", "Accept: text/html").body), "<h2>Sandbox</h2>")
	must.Show(t, "the page /sandbox/status", string(w.do("GET", "/sandbox/status", "Accept: text/html").body), "<h1>Sandbox: ")
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 on this machine: the program is not run")
	}
	const wait = `time.sleep(max(0, instant(race["lights_out"]) - time.time()))`
	text := docs.Sandbox().Text
	must.Show(t, "the program", text, wait)
	program := exec.CommandContext(t.Context(), "python3", "-c", strings.Replace(text, wait, "", 1))
	program.Env = append(os.Environ(), "GRIDCAST_URL=http://"+w.listener.Addr().String(), "GRIDCAST_KEY="+keys.Public)
	printed, err := program.CombinedOutput()
	must.Succeed(t, "the program", err)
	must.Show(t, "the output of the program", string(printed), "the page showed the red flag")
}
