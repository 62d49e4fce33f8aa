// Package delta reads the log of Delta tables: which files a version has, with the values of their
// partitions, their statistics and their deletion vectors.
//
//	_delta_log/ ── list ──► the newest checkpoint, and commits after it ── replay ──► Snapshot
//	Snapshot ── Table, Files ──► values of package lake
//
// The protocol is https://github.com/delta-io/delta/blob/master/PROTOCOL.md. What a reader must
// know of and this one doesn't is an error by name, if the columns need it; what concerns writers
// alone is ignored. Logs come from anywhere, so all of one is checked.
// [Add] is the way back.
package delta
