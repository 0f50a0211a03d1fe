package webhook

// CheckDial is the check before each dialled address.
func (s *Sender) CheckDial(network, address string) error { return s.checkDial(network, address) }

// Schedule are the waits between attempts.
var Schedule = schedule

// ConcurrentAttempts is the number of attempts at the same time.
const ConcurrentAttempts = concurrent
