// Package quiet wraps errors without adding to their text, for errors whose text
// says what the wrapped error would.
package quiet

// Error wraps Err for errors.Is and errors.As and has no text, so that
// fmt.Errorf("…%w", quiet.Error{Err}) reads as if nothing were wrapped.
type Error struct{ Err error }

func (Error) Error() string   { return "" }
func (e Error) Unwrap() error { return e.Err }
