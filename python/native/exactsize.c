/* Measures the members of a part. */
#include "native.h"

#include <stdlib.h>

static void add(void *ctx, const uint64_t *values, size_t n) {
    bj_measure *m = ctx;
    for (size_t i = 0; i < n; i++) {
        int start = m->members == 0 && i == 0;
        if (start)
            m->first = values[i];
        m->words += start || values[i] / 64 != m->last / 64;
        m->last = values[i];
    }
    m->members += n;
}

const char *bj_measure_part(const uint8_t *p, size_t size, int negative, bj_measure *m) {
    uint64_t *room = malloc(2 * BJ_PIECE * sizeof *room);
    if (room == NULL)
        return "no memory";
    *m = (bj_measure){0};
    const char *wrong = bj_read_members(p, size, negative, room, add, m);
    free(room);
    return wrong;
}
