package resp

import "net"

// NewClient is Dial without the dialling.
func NewClient(conn net.Conn) *Client { return newClient(conn) }
