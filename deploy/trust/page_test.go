package trust_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
)

// page writes deploy/docs/trust.md.
func page(t *testing.T, rows []outcome) {
	t.Helper()
	order := []string{"scheduler", "edge", "serve", "directory", "S3", "Redis"}
	slices.SortStableFunc(rows, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.subject), slices.Index(order, b.subject)), cmp.Compare(a.fault, b.fault))
	})
	var b strings.Builder
	people := 0
	for _, r := range rows {
		if !strings.HasPrefix(r.person, "no") {
			people++
		}
	}
	fmt.Fprintf(&b, `# What breaks, and what readers notice

`+"`make trust`"+` makes each fault below with the built binary and writes this page. A reader asks one edge without a pause. In no cell
is an answer wrong, and in none does a version fall. Of %d cells, %d need a person, and `+"`gridcast doctor`"+` names the command for each.
The seconds count from the end of the fault until a change by an operator reaches the reader. The fault lasts two seconds.

API keys, operators, settings and webhooks have a copy in `+"`copies/`"+` of the store, written before each change. A scheduler
puts the copy back within 30 seconds, and records a damaged line of the audit log in the next line. Only damage of the
ledger or of an archive needs a person. The store has no second copy of them, because it would double the store; the nightly
backup has one.

| Part | Fault | Readers | Seconds | The operator sees | A person |
|---|---|---|---|---|---|
`, len(rows), people)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %s | %s |\n", r.subject, r.fault, r.readers, r.seconds, strings.ReplaceAll(r.operator, "|", "/"), r.person)
	}
	must.Do(t, os.WriteFile("../docs/trust.md", []byte(b.String()), 0o644))
}
