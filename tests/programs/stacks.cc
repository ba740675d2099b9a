/* SPDX-License-Identifier: MIT */
/* A C++ program that throws through several frames, with virtual calls, lambdas and std::sort. */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static volatile std::uint64_t sink;

struct Shape {
	virtual ~Shape() = default;
	virtual std::uint64_t area(std::uint64_t x) const = 0;
};

struct Square : Shape {
	std::uint64_t area(std::uint64_t x) const override
	{
		std::uint64_t sum = 0;
		for (int i = 0; i < 100; i++)
			sum += x * x + sum / 3;
		return sum;
	}
};

struct Guard {
	std::string text;
	explicit Guard(int n) : text("guard " + std::to_string(n))
	{
	}
	~Guard()
	{
		sink = sink + text.size();
	}
};

static std::uint64_t descend(const Shape &shape, int depth)
{
	Guard guard(depth);

	if (!depth)
		throw std::runtime_error("the bottom " + std::to_string(shape.area(7)));
	return descend(shape, depth - 1) + shape.area(static_cast<std::uint64_t>(depth));
}

static void work(double seconds)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
	std::unique_ptr<Shape> shape = std::make_unique<Square>();
	std::map<std::string, std::function<std::uint64_t(std::uint64_t)>> table;

	for (int i = 0; i < 20; i++)
		table["entry " + std::to_string(i)] = [&shape, i](std::uint64_t x) {
			return shape->area(x + static_cast<std::uint64_t>(i));
		};
	while (std::chrono::steady_clock::now() < end) {
		try {
			sink = sink + descend(*shape, 12);
		} catch (const std::exception &e) {
			sink = sink + std::string(e.what()).size();
		}
		std::vector<std::uint64_t> numbers(200);
		for (auto &n : numbers)
			n = sink * 2654435761u + numbers.size();
		std::sort(numbers.begin(), numbers.end(), [&](std::uint64_t a, std::uint64_t b) {
			return shape->area(a) < shape->area(b);
		});
		for (auto &entry : table)
			sink = sink + entry.second(numbers[0]);
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? std::atof(argv[1]) : 1;
	std::thread other(work, seconds);

	work(seconds);
	other.join();
}
