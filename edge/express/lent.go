package express

import (
	"io"
	"net"
	"sync/atomic"
)

// lent is a connection as the server sees it: from a request that the lane has not recognised
// to where the next one would begin.
type lent struct {
	net.Conn
	conn *conn

	head    []byte // what the lane has read
	err     error  // what reading ended with after that, nil: it goes on
	between bool   // the server has answered and waits for a request

	returned atomic.Bool // to the lane
	ended    atomic.Bool
}

// Read reads what the lane has read, and then from the connection. Where another request would
// begin, it tells the server that there is none.
func (c *lent) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	if c.err != nil {
		return 0, c.err
	}
	if c.between {
		c.returned.Store(true)
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// Close gives the connection back to the lane if that is why the server has no further use for
// it, and closes it otherwise. The server may close more than once, from several goroutines.
func (c *lent) Close() error {
	if !c.ended.CompareAndSwap(false, true) {
		return nil
	}
	c.conn.lane.elsewhere.Add(-1)
	if c.returned.Load() && !c.conn.lane.draining.Load() {
		c.conn.wait()
	} else {
		c.conn.close()
	}
	return nil
}
