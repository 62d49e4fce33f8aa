package exact

import (
	"slices"
	"sort"
)

// Add adds values to the set: int64s in two's complement if signed, else uint64s.
// It does not keep the slice. Bitmaps take ascending values several times faster
// than others, so values that do not ascend are sorted first, in up to 16 MiB of
// memory. Random values are cheapest in batches of 2^16 to 2^20.
func (s *Set) Add(values []uint64, signed bool) {
	s.changed()
	for batch := range slices.Chunk(values, sortBatch) {
		if !slices.IsSorted(batch) {
			batch = sorted(batch)
		}
		naturals := len(batch)
		if signed {
			naturals = sort.Search(len(batch), func(i int) bool { return int64(batch[i]) < 0 })
		}
		s.natural.add(batch[:naturals])
		s.negative.add(batch[naturals:])
	}
}

// sortBatch is the number of values sorted at a time.
const sortBatch = 1 << 20

// radixMin is the number of values from which radix sort is faster than comparison
// sort.
const radixMin = 256

// sorted returns the values in ascending order in new memory. Radix sort goes byte by byte from
// the lowest one and skips bytes in which all values agree.
func sorted(values []uint64) []uint64 {
	if len(values) < radixMin {
		values = slices.Clone(values)
		slices.Sort(values)
		return values
	}
	differ := uint64(0)
	for _, v := range values {
		differ |= v ^ values[0]
	}
	from, to := slices.Clone(values), make([]uint64, len(values))
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff != 0 {
			scatter(to, from, shift)
			from, to = to, from
		}
	}
	return from
}

// scatter copies from to to, stably ordered by the byte at shift.
func scatter(to, from []uint64, shift int) {
	var next [256]int
	for _, v := range from {
		next[byte(v>>shift)]++
	}
	at := 0
	for i, n := range next {
		next[i] = at
		at += n
	}
	for _, v := range from {
		digit := byte(v >> shift)
		to[next[digit]] = v
		next[digit]++
	}
}
