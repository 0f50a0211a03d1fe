package redislimit

import (
	"errors"
	"io"
	"net"
	"time"

	"gridcast/edge/limit"
)

// Patient returns cfg for a source that waits for each answer, however late: no question fails on a busy machine.
func Patient(cfg Config) Config {
	cfg.timeout = time.Hour
	return cfg
}

func init() { beatInterval = 50 * time.Millisecond }

// Scan reads a stream of answers through the bounds of a connection, and returns the first error that is not the end.
func Scan(stream io.Reader) error {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{&bounded{Conn: streamed{Reader: stream}}})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// TryTake takes a request without a wait, or returns false.
func TryTake(c limit.Counter, now time.Time, perMinute int) (limit.Verdict, bool) {
	return c.(*counter).tryTake(now, perMinute)
}

// streamed is a connection that reads from a stream.
type streamed struct {
	io.Reader
	net.Conn
}

func (s streamed) Read(p []byte) (int, error) { return s.Reader.Read(p) }
func (streamed) Close() error                 { return nil }

// MaxReply is the largest answer, in bytes, and MaxValues the one with the most parts.
const (
	MaxReply  = maxReply
	MaxValues = maxValues
)
