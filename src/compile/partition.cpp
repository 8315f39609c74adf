#include "compile/partition.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/check.h"
#include "compile/max_flow.h"

namespace forerun::compile {
namespace {

constexpr int kFar = 1'000'000;
constexpr size_t kLongChain = 100;  // nodes
constexpr int64_t kShrinks = 4;     // a result this much smaller than its inputs is kept

// A graph with who reads what.
class Readers {
 public:
  explicit Readers(const JointGraph& joint) : readers_(joint.values.size()) {
    for (size_t i = 0; i < joint.nodes.size(); ++i) {
      for (const Read& read : joint.nodes[i].reads) {
        std::vector<uint32_t>& list = readers_[read.value.value];
        if (list.empty() || list.back() != i) list.push_back(static_cast<uint32_t>(i));
      }
    }
  }
  [[nodiscard]] const std::vector<uint32_t>& of(ValueId value) const { return readers_[value.value]; }

 private:
  std::vector<std::vector<uint32_t>> readers_;
};

class Partitioner {
 public:
  explicit Partitioner(const JointGraph& joint)
      : joint_(joint),
        readers_(joint),
        tangent_(joint.nodes.size()),
        forward_(joint.nodes.size()),
        distance_(joint.values.size(), kFar),
        banned_(joint.nodes.size()) {}

  Partition solved() {
    find_tangents();
    find_forward();
    find_distances();
    ban();
    Partition made{.kept = cut(), .in_forward = {}, .in_backward = {}};
    made.in_forward = needed(made.kept, false);
    made.in_backward = needed(made.kept, true);
    return made;
  }

 private:
  [[nodiscard]] bool reads_tangent(const Node& node) const {
    return std::any_of(node.reads.begin(), node.reads.end(), [&](const Read& read) {
      const Value& value = joint_.value(read.value);
      return value.tangent || (value.made_by.valid() && tangent_[value.made_by.value]);
    });
  }
  void find_tangents() {
    for (size_t i = 0; i < joint_.nodes.size(); ++i) {
      const Node& node = joint_.nodes[i];
      const bool result = std::any_of(node.makes.begin(), node.makes.end(),
                                      [&](ValueId made) { return joint_.value(made).backward_result; });
      tangent_[i] = reads_tangent(node) || result;
    }
  }

  // Nodes that results of the forward pass are made of.
  void find_forward() {
    for (size_t i = joint_.nodes.size(); i-- > 0;) {
      const Node& node = joint_.nodes[i];
      if (tangent_[i]) continue;
      bool wanted = forward_[i];
      for (const ValueId made : node.makes) wanted = wanted || joint_.value(made).forward_result;
      forward_[i] = wanted;
      if (!wanted) continue;
      for (const Read& read : node.reads) {
        const NodeId by = joint_.value(read.value).made_by;
        if (by.valid()) forward_[by.value] = true;
      }
    }
  }

  void find_distances() {
    std::vector<int> of_node(joint_.nodes.size(), kFar);
    for (size_t i = joint_.nodes.size(); i-- > 0;) {
      int nearest = kFar;
      for (const ValueId made : joint_.nodes[i].makes) {
        int& distance = distance_[made.value];
        for (const uint32_t reader : readers_.of(made)) distance = std::min(distance, of_node[reader] + 1);
        nearest = std::min(nearest, distance);
      }
      of_node[i] = forward_[i] ? nearest : 0;
      if (!forward_[i]) {
        for (const ValueId made : joint_.nodes[i].makes) distance_[made.value] = 0;
      }
    }
    for (size_t i = 0; i < joint_.values.size(); ++i) {
      if (joint_.values[i].made_by.valid()) continue;
      for (const uint32_t reader : readers_.of(ValueId(i))) distance_[i] = std::min(distance_[i], of_node[reader] + 1);
    }
  }

  [[nodiscard]] bool fusible(const Node& from, const Node& to) const {
    return to.has(kJoins) || (from.has(kFusible) && to.has(kFusible));
  }
  [[nodiscard]] bool fusible_into_all(ValueId id) const {
    const Value& value = joint_.value(id);
    if (!value.made_by.valid()) return false;
    const Node& from = joint_.node(value.made_by);
    const std::vector<uint32_t>& readers = readers_.of(id);
    return std::all_of(readers.begin(), readers.end(),
                       [&](uint32_t reader) { return fusible(from, joint_.nodes[reader]); });
  }
  // Results of the forward pass are stored by it: the joint graph's output counts as a reader that nothing is fused into, and as one of the
  // backward pass.
  [[nodiscard]] bool is_result(ValueId id) const {
    return joint_.value(id).forward_result || joint_.value(id).returned;
  }
  [[nodiscard]] bool stored_in_backward(const Node& node) const {
    for (const ValueId made : node.makes) {
      if (is_result(made)) return true;
      for (const uint32_t reader : readers_.of(made)) {
        if (!forward_[reader] && !fusible(node, joint_.nodes[reader])) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool shrinks(const Node& node) const {
    int64_t read = 0;
    int64_t made = 0;
    for (const Read& input : node.reads) {
      const Value& value = joint_.value(input.value);
      read += std::min(input.elements * static_cast<int64_t>(size_of(value.dtype)), value.bytes());
    }
    for (const ValueId output : node.makes) made += joint_.value(output).bytes();
    return made * kShrinks < read;
  }

  void ban() {
    for (size_t i = 0; i < joint_.nodes.size(); ++i) {
      const Node& node = joint_.nodes[i];
      if (!forward_[i]) {
        // Another result of what the forward pass runs anyway.
        const bool beside = !node.backward && !node.has(kComputedAgain);
        banned_[i] = !tangent_[i] && (node.kind == NodeKind::library || beside);
        continue;
      }
      banned_[i] = !node.has(kComputedAgain) || stored_in_backward(node) || shrinks(node);
    }
    ban_far_apart();
    ban_long_chains();
  }

  // Order of the first node that cannot be fused with what leads to it, from these on.
  [[nodiscard]] size_t first_unfusible(const std::vector<uint32_t>& starts, size_t last) const {
    using Entry = std::pair<size_t, bool>;  // order, fusible
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (const uint32_t start : starts) queue.emplace(start, true);
    size_t seen = SIZE_MAX;
    while (!queue.empty()) {
      const auto [at, joins] = queue.top();
      queue.pop();
      if (!joins) return at;
      if (at == seen) continue;
      seen = at;
      for (const ValueId made : joint_.nodes[at].makes) {
        for (const uint32_t reader : readers_.of(made)) {
          if (!forward_[reader] || reader > last) continue;
          queue.emplace(reader, fusible(joint_.nodes[at], joint_.nodes[reader]));
        }
      }
    }
    return SIZE_MAX;
  }

  // A value used near and far: the far users would not be fused with the near ones.
  void ban_far_apart() {
    for (size_t i = 0; i < joint_.nodes.size(); ++i) {
      if (!forward_[i]) continue;
      std::vector<uint32_t> users;
      for (const ValueId made : joint_.nodes[i].makes) {
        for (const uint32_t reader : readers_.of(made)) {
          if (forward_[reader]) users.push_back(reader);
        }
      }
      if (users.size() < 2) continue;
      const size_t unfusible = first_unfusible(users, *std::max_element(users.begin(), users.end()));
      for (const uint32_t user : users) {
        if (user > unfusible && fusible(joint_.nodes[i], joint_.nodes[user])) banned_[user] = true;
      }
    }
  }

  void ban_long_chains() {
    std::vector<bool> visited(joint_.nodes.size());
    for (size_t start = 0; start < joint_.nodes.size(); ++start) {
      if (!forward_[start]) continue;
      std::priority_queue<size_t, std::vector<size_t>, std::greater<>> chain;
      chain.push(start);
      while (!chain.empty()) {
        const size_t at = chain.top();
        chain.pop();
        if (visited[at]) continue;
        visited[at] = true;
        if (at > start + kLongChain && chain.empty()) {
          banned_[at] = true;
          break;
        }
        for (const ValueId made : joint_.nodes[at].makes) {
          for (const uint32_t reader : readers_.of(made)) {
            if (forward_[reader] && !banned_[reader] && fusible(joint_.nodes[at], joint_.nodes[reader]))
              chain.push(reader);
          }
        }
      }
    }
  }

  [[nodiscard]] int64_t weight(ValueId id) const {
    const Value& value = joint_.value(id);
    if (value.parameter) return 0;
    const double far = std::pow(1.1, std::max(std::min(distance_[id.value], 100), 1));
    const auto bytes = static_cast<int64_t>(static_cast<double>(std::max<int64_t>(value.bytes(), 1)) * far);
    return fusible_into_all(id) && !is_result(id) ? 2 * bytes : bytes;
  }

  [[nodiscard]] std::vector<bool> cut() const {
    const size_t count = joint_.values.size();
    const auto source = static_cast<uint32_t>(2 * count);
    const uint32_t sink = source + 1;
    MaxFlow flow(2 * count + 2);
    const auto enter = [](ValueId value) { return 2 * value.value; };
    const auto leave = [](ValueId value) { return 2 * value.value + 1; };
    for (size_t i = 0; i < count; ++i) {
      const ValueId id(i);
      const Value& value = joint_.values[i];
      if (value.tangent || (value.made_by.valid() && tangent_[value.made_by.value])) continue;
      if (!value.made_by.valid() || banned_[value.made_by.value]) flow.add_edge(source, enter(id), MaxFlow::kEndless);
      flow.add_edge(enter(id), leave(id), weight(id));
      bool wanted = false;
      for (const uint32_t reader : readers_.of(id)) {
        if (tangent_[reader]) {
          wanted = true;
          continue;
        }
        for (const ValueId made : joint_.nodes[reader].makes) flow.add_edge(leave(id), enter(made), MaxFlow::kEndless);
      }
      if (wanted) flow.add_edge(leave(id), sink, MaxFlow::kEndless);
    }
    const std::vector<bool> reached = flow.reached_at_most_flow(source, sink);
    CHECK(flow.flow() < MaxFlow::kEndless, "every value can be kept");
    std::vector<bool> kept(count);
    for (size_t i = 0; i < count; ++i) kept[i] = reached[2 * i] && !reached[2 * i + 1];
    return kept;
  }

  // Nodes that a pass runs: those its results are made of, up to what is kept.
  [[nodiscard]] std::vector<bool> needed(const std::vector<bool>& kept, bool backward) const {
    std::vector<bool> wanted(joint_.nodes.size());
    for (size_t i = joint_.nodes.size(); i-- > 0;) {
      const Node& node = joint_.nodes[i];
      if (!backward && tangent_[i]) continue;
      bool needed = wanted[i];
      for (const ValueId made : node.makes) {
        const Value& value = joint_.value(made);
        needed = needed || (backward ? value.backward_result : value.forward_result || kept[made.value]);
      }
      wanted[i] = needed;
      if (!needed) continue;
      for (const Read& read : node.reads) {
        const NodeId by = joint_.value(read.value).made_by;
        if (by.valid() && !(backward && kept[read.value.value])) wanted[by.value] = true;
      }
    }
    return wanted;
  }

  const JointGraph& joint_;
  Readers readers_;
  std::vector<bool> tangent_;  // depends on what the backward pass is given
  std::vector<bool> forward_;  // results of the forward pass depend on it
  std::vector<int> distance_;  // by value: steps to the backward pass
  std::vector<bool> banned_;   // never computed again
};

}  // namespace

Partition partition(const JointGraph& joint) { return Partitioner(joint).solved(); }

}  // namespace forerun::compile
