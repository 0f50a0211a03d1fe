package season_test

import (
	"testing"
	"time"

	"gridcast/builder/season"
)

func TestParseLapTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"59.123":      59*time.Second + 123*time.Millisecond,
		"1:29.179":    89*time.Second + 179*time.Millisecond,
		"1:05.5":      65*time.Second + 500*time.Millisecond,
		"45":          45 * time.Second,
		"1:23:06.801": 83*time.Minute + 6*time.Second + 801*time.Millisecond,
	} {
		if got, ok := season.ParseLapTime(text); got != want || !ok {
			t.Errorf("ParseLapTime(%q) = %s, %t, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "5:", ":29.179", "1:2m3.5", "1:29,179", "-1:29.179", "1:29.1791", "1.2.3", "a"} {
		if got, ok := season.ParseLapTime(text); got != 0 || ok {
			t.Errorf("ParseLapTime(%q) = %s, %t, want no time", text, got, ok)
		}
	}
}
