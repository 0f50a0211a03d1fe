package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"gridcast/snapshots/blob"
)

const racers = 16

// race runs write in sixteen goroutines at once and returns the winners. ErrUnknown is resolved
// by reading back, as every caller must.
func race(t *testing.T, s blob.Store, key string, write func(me []byte) error) []byte {
	t.Helper()
	var winners sync.Map
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			me := []byte(fmt.Sprintf("racer %d", i))
			err := write(me)
			if errors.Is(err, blob.ErrUnknown) {
				if o, e := s.Get(t.Context(), key, blob.MaxDocument); e == nil && bytes.Equal(o.Data, me) {
					err = nil
				} else {
					err = blob.ErrConflict
				}
			}
			switch {
			case err == nil:
				won.Add(1)
				winners.Store("winner", me)
			case !errors.Is(err, blob.ErrConflict):
				t.Errorf("racer %d: got %v, want nil or %v", i, err, blob.ErrConflict)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d writers won, want 1", won.Load())
	}
	winner, _ := winners.Load("winner")
	return winner.([]byte)
}

func createsRace(t *testing.T, s blob.Store) {
	for round := range 4 {
		key := "race/" + strconv.Itoa(round)
		winner := race(t, s, key, func(me []byte) error {
			_, err := s.Create(t.Context(), key, me)
			return err
		})
		wantData(t, s, key, string(winner))
	}
}

func swapsRace(t *testing.T, s blob.Store) {
	tag := create(t, s, "current.json", []byte("start"))
	for range 4 {
		winner := race(t, s, "current.json", func(me []byte) error {
			_, err := s.Swap(t.Context(), "current.json", tag, append(me, tag...))
			return err
		})
		o := get(t, s, "current.json")
		if want := string(winner) + string(tag); string(o.Data) != want {
			t.Fatalf("after the race: got %q, want %q", o.Data, want)
		}
		tag = o.Tag
	}
}

// wholeObjects replaces an object again and again while others read it.
func wholeObjects(t *testing.T, s blob.Store) {
	const size = 64 << 10
	tag := create(t, s, "current.json", bytes.Repeat([]byte{0}, size))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				o, err := s.Get(t.Context(), "current.json", blob.MaxDocument)
				if err != nil {
					t.Errorf("get during swaps: %v", err)
					return
				}
				if len(o.Data) != size || !bytes.Equal(o.Data, bytes.Repeat(o.Data[:1], size)) {
					t.Errorf("a reader saw %d bytes, a mix of versions", len(o.Data))
					return
				}
			}
		})
	}
	for i := range 20 {
		var err error
		if tag, err = s.Swap(t.Context(), "current.json", tag, bytes.Repeat([]byte{byte(i + 1)}, size)); err != nil {
			t.Errorf("swap %d: %v", i, err)
			break
		}
	}
	close(done)
	wg.Wait()
}
