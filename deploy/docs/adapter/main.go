// Adapter is a sample: it turns the messages of a timing feed into lines of gridcast. The page live.md shows it.
//
//	feed | adapter SESSION_KEY | gridcast live push -
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strconv"
	"time"
)

// adapt reads messages of two kinds. One has a flag, the other the leader's laps and the cars in running order.
func adapt(session int, feed io.Reader, lines io.Writer) error {
	phases := map[string]string{"RED": "suspended", "RESTART": "resumed", "CHEQUERED": "over"}
	in, out := json.NewDecoder(feed), json.NewEncoder(lines)
	for lap := 0; ; {
		var seen struct {
			Time time.Time        `json:"time"`
			Flag string           `json:"flag"`
			Lap  int              `json:"lap"`
			Cars []map[string]any `json:"cars"` // driver, gap_ms, laps_down, stops, out: as gridcast names them
		}
		if err := in.Decode(&seen); err != nil {
			return err // io.EOF: the feed has ended
		}
		line := map[string]any{"session_key": session, "at": seen.Time, "phase": phases[seen.Flag]}
		if seen.Lap > lap { // the leader has completed a lap
			lap = seen.Lap
			line = map[string]any{"session_key": session, "at": seen.Time, "lap": lap, "cars": seen.Cars}
		} else if line["phase"] == "" {
			continue // within a lap, or a flag without a phase
		}
		if err := out.Encode(line); err != nil {
			return err
		}
	}
}

func main() {
	session, err := strconv.Atoi(os.Args[1])
	if err == nil {
		err = adapt(session, os.Stdin, os.Stdout)
	}
	if !errors.Is(err, io.EOF) {
		log.Fatal(err)
	}
}
