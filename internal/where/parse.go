package where

import (
	"fmt"
	"strings"
	"time"

	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// maxDepth limits how deeply parentheses and NOT nest.
const maxDepth = 500

// Parse reads a condition. Errors name the character, from 1, and what was expected
// there. SQL that this package does not support is an error that wraps
// fault.ErrUnsupported.
func Parse(text string) (*Cond, error) {
	all, err := tokens(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: all}
	if p.peek().kind == tokenEnd {
		return nil, fmt.Errorf("the condition is empty: want one as ts >= '2024-05-01'")
	}
	t, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEnd {
		return nil, p.unexpected("AND, OR or the end")
	}
	root, err := p.condition(t)
	if err != nil {
		return nil, err
	}
	return &Cond{root}, nil
}

// parser reads the tokens of a condition by recursive descent.
type parser struct {
	text   string
	tokens []token
	next   int
	depth  int
}

// term is an operand: exactly one of column, literal and node is set.
type term struct {
	column  keys.Path
	literal *literal
	node    *node
	at      int // where it begins
}

func (p *parser) peek() token { return p.tokens[p.next] }

// word reports whether the next tokens are the given keywords, in any case, and
// skips them if they are.
func (p *parser) word(words ...string) bool {
	for i, w := range words {
		if p.next+i >= len(p.tokens) || p.tokens[p.next+i].kind != tokenName || !strings.EqualFold(p.tokens[p.next+i].text, w) {
			return false
		}
	}
	p.next += len(words)
	return true
}

// symbol is like word for punctuation.
func (p *parser) symbol(s string) bool {
	if t := p.peek(); t.kind != tokenSymbol || t.text != s {
		return false
	}
	p.next++
	return true
}

// dateAtStart reports whether a text starts like 2024-05-01.
func dateAtStart(s string) bool {
	_, err := time.Parse(time.DateOnly, s[:min(len(s), len(time.DateOnly))])
	return err == nil
}

// unexpected returns an error about the next token.
func (p *parser) unexpected(want string) error {
	t := p.peek()
	switch {
	case t.kind == tokenEnd:
		return errorAt(p.text, t.at, "want %s, got the end of the condition", want)
	case t.kind == tokenString:
		return errorAt(p.text, t.at, "want %s, got a string", want)
	case t.kind == tokenSymbol && strings.Contains("+-*/%||^&~", t.text):
		if t.at >= 4 && dateAtStart(p.text[t.at-4:]) {
			return errorAt(p.text, t.at-4, "want a date in quotes, as '2024-05-01'")
		}
		return unsupportedAt(p.text, t.at, "an expression (%s); conditions compare columns with literals", t.text)
	case t.text == "::":
		return unsupportedAt(p.text, t.at, "a cast (::); literals take the type of the column")
	case t.kind == tokenName && (strings.EqualFold(t.text, "ILIKE") || strings.EqualFold(t.text, "GLOB") || strings.EqualFold(t.text, "SIMILAR")):
		return unsupportedAt(p.text, t.at, "%s (want LIKE)", strings.ToUpper(t.text))
	case t.kind == tokenName && (strings.EqualFold(t.text, "COLLATE") || strings.EqualFold(t.text, "ESCAPE")):
		return unsupportedAt(p.text, t.at, "%s", strings.ToUpper(t.text))
	}
	return errorAt(p.text, t.at, "want %s, got %q", want, t.text)
}

// condition returns a term as a condition.
func (p *parser) condition(t term) (*node, error) {
	switch {
	case t.node != nil:
		return t.node, nil
	case t.column != nil:
		return &node{op: opTest, test: &test{op: testBool, path: t.column}}, nil
	}
	if truth, ok := t.literal.truth(); ok {
		return &node{op: opConst, truth: truth}, nil
	}
	return nil, errorAt(p.text, t.at, "want a condition as ts >= '2024-05-01', got the literal %s alone", t.literal)
}

// disjunction reads conditions between OR.
func (p *parser) disjunction() (term, error) { return p.list(opOr, "OR", p.conjunction) }

// conjunction reads conditions between AND.
func (p *parser) conjunction() (term, error) { return p.list(opAnd, "AND", p.negation) }

// list reads terms between the keyword of an operation.
func (p *parser) list(op op, word string, read func() (term, error)) (term, error) {
	first, err := read()
	if err != nil || !p.word(word) {
		return first, err
	}
	var nodes []*node
	for t := first; ; {
		n, err := p.condition(t)
		if err != nil {
			return term{}, err
		}
		if nodes = append(nodes, n); len(nodes) > 1 && !p.word(word) {
			return term{node: join(op, nodes...), at: first.at}, nil
		}
		if t, err = read(); err != nil {
			return term{}, err
		}
	}
}

// negation reads a test and the NOTs before it.
func (p *parser) negation() (term, error) {
	if p.depth++; p.depth > maxDepth {
		return term{}, errorAt(p.text, p.peek().at, "the condition nests more than %d levels deep", maxDepth)
	}
	defer func() { p.depth-- }()
	at := p.peek().at
	if !p.word("NOT") {
		t, err := p.comparison()
		for err == nil && p.word("IS") {
			t, err = p.is(t)
		}
		return t, err
	}
	t, err := p.negation()
	if err != nil {
		return term{}, err
	}
	n, err := p.condition(t)
	return term{node: not(n), at: at}, err
}

// is reads what follows IS.
func (p *parser) is(t term) (term, error) {
	negated := p.word("NOT")
	if p.word("DISTINCT", "FROM") {
		right, err := p.comparand()
		if err != nil {
			return term{}, err
		}
		n, err := p.compare(testDistinct, t, right)
		return negatedTerm(n, negated, t.at), err
	}
	var truth Truth
	null := p.word("NULL")
	switch {
	case null, p.word("UNKNOWN"):
		truth = Null
	case p.word("TRUE"):
		truth = True
	case p.word("FALSE"):
		truth = False
	default:
		return term{}, p.unexpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
	}
	if null && t.column != nil {
		return negatedTerm(&node{op: opTest, test: &test{op: testIsNull, path: t.column}}, negated, t.at), nil
	}
	kid, err := p.condition(t)
	return negatedTerm(&node{op: opIs, kids: []*node{kid}, truth: truth}, negated, t.at), err
}

func negatedTerm(n *node, negated bool, at int) term {
	if negated {
		n = not(n)
	}
	return term{node: n, at: at}
}

// comparisons has the tests between a column and a literal, and the equivalent tests with
// the sides exchanged.
var comparisons = map[string]struct {
	op, flipped testOp
	negated     bool
}{
	"=": {testEqual, testEqual, false}, "==": {testEqual, testEqual, false},
	"<>": {testEqual, testEqual, true}, "!=": {testEqual, testEqual, true},
	"<": {testLess, testGreater, false}, "<=": {testLessEqual, testGreaterEqual, false},
	">": {testGreater, testLess, false}, ">=": {testGreaterEqual, testLessEqual, false},
}

// comparison reads a term, or two with a comparison between them.
func (p *parser) comparison() (term, error) {
	left, err := p.comparand()
	if err != nil || p.peek().kind != tokenSymbol {
		return left, err
	}
	c, ok := comparisons[p.peek().text]
	if !ok {
		return left, nil
	}
	p.next++
	right, err := p.comparand()
	if err != nil {
		return term{}, err
	}
	if t := p.peek(); t.kind == tokenSymbol && comparisons[t.text].op != 0 {
		return term{}, errorAt(p.text, t.at, "want AND, OR or the end, got a second comparison, %s (combine comparisons with AND)", t.text)
	}
	op := c.op
	if left.literal != nil {
		op = c.flipped
	}
	n, err := p.compare(op, left, right)
	return negatedTerm(n, c.negated, left.at), err
}

// compare returns the test of two terms, one a column and the other a literal.
func (p *parser) compare(op testOp, left, right term) (*node, error) {
	column, value := left, right
	if left.literal != nil && right.column != nil {
		column, value = right, left
	}
	switch {
	case left.column != nil && right.column != nil:
		return nil, unsupportedAt(p.text, right.at, "comparing two columns, %s and %s (want a literal; a string is written '%s')",
			pathText(left.column), pathText(right.column), strings.Join(right.column, "."))
	case left.literal != nil && right.literal != nil:
		return nil, errorAt(p.text, left.at, "two literals are compared: want a column on one side (its name is written bare or in double quotes)")
	case column.node != nil || value.node != nil:
		at := column.at
		if column.node == nil {
			at = value.at
		}
		return nil, unsupportedAt(p.text, at, "comparing a condition (want AND, OR, NOT, or IS TRUE)")
	}
	return &node{op: opTest, test: &test{op: op, path: column.column, args: []literal{*value.literal}}}, nil
}

// comparand reads a term and the IN, BETWEEN or LIKE after it.
func (p *parser) comparand() (term, error) {
	t, err := p.primary()
	for err == nil {
		start := p.next
		negated := p.word("NOT")
		var n *node
		switch {
		case p.word("IN"):
			n, err = p.in(t)
		case p.word("BETWEEN"):
			n, err = p.between(t)
		case p.word("LIKE"):
			n, err = p.like(t)
		case negated:
			return term{}, p.unexpected("IN, BETWEEN or LIKE")
		default:
			p.next = start
			return t, nil
		}
		t = negatedTerm(n, negated, t.at)
	}
	return term{}, err
}

// in reads the list of IN.
func (p *parser) in(t term) (*node, error) {
	if err := p.wantColumn(t, "IN"); err != nil {
		return nil, err
	}
	if !p.symbol("(") {
		return nil, p.unexpected("( after IN")
	}
	out := &test{op: testIn, path: t.column}
	for {
		l, err := p.literal()
		if err != nil {
			return nil, err
		}
		out.args = append(out.args, *l)
		if p.symbol(")") {
			return &node{op: opTest, test: out}, nil
		}
		if !p.symbol(",") {
			return nil, p.unexpected(", or ) in the list of IN")
		}
	}
}

// between reads the bounds of BETWEEN.
func (p *parser) between(t term) (*node, error) {
	if err := p.wantColumn(t, "BETWEEN"); err != nil {
		return nil, err
	}
	least, err := p.literal()
	if err != nil {
		return nil, err
	}
	if !p.word("AND") {
		return nil, p.unexpected("AND and the upper bound of BETWEEN")
	}
	most, err := p.literal()
	if err != nil {
		return nil, err
	}
	return join(opAnd,
		&node{op: opTest, test: &test{op: testGreaterEqual, path: t.column, args: []literal{*least}}},
		&node{op: opTest, test: &test{op: testLessEqual, path: t.column, args: []literal{*most}}}), nil
}

// like reads the pattern of LIKE.
func (p *parser) like(t term) (*node, error) {
	if err := p.wantColumn(t, "LIKE"); err != nil {
		return nil, err
	}
	begin := p.peek().at
	l, err := p.literal()
	if err != nil {
		return nil, err
	}
	if l.kind != litString && l.kind != litNull {
		return nil, errorAt(p.text, begin, "want a pattern as 'prefix%%' after LIKE, got %s", l)
	}
	if t := p.peek(); p.word("ESCAPE") {
		return nil, unsupportedAt(p.text, t.at, "ESCAPE (only %% and _ have a meaning in patterns)")
	}
	return &node{op: opTest, test: &test{op: testLike, path: t.column, args: []literal{*l}}}, nil
}

func (p *parser) wantColumn(t term, word string) error {
	if t.column == nil {
		return errorAt(p.text, t.at, "want a column before %s", word)
	}
	return nil
}

// literal reads a literal.
func (p *parser) literal() (*literal, error) {
	t, err := p.primary()
	switch {
	case err != nil:
		return nil, err
	case t.column != nil:
		return nil, unsupportedAt(p.text, t.at, "the column %s in this place (want a literal; a string is written '%s')", pathText(t.column), strings.Join(t.column, "."))
	case t.node != nil:
		return nil, errorAt(p.text, t.at, "want a literal, got a condition")
	}
	return t.literal, nil
}

// primary reads a column, a literal or something in parentheses.
func (p *parser) primary() (term, error) {
	t := p.peek()
	switch {
	case p.symbol("("):
		inner, err := p.disjunction()
		if err != nil {
			return term{}, err
		}
		if !p.symbol(")") {
			return term{}, p.unexpected("AND, OR or )")
		}
		return inner, nil
	case p.symbol("-"), p.symbol("+"):
		if p.peek().kind != tokenNumber {
			return term{}, p.unexpected("a number after " + t.text)
		}
		return p.number(t.at, t.text == "-")
	case t.kind == tokenNumber:
		return p.number(t.at, false)
	case t.kind == tokenString:
		p.next++
		return term{literal: &literal{kind: litString, text: t.text}, at: t.at}, nil
	case t.kind == tokenQuoted, t.kind == tokenName && !isReserved(t.text):
		return p.name()
	}
	for _, l := range []literal{{kind: litBool, text: "TRUE"}, {kind: litBool, text: "FALSE"}, {kind: litNull, text: "NULL"}} {
		if p.word(l.text) {
			return term{literal: &l, at: t.at}, nil
		}
	}
	for _, word := range []string{"CASE", "CAST", "EXISTS", "ANY", "ALL", "SELECT"} {
		if p.word(word) {
			return term{}, unsupportedAt(p.text, t.at, "%s", word)
		}
	}
	return term{}, p.unexpected("a column or a literal")
}

// number reads a number whose sign has been read.
func (p *parser) number(at int, negative bool) (term, error) {
	l := literal{kind: litNumber, text: p.peek().text}
	p.next++
	if negative {
		l.text = "-" + l.text
	}
	if err := l.check(); err != nil {
		return term{}, errorAt(p.text, at, "%w", err)
	}
	return term{literal: &l, at: at}, nil
}

// name reads a column, or a literal that begins with the name of its type.
func (p *parser) name() (term, error) {
	begin := p.peek()
	if begin.kind == tokenName {
		if l, err := p.typed(); l != nil || err != nil {
			return term{literal: l, at: begin.at}, err
		}
	}
	var path keys.Path
	for {
		t := p.peek()
		if t.kind != tokenQuoted && t.kind != tokenName {
			return term{}, p.unexpected("the name of a field")
		}
		p.next++
		path = append(path, t.text)
		switch after := p.peek(); {
		case p.symbol("."):
			continue
		case after.kind == tokenSymbol && (after.text == "(" || after.text == "["):
			return term{}, unsupportedAt(p.text, begin.at, "%s%s (conditions have no functions and no subscripts)", pathText(path), after.text)
		}
		return term{column: path, at: begin.at}, nil
	}
}

// typed reads a literal that begins with the name of its type, as DATE '2024-05-01'.
// It returns nil if there is none.
func (p *parser) typed() (*literal, error) {
	start := p.next
	name := p.peek().text
	kind, ok := litString, true
	switch {
	case p.word("TIMESTAMP", "WITH", "TIME", "ZONE"), p.word("TIMESTAMPTZ"):
		kind = litInstant
	case p.word("TIMESTAMP", "WITHOUT", "TIME", "ZONE"), p.word("TIMESTAMP"), p.word("DATETIME"):
		kind = litTimestamp
	case p.word("DATE"):
		kind = litDate
	case p.word("TIME"):
		kind = litTime
	default:
		p.next++
		ok = false
	}
	value := p.peek()
	if value.kind != tokenString {
		p.next = start
		return nil, nil
	}
	if !ok {
		return nil, unsupportedAt(p.text, p.tokens[start].at, "a literal of the type %s (want DATE, TIME, TIMESTAMP or TIMESTAMPTZ, or a string alone, which takes the type of the column)", name)
	}
	p.next++
	l := &literal{kind: kind, text: value.text}
	if err := l.check(); err != nil {
		return nil, errorAt(p.text, value.at, "%w", err)
	}
	return l, nil
}
