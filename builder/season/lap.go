package season

import (
	"strings"
	"time"
)

// ParseLapTime reads a lap time as sources and people write it, 1:29.179 or 59.123. It returns false for other text.
func ParseLapTime(text string) (time.Duration, bool) {
	minutes, seconds, ok := strings.Cut(text, ":")
	if !ok {
		minutes, seconds = "0", text
	}
	d, err := time.ParseDuration(minutes + "m" + seconds + "s")
	if err != nil || d < 0 {
		return 0, false
	}
	return d, true
}
