package plan

import (
	"math"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
)

// Selectivity and size of the answer are estimated from a sample of the log: runs
// of rows spread evenly over it. Their keys are indexed, and the IDs' keys are
// compared with them, so the number of IDs for each sampled row is exact. If the
// log is small, the sample is all of it and the estimate is exact. Where reading
// all IDs would take too long, they are sampled too.
//
// Keys are identified by 64-bit hashes here. Keys that share a hash, or -1 and
// 2^64-1, make an estimate off by a row; the answer does not depend on it.

// Sample holds the keys of runs of rows of one side.
type Sample struct {
	Runs  []Run
	Total float64 // rows of the side
	All   bool    // the runs are the whole side
}

// Run is one run of consecutive rows.
type Run struct {
	Rows   float64  // with and without a key
	Stands float64  // share of the side's rows that the run represents
	Hashes []uint64 // of the keys of rows with a key
}

// keyed returns the number of rows with a key in the sample, and the estimate
// for the side.
func (s *Sample) keyed() (seen, all float64) {
	for _, r := range s.Runs {
		seen += float64(len(r.Hashes))
		if r.Rows > 0 {
			all += s.Total * r.Stands * float64(len(r.Hashes)) / r.Rows
		}
	}
	return seen, all
}

// read returns the number of rows in the sample, with and without a key.
func (s *Sample) read() (n float64) {
	for _, r := range s.Runs {
		n += r.Rows
	}
	return n
}

// Index numbers the distinct keys of a sample. It is immutable and safe for
// concurrent use.
type Index struct {
	of     map[uint64]uint32
	filter *bloom.Filter // of the keys, probed first
	rows   [][]uint32    // by run: the key of each row that has one
	runs   []uint32      // by key: in how many runs it occurs
	count  []float64     // by key: rows in the sample
}

// Index returns the index of the sample's keys.
func (s *Sample) Index() (*Index, error) {
	seen, _ := s.keyed()
	x := &Index{of: make(map[uint64]uint32, int(seen/2)), rows: make([][]uint32, len(s.Runs))}
	var last []int32 // by key: the last run in which it occurs
	for u, r := range s.Runs {
		x.rows[u] = make([]uint32, len(r.Hashes))
		for i, h := range r.Hashes {
			e, ok := x.of[h]
			if !ok {
				e = uint32(len(x.count))
				x.of[h] = e
				x.count, x.runs, last = append(x.count, 0), append(x.runs, 0), append(last, -1)
			}
			x.count[e]++
			if last[e] != int32(u) {
				last[e] = int32(u)
				x.runs[e]++
			}
			x.rows[u][i] = e
		}
	}
	g := bloom.Split256
	var err error
	if x.filter, err = bloom.New(bloom.Params{Geometry: g, Hash: table.Hash, Blocks: g.BlocksFor(uint64(len(x.count)+1), 0.005)}); err != nil {
		return nil, err
	}
	hashes := make([]uint64, 0, len(x.of))
	for h := range x.of {
		hashes = append(hashes, h)
	}
	x.filter.Add(hashes)
	return x, nil
}

// Hits counts how often the keys of an index occur among others. One goroutine
// uses it.
type Hits struct {
	of     *Index
	counts []uint32 // by key
	total  int64
	some   []uint32
}

// NewHits returns counters for the keys of the index.
func (x *Index) NewHits() *Hits { return &Hits{of: x, counts: make([]uint32, len(x.count))} }

// Add counts keys by their hashes.
func (c *Hits) Add(hashes []uint64) {
	c.total += int64(len(hashes))
	c.some = c.of.filter.Probe(hashes, c.some[:0])
	for _, i := range c.some {
		if e, ok := c.of.of[hashes[i]]; ok {
			c.counts[e]++
		}
	}
}

// distinct estimates the number of distinct keys of the sampled side from how many
// occur in one run and how many in two: Chao's estimator for incidences (A. Chao,
// "Estimating the population size for capture-recapture data with unequal
// catchability", Biometrics 43, 1987), which is low where keys differ much in
// frequency. The bounds hold up to the scatter of the sample: at least the keys
// seen; at most what there would be if each key of a single run stood for as many
// keys as the run does for rows (M. Charikar and others, "Towards estimation error
// guarantees for distinct values", PODS 2000).
func (s *Sample) distinct(x *Index) Estimate {
	d := float64(len(x.count))
	if s.All || d == 0 {
		return Exactly(d)
	}
	seen, all := s.keyed()
	var one, two float64
	for _, n := range x.runs {
		switch n {
		case 1:
			one++
		case 2:
			two++
		}
	}
	high := math.Min(all, d+one*(all/math.Max(seen, 1)-1)*1.1)
	k := float64(len(s.Runs))
	value := d + (k-1)/k*one*math.Max(one-1, 0)/(2*(two+1))
	return Estimate{math.Min(value, high), d, math.Max(d, high)}
}

// mean estimates the mean of a figure over all rows from its means over the runs.
func (s *Sample) mean(of []float64) Estimate {
	var mean, rows, squares float64
	for u, x := range of {
		mean += s.Runs[u].Stands * x
		rows += s.Runs[u].Rows
	}
	if s.All {
		return Exactly(mean)
	}
	k := float64(len(of))
	if k < 2 {
		return Estimate{mean, 0, math.Inf(1)}
	}
	for _, x := range of {
		squares += (x - mean) * (x - mean)
	}
	unread := math.Max(0, 1-rows/math.Max(s.Total, 1))
	t := student(k-1) * math.Sqrt(squares/(k-1)/k*unread)
	return Estimate{mean, math.Max(0, mean-t), mean + t}
}

// unseen returns the share of the side that the runs miss with a probability of
// one in two hundred, if it consists of whole runs.
func (s *Sample) unseen() float64 {
	if s.All {
		return 0
	}
	share := 1 - math.Pow(0.005, 1/math.Max(1, float64(len(s.Runs))))
	return math.Min(share, math.Max(0, 1-s.read()/math.Max(s.Total, 1)))
}

// student returns the 99.5 % quantile of Student's t distribution with n degrees
// of freedom, by Cornish and Fisher's expansion; within 2 % from n = 4 on.
func student(n float64) float64 {
	const z = 2.575829
	switch {
	case n < 2:
		return 63.657
	case n < 3:
		return 9.925
	case n < 4:
		return 5.841
	}
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*n*n*n)
}
