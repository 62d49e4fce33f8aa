// Package leaves holds rows of a table in memory, leaf by leaf as Parquet stores
// them: values in PLAIN form and their levels. Rows are taken from decoded pages and
// handed out as pages again, in any order, so what a file stores reaches another
// file unchanged. It knows nothing of files or keys.
package leaves
