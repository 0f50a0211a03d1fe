package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The operators. Each makes one small change that keeps the code compiling, in most places.
const (
	callDropped        = "call dropped"        // of a statement, also a deferred one: a sync, a close, a delete
	errorIgnored       = "error ignored"       // the branch of an error is never taken
	errorSwallowed     = "error swallowed"     // nil is returned instead of an error
	gateSkipped        = "gate skipped"        // an early return is never taken
	conditionIgnored   = "condition ignored"   // a branch is always taken
	conditionNegated   = "condition negated"   // == for !=, or a dropped !
	boundaryMoved      = "boundary moved"      // < for <=
	andOr              = "and for or"          // && for ||
	argumentsExchanged = "arguments exchanged" // two neighbours
	orderExchanged     = "order exchanged"     // a statement comes before the one on which it depends
	offByOne           = "off by one"          // a constant
	assignmentDropped  = "assignment dropped"
)

var operators = []string{
	callDropped, errorIgnored, errorSwallowed, gateSkipped, conditionIgnored, conditionNegated,
	boundaryMoved, andOr, argumentsExchanged, orderExchanged, offByOne, assignmentDropped,
}

// site is a place for a fault.
type site struct {
	operator   string
	number     int    // of the fault, once it is drawn
	pkg, file  string // below the root
	at, entry  place  // of the fault, and of the first statement of its function; no entry outside of functions
	source     []byte // of the file
	start, end int    // of the bytes that the fault replaces
	fault      string
	both       string // code that does the one or the other, by codemutant(§)
}

// place is a line and a column, from 1 on; columns count bytes.
type place struct{ line, column int }

func (p place) before(other place) bool {
	return p.line < other.line || p.line == other.line && p.column < other.column
}

func (s site) where() string { return fmt.Sprintf("%s:%d", s.file, s.at.line) }

// key identifies the fault by its text, so that it stays when lines move.
func (s site) key() string {
	return fmt.Sprintf("%s: %s: %.100s in %.100s", s.file, s.operator, oneLine(s.source[s.start:s.end]), oneLine(s.lineText()))
}

// String shows the fault as a difference.
func (s site) String() string {
	return fmt.Sprintf("%s: %s\n\t- %s\n\t+ %s\n\tkey %s", s.where(), s.operator,
		oneLine(s.source[s.start:s.end]), oneLine([]byte(s.fault)), s.key())
}

// lineText is the line in which the replaced bytes begin.
func (s site) lineText() []byte {
	line, _, _ := bytes.Cut(s.source[bytes.LastIndexByte(s.source[:s.start], '\n')+1:], []byte("\n"))
	return line
}

func oneLine(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }

// finder collects the places of a file.
type finder struct {
	files *token.FileSet
	types map[ast.Expr]types.TypeAndValue
	own   *types.Package
	sites []site
	site  site   // with pkg, file, source and, inside a function, entry
	fails []bool // of the functions around the node: the last result is an error
}

func (f *finder) text(n ast.Node) string {
	return string(f.site.source[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) offset(p token.Pos) int { return f.files.Position(p).Offset }

func (f *finder) place(p token.Pos) place {
	at := f.files.Position(p)
	return place{at.Line, at.Column}
}

// add notes a fault in place of the source between two positions. In both, § stands for its number.
func (f *finder) add(operator string, from, to token.Pos, fault, both string) {
	s := f.site
	s.operator, s.start, s.end, s.at = operator, f.offset(from), f.offset(to), f.place(from)
	s.fault, s.both = fault, both
	f.sites = append(f.sites, s)
}

// typeOf is the text of a type; empty if there is none.
func (f *finder) typeOf(e ast.Expr) string {
	t := f.types[e].Type
	if t == nil {
		return ""
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p == f.own {
			return ""
		}
		return p.Name()
	})
}

func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f.function(n.Type, n.Body)
			return false
		case *ast.FuncLit:
			f.function(n.Type, n.Body)
			return false
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
			f.clause(n)
		case *ast.CommClause:
			f.statements(n.Body)
		case *ast.IfStmt:
			f.condition(n.Cond, n.Body.List)
		case *ast.SwitchStmt:
			if n.Tag != nil { // its cases are values
				f.tagged(n)
				return false
			}
		case *ast.ReturnStmt:
			f.returned(n)
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				f.add(conditionNegated, n.Pos(), n.End(), f.text(n.X), "("+f.text(n)+" != codemutant(§))")
			}
		case *ast.CallExpr:
			f.call(n)
		case *ast.IndexExpr:
			f.constant(n.Index)
		case *ast.SliceExpr:
			for _, e := range []ast.Expr{n.Low, n.High} {
				f.constant(e)
			}
		case *ast.ValueSpec:
			for _, e := range n.Values {
				f.constant(e)
			}
		case *ast.AssignStmt:
			for _, e := range n.Rhs {
				f.constant(e)
			}
		}
		return true
	})
}

func (f *finder) function(of *ast.FuncType, body *ast.BlockStmt) {
	if body == nil || len(body.List) == 0 {
		return
	}
	fails, around := false, f.site.entry
	f.site.entry = f.place(body.List[0].Pos())
	if of.Results != nil {
		last, ok := of.Results.List[len(of.Results.List)-1].Type.(*ast.Ident)
		fails = ok && last.Name == "error"
	}
	f.fails = append(f.fails, fails)
	f.walk(body)
	f.fails, f.site.entry = f.fails[:len(f.fails)-1], around
}

// tagged walks a switch with a tag: its cases are no conditions.
func (f *finder) tagged(n *ast.SwitchStmt) {
	f.walk(n.Tag)
	for _, clause := range n.Body.List {
		if clause, ok := clause.(*ast.CaseClause); ok {
			f.statements(clause.Body)
			for _, statement := range clause.Body {
				f.walk(statement)
			}
		}
	}
}

// clause adds the faults of a case that is a condition.
func (f *finder) clause(n *ast.CaseClause) {
	for _, e := range n.List {
		switch e.(type) {
		case *ast.BinaryExpr, *ast.CallExpr, *ast.UnaryExpr, *ast.ParenExpr:
			f.condition(e, n.Body)
		}
	}
}

// ofError matches the condition that there is an error.
var ofError = regexp.MustCompile(`^\w*[eE]rr != nil$`)

func (f *finder) condition(cond ast.Expr, body []ast.Stmt) {
	text := f.text(cond)
	if ofError.MatchString(text) {
		f.add(errorIgnored, cond.Pos(), cond.End(), "false && "+text, "!codemutant(§) && "+text)
		return
	}
	if len(body) > 0 {
		switch body[len(body)-1].(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			f.add(gateSkipped, cond.Pos(), cond.End(), "false && ("+text+")", "!codemutant(§) && ("+text+")")
		}
	}
	f.add(conditionIgnored, cond.Pos(), cond.End(), "true || ("+text+")", "codemutant(§) || ("+text+")")
}

func (f *finder) returned(n *ast.ReturnStmt) {
	if len(n.Results) == 0 || !f.fails[len(f.fails)-1] {
		return
	}
	last := n.Results[len(n.Results)-1]
	if text := f.text(last); text == "err" || strings.HasPrefix(text, "fmt.Errorf(") || strings.HasPrefix(text, "errors.Join(") || strings.HasPrefix(text, "Err") {
		without := strings.TrimSuffix(f.text(n), text) + "nil"
		f.add(errorSwallowed, n.Pos(), n.End(), without, "if codemutant(§) { "+without+" }\n"+f.text(n))
	}
}

// swaps are the operators that take each other's place.
var swaps = map[token.Token]struct {
	operator string
	by       token.Token
}{
	token.EQL: {conditionNegated, token.NEQ}, token.NEQ: {conditionNegated, token.EQL},
	token.LSS: {boundaryMoved, token.LEQ}, token.LEQ: {boundaryMoved, token.LSS},
	token.GTR: {boundaryMoved, token.GEQ}, token.GEQ: {boundaryMoved, token.GTR},
	token.LAND: {andOr, token.LOR}, token.LOR: {andOr, token.LAND},
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if by, ok := swaps[n.Op]; ok {
		was, is := f.text(n), f.text(n.X)+" "+by.by.String()+" "+f.text(n.Y)
		f.add(by.operator, n.Pos(), n.End(), is, "(codemutant(§) && ("+is+") || !codemutant(§) && ("+was+"))")
	}
	f.constant(n.X)
	f.constant(n.Y)
}

func (f *finder) constant(e ast.Expr) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.INT {
		return
	}
	if value, err := strconv.ParseInt(literal.Value, 0, 64); err == nil {
		f.add(offByOne, e.Pos(), e.End(), strconv.FormatInt(value+1, 10), fmt.Sprintf("codemutantPick[%s](§, %d, %d)", f.typeOf(e), value, value+1))
	}
}

// ofText matches the functions whose arguments are for people, or have no order.
var ofText = regexp.MustCompile(`(f|Log|log|Join|[eE]qual(Func|Fold)?|[sS]ame(Order)?|alike|max|min|make|Or|Debug|Info|Warn|Error)$`)

func (f *finder) call(n *ast.CallExpr) {
	if ofText.MatchString(f.text(n.Fun)) {
		return
	}
	for i, e := range n.Args {
		f.constant(e)
		if i == 0 {
			continue
		}
		before := n.Args[i-1]
		a, b, of := f.text(before), f.text(e), f.typeOf(e)
		if a == b || of == "" || of != f.typeOf(before) || calls(before) || calls(e) {
			continue
		}
		pick := "codemutantPick[" + of + "](§, "
		f.add(argumentsExchanged, before.Pos(), e.End(), b+", "+a, pick+a+", "+b+"), "+pick+b+", "+a+")")
	}
}

// calls reports whether an expression has effects, so that it must not be computed twice.
func calls(e ast.Expr) (has bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr, *ast.FuncLit:
			has = true
		case *ast.UnaryExpr:
			has = has || n.Op == token.ARROW
		}
		return !has
	})
	return has
}

func (f *finder) statements(list []ast.Stmt) {
	for i, n := range list {
		switch n := n.(type) {
		case *ast.ExprStmt:
			f.dropped(n, n.X)
		case *ast.DeferStmt:
			f.dropped(n, n.Call)
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				f.add(assignmentDropped, n.Pos(), n.End(), "", f.without(n))
			}
		case *ast.IncDecStmt:
			f.add(assignmentDropped, n.Pos(), n.End(), "", f.without(n))
		}
		if i > 0 && f.depends(list[i-1], n) {
			a, b := list[i-1], n
			first, second := f.text(a), f.text(b)
			both := "if codemutant(§) {\n" + second + "\n" + first + "\n} else {\n" + first + "\n" + second + "\n}"
			if _, last := b.(*ast.ReturnStmt); last {
				both = "if codemutant(§) {\n" + second + "\n}\n" + first + "\n" + second
			}
			f.add(orderExchanged, a.Pos(), b.End(), second+"\n"+first, both)
		}
	}
}

// without is a statement that a fault drops.
func (f *finder) without(n ast.Node) string { return "if !codemutant(§) {\n" + f.text(n) + "\n}" }

// dropped adds the fault without a call. The lines of a log are for people.
func (f *finder) dropped(n ast.Node, of ast.Expr) {
	if c, ok := of.(*ast.CallExpr); ok && !ofText.MatchString(f.text(c.Fun)) {
		f.add(callDropped, n.Pos(), n.End(), "", f.without(n))
	}
}

// depends reports whether two neighbours do something else in the other order: both are calls, or one mentions the variable
// that the other sets.
func (f *finder) depends(a, b ast.Stmt) bool {
	_, first := a.(*ast.ExprStmt)
	_, second := b.(*ast.ExprStmt)
	return first && second || f.mentions(b, a) || f.mentions(a, b)
}

// mentions reports whether a statement has the text of a variable that set assigns.
func (f *finder) mentions(n, set ast.Stmt) bool {
	var names []ast.Expr
	switch set := set.(type) {
	case *ast.AssignStmt:
		if set.Tok != token.DEFINE {
			names = set.Lhs
		}
	case *ast.IncDecStmt:
		names = []ast.Expr{set.X}
	}
	switch n.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.IfStmt, *ast.ReturnStmt:
	default:
		return false
	}
	return slices.ContainsFunc(names, func(e ast.Expr) bool {
		name := f.text(e)
		return name != "_" && regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(f.text(n))
	})
}
