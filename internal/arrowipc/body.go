package arrowipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"

	"encoding/binary"
)

// Limits on the size of decompressed buffers.
const (
	maxBuffer = 256 << 20 // bytes of a buffer
	maxBatch  = 1 << 30   // bytes of all buffers of a batch
)

// body gives access to the buffers of a message's body. The caller releases the
// buffers.
type body interface {
	// at returns the n bytes at off, both already checked against the body's
	// length.
	at(off, n int64) (*memory.Buffer, error)
}

// fileBody is a body in a file; only the requested buffers are read.
type fileBody struct {
	r    io.ReaderAt
	base int64
	mem  memory.Allocator
}

func (b fileBody) at(off, n int64) (*memory.Buffer, error) {
	buf := memory.NewResizableBuffer(b.mem)
	buf.Resize(int(n))
	if err := readAt(b.r, buf.Bytes(), b.base+off); err != nil {
		buf.Release()
		return nil, err
	}
	return buf, nil
}

// readAt fills p with the bytes at off.
func readAt(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// memBody is a body in memory, which its buffers share.
type memBody struct{ *memory.Buffer }

func (b memBody) at(off, n int64) (*memory.Buffer, error) {
	return memory.SliceBuffer(b.Buffer, int(off), int(n)), nil
}

// unpacker decompresses the buffers of one batch within the limits above.
type unpacker struct {
	codec codec
	mem   memory.Allocator
	total int64 // bytes so far in this batch
	zstd  *zstd.Decoder
	lz4   *lz4.Reader
}

// close frees the decoders' memory.
func (u *unpacker) close() {
	if u.zstd != nil {
		u.zstd.Close()
	}
}

// unpack decompresses raw, a buffer as stored in the body: eight bytes of
// uncompressed length, or -1 if it is not compressed, then the bytes.
func (u *unpacker) unpack(at fault.At, raw *memory.Buffer) (*memory.Buffer, error) {
	src := raw.Bytes()
	if len(src) == 0 {
		raw.Retain()
		return raw, nil
	}
	if len(src) < 8 {
		return nil, faults.Corrupt(at, "a compressed buffer of %d bytes", len(src))
	}
	want := int64(binary.LittleEndian.Uint64(src))
	src = src[8:]
	if want == -1 {
		return memory.SliceBuffer(raw, 8, len(src)), nil
	}
	if err := u.allow(at, want, int64(len(src))); err != nil {
		return nil, err
	}
	dst := memory.NewResizableBuffer(u.mem)
	dst.Resize(int(want))
	if err := u.decode(dst.Bytes(), src); err != nil {
		dst.Release()
		e := faults.Corrupt(at, "compressed buffer")
		e.Err = err
		return nil, e
	}
	return dst, nil
}

// allow checks a claimed size against the limits and against what the compressed
// bytes can expand to.
func (u *unpacker) allow(at fault.At, want, packed int64) error {
	if want < 0 {
		return faults.Corrupt(at, "a buffer of %d bytes", want)
	}
	u.total += want
	if want > maxBuffer || u.total > maxBatch {
		return faults.Unsupported(at, "compressed buffers above %d MiB each, or %d MiB per batch", maxBuffer>>20, maxBatch>>20).
			WithHint("write smaller batches, or uncompressed ones")
	}
	most := 255 * packed // an LZ4 length byte stands for at most 255 bytes
	if u.codec == codecZstd {
		most = (packed/3 + 1) << 17 // a block of 128 KiB has a header of 3 bytes
	}
	if want > most {
		return faults.Corrupt(at, "%d compressed bytes that claim to be %d", packed, want)
	}
	return nil
}

var errLength = errors.New("length differs from the one written before it")

// decode decompresses src, which must fill dst exactly.
func (u *unpacker) decode(dst, src []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	if u.codec == codecZstd {
		return u.decodeZstd(dst, src)
	}
	if u.lz4 == nil {
		u.lz4 = lz4.NewReader(nil)
	}
	u.lz4.Reset(bytes.NewReader(src))
	if _, err := io.ReadFull(u.lz4, dst); err != nil {
		return err
	}
	var one [1]byte
	if n, err := io.ReadFull(u.lz4, one[:]); n != 0 {
		return errLength
	} else if err != io.EOF {
		return err
	}
	return nil
}

func (u *unpacker) decodeZstd(dst, src []byte) error {
	if u.zstd == nil {
		var err error
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxMemory(maxBuffer))
		if err != nil {
			return err
		}
	}
	// The capacity is the limit, so a wrong length cannot make the output grow.
	out, err := u.zstd.DecodeAll(src, dst[:0:len(dst)])
	if err == nil && len(out) != len(dst) {
		err = errLength
	}
	return err
}
