package season

import (
	"regexp"
	"strconv"
	"time"
)

var lapTime = regexp.MustCompile(`^(?:(?:(\d{1,2}):)?(\d{1,2}):)?(\d{1,2})(?:\.(\d{1,3}))?$`)

// ParseLapTime reads the time of a lap or a race as sources and people write it: 59.123, 1:29.179 or 1:23:06.801. It
// returns false for other text.
func ParseLapTime(text string) (time.Duration, bool) {
	parts := lapTime.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	var d time.Duration
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(parts[i+1]) // digits by the pattern, or empty
		d += time.Duration(n) * unit
	}
	fraction, _ := strconv.Atoi((parts[4] + "000")[:3])
	return d + time.Duration(fraction)*time.Millisecond, true
}
