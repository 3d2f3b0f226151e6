// NCCL between the threads of one process: sums and maxima of integers, once every rank has come.
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

typedef void *Handle;
enum { SUCCESS = 0, INVALID_ARGUMENT = 4, INT64 = 4, UINT32 = 3, SUM = 0, MAX = 2 };

struct Name {
    char bytes[128];
};

struct World {
    int size = 0;
    int arrived = 0;
    unsigned long round = 0;
    std::vector<void *> buffers;
};

struct Communicator {
    World *world;
    int rank;
};

static std::mutex guard;
static std::condition_variable changed;
static std::map<unsigned, World> worlds;
static unsigned names = 0;

extern "C" int cuStreamSynchronize(Handle stream);

template <class T> static void combine(const std::vector<void *> &buffers, size_t count, int operation) {
    for (size_t i = 0; i < count; i++) {
        T result = ((T *)buffers[0])[i];
        for (size_t rank = 1; rank < buffers.size(); rank++) {
            const T value = ((T *)buffers[rank])[i];
            result = operation == SUM ? result + value : value > result ? value : result;
        }
        for (void *buffer : buffers) ((T *)buffer)[i] = result;
    }
}

// Waits for all ranks; the last to come does the work.
template <class Work> static void together(Communicator *communicator, void *buffer, Work work) {
    std::unique_lock<std::mutex> lock(guard);
    World &world = *communicator->world;
    world.buffers[communicator->rank] = buffer;
    if (++world.arrived == world.size) {
        work(world.buffers);
        world.arrived = 0;
        world.round++;
        changed.notify_all();
    } else {
        changed.wait(lock, [&world, round = world.round] { return world.round != round; });
    }
}

extern "C" {

int ncclGetUniqueId(Name *name) {
    const std::lock_guard<std::mutex> lock(guard);
    *name = {};
    *(unsigned *)name->bytes = ++names;
    return SUCCESS;
}

int ncclCommInitRank(Handle *communicator, int size, Name name, int rank) {
    if (rank < 0 || rank >= size) return INVALID_ARGUMENT;
    World *world;
    {
        const std::lock_guard<std::mutex> lock(guard);
        world = &worlds[*(unsigned *)name.bytes];
        world->size = size;
        world->buffers.resize(size);
    }
    Communicator *mine = new Communicator{world, rank};
    *communicator = mine;
    together(mine, nullptr, [](const std::vector<void *> &) {});
    return SUCCESS;
}

int ncclAllReduce(const void *given, void *result, size_t count, int type, int operation, Handle communicator, Handle stream) {
    if (given != result || (operation != SUM && operation != MAX)) return INVALID_ARGUMENT;
    const int status = cuStreamSynchronize(stream);
    if (status != SUCCESS) return status;
    together((Communicator *)communicator, result, [=](const std::vector<void *> &buffers) {
        if (type == INT64) combine<long>(buffers, count, operation);
        if (type == UINT32) combine<unsigned>(buffers, count, operation);
    });
    return type == INT64 || type == UINT32 ? SUCCESS : INVALID_ARGUMENT;
}
}
