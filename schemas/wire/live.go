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

// LiveRace is the data of /live: the race that runs, or ran last. The order is that of the grid before the first
// observation, and the verified classification once there is one. Timeline is present with a session key alone.
type LiveRace struct {
	State       LiveState        `json:"state"`
	Provisional bool             `json:"provisional"` // true until the result is verified
	SessionKey  int64            `json:"session_key,omitzero"`
	GPName      string           `json:"gp_name,omitzero"`
	Lap         int              `json:"lap,omitzero"`         // completed by the leader
	Laps        int              `json:"laps,omitzero"`        // scheduled
	ObservedAt  Instant          `json:"observed_at,omitzero"` // of the latest observation
	ValidUntil  Instant          `json:"valid_until,omitzero"` // from then on the order is stale
	ByHand      bool             `json:"by_hand,omitzero"`     // a person entered the order that is shown
	Order       []LiveCar        `json:"order,omitzero"`
	Checkpoints []LiveCheckpoint `json:"checkpoints,omitzero"`
	Result      *Result          `json:"result,omitzero"` // verified
	Timeline    []LiveLap        `json:"timeline,omitzero"`
}

// LiveCar is a car in running order. Cars that are out have no position and come last.
type LiveCar struct {
	Position  int      `json:"position,omitzero"`
	Driver    string   `json:"driver"`
	DriverID  string   `json:"driver_id"`
	TeamID    string   `json:"team_id,omitzero"` // absent if the driver's team is not known
	GapMS     *int     `json:"gap_ms,omitzero"`  // behind the leader; absent if it is not known
	GapLaps   int      `json:"gap_laps,omitzero"`
	Stops     *int     `json:"stops,omitzero"`
	WinPct    *Percent `json:"win_pct,omitzero"`
	PodiumPct *Percent `json:"podium_pct,omitzero"`
	Points    *float64 `json:"points,omitzero"` // if the race ended in this order, or as verified
	Out       bool     `json:"out,omitzero"`
	Carried   bool     `json:"carried,omitzero"` // the source's line does not name the car: it stands where it was
}

// LiveCheckpoint is a share of the distance at which a live pick is frozen.
type LiveCheckpoint struct {
	Percent    int         `json:"checkpoint_pct"` // 0 is the end of the first lap
	Lap        int         `json:"lap"`            // at whose end the pick is due
	Status     string      `json:"status"`         // pending, frozen or missed
	ObservedAt Instant     `json:"observed_at,omitzero"`
	FrozenAt   Instant     `json:"frozen_at,omitzero"`
	Prediction *Prediction `json:"prediction,omitzero"`
	Reason     string      `json:"reason,omitzero"` // why it was missed
}

// The statuses of a checkpoint.
const (
	CheckpointPending = "pending"
	CheckpointFrozen  = "frozen"
	CheckpointMissed  = "missed"
)

// LiveLap is the order and the chances at the end of a lap of the leader.
type LiveLap struct {
	Lap        int       `json:"lap"`
	ObservedAt Instant   `json:"observed_at"`
	ByHand     bool      `json:"by_hand,omitzero"`
	Order      []LiveCar `json:"order"`
}
