package delta

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	"github.com/bloomjoin/bloomjoin/storage"
)

const (
	magic      = 1681511377 // before a bitmap; the only format of vectors that there is
	nameLength = 20         // of an encoded UUID, at the end of a vector's text
	largest    = 1 << 30    // bytes of a vector
)

// deleted returns the reference to a file's deleted rows, nil if there are none.
func (s *Snapshot) deleted(v *vector) (*lake.Deleted, error) {
	if v == nil || *v == (vector{}) {
		return nil, nil
	}
	d := &lake.Deleted{Size: int64(v.Size), Count: v.Count, Offset: 1}
	if d.Size <= 0 || d.Size > largest || d.Count < 0 {
		return nil, faults.Corrupt(fault.At{}, "a deletion vector of %d bytes for %d rows", d.Size, d.Count)
	}
	if v.Offset != nil {
		d.Offset = int64(*v.Offset)
	}
	var err error
	switch v.Storage {
	case "i":
		d.Offset = 0
		if d.Inline, err = decodeZ85(v.Text); err == nil && d.Size > int64(len(d.Inline)) {
			err = faults.Corrupt(fault.At{}, "an inline deletion vector of %d bytes, of which there are %d", d.Size, len(d.Inline))
		} else if err == nil {
			d.Inline = d.Inline[:d.Size] // the encoding has whole groups of four
		}
	case "u":
		d.Place, err = s.vectorFile(v.Text)
	case "p":
		d.Place, err = s.place(v.Text)
	default:
		err = faults.Unsupported(fault.At{}, "a deletion vector stored as %s", strconv.Quote(v.Storage))
	}
	return d, err
}

// vectorFile returns the name of the file of a vector whose text is a directory and a UUID.
func (s *Snapshot) vectorFile(text string) (string, error) {
	at := len(text) - nameLength
	if at < 0 {
		return "", faults.Corrupt(fault.At{}, "the name of a deletion vector, %s", strconv.Quote(text))
	}
	id, err := decodeZ85(text[at:])
	if err != nil {
		return "", err
	}
	u := hex.EncodeToString(id)
	name := "deletion_vector_" + strings.Join([]string{u[:8], u[8:12], u[12:16], u[16:20], u[20:]}, "-") + ".bin"
	if at > 0 {
		name = text[:at] + "/" + name
	}
	return s.dir + name, nil
}

// Rows reads the rows that d refers to.
func Rows(ctx context.Context, src storage.Source, d *lake.Deleted) (m *roaring.Bitmap, err error) {
	at := fault.At{File: d.Place}
	b := d.Inline
	if d.Place != "" {
		if b, err = stored(ctx, src, d); err != nil {
			return nil, err
		}
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != magic {
		return nil, faults.Corrupt(at, "a deletion vector of an unknown format")
	}
	if m, err = roaring.Parse(b[4:]); err != nil {
		e := faults.Corrupt(at, "a deletion vector")
		e.Err = err
		return nil, e
	}
	if m.Count() != d.Count {
		return nil, faults.Wanted(faults.Corrupt(at, "rows of a deletion vector"), strconv.FormatInt(d.Count, 10), strconv.FormatInt(m.Count(), 10))
	}
	return m, nil
}

// stored reads a vector from its file: its length, itself, and its checksum.
func stored(ctx context.Context, src storage.Source, d *lake.Deleted) (b []byte, err error) {
	at := fault.At{File: d.Place}
	r, err := src.Open(ctx, storage.Object{Name: d.Place})
	if err != nil {
		return nil, err
	}
	defer faults.Join(&err, r.Close)
	if size := r.Object().Size; d.Offset < 1 || d.Offset > size-d.Size-8 {
		return nil, faults.Corrupt(at, "a deletion vector of %d bytes at %d, in a file of %d", d.Size, d.Offset, size)
	}
	b = make([]byte, d.Size+8)
	if n, err := r.ReadAt(b, d.Offset); n < len(b) {
		return nil, err
	}
	if n := int64(binary.BigEndian.Uint32(b)); n != d.Size {
		return nil, faults.Wanted(faults.Corrupt(at, "bytes of a deletion vector"), strconv.FormatInt(d.Size, 10), strconv.FormatInt(n, 10))
	}
	b, sum := b[4:4+d.Size], binary.BigEndian.Uint32(b[4+d.Size:])
	if crc32.ChecksumIEEE(b) != sum {
		return nil, faults.Corrupt(at, "the checksum of a deletion vector")
	}
	return b, nil
}

// alphabet is that of Z85: https://rfc.zeromq.org/spec/32/.
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// decodeZ85 decodes four bytes from each five characters.
func decodeZ85(s string) ([]byte, error) {
	wrong := func() ([]byte, error) { return nil, faults.Corrupt(fault.At{}, "text that is not in the encoding Z85") }
	if len(s)%5 != 0 {
		return wrong()
	}
	out := make([]byte, 0, len(s)/5*4)
	for ; len(s) > 0; s = s[5:] {
		n := uint64(0)
		for _, c := range []byte(s[:5]) {
			digit := strings.IndexByte(alphabet, c)
			if digit < 0 {
				return wrong()
			}
			n = n*85 + uint64(digit)
		}
		if n >= 1<<32 {
			return wrong()
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	return out, nil
}
