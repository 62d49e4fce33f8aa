/* Probes of whole Arrow columns, a batch of rows at a time: keys, hashes, lookups,
 * and then the rows that are not NULL. */
#include "native.h"

/* bits_at returns n bits, 1 to 64, of a bitmap from a position on. It reads no
 * byte without one of them. */
static uint64_t bits_at(const uint8_t *bitmap, int64_t at, size_t n) {
    const uint8_t *p = bitmap + at / 8;
    size_t shift = (size_t)(at % 8), bytes = (shift + n + 7) / 8;
    uint64_t v = 0;
    memcpy(&v, p, bytes < 8 ? bytes : 8);
    v >>= shift;
    if (bytes > 8)
        v |= (uint64_t)p[8] << (64 - shift);
    return n == 64 ? v : v & ((UINT64_C(1) << n) - 1);
}

BJ_INLINE int is_valid(const bj_rows *r, int64_t row) {
    int64_t at = r->validity_offset + row;
    return r->validity == NULL || (r->validity[at / 8] >> at % 8 & 1);
}

/* store writes the results of n rows from a multiple of BJ_BATCH on. */
static void store(const bj_rows *r, int64_t from, size_t n, uint64_t *found) {
    for (size_t at = 0; r->validity != NULL && at < n; at += 64)
        found[at / 64] &= bits_at(r->validity, r->validity_offset + from + (int64_t)at, n - at < 64 ? n - at : 64);
    memcpy(r->out + from / 8, found, (n + 7) / 8);
}

#define WIDEN(type)                                                \
    for (size_t i = 0; i < n; i++) {                               \
        type v;                                                    \
        memcpy(&v, p + i * sizeof v, sizeof v);                    \
        keys[i] = (uint64_t)(int64_t)v;                            \
    }                                                              \
    return

static void widen(const uint8_t *p, int width, int is_signed, size_t n, uint64_t *keys) {
    switch (is_signed ? -width : width) {
    case -1: WIDEN(int8_t);
    case -2: WIDEN(int16_t);
    case -4: WIDEN(int32_t);
    case 1: WIDEN(uint8_t);
    case 2: WIDEN(uint16_t);
    case 4: WIDEN(uint32_t);
    default: memcpy(keys, p, 8 * n);
    }
}

BJ_INLINE size_t batch_at(const bj_rows *r, int64_t from) {
    return r->rows - from < BJ_BATCH ? (size_t)(r->rows - from) : BJ_BATCH;
}

void bj_probe_ints(const bj_set *s, const bj_rows *r, const uint8_t *values, int width, int is_signed) {
    uint64_t keys[BJ_BATCH], hashes[BJ_BATCH], found[BJ_WORDS];
    for (int64_t from = 0; from < r->rows; from += BJ_BATCH) {
        size_t n = batch_at(r, from);
        const uint64_t *of = keys;
        if (width == 8 && (uintptr_t)values % 8 == 0)
            of = (const uint64_t *)(values + from * width);
        else
            widen(values + from * width, width, is_signed, n, keys);
        if (s->kind == BJ_EXACT) {
            bj_exact_probe(s, of, n, is_signed, found);
        } else {
            bj_hash_ints(s, of, n, hashes);
            bj_bloom_probe(s, hashes, n, found);
        }
        store(r, from, n, found);
    }
}

/* Values of variable size. A NULL is not looked at, because what its place holds
 * is undefined. */

typedef struct {
    const uint8_t *at;
    size_t size;
} value;

#define PROBE(get)                                                                              \
    uint64_t hashes[BJ_BATCH], found[BJ_WORDS];                                                 \
    bj_scratch room = {NULL, 0};                                                                \
    int failed = 0;                                                                             \
    for (int64_t from = 0; from < r->rows && !failed; from += BJ_BATCH) {                       \
        size_t n = batch_at(r, from);                                                           \
        for (size_t i = 0; i < n; i++) {                                                        \
            int64_t row = from + (int64_t)i;                                                    \
            hashes[i] = 0;                                                                      \
            if (is_valid(r, row)) {                                                             \
                value v = get;                                                                  \
                hashes[i] = bj_hash_text(s, v.at, v.size, &room, &failed);                      \
            }                                                                                   \
        }                                                                                       \
        bj_bloom_probe(s, hashes, n, found);                                                    \
        store(r, from, n, found);                                                               \
    }                                                                                           \
    bj_free(&room);                                                                             \
    return 1 - failed

BJ_INLINE value between32(const uint8_t *offsets, const uint8_t *data, int64_t row) {
    uint32_t from = bj_u32(offsets + 4 * row), to = bj_u32(offsets + 4 * row + 4);
    return (value){data + from, to - from};
}

BJ_INLINE value between64(const uint8_t *offsets, const uint8_t *data, int64_t row) {
    uint64_t from = bj_u64(offsets + 8 * row), to = bj_u64(offsets + 8 * row + 8);
    return (value){data + from, (size_t)(to - from)};
}

static int probe_offsets32(const bj_set *s, const bj_rows *r, const uint8_t *offsets, const uint8_t *data) {
    PROBE(between32(offsets, data, row));
}

static int probe_offsets64(const bj_set *s, const bj_rows *r, const uint8_t *offsets, const uint8_t *data) {
    PROBE(between64(offsets, data, row));
}

int bj_probe_offsets(const bj_set *s, const bj_rows *r, const uint8_t *offsets, int width, const uint8_t *data) {
    return (width == 4 ? probe_offsets32 : probe_offsets64)(s, r, offsets, data);
}

int bj_probe_fixed(const bj_set *s, const bj_rows *r, const uint8_t *data, size_t width) {
    PROBE(((value){data + (size_t)row * width, width}));
}

/* A view has 16 bytes: the size, and up to 12 bytes of data; or else a prefix,
 * the number of a buffer, and the offset there. */
BJ_INLINE value viewed(const uint8_t *views, const uint8_t *const *buffers, int64_t row) {
    const uint8_t *v = views + 16 * row;
    uint32_t size = bj_u32(v);
    if (size <= 12)
        return (value){v + 4, size};
    return (value){buffers[bj_u32(v + 8)] + bj_u32(v + 12), size};
}

int bj_probe_views(const bj_set *s, const bj_rows *r, const uint8_t *views, const uint8_t *const *buffers) {
    PROBE(viewed(views, buffers, row));
}
