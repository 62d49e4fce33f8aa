/* The parts of bloomjoin._native. Only module.c knows Python; everything else
 * is C11 over addresses and lengths, without allocation unless its comment says
 * so, without global state except the processor's features, and without threads.
 * codec/FORMAT.md specifies the bytes that are read here. */
#ifndef BLOOMJOIN_NATIVE_H
#define BLOOMJOIN_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "bloomjoin._native reads little-endian memory in place"
#endif

#if defined(__x86_64__) || defined(_M_X64)
#define BJ_X86 1
#else
#define BJ_X86 0
#endif

#define BJ_INLINE static inline __attribute__((always_inline))

/* Unaligned loads: Arrow buffers from elsewhere need not be aligned. */
BJ_INLINE uint64_t bj_u64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
BJ_INLINE uint32_t bj_u32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
BJ_INLINE uint16_t bj_u16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }

/* cpu.c */

enum { BJ_AVX2 = 1, BJ_AVX512 = 2 };

/* bj_cpu returns the features that the processor and the system support. It asks
 * anew each time, which is slow in a virtual machine. */
int bj_cpu(void);

/* A set that is probed. */

enum { BJ_BLOOM256 = 1, BJ_BLOOM512 = 2, BJ_EXACT = 3 };
enum { BJ_XXH3 = 1, BJ_XXH64 = 2 };
enum { BJ_TRIM = 1, BJ_LOWER = 2, BJ_UNICODE = 32 };

typedef struct {
    int kind;
    const uint8_t *data;     /* Bloom: the blocks; exact: the index of the natural numbers */
    const uint8_t *second;   /* exact: the index of the negative numbers; Bloom: that of hashes that do not pass, or NULL */
    uint64_t blocks;         /* Bloom: their number */
    int hash;                /* Bloom: of the keys */
    uint64_t seed;
    int rule;                /* what is done to text before it is hashed */
    int cpu;                 /* features to use; 0 is the portable code */
} bj_set;

/* BJ_BATCH keys are hashed and looked up at a time. Results are bits of BJ_WORDS
 * words, so that nothing branches on them. */
#define BJ_BATCH 1024
#define BJ_WORDS (BJ_BATCH / 64)

/* hash.c */

/* bj_hash_ints writes the hash of each value's eight bytes. */
void bj_hash_ints(const bj_set *s, const uint64_t *values, size_t n, uint64_t *hashes);

/* bj_scratch holds text that a rule has changed. Zero it first; bj_free it last. */
typedef struct { uint8_t *data; size_t size; } bj_scratch;
void bj_free(bj_scratch *room);

/* bj_hash_text returns the hash of a text or binary value under the set's rule.
 * It sets *failed to 1 if there is no memory for a long value, and to 2 if the value
 * is not ASCII and the rule is of Unicode: only the command has the tables. */
uint64_t bj_hash_text(const bj_set *s, const uint8_t *p, size_t n, bj_scratch *room, int *failed);

uint64_t bj_xxh3(const uint8_t *p, size_t n, uint64_t seed);
uint64_t bj_xxh64(const uint8_t *p, size_t n);

/* bloom.c */

/* bj_bloom_probe sets bit i of found if hash i may be in the filter and is no
 * exception, and clears it otherwise. n is at most BJ_BATCH. */
void bj_bloom_probe(const bj_set *s, const uint64_t *hashes, size_t n, uint64_t *found);

/* bj_bloom_fpr returns the false-positive rate that follows from the bits: the
 * product of the fill of a block's lanes, averaged over the blocks. */
double bj_bloom_fpr(const bj_set *s);

/* bj_counters writes the bits that counters of four bits stand for: size / 4 bytes.
 * It returns the number of saturated counters. size is a multiple of 8. */
uint64_t bj_counters(const uint8_t *counters, size_t size, uint8_t *bits);

/* exactread.c: the members of one part of an exact payload. */

#define BJ_PIECE 65536

/* bj_sink takes some of the members, ascending. */
typedef void (*bj_sink)(void *ctx, const uint64_t *values, size_t n);

/* bj_read_members passes all members of a part to a sink, at most BJ_PIECE at a time, in
 * room (space for 2 * BJ_PIECE values). It returns NULL, or what is wrong with the part;
 * some members may have been passed on by then. */
const char *bj_read_members(const uint8_t *p, size_t size, int negative, uint64_t *room, bj_sink sink, void *ctx);

/* exactsize.c: what the members of a part come to. */

typedef struct {
    uint64_t members, first, last;
    uint64_t words; /* number of 64-bit words of a flat bitmap that are not zero */
} bj_measure;

/* bj_measure_part reads a part. It allocates 1 MiB while it runs. It returns NULL
 * or what is wrong. */
const char *bj_measure_part(const uint8_t *p, size_t size, int negative, bj_measure *m);

/* exactindex.c: one part in a form that is fast to search. */

enum { BJ_FLAT = 1, BJ_TABLE = 2 };

/* bj_index precedes the words of a flat bitmap or the buckets of a table. */
typedef struct {
    uint64_t kind;
    uint64_t base;  /* flat: the value of the first bit, a multiple of 64 */
    uint64_t count; /* number of words or buckets */
    uint64_t unused[5];
} bj_index;

/* bj_index_bytes returns the size of an index: header, and words or buckets. */
uint64_t bj_index_bytes(int kind, const bj_measure *m);

/* bj_index_build makes an index of a part that bj_measure_part has accepted, in
 * zeroed memory of bj_index_bytes, aligned to 64. It allocates 1 MiB while it
 * runs. */
const char *bj_index_build(uint8_t *index, int kind, const bj_measure *m, const uint8_t *p, size_t size, int negative);

/* bj_index_probe sets bit i of found if value i is in an index, and clears it otherwise. */
void bj_index_probe(const uint8_t *index, const uint64_t *values, size_t n, uint64_t *found);

/* bj_exact_probe sets bit i of found if value i is a member, and clears it
 * otherwise. Values are int64 in two's complement if is_signed, else uint64. */
void bj_exact_probe(const bj_set *s, const uint64_t *values, size_t n, int is_signed, uint64_t *found);

/* probe.c: whole Arrow columns. */

typedef struct {
    int64_t rows;
    const uint8_t *validity;  /* NULL: no NULLs */
    int64_t validity_offset;  /* bits */
    uint8_t *out;             /* one bit a row, (rows + 7) / 8 bytes */
} bj_rows;

void bj_probe_ints(const bj_set *s, const bj_rows *r, const uint8_t *values, int width, int is_signed);

/* These return 1, or, under a rule, 0 if there is no memory for a long value, and -1 if
 * a value needs the command; see bj_hash_text. */
int bj_probe_offsets(const bj_set *s, const bj_rows *r, const uint8_t *offsets, int width, const uint8_t *data);
int bj_probe_fixed(const bj_set *s, const bj_rows *r, const uint8_t *data, size_t width);
int bj_probe_views(const bj_set *s, const bj_rows *r, const uint8_t *views, const uint8_t *const *buffers);

#endif
