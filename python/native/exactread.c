/* Reads the parts of an exact payload, and refuses every encoding but the one
 * that codec/FORMAT.md gives a set. */
#include "native.h"

static const char too_short[] = "too short";

/* A cursor over a part. */
typedef struct { const uint8_t *p, *end; } bytes;

BJ_INLINE size_t left(const bytes *b) { return (size_t)(b->end - b->p); }

/* Bits are taken from the low end of word, which holds the next count. */
typedef struct {
    bytes in;
    uint64_t word;
    unsigned count;
} bit_reader;

/* refill makes count at least 57, or as many as are left. */
BJ_INLINE void refill(bit_reader *r) {
    if (left(&r->in) >= 8) {
        unsigned n = (64 - r->count) / 8;
        if (n == 0)
            return;
        uint64_t more = bj_u64(r->in.p);
        if (n < 8)
            more &= (UINT64_C(1) << 8 * n) - 1;
        r->word |= more << r->count; /* count is below 57 */
        r->in.p += n;
        r->count += 8 * n;
        return;
    }
    while (r->count <= 56 && r->in.p < r->in.end) {
        r->word |= (uint64_t)*r->in.p++ << r->count;
        r->count += 8;
    }
}

BJ_INLINE uint64_t low_bits(uint64_t v, unsigned n) { return n == 64 ? v : v & ((UINT64_C(1) << n) - 1); }

BJ_INLINE void skip(bit_reader *r, unsigned n) { /* n < 64 */
    r->word >>= n;
    r->count -= n;
}

/* take reads n bits, up to 64, in two steps because a refill gives at least 57. */
BJ_INLINE int take(bit_reader *r, unsigned n, uint64_t *v) {
    unsigned first = n < 32 ? n : 32;
    refill(r);
    if (r->count < first)
        return 0;
    *v = low_bits(r->word, first);
    skip(r, first);
    if (n == first)
        return 1;
    refill(r);
    if (r->count < n - first)
        return 0;
    *v |= low_bits(r->word, n - first) << first;
    skip(r, n - first);
    return 1;
}

static const char *read_gap(bit_reader *r, unsigned k, uint64_t *gap) {
    refill(r);
    unsigned q = r->word == 0 ? 64 : (unsigned)__builtin_ctzll(r->word);
    if (q >= r->count)
        return r->count > 32 ? "code of a gap: more than 32 zero bits" : too_short;
    if (q > 32)
        return "code of a gap: more than 32 zero bits";
    skip(r, q + 1);
    uint64_t low = 0;
    if (!take(r, q == 32 ? 64 : k, &low))
        return too_short;
    if (q == 32) {
        if (k == 64 || low >> k < 32)
            return "code of a gap: 64 bits where fewer are enough";
        *gap = low;
        return NULL;
    }
    if (q != 0 && (k == 64 || q > UINT64_MAX >> k))
        return "gap: a member above 2^64-1";
    *gap = (q == 0 ? 0 : (uint64_t)q << k) | low;
    return NULL;
}

static unsigned rice_parameter(const uint64_t *gaps, size_t n) {
    size_t below[65] = {0}; /* by the number of bits that a gap takes */
    for (size_t i = 0; i < n; i++)
        below[gaps[i] == 0 ? 0 : 64 - __builtin_clzll(gaps[i])]++;
    unsigned k = 0;
    for (size_t sum = below[0]; 8 * sum < 3 * n; sum += below[k])
        k++;
    return k;
}

/* A block of consecutive members, two or more, has this k, and no bits. */
#define RUN 255

static const char *read_run(bytes *in, size_t n, uint64_t *values) {
    if (n < 2 || values[0] > UINT64_MAX - (n - 1))
        return "consecutive members: want two or more, below 2^64";
    for (size_t i = 1; i < n; i++)
        values[i] = values[0] + i;
    in->p += 9;
    return NULL;
}

/* read_block reads a block of n members into values; values + BJ_PIECE has room
 * for their gaps. */
static const char *read_block(bytes *in, size_t n, uint64_t *values, uint64_t *gaps) {
    uint64_t v = values[0];
    unsigned k = in->p[8];
    if (k == RUN)
        return read_run(in, n, values);
    if (k > 64)
        return "Rice parameter: want at most 64, or 255";
    bit_reader r = {{in->p + 9, in->end}, 0, 0};
    for (size_t i = 1; i < n; i++) {
        const char *wrong = read_gap(&r, k, &gaps[i - 1]);
        if (wrong != NULL)
            return wrong;
        if (gaps[i - 1] >= UINT64_MAX - v)
            return "gap: a member above 2^64-1";
        v += gaps[i - 1] + 1;
        values[i] = v;
    }
    if (n > 1 && v - values[0] == n - 1)
        return "Rice parameter: want 255 for consecutive members";
    if (k != rice_parameter(gaps, n - 1))
        return "Rice parameter: want the one that the gaps give";
    in->p = r.in.p - r.count / 8; /* whole bytes that were read ahead */
    if (low_bits(r.word, r.count % 8) != 0)
        return "padding after a block: want zero bits";
    return NULL;
}

const char *bj_read_members(const uint8_t *p, size_t size, int negative, uint64_t *room, bj_sink sink, void *ctx) {
    bytes in = {p, p + size};
    if (left(&in) < 8)
        return too_short;
    uint64_t members = bj_u64(in.p), last = 0;
    in.p += 8;
    for (int first = 1; members > 0; first = 0) {
        size_t n = members < BJ_PIECE ? (size_t)members : BJ_PIECE;
        if (left(&in) < 9)
            return too_short;
        room[0] = bj_u64(in.p);
        if (!first && room[0] <= last)
            return "first member of a block: want it above the last one of the previous block";
        if (negative && room[0] >> 63 == 0)
            return "natural number among the negative ones";
        const char *wrong = read_block(&in, n, room, room + BJ_PIECE);
        if (wrong != NULL)
            return wrong;
        sink(ctx, room, n);
        last = room[n - 1];
        members -= n;
    }
    return left(&in) == 0 ? NULL : "bytes behind the members";
}
