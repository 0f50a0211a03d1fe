// Package ledger is the append-only record of what gridcast promised and what operators
// decided: session keys, frozen picks, verified results and changes to the calendar. A fact
// that is in the ledger is never changed, only followed by another.
//
// It lives in a blob.Store as one file per append, ledger/00000001.json and so on without a
// gap. Each is created once and names the SHA-256 of the file before, so that whoever noted
// one hash can tell later whether anything up to there was rewritten. See File for the format.
//
// Open or Load reads the record; Ledger.State and Ledger.AsOf give what the events add up to;
// Ledger.Append adds events after checking them against that. Audit proves the record from the
// store alone, without trusting anything that Append promised.
//
// An event that breaks a rule can not be appended. Should one be in the store all the same,
// written by a faulty or hostile program, every reader ignores it and the audit reports it.
// The rule "the first freeze of a round since its last void counts" is a case of this.
//
// Times are race time, in UTC. The package has no clock.
package ledger
