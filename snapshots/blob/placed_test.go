package blob_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/memblob"
)

func TestUnder(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return blob.Under(memblob.New(), "sandbox/") })
}

// TestPlaced checks that each object lies in the folder of its key, and that the view lists each folder alone.
func TestPlaced(t *testing.T) {
	inner := memblob.New()
	s := blob.Placed(inner, func(key string) string {
		if strings.HasPrefix(key, "ledger/") {
			return "sandbox/7/"
		}
		return "sandbox/"
	})
	for _, key := range []string{"current.json", "ledger/1.json"} {
		must.Get(s.Create(t.Context(), key, []byte(key)))(t)
		must.Equal(t, key, key, string(must.Get(s.Get(t.Context(), key, blob.MaxDocument))(t).Data))
	}
	keys := func(s blob.Store, prefix string) string {
		var list []string
		for info, err := range s.List(t.Context(), prefix) {
			must.Do(t, err)
			list = append(list, info.Key)
		}
		return strings.Join(list, " ")
	}
	must.Equal(t, "all keys", "sandbox/7/ledger/1.json sandbox/current.json", keys(inner, ""))
	must.Equal(t, "ledger/", "ledger/1.json", keys(s, "ledger/"))
	must.Equal(t, "current", "current.json", keys(s, "current"))
	plain := blob.Under(struct{ blob.Store }{inner}, "")
	_, _, err := plain.(blob.Clock).StoreTime(t.Context())
	must.Fail(t, "a store without a clock", err, errors.ErrUnsupported)
	must.Equal(t, "writers of a store without groups", 0, plain.(blob.Grouper).Writers())
	whole := blob.Under(able{memblob.New(memblob.Clock(func() time.Time { return time.Unix(7, 0) }))}, "")
	now, _, err := whole.(blob.Clock).StoreTime(t.Context())
	must.Hold(t, err == nil && now.Unix() == 7, "the time of the store below: got %s, %v", now, err)
	must.Equal(t, "writers of a store with groups", 9, whole.(blob.Grouper).Writers())
}

// able is a store with groups of writers.
type able struct{ *memblob.Store }

func (able) Writers() int { return 9 }
