#include "zoo/random_wiring.h"

#include <algorithm>
#include <bit>

namespace forerun::zoo {
namespace {

constexpr size_t kWords = 624;
constexpr size_t kShift = 397;

bool joined(const Wiring& wiring, size_t a, size_t b) {
  return std::find(wiring[a].begin(), wiring[a].end(), b) != wiring[a].end();
}

void join(Wiring& wiring, size_t a, size_t b) {
  if (joined(wiring, a, b)) return;
  wiring[a].push_back(b);
  wiring[b].push_back(a);
}

void part(Wiring& wiring, size_t a, size_t b) {
  std::erase(wiring[a], b);
  std::erase(wiring[b], a);
}

bool connected(const Wiring& wiring) {
  std::vector<bool> seen(wiring.size());
  std::vector<size_t> open = {0};
  seen[0] = true;
  size_t count = 1;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    for (const size_t next : wiring[node]) {
      if (seen[next]) continue;
      seen[next] = true;
      ++count;
      open.push_back(next);
    }
  }
  return count == wiring.size();
}

Wiring ring_rewired(size_t nodes, size_t neighbours, double probability, PythonRandom& random) {
  Wiring wiring(nodes);
  for (size_t distance = 1; distance <= neighbours / 2; ++distance) {
    for (size_t u = 0; u < nodes; ++u) join(wiring, u, (u + distance) % nodes);
  }
  for (size_t distance = 1; distance <= neighbours / 2; ++distance) {
    for (size_t u = 0; u < nodes; ++u) {
      if (random.uniform() >= probability) continue;
      size_t w = random.below(nodes);
      bool full = false;
      while (!full && (w == u || joined(wiring, u, w))) {
        w = random.below(nodes);
        full = wiring[u].size() >= nodes - 1;
      }
      if (full) continue;
      part(wiring, u, (u + distance) % nodes);
      join(wiring, u, w);
    }
  }
  return wiring;
}

// The order in which CPython iterates over a set of small integers: that of their slots in an open hash table, which
// starts with 8 slots and grows to the next power of two above 4 times its entries when it is three fifths full.
class SlotOrder {
 public:
  bool add(size_t value) {
    if (std::find(slots_.begin(), slots_.end(), value) != slots_.end()) return false;
    place(value);
    ++count_;
    if (count_ * 5 >= (slots_.size() - 1) * 3) grow();
    return true;
  }
  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] std::vector<size_t> values() const {
    std::vector<size_t> result;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(result), [](size_t v) { return v != kEmpty; });
    return result;
  }

 private:
  static constexpr size_t kEmpty = static_cast<size_t>(-1);
  static constexpr size_t kLinearProbes = 9;

  void place(size_t value) {
    const size_t mask = slots_.size() - 1;
    size_t perturb = value;
    for (size_t slot = value & mask;; slot = (slot * 5 + 1 + perturb) & mask) {
      const size_t last = slot + kLinearProbes <= mask ? slot + kLinearProbes : slot;
      for (size_t i = slot; i <= last; ++i) {
        if (slots_[i] == kEmpty) {
          slots_[i] = value;
          return;
        }
      }
      perturb >>= 5;
    }
  }

  void grow() {
    const std::vector<size_t> old = values();
    slots_.assign(std::bit_ceil(count_ * 4 + 1), kEmpty);
    for (const size_t value : old) place(value);
  }

  std::vector<size_t> slots_ = std::vector<size_t>(8, kEmpty);
  size_t count_ = 0;
};

}  // namespace

// Seeding by an array of one word, as Matsumoto and Nishimura's reference does it.
PythonRandom::PythonRandom(uint32_t seed) {
  state_[0] = 19650218U;
  for (size_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + static_cast<uint32_t>(i);
  }
  size_t i = 1;
  const auto advance = [&] {
    if (++i >= kWords) {
      state_[0] = state_[kWords - 1];
      i = 1;
    }
  };
  for (size_t k = 0; k < kWords; ++k, advance()) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525U)) + seed;
  }
  for (size_t k = 0; k < kWords - 1; ++k, advance()) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941U)) - static_cast<uint32_t>(i);
  }
  state_[0] = 0x80000000U;
}

uint32_t PythonRandom::next() {
  if (used_ == kWords) {
    for (size_t i = 0; i < kWords; ++i) {
      const uint32_t y = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
      state_[i] = state_[(i + kShift) % kWords] ^ (y >> 1) ^ ((y & 1U) != 0 ? 0x9908b0dfU : 0U);
    }
    used_ = 0;
  }
  uint32_t y = state_[used_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

double PythonRandom::uniform() {
  const uint32_t high = next() >> 5;
  const uint32_t low = next() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

size_t PythonRandom::below(size_t bound) {
  const int bits = std::bit_width(bound);
  size_t value = next() >> (32 - bits);
  while (value >= bound) value = next() >> (32 - bits);
  return value;
}

std::optional<Wiring> watts_strogatz(size_t nodes, size_t neighbours, double probability, uint32_t seed) {
  if (neighbours == nodes) return erdos_renyi(nodes, 1.0, seed);
  PythonRandom random(seed);
  for (int attempt = 0; attempt < 100; ++attempt) {
    Wiring wiring = ring_rewired(nodes, neighbours, probability, random);
    if (connected(wiring)) return wiring;
  }
  return std::nullopt;
}

Wiring erdos_renyi(size_t nodes, double probability, uint32_t seed) {
  PythonRandom random(seed);
  Wiring wiring(nodes);
  for (size_t a = 0; a < nodes; ++a) {
    for (size_t b = a + 1; b < nodes; ++b) {
      if (probability < 1 && random.uniform() >= probability) continue;
      wiring[a].push_back(b);
      wiring[b].push_back(a);
    }
  }
  return wiring;
}

Wiring barabasi_albert(size_t nodes, size_t edges, uint32_t seed) {
  PythonRandom random(seed);
  Wiring wiring(nodes);
  std::vector<size_t> by_degree(edges, 0);  // every node once for each of its edges
  for (size_t i = 1; i <= edges; ++i) {
    join(wiring, 0, i);
    by_degree.push_back(i);
  }
  for (size_t source = edges + 1; source < nodes; ++source) {
    SlotOrder targets;
    while (targets.size() < edges) targets.add(by_degree[random.below(by_degree.size())]);
    for (const size_t target : targets.values()) {
      join(wiring, source, target);
      by_degree.push_back(target);
    }
    by_degree.insert(by_degree.end(), edges, source);
  }
  return wiring;
}

}  // namespace forerun::zoo
