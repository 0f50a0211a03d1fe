package operator

import (
	"context"
	"time"
)

// WithoutDerived has the service make neither title odds nor track record: a season of them takes
// some hundred backtests. It comes before Start.
func (s *Service) WithoutDerived() {
	s.deriving = func(context.Context, time.Time) (bool, error) { return false, nil }
}
