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
	"gridcast/snapshots/blob"
)

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

// noAddress removes the public address, or another text about the operator.
const noAddress = "none"

// change is the new value of one setting.
type change struct {
	subject string // for the audit log
	fault   error  // why the value is refused; nil: it is valid
	// apply sets the value and describes the effect for people. It returns no text if the settings have the value already.
	apply func(*settings.Settings) string
}

// changes lists the new values that the action gives.
func (d ChangeSettings) changes() []*change {
	reader := func(name string, text *string, check func(string) (string, error), field func(*settings.Settings) *string) *change {
		return changeText(name, text, check, field,
			"From the next version on readers find the "+name+" %s: in /openapi.json, /.well-known/security.txt and the foot of each page, as far as they have it.",
			"From the next version on no page names the "+name+".")
	}
	all := []*change{
		changeModel(d.Model),
		changeRule("auto-verify-after", "verifies results", d.AutoVerifyAfter, func(s *settings.Settings) **int64 { return &s.AutoVerifySeconds }),
		changeRule("auto-revise-after", "corrects verified results", d.AutoReviseAfter, func(s *settings.Settings) **int64 { return &s.AutoReviseSeconds }),
		changeHeadshots(d.Headshots),
		changeText("public address", d.PublicAddress, settings.CheckAddress, func(s *settings.Settings) *string { return &s.PublicAddress },
			"From the next minute on each scheduler asks %s/status once a minute. The page /status shows the figures of 90 days.",
			"From the next minute on the schedulers measure no public address."),
		reader("contact", d.Contact, settings.CheckContact, func(s *settings.Settings) *string { return &s.Operator.Contact }),
		reader("terms", d.Terms, settings.CheckPage, func(s *settings.Settings) *string { return &s.Operator.Terms }),
		reader("security policy", d.SecurityPolicy, settings.CheckPage, func(s *settings.Settings) *string { return &s.Operator.Policy }),
		reader("languages", d.Languages, settings.CheckLanguages, func(s *settings.Settings) *string { return &s.Operator.Languages }),
	}
	return slices.DeleteFunc(all, func(c *change) bool { return c == nil })
}

func changeModel(name *string) *change {
	if name == nil {
		return nil
	}
	_, fault := predict.ByName(*name)
	return &change{"model " + *name, fault, func(s *settings.Settings) string {
		if s.Model == *name {
			return ""
		}
		s.Model = *name
		return fmt.Sprintf("The model %s makes all picks from now on, in every process of the store. Frozen picks stay. Title odds and track record are computed again.", s.Model)
	}}
}

// changeRule changes the time after which a rule acts in place of an operator.
func changeRule(name, action string, after *time.Duration, field func(*settings.Settings) **int64) *change {
	if after == nil {
		return nil
	}
	var fault error
	switch {
	case *after < 0:
		fault = fmt.Errorf("%s %s: must not be negative", name, *after)
	case *after > 0 && *after < time.Second: // stored in whole seconds, it would become 0, which means never
		fault = fmt.Errorf("%s %s: must be at least a second, or 0 for never", name, *after)
	}
	seconds := int64(*after / time.Second)
	return &change{strings.ReplaceAll(name, "-", "_") + " " + after.String(), fault, func(s *settings.Settings) string {
		now := field(s)
		if *now != nil && **now == seconds {
			return ""
		}
		if *now = &seconds; seconds == 0 {
			return fmt.Sprintf("From now on only an operator %s.", action)
		}
		return fmt.Sprintf("A rule %s once the source's classification has not changed for %s. An operator can do so at any time.", action, *after)
	}}
}

func changeHeadshots(h *season.Headshots) *change {
	if h == nil {
		return nil
	}
	subject, effect := "headshots none", "From the next poll on no driver has a portrait, even if the archive has one."
	if h.Template != "" {
		subject = fmt.Sprintf("headshots of %d drivers", len(h.Drivers))
		effect = fmt.Sprintf("From the next poll on portraits of %d drivers are at %s.", len(h.Drivers), h.Template)
	}
	fault := h.Validate()
	if fault != nil {
		fault = fmt.Errorf("headshots: %w", fault)
	}
	return &change{subject, fault, func(s *settings.Settings) string {
		if s.Headshots != nil && s.Headshots.Template == h.Template && slices.Equal(s.Headshots.Drivers, h.Drivers) {
			return ""
		}
		s.Headshots = h
		return effect
	}}
}

// changeText changes a text that readers see. set and removed are the effects; %s in set is the new text.
func changeText(name string, text *string, check func(string) (string, error), field func(*settings.Settings) *string, set, removed string) *change {
	if text == nil {
		return nil
	}
	value, fault := "", error(nil)
	if *text != noAddress {
		if value, fault = check(*text); fault != nil {
			fault = fmt.Errorf("%s %w; none removes it", name, fault)
		}
	}
	return &change{strings.ReplaceAll(name, " ", "_") + " " + *text, fault, func(s *settings.Settings) string {
		now := field(s)
		if *now == value {
			return ""
		}
		if *now = value; value == "" {
			return removed
		}
		return fmt.Sprintf(set, value)
	}}
}

func (d ChangeSettings) look(ctx context.Context, o *Operator) (*Plan, error) {
	if d.NoHeadshots {
		d.Headshots = &season.Headshots{}
	}
	changes := d.changes()
	subject := strings.Join(view.Each(changes, func(c *change) string { return c.subject }), ", ")
	for _, c := range changes {
		if c.fault != nil {
			return nil, fmt.Errorf("change the settings: %w", c.fault)
		}
	}
	now, err := settings.Load(ctx, o.Store)
	if errors.Is(err, blob.ErrDamaged) {
		_, _ = settings.Heal(ctx, o.Store) // the read shows whether it did
		now, err = settings.Load(ctx, o.Store)
	}
	damaged := errors.Is(err, blob.ErrDamaged)
	if err != nil && !damaged {
		return nil, err
	}
	p := Preview{Title: "Change the settings of the store", Question: "Apply these settings from now on?", Seen: digest(now)}
	for _, c := range changes {
		if effect := c.apply(&now); effect != "" {
			p.Effects = append(p.Effects, effect)
		}
	}
	if damaged {
		p.Warnings = []string{view.Ended(fmt.Sprintf("The present settings are replaced, because they cannot be read: every setting that you do not name now is lost. %v", err))}
	}
	if len(p.Effects) == 0 {
		return unchanged(p, nil, "Nothing to change: the settings of the store say so already."), nil
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.ChangeSettings, Subject: subject}, Preview: p,
		do: func(ctx context.Context, _ Request) (Answer, error) {
			_, err := settings.Update(ctx, o.Store, damaged, func(s *settings.Settings) {
				for _, c := range changes {
					c.apply(s)
				}
			})
			return Answer{Text: "The settings of the store are changed: " + subject + "."}, err
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
