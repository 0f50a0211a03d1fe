package service

import (
	"context"
	"sync/atomic"
	"time"

	"gridcast/builder/season"
	"gridcast/scheduler"
	"gridcast/scheduler/probe"
	"gridcast/snapshots/uptime"
)

// WithoutDerived skips title odds and track record, because a season takes some hundred
// backtests. Call it before Start.
func (s *Service) WithoutDerived() {
	s.deriving = func(context.Context, time.Time) (bool, error) { return false, nil }
}

// CountPlans counts the plans of the jobs, which ask for the qualifying of each round. Call it before Start.
func (s *Service) CountPlans(plans *atomic.Int64) {
	s.builder.Policy.Arrived = func(year int, gp season.GrandPrixID) time.Time {
		if year == 2024 && gp == "belgium" {
			plans.Add(1)
		}
		return time.Time{}
	}
}

// DuringBuilds calls f in each build while it reads the rounds. Call it before Start.
func (s *Service) DuringBuilds(f func()) {
	s.builder.Policy.Arrived = func(int, season.GrandPrixID) time.Time { f(); return time.Time{} }
}

// RunWebhooks delivers until ctx ends.
func (s *Service) RunWebhooks(ctx context.Context) { s.hooks.Run(ctx) }

// DeriveWith replaces the computation of title odds and track record.
func (s *Service) DeriveWith(derive func()) {
	s.WithoutDerived()
	s.deriving = func(context.Context, time.Time) (bool, error) { derive(); return false, nil }
}

// Derive runs the derive job.
func (s *Service) Derive(ctx context.Context) error { return s.derive(ctx, scheduler.Trigger{}) }

// WaitNotified waits until all functions of OnPublish have returned.
func (s *Service) WaitNotified() { s.notifying.Wait() }

// AskWith replaces the requests to the addresses. Call it after Measure and before Start.
func (s *Service) AskWith(ask func(ctx context.Context, address string) (probe.State, uptime.Fault)) {
	s.measuring.ask = ask
}

// CutMeasuring loses the measurements that are not written, as the end of a killed process does.
func (s *Service) CutMeasuring() { s.measuring.log = uptime.Log{} }
