package season

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Headshots locate portraits of drivers. Template is an https address with placeholders: {driver} for
// the driver's identifier, {code} for their code of the season, {year} for the season. Drivers have a
// portrait there; without a list of them, every driver has one. With an empty template no driver has one.
type Headshots struct {
	Template string     `json:"template"`
	Drivers  []DriverID `json:"drivers"`
}

// Headshot returns the address of a driver's portrait in a season: the source's, else the template's.
// It is empty if there is none.
func (v *View) Headshot(driver DriverID, code string, year int) string {
	if own := v.Drivers[driver].HeadshotURL; own != "" {
		return own
	}
	if v.Headshots.Template == "" || len(v.Headshots.Drivers) > 0 && !slices.Contains(v.Headshots.Drivers, driver) {
		return ""
	}
	return expand(v.Headshots.Template, string(driver), code, year)
}

// Validate checks the template.
func (h Headshots) Validate() error {
	if h.Template == "" {
		if len(h.Drivers) > 0 {
			return errors.New("headshots of drivers without a template")
		}
		return nil
	}
	address, err := url.Parse(expand(h.Template, "driver", "ABC", 2000))
	if err != nil {
		return fmt.Errorf("headshot template %q: %w", h.Template, err)
	}
	if address.Scheme != "https" || address.Host == "" {
		return fmt.Errorf("headshot template %q: want an https address", h.Template)
	}
	left := expand(h.Template, "", "", 0)
	if i := strings.IndexAny(left, "{}"); i >= 0 {
		return fmt.Errorf("headshot template %q: %q is not {driver}, {code} or {year}", h.Template, left[i:])
	}
	if !strings.Contains(h.Template, "{driver}") && !strings.Contains(h.Template, "{code}") {
		return fmt.Errorf("headshot template %q: all drivers would have one portrait; name {driver} or {code}", h.Template)
	}
	return nil
}

func expand(template, driver, code string, year int) string {
	return strings.NewReplacer("{driver}", driver, "{code}", code, "{year}", strconv.Itoa(year)).Replace(template)
}
