/* Probes of split-block Bloom filters. A probe tests all eight bits of a key
 * without a branch: most misses are in a random lane, which a branch predictor
 * cannot learn. */
#include "native.h"

#if BJ_X86
#include <immintrin.h>
#endif

static const uint32_t salts[8] = {
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
};

#define SPREAD 0x9e3779b97f4a7c15u

/* The block of the key so many positions later is prefetched. It costs nothing
 * where the filter is in a cache. */
#define AHEAD 32

BJ_INLINE uint64_t block_of(uint64_t hash, uint64_t blocks) { return ((hash >> 32) * blocks) >> 32; }

BJ_INLINE uint64_t has256(const uint8_t *block, uint64_t hash) {
    uint32_t x = (uint32_t)hash, all = 1;
    for (int j = 0; j < 8; j++)
        all &= bj_u32(block + 4 * j) >> (x * salts[j] >> 27);
    return all;
}

BJ_INLINE uint64_t has512(const uint8_t *block, uint64_t hash) {
    uint64_t x = hash * SPREAD, all = 1;
    for (int j = 0; j < 8; j++)
        all &= bj_u64(block + 8 * j) >> (x >> (58 - 6 * j) & 63);
    return all;
}

#if BJ_X86
__attribute__((target("avx2"))) BJ_INLINE uint64_t has256_avx2(const uint8_t *block, uint64_t hash) {
    __m256i salt = _mm256_loadu_si256((const __m256i *)salts);
    __m256i bit = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_set1_epi32((int)hash), salt), 27);
    __m256i mask = _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
    return (uint64_t)_mm256_testc_si256(_mm256_loadu_si256((const __m256i *)block), mask);
}

__attribute__((target("avx2"))) BJ_INLINE uint64_t has512_avx2(const uint8_t *block, uint64_t hash) {
    const __m256i one = _mm256_set1_epi64x(1), low = _mm256_set1_epi64x(63);
    __m256i x = _mm256_set1_epi64x((long long)(hash * SPREAD));
    __m256i bit0 = _mm256_and_si256(_mm256_srlv_epi64(x, _mm256_setr_epi64x(58, 52, 46, 40)), low);
    __m256i bit4 = _mm256_and_si256(_mm256_srlv_epi64(x, _mm256_setr_epi64x(34, 28, 22, 16)), low);
    __m256i clear0 = _mm256_andnot_si256(_mm256_loadu_si256((const __m256i *)block), _mm256_sllv_epi64(one, bit0));
    __m256i clear4 = _mm256_andnot_si256(_mm256_loadu_si256((const __m256i *)(block + 32)), _mm256_sllv_epi64(one, bit4));
    __m256i clear = _mm256_or_si256(clear0, clear4);
    return (uint64_t)_mm256_testz_si256(clear, clear);
}
#endif

/* place computes the offsets of the blocks of hashes, and of AHEAD more that are
 * only prefetched. */
BJ_INLINE void place(uint64_t blocks, uint64_t bytes, const uint64_t *h, size_t n, uint64_t *offsets) {
    for (size_t i = 0; i < n; i++)
        offsets[i] = bytes * block_of(h[i], blocks);
    memset(offsets + n, 0, AHEAD * sizeof *offsets);
}

/* A loop over at most BJ_BATCH hashes, 64 of which give a word of answers. */
#define LOOP(name, bytes, has, ...)                                                                       \
    __VA_ARGS__ static void name(const uint8_t *data, uint64_t blocks, const uint64_t *h, size_t n, uint64_t *found) { \
        uint64_t offsets[BJ_BATCH + AHEAD];                                                               \
        place(blocks, bytes, h, n, offsets);                                                              \
        for (size_t i = 0; i < AHEAD; i++)                                                                \
            __builtin_prefetch(data + offsets[i]);                                                        \
        for (size_t from = 0; from < n; from += 64) {                                                     \
            const uint64_t *at = offsets + from;                                                          \
            size_t some = n - from < 64 ? n - from : 64;                                                  \
            uint64_t word = 0;                                                                            \
            for (size_t i = 0; i < some; i++) {                                                           \
                __builtin_prefetch(data + at[i + AHEAD]);                                                 \
                word |= has(data + at[i], h[from + i]) << i;                                              \
            }                                                                                             \
            found[from / 64] = word;                                                                      \
        }                                                                                                 \
    }

LOOP(probe256, 32, has256, )
LOOP(probe512, 64, has512, )
#if BJ_X86
LOOP(probe256_avx2, 32, has256_avx2, __attribute__((target("avx2"))))
LOOP(probe512_avx2, 64, has512_avx2, __attribute__((target("avx2"))))
#endif

static void probe_bits(const bj_set *s, const uint64_t *hashes, size_t n, uint64_t *found) {
    int wide = s->kind == BJ_BLOOM512;
#if BJ_X86
    if (s->cpu & BJ_AVX2) {
        (wide ? probe512_avx2 : probe256_avx2)(s->data, s->blocks, hashes, n, found);
        return;
    }
#endif
    (wide ? probe512 : probe256)(s->data, s->blocks, hashes, n, found);
}

void bj_bloom_probe(const bj_set *s, const uint64_t *hashes, size_t n, uint64_t *found) {
    probe_bits(s, hashes, n, found);
    if (s->second == NULL)
        return;
    uint64_t excepted[BJ_WORDS];
    bj_index_probe(s->second, hashes, n, excepted);
    for (size_t w = 0; w < (n + 63) / 64; w++)
        found[w] &= ~excepted[w];
}

double bj_bloom_fpr(const bj_set *s) {
    double sum = 0;
    for (uint64_t b = 0; b < s->blocks; b++) {
        uint64_t product = 1;
        for (int j = 0; j < 8; j++)
            product *= s->kind == BJ_BLOOM512 ? (uint64_t)__builtin_popcountll(bj_u64(s->data + 64 * b + 8 * j))
                                              : (uint64_t)__builtin_popcount(bj_u32(s->data + 32 * b + 4 * j));
        sum += (double)product;
    }
    /* The lanes have 32 or 64 bits: 2^40 or 2^48 in all. */
    return sum / (s->kind == BJ_BLOOM512 ? 0x1p48 : 0x1p40) / (double)s->blocks;
}

#define LOWEST 0x1111111111111111u /* bits of the counters of a word */

uint64_t bj_counters(const uint8_t *counters, size_t size, uint8_t *bits) {
    uint64_t saturated = 0;
    for (size_t at = 0; at < size; at += 8) {
        uint64_t x = bj_u64(counters + at);
        saturated += (uint64_t)__builtin_popcountll(x & x >> 1 & x >> 2 & x >> 3 & LOWEST);
        x = (x | x >> 1 | x >> 2 | x >> 3) & LOWEST;
        x = (x | x >> 3) & 0x0303030303030303u; /* bits of two counters in each byte */
        x = (x | x >> 6) & 0x000f000f000f000fu;
        x = (x | x >> 12) & 0x000000ff000000ffu;
        uint16_t some = (uint16_t)(x | x >> 24);
        memcpy(bits + at / 4, &some, sizeof some);
    }
    return saturated;
}
