//go:build linux

package main

import (
	"fmt"
	"strings"
)

// requests returns the script by which wrk makes the requests of a case. With a list of keys
// it takes the next one for each request; the requests are made before the first is sent.
func (f *fixture) requests(c benchCase) string {
	var script strings.Builder
	fmt.Fprintf(&script, "wrk.headers['Host'] = 'api.example.org'\nwrk.headers['X-API-Key'] = '%s'\n", f.keys[0])
	for _, line := range c.header {
		name, value, _ := strings.Cut(line, ": ")
		fmt.Fprintf(&script, "wrk.headers['%s'] = '%s'\n", name, value)
	}
	if c.keys == 0 {
		return script.String()
	}
	fmt.Fprintf(&script, `
local prepared, n, next = {}, 0, 0
function init(args)
  for key in io.lines('%s/keys') do
    if n == %d then break end
    wrk.headers['X-API-Key'] = key
    n = n + 1
    prepared[n] = wrk.format()
  end
end
function request()
  next = next %% n + 1
  return prepared[next]
end
`, f.dir, c.keys)
	return script.String()
}
