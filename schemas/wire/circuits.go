package wire

// CircuitsBody are the circuits of the championship, or of one season.
//
// By identifier.
type CircuitsBody = Success[[]CircuitRecord]

// CircuitRecord is a circuit with its verified races: of one season, or of all. Cancelled rounds are left out.
type CircuitRecord struct {
	// Identifier of the circuit, the same for ever, as circuit.id in /weekends. /identifiers has the names that other
	// sources have for it.
	ID string `json:"id"`
	// Name of the circuit.
	Name string `json:"name"`
	// Town of the circuit.
	Locality string `json:"locality"`
	// Country of the circuit.
	Country string `json:"country"`
	// IANA name of the time zone of the circuit.
	TimeZone TimeZone `json:"time_zone,omitzero"`
	// Length of a lap of the latest layout, in kilometres; absent if unknown.
	LengthKm float64 `json:"length_km,omitzero"`
	// Turns of the latest layout; absent if unknown.
	Turns int `json:"turns,omitzero"`
	// Direction of the latest layout; absent if unknown.
	Direction Direction `json:"direction,omitzero"`
	// The latest layout is a street circuit.
	Street bool `json:"street,omitzero"`
	// Verified races.
	RacesHeld int `json:"races_held"`
	// The first verified race; absent without one.
	FirstSession SessionKey `json:"first_session_key,omitzero"`
	// The latest verified race; absent without one.
	LastSession SessionKey `json:"last_session_key,omitzero"`
	// The layouts in the order of their latest round, also of rounds to come.
	Layouts []CircuitLayout `json:"layouts" minItems:"1"`
	// The winners of the verified races, most wins first, then the latest win first; absent without a race.
	Winners []CircuitWinner `json:"winners,omitzero"`
	// The lap record of the latest layout; absent if no fastest lap is known.
	LapRecord *LapRecord `json:"lap_record,omitzero"`
}

// CircuitLayout is a layout of a circuit and the years of its rounds.
type CircuitLayout struct {
	// F1DB's identifier of the layout; absent if it is newer than gridcast.
	LayoutID string `json:"layout_id,omitzero"`
	// Length of a lap in its latest round, in kilometres; absent if unknown.
	LengthKm float64 `json:"length_km,omitzero"`
	// Number of turns; absent if unknown.
	Turns int `json:"turns,omitzero"`
	// Direction of driving; absent if unknown.
	Direction Direction `json:"direction,omitzero"`
	// The seasons with a round on it, ascending.
	Years []int `json:"years" minItems:"1"`
	// The fastest lap in a verified race on it; absent if no fastest lap is known.
	LapRecord *LapRecord `json:"lap_record,omitzero"`
}

// CircuitWinner is a driver who has won at a circuit.
type CircuitWinner struct {
	DriverID DriverID `json:"driver_id"`
	// Name of the driver.
	Name string `json:"name"`
	// Races won at the circuit; each driver of a shared car has won.
	Wins int `json:"wins" minimum:"1"`
	// The latest of them.
	LastSession SessionKey `json:"last_session_key"`
}

// LapRecord is the fastest lap of a race.
type LapRecord struct {
	// The lap time, in milliseconds.
	TimeMS   int64    `json:"time_ms" minimum:"1"`
	DriverID DriverID `json:"driver_id"`
	// Name of the driver.
	Name string `json:"name"`
	// The race.
	SessionKey SessionKey `json:"session_key"`
	// The number of the lap; absent if unknown.
	Lap int `json:"lap,omitzero"`
}
