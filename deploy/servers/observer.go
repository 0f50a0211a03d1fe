package servers

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"gridcast/deploy/console"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
)

// maxFeed limits the lines of one request, in bytes.
const maxFeed = 1 << 20

// observer answers POST /live: lines of observations, with a token that permits nothing else.
type observer struct {
	token    *flags.Token
	guesses  console.Guesses
	operator atomic.Pointer[operator.Operator]
}

// observed is the answer: the number of lines, how many were news, and the faults of the others.
type observed struct {
	Lines  int      `json:"lines"`
	New    int      `json:"new"`
	Faults []string `json:"faults"`
}

// ServeHTTP stores the observations of a request, line by line. A faulty line keeps no other from being stored.
func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o.guesses.TooMany(r) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many wrong tokens from your address; wait a minute, because until then no token is looked at", http.StatusTooManyRequests)
		return
	}
	// Hashes, so that comparing takes the same time for any length.
	sum, want := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))), sha256.Sum256([]byte(o.token.Value()))
	if subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
		o.guesses.Wrong(r)
		http.Error(w, "Authorization: Bearer needs the token of --live-token-file", http.StatusUnauthorized)
		return
	}
	actions := o.operator.Load()
	if actions == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the scheduler has not started yet; its log says why", http.StatusServiceUnavailable)
		return
	}
	answer := observed{Faults: []string{}}
	var err error
	answer.Lines, answer.New, err = actions.ObserveLines(r.Context(), http.MaxBytesReader(w, r.Body, maxFeed), "push", func(line int, err error) {
		answer.Faults = append(answer.Faults, fmt.Sprintf("line %d: %v", line, err))
	})
	if err != nil {
		answer.Faults = append(answer.Faults, err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if len(answer.Faults) > 0 {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone needs no answer
}
