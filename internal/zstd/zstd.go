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
// A step decodes and executes one sequence: its three codes, the next states and both copies, without
// branches that depend on data. It always copies 32 bytes of literals and 64 of the match; the next
// step overwrites what was too much. Repeated offsets come from a register by a shuffle. More literals, a
// longer match and offsets below 32 have code of their own.
//
// # Why nothing outside of the slices is touched
//
//  1. Rounds of literals are limited such that no stream reads before its start, and
//     write to memory of their own, from where they are copied.
//  2. A step begins at least 96 bytes before the output's end, and its longer copies end before those.
//     It begins at least 32 bits after the start of a block's sequences, and loads from up to 12 bytes
//     before that place, where the headers are.
//  3. A copy's source is compared with the output's start, and lies before the output's position.
//     The buffer of literals has room for what is read after the last one.
//  4. Code in Go that checks everything does the rest: the last sequences of a block, sequences
//     that do not fit, and offsets that are wrong or 0.
package zstd

// MinSize: smaller frames are left to another decoder, which needs no more time for them.
const MinSize = 32 << 10
