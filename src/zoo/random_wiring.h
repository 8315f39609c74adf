// Random undirected graphs of RandWire networks, the same for the same seed as networkx makes them in Python.
//
// Watts-Strogatz (connected), Erdos-Renyi and Barabasi-Albert after the published algorithms; the order of random draws
// and of neighbours is that of networkx 3 on CPython 3, so that a recorded seed gives the recorded network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace forerun::zoo {

// CPython's random.Random(seed) for seeds of at most 32 bits: a Mersenne Twister, seeded and read as CPython does.
class PythonRandom {
 public:
  explicit PythonRandom(uint32_t seed);
  double uniform();            // [0, 1) with 53 bits
  size_t below(size_t bound);  // [0, bound), 0 < bound < 2^32

 private:
  uint32_t next();

  std::array<uint32_t, 624> state_;
  size_t used_ = 624;
};

// Neighbours of each node in the order in which their edges were added.
using Wiring = std::vector<std::vector<size_t>>;

// Each node joined to `neighbours` (even, at most `nodes`) around a ring, edges rewired with `probability`; tried again
// until connected, nothing after 100 tries.
std::optional<Wiring> watts_strogatz(size_t nodes, size_t neighbours, double probability, uint32_t seed);

// Each edge present with `probability`.
Wiring erdos_renyi(size_t nodes, double probability, uint32_t seed);

// A star of `edges` + 1 nodes (at most `nodes`); every further node is joined to `edges` earlier ones, by their degree.
Wiring barabasi_albert(size_t nodes, size_t edges, uint32_t seed);

}  // namespace forerun::zoo
