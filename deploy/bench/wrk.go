//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// wrk is the load of wrk, for whole seconds.
func (f *fixture) wrk(ctx context.Context, p *process, c benchCase, length time.Duration) (report, error) {
	script := filepath.Join(f.dir, "requests.lua")
	if err := os.WriteFile(script, []byte(f.requests(c)), 0o600); err != nil {
		return report{}, fmt.Errorf("script of wrk: %w", err)
	}
	scheme := "http://"
	if c.tls {
		scheme = "https://"
	}
	out, busy, err := onSecondCore(ctx, []string{
		"wrk", "-t1", "-c" + strconv.Itoa(c.connections), fmt.Sprintf("-d%ds", int(length.Seconds())),
		"--latency", "-s", script, scheme + p.address + c.target,
	})
	if err != nil {
		return report{}, err
	}
	if bad := regexp.MustCompile(`Non-2xx.*|Socket errors.*[1-9].*`).Find(out); bad != nil {
		return report{}, fmt.Errorf("wrk: %s", bad)
	}
	r, err := parseWrk(string(out))
	r.busy = busy
	return r, err
}

var (
	perSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	total     = regexp.MustCompile(`(\d+) requests in`)
	half      = regexp.MustCompile(`50%\s+([0-9.]+[a-z]+)`)
	nearlyAll = regexp.MustCompile(`99%\s+([0-9.]+[a-z]+)`)
)

// parseWrk reads what wrk prints.
func parseWrk(out string) (r report, err error) {
	number := func(pattern *regexp.Regexp) string {
		if found := pattern.FindStringSubmatch(out); found != nil {
			return found[1]
		}
		err = fmt.Errorf("wrk does not say %s:\n%s", pattern, out)
		return "0"
	}
	r.perSecond, _ = strconv.ParseFloat(number(perSecond), 64)
	r.requests, _ = strconv.Atoi(number(total))
	r.p50, _ = time.ParseDuration(number(half))
	r.p99, _ = time.ParseDuration(number(nearlyAll))
	return r, err
}
