package adminport

import (
	"net"
	"time"
)

// SetSilence sets the silence after which a connection of the listener loses its place to another one.
func SetSilence(l net.Listener, d time.Duration) { l.(*bounded).silence = d }
