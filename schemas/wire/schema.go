package wire

// The names of this file are other names of Go's own types. A field of such a type gets its schema from
// common.schema.json, where that has a definition of the name, or its description from the comment behind the name. A
// directive such as //schema:enum is the tag of each of these fields.

// DriverCode is three capital letters that name one driver within a season.
type DriverCode = string

// SessionKey names one round for ever.
type SessionKey = int64

// Colour is the colour of a team, #RRGGBB in upper case.
type Colour = string

// PickedPodium is a podium without a free place.
type PickedPodium = Podium

// DriverID names a driver in every document and every season.
type DriverID = string // Identifier of the driver, the same for ever.

// TeamID names a team in every document and every season.
type TeamID = string // Identifier of the team, the same for ever.

// GPName is the name of a Grand Prix, as in "Italian Grand Prix".
type GPName = string // Name of the Grand Prix.

// Actor is the actor of a decision.
//
//schema:enum operator,rule,archive,source,builder
type Actor = string

// Basis names the latest facts of a weekend behind a forecast.
//
//schema:enum grid,qualifying,sprint,practice,form
type Basis = string

// Day is a day in UTC, YYYY-MM-DD.
//
//schema:format date
//schema:pattern ^[0-9]{4}-[0-9]{2}-[0-9]{2}$
type Day = string

// Direction is the direction of driving on a circuit.
//
//schema:enum clockwise,anticlockwise
type Direction = string

// OpenStatus is the Status of a round that is not finished.
//
//schema:enum scheduled,live,awaiting_result,postponed,cancelled
type OpenStatus = Status

// TimeZone is the IANA name of a time zone.
//
//schema:pattern ^[A-Z][A-Za-z_]+(/[A-Z][A-Za-z_]+)+$
type TimeZone = string
