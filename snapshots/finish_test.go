package snapshots_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/snapshots"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

var errUnfinished = errors.New("unfinished")

// TestFinish shows that a version has the content of its finished draft, and that an object which was
// uploaded early is not written again.
func TestFinish(t *testing.T) {
	before := bodies{"drivers": "d1", "calendar/2024": "c1", "next-race": "n1"}
	for _, c := range []struct {
		name       string
		early, end bodies
		version    int64 // under which it is published
		left       int   // objects that no manifest names
	}{
		{"all of it", before.with(bodies{"drivers": "d2"}), before.with(bodies{"drivers": "d2"}), 2, 0},
		{"some of it", before.with(bodies{"drivers": "d2"}), before.with(bodies{"drivers": "d2", "next-race": "n2"}), 2, 0},
		{"more than it", before.with(bodies{"drivers": "d2", "next-race": "n2"}), before.with(bodies{"drivers": "d2"}), 2, 1},
		{"another body", before.with(bodies{"drivers": "d2"}), before.with(bodies{"drivers": "d3"}), 3, 1},
		{"nothing", before, before.with(bodies{"drivers": "d2"}), 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := strict(t) // fails if an object is written twice
			publish(t, s, before)
			p, base := snapshots.Publisher{Store: s}, loadBase(t, s)
			draft := draftOf(base, c.early)
			draft.Finish = func(d *snapshots.Draft) error {
				*d = draftOf(base, c.end)
				return nil
			}
			receipt, err := p.Publish(t.Context(), draft)
			if err != nil || receipt.Version != c.version {
				t.Fatalf("got version %d, %v; want %d", receipt.Version, err, c.version)
			}
			version, content := served(t, s)
			if diff := cmp.Diff(c.end, content); version != c.version || diff != "" {
				t.Errorf("version %d is served (-want +got):\n%s", version, diff)
			}
			pruned, err := snapshots.Prune(t.Context(), s, 1, time.Now().Add(2*snapshots.PruneAge), true)
			if err != nil {
				t.Fatal(err)
			}
			left := 0
			for _, info := range pruned.Removed {
				if len(info.Key) > 10 && info.Key[:10] == "objects/2/" {
					left++
				}
			}
			if left != c.left {
				t.Errorf("%d objects of version 2 are left over, want %d: %v", left, c.left, pruned.Removed)
			}
		})
	}
}

// TestFinishWithoutUpload shows that nothing is written while a draft is finished that has nothing new or
// may not be published.
func TestFinishWithoutUpload(t *testing.T) {
	before := bodies{"drivers": "d1", "calendar/2024": "c1"}
	for name, change := range map[string]func(t *testing.T, s *memblob.Store, d *snapshots.Draft){
		"built before the version that is current": func(_ *testing.T, _ *memblob.Store, d *snapshots.Draft) { d.BuiltAt = d.BuiltAt.Add(-time.Second) },
		"nothing new": func(_ *testing.T, _ *memblob.Store, d *snapshots.Draft) {
			d.Variants = draftOf(d.Base, before).Variants
		},
		"held": func(t *testing.T, s *memblob.Store, d *snapshots.Draft) {
			publish(t, s, before.with(bodies{"drivers": "another"}))
			rollback(t, s, 1)
			d.Base = loadBase(t, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := strict(t)
				publish(t, s, before)
				d := draftOf(loadBase(t, s), before.with(bodies{"drivers": "d2"}))
				change(t, s, &d)
				list := func() (keys []string) {
					for info, err := range s.List(t.Context(), "") {
						if err != nil {
							t.Fatal(err)
						}
						keys = append(keys, info.Key)
					}
					return keys
				}
				keys := list()
				p := snapshots.Publisher{Store: s}
				d.Finish = func(*snapshots.Draft) error {
					synctest.Wait() // until an upload would have ended
					return errUnfinished
				}
				if _, err := p.Publish(t.Context(), d); !errors.Is(err, errUnfinished) {
					t.Errorf("got %v, want %v", err, errUnfinished)
				}
				if diff := cmp.Diff(keys, list()); diff != "" {
					t.Errorf("what is stored (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// TestFinishFails shows that a publish whose Finish fails or panics ends when its upload has ended, and
// leaves nothing but objects that no manifest names.
func TestFinishFails(t *testing.T) {
	before := bodies{"drivers": "d1", "calendar/2024": "c1"}
	for name, finish := range map[string]func() error{
		"fails":  func() error { return errUnfinished },
		"panics": func() error { panic(errUnfinished) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := strict(t)
				publish(t, inner, before)
				ended := 0
				s := faultblob.Wrap(inner, func(ctx context.Context, call faultblob.Call) faultblob.Fate {
					if call.Op == faultblob.Create { // hangs until the publish gives up
						<-ctx.Done()
						time.Sleep(time.Second)
						ended++
						return faultblob.Fate{Err: ctx.Err()}
					}
					return faultblob.Fate{}
				})
				p, d := snapshots.Publisher{Store: s}, draftOf(loadBase(t, inner), before.with(bodies{"drivers": "d2"}))
				d.Finish = func(*snapshots.Draft) error {
					synctest.Wait() // until the upload hangs
					return finish()
				}
				func() {
					defer func() {
						if recover() != nil && name != "panics" {
							t.Error("it panics")
						}
					}()
					if _, err := p.Publish(t.Context(), d); !errors.Is(err, errUnfinished) {
						t.Errorf("got %v, want %v", err, errUnfinished)
					}
				}()
				if ended != 1 {
					t.Errorf("%d writes have ended, want 1: the upload outlives the publish", ended)
				}
				if version, content := served(t, inner); version != 1 || content["drivers"] != "d1" {
					t.Errorf("version %d is served", version)
				}
			})
		})
	}
}

// TestFinishTrips shows that an upload which ends before Finish leaves four round trips: the manifest, the
// manifest read back, the pointer, the pointer read back.
func TestFinishTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTrips(memblob.New(memblob.Strict(t, snapshots.Immutable)))
		receipt := publish(t, s, decades())
		p := snapshots.Publisher{Store: s}
		draft := draftOf(receipt.Base, decades().with(verified("now")))
		var began time.Time
		draft.Finish = func(*snapshots.Draft) error {
			time.Sleep(time.Minute)
			began = time.Now()
			return nil
		}
		if _, err := p.Publish(t.Context(), draft); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(began); got != 4*time.Second {
			t.Errorf("it took %d round trips, want 4", got/time.Second)
		}
	})
}
