package stopped

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestErr(t *testing.T) {
	why := errors.New("why")
	if err := Err(t.Context()); err != nil {
		t.Error(err)
	}
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	late, done := context.WithDeadlineCause(t.Context(), time.Now().Add(-time.Hour), why)
	defer done()
	plain, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx  context.Context
		text string
		are  []error
		not  error
	}{
		{canceled, "why", []error{why, context.Canceled}, context.DeadlineExceeded},
		{late, "why", []error{why, context.DeadlineExceeded}, context.Canceled},
		{plain, "context canceled", []error{context.Canceled}, why},
	} {
		err := Err(c.ctx)
		if err == nil || err.Error() != c.text || errors.Is(err, c.not) {
			t.Errorf("%v, want %s", err, c.text)
		}
		for _, is := range c.are {
			if !errors.Is(err, is) {
				t.Errorf("%v is not %v", err, is)
			}
		}
	}
}
