// Package snappy decodes blocks of the raw Snappy format, which pages of Parquet
// files are compressed with. On amd64 with AVX2 and BMI1 large blocks are decoded by
// this package's assembly, which takes a little more than half of the time of s2's for one
// block, and a good third for each of three in turns; all else by s2.
//
// # A step
//
// A block is a sequence of elements: literals, and copies of earlier output. Most are
// short, and what kind comes next is not predictable, so that a decoder with a branch
// for each kind waits for wrong guesses. The assembly's step is a literal of at most
// 32 bytes, which may be missing, and then a copy. It always moves 32 bytes for either
// and advances by what they are; surplus is overwritten by the next step.
//
// The next step waits for what this one finds: where its tag is. Steps of other blocks fill
// the wait, so the assembly has a loop for three blocks, and one for two.
//
// There are three kinds of steps. The wide one knows all three kinds of copies and compares the
// source of each with the output's start. The lean one, an eighth faster, knows those of
// two bytes of offset at most, and is used from 64 KiB of output on, where no such offset
// leads before the start; it has offsets of four bytes out of line. Both have copies of more
// than 32 bytes out of line, which the long one has not: it always moves 64, and is else
// like the wide one. Where many copies are out of line, the next kind goes on: of four
// bytes, as encoders with a larger window than the original's write them, or long ones,
// as of the hosts of URLs. No processor predicts them, and a wrong guess costs what
// ten moves do.
//
// # Why nothing outside of the slices is touched
//
//  1. A step reads at most 98 bytes of input behind its start and uses at most 38; it
//     writes at most 127 bytes of output and makes at most 96.
//  2. Before each run of steps, their number is limited such that the last one, if all
//     before it use and make the most, still ends within both slices. A second literal
//     or one of more than 32 bytes, which may use and make more, ends the run; one whose
//     length is in bytes of its own is compared with both ends.
//     Of several blocks, the one with the fewest steps left decides.
//  3. A copy's source is compared with the output's start, but for lean steps of
//     offsets below 64 KiB. It lies before the output's position, so its end is before
//     that of what is written.
//  4. What the assembly has no step for (offset 0, sources before the start, lengths of
//     three bytes and more, and the last steps of a block) is left to code in Go that
//     checks everything, one element at a time.
//  5. A block in which that finds an error is decoded again by s2, whose answer counts:
//     errors are s2's, and so are the elements that only s2 writes (offset 0).
//
// The format: https://github.com/google/snappy/blob/main/format_description.txt
package snappy

import (
	"errors"

	"github.com/klauspost/compress/s2"
)

var errSize = errors.New("the decompressed size is not the one stated")

// MinSize: smaller blocks are decoded by s2, which needs less time for them.
const MinSize = 8 << 10

// AtOnce is how many blocks are decoded in turns. With four, each takes hardly less time.
const AtOnce = 3

// Block is a block to decode into Dst, which must have exactly the decoded length and
// not overlap any Src or another Dst.
type Block struct {
	Dst, Src []byte
	Need     int   // if not 0: only so many bytes are needed, and what is behind them may be wrong
	Err      error // after an error, Dst holds anything
}

// Decode decodes the block src into dst, see [Block]. It does not write to dst's spare
// capacity. It may be called concurrently.
func Decode(dst, src []byte) error {
	b := [1]Block{{Dst: dst, Src: src}}
	DecodeBlocks(b[:])
	return b[0].Err
}

// DecodeBlocks decodes blocks like [Decode], which takes longer for one after another. An
// error of one does not concern the others.
func DecodeBlocks(blocks []Block) {
	var t turns
	for i := range blocks {
		b := &blocks[i]
		n, err := s2.DecodedLen(b.Src)
		switch b.Err = err; {
		case err != nil:
		case n != len(b.Dst):
			b.Err = errSize
		case n < MinSize || !t.add(b):
			b.decode()
		case t.n == AtOnce:
			t.finishOne()
		}
	}
	for t.n > 0 {
		t.finishOne()
	}
}

func (t *turns) finishOne() {
	if b, right := t.next(); !right {
		b.decode()
	}
}

// decode decodes the block by s2.
func (b *Block) decode() {
	n := len(b.Dst)
	_, b.Err = s2.Decode(b.Dst[:n:n], b.Src)
}
