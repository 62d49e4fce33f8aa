package joins_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bloomjoin/bloomjoin/join"
)

// However a context ends, and whatever its cause, the error of a join wraps the
// context's error.
func TestEndOfContext(t *testing.T) {
	ids, log := sides(t)
	defer ids.Release()
	defer log.Release()
	why := errors.New("enough")
	for _, typ := range []join.Type{join.Semi, join.Inner, join.Full} {
		for _, strategy := range strategies(typ) {
			canceled, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			late, done := context.WithTimeoutCause(t.Context(), -1, why)
			for ctx, want := range map[context.Context]error{canceled: context.Canceled, late: context.DeadlineExceeded} {
				mem := poison{checked(t)}
				left, right := &given{t: t, mem: mem, rows: log, size: 40, after: 1 << 30}, &given{t: t, mem: mem, rows: ids, size: 40, after: 1 << 30}
				var err error
				for _, e := range join.Seq(ctx, right.input(), left.input(), join.Options{On: "k", Type: typ, Strategy: strategy, Threads: 2, Mem: mem}) {
					err = e
					if err != nil {
						break
					}
				}
				if !errors.Is(err, want) {
					t.Errorf("%s, %s: %v, want %v", typ, strategy, err, want)
				}
			}
			done()
		}
	}
}
