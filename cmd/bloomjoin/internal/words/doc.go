// Package words is how the command spells what it says: errors of the libraries with
// options as flags, with the name that was probably meant, figures with their units, and
// text that is safe to print.
//
// Errors, names and numbers come in, text goes out. It knows no flag set and no run, and
// writes nothing by itself; only the command may use it.
package words
