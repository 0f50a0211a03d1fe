package snapshots

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"gridcast/snapshots/blob"
)

// claim is the content of versions/<n>.json: from its creation on, number n belongs to the
// builder that wrote it and is never used by anybody else.
type claim struct {
	Builder string    `json:"builder"`
	Nonce   string    `json:"nonce"` // tells two claims of the same builder apart
	At      time.Time `json:"at"`
}

// claim takes the first free number above current and above every claim.
func (p *Publisher) claim(ctx context.Context, current int64, c claim) (int64, error) {
	last, err := lastClaim(ctx, p.Store)
	if err != nil {
		return 0, err
	}
	c.Nonce, c.At = rand.Text(), p.now()
	data, err := json.Marshal(c)
	if err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	for version := max(current, last) + 1; ; version++ {
		mine, err := blob.Claim(ctx, p.Store, claimKey(version), data)
		if err != nil {
			return 0, err
		}
		if mine {
			return version, nil
		}
	}
}

// unknownAttempts is how often a swap of unknown outcome that left no trace is repeated. The
// store has already retried within each.
const unknownAttempts = 3

// lastClaim returns the highest number ever claimed or used in the store; 0: none.
func lastClaim(ctx context.Context, store blob.Store) (int64, error) {
	claims, err := numbers(ctx, store, claimFolder, manifestFolder)
	if err != nil || len(claims) == 0 {
		return 0, err
	}
	return claims[len(claims)-1], nil
}
