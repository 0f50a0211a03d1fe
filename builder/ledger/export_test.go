package ledger

// Breaches lists the events that readers ignore, in order. It is empty unless something other
// than Append wrote to the store.
func (s *Fold) Breaches() []Breach { return s.breaches }
