/* What the processor can do. By cpuid rather than __builtin_cpu_supports, which
 * needs a runtime library that not every compiler brings along. */
#include "native.h"

#if BJ_X86
#include <cpuid.h>

static uint64_t enabled_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

int bj_cpu(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27)) /* OSXSAVE */
        return 0;
    uint64_t state = enabled_state();
    if ((state & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    int features = 0;
    if (b & 1u << 5)
        features |= BJ_AVX2;
    if ((state & 0xe6) == 0xe6 && (b & 1u << 5) && (b & 1u << 16) && (b & 1u << 17) && (b & 1u << 31)) /* F, DQ, VL */
        features |= BJ_AVX512;
    return features;
}
#else
int bj_cpu(void) { return 0; }
#endif
