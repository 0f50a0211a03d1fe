package redislimit

import (
	"bufio"
	"errors"
	"io"
	"time"

	"gridcast/edge/limit"
)

// Patient returns cfg for a source that waits for each answer, however late: no question fails on a busy machine.
func Patient(cfg Config) Config {
	cfg.patience = time.Hour
	return cfg
}

// Scan reads a stream of answers, and returns the first error that is neither the end nor a refusal.
func Scan(stream io.Reader) error {
	for r := bufio.NewReaderSize(stream, maxReply); ; {
		_, err := read(r)
		var refused refusal
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil && !errors.As(err, &refused):
			return err
		}
	}
}

// MaxReply is the largest answer.
const MaxReply = maxReply

// TryTake takes a request without a wait, or returns false.
func TryTake(c limit.Counter, now time.Time, perMinute int) (limit.Verdict, bool) {
	return c.(*counter).tryTake(now, perMinute)
}
