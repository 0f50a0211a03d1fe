// Package must ends a test whose set-up fails, in one line a call:
//
//	list := must.Get(keys.Load(t.Context(), store))(t)
//
// Use it where a failure says nothing about the property under test. A call under test keeps its own message.
package must

import (
	"testing"
	"time"
)

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, or ends the test if err is not nil.
func Get[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Get2 is Get for two values.
func Get2[V, W any](v V, w W, err error) func(t testing.TB) (V, W) {
	return func(t testing.TB) (V, W) {
		t.Helper()
		Do(t, err)
		return v, w
	}
}

// Until waits until condition holds, and ends the test if it does not within a minute. In a bubble of synctest the wait
// takes no real time. The text what completes "not within a minute: ".
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
