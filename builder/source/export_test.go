package source

// Close ends idle connections, which a bubble of synctest would wait for.
func (c *Client) Close() { c.http.CloseIdleConnections() }
