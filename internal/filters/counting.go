package filters

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/counting"
	"github.com/bloomjoin/bloomjoin/internal/cursor"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// payloadOf returns the size of a payload in bytes; of an exact set it follows from the
// members.
func payloadOf(k Kind, p bloom.Params) uint64 {
	if k == KindCounting {
		return counting.Bytes(p)
	}
	return p.Bytes()
}

// name returns the name of a kind for errors.
func (k Kind) name() string {
	if k == KindBloom {
		return "Bloom filter"
	}
	return k.String() + " filter"
}

// CountingBytes returns the memory that counters take with the bits made of them.
func CountingBytes(p bloom.Params) uint64 { return counting.Bytes(p) + p.Bytes() }

func putCounting(m *meta, dst []byte) []byte {
	c := m.facts.Counting
	if c == nil {
		return dst
	}
	mode := byte(0)
	if c.Multiset {
		mode = 1
	}
	dst = append(dst, mode, 0, 0, 0, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint64(dst, c.Saturated)
}

func getCounting(m *meta, c *cursor.Cursor) *problem {
	mode := c.U8()
	if mode > 1 {
		return bad("mode", "", mode).newer()
	}
	if p := zero(c, 7); p != nil {
		return p
	}
	m.facts.Counting = &Counting{Multiset: mode == 1, Saturated: c.U64()}
	return nil
}

func (m *meta) checkCounting() *problem {
	c, is := m.facts.Counting, m.kind == KindCounting
	switch {
	case is != (c != nil):
		return bad("section counting", "in a counting filter, and only there", m.kind)
	case is != (m.facts.Want == KindCounting):
		return bad("wanted kind", m.kind.String(), m.facts.Want)
	case is && c.Saturated > 256*m.facts.Params.Blocks:
		return bad("saturated counters", fmt.Sprintf("at most %d", 256*m.facts.Params.Blocks), c.Saturated)
	case is && m.facts.Partial != nil && !c.Multiset:
		return bad("partial counting filter", "a multiset", "a set, whose shards may have keys in common")
	}
	return nil
}

// memory returns the bytes that the payload takes once it is loaded; of an exact set at least.
func (h *Header) memory(lim Limits) uint64 {
	switch p := h.Filter.facts.Params; {
	case h.Filter.kind != KindCounting:
		return h.PayloadBytes
	case lim.Counters:
		return CountingBytes(p)
	default:
		return p.Bytes()
	}
}

// counters passes the verified chunks of a counting filter to fn, each with the number of its
// first block; concurrently. It checks the number of saturated counters.
func (h *Header) counters(ctx context.Context, fn func(block uint64, counters []byte) error) error {
	var saturated atomic.Uint64
	err := readPayloads(ctx, []*Header{h}, take{any: func(i int, raw []byte) error {
		saturated.Add(counting.Saturated(raw))
		return fn(uint64(i)*(chunkBytes/counting.BlockBytes), raw)
	}})
	if want, got := h.Filter.facts.Counting.Saturated, saturated.Load(); err == nil && want != got {
		return bad("saturated counters", want, got).in("counting").inFile(h.name)
	}
	return err
}

// loadCounting loads the payload of a counting filter: the counters, or only the bits that
// they stand for, a quarter of their size.
func (h *Header) loadCounting(f *Filter, whole bool) error {
	if whole {
		c, err := counting.New(f.facts.Params)
		if err != nil {
			return from(err).inFile(h.name)
		}
		if err := CountInto(context.Background(), c, h, false); err != nil {
			return err
		}
		if err := f.SetCounters(c, f.facts.Counting.Multiset); err != nil {
			return err
		}
		f.held.stamp = h.stamp()
		return nil
	}
	bits, err := bloom.New(f.facts.Params)
	if err != nil {
		return from(err).inFile(h.name)
	}
	err = h.counters(context.Background(), func(block uint64, counters []byte) error {
		return bits.OrBlocks(block, counting.AppendBits(nil, counters))
	})
	if err != nil {
		return err
	}
	f.SetBloom(bits)
	f.kind, f.held.stamp = KindCounting, h.stamp()
	return nil
}

// CountInto adds the counters of a file to c, which has the same parameters, or subtracts
// them, without another copy in memory. After an error c must not be used. The error wraps
// [counting.ErrShort] if one to subtract is larger than c's.
func CountInto(ctx context.Context, c *counting.Filter, h *Header, subtract bool) error {
	stopped.Needs(ctx, "filters.CountInto")
	if err := c.Params().Match(h.Filter.facts.Params); err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	return h.counters(ctx, func(block uint64, counters []byte) error { return c.Combine(block, counters, subtract) })
}
