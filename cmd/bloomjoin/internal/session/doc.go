// Package session is what a run of the command has, whatever its verb: its streams,
// messages and progress, its memory, its store, the files it opens, its report and its
// exit code.
//
// A command line and the standard streams come in; messages, a report and an exit code go
// out. Messages go to standard error and are safe for a terminal; a signal ends reads and
// writes. It knows no verb; only the command may use it.
package session
