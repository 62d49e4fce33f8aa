/* Measures the members of a part, and computes the size that each form of an
 * exact payload gives them. */
#include "native.h"

#include <stdlib.h>

typedef struct {
    bj_measure m;
    /* form 1 */
    uint64_t container;                 /* of the last member: its bits 16 to 63 */
    uint32_t members, runs;             /* in the container */
    uint64_t containers, data, any_run; /* in the 32-bit bitmap */
    /* form 2 */
    uint64_t *gaps;
    size_t pending; /* members of the block that is not complete */
} sizer;

static void close_container(sizer *z) {
    if (z->members == 0)
        return;
    uint64_t run = 2 + 4 * (uint64_t)z->runs, other = z->members <= 4096 ? 2 * (uint64_t)z->members : 8192;
    z->any_run |= run < other;
    z->data += run < other ? run : other;
    z->containers++;
    z->members = z->runs = 0;
}

static void close_bitmap(sizer *z) {
    if (z->containers == 0)
        return;
    uint64_t n = z->containers, head = 8 + 8 * n;
    if (z->any_run)
        head = 4 + (n + 7) / 8 + (n >= 4 ? 8 : 4) * n;
    z->m.roaring += 4 + head + z->data;
    z->containers = z->data = z->any_run = 0;
}

static void close_block(sizer *z) {
    if (z->pending == 0)
        return;
    size_t n = z->pending - 1;
    unsigned k = bj_rice_parameter(z->gaps, n);
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t q = k == 64 ? 0 : z->gaps[i] >> k;
        bits += q < 32 ? q + 1 + k : 32 + 1 + 64;
    }
    z->m.gaps += 9 + (bits + 7) / 8;
    z->pending = 0;
}

static void add(void *ctx, const uint64_t *values, size_t n) {
    sizer *z = ctx;
    uint64_t last = z->m.last;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = values[i];
        int start = z->m.members == 0 && i == 0;
        if (start)
            z->m.first = v;
        z->m.words += start || v / 64 != last / 64;
        if (start || v >> 16 != z->container) {
            close_container(z);
            if (!start && v >> 32 != z->container >> 16)
                close_bitmap(z);
            z->container = v >> 16;
            z->runs = 1;
        } else {
            z->runs += v != last + 1;
        }
        z->members++;
        if (z->pending == BJ_PIECE)
            close_block(z);
        if (z->pending > 0)
            z->gaps[z->pending - 1] = v - last - 1;
        z->pending++;
        last = v;
    }
    z->m.members += n;
    z->m.last = last;
}

const char *bj_measure_part(const uint8_t *p, size_t size, int form, int negative, bj_measure *m) {
    uint64_t *room = malloc(3 * BJ_PIECE * sizeof *room);
    if (room == NULL)
        return "no memory";
    sizer z = {.gaps = room + 2 * BJ_PIECE};
    z.m.roaring = z.m.gaps = 8;
    const char *wrong = (form == 1 ? bj_read_roaring : bj_read_gaps)(p, size, negative, room, add, &z);
    close_container(&z);
    close_bitmap(&z);
    close_block(&z);
    free(room);
    *m = z.m;
    return wrong;
}
