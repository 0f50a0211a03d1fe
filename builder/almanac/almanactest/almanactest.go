// Package almanactest refreshes ledgers in tests.
package almanactest

import (
	"testing"

	"gridcast/builder/ledger"
)

// Fresh refreshes the ledger.
func Fresh(t testing.TB, l *ledger.Ledger) ledger.Fresh {
	t.Helper()
	fresh, err := l.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}
