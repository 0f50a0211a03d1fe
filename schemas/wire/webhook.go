package wire

// The types of messages that receivers of webhooks get.
const (
	WebhookPublished = "version.published"
	WebhookTest      = "webhook.test"
)

// Webhook is the body of a message to a receiver of webhooks, by Standard Webhooks.
type Webhook[T any] struct {
	Type      string  `json:"type"`
	Timestamp Instant `json:"timestamp"` // of what it tells, not of the attempt
	Data      T       `json:"data"`
}

// PublishedData says what a published version has changed for a receiver, since the version that
// the receiver was told of last.
type PublishedData struct {
	Version     int64   `json:"version"`
	Previous    int64   `json:"previous"`
	PublishedAt Instant `json:"published_at"`
	// Complete is false if there is more than a message holds, or if nobody knows any more what the
	// version before was: then there are no changes, and everything may have changed.
	Complete bool             `json:"complete"`
	Changes  []WebhookVariant `json:"changes"`
}

// WebhookVariant is a variant, or a feed, that has changed.
type WebhookVariant struct {
	Endpoint string `json:"endpoint"` // such as standings, or calendar.ics
	Path     string `json:"path"`     // such as /api/v1/standings
	Query    string `json:"query,omitzero"`
	Change   string `json:"change"`        // added, changed or removed
	ETag     string `json:"etag,omitzero"` // of the identity, quoted; absent for what is removed, and for /next-race
}

// TestData is what a message that only tries the way has.
type TestData struct {
	Webhook string `json:"webhook"` // its id
}
