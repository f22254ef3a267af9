// What another external sorter makes of the same work: STXXL's stream sorter.
//
// Pushes RECORDS records of RECORD_WIDTH bytes with random keys of eight bytes
// into a sorter that has MEMORY bytes, sorts, pulls them all, and checks their
// order and number.  It prints the milliseconds of all that as a JSON object.
// The three are constants of the compilation, as STXXL's types are; the disk
// is the one that the file named in the environment's STXXLCFG says.
//
// What is the same as in the database: number and width of the records, the
// memory (STXXL takes it for forming runs, and again for merging), one disk,
// one thread.  What is not: the key is compared by one instruction and lies in
// a record of fixed width, and nobody scans a table.  So the time to hold
// against it is a query's less that of its scan; and as the database still has
// tuples to make, copy and compare, being as fast would be a lot.
//
// STXXL's usual block of 2 MB is too large for memory this small: with 16 MB
// its merge would take several passes.  We take the largest power of two up to
// 256 kB with which every run has a block in one merge and a quarter more are
// there to read ahead with; larger ones were slower with 64 MB, too.  Runs are
// half of the memory long, as STXXL sorts one half while it writes the other.

// Debian's STXXL asks for several threads; the contenders have one.
#include <stxxl/bits/config.h>
#undef STXXL_PARALLEL_MODE_EXPLICIT
#include <stxxl/sorter>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#ifndef RECORDS
#define RECORDS 1000000
#define RECORD_WIDTH 136
#define MEMORY (16 << 20)
#endif

namespace
{

struct Record
{
    uint64_t key;
    char rest[RECORD_WIDTH - sizeof(uint64_t)];
};

static_assert(sizeof(Record) == RECORD_WIDTH, "RECORD_WIDTH % 8 must be 0");

struct ByKey
{
    bool operator()(const Record &a, const Record &b) const
    {
        return a.key < b.key;
    }
    Record min_value() const
    {
        return with_key(std::numeric_limits<uint64_t>::min());
    }
    Record max_value() const
    {
        return with_key(std::numeric_limits<uint64_t>::max());
    }

  private:
    static Record with_key(uint64_t key)
    {
        Record record = Record();

        record.key = key;
        return record;
    }
};

// Keys between, but never equal to, the smallest and the largest, which
// STXXL keeps for itself.
uint64_t next_key(uint64_t &state)
{
    do
    {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    } while (state == std::numeric_limits<uint64_t>::max());
    return state;
}

double since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - start)
        .count();
}

constexpr unsigned best_block()
{
    uint64_t runs = uint64_t(RECORDS) * RECORD_WIDTH / (MEMORY / 2) + 1;
    unsigned block = 256 << 10;

    while (block > 16384 && MEMORY / block < runs + runs / 4 + 8)
        block /= 2;
    return block;
}

} // namespace

int main()
{
    auto start = std::chrono::steady_clock::now();
    stxxl::sorter<Record, ByKey, best_block()> sorter(ByKey(), MEMORY);
    uint64_t state = 88172645463325252u, last = 0, count = 0;
    Record record;

    memset(&record, 'x', sizeof(record));
    for (uint64_t i = 0; i < RECORDS; i++)
    {
        record.key = next_key(state);
        sorter.push(record);
    }
    double formed = since(start);

    sorter.sort();
    for (; !sorter.empty(); ++sorter, count++)
    {
        if (sorter->key < last)
        {
            fprintf(stderr, "record %ju is out of order\n", (uintmax_t) count);
            return 1;
        }
        last = sorter->key;
    }
    if (count != RECORDS)
    {
        fprintf(stderr, "%ju records came back\n", (uintmax_t) count);
        return 1;
    }
    double total = since(start);
    printf("{\"total_ms\": %.1f, \"formation_ms\": %.1f, \"merge_ms\": %.1f, "
           "\"block_size\": %u}\n",
           total, formed, total - formed, best_block());
}
