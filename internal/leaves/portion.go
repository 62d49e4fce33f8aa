package leaves

// portion is rows of a block that go to one segment.
type portion struct {
	from  *column  // the block's
	rows  []uint32 // nil: n rows from the first
	first uint32
	n     int
}

// sum returns how many positions, as of values or entries, the rows take, given
// where each row starts.
func (p *portion) sum(starts []uint32) (n int64) {
	if p.rows == nil {
		return int64(starts[p.first+uint32(p.n)] - starts[p.first])
	}
	for _, r := range p.rows {
		n += int64(starts[r+1] - starts[r])
	}
	return n
}

// appendStarts appends where the rows end, given where each starts in the block.
func (p *portion) appendStarts(dst, starts []uint32) []uint32 {
	at := dst[len(dst)-1]
	if p.rows == nil {
		shift := at - starts[p.first]
		for _, start := range starts[p.first+1:][:p.n] {
			dst = append(dst, start+shift)
		}
		return dst
	}
	for _, r := range p.rows {
		at += starts[r+1] - starts[r]
		dst = append(dst, at)
	}
	return dst
}

// appendParts appends the bytes or levels of the rows, given where each starts.
func (p *portion) appendParts(dst, src []byte, starts []uint32) []byte {
	if p.rows == nil {
		return append(dst, src[starts[p.first]:starts[p.first+uint32(p.n)]]...)
	}
	for _, r := range p.rows {
		dst = appendShort(dst, src, starts[r], starts[r+1])
	}
	return dst
}

// appendLevels appends a level for each of the rows.
func (p *portion) appendLevels(dst, def []uint8, k *kind) []uint8 {
	switch {
	case def == nil:
		return appendLevel(dst, k.maxDef, p.n)
	case p.rows == nil:
		return append(dst, def[p.first:int(p.first)+p.n]...)
	}
	for _, r := range p.rows {
		dst = append(dst, def[r])
	}
	return dst
}

// appendSlots appends the slots of the rows.
func (p *portion) appendSlots(dst []byte, k *kind) []byte {
	if p.rows == nil {
		return append(dst, p.from.values[int(p.first)*k.width:][:p.n*k.width]...)
	}
	return appendSlots(dst, p.from.values, k.width, p.rows)
}
