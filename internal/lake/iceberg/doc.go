// Package iceberg reads the metadata of Iceberg tables: which data files a snapshot has, with the
// values of their partitions, bounds of their columns, and what says which of their rows are deleted.
//
//	names ── locate ──► metadata ── snapshot ──► a list of manifests
//	manifests of deletes, then of data ──► entries ── match ──► values of package lake
//
// The specification is https://iceberg.apache.org/spec/, versions 1 to 3. Columns, and the fields of
// manifests, are found by their ids. What a reader must know of and this one doesn't is an error by
// name. Metadata comes from anywhere, so all of it is checked. [Add] is the way back.
package iceberg
