package cadence

import "time"

// Next returns the first instant after now at which the work is due, and whether there is one:
// without a pick to freeze there is no next freeze.
func Next(cal Calendar, work Work, now time.Time) (Due, bool) {
	for _, d := range Coming(cal, now) {
		if d.Work == work {
			return d, true
		}
	}
	return Due{}, false
}
