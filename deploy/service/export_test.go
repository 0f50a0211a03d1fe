package service

import (
	"context"
	"time"

	"gridcast/builder"
	"gridcast/scheduler"
)

// WithoutDerived has the service make neither title odds nor track record, of which a season takes
// some hundred backtests, nor downloads. It comes before Start.
func (s *Service) WithoutDerived() {
	s.deriving = func(context.Context, time.Time) (bool, error) { return false, nil }
	s.zipping = func(context.Context) (builder.Downloads, error) { return builder.Downloads{}, nil }
}

// RunWebhooks delivers until ctx ends.
func (s *Service) RunWebhooks(ctx context.Context) { s.hooks.Run(ctx) }

// DeriveWith has the service call a function in place of making title odds and track record.
func (s *Service) DeriveWith(derive func()) {
	s.WithoutDerived()
	s.deriving = func(context.Context, time.Time) (bool, error) { derive(); return false, nil }
}

// Derive does the work of the job.
func (s *Service) Derive(ctx context.Context) error { return s.derive(ctx, scheduler.Trigger{}) }

// WaitTold waits until all have been told of what was published.
func (s *Service) WaitTold() { s.telling.Wait() }
