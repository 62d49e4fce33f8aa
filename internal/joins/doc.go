// Package joins joins a log with an ID set exactly: what package join promises is done here.
//
// Files of both sides come in, with the options of a join; rows of the answer go out, as
// records, as the pages of an output, or as their number. The strategy decides only which IDs
// are held when: it changes neither the answer nor the memory budget.
//
// # Where to look
//
//	task.go        prepares a join from the Options: internal/answer finds the keys and the columns of the answer
//	planning.go    plans it, from the footers (facts.go) and samples of keys; internal/plan chooses the strategy
//	strategy.go    reads the IDs by that strategy, or by one that needs less memory
//	               exact.go, lookup.go, reduce.go (Broadcast and Reverse), shuffled.go
//	held.go        the result: a filter, and the IDs in rounds, each with the pieces of the log that need them
//	run.go         joins round by round
//	               scanpass.go   a scan selects rows by their keys; check.go looks these up
//	               pages.go      of pages, it also makes the pairs, of IDs held as leaves
//	               pairs.go      makes pairs as records; fullpass.go reads all log rows, for left and full joins
//	               unmatched.go  IDs without a log row follow, for right and full joins
//	join.go        Run, Write and Count; tally.go, fpr.go and report.go count what they do
package joins
