// Asynchronous fluid communities (Pares et al., 2017): a connected undirected graph in k parts, in about linear time.
//
// k communities begin at k random nodes. Each spreads a density of one evenly over its members; nodes, in random order,
// join the community that is densest around them (themselves included), until a round changes nothing. Driple groups
// the ops of a graph so. Deterministic for a seed on every machine. The order of draws is ours, so the groups of a seed
// are not those of other implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace forerun::learn {

// Neighbours of each node; every edge in both directions.
using Neighbours = std::vector<std::vector<uint32_t>>;

// Edges as neighbours: each pair once, no node its own neighbour.
Neighbours neighbours_of(size_t nodes, const std::vector<std::pair<uint32_t, uint32_t>>& edges);

// The nodes of the largest connected part, ascending; of two alike that with the lowest node.
std::vector<uint32_t> largest_component(const Neighbours& graph);

// The community of each node, numbered from 0 without gaps. `graph` is connected; k is at least 1 and no more than its
// nodes.
std::vector<uint32_t> fluid_communities(const Neighbours& graph, size_t k, uint64_t seed, int most_rounds = 100);

}  // namespace forerun::learn
