// Package scheduler runs the named jobs it is handed, when they fall due.
//
// A job is a plain function. It falls due by the calendar (see package cadence), at an
// interval, or when somebody asks for it with Trigger. Whatever made it fall due while it was
// not looked at (a pause, a restart, a run that failed, a trigger during a run) is made good by
// one run, which is told of all of it; only a freeze is never made good after lights out.
//
// A job never overlaps itself; different jobs run side by side. After an error it is tried
// again with growing waits. After every run, and at every heartbeat, the schedule is made
// anew from the calendar as it is then.
//
// Nothing here elects or locks. Two schedulers may run the same jobs on the same store, and
// the compare-and-swap of the store decides whose work counts; jobs must therefore be safe to
// run twice.
//
// All scheduled times are race time, read from the clock handed to New, and UTC. Only the
// measured durations and StopGrace are real time.
package scheduler
