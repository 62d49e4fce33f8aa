package tasks

import "testing"

// If memory is short, batches shrink first, then the number of workers, down to one.
func TestFlight(t *testing.T) {
	const mib = 1 << 20
	need := func() int64 { return 10 * mib }
	for _, c := range []struct {
		most          int64
		threads       int
		workers       int
		atLeast, upTo int64 // bytes of a batch
	}{
		{0, 16, 16, 0, 0},
		{1 << 40, 16, 16, MostBatch, MostBatch},
		{300 * mib, 16, 16, LeastBatch, 4 * mib},
		{100 * mib, 16, 7, LeastBatch, 4 * mib},
		{20 * mib, 16, 1, LeastBatch, 4 * mib},
		{1 * mib, 16, 1, LeastBatch, LeastBatch},
		{20 * mib, 1, 1, LeastBatch, 4 * mib},
	} {
		f := NewFlight(c.most, c.threads, need)
		if f.Workers != c.workers || f.Batch < c.atLeast || f.Batch > c.upTo || f.begun < f.Workers || f.queue < 1 {
			t.Errorf("%d bytes for %d threads: %+v, want %d workers and batches of %d to %d bytes", c.most, c.threads, f, c.workers, c.atLeast, c.upTo)
		}
		if held := int64(f.Workers)*(need()+3*f.Batch) + f.Batch; c.most > 20*mib && held > c.most {
			t.Errorf("%d bytes for %d threads: %+v takes %d", c.most, c.threads, f, held)
		}
	}
}
