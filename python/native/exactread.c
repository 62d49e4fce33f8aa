/* Reads the parts of an exact payload, and refuses every encoding but the one
 * that codec/FORMAT.md gives a set. */
#include "native.h"

static const char too_short[] = "too short";

/* A cursor over a part. */
typedef struct { const uint8_t *p, *end; } bytes;

BJ_INLINE size_t left(const bytes *b) { return (size_t)(b->end - b->p); }

/* Form 1. */

typedef struct {
    uint64_t *room;
    bj_sink sink;
    void *ctx;
} output;

/* run_pays reports whether a container of c members in r runs holds runs. */
static int run_pays(uint32_t c, uint32_t r) {
    uint32_t other = 2 * c < 8192 ? 2 * c : 8192;
    return 2 + 4 * r < other;
}

static const char *read_runs(bytes *in, uint64_t base, uint32_t members, const output *out) {
    if (left(in) < 2)
        return too_short;
    uint32_t runs = bj_u16(in->p), n = 0;
    in->p += 2;
    if (left(in) < 4 * (size_t)runs)
        return too_short;
    int64_t after = -1; /* the last value that may not begin a run */
    for (uint32_t i = 0; i < runs; i++, in->p += 4) {
        uint32_t first = bj_u16(in->p), more = bj_u16(in->p + 2);
        if ((int64_t)first <= after || first + more > 0xffff || n + more + 1 > members)
            return "run container: want ascending runs with gaps, of as many members as announced";
        for (uint32_t v = first; v <= first + more; v++)
            out->room[n++] = base | v;
        after = (int64_t)first + more + 1;
    }
    if (n != members)
        return "run container: want ascending runs with gaps, of as many members as announced";
    return run_pays(members, runs) ? NULL : "form of a container: runs are larger than the other form";
}

static const char *read_array(bytes *in, uint64_t base, uint32_t members, const output *out) {
    if (left(in) < 2 * (size_t)members)
        return too_short;
    uint32_t runs = 0;
    int64_t last = -2;
    for (uint32_t i = 0; i < members; i++, in->p += 2) {
        int64_t v = bj_u16(in->p);
        if (v <= last)
            return "array container: want ascending values";
        runs += v != last + 1;
        last = v;
        out->room[i] = base | (uint64_t)v;
    }
    return run_pays(members, runs) ? "form of a container: runs are smaller than an array" : NULL;
}

static const char *read_bitmap(bytes *in, uint64_t base, uint32_t members, const output *out) {
    if (left(in) < 8192)
        return too_short;
    uint32_t runs = 0, n = 0;
    uint64_t before = 0; /* the top bit of the word before, as bit 0 */
    for (uint32_t w = 0; w < 1024; w++, in->p += 8) {
        uint64_t word = bj_u64(in->p);
        runs += (uint32_t)__builtin_popcountll(word & ~(word << 1 | before));
        before = word >> 63;
        for (; word != 0; word &= word - 1)
            out->room[n++] = base | (w * 64u + (uint32_t)__builtin_ctzll(word));
    }
    if (n != members)
        return "bitmap container: want as many members as announced";
    return run_pays(members, runs) ? "form of a container: runs are smaller than a bitmap" : NULL;
}

/* The header of a 32-bit bitmap. */
typedef struct {
    uint32_t containers;
    const uint8_t *runs;    /* bits; NULL: no container holds runs */
    const uint8_t *about;   /* per container: bits 16 to 31, members - 1 */
    const uint8_t *offsets; /* NULL: there are none */
} heading;

static const char *read_heading(bytes *in, heading *h) {
    if (left(in) < 4)
        return too_short;
    uint32_t cookie = bj_u32(in->p);
    h->runs = h->offsets = NULL;
    in->p += 4;
    if (cookie == 12346) {
        if (left(in) < 4)
            return too_short;
        h->containers = bj_u32(in->p);
        in->p += 4;
        if (h->containers == 0 || h->containers > 65536)
            return "number of containers: want 1 to 65536";
    } else if ((cookie & 0xffff) == 12347) {
        h->containers = (cookie >> 16) + 1;
        size_t n = (h->containers + 7) / 8;
        if (left(in) < n)
            return too_short;
        h->runs = in->p;
        in->p += n;
        uint32_t any = 0;
        for (size_t i = 0; i < n; i++)
            any |= h->runs[i];
        if (any == 0)
            return "cookie: want 12346 without runs";
        if (h->containers % 8 != 0 && h->runs[n - 1] >> h->containers % 8 != 0)
            return "bits of containers with runs: want zeros after the last";
    } else {
        return "cookie: want 12346 or 12347";
    }
    size_t each = h->runs == NULL || h->containers >= 4 ? 8 : 4;
    if (left(in) < each * h->containers)
        return too_short;
    h->about = in->p;
    in->p += 4 * (size_t)h->containers;
    if (each == 8) {
        h->offsets = in->p;
        in->p += 4 * (size_t)h->containers;
    }
    return NULL;
}

static const char *read_bitmap32(bytes *in, uint64_t high, const output *out) {
    const uint8_t *start = in->p;
    heading h;
    const char *wrong = read_heading(in, &h);
    if (wrong != NULL)
        return wrong;
    int64_t last = -1;
    for (uint32_t i = 0; i < h.containers; i++) {
        uint32_t key = bj_u16(h.about + 4 * i), members = bj_u16(h.about + 4 * i + 2) + 1u;
        if ((int64_t)key <= last)
            return "containers: want ascending ones";
        last = key;
        if (h.offsets != NULL && bj_u32(h.offsets + 4 * i) != (uint64_t)(in->p - start))
            return "container offset: want that of the container";
        uint64_t base = high << 32 | (uint64_t)key << 16;
        if (h.runs != NULL && h.runs[i / 8] >> i % 8 & 1)
            wrong = read_runs(in, base, members, out);
        else if (members <= 4096)
            wrong = read_array(in, base, members, out);
        else
            wrong = read_bitmap(in, base, members, out);
        if (wrong != NULL)
            return wrong;
        out->sink(out->ctx, out->room, members);
    }
    return NULL;
}

const char *bj_read_roaring(const uint8_t *p, size_t size, int negative, uint64_t *room, bj_sink sink, void *ctx) {
    bytes in = {p, p + size};
    output out = {room, sink, ctx};
    if (left(&in) < 8)
        return too_short;
    uint64_t bitmaps = bj_u64(in.p);
    int64_t last = -1;
    for (in.p += 8; bitmaps > 0; bitmaps--) {
        if (left(&in) < 4)
            return too_short;
        uint32_t high = bj_u32(in.p);
        in.p += 4;
        if ((int64_t)high <= last)
            return "bitmaps: want ascending high halves";
        if (negative && high < 0x80000000u)
            return "natural number among the negative ones";
        last = high;
        const char *wrong = read_bitmap32(&in, high, &out);
        if (wrong != NULL)
            return wrong;
    }
    return left(&in) == 0 ? NULL : "bytes behind the members";
}

/* Form 2. */

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

unsigned bj_rice_parameter(const uint64_t *gaps, size_t n) {
    size_t below[65] = {0}; /* by the number of bits that a gap takes */
    for (size_t i = 0; i < n; i++)
        below[gaps[i] == 0 ? 0 : 64 - __builtin_clzll(gaps[i])]++;
    unsigned k = 0;
    for (size_t sum = below[0]; 8 * sum < 3 * n; sum += below[k])
        k++;
    return k;
}

/* read_block reads a block of n members into values; values + BJ_PIECE has room
 * for their gaps. */
static const char *read_block(bytes *in, size_t n, uint64_t *values, uint64_t *gaps) {
    uint64_t v = values[0];
    unsigned k = in->p[8];
    if (k > 64)
        return "k: want at most 64";
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
    if (k != bj_rice_parameter(gaps, n - 1))
        return "k: want the one that the gaps give";
    in->p = r.in.p - r.count / 8; /* whole bytes that were read ahead */
    if (low_bits(r.word, r.count % 8) != 0)
        return "padding after a block: want zero bits";
    return NULL;
}

const char *bj_read_gaps(const uint8_t *p, size_t size, int negative, uint64_t *room, bj_sink sink, void *ctx) {
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
