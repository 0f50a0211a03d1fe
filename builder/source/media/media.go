// Package media adds the colours of teams and the portraits of drivers to imported facts, because no
// source of results has them. Every importer applies it.
//
// gridcast comes with colours since 2018; it has no portraits of its own.
package media

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"sync"

	"gridcast/builder/season"
)

// Media holds colours and portraits. The zero value adds nothing.
type Media struct {
	Colours   Colours
	Headshots season.Headshots
}

// Colours are team colours by year, as #RRGGBB in upper case.
type Colours map[int]map[season.TeamID]string

//go:embed colours.txt
var embedded string

var readEmbedded = sync.OnceValue(func() Colours {
	c, err := ReadColours(strings.NewReader(embedded))
	if err != nil {
		panic("BUG: embedded colours: " + err.Error())
	}
	return c
})

// Default returns the colours that gridcast comes with. The caller may change them.
func Default() Media {
	colours := make(Colours)
	colours.Override(readEmbedded())
	return Media{Colours: colours}
}

// Override adds colours, which win over the present ones.
func (c Colours) Override(others Colours) {
	for year, teams := range others {
		if c[year] == nil {
			c[year] = make(map[season.TeamID]string)
		}
		maps.Copy(c[year], teams)
	}
}

// ReadColours reads a file of team colours: a line a team, "2026 cadillac #444444", with the
// identifier that the facts have for the team. Empty lines and lines that begin with # are
// skipped. The error names the line.
func ReadColours(r io.Reader) (Colours, error) {
	colours := make(Colours)
	err := readLines(r, func(line string) error {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("%q is not of the form YEAR TEAM #RRGGBB", line)
		}
		year, err := strconv.Atoi(fields[0])
		if err != nil {
			return fmt.Errorf("%q is not a year", fields[0])
		}
		team, colour := season.TeamID(fields[1]), strings.ToUpper(fields[2])
		if !season.IsColour(colour) {
			return fmt.Errorf("%d %s: %q is not of the form #RRGGBB", year, team, fields[2])
		}
		if _, twice := colours[year][team]; twice {
			return fmt.Errorf("%d %s has a colour already", year, team)
		}
		colours.Override(Colours{year: {team: colour}})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read team colours: %w", err)
	}
	return colours, nil
}

// ReadHeadshots reads a file of portraits: first a template of their addresses, such as
// https://images.example/{year}/{code}.png, then one identifier a line of the drivers with a
// portrait; without any, all have one. See [season.Headshots] for the template. It skips empty lines and lines that begin
// with #.
func ReadHeadshots(r io.Reader) (season.Headshots, error) {
	var h season.Headshots
	err := readLines(r, func(line string) error {
		if h.Template == "" {
			h.Template = line
			return h.Validate()
		}
		h.Drivers = append(h.Drivers, season.DriverID(line))
		return nil
	})
	if err == nil && h.Template == "" {
		err = errors.New("no template in it")
	}
	if err != nil {
		return season.Headshots{}, fmt.Errorf("read headshots: %w", err)
	}
	return h, nil
}

func readLines(r io.Reader, read func(line string) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := read(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

// Apply adds the media to facts that no other goroutine uses yet. Its colours win over those of the
// facts. It returns the numbers of colours and portraits without a known team or driver.
func (m Media) Apply(f *season.Facts) (colours, headshots int) {
	for i := range f.Seasons {
		s := &f.Seasons[i]
		for team, colour := range m.Colours[s.Year] {
			if _, ok := f.Teams[team]; !ok {
				colours++
				continue
			}
			if s.Colours == nil {
				s.Colours = make(map[season.TeamID]string)
			}
			s.Colours[team] = colour
		}
	}
	if m.Headshots.Template == "" {
		return colours, 0
	}
	f.Headshots = m.Headshots.Of(f.Drivers)
	return colours, len(m.Headshots.Drivers) - len(f.Headshots.Drivers)
}
