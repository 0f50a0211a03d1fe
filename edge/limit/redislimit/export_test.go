package redislimit

// Scan reads a stream of answers in pieces, and returns the first error.
func Scan(pieces ...[]byte) error {
	var r replies
	for _, p := range pieces {
		if err := r.scan(p); err != nil {
			return err
		}
	}
	return nil
}

// MaxReply is the largest answer.
const MaxReply = maxReply
