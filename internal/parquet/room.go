package parquet

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
)

// A page may take a few bytes in its file and hundreds of megabytes in memory. Its
// size in memory is therefore computed from its header, and charged, before
// anything is decompressed.

// Shares of the memory budget: a quarter is 4.
const (
	pageShare   = 4   // pages of one reader
	footerShare = 4   // one footer; all footers together may take twice as much
	smallShare  = 128 // pages that a reader may hold at the same time as other readers
	minSmall    = 256 << 10
	minMost     = 8 << 20
	minReserved = 8 << 20
)

// PageBudget bounds the memory of the pages of all Files that share it. Small pages are
// not limited. Only one reader at a time may hold large ones; others wait. A page
// that is too large even then is an error that wraps fault.ErrMemory. A nil PageBudget
// has no bound. It is safe for concurrent use.
type PageBudget struct {
	budget      int64
	small, most int64
	large       chan struct{} // has an element while a reader holds large pages
	footers     atomic.Int64  // bytes taken by footers
	reserved    atomic.Int64  // bytes taken by Reserve
}

// NewPageBudget returns the PageBudget of a process with a memory budget in bytes, or nil
// if the budget is 0.
func NewPageBudget(budget int64) *PageBudget {
	if budget <= 0 {
		return nil
	}
	return &PageBudget{
		budget: budget, small: max(budget/smallShare, minSmall), most: max(budget/pageShare, minMost),
		large: make(chan struct{}, 1),
	}
}

// ChargeFooter charges for a footer or a schema before it is decoded. A negative number
// returns memory.
func (r *PageBudget) ChargeFooter(at fault.At, bytes int64) error {
	if r == nil {
		return nil
	}
	if most := max(r.budget/footerShare, minMost); bytes > most {
		return faults.Memory(at, "the footer, or what is kept of deleted rows,", bytes, r.budget, footerShare)
	} else if all := r.footers.Add(bytes); all > 2*most {
		r.footers.Add(-bytes)
		return faults.Memory(at, "the footer, or what is kept of deleted rows, and those of the files before it", all, r.budget, footerShare/2)
	}
	return nil
}

// Reserve takes memory that is kept longer than a page; a negative number returns it. All of it together may take
// 1/share of the budget, else the error wraps full, whose text says what takes it.
func (r *PageBudget) Reserve(full error, bytes, share int64) error {
	if r == nil {
		return nil
	}
	if all := r.reserved.Add(bytes); bytes > 0 && all > max(r.budget, minReserved)/share {
		r.reserved.Add(-bytes)
		return fmt.Errorf("%w%w", faults.Memory(fault.At{}, full.Error(), all, r.budget, share), quiet.Error{Err: full})
	}
	return nil
}

// Part returns 1/share of the budget, at most most.
func (r *PageBudget) Part(share, most int64) int64 {
	if r == nil {
		return most
	}
	return min(r.budget/share, most)
}

// Most returns the number of bytes that the pages of one reader may take, at most
// most.
func (r *PageBudget) Most(most int64) int64 {
	if r == nil {
		return most
	}
	return min(r.most, most)
}

// TooLarge returns the error for pages that take more than Most.
func (r *PageBudget) TooLarge(at fault.At, what string, bytes int64) error {
	return faults.Memory(at, what, bytes, r.budget, pageShare)
}

// Claim is one reader's share of a PageBudget. The reader has one Chunk, or several whose
// pages it needs together. A Claim is not safe for concurrent use.
type Claim struct {
	room  *PageBudget
	held  int64
	large bool
	// turn, if not nil, is called before the claim becomes large, instead of
	// waiting for other readers to return memory.
	turn func(context.Context) error
	// Evict, if not nil, is called when the claim would exceed its limit. It returns memory
	// for pages that the reader can read again.
	Evict func()
}

// Crowded reports whether the claim has used most of what it may take.
func (c *Claim) Crowded() bool { return c.room != nil && c.held > c.room.most/4*3 }

// ClaimFor returns a claim for a reader of the file that holds pages while it
// passes on its results. It becomes large only when it is the reader's turn; see
// [WithTurn].
func (f *File) ClaimFor(ctx context.Context) *Claim {
	c := &Claim{room: f.room, turn: func(context.Context) error { return nil }}
	if turn, ok := ctx.Value(turnKey{}).(func(context.Context) error); ok {
		c.turn = turn
	}
	return c
}

// Turn waits for the turn of the reader to which [WithTurn] gave ctx. Without one, and
// for a reader that must not wait, it returns at once.
func Turn(ctx context.Context) error {
	if turn, ok := ctx.Value(turnKey{}).(func(context.Context) error); ok && turn != nil {
		return turn(ctx)
	}
	return nil
}

type turnKey struct{}

// WithTurn returns a context for one of several readers whose results are consumed
// in order. turn waits until the results of all previous readers are consumed; from
// then on the reader does not depend on others. If turn is nil, the reader instead waits
// for others to return memory, as Buffers with their own claim do, and must wait for
// nothing else from them while it holds pages.
func WithTurn(ctx context.Context, turn func(context.Context) error) context.Context {
	return context.WithValue(ctx, turnKey{}, turn)
}

// take adds n bytes before they are allocated.
func (c *Claim) take(ctx context.Context, at fault.At, what string, n int64) error {
	r := c.room
	if r == nil {
		return nil
	}
	if c.held+n > r.most && c.Evict != nil {
		c.Evict()
	}
	if all := c.held + n; all > r.most {
		return r.TooLarge(at, what, all)
	} else if all > r.small && !c.large {
		if err := c.enlarge(ctx); err != nil {
			return err
		}
	}
	c.held += n
	return nil
}

// enlarge waits until the claim may be large.
func (c *Claim) enlarge(ctx context.Context) error {
	if c.turn != nil {
		c.large = true
		return c.turn(ctx)
	}
	select {
	case c.room.large <- struct{}{}:
		c.large = true
		return nil
	case <-ctx.Done():
		return stopped.Err(ctx)
	}
}

// give returns n bytes.
func (c *Claim) give(n int64) {
	if c.room == nil {
		return
	}
	if c.held -= n; c.large && c.turn == nil && c.held <= c.room.small {
		c.large = false
		<-c.room.large
	}
}

// Rest ends the use of the pages and the dictionary that were read into b, and
// frees large ones.
func (b *Buffers) Rest() {
	b.release()
	if b.charged+b.beside == 0 {
		return
	}
	c, n := b.claim(), b.charged+b.beside
	if c.large {
		b.codec.Close() // zstd's decoder keeps the last page
		*b = Buffers{codec: b.codec, shared: b.shared, own: b.own}
	}
	b.charged, b.beside = 0, 0
	c.give(n) // after the memory is freed
}

// release drops bytes that were fetched for the last Chunk and not read, and the
// mapping that it was read from.
func (b *Buffers) release() {
	b.ahead.Release()
	b.ahead = nil
	b.unmap()
}

// claim returns the claim that b's pages are charged to.
func (b *Buffers) claim() *Claim {
	if b.shared != nil {
		return b.shared
	}
	return &b.own
}

// charge makes sure that n bytes are charged for b.
func (b *Buffers) charge(ctx context.Context, at fault.At, what string, n int64) error {
	if n <= b.charged {
		return nil
	}
	err := b.claim().take(ctx, at, what, n-b.charged)
	if err == nil {
		b.charged = n
	}
	return err
}

// spare makes sure that n bytes are charged for pages decompressed early. It returns false if
// that would make a reader wait.
func (b *Buffers) spare(n int64) bool {
	c, more := b.claim(), n-b.beside
	if c.room == nil || more <= 0 {
		return true
	}
	if c.held+more > c.room.small {
		return false
	}
	c.held += more
	b.beside = n
	return true
}

// charge charges for the page after the header.
func (c *Chunk) charge(ctx context.Context, h *meta.PageHeader) error {
	if c.f.room == nil {
		return nil
	}
	at, err := c.checkSizes(h)
	if err != nil {
		return err
	}
	if h.Type == format.DictionaryPage {
		c.dictBytes = c.dictionaryBytes(h)
		return c.buf.charge(ctx, at, "the dictionary", c.dictBytes)
	}
	return c.buf.charge(ctx, at, "the page, with its dictionary,", c.dictBytes+c.pageBytes(h))
}

// chargeShared charges for the decoded values of a DELTA_BYTE_ARRAY page, whose
// size is known only now; see [Chunk.decodeValues] for its bound.
func (c *Chunk) chargeShared(ctx context.Context, h *meta.PageHeader) error {
	if c.f.room == nil || c.page.Encoding != format.DeltaByteArray {
		return nil
	}
	n := c.dictBytes + c.pageBytes(h) + int64(cap(c.buf.plain))
	return c.buf.charge(ctx, c.here(), "the page, whose values share bytes,", n)
}

// storedBytes returns the memory of a page before it is decoded: its stored bytes,
// unless they are mapped, and its decompressed bytes.
func (c *Chunk) storedBytes(h *meta.PageHeader) (n int64) {
	if c.mapped() == nil {
		n = max(int64(h.CompressedPageSize), min(c.f.windowSize(), c.end-c.pos))
	}
	if c.md.Codec != format.Uncompressed {
		n += int64(h.UncompressedPageSize)
	}
	return n
}

// dictionaryBytes returns the memory that the dictionary takes while it is decoded.
func (c *Chunk) dictionaryBytes(h *meta.PageHeader) int64 {
	n := c.storedBytes(h)
	if c.md.Codec == format.Uncompressed {
		n += int64(h.UncompressedPageSize)
	}
	if c.leaf.Type == format.ByteArray {
		n += 4 * int64(max(h.DictionaryPageHeader.V.NumValues, 0))
	}
	return n + c.wideBytes(h.DictionaryPageHeader.V.NumValues, format.Plain)
}

// pageBytes returns an upper bound on the memory of a data page, excluding values
// of DELTA_BYTE_ARRAY, whose size is not known from the header.
func (c *Chunk) pageBytes(h *meta.PageHeader) int64 {
	var count int32
	var encoding format.Encoding
	switch h.Type {
	case format.DataPage:
		count, encoding = h.DataPageHeader.V.NumValues, h.DataPageHeader.V.Encoding
	case format.DataPageV2:
		count, encoding = h.DataPageHeaderV2.V.NumValues, h.DataPageHeaderV2.V.Encoding
	}
	n := int64(max(count, 0))
	each := int64(0) // bytes per entry
	if c.leaf.MaxRep > 0 {
		each++
	}
	if c.leaf.MaxDef > 0 {
		each++
	}
	if c.selected {
		each += 4 // positions of entries
		if c.leaf.MaxDef > 0 {
			each += 4 // positions of values
		}
	}
	switch {
	case isCoded(encoding):
		each += 4
	case encoding == format.Plain && c.leaf.Type == format.ByteArray:
		each += 4 // offsets, computed on demand
	case encoding == format.Plain:
	case c.leaf.Type == format.ByteArray:
		each += 4
		return n*each + c.storedBytes(h) + int64(h.UncompressedPageSize)
	default:
		each += int64(c.leaf.Width())
	}
	return n*each + c.storedBytes(h) + c.wideBytes(count, encoding)
}

// usualNeed is the memory in bytes that a page and a dictionary of usual size take.
const usualNeed = 4 << 20

// Need returns the approximate memory, in bytes, that decoding the column chunk
// takes for its dictionary and one page; results are not included. It uses the
// headers of the dictionary and the first data page as far as they are readable. It
// reports no errors; these are found when the chunk is read.
func (f *File) Need(rowGroup, leaf int) (bytes int64) {
	md := &f.chunk(rowGroup, leaf).MetaData
	if f.remote != nil { // a header would be a request
		return min(md.TotalUncompressedSize, usualNeed)
	}
	c := f.Chunk(rowGroup, leaf)
	defer c.Close()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil { // the mapped page is gone
			bytes = md.TotalUncompressedSize
		}
	}()
	for range 2 {
		h, _, err := c.readHeader()
		if err != nil {
			return bytes
		}
		if _, err := c.checkSizes(h); err != nil {
			return bytes
		}
		size, stored := int64(h.UncompressedPageSize), int64(h.CompressedPageSize)
		if c.mapped() == nil {
			bytes = max(bytes, max(stored, f.windowSize())+headerAhead)
		}
		switch h.Type {
		case format.DictionaryPage:
			bytes += 2*size + 4*int64(h.DictionaryPageHeader.V.NumValues) + c.wideBytes(h.DictionaryPageHeader.V.NumValues, format.Plain)
			c.pos += stored
		case format.DataPage:
			v := &h.DataPageHeader.V
			return bytes + pageNeed(size, v.NumValues, v.Encoding) + c.wideBytes(v.NumValues, v.Encoding)
		case format.DataPageV2:
			v := &h.DataPageHeaderV2.V
			return bytes + pageNeed(size, v.NumValues, v.Encoding) + c.wideBytes(v.NumValues, v.Encoding)
		default:
			return bytes
		}
	}
	return bytes
}

// pageNeed returns the approximate size of a decoded data page.
func pageNeed(size int64, values int32, e format.Encoding) int64 {
	const levels = 2 // bytes per entry
	switch n := int64(values); e {
	case format.PlainDictionary, format.RLEDictionary:
		return size + (levels+4)*n
	case format.Plain:
		return size + levels*n
	default: // converted to PLAIN
		return 3*size + levels*n
	}
}

// Size returns the size of the buffers in bytes.
func (b *Buffers) Size() int64 {
	return b.earlySize() + int64(cap(b.window)+cap(b.raw)+cap(b.plain)+cap(b.wide)+cap(b.picked)+cap(b.dict)+cap(b.rep)+cap(b.def)+
		4*(cap(b.offsets)+cap(b.indices)+cap(b.entries)+cap(b.values)))
}

// earlySize returns the size of pages that are, or were, decompressed early.
func (b *Buffers) earlySize() (n int64) {
	for i := range b.early {
		n += int64(cap(b.early[i].data))
	}
	return n
}
