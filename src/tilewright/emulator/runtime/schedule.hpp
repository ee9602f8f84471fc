// In which order threads, CTAs and asynchronous copies come. Owns orders and seeds; a CTA's order depends on
// the seed and its index only, never on how many OS threads there are.
#pragma once

#include <stdint.h>

#include <vector>

enum class Order { ascending, descending, random };
enum class Completion { latest, earliest, random };

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { next(); }
  Random(uint64_t seed, uint64_t stream) : Random(seed * 0x9E3779B97F4A7C15u ^ (stream + 1) * 0xD1342543DE82EF95u) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

// Puts 0 … count-1 into `items` in the given order.
template <typename T>
void fill_order(std::vector<T>& items, T count, Order order, Random& random) {
  items.resize(count);
  for (T i = 0; i < count; ++i) items[i] = order == Order::descending ? count - 1 - i : i;
  if (order != Order::random) return;
  for (T i = count; i > 1; --i) {
    T other = static_cast<T>(random.below(i)), kept = items[i - 1];
    items[i - 1] = items[other];
    items[other] = kept;
  }
}
