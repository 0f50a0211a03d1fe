package f1db

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gridcast/builder/season"
)

// Colours are team colours by year, as #RRGGBB in upper case.
type Colours map[int]map[season.TeamID]string

var hexColour = regexp.MustCompile(`^#[0-9A-F]{6}$`)

// ReadColours reads a file of team colours by season and F1DB's constructor id, as collected
// from several sources: {"seasons": {"2024": {"ferrari": {"fastf1": {"official": "#E8002D"},
// "openf1": {"teamColour": "#E80020"}}}}}. The official colour is preferred to the one of
// openf1, which is the most frequent of the season's races. Teams without either are absent.
func ReadColours(r io.Reader) (Colours, error) {
	var file struct {
		Seasons map[string]map[season.TeamID]struct {
			FastF1 struct {
				Official string `json:"official"`
			} `json:"fastf1"`
			OpenF1 struct {
				TeamColour string `json:"teamColour"`
			} `json:"openf1"`
		} `json:"seasons"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return nil, fmt.Errorf("read team colours: %w", err)
	}
	if file.Seasons == nil {
		return nil, errors.New("read team colours: no seasons")
	}
	colours := make(Colours)
	for name, teams := range file.Seasons {
		year, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("read team colours: season %q is not a year", name)
		}
		colours[year] = make(map[season.TeamID]string)
		for team, sources := range teams {
			colour := strings.ToUpper(sources.FastF1.Official)
			if colour == "" {
				colour = strings.ToUpper(sources.OpenF1.TeamColour)
			}
			if colour == "" {
				continue
			}
			if !hexColour.MatchString(colour) {
				return nil, fmt.Errorf("read team colours: %d, %s: %q is not of the form #RRGGBB", year, team, colour)
			}
			colours[year][team] = colour
		}
	}
	return colours, nil
}

// colours gives the teams of each season their colours.
func (c *converter) colours() {
	for i := range c.facts.Seasons {
		s := &c.facts.Seasons[i]
		for team, colour := range c.opts.Colours[s.Year] {
			if _, ok := c.facts.Teams[team]; !ok {
				c.report.skip("team colours", "teams not in these seasons", 1)
				continue
			}
			if s.Colours == nil {
				s.Colours = make(map[season.TeamID]string)
			}
			s.Colours[team] = colour
		}
	}
}
