package parquet

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// Page is a decoded data page, or the selected part of one. Its slices are valid
// until the next call to Next of its Chunk.
type Page struct {
	Number   int // among the chunk's data pages, from 1
	Offset   int64
	FirstRow int64 // in the row group: the first row that begins in the stored page
	Values   int   // entries, including NULLs
	Rows     int   // rows that begin among the entries
	NonNull  int   // values other than NULL

	Encoding format.Encoding // of the values in the stored page
	// Stored is the page as stored in the file if all of it was selected and it
	// begins and ends at row boundaries; else nil. If the page was decoded, Stored
	// is also nil for V2 pages and repeated leaves.
	Stored *StoredPage

	Rep []uint8 // one per entry; nil if the leaf is not repeated
	Def []uint8 // one per entry; nil if values are never NULL

	// The values other than NULL, in one of two forms.
	Plain   []byte   // PLAIN encoded, also if the stored encoding is another
	Indices []uint32 // indices of dictionary entries, all in range
	Coded   bool     // the values are in Indices, not Plain

	offsets []uint32       // offsets of byte arrays in Plain, computed on demand
	sealed  *undecodedPage // the page was not decoded
}

// Undecoded reports whether the page was neither decompressed nor decoded; see
// [Chunk.Undecoded]. Only the fields up to Stored are then set, and NonNull is -1 if it is
// not known. Such a page can only be copied with a ChunkWriter.
func (p *Page) Undecoded() bool { return p.sealed != nil }

// Derived returns a copy of a decoded page to be changed: it shares the levels and
// values, but has no stored form.
func (p *Page) Derived() Page {
	q := *p
	q.Stored, q.sealed, q.offsets = nil, nil, nil
	return q
}

// StoredPage is a data page as it is stored in a file: levels and values,
// compressed, except that levels of V2 pages are not.
type StoredPage struct {
	Body  []byte
	Size  int // decompressed size in bytes
	Codec format.CompressionCodec
}

// Bytes returns value i of a byte array column, counting only values other than
// NULL. dict is the chunk's dictionary.
func (p *Page) Bytes(i int, dict *Dictionary) []byte {
	if p.Coded {
		j := p.Indices[i]
		return dict.Plain[dict.offsets[j] : dict.offsets[j+1]-4]
	}
	if p.offsets == nil {
		p.offsets = byteArrayOffsets(nil, p.Plain, p.NonNull)
	}
	return p.Plain[p.offsets[i] : p.offsets[i+1]-4]
}

// CopyBytes copies the non-NULL values of a byte array column to dst, one after another, and
// stores in ends where each of them ends. place is the position of dst[0].
func CopyBytes[O int32 | int64](p *Page, dict *Dictionary, dst []byte, ends []O, place int) {
	at, from := 0, 0
	for i := range ends[:p.NonNull] {
		var v []byte
		if p.Coded {
			j := p.Indices[i]
			v = dict.Plain[dict.offsets[j] : dict.offsets[j+1]-lengthSize]
		} else {
			to := from + lengthSize + int(binary.LittleEndian.Uint32(p.Plain[from:]))
			v, from = p.Plain[from+lengthSize:to], to
		}
		at += copy(dst[at:], v)
		ends[i] = O(place + at)
	}
}

// Dictionary is a chunk's dictionary: Len values in PLAIN encoding. Its memory
// belongs to the Chunk's Buffers and is valid until these are used for another
// Chunk.
type Dictionary struct {
	Len     int
	Plain   []byte
	offsets []uint32 // for byte arrays: the start of each value in Plain, after its length, and one more
}

// NewDictionary returns a dictionary of n values of type t, well-formed and in PLAIN
// encoding. It keeps plain.
func NewDictionary(t format.Type, n int, plain []byte) *Dictionary {
	d := &Dictionary{Len: n, Plain: plain}
	if t == format.ByteArray {
		d.offsets = byteArrayOffsets(nil, plain, n)
	}
	return d
}

// size returns the size of entry i of a byte array dictionary.
func (d *Dictionary) size(i uint32) int64 { return int64(d.offsets[i+1]-d.offsets[i]) - 4 }

// PlainSize returns the bytes of the page's values in PLAIN form. width is
// [meta.Leaf.Width].
func (p *Page) PlainSize(dict *Dictionary, width int) (bytes int64) {
	switch {
	case !p.Coded:
		return int64(len(p.Plain))
	case width > 0:
		return int64(width) * int64(p.NonNull)
	}
	for _, i := range p.Indices[:p.NonNull] {
		bytes += lengthSize + dict.size(i)
	}
	return bytes
}

// lengthSize is the size of the length before a PLAIN byte array.
const lengthSize = 4

// AppendValues appends the PLAIN values of the entries with the given indices, all
// in range, until dst has at least most bytes. It returns the number of entries
// appended, at least one unless indices is empty. width is [meta.Leaf.Width]; the leaf
// must not be boolean.
func (d *Dictionary) AppendValues(dst []byte, indices []uint32, width, most int) (_ []byte, n int) {
	for _, i := range indices {
		switch at := int(i) * width; {
		case width == 8: // a copy of constant size is an instruction
			dst = append(dst, (*[8]byte)(d.Plain[at:])[:]...)
		case width > 0:
			dst = append(dst, d.Plain[at:at+width]...)
		default:
			dst = append(dst, d.Plain[d.offsets[i]-4:d.offsets[i+1]-4]...)
		}
		if n++; len(dst) >= most {
			break
		}
	}
	return dst, n
}

// Clone returns a copy of the page with its own memory.
func (p *Page) Clone() *Page {
	q := *p
	if p.Stored != nil {
		stored := *p.Stored
		stored.Body = slices.Clone(stored.Body)
		q.Stored = &stored
	}
	if p.sealed != nil {
		sealed := *p.sealed
		q.sealed = &sealed
	}
	q.Rep, q.Def = slices.Clone(p.Rep), slices.Clone(p.Def)
	q.Plain, q.Indices = slices.Clone(p.Plain), slices.Clone(p.Indices)
	q.offsets = nil
	return &q
}

// Clone returns a copy of the dictionary with its own memory.
func (d *Dictionary) Clone() *Dictionary {
	return &Dictionary{Len: d.Len, Plain: slices.Clone(d.Plain), offsets: slices.Clone(d.offsets)}
}

// FewOf returns a copy of a page of a leaf of the given width, with a dictionary of the
// entries that it uses, if that has less than half of d's; else nil.
func (d *Dictionary) FewOf(p *Page, width int) (*Page, *Dictionary) {
	if p.sealed != nil || !p.Coded || 2*p.NonNull > d.Len {
		return nil, nil
	}
	used, number := make([]uint32, 0, p.NonNull), make(map[uint32]uint32, p.NonNull)
	q := p.Clone()
	q.Stored = nil // has d's indices
	for i, e := range q.Indices[:q.NonNull] {
		n, ok := number[e]
		if !ok {
			n = uint32(len(used))
			number[e], used = n, append(used, e)
		}
		q.Indices[i] = n
	}
	few := &Dictionary{Len: len(used)}
	few.Plain, _ = d.AppendValues(nil, used, width, math.MaxInt)
	if d.offsets != nil {
		few.offsets = byteArrayOffsets(nil, few.Plain, few.Len)
	}
	return q, few
}
