package output

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
		{1 << 40, 16, 16, mostBatch, mostBatch},
		{300 * mib, 16, 16, leastBatch, 4 * mib},
		{100 * mib, 16, 7, leastBatch, 4 * mib},
		{20 * mib, 16, 1, leastBatch, 4 * mib},
		{1 * mib, 16, 1, leastBatch, leastBatch},
		{20 * mib, 1, 1, leastBatch, 4 * mib},
	} {
		f := flightOf(c.most, c.threads, need)
		if f.workers != c.workers || f.batch < c.atLeast || f.batch > c.upTo || f.begun < f.workers || f.queue < 1 {
			t.Errorf("%d bytes for %d threads: %+v, want %d workers and batches of %d to %d bytes", c.most, c.threads, f, c.workers, c.atLeast, c.upTo)
		}
		if held := int64(f.workers)*(need()+3*f.batch) + f.batch; c.most > 20*mib && held > c.most {
			t.Errorf("%d bytes for %d threads: %+v takes %d", c.most, c.threads, f, held)
		}
	}
}
