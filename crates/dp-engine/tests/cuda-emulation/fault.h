// The fault that EMULATE_FAULT plants. Tests must fail under each of them.
#pragma once
#include <stdlib.h>
#include <string.h>

// Products of inputs rounded to TF32; a record's scale left out; a pooling's gradient given to the
// pixel that won in another batch; memory given back while work on it is queued.
static const char *const FAULTS[] = {"tf32", "dropped-scale", "stale-winner", "early-release"};

// Its name, or an empty string.
static inline const char *planted_fault() {
    const char *name = getenv("EMULATE_FAULT");
    return name ? name : "";
}

static inline bool is_planted(const char *fault) {
    return strcmp(planted_fault(), fault) == 0;
}

static inline bool is_known(const char *name) {
    for (const char *fault : FAULTS)
        if (strcmp(name, fault) == 0) return true;
    return !*name;
}
