package doctor

import (
	"context"

	"gridcast/snapshots/blob"
)

// Conditions returns the findings of a server of the given role about a store.
func Conditions(ctx context.Context, role string, store blob.Store) []Finding {
	d := &doctor{Doctor: &Doctor{Role: role}}
	d.conditions(ctx, store)
	return d.findings
}
