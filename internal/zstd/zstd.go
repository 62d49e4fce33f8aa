// Package zstd decodes frames of Zstandard (RFC 8878), in which pages of Parquet files are
// compressed, on amd64 with AVX2 and BMI2. It decodes large frames in the form that encoders
// usually write, and leaves rare, invalid and small ones to another decoder.
//
// # Literals
//
// A block's literals are four streams of Huffman codes, each of which waits for its own
// look-ups. To fill the wait, the eight streams of two blocks are decoded in turns.
//
// # Sequences
//
// A step decodes and executes one sequence: its three codes, the next states and both copies, without
// branches that depend on data. It always copies 32 bytes of literals and 64 of the match; the next
// step overwrites the surplus. A shuffle takes repeated offsets from a register. More literals,
// longer matches and offsets below 32 are out of line.
//
// # Why nothing outside of the slices is touched
//
//  1. The number of rounds of literals is limited such that no stream reads before its start.
//     Rounds write to a buffer, from which the literals are copied.
//  2. A step begins at least 96 bytes before the output's end, and its longer copies end before these.
//     It begins at least 32 bits after the start of a block's sequences, and loads from up to 12 bytes
//     before its position, where the headers are.
//  3. A copy's source is compared with the output's start, and lies before the output's position.
//     The buffer of literals has room for what is read after the last one.
//  4. Code in Go that checks everything does the rest: the last sequences of a block, sequences
//     that do not fit, and offsets that are wrong or 0.
package zstd

// MinSize: smaller frames are left to another decoder, which needs no more time for them.
const MinSize = 32 << 10
