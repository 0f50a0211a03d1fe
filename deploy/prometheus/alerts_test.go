// Package prometheus_test tests the alert rules that gridcast ships.
package prometheus_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"

	"go.yaml.in/yaml/v3"
)

// rules holds the tested fields of the rules and of their tests.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

type ruleTests struct {
	Tests []struct {
		Alerts []struct {
			Name     string `yaml:"alertname"`
			Expected []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func read(t *testing.T, file string, v any) {
	t.Helper()
	data := must.Get(os.ReadFile(file))(t)
	if err := yaml.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestEveryRuleIsTested checks that a test lets each rule fire, that another lets it stay silent, and that
// each rule names an action.
func TestEveryRuleIsTested(t *testing.T) {
	var shipped rules
	read(t, "alerts.yaml", &shipped)
	var tests, ofDays ruleTests
	read(t, "alerts_test.yaml", &tests)
	read(t, "alerts_days_test.yaml", &ofDays)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range slices.Concat(tests.Tests, ofDays.Tests) {
		for _, a := range test.Alerts {
			fires[a.Name] = fires[a.Name] || len(a.Expected) > 0
			silent[a.Name] = silent[a.Name] || len(a.Expected) == 0
		}
	}
	count := 0
	for _, group := range shipped.Groups {
		for _, r := range group.Rules {
			count++
			if !fires[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s: tested to fire %v, to stay silent %v; want both", r.Alert, fires[r.Alert], silent[r.Alert])
			}
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s: severity %q, want page or ticket", r.Alert, s)
			}
			must.Hold(t, r.Annotations["summary"] != "" && r.Annotations["description"] != "",
				"%s: says not what it is and what to do", r.Alert)
		}
	}
	must.Hold(t, count >= 5, "found only %d rules", count)
}

// TestRules has Prometheus itself evaluate the rules over the series of their tests.
func TestRules(t *testing.T) {
	must.Long(t, "runs every rule")
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool on this machine (Debian's package prometheus has it): the rules are not evaluated")
	}
	output, err := exec.Command(promtool, "test", "rules", "alerts_test.yaml", "alerts_days_test.yaml").CombinedOutput()
	must.Hold(t, err == nil && strings.Count(string(output), "SUCCESS") == 2, "promtool: %v\n%s", err, output)
}

// TestOneMailForOneCause fires all alerts of a cause. Alertmanager sends one of them.
func TestOneMailForOneCause(t *testing.T) {
	var config struct {
		Inhibit []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
		} `yaml:"inhibit_rules"`
	}
	read(t, "../alertmanager/alertmanager.yaml", &config)
	matches := func(matchers []string, alert string) bool {
		name, code, _ := strings.Cut(alert, " ")
		labels := map[string]string{"alertname": name, "code": code}
		return !slices.ContainsFunc(matchers, func(m string) bool {
			label, pattern, _ := strings.Cut(m, "=")
			whole := regexp.MustCompile("^(" + strings.Trim(strings.TrimPrefix(pattern, "~"), `"`) + ")$")
			return !whole.MatchString(labels[label])
		})
	}
	for _, fire := range [][]string{ // the first is the one that is sent
		{"GridcastPickMissing", "GridcastFactUrgent"},
		{"GridcastFactUrgent", "GridcastFactMissing grid_overdue"},
		{"GridcastProcessGone", "GridcastNoEdge", "GridcastNoScheduler"},
		{"GridcastResultUnverified", "GridcastResultsWait"},
		{"GridcastSourceFailing", "GridcastFactMissing result_overdue"},
		{"GridcastStoreUnreachable", "GridcastVersionStale", "GridcastVersionFrozen", "GridcastKeysStale", "GridcastEdgeBehind"},
		{"GridcastVersionFrozen", "GridcastVersionStale"},
		{"GridcastVersionRefused", "GridcastEdgeBehind"},
		{"GridcastNoScheduler", "GridcastVersionFrozen", "GridcastVersionStale"},
	} {
		var sent []string
		for _, alert := range fire {
			inhibited := false
			for _, rule := range config.Inhibit {
				inhibited = inhibited || matches(rule.Target, alert) && slices.ContainsFunc(fire, func(source string) bool { return matches(rule.Source, source) })
			}
			if !inhibited {
				sent = append(sent, alert)
			}
		}
		must.Hold(t, slices.Equal(sent, fire[:1]), "of %q Alertmanager sends %q, want the first", fire, sent)
	}
	if alert := "GridcastFactMissing archive_old"; slices.ContainsFunc(config.Inhibit, func(rule struct {
		Source []string `yaml:"source_matchers"`
		Target []string `yaml:"target_matchers"`
	},
	) bool {
		return matches(rule.Target, alert)
	}) {
		t.Errorf("%s is never sent", alert)
	}
}
