//go:build !linux

package express

// loop does not exist on this system: each connection has a goroutine.
type loop struct{}

func newLoop(*Lane) (*loop, error) { return nil, nil } //nolint:nilnil // there is none

func (*loop) run()         {}
func (*loop) end()         {}
func (*loop) adopt(*conn)  {}
func (*loop) watch(*conn)  {}
func (*loop) forget(*conn) {}

func (*loop) suspend(*conn, *Request, []byte) {}

func arrived(int) bool { panic("BUG: a connection without a loop") }

type vector struct{}

func (vector) send(int, output) (int, error) { panic("BUG: a connection without a loop") }
