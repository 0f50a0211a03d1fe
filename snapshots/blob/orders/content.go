package orders

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// content is the content of a store. It is immutable.
type content struct {
	objects map[string]object
	deleted map[string]bool // keys that have held an object

	known map[string]applied // the calls that apply has seen, by their digest
}

type applied struct {
	answer answer
	after  *content
}

type object struct {
	data     []byte
	modified time.Time
}

// read returns the content of a store.
func read(t *testing.T, s blob.Store) *content {
	t.Helper()
	c := &content{objects: map[string]object{}}
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Get(t.Context(), info.Key, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		c.objects[info.Key] = object{o.Data, info.Modified}
	}
	return c
}

// store returns a new store with the content. Its clock shows now.
func (c *content) store(now time.Time) *memblob.Store {
	at := now
	s := memblob.New(memblob.Clock(func() time.Time { return at }))
	for key, o := range c.objects {
		at = o.modified
		if _, err := s.Create(context.Background(), key, o.data); err != nil {
			panic("BUG: " + err.Error()) // an empty store takes the objects of another one
		}
	}
	at = now
	return s
}

// digest identifies the content.
func (c *content) digest() string {
	var all strings.Builder
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		o := c.objects[key]
		fmt.Fprintf(&all, "%s %s %d\n", key, tagOf(o.data), o.modified.UnixNano())
	}
	fmt.Fprint(&all, slices.Sorted(maps.Keys(c.deleted)))
	return all.String()
}

// tagOf is the tag of an object: the digest of its bytes, so that it is the same in every order.
func tagOf(data []byte) blob.Tag { return blob.Tag(fmt.Sprintf("%x", sha256.Sum256(data))) }

// call is a call of a process to its store.
type call struct {
	faultblob.Call
	data  []byte   // of a write
	old   blob.Tag // of a Swap
	limit int64    // of a Get

	digest string // of all above
}

func (c call) String() string { return fmt.Sprintf("%s %s", c.Op, c.Key) }

// answer is that of a store to a call.
type answer struct {
	object blob.Object
	infos  []blob.Info
	err    error
}

// digest identifies the answer.
func (a answer) digest() string {
	return fmt.Sprintf("%s %s %v %v", a.object.Tag, tagOf(a.object.Data), a.infos, a.err)
}

// apply returns the answer to a call, and the content after it.
func (c *content) apply(to call, now time.Time) (got answer, after *content) {
	s, ctx := c.store(now), context.Background()
	old := to.old
	held, there := c.objects[to.Key]
	if o, err := s.Get(ctx, to.Key, math.MaxInt64); err == nil && tagOf(o.Data) == old {
		old = o.Tag
	}
	switch to.Op {
	case faultblob.Get:
		if got.object, got.err = s.Get(ctx, to.Key, to.limit); got.err == nil {
			got.object.Tag = tagOf(got.object.Data)
		}
		return got, c
	case faultblob.List:
		for info, err := range s.List(ctx, to.Key) {
			got.infos, got.err = append(got.infos, info), err
		}
		return got, c
	case faultblob.Create:
		_, got.err = s.Create(ctx, to.Key, to.data)
	case faultblob.Swap:
		_, got.err = s.Swap(ctx, to.Key, old, to.data)
	case faultblob.Delete:
		got.err = s.Delete(ctx, to.Key)
	default:
		panic("BUG: no process here calls " + string(to.Op))
	}
	if got.err != nil || to.Op == faultblob.Delete && !there {
		return got, c
	}
	after = &content{objects: maps.Clone(c.objects), deleted: maps.Clone(c.deleted)}
	if to.Op == faultblob.Delete {
		delete(after.objects, to.Key)
		after.deleted = map[string]bool{to.Key: true}
		maps.Copy(after.deleted, c.deleted)
		return got, after
	}
	held.data, held.modified = to.data, now
	after.objects[to.Key] = held
	got.object.Tag = tagOf(to.data)
	return got, after
}
