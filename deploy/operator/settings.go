package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
	"gridcast/snapshots"
)

// ErrSettled means that the store already has the requested settings.
var ErrSettled = errors.New("the settings of the store say so already")

// ChangeSettings changes the rules that every scheduler of the store goes by. A nil field leaves its setting
// alone.
type ChangeSettings struct {
	Model           *string           `help:"The model that makes the picks from now on: v2, r2, grid-frequency." env:"-"` // of predict.Names
	AutoVerifyAfter *time.Duration    `form:"verify" unit:"h" help:"Verify a result automatically once it has not changed for this long; 0: only an operator verifies." env:"-"`
	AutoReviseAfter *time.Duration    `form:"revise" unit:"h" help:"The same for a later correction; 0: only an operator corrects." env:"-"`
	Headshots       *season.Headshots `kong:"-" form:"-"`
	NoHeadshots     bool              `form:"headshots" help:"Publish the drawn portraits alone, even if the archive has others." xor:"portraits" env:"-"`
	PublicAddress   *string           `form:"address" help:"Where readers find the API, such as https://api.example.com; 'none' removes it." placeholder:"URL" env:"-"`
	Contact         *string           `help:"Where readers reach you: a mail address or an https address; 'none' removes it." placeholder:"ADDRESS" env:"-"`
	Terms           *string           `help:"The https address of your terms of service; 'none' removes it." placeholder:"URL" env:"-"`
	SecurityPolicy  *string           `form:"policy" help:"The https address of your policy for reports of vulnerabilities; 'none' removes it." placeholder:"URL" env:"-"`
	Languages       *string           `help:"The languages of such reports, such as 'en, de'; 'none' removes them." placeholder:"TAGS" env:"-"`
}

// told lists the settings about the operator that are changed.
func (d ChangeSettings) told() (changes []toldChange) {
	for _, c := range []toldChange{
		{"contact", d.Contact, settings.CheckContact, func(o *snapshots.Operator) *string { return &o.Contact }},
		{"terms", d.Terms, settings.CheckPage, func(o *snapshots.Operator) *string { return &o.Terms }},
		{"security-policy", d.SecurityPolicy, settings.CheckPage, func(o *snapshots.Operator) *string { return &o.Policy }},
		{"languages", d.Languages, settings.CheckLanguages, func(o *snapshots.Operator) *string { return &o.Languages }},
	} {
		if c.text != nil {
			changes = append(changes, c)
		}
	}
	return changes
}

// toldChange is a change of one public value about the operator.
type toldChange struct {
	name  string // of the flag
	text  *string
	check func(string) (string, error)
	field func(*snapshots.Operator) *string
}

// value returns the new value; empty: it is removed.
func (c toldChange) value() (string, error) {
	if *c.text == noAddress {
		return "", nil
	}
	value, err := c.check(*c.text)
	if err != nil {
		return "", fmt.Errorf("change the settings: %s %w; none removes it", c.name, err)
	}
	return value, nil
}

// noAddress removes the public address, or another text.
const noAddress = "none"

// subject names the settings that are changed, for the audit log.
func (d ChangeSettings) subject() string {
	var changes []string
	if d.Model != nil {
		changes = append(changes, "model "+*d.Model)
	}
	if d.AutoVerifyAfter != nil {
		changes = append(changes, "auto_verify_after "+d.AutoVerifyAfter.String())
	}
	if d.AutoReviseAfter != nil {
		changes = append(changes, "auto_revise_after "+d.AutoReviseAfter.String())
	}
	switch {
	case d.Headshots == nil:
	case d.Headshots.Template == "":
		changes = append(changes, "headshots none")
	default:
		changes = append(changes, fmt.Sprintf("headshots of %d drivers", len(d.Headshots.Drivers)))
	}
	if d.PublicAddress != nil {
		changes = append(changes, "public_address "+*d.PublicAddress)
	}
	for _, c := range d.told() {
		changes = append(changes, c.name+" "+*c.text)
	}
	return strings.Join(changes, ", ")
}

// apply changes s and describes the effects for people. It returns no effect if s already has the values.
func (d ChangeSettings) apply(s *settings.Settings) (effects []string) {
	if d.Model != nil && *d.Model != s.Model {
		s.Model = *d.Model
		effects = append(effects, fmt.Sprintf("The model %s makes all picks from now on, in every process of the store. Frozen picks stay. Title odds and track record are computed again.", s.Model))
	}
	rule := func(after *time.Duration, field **int64, what string) {
		if after == nil {
			return
		}
		seconds := int64(*after / time.Second)
		if *field != nil && **field == seconds {
			return
		}
		*field = &seconds
		if seconds == 0 {
			effects = append(effects, fmt.Sprintf("From now on only an operator %s.", what))
		} else {
			effects = append(effects, fmt.Sprintf("A rule %s once the source's classification has not changed for %s. An operator can do so at any time.", what, *after))
		}
	}
	rule(d.AutoVerifyAfter, &s.AutoVerifySeconds, "verifies results")
	rule(d.AutoReviseAfter, &s.AutoReviseSeconds, "corrects verified results")
	if h := d.Headshots; h != nil && (s.Headshots == nil || s.Headshots.Template != h.Template || !slices.Equal(s.Headshots.Drivers, h.Drivers)) {
		s.Headshots = h
		if h.Template == "" {
			effects = append(effects, "From the next poll on no driver has a portrait, even if the archive has one.")
		} else {
			effects = append(effects, fmt.Sprintf("From the next poll on portraits of %[2]d drivers are at %[1]s.", h.Template, len(h.Drivers)))
		}
	}
	if d.PublicAddress != nil {
		address := *d.PublicAddress
		if address == noAddress {
			address = ""
		}
		if address != s.PublicAddress && address == "" {
			effects = append(effects, "From the next minute on the schedulers measure no public address.")
		} else if address != s.PublicAddress {
			effects = append(effects, fmt.Sprintf("From the next minute on each scheduler asks %s/status once a minute. The page /status shows the figures of 90 days.", address))
		}
		s.PublicAddress = address
	}
	for _, c := range d.told() {
		value, err := c.value()
		field := c.field(&s.Operator)
		switch {
		case err != nil || *field == value: // look has refused a fault
			continue
		case value == "":
			effects = append(effects, fmt.Sprintf("From the next version on no page names the %s.", strings.ReplaceAll(c.name, "-", " ")))
		default:
			effects = append(effects, fmt.Sprintf("From the next version on readers find the %s %s: in /openapi.json, /.well-known/security.txt and the foot of each page, as far as they have it.", strings.ReplaceAll(c.name, "-", " "), value))
		}
		*field = value
	}
	return effects
}

func (d ChangeSettings) look(ctx context.Context, o *Operator) (*Plan, error) {
	if d.NoHeadshots {
		d.Headshots = &season.Headshots{}
	}
	if d.Model != nil {
		if _, err := predict.ByName(*d.Model); err != nil {
			return nil, fmt.Errorf("change the settings: %w", err)
		}
	}
	for _, rule := range []struct {
		name  string
		after *time.Duration
	}{{"auto-verify-after", d.AutoVerifyAfter}, {"auto-revise-after", d.AutoReviseAfter}} {
		switch {
		case rule.after == nil:
		case *rule.after < 0:
			return nil, fmt.Errorf("change the settings: %s %s: must not be negative", rule.name, *rule.after)
		case *rule.after > 0 && *rule.after < time.Second: // stored in whole seconds, it would become 0, which means never
			return nil, fmt.Errorf("change the settings: %s %s: must be at least a second, or 0 for never", rule.name, *rule.after)
		}
	}
	if d.Headshots != nil {
		if err := d.Headshots.Validate(); err != nil {
			return nil, fmt.Errorf("change the settings: headshots: %w", err)
		}
	}
	if d.PublicAddress != nil && *d.PublicAddress != noAddress {
		if err := settings.CheckAddress(*d.PublicAddress); err != nil {
			return nil, fmt.Errorf("change the settings: %w; none removes the address", err)
		}
	}
	for _, c := range d.told() {
		if _, err := c.value(); err != nil {
			return nil, err
		}
	}
	now, err := settings.Load(ctx, o.Store)
	damaged := errors.Is(err, settings.ErrDamaged)
	if err != nil && !damaged {
		return nil, err
	}
	seen := digest(now)
	effects := d.apply(&now)
	var warnings []string
	if damaged {
		warnings = append(warnings, view.Ended(fmt.Sprintf("The present settings are replaced, because they cannot be read: every setting that you do not name now is lost. %v", err)))
	}
	if len(effects) == 0 {
		return nil, fmt.Errorf("change the settings: %w", ErrSettled)
	}
	return &Plan{
		entry:   auditlog.Intent{Action: auditlog.ChangeSettings, Subject: d.subject()},
		Preview: Preview{Title: "Change the settings of the store", Question: "Apply these settings from now on?", Effects: effects, Warnings: warnings, Seen: seen},
		do: func(ctx context.Context, _ Request) (Answer, error) {
			if _, err := settings.Update(ctx, o.Store, damaged, func(s *settings.Settings) { d.apply(s) }); err != nil {
				return Answer{}, err
			}
			return Answer{Text: "The settings of the store are changed: " + d.subject() + "."}, nil
		},
	}, nil
}

// Setting is a setting of a store, as words for people.
type Setting struct{ Name, Value string }

// SettingsOf describes the settings of a store.
func SettingsOf(s settings.Settings) []Setting {
	rule := func(seconds *int64) string {
		switch {
		case seconds == nil:
			return "never (default), unless a process has a flag for it"
		case *seconds == 0:
			return "never: an operator decides"
		}
		return "after " + (time.Duration(*seconds) * time.Second).String()
	}
	portraits := "not set: as in the archive"
	switch {
	case s.Headshots == nil:
	case s.Headshots.Template == "":
		portraits = "none"
	default:
		portraits = fmt.Sprintf("%s, of %d drivers", s.Headshots.Template, len(s.Headshots.Drivers))
	}
	return []Setting{
		{"model of the picks", cmp.Or(s.Model, predict.Names[0]+" (default), unless a process has --model")},
		{"results verify by rule", rule(s.AutoVerifySeconds)},
		{"results revise by rule", rule(s.AutoReviseSeconds)},
		{"portraits", portraits},
		{"public address", cmp.Or(s.PublicAddress, "not set: its availability is not measured")},
		{"contact of the operator", cmp.Or(s.Operator.Contact, "not set: /.well-known/security.txt is 404")},
		{"terms of service", cmp.Or(s.Operator.Terms, "not set")},
		{"security policy", cmp.Or(s.Operator.Policy, "not set")},
		{"languages of reports", cmp.Or(s.Operator.Languages, "not set")},
	}
}
