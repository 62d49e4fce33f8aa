/* Hashes of keys. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "native.h"

#include <stdlib.h>

uint64_t bj_xxh3(const uint8_t *p, size_t n, uint64_t seed) { return XXH3_64bits_withSeed(p, n, seed); }
uint64_t bj_xxh64(const uint8_t *p, size_t n) { return XXH64(p, n, 0); }

/* XXH3 of eight bytes, spelled out so that compilers vectorise the loop:
 * value and seed meet a constant of the secret, and two multiplications mix. */
BJ_INLINE uint64_t mix8(uint64_t v, uint64_t flip) {
    uint64_t h = (v << 32 | v >> 32) ^ flip;
    h ^= (h << 49 | h >> 15) ^ (h << 24 | h >> 40);
    h *= 0x9fb21c651e98df25u;
    h ^= (h >> 35) + 8;
    h *= 0x9fb21c651e98df25u;
    return h ^ h >> 28;
}

/* flip_of returns what the seed and the secret (its bytes 8 to 23) come to. */
static uint64_t flip_of(uint64_t seed) {
    uint64_t swapped = (uint64_t)__builtin_bswap32((uint32_t)seed) << 32;
    return (0x1cad21f72c81017cu ^ 0xdb979083e96dd4deu) - (seed ^ swapped);
}

#define LOOP(name, ...)                                                                           \
    __VA_ARGS__ static void name(const uint64_t *values, size_t n, uint64_t flip, uint64_t *hashes) { \
        for (size_t i = 0; i < n; i++)                                                            \
            hashes[i] = mix8(values[i], flip);                                                    \
    }

LOOP(mix_portable, )
#if BJ_X86
LOOP(mix_avx2, __attribute__((target("avx2"))))
LOOP(mix_avx512, __attribute__((target("avx2,avx512f,avx512dq,avx512vl"))))
#endif

void bj_hash_ints(const bj_set *s, const uint64_t *values, size_t n, uint64_t *hashes) {
    if (s->hash == BJ_XXH64) {
        for (size_t i = 0; i < n; i++)
            hashes[i] = XXH64(&values[i], 8, 0);
        return;
    }
    uint64_t flip = flip_of(s->seed);
#if BJ_X86
    if (s->cpu & BJ_AVX512) {
        mix_avx512(values, n, flip, hashes);
        return;
    }
    if (s->cpu & BJ_AVX2) {
        mix_avx2(values, n, flip, hashes);
        return;
    }
#endif
    mix_portable(values, n, flip, hashes);
}

void bj_free(bj_scratch *room) {
    free(room->data);
    room->data = NULL;
    room->size = 0;
}

static int is_space(uint8_t c) { return c == 0x20 || (c >= 0x09 && c <= 0x0d); }

/* lowered returns p in lower case, or NULL if there is no memory. */
static const uint8_t *lowered(const uint8_t *p, size_t n, bj_scratch *room) {
    if (room->size < n || room->data == NULL) {
        size_t size = n < 256 ? 256 : n + n / 2;
        uint8_t *data = realloc(room->data, size);
        if (data == NULL)
            return NULL;
        room->data = data;
        room->size = size;
    }
    for (size_t i = 0; i < n; i++)
        room->data[i] = p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 0x20 : p[i];
    return room->data;
}

static int is_ascii(const uint8_t *p, size_t n) {
    uint64_t high = 0;
    for (; n >= 8; p += 8, n -= 8)
        high |= bj_u64(p);
    for (; n > 0; p++, n--)
        high |= *p;
    return (high & UINT64_C(0x8080808080808080)) == 0;
}

uint64_t bj_hash_text(const bj_set *s, const uint8_t *p, size_t n, bj_scratch *room, int *failed) {
    if (s->rule & BJ_UNICODE && !is_ascii(p, n)) {
        *failed = 2;
        return 0;
    }
    if (s->rule & BJ_TRIM) {
        while (n > 0 && is_space(p[0])) p++, n--;
        while (n > 0 && is_space(p[n - 1])) n--;
    }
    if (s->rule & BJ_LOWER) {
        if ((p = lowered(p, n, room)) == NULL) {
            *failed = 1;
            return 0;
        }
    }
    if (s->hash == BJ_XXH64)
        return XXH64(p, n, 0);
    return XXH3_64bits_withSeed(p, n, s->seed);
}
