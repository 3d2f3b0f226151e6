// A kernel as the emulated driver sees it.
#pragma once
#include <functional>

typedef std::function<void()> Work;

struct Entry {
    const char *name;
    // The fault that is planted in it; null in the kernel as it is.
    const char *fault;
    // A launch with copies of its arguments, which can wait.
    Work (*launch)(unsigned int blocks, unsigned int threads, void **arguments);
};
