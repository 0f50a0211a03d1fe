package operator_test

import (
	"testing"
	"time"

	"gridcast/builder/ingest"
	"gridcast/deploy/operator"
)

func TestUnanswered(t *testing.T) {
	never, answered := ingest.PollState{Source: "f1db", LastPoll: ingest.LastPoll{Polled: time.Now()}}, ingest.PollState{Source: "jolpica", LastPoll: ingest.LastPoll{Answered: time.Now()}}
	for _, test := range []struct {
		states []ingest.PollState
		want   bool
	}{
		{nil, false}, {[]ingest.PollState{never}, true}, {[]ingest.PollState{never, answered}, false},
	} {
		if got := operator.Unanswered(test.states); got != test.want {
			t.Errorf("%+v: got %v", test.states, got)
		}
	}
}
