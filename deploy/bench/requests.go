//go:build linux

package main

import (
	"fmt"
	"strings"
)

// inTurn returns the requests of a case, each of which follows the one before it. With a list of
// keys they are as many texts however long it is, each with a number, so that who sends them has the
// same work.
func (f *fixture) inTurn(c benchCase) [][]byte {
	if c.keys == 0 {
		return [][]byte{request(f.keys[0], c.target, c.header)}
	}
	requests := make([][]byte, manyKeys)
	for i := range requests {
		requests[i] = request(f.keys[i%c.keys], c.target, []string{fmt.Sprintf(numbered, i+1)})
	}
	return requests
}

// numbered is a field that no server looks at. Lua keeps equal texts once.
const numbered = "X-Request-Number: %06d"

// request returns the bytes of a request.
func request(key, target string, header []string) []byte {
	lines := append([]string{"GET " + target + " HTTP/1.1", "Host: " + host, "X-API-Key: " + key}, header...)
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n")
}

// host is what all requests ask for.
const host = "api.example.org"

// requests returns the script by which wrk makes the requests of a case. With a list of keys
// it takes the next one for each request; the requests are made before the first is sent.
func (f *fixture) requests(c benchCase) string {
	var script strings.Builder
	fmt.Fprintf(&script, "wrk.headers['Host'] = '%s'\nwrk.headers['X-API-Key'] = '%s'\n", host, f.keys[0])
	for _, line := range c.header {
		name, value, _ := strings.Cut(line, ": ")
		fmt.Fprintf(&script, "wrk.headers['%s'] = '%s'\n", name, value)
	}
	if c.keys == 0 {
		return script.String()
	}
	name, value, _ := strings.Cut(numbered, ": ")
	fmt.Fprintf(&script, `
local prepared, n, next = {}, %[4]d, 0
function init(args)
  local keys = {}
  for key in io.lines('%[1]s/keys') do
    if #keys == %[5]d then break end
    keys[#keys + 1] = key
  end
  for i = 1, n do
    wrk.headers['X-API-Key'] = keys[(i - 1) %% #keys + 1]
    wrk.headers['%[2]s'] = string.format('%[3]s', i)
    prepared[i] = wrk.format()
  end
end
function request()
  next = next %% n + 1
  return prepared[next]
end
`, f.dir, name, value, manyKeys, c.keys)
	return script.String()
}
