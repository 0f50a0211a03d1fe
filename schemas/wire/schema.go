package wire

// The names of this file are other names of Go's own types. A field of such a type gets its schema from
// common.schema.json, where that has a definition of the name, or its description from the comment behind the name.

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
