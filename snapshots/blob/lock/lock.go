// Package lock has the lock of work that waits for a storage.
package lock

import "sync"

// Lock is a sync.Mutex whose waiters sleep on a condition. The zero value is unlocked. It is for a lock that is held
// through reads and writes of a store. In a bubble of testing/synctest the clock stands still while a goroutine waits for a
// sync.Mutex, so no test could make the store slow.
type Lock struct {
	mu   sync.Mutex // guards the following
	held bool
	free sync.Cond
}

// Before is called before each Lock and each run of a job, unless it is nil. A simulation sets it at its start, and orders
// there the goroutines that come at one instant. The name is that of the job; it is empty for a lock.
var Before func(name string)

// Order calls Before. It holds no lock.
func Order(name string) {
	if Before != nil {
		Before(name)
	}
}

// Lock waits until the lock is free, and takes it.
func (l *Lock) Lock() {
	Order("")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free.L = &l.mu
	for l.held {
		l.free.Wait()
	}
	l.held = true
}

// Unlock frees the lock. It panics if nobody holds it.
func (l *Lock) Unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		panic("BUG: a free lock is unlocked")
	}
	l.held = false
	l.free.Signal()
}
