/* Indexes of exact sets, and probes of them. A part whose members lie close
 * together is a flat bitmap from the smallest to the largest: a probe is one load.
 * Others are a hash table of that bitmap's words that are not zero. */
#include "native.h"

#include <stdlib.h>


/* A bucket is a cache line of four entries, filled from the front. VACANT is not
 * a key: keys are values / 64. The top bit of the last key marks a bucket that
 * had to refuse an entry; the entry is in one of the next buckets. */
typedef struct { uint64_t keys[4], words[4]; } bucket;

#define VACANT (UINT64_C(1) << 62)
#define OVERFLOWED (UINT64_C(1) << 63)

/* Two entries a bucket on average, so there is always room. */
static uint64_t buckets_for(uint64_t words) { return words / 2 + 1; }

BJ_INLINE uint64_t slot_of(uint64_t key, uint64_t buckets) {
    unsigned __int128 m = (unsigned __int128)key * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = (uint64_t)m ^ (uint64_t)(m >> 64);
    return (uint64_t)((unsigned __int128)mixed * buckets >> 64);
}

/* flat_words counts one word more than the members need: it is zero, and stands
 * for all values outside. */
static uint64_t flat_words(const bj_measure *m) { return (m->last - (m->first & ~UINT64_C(63))) / 64 + 2; }

uint64_t bj_index_bytes(int kind, const bj_measure *m) {
    if (m->members == 0)
        return sizeof(bj_index) + 8;
    if (kind == BJ_FLAT)
        return sizeof(bj_index) + 8 * flat_words(m);
    return sizeof(bj_index) + sizeof(bucket) * buckets_for(m->words);
}

static void fill_flat(void *ctx, const uint64_t *values, size_t n) {
    bj_index *x = ctx;
    uint64_t *words = (uint64_t *)(x + 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = values[i] - x->base;
        words[at / 64] |= UINT64_C(1) << at % 64;
    }
}

/* The word that is being collected for a table. */
typedef struct {
    bj_index *x;
    uint64_t key, word;
} filler;

static void put(filler *f) {
    if (f->word == 0)
        return;
    bucket *buckets = (bucket *)(f->x + 1);
    for (uint64_t at = slot_of(f->key, f->x->count);; at = at + 1 == f->x->count ? 0 : at + 1) {
        bucket *b = &buckets[at];
        for (int i = 0; i < 4; i++) {
            if (b->keys[i] == VACANT) {
                b->keys[i] = f->key;
                b->words[i] = f->word;
                return;
            }
        }
        b->keys[3] |= OVERFLOWED;
    }
}

static void fill_table(void *ctx, const uint64_t *values, size_t n) {
    filler *f = ctx;
    for (size_t i = 0; i < n; i++) {
        if (values[i] / 64 != f->key) {
            put(f);
            f->key = values[i] / 64;
            f->word = 0;
        }
        f->word |= UINT64_C(1) << values[i] % 64;
    }
}

const char *bj_index_build(uint8_t *index, int kind, const bj_measure *m, const uint8_t *p, size_t size, int negative) {
    bj_index *x = (bj_index *)index;
    x->kind = BJ_FLAT;
    x->count = 1;
    if (m->members == 0)
        return NULL;
    uint64_t *room = malloc(2 * BJ_PIECE * sizeof *room);
    if (room == NULL)
        return "no memory";
    const char *wrong;
    x->kind = (uint64_t)kind;
    if (kind == BJ_FLAT) {
        x->base = m->first & ~UINT64_C(63);
        x->count = flat_words(m);
        wrong = bj_read_members(p, size, negative, room, fill_flat, x);
    } else {
        x->count = buckets_for(m->words);
        bucket *buckets = (bucket *)(x + 1);
        for (uint64_t i = 0; i < x->count; i++)
            for (int j = 0; j < 4; j++)
                buckets[i].keys[j] = VACANT;
        filler f = {x, VACANT, 0};
        wrong = bj_read_members(p, size, negative, room, fill_table, &f);
        put(&f);
    }
    free(room);
    return wrong;
}

/* Both probes compute the places of a batch first, AHEAD more than there are, and
 * prefetch while they test: the cache misses of many values overlap. */
#define AHEAD 32

static void probe_flat(const bj_index *x, const uint64_t *values, size_t n, uint64_t *found) {
    const uint64_t *words = (const uint64_t *)(x + 1);
    uint64_t places[BJ_BATCH + AHEAD], base = x->base, last = x->count - 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t at = (values[i] - base) / 64;
        places[i] = at < last ? at : last;
    }
    memset(places + n, 0, AHEAD * sizeof *places);
    for (size_t from = 0; from < n; from += 64) {
        size_t some = n - from < 64 ? n - from : 64;
        uint64_t word = 0;
        for (size_t i = 0; i < some; i++) {
            __builtin_prefetch(words + places[from + i + AHEAD]);
            word |= (words[places[from + i]] >> values[from + i] % 64 & 1) << i; /* base is a multiple of 64 */
        }
        found[from / 64] = word;
    }
}

/* search_on looks a key up in the buckets after its first one. */
static uint64_t search_on(const bj_index *x, uint64_t key) {
    const bucket *buckets = (const bucket *)(x + 1);
    for (uint64_t at = slot_of(key, x->count);; at = at + 1 == x->count ? 0 : at + 1) {
        const bucket *b = &buckets[at];
        for (int i = 0; i < 4; i++)
            if ((b->keys[i] & ~OVERFLOWED) == key)
                return b->words[i];
        if (!(b->keys[3] & OVERFLOWED))
            return 0;
    }
}

/* find returns the word of a key if it is in the bucket, else 0. */
BJ_INLINE uint64_t find(const bucket *b, uint64_t key) {
    uint64_t w = b->words[0] & -(uint64_t)(b->keys[0] == key);
    w |= b->words[1] & -(uint64_t)(b->keys[1] == key);
    w |= b->words[2] & -(uint64_t)(b->keys[2] == key);
    return w | (b->words[3] & -(uint64_t)((b->keys[3] & ~OVERFLOWED) == key));
}

static void probe_table(const bj_index *x, const uint64_t *values, size_t n, uint64_t *found) {
    const bucket *buckets = (const bucket *)(x + 1);
    uint64_t places[BJ_BATCH + AHEAD];
    for (size_t i = 0; i < n; i++)
        places[i] = slot_of(values[i] / 64, x->count);
    memset(places + n, 0, AHEAD * sizeof *places);
    for (size_t i = 0; i < AHEAD; i++)
        __builtin_prefetch(&buckets[places[i]]);
    for (size_t from = 0; from < n; from += 64) {
        size_t some = n - from < 64 ? n - from : 64;
        uint64_t word = 0, more = 0;
        for (size_t i = 0; i < some; i++) {
            uint64_t v = values[from + i];
            const bucket *b = &buckets[places[from + i]];
            __builtin_prefetch(&buckets[places[from + i + AHEAD]]);
            word |= (find(b, v / 64) >> v % 64 & 1) << i;
            more |= b->keys[3] >> 63 << i;
        }
        /* Few values are not in their first bucket, which had to refuse others. */
        for (more &= ~word; more != 0; more &= more - 1) {
            int i = __builtin_ctzll(more);
            uint64_t v = values[from + i];
            word |= (search_on(x, v / 64) >> v % 64 & 1) << i;
        }
        found[from / 64] = word;
    }
}

void bj_index_probe(const uint8_t *index, const uint64_t *values, size_t n, uint64_t *found) {
    const bj_index *x = (const bj_index *)index;
    (x->kind == BJ_FLAT ? probe_flat : probe_table)(x, values, n, found);
}

void bj_exact_probe(const bj_set *s, const uint64_t *values, size_t n, int is_signed, uint64_t *found) {
    uint64_t signs[BJ_WORDS] = {0}, any = 0, all = 1;
    if (is_signed) {
        for (size_t i = 0; i < n; i++) {
            signs[i / 64] |= values[i] >> 63 << i % 64;
            any |= values[i] >> 63;
            all &= values[i] >> 63;
        }
    } else {
        all = 0;
    }
    if (!any) {
        bj_index_probe(s->data, values, n, found);
        return;
    }
    if (all) {
        bj_index_probe(s->second, values, n, found);
        return;
    }
    uint64_t below[BJ_WORDS];
    bj_index_probe(s->data, values, n, found);
    bj_index_probe(s->second, values, n, below);
    for (size_t w = 0; w < (n + 63) / 64; w++)
        found[w] = (found[w] & ~signs[w]) | (below[w] & signs[w]);
}
