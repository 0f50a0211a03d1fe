package builder

import "time"

// HealedAt makes the builder remember that it healed last at an instant of real time.
func (b *Builder) HealedAt(at time.Time) { b.healed.Store(at.UnixNano()) }
