// Streams: work in the order given. It is done at once or, with EMULATE_LATE set, at the last
// moment that CUDA allows, which is when the host waits for it. Memory that was given back or
// overwritten before its last use then shows. On a GPU work is done at any moment between the two.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "entry.h"
#include "fault.h"

struct Stream {
    std::deque<Work> queue;
    // Pieces of work that it was ever given.
    unsigned long given = 0;
};

// Kernels find their place in global variables, so that one thread of the host runs at a time.
static std::recursive_mutex one_at_a_time;
static Stream default_stream;
static std::set<Stream *> streams = {&default_stream};
// Memory that the fault `early-release` gave back while work on it was queued.
static std::map<char *, size_t> released;

static bool is_late() {
    static const bool late = getenv("EMULATE_LATE") || is_planted("early-release");
    return late;
}

// The stream with this handle; 0, 1 and 2 are names of the default one.
static Stream &stream_of(void *handle) {
    return (size_t)handle <= 2 ? default_stream : *(Stream *)handle;
}

// Does a stream's work up to that which it was given as number `until`.
static void advance(Stream &stream, unsigned long until) {
    while (!stream.queue.empty() && stream.given - stream.queue.size() < until) {
        // Such memory has another owner, who may write in it at any moment.
        for (const auto &[pointer, bytes] : released) memset(pointer, 0, bytes);
        const Work work = std::move(stream.queue.front());
        stream.queue.pop_front();
        work();
    }
}

static void finish(Stream &stream) {
    advance(stream, stream.given);
}

static void finish_all() {
    for (Stream *stream : streams) finish(*stream);
}

static void give(Stream &stream, Work work) {
    stream.queue.push_back(std::move(work));
    stream.given++;
    if (!is_late()) finish(stream);
}
