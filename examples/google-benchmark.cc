/* SPDX-License-Identifier: MIT */
/*
 * Counts in Google Benchmark's user counters: page faults and context switches of each iteration,
 * or whatever events BENCHMARK_EVENTS names.
 *
 *	c++ google-benchmark.cc $(pkg-config --cflags --libs libtally benchmark)
 *	BENCHMARK_EVENTS='{instructions,cycles}:u' ./a.out --benchmark_counters_tabular=true
 */
#include <benchmark/benchmark.h>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <sys/mman.h>
#include <tally/tally.h>
#include <unistd.h>
#include <vector>

struct Free {
	void operator()(tally_events *events) const
	{
		tally_events_free(events);
	}
	void operator()(tally_group *group) const
	{
		tally_group_close(group);
	}
};

/* The adapter: counts this thread from its making until report(), which fills in the counters. */
class Counts
{
      public:
	explicit Counts(const char *text)
	{
		tally_events *events;
		tally_error err;
		if (tally_events_parse(&events, text, nullptr, &err) < 0)
			throw std::runtime_error(err.text);
		events_.reset(events);
		for (uint32_t i = 0; i < tally_events_count(events);
		     i += tally_event_group_size(tally_events_at(events, i)))
			open(i);
		for (const auto &group : groups_)
			tally_group_enable(group.get());
	}

	/* Per iteration; a count that never ran is shown as nan, not as a false 0. */
	void report(benchmark::State &state)
	{
		for (const auto &group : groups_)
			tally_group_disable(group.get());
		uint32_t event = 0;
		for (const auto &group : groups_) {
			std::vector<tally_count> counts(tally_group_size(group.get()));
			int r = tally_group_read(group.get(), counts.data(),
						 (uint32_t)counts.size());
			for (const tally_count &count : counts) {
				const tally_event *e = tally_events_at(events_.get(), event++);
				bool known = r == 0 && count.state <= TALLY_COUNT_SCALED;
				double value = (double)count.value * tally_event_scale(e);
				state.counters[tally_event_name(e)] = benchmark::Counter(
					known ? value : std::nan(""),
					benchmark::Counter::kAvgIterations);
			}
		}
	}

      private:
	void open(uint32_t leader)
	{
		tally_target self = {};
		tally_group *group;
		tally_error err;

		self.scope = TALLY_SCOPE_SELF;
		if (tally_group_open(&group, events_.get(), leader, &self, nullptr, &err) < 0)
			throw std::runtime_error(err.text);
		groups_.emplace_back(group);
	}

	std::unique_ptr<tally_events, Free> events_;
	std::vector<std::unique_ptr<tally_group, Free>> groups_; /* closed before the events */
};

static const char *events()
{
	const char *text = std::getenv("BENCHMARK_EVENTS");

	return text ? text : "page-faults:u";
}

/* Touches fresh pages, each of which is a fault. */
static void touch(benchmark::State &state)
try {
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)state.range(0) * page;
	Counts counts(events());

	for (auto _ : state) {
		void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(memory, size, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < size; at += page)
			static_cast<volatile char *>(memory)[at] = 1;
		munmap(memory, size);
	}
	counts.report(state);
} catch (const std::exception &e) {
	state.SkipWithError(e.what());
}

BENCHMARK(touch)->Arg(1)->Arg(100);
BENCHMARK_MAIN();
