package catalog

// SandboxKind is a kind of race weekend that the sandbox replays.
type SandboxKind struct {
	Name string // in manifests and /status
	Text string // the events for readers, as a sentence
}

// SandboxKinds are the weekends of a cycle of the sandbox, in the order of its timetable. Package sandbox has their scripts.
var SandboxKinds = [...]SandboxKind{
	{"normal", "The pick is frozen after qualifying, /live shows each lap, and the result is verified an hour after the flag."},
	{"sprint", "The weekend has a sprint before qualifying; its points count with the result of the race."},
	{"red flag with restart", "/live is suspended on lap 40 for 25 minutes and runs again after the restart."},
	{"driver withdrawn after the freeze", "A driver of the frozen pick does not start: /probabilities names the driver in not_starting, and /changes has driver_withdrawn."},
	{"postponed and reinstated", "The race leaves its date on the morning of the race day, and comes back with a start four hours later."},
	{"abandoned without a result", "/live stops on lap 12 and stays suspended; the round awaits its result, is cancelled at last, and its pick is void."},
	{"disqualified after the flag", "Four hours after the start the verified result is revised: two drivers lose their places, and /changes has result_revised."},
}
