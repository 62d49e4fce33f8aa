// Package answer determines what the rows of a join's answer look like, and which rows of the
// log and of the IDs go together.
//
// The options of a join and the schemas of both sides come in. Out go a [Pairing], how keys
// of both sides are compared, and an [Answer], where each of its columns comes from. Both
// are immutable and safe for concurrent use; no row is read for them. A [Builder] makes
// records with these columns. Errors name the options and columns of the join.
package answer
