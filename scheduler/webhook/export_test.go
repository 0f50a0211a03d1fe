package webhook

import "net/http"

// UseTransport has a sender's requests answered without a network.
func (s *Sender) UseTransport(t http.RoundTripper) { s.client.Transport = t }

// CheckDial is what is asked before an address is dialled.
func (s *Sender) CheckDial(network, address string) error { return s.checkDial(network, address) }

// Schedule are the waits between attempts.
var Schedule = schedule

// ConcurrentAttempts is how many attempts are made at once.
const ConcurrentAttempts = concurrent
