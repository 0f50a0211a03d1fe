package probe

import "time"

// Hasten shortens the waits of a minute, and returns a function that restores them.
func Hasten(answer, between time.Duration) (restore func()) {
	a, b := patience, again
	patience, again = answer, between
	return func() { patience, again = a, b }
}
