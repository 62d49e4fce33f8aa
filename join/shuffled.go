package join

import (
	"context"
	"fmt"
	"iter"
)

type shuffled struct{ matched int64 }

func (s *shuffled) legs(context.Context) iter.Seq2[leg, error] { return nil }
func (s *shuffled) spilled() int64                             { return 0 }
func (s *shuffled) close() error                               { return nil }

func (j *Join) shuffle(context.Context) error {
	return fmt.Errorf("%w: neither side fits (raise --memory)", ErrMemory)
}
