package shuffle

import (
	"context"
	"encoding/binary"
	"io"
	"math"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/spill"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// rowSpill holds ID rows on disk, in order, in bins by their number: bin i has the
// rows from i<<binBits on.
type rowSpill struct {
	s          *Shuffle
	binBits    int
	batchBytes int64 // approximate size of a batch on disk
	bins       []*spill.Stream
	buf        []byte
	at         []spill.Pair
	share      *budget.Share

	rows, bytes int64 // held, and their bytes

	// From the exchange:
	binsPerWant int            // bins whose wants share a stream, as bits
	wants       []*entryStream // by bin>>binsPerWant: row within, and a piece that needs it
	matched     *spill.Stream  // which rows the log has: bit sets, by bin
}

// Bounds on a bin, in bits of its number of rows, and on the bytes of a batch.
const (
	minBin, maxBin     = 10, 18
	minBatch, maxBatch = 1 << 10, 1 << 20
)

func newRowSpill(s *Shuffle) *rowSpill {
	r := &rowSpill{s: s, binBits: minBin, share: s.newShare("rows of IDs on their way to disk")}
	for r.binBits < maxBin && int64(s.pieces())<<(r.binBits+1)/8 < s.room/16 { // a bit for each row and range
		r.binBits++
	}
	r.batchBytes = min(max(s.room/64, minBatch), maxBatch)
	return r
}

// bin returns the stream of a bin.
func (r *rowSpill) bin(n int) *spill.Stream {
	for len(r.bins) <= n {
		r.bins = append(r.bins, nil)
	}
	if r.bins[n] == nil {
		r.bins[n] = r.s.file.Stream()
	}
	return r.bins[n]
}

// add writes the rows at the positions in keep of batch.Rows.
func (r *rowSpill) add(b *tables.Batch, keep []uint32, firstRow int64) error {
	batch := b.Keys
	perRow := b.Bytes()/max(int64(batch.Len), 1) + 1
	most := int(min(max(r.batchBytes/perRow, 1), spill.MaxPairs))
	rows := make([]uint32, 0, min(most, len(keep)))
	for len(keep) > 0 {
		rows, r.at = rows[:0], r.at[:0]
		bin := (firstRow + int64(batch.Rows[keep[0]])) >> r.binBits
		for len(keep) > 0 && len(rows) < most {
			row := firstRow + int64(batch.Rows[keep[0]])
			if row>>r.binBits != bin {
				break
			}
			rows = append(rows, batch.Rows[keep[0]])
			r.at = append(r.at, spill.Pair{A: uint64(row - bin<<r.binBits)})
			keep = keep[1:]
		}
		if err := r.write(b, rows, int(bin)); err != nil {
			return err
		}
	}
	return nil
}

// write writes rows of a batch, whose numbers within the bin are in r.at.
func (r *rowSpill) write(b *tables.Batch, rows []uint32, bin int) (err error) {
	r.buf = spill.AppendPairs(append(r.buf[:0], 0, 0, 0, 0), r.at)
	binary.LittleEndian.PutUint32(r.buf, uint32(len(r.buf)-4))
	before := len(r.buf)
	if r.buf, err = b.AppendTo(r.buf, rows); err != nil {
		return err
	}
	r.rows += int64(len(rows))
	r.bytes += int64(len(r.buf) - before)
	if err := r.hold(); err != nil {
		return err
	}
	return r.bin(bin).Write(r.buf, true)
}

// hold puts the memory for writing rows on the account: the rows, their bytes, and
// their compressed form.
func (r *rowSpill) hold() error {
	held := 3*int64(cap(r.buf)) + int64(16*cap(r.at)+64*len(r.bins))
	if more := held - r.share.Bytes(); more > 0 {
		return r.share.Take(more)
	}
	return nil
}

// done gives back the memory that add needs.
func (r *rowSpill) done() {
	r.buf, r.at = nil, nil
	r.share.Give(r.share.Bytes() - int64(64*len(r.bins)))
}

// read calls fn with each batch of a bin, and the numbers of its rows within the bin.
func (r *rowSpill) read(ctx context.Context, bin int, fn func(b *tables.Batch, at []spill.Pair) error) error {
	if bin >= len(r.bins) || r.bins[bin] == nil {
		return nil
	}
	for in := r.bins[bin].Reader(); ; {
		b, err := in.Next(nil)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		n := 4
		if len(b) >= n {
			n += int(binary.LittleEndian.Uint32(b))
		}
		if n > len(b) {
			return faults.Errorf("%s: a piece of %d bytes, of which numbers of rows take %d", waitsOnDisk, len(b), n)
		}
		if r.at, err = spill.Pairs(r.at, b[4:n]); err != nil {
			return faults.Errorf("%s: %w", waitsOnDisk, err)
		}
		rows, err := r.s.Columns.Parse(b[n:])
		if err != nil {
			return faults.Errorf("%s: %w", waitsOnDisk, err)
		}
		if err := fn(rows, r.at); err != nil {
			return err
		}
	}
}

// prepare creates at most most streams, in which the exchange notes the rows it needs.
func (r *rowSpill) prepare(most int) []*entryStream {
	for (len(r.bins)-1)>>r.binsPerWant >= most {
		r.binsPerWant++
	}
	r.wants = newEntryStreams(r.s.file, (len(r.bins)-1)>>r.binsPerWant+1)
	return r.wants
}

// want returns the stream in which to note that a row is needed, and the row's
// number there.
func (r *rowSpill) want(row uint64) (stream int, at uint64) {
	shift := r.binBits + r.binsPerWant
	return int(row >> shift), row & (1<<shift - 1)
}

// deal copies each row to the ranges that need it, bin by bin, so that each range
// has its rows in order.
func (r *rowSpill) deal(ctx context.Context) error {
	if len(r.bins) == 0 {
		return nil
	}
	d, err := newDealer(r)
	if err != nil {
		return err
	}
	defer d.share.GiveAll()
	for n, wants := range r.wants {
		parts := []*entryStream{wants}
		if r.binsPerWant > 0 {
			if parts, err = d.divide(ctx, wants); err != nil {
				return err
			}
		}
		for i, part := range parts {
			if err := d.bin(ctx, n<<r.binsPerWant+i, part); err != nil {
				return err
			}
			part.free()
		}
	}
	return nil
}

// dealer deals the rows of one bin after the other.
type dealer struct {
	r       *rowSpill
	share   *budget.Share
	reader  *entryReader
	rangeOf []int       // by piece
	needed  [][]uint64  // by range: bit set of the bin's rows
	any     []bool      // by range: some bit is set
	bufs    chan []byte // one for each thread
}

func newDealer(r *rowSpill) (*dealer, error) {
	s := r.s
	d := &dealer{r: r, share: s.newShare("rows of IDs on their way back to disk")}
	d.reader = &entryReader{integers: true}
	d.rangeOf = make([]int, s.pieces())
	for i, run := range s.pieceRanges {
		for piece := run.Lo; piece < run.Hi; piece++ {
			d.rangeOf[piece] = i
		}
	}
	d.needed, d.any = make([][]uint64, len(s.pieceRanges)), make([]bool, len(s.pieceRanges))
	d.bufs = make(chan []byte, s.Threads)
	for range s.Threads {
		d.bufs <- nil
	}
	words := int64(1) << r.binBits / 64
	if err := d.share.Take(int64(len(s.pieceRanges))*8*words + int64(2+3*s.Threads)*r.batchBytes + s.readBytes()); err != nil {
		return nil, err
	}
	for i := range d.needed {
		d.needed[i] = make([]uint64, words)
	}
	if s.Matched {
		r.matched = s.file.Stream()
	}
	return d, nil
}

// divide divides what is wanted of several bins.
func (d *dealer) divide(ctx context.Context, wants *entryStream) ([]*entryStream, error) {
	parts := newEntryStreams(d.r.s.file, 1<<d.r.binsPerWant)
	size := int(min(max(d.r.s.left()/2/int64(len(parts)), minBuffer), int64(d.r.s.size)))
	w, err := newEntryWriter(parts, true, size, d.share)
	if err != nil {
		return nil, err
	}
	mask := uint64(1)<<d.r.binBits - 1
	err = d.reader.each(ctx, wants, func(b *entryBatch) error {
		for i, p := range b.pairs {
			if err := w.putInt(int(p.A>>d.r.binBits), p.A&mask, 0, b.tag(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.drop()
		return nil, err
	}
	wants.free()
	return parts, w.close()
}

// bin deals the rows of one bin.
func (d *dealer) bin(ctx context.Context, n int, wants *entryStream) error {
	r := d.r
	if n >= len(r.bins) || r.bins[n] == nil {
		return nil
	}
	defer func() { r.bins[n].Free() }()
	if wants.count.Load() == 0 {
		return nil
	}
	for i := range d.needed {
		if d.any[i] {
			clear(d.needed[i])
			d.any[i] = false
		}
	}
	err := d.reader.each(ctx, wants, func(b *entryBatch) error {
		for i, p := range b.pairs {
			to := d.rangeOf[b.tag(i)]
			d.needed[to][p.A/64] |= 1 << (p.A % 64)
			d.any[to] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.note(n); err != nil {
		return err
	}
	return r.read(ctx, n, d.batch)
}

// note writes which rows of the bin the log has.
func (d *dealer) note(bin int) error {
	if d.r.matched == nil {
		return nil
	}
	union := make([]uint64, len(d.needed[0]), len(d.needed[0])+1)
	for i, set := range d.needed {
		for w := range set {
			if d.any[i] {
				union[w] |= set[w]
			}
		}
	}
	return d.r.matched.Write(spill.AppendInts(nil, append(union, uint64(bin))), true)
}

// batch writes the rows of a batch to the ranges that need them, several ranges at a
// time.
func (d *dealer) batch(b *tables.Batch, at []spill.Pair) error {
	var group errgroup.Group
	group.SetLimit(d.r.s.Threads)
	for to, any := range d.any {
		if any {
			group.Go(func() error { return d.copy(to, b, at) })
		}
	}
	return group.Wait()
}

// copy writes the rows of a batch that a range needs.
func (d *dealer) copy(to int, b *tables.Batch, at []spill.Pair) error {
	set := d.needed[to]
	rows := make([]uint32, 0, len(at))
	for i, p := range at {
		if set[p.A/64]>>(p.A%64)&1 != 0 {
			rows = append(rows, uint32(i))
		}
	}
	switch len(rows) {
	case 0:
		return nil
	case len(at):
		rows = nil
	}
	buf := <-d.bufs
	defer func() { d.bufs <- buf }()
	out, err := b.AppendTo(buf[:0], rows)
	if err != nil {
		return err
	}
	buf = out
	return d.r.s.perRange[to].Write(out, true)
}

// MatchedRows reports which ID rows the log has. One goroutine uses it.
type MatchedRows struct {
	r     *rowSpill
	in    *spill.Reader
	bin   int64 // -1: none yet; after the last one: MaxInt64
	set   []uint64
	chunk []byte
}

// MatchedRows returns which ID rows have a key that some log row has. Call it after
// Exchange.
func (s *Shuffle) MatchedRows() *MatchedRows {
	if s.rows.matched == nil { // no row was kept
		return &MatchedRows{r: s.rows, bin: math.MaxInt64}
	}
	return &MatchedRows{r: s.rows, in: s.rows.matched.Reader(), bin: -1}
}

// Has reports whether the log has the key of a row. Calls are in ascending order of
// rows.
func (m *MatchedRows) Has(row int64) (bool, error) {
	want := row >> m.r.binBits
	for m.bin < want {
		var err error
		if m.chunk, err = m.in.Next(m.chunk); err == io.EOF {
			m.bin = math.MaxInt64 // no further row was kept
			break
		} else if err != nil {
			return false, err
		}
		if m.set, err = spill.Ints(m.set, m.chunk); err != nil {
			return false, faults.Errorf("%s: %w", waitsOnDisk, err)
		}
		m.bin = int64(m.set[len(m.set)-1])
	}
	if m.bin != want {
		return false, nil
	}
	in := row & (1<<m.r.binBits - 1)
	return m.set[in/64]>>(in%64)&1 != 0, nil
}
