// Package flags is what the verbs' flags have in common: those of several verbs, how they
// are checked before anything is opened, and how help, completion and usage errors show
// them.
//
// Each group of flags is a type: Add defines them, and a method such as Check or Fill checks
// them and copies them to the options of the libraries. Errors are of type [UsageError] if no
// input was opened. Nothing here prints, but for help, or keeps what was opened; only the
// command may use it.
package flags
