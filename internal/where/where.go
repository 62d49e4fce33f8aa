// Package where evaluates conditions on the columns of a table, as they stand in
// SQL's WHERE:
//
//	ts >= '2024-05-01' AND (country IN ('DE', 'FR') OR user.age IS NULL)
//
// [Parse] reads the text. [Cond.Bind] finds the columns in a schema, gives the
// literals their types and returns a tree of predicates, each on one column. The
// caller evaluates each predicate where its column is at hand (rows, entries of a
// dictionary, bounds from statistics) and combines the results:
//
//	text ── Parse ──► Cond ── Bind(schema) ──► Bound ─┬─ Preds: Eval(values) or Possible(facts)
//	                                                   └─ Combine, CombineSets ──► Truth of each row
//
// The logic is SQL's, with three values: a comparison with NULL is Null, and a row is
// kept if the condition is True.
package where
