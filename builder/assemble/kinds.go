package assemble

// Kind says which permissions a document has.
type Kind int

// The kinds of documents. The zero value has no permission to change anything.
const (
	CheckOnly Kind = iota // an API with terms that the operator has not accepted
	Sparse                // an API with fewer details than a source of record
	Full                  // a source of record, such as F1DB
	Manual                // facts that people entered
)

// permissions are the rights of a kind of document and the rules for comparing it. Package assemble
// asks nothing else about a kind, so that a new kind is a new row of the table below.
type permissions struct {
	// Rights.
	applies        bool // a changed block becomes a fact if it passes the gates
	addsRounds     bool // so does a new round with a calendar entry and a start
	namesNew       bool // it names drivers, teams, engines and circuits that have no name yet
	namesAll       bool // it also replaces their present names
	movesHeldStart bool // it may move a start that a person has set in the ledger

	// Comparison with the archive in use.
	wholeSeasons       bool // an absent round is reported, a season with many absent rounds is held, renamed drivers are found
	comparesCalendars  bool // a round of only one of the two calendars is disputed
	contradictionsOnly bool // a block that is known changes only where the common terms of all sources differ
	orderOnly          bool // a table with the same drivers in the same places is the same table
	addsEngines        bool // rows without an engine get the engine of their team in that season
	derivesEntries     bool // entries follow from qualifying, grid and result, so that they wait with these
	archiveNames       bool // it uses the archive's identifiers, so that no alias is applied to it

	// Comparison with other documents.
	yields      bool // it is silent about a block that an earlier document has
	confirmable bool // later documents that agree with it are reported
	keepsRounds bool // rounds for which it gives a start do not count as absent from later documents
}

// kinds holds the permissions of each kind. A permission that is not listed is not given.
var kinds = map[Kind]permissions{
	CheckOnly: {
		comparesCalendars:  true,
		contradictionsOnly: true,
		addsEngines:        true,
	},
	Sparse: {
		applies:            true,
		addsRounds:         true,
		namesNew:           true,
		comparesCalendars:  true,
		contradictionsOnly: true,
		addsEngines:        true,
		derivesEntries:     true,
	},
	Full: {
		applies:      true,
		addsRounds:   true,
		namesNew:     true,
		namesAll:     true,
		wholeSeasons: true,

		derivesEntries: true,
	},
	Manual: {
		applies:        true,
		addsRounds:     true,
		namesNew:       true,
		movesHeldStart: true,
		orderOnly:      true,
		archiveNames:   true,
		yields:         true,
		confirmable:    true,
		keepsRounds:    true,
	},
}
