package render

import (
	"cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// pageSize is the number of changes on a full page. Clients keep full pages, so it never changes.
const pageSize = 200

// changeKinds are the API's names of the events that change a published round.
var changeKinds = map[ledger.Type]wire.ChangeKind{
	ledger.KeysAssigned: wire.RoundAdded, ledger.RoundMoved: wire.RoundMoved, ledger.RoundReleased: wire.RoundMoved,
	ledger.RoundPostponed: wire.RoundPostponed, ledger.RoundCancelled: wire.RoundCancelled, ledger.RoundReinstated: wire.RoundReinstated,
	ledger.ResultVerified: wire.ResultRevised, ledger.PickVoided: wire.PickVoided,
	ledger.ChampionshipDecided: wire.ChampionshipDecided, ledger.DriverWithdrawn: wire.DriverWithdrawn, ledger.DriverReturned: wire.DriverReturned,
}

func changesPage(a *almanac.Almanac, page int) wire.ChangesPage {
	if page == catalog.NoPage {
		return wire.ChangesPage{Changes: []wire.LoggedChange{}}
	}
	p := wire.ChangesPage{Page: page, Changes: []wire.LoggedChange{}}
	log := a.Log()
	for _, e := range log[min(len(log), (page-1)*pageSize):min(len(log), page*pageSize)] {
		p.Changes = append(p.Changes, loggedChange(&e))
	}
	if len(p.Changes) == pageSize {
		p.Next = catalog.Variant{Endpoint: catalog.ChangesLog, Page: page + 1}.Target()
	}
	return p
}

// loggedChange renders an event from its own fields, so that it is the same in every later version.
func loggedChange(e *ledger.LoggedEvent) wire.LoggedChange {
	c := wire.LoggedChange{SessionKey: e.Session, Kind: changeKinds[e.Type], At: wire.Instant(e.When()), By: role(e.Actor), Reason: e.Reason}
	before, after := wire.LoggedState{Revision: max(e.Revision-1, 0), DateStart: wire.Instant(e.Was)}, wire.LoggedState{Revision: e.Revision}
	switch e.Type {
	case ledger.ResultVerified: // it has the start that was valid
	case ledger.DriverWithdrawn, ledger.DriverReturned: // likewise
		c.DriverID = string(e.Driver)
	default:
		after.DateStart = wire.Instant(e.Start)
	}
	if e.Before != e.After || e.Type == ledger.KeysAssigned {
		after.Status = decided(e.After)
	}
	if e.Before != e.After {
		before.Status = decided(e.Before)
		if e.Before == ledger.AsPlanned && !e.Valid.IsZero() {
			before.Status = Status(almanac.ClockState(e.When(), e.Valid))
		}
	}
	switch {
	case e.Restored != nil:
		c.Championship = changedChampionship(e.Restored, true)
	case e.Championship != nil:
		c.Championship = changedChampionship(e.Championship, false)
	}
	if before != (wire.LoggedState{}) {
		c.Old = &before
	}
	if after != (wire.LoggedState{}) {
		c.New = &after
	}
	return c
}

// decided returns the status of a round that a decision gives it.
func decided(s ledger.OverrideStatus) wire.Status { return cmp.Or(wire.Status(s), wire.Scheduled) }
