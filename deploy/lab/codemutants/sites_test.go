package main

import (
	"go/ast"
	"go/parser"
	"strings"
	"testing"

	"gridcast/deploy/must"
)

// TestOperators makes every fault of a small function, and compares the changed lines.
func TestOperators(t *testing.T) {
	const source = `package p

import (
	"errors"
	"fmt"
)

var log interface{ Info(string, ...any) }

func unlock()           {}
func put(int)           {}
func known(int) bool    { return false }
func g(a, b int) int    { return a - b }
func f(a, b int) error {
	err := errors.ErrUnsupported
	defer unlock()
	n := 0
	if err != nil {
		return err
	}
	if a < 3 && !known(b) {
		return nil
	}
	n = g(a, b)
	put(n)
	switch {
	case n == a:
		n++
	}
	log.Info("done", "n", n)
	return fmt.Errorf("%d", n)
}
`
	want := map[string][]string{
		callDropped:        {"defer unlock() > ", "put(n) > "},
		errorIgnored:       {"err != nil > false && err != nil"},
		errorSwallowed:     {"return err > return nil", `return fmt.Errorf("%d", n) > return nil`},
		gateSkipped:        {"a < 3 && !known(b) > false && (a < 3 && !known(b))"},
		conditionIgnored:   {"a < 3 && !known(b) > true || (a < 3 && !known(b))", "n == a > true || (n == a)"},
		conditionNegated:   {"err != nil > err == nil", "!known(b) > known(b)", "n == a > n != a"},
		boundaryMoved:      {"a < 3 > a <= 3"},
		andOr:              {"a < 3 && !known(b) > a < 3 || !known(b)"},
		argumentsExchanged: {"a, b > b, a"},
		orderExchanged:     {"n = g(a, b) put(n) > put(n) n = g(a, b)"},
		offByOne:           {"0 > 1", "3 > 4"},
		assignmentDropped:  {"n = g(a, b) > ", "n++ > "},
	}
	h := must.Get(openHouse(t.Context()))(t)
	file := must.Get(parser.ParseFile(h.files, "p/p.go", source, 0))(t)
	u := &unit{path: "p", name: "p", sources: map[string][]byte{"p/p.go": []byte(source)}, parsed: map[string]*ast.File{"p/p.go": file}}
	got := map[string][]string{}
	for _, s := range must.Get(h.sites(u))(t) {
		got[s.operator] = append(got[s.operator], oneLine(s.source[s.start:s.end])+" > "+oneLine([]byte(s.fault)))
		must.Succeed(t, s.String(), must.Err2(h.check(u, &s)))
	}
	for _, operator := range operators {
		must.Equal(t, operator, want[operator], got[operator])
	}
}

// TestEquivalents checks that each explained fault is still a fault of the code, so that no explanation outlives it.
func TestEquivalents(t *testing.T) {
	h := must.Get(openHouse(t.Context()))(t)
	there := map[string]bool{}
	for _, p := range packages {
		for _, s := range must.Get(h.sites(must.Get(h.open(p.path))(t)))(t) {
			there[s.key()] = true
		}
	}
	for key := range must.Get(equivalents(strings.NewReader(equivalentText)))(t) {
		must.Hold(t, there[key], "equivalent.txt explains a fault that the code does not have: %s", key)
	}
	must.Fail(t, "a line without a reason", must.Err(equivalents(strings.NewReader("a: b: c in d"))))
}
