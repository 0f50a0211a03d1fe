package wire

// LiveState is the state of a race on /live.
type LiveState string

// The states.
const (
	LiveNone      LiveState = "none" // no race is near, or nothing was observed of the last one
	LiveWaiting   LiveState = "waiting"
	LiveRunning   LiveState = "running"
	LiveSuspended LiveState = "suspended"
	LiveOver      LiveState = "over"
)

// LiveBody is a running race, lap by lap.
type LiveBody = Success[LiveRace]

// LiveRace is the race that runs, or ran last.
//
//schema:name Live
type LiveRace struct {
	// none: no race is near, or nothing was observed of the last one. waiting: the pick is frozen, and nothing has
	// been observed yet.
	State LiveState `json:"state"`
	// True until the result is verified. Everything that is provisional stands on this endpoint alone.
	Provisional bool       `json:"provisional"`
	SessionKey  SessionKey `json:"session_key,omitzero"`
	GPName      GPName     `json:"gp_name,omitzero"`
	// Laps that the leader has completed.
	Lap int `json:"lap,omitzero"`
	// Laps of the race as scheduled.
	Laps int `json:"laps,omitzero"`
	// The instant of the latest observation, by the clock of its source.
	ObservedAt Instant `json:"observed_at,omitzero"`
	// From this instant on the order is stale: later by 180 seconds or two laps than the observation, whichever is
	// longer, and by ten minutes while the race is suspended. By the clock of the service: compare it with the
	// header Date of the answer, in a replay or a demonstration with race_time in /status. Absent before the first
	// observation and after the end.
	ValidUntil Instant `json:"valid_until,omitzero"`
	// A person entered the order that is shown.
	ByHand bool `json:"by_hand,omitzero"`
	// Every car, the leader first: the grid before the first observation, the verified classification after the
	// last.
	Order []LiveCar `json:"order,omitzero"`
	// The shares of the distance at which live picks are frozen.
	Checkpoints []LiveCheckpoint `json:"checkpoints,omitzero" minItems:"5" maxItems:"5"`
	Result      *LiveResult      `json:"result,omitzero"`
	// Every observed lap, with session_key alone. The timeline of a race is published when the race is over.
	Timeline []LiveLap `json:"timeline,omitzero" minItems:"0"`
}

// LiveCar is a car in running order; a car that is out has no position.
type LiveCar struct {
	// Place; absent if the car is out or was not classified.
	Position int        `json:"position,omitzero"`
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// Full name of the driver; absent in a timeline.
	Name string `json:"name,omitzero"`
	// Identifier of the team, the same for ever; absent if the driver's team is not known.
	TeamID string `json:"team_id,omitzero"`
	// The team's colour; absent if unknown, and in a timeline.
	TeamColour Colour `json:"team_colour,omitzero"`
	// The time behind the leader, in milliseconds; absent if it is not known.
	GapMS *int `json:"gap_ms,omitzero"`
	// Whole laps behind the leader, for a lapped car.
	GapLaps int `json:"gap_laps,omitzero"`
	// Pit stops made; absent if the number is not known.
	Stops *int `json:"stops,omitzero"`
	// The probability that this driver wins.
	WinPct *Percent `json:"win_pct,omitzero"`
	// The probability that this driver is among the first three.
	PodiumPct *Percent `json:"podium_pct,omitzero"`
	// The points of this place over the full distance; once the result is verified, the points scored.
	Points *float64 `json:"points,omitzero"`
	// The car no longer runs, or was not classified.
	Out bool `json:"out,omitzero"`
	// As in /results; absent until the result is verified.
	Status ResultStatus `json:"status,omitzero"`
	// Why the driver retired, did not start, or was disqualified; absent until the result is verified.
	Reason string `json:"reason,omitzero"`
	// The line of the source does not name the car. It stands where it was, for two laps; then it is out until a
	// line names it.
	Carried bool `json:"carried,omitzero"`
}

// LiveCheckpoint is a share of the scheduled distance at which a live pick is frozen.
type LiveCheckpoint struct {
	// Percent of the scheduled distance: 0, 25, 50, 75 or 90; 0 is the end of the first lap. The pick at 50 counts
	// in /accuracy.
	Percent int `json:"checkpoint_pct" maximum:"99"`
	// The lap at whose end the pick is due.
	Lap int `json:"lap" minimum:"1"`
	// A pick that could not be frozen in time is never frozen later.
	Status string `json:"status" enum:"pending,frozen,missed"`
	// The observation that the pick was made from.
	ObservedAt Instant `json:"observed_at,omitzero"`
	// When the pick was frozen.
	FrozenAt   Instant     `json:"frozen_at,omitzero"`
	Prediction *Prediction `json:"prediction,omitzero"`
	// Why the pick was not frozen.
	Reason string `json:"reason,omitzero"`
}

// The statuses of a checkpoint.
const (
	CheckpointPending = "pending"
	CheckpointFrozen  = "frozen"
	CheckpointMissed  = "missed"
)

// LiveLap is the race when its leader completed a lap.
type LiveLap struct {
	// Laps that the leader had completed.
	Lap int `json:"lap" minimum:"1"`
	// The instant of the observation.
	ObservedAt Instant `json:"observed_at"`
	// A person entered the order.
	ByHand bool `json:"by_hand,omitzero"`
	// Every car, the leader first.
	Order []LiveCar `json:"order" minItems:"1"`
}

// LiveResult is a verified race result.
type LiveResult struct {
	// The winner; the same as podium.p1.
	Winner DriverCode `json:"winner"`
	Podium LivePodium `json:"podium"`
	// When the result was verified and revised, as in /results.
	Revisions []Revision `json:"revisions"`
}

// LivePodium are the drivers on the first three places; a place nobody holds is absent.
type LivePodium struct {
	// First place.
	P1 DriverCode `json:"p1"`
	// Second place.
	P2 DriverCode `json:"p2,omitzero"`
	// Third place.
	P3 DriverCode `json:"p3,omitzero"`
}
