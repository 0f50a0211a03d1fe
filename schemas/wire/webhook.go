package wire

// The types of messages that receivers of webhooks get.
const (
	WebhookPublished = "version.published"
	WebhookTest      = "webhook.test"
)

// Webhook is the body of a message to a receiver of webhooks, by Standard Webhooks.
type Webhook[T any] struct {
	Type      string  `json:"type"`
	Timestamp Instant `json:"timestamp"` // of the publication, not of the attempt
	Data      T       `json:"data"`
}

// PublishedData lists the changes of a published version since the version that the receiver was
// last notified of.
type PublishedData struct {
	Version     int64   `json:"version"`
	Previous    int64   `json:"previous"`
	PublishedAt Instant `json:"published_at"`
	// Complete is false if a message cannot hold all changes, or if the earlier version is no longer
	// known. Then the list is empty, and everything may have changed.
	Complete bool             `json:"complete"`
	Changes  []WebhookVariant `json:"changes"`
}

// WebhookVariant is a variant, or a feed, that has changed.
type WebhookVariant struct {
	Endpoint string `json:"endpoint"` // such as standings, or calendar.ics
	Path     string `json:"path"`     // such as /api/v1/standings
	Query    string `json:"query,omitzero"`
	Change   string `json:"change"`        // added, changed or removed
	ETag     string `json:"etag,omitzero"` // of the identity, quoted; absent for a removed variant, and for /next-race
}

// TestData is the content of a test message.
type TestData struct {
	Webhook string `json:"webhook"` // its id
}
