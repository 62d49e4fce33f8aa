// Package progress hands a function that counts rows to the code that reads them.
package progress

import "context"

type rowsKey struct{}

// With returns a context in which readers call fn with numbers of rows that were read or
// skipped, concurrently. If fn is nil, it returns ctx.
func With(ctx context.Context, fn func(rows int64)) context.Context {
	if fn == nil {
		return ctx
	}
	return context.WithValue(ctx, rowsKey{}, fn)
}

// Of returns the function of [With], or nil.
func Of(ctx context.Context) func(rows int64) {
	fn, _ := ctx.Value(rowsKey{}).(func(rows int64))
	return fn
}
