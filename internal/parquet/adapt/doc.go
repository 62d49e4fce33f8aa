// Package adapt converts pages of Parquet files to another schema, and finds the schema
// that holds the rows of several files.
//
// In come files, whose schemas are compared, and their pages; out come the [Union] of
// schemas and, through a [Conversion], pages of the leaves of another schema, with other
// levels or wider values.
//
// No value changes what it means: types are widened where every value stays what it is,
// and a value that the other type cannot represent is an error. Pages that need no
// conversion are passed on as they are. Errors are *fault.Error and name both types.
//
// What reads pages for an output with its own schema calls adapt; internal/parquet does
// not.
package adapt
