package avro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/snappy"
)

const (
	maxBlock    = 1 << 28   // bytes of a block, decompressed
	largeBlock  = 4 << 20   // which takes turns
	maxWindow   = 128 << 20 // of zstd, as other decoders have it
	snappyRatio = 64        // bytes that a byte can stand for, or more
)

var errSnappy = errors.New("want its length and checksum to be those of the block")

// unpacker decompresses the blocks of a file.
type unpacker struct {
	codec  string
	src    bytes.Reader
	stream io.Reader    // from src; nil: the codec has none
	reset  func() error // before each block of stream
	dst    bytes.Buffer
	large  *sync.Mutex
	held   bool // large is locked
}

func newUnpacker(codec string, large *sync.Mutex) (u *unpacker, err error) {
	u = &unpacker{codec: codec, large: large}
	switch codec {
	case "", "null", "snappy":
	case "deflate":
		z := flate.NewReader(&u.src)
		u.stream, u.reset = z, func() error { return z.(flate.Resetter).Reset(&u.src, nil) }
	case "zstandard":
		var z *zstd.Decoder // of one thread, it need not be closed
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		u.stream, u.reset = z, func() error { return z.Reset(&u.src) }
	default:
		err = faults.Unsupported(fault.At{}, "the Avro codec %q: want null, deflate, snappy or zstandard", codec)
	}
	return u, err
}

// unpack returns the block b decompressed. It is valid until the next call.
func (u *unpacker) unpack(b []byte) (out []byte, err error) {
	u.src.Reset(b)
	u.dst.Reset()
	switch {
	case u.codec == "snappy":
		out, err = u.unsnappy(b)
	case u.stream == nil:
		return b, nil
	default: // bytes may be left: some writers keep a part of zlib's checksum
		if err = u.reset(); err == nil {
			_, err = u.dst.ReadFrom(io.LimitReader(u.stream, largeBlock))
		}
		if err == nil && u.dst.Len() == largeBlock {
			u.begin()
			_, err = u.dst.ReadFrom(io.LimitReader(u.stream, maxBlock+1-largeBlock))
		}
		out = u.dst.Bytes()
	}
	if err != nil || len(out) > maxBlock {
		e := faults.Corrupt(fault.At{}, "an Avro block of at most %d bytes, compressed with %s", maxBlock, u.codec)
		e.Err = err
		return nil, e
	}
	return out, nil
}

// begin waits until no other large block is in memory. This one is until end.
func (u *unpacker) begin() {
	if !u.held {
		u.large.Lock()
		u.held = true
	}
}

func (u *unpacker) end() {
	if u.held {
		u.large.Unlock()
	}
}

// unsnappy decompresses a block, which a checksum follows.
func (u *unpacker) unsnappy(b []byte) ([]byte, error) {
	at := max(len(b)-crc32.Size, 0)
	size, n := binary.Uvarint(b[:at])
	if n <= 0 || size > min(uint64(snappyRatio*at), maxBlock) {
		return nil, errSnappy
	}
	if size > largeBlock {
		u.begin()
	}
	u.dst.Grow(int(size))
	out := u.dst.AvailableBuffer()[:size]
	err := snappy.Decode(out, b[:at])
	if err == nil && crc32.ChecksumIEEE(out) != binary.BigEndian.Uint32(b[at:]) {
		err = errSnappy
	}
	return out, err
}
