package dataset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/options"
)

// Shard is worker Index of Of workers, counted from 0: of 4 workers, 0/4 to 3/4. The
// zero value is the only worker of a job. Whatever takes a shard returns an error for
// one that does not exist, such as 4/4.
type Shard struct{ Index, Of uint32 }

// ParseShard parses "i/n".
func ParseShard(s string) (Shard, error) {
	i, n, ok := strings.Cut(s, "/")
	index, err1 := strconv.ParseUint(i, 10, 32)
	of, err2 := strconv.ParseUint(n, 10, 32)
	if !ok || err1 != nil || err2 != nil || of == 0 || options.Shard(uint32(index), uint32(of)) != nil {
		return Shard{}, fmt.Errorf("shard %q: want I/N with 0 ≤ I < N ≤ %d, as in 0/16", s, options.MaxShards)
	}
	return Shard{uint32(index), uint32(of)}, nil
}

// Whole reports whether there is only one worker.
func (s Shard) Whole() bool { return s.Of <= 1 }

// String formats the shard in the form that ParseShard reads.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, max(s.Of, 1)) }
