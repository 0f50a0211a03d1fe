package express

import (
	"net/http"
	"sync/atomic"
	"time"
)

// dates writes the HTTP date once a second for all connections.
type dates struct{ latest atomic.Pointer[date] }

type date struct {
	unix int64
	text []byte
}

func (d *dates) at(now time.Time) []byte {
	unix := now.Unix()
	if latest := d.latest.Load(); latest != nil && latest.unix == unix {
		return latest.text
	}
	next := &date{unix, now.UTC().AppendFormat(nil, http.TimeFormat)}
	d.latest.Store(next)
	return next.text
}
