package servers

import (
	"context"
	"log/slog"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/deploy/flags"
	"gridcast/deploy/sandbox"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/blob"
)

// newSandbox returns the simulated world beside the one that the flags describe. It has the same keys and the same model, but
// neither the archive nor the rules of verifying.
func newSandbox(rules flags.Builder, s *terminal.Streams) *sandbox.World {
	rules.Archive = ""
	sandbox.Rules(&rules.AutoVerifyAfter, &rules.AutoReviseAfter)
	quiet := &terminal.Streams{Err: s.Err, Log: slog.New(faultsOnly{s.Log.With("world", "sandbox").Handler()}), Version: s.Version}
	return &sandbox.World{
		Length: sandbox.Hour, Log: s.Log,
		Open: func(ctx context.Context, view blob.Store, begins time.Time) (*builder.Builder, error) {
			return rules.WithoutSettings(ctx, quiet, view, ledger.Simulated, begins)
		},
	}
}

// faultsOnly logs warnings and errors, because the sandbox publishes a version every second of a race.
type faultsOnly struct{ slog.Handler }

// Enabled implements slog.Handler.
func (f faultsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && f.Handler.Enabled(ctx, level)
}
