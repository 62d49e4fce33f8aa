// Package zstd decodes frames of Zstandard (RFC 8878), which pages of Parquet files are
// compressed with, on amd64 with AVX2 and BMI2. It is there for large frames of the usual
// form, as any encoder writes them; what is rare, wrong or small it leaves to another decoder.
//
// # Literals
//
// A block's literals are four streams of Huffman codes, each of which waits for its own
// look-ups. So the streams of two blocks are decoded in turns: eight fill the wait.
//
// # Sequences
//
// A step is a sequence: its three codes, the next states, and both copies, without a branch that data decides.
// It always moves 32 bytes of literals and 64 of a match, of which surplus is overwritten by the next
// step; offsets of earlier sequences are taken out of a register by a shuffle. More
// literals, a longer match and an offset below 32 are out of line.
//
// # Why nothing outside of the slices is touched
//
//  1. Rounds of literals are limited such that no stream reads before its start, and
//     write to memory of their own, from where they are copied.
//  2. A step begins at least 96 bytes before the output's end, and what is out of line ends before
//     them. It begins 32 bits behind the start of a block's, and loads those from 12 bytes before
//     this on, which the headers are.
//  3. A copy's source is compared with the output's start; it lies before the output's
//     position, so its end is before that of what is written. The literals have
//     room behind them for what is read beyond.
//  4. All else is left to code in Go that checks everything: the last sequences of a block, ones
//     that do not fit, and offsets that are wrong or 0.
package zstd

// MinSize: smaller frames are left to another decoder, which needs no more time for them.
const MinSize = 32 << 10
