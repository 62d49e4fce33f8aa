package filters

import (
	"fmt"
	"sync/atomic"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// unread is a mapped payload whose chunks are verified when they are first probed, so that a
// filter of any size can be asked at once. Only what is read is verified: not the checksum
// over all, and no chunk in which no key was looked up. A nil *unread means that all was read.
type unread struct {
	h    *Header       // whose file is mapped
	done []atomic.Bool // by chunk: verified
	left atomic.Int64  // number of others
}

func newUnread(h *Header) *unread {
	u := &unread{h: h, done: make([]atomic.Bool, len(h.chunks))}
	u.left.Store(int64(len(h.chunks)))
	return u
}

// complete reports whether nothing is left to verify.
func (u *unread) complete() bool { return u == nil || u.left.Load() == 0 }

// touch verifies the chunks in which the hashes are looked up. Once all are verified, it
// costs nothing.
func (u *unread) touch(p bloom.Params, hashes []uint64) error {
	if u.complete() {
		return nil
	}
	blocks := chunkBytes / p.Geometry.BlockBytes()
	for _, h := range hashes {
		if i := int(p.Block(h) / blocks); !u.done[i].Load() {
			if err := u.verify(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify verifies a chunk. Goroutines that need it at the same time may all do so.
func (u *unread) verify(i int) error {
	err := u.h.guard(func() error { return new(unpacker).unpack(u.h, nil, i) })
	if err == nil && !u.done[i].Swap(true) {
		u.left.Add(-1)
	}
	return err
}

// all verifies what is left, and the checksum over all.
func (u *unread) all() error {
	if u.complete() {
		return nil
	}
	if err := u.h.Verify(); err != nil {
		return err
	}
	for i := range u.done {
		if !u.done[i].Swap(true) {
			u.left.Add(-1)
		}
	}
	return nil
}

// readable reports whether the bits are there, and verified.
func (p *payload) readable() bool {
	if p.unread.complete() {
		return !p.mapping.gone()
	}
	if !p.mapping.within() {
		return false
	}
	defer p.mapping.leave()
	return p.unread.all() == nil
}

// LoadUnread is [Header.LoadMapped] without reading the payload: a chunk is verified when a
// key is first looked up in it, and a damaged one is an error of that call. What needs all
// bits, such as FPR, verifies them first.
func (h *Header) LoadUnread(file []byte, unmap func() error) (*Filter, error) {
	if err := h.canMap(); err != nil {
		return nil, err
	}
	f, in, err := h.view(file, unmap)
	if err != nil {
		return nil, err
	}
	err = in.guard(func() error {
		if !isZero(file[len(h.head):h.PayloadOffset]) {
			return bad("chunk 0: padding", "zero bytes", "others").inFile(h.name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.held.unread = newUnread(in)
	return f, nil
}

// view returns a filter over the bits of a mapped file, and its header.
func (h *Header) view(file []byte, unmap func() error) (*Filter, *Header, error) {
	if int64(len(file)) != h.FileBytes {
		return nil, nil, bad("map", fmt.Sprintf("%d bytes", h.FileBytes), len(file)).inFile(h.name)
	}
	bits, err := bloom.View(h.Filter.facts.Params, file[h.PayloadOffset:][:h.PayloadBytes])
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", h.name, err)
	}
	in := *h
	in.mapped = file
	f := h.Filter.clone()
	f.SetBloom(bits)
	f.mapping = &mapping{unmap: unmap}
	f.held.mapping, f.held.stamp = f.mapping, h.stamp()
	return f, &in, nil
}
