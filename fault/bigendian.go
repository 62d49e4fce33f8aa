//go:build armbe || arm64be || m68k || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || shbe || sparc || sparc64

package fault

// Filters, Arrow buffers and Parquet pages are little-endian and are used in
// memory unchanged. All packages import this one, so none of them compiles for a
// machine that would misread them.
const _ = bloomjoin_needs_a_little_endian_machine
