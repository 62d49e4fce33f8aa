package where

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Texts that mean the same have one canonical form, which reads back to itself.
func TestParse(t *testing.T) {
	for want, texts := range map[string][]string{
		`a = 1`:                                  {"a=1", "(a) = (1)", "1 = a", "((a = 1))", "a == +1", ` "a" = 1 `},
		`NOT a = 1`:                              {"a<>1", "a != 1", "not a = 1", "NOT (a=1)", "1 <> a"},
		`a > 1`:                                  {"1 < a"},
		`a < 1`:                                  {"1 > a"},
		`a >= 1 AND a <= 2`:                      {"a between 1 and 2", "a >= 1 AND (a <= 2)"},
		`NOT (a >= 1 AND a <= 2)`:                {"a not between 1 and 2"},
		`a >= 1 AND a <= 2 AND b`:                {"a between 1 and 2 and b"},
		`a = 1 AND b AND c OR d`:                 {"(a = 1 and b and c) or d", "a = 1 AND (b AND c) OR d", "((a = 1 AND b) AND c) OR (d)"},
		`a AND (b OR c)`:                         {"a and (b or c)"},
		`NOT a AND NOT NOT b`:                    {"not a and not (not b)"},
		`NOT (a OR b)`:                           {"not(a or b)"},
		`a IN (1, 'x', NULL, DATE '2024-05-01')`: {"a in(1,'x',null,date '2024-05-01')", "a IN ((1), 'x', (NULL), DATE '2024-05-01')"},
		`NOT a IN (-1)`:                          {"a not in (-1)", "a NOT IN (- 1)"},
		`NOT a LIKE 'x%'`:                        {"a not like 'x%'"},
		`a IS NULL`:                              {"a is null", "(a) IS NULL"},
		`NOT a IS NULL`:                          {"a is not null", "not a is null"},
		`a IS DISTINCT FROM 1`:                   {"a is distinct from 1", "1 IS DISTINCT FROM a"},
		`NOT a IS DISTINCT FROM 1`:               {"a is not distinct from 1"},
		`a IS TRUE`:                              {"a is true"},
		`(a IS NULL) IS NULL`:                    {"a is null is null", "(a is null) is unknown"},
		`(a = 1) IS FALSE`:                       {"a = 1 is false"},
		`NOT a IS TRUE`:                          {"a is not true"},
		`(NOT a) IS TRUE`:                        {"(not a) is true"},
		`(a AND b) IS TRUE IS NULL`:              {"((a and b) is true) is null"},
		`TRUE OR NULL`:                           {"true or null"},
		`a.b.c = 'it''s'`:                        {`"a".b."c"='it''s'`},
		`"a.b" = ''`:                             nil,
		`"a""b" = 1 OR "in" = 2 OR "1x" = 3`:     nil,
		`größe = 1`:                              {`"größe" = 1`},
		`a = TIMESTAMPTZ '2024-05-01'`:           {"a = timestamp with time zone '2024-05-01'"},
		`a = TIMESTAMP '2024-05-01 10:00'`:       {"a = datetime '2024-05-01 10:00'", "a = timestamp without time zone '2024-05-01 10:00'"},
		`date = DATE '2024-05-01'`:               {"DATE '2024-05-01' = date"},
		`time > TIME '10:00'`:                    nil,
		`a = .5 OR a = 5. OR a = -1.5e-7`:        nil,
	} {
		for _, text := range append(texts, want) {
			c, err := Parse(text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			} else if got := c.String(); got != want {
				t.Errorf("%s: got %s, want %s", text, got, want)
			}
		}
	}
}

// Errors name the place, the expectation, and unsupported SQL.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "the condition is empty: want one as ts >= '2024-05-01'",
		"  ":                     "the condition is empty: want one as ts >= '2024-05-01'",
		"a =":                    "character 4: want a column or a literal, got the end of the condition",
		"a = 1 b":                `character 7: want AND, OR or the end, got "b"`,
		"größe = 1 b":            `character 11: want AND, OR or the end, got "b"`,
		"(a = 1":                 "character 7: want AND, OR or ), got the end of the condition",
		"a = 1)":                 `character 6: want AND, OR or the end, got ")"`,
		"a = 'x":                 "character 5: a string is not closed (a quote inside a string is doubled)",
		`"a = 1`:                 "character 1: a double quote is not closed (a quote inside a name is doubled)",
		`"" = 1`:                 "character 1: a column name is empty",
		"a = 0x1F":               `character 5: want a number as 1, -2.5 or 1e6, got "0x1F"`,
		"a = 1_000":              `character 5: want a number as 1, -2.5 or 1e6, got "1_000"`,
		"a = 1e99999999999":      "character 5: want a number with an exponent of at most 9 digits, got 1e99999999999",
		"1":                      "character 1: want a condition as ts >= '2024-05-01', got the literal 1 alone",
		"a and 'x'":              "character 7: want a condition as ts >= '2024-05-01', got the literal 'x' alone",
		"1 = 1":                  "character 1: two literals are compared: want a column on one side (its name is written bare or in double quotes)",
		"a < 1 < 2":              "character 7: want AND, OR or the end, got a second comparison, < (combine comparisons with AND)",
		"a in 1":                 `character 6: want ( after IN, got "1"`,
		"a in ()":                `character 7: want a column or a literal, got ")"`,
		"a in (1 2)":             `character 9: want , or ) in the list of IN, got "2"`,
		"a between 1 or 2":       `character 13: want AND and the upper bound of BETWEEN, got "or"`,
		"1 between a and 2":      "character 1: want a column before BETWEEN",
		"a not 1":                `character 7: want IN, BETWEEN or LIKE, got "1"`,
		"a like 5":               "character 8: want a pattern as 'prefix%' after LIKE, got 5",
		"a is 5":                 `character 6: want NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM, got "5"`,
		"a. = 1":                 `character 4: want the name of a field, got "="`,
		"and":                    `character 1: want a column or a literal, got "and"`,
		"a = DATE 'x'":           "character 10: want a date as '2024-05-01', got 'x'",
		"a = TIME '25:00'":       "character 10: want a time as '10:30:00', got '25:00'",
		"a = TIMESTAMP 'x'":      "character 15: want a timestamp without an offset as '2024-05-01 10:30:00' (with an offset: TIMESTAMPTZ '2024-05-01 10:30:00+02:00'), got 'x'",
		"a = TIMESTAMPTZ 'x'":    "character 17: want a timestamp as '2024-05-01 10:30:00+02:00', got 'x'",
		"a = b":                  "character 5: unsupported: comparing two columns, a and b (want a literal; a string is written 'b')",
		`a = "b"`:                "character 5: unsupported: comparing two columns, a and b (want a literal; a string is written 'b')",
		"a in (b)":               "character 7: unsupported: the column b in this place (want a literal; a string is written 'b')",
		"(a = 1) = true":         "character 2: unsupported: comparing a condition (want AND, OR, NOT, or IS TRUE)",
		"a + 1 = 2":              "character 3: unsupported: an expression (+); conditions compare columns with literals",
		"-a = 1":                 `character 2: want a number after -, got "a"`,
		"a::int = 1":             "character 2: unsupported: a cast (::); literals take the type of the column",
		"lower(a) = 'x'":         "character 1: unsupported: lower( (conditions have no functions and no subscripts)",
		"a[1] = 2":               "character 1: unsupported: a[ (conditions have no functions and no subscripts)",
		"a ilike 'x'":            "character 3: unsupported: ILIKE (want LIKE)",
		"a like 'x' escape '!'":  "character 12: unsupported: ESCAPE (only % and _ have a meaning in patterns)",
		"a > interval '1 day'":   "character 5: unsupported: a literal of the type interval (want DATE, TIME, TIMESTAMP or TIMESTAMPTZ, or a string alone, which takes the type of the column)",
		"a = 1 -- b":             "character 7: unsupported: a comment",
		"case when a then b end": "character 1: unsupported: CASE",
		"a = \x00":               `character 5: '\x00' has no meaning here`,
		"a = \xff":               "the condition is not valid UTF-8",
		strings.Repeat("(", 600) + "a" + strings.Repeat(")", 600): "character 501: the condition nests more than 500 levels deep",
		strings.Repeat("not ", 600) + "a":                         "character 2001: the condition nests more than 500 levels deep",
	} {
		_, err := Parse(text)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
		if err != nil && strings.Contains(want, "unsupported") != errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v: of the wrong kind", text, err)
		}
	}
}

// pathsOf returns the columns that a condition names, in order of appearance.
func pathsOf(c *Cond) (paths []string) {
	for _, one := range c.root.tests(nil) {
		paths = append(paths, pathText(one.path))
	}
	return paths
}

func TestPaths(t *testing.T) {
	c, err := Parse(`b = 1 AND a.x IS NULL AND "a.x" = 2 AND b IN (1)`)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, one := range c.root.tests(nil) {
		got = append(got, one.path)
	}
	if want := [][]string{{"b"}, {"a", "x"}, {"a.x"}, {"b"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
