#include "compile/fusion.h"

#include <algorithm>

#include "compile/mix_order.h"
#include "compile/split_rule.h"

namespace forerun::compile {
namespace {

constexpr size_t kManyReads = 4;   // with more, a value that is used again is stored
constexpr size_t kMostReads = 8;   // with more, any is
constexpr size_t kMostSteps = 30;  // likewise of operations that compute an element
constexpr size_t kMostNodes = 64;  // of a kernel
constexpr int64_t kDistant = 64;   // nodes between two that share reads alone
constexpr uint32_t kNone = UINT32_MAX;

// Parts of a value (rows that are looked up, a third of what has queries, keys and values) are taken to be others each time.
void add_read(const JointGraph& joint, std::vector<Read>& reads, Read read) {
  const int64_t all = joint.value(read.value).elements;
  for (Read& known : reads) {
    if (known.value != read.value) continue;
    const bool parts = known.elements < all && read.elements < all;
    known.across = known.across || read.across;
    known.parted = known.parted || read.parted;
    known.elements = parts ? std::min(known.elements + read.elements, all) : std::max(known.elements, read.elements);
    return;
  }
  reads.push_back(read);
}

void add_nodes(std::vector<NodeId>& nodes, const std::vector<NodeId>& further) {
  for (const NodeId id : further) {
    if (std::find(nodes.begin(), nodes.end(), id) == nodes.end()) nodes.push_back(id);
  }
}

// What of a pass is stored, and what its kernels read of that.
class Lowering {
 public:
  Lowering(const JointGraph& joint, const std::vector<bool>& runs, const std::vector<bool>& stored)
      : joint_(joint),
        runs_(runs),
        real_(joint.values.size()),
        inlined_(joint.nodes.size()),
        computed_(joint.nodes.size()),
        users_(joint.values.size()),
        stored_from_(joint.values.size(), kNone) {
    for (size_t i = 0; i < joint.nodes.size(); ++i) {
      if (!runs[i]) continue;
      for (const Read& read : joint.nodes[i].reads) {
        users_[read.value.value] += read.again ? 2 : 1;
        if (joint.nodes[i].kind == NodeKind::library) needed_by_library(read, static_cast<uint32_t>(i));
      }
      if (joint.nodes[i].has(kScatters)) real_[joint.nodes[i].reads.back().value.value] = true;  // what it adds into
      if (joint.nodes[i].beside.valid()) real_[joint.nodes[i].beside.value] = true;
    }
    for (size_t i = 0; i < joint.nodes.size(); ++i) {
      if (runs[i]) lower(i, stored);
    }
  }

  [[nodiscard]] bool is_stored(ValueId value) const { return real_[value.value]; }
  [[nodiscard]] const std::vector<Read>& reads(size_t node) const { return inlined_[node]; }
  // The nodes that are computed with it, since what they make is not stored.
  [[nodiscard]] const std::vector<NodeId>& computed(size_t node) const { return computed_[node]; }

 private:
  void lower(size_t index, const std::vector<bool>& stored) {
    const Node& node = joint_.nodes[index];
    std::vector<Read>& reads = inlined_[index];
    for (const Read& read : node.reads) {
      const NodeId by = joint_.value(read.value).made_by;
      const bool later = stored_from_[read.value.value] != kNone && index < stored_from_[read.value.value];
      const bool real = (real_[read.value.value] && !later) || !by.valid() || !runs_[by.value];
      if (real) {
        add_read(joint_, reads, read);
        continue;
      }
      // Of what is looked up no more is read than comes out.
      const int64_t made = joint_.value(read.value).elements;
      for (Read further : inlined_[by.value]) {
        if (read.elements < made && further.elements >= made) further.elements = read.elements;
        further.parted = further.parted || read.parted;
        add_read(joint_, reads, further);
      }
      add_nodes(computed_[index], computed_[by.value]);
      add_nodes(computed_[index], {by});
    }
    size_t steps = reads.size() + static_cast<size_t>(node.steps);
    for (const NodeId within : computed_[index]) steps += static_cast<size_t>(joint_.node(within).steps);
    const bool much = reads.size() > 1 && (reads.size() > kMostReads || steps > kMostSteps);
    for (const ValueId made : node.makes) {
      const bool again = users_[made.value] > 1 && (reads.size() > kManyReads || steps > kMostSteps);
      const bool must =
          stored[made.value] || node.kind != NodeKind::pointwise || node.has(kStored) || node.has(kScatters) || much;
      if (must || again) stored_from_[made.value] = kNone;
      real_[made.value] = real_[made.value] || must || again;
    }
  }

  // Where a library reads it through a view, it is stored when that is lowered: whoever reads it before computes it as well.
  void needed_by_library(const Read& read, uint32_t index) {
    const uint32_t value = read.value.value;
    if (!real_[value]) stored_from_[value] = index;
    if (!read.viewed) stored_from_[value] = kNone;
    real_[value] = true;
  }

  const JointGraph& joint_;
  const std::vector<bool>& runs_;
  std::vector<bool> real_;                     // by value
  std::vector<std::vector<Read>> inlined_;     // by node: what is read of what is stored
  std::vector<std::vector<NodeId>> computed_;  // by node
  std::vector<int> users_;
  std::vector<uint32_t> stored_from_;  // by value: the node from which on it is; kNone: always, or never
};

struct Group {
  Kernel kernel;
  size_t last = 0;              // position of its last node
  std::vector<uint32_t> needs;  // groups
  std::vector<uint32_t> users;  // groups that need it
  uint32_t order = 0;           // behind those of all that it needs
};

class Scheduler {
 public:
  Scheduler(const JointGraph& joint, const Lowering& lowering)
      : joint_(joint), lowering_(lowering), maker_(joint.values.size(), kNone), reading_(joint.values.size()) {}

  void add(size_t position) {
    const Node& node = joint_.nodes[position];
    const std::vector<Read>& reads = lowering_.reads(position);
    uint32_t group = node.kind == NodeKind::library ? kNone : best_group(position, reads);
    if (group == kNone) {
      group = static_cast<uint32_t>(groups_.size());
      groups_.push_back({.kernel = {.kind = node.kind,
                                    .elements = node.elements,
                                    .reduced = node.reduced,
                                    .inner = node.inner,
                                    .spread = node.has(kSpread),
                                    .apart = node.apart},
                         .last = position,
                         .order = group});
    }
    take_in(group, position, reads);
    join(group, position, reads);
  }

  std::vector<Kernel> finished(const std::vector<bool>& stored) {
    for (Group& group : groups_) finish(group, stored);
    std::vector<Kernel> kernels;
    kernels.reserve(groups_.size());
    for (Group& group : groups_) {
      if (!group.kernel.nodes.empty()) kernels.push_back(std::move(group.kernel));
    }
    return kernels;
  }

 private:
  [[nodiscard]] bool loops_fit(const Kernel& kernel, const Node& node) const {
    if (kernel.kind == NodeKind::library) return false;
    const int64_t all = kernel.elements * kernel.reduced;
    if (node.kind == NodeKind::pointwise) {
      if (kernel.kind == NodeKind::pointwise) return node.elements == kernel.elements;
      if (node.elements == kernel.elements) return true;
      if (node.has(kTurns)) return false;
      return kernel.inner && !kernel.spread && pieces(kernel) == 1 && node.elements == all;
    }
    if (kernel.kind == NodeKind::reduction) {
      return kernel.elements == node.elements && kernel.reduced == node.reduced &&
             pieces(kernel) == split_of({.results = node.elements, .reduced = node.reduced, .inner = node.inner});
    }
    return node.inner && !node.has(kSpread) && kernel.elements == node.elements * node.reduced &&
           split_of({.results = node.elements, .reduced = node.reduced, .inner = true}) == 1;
  }

  static int64_t pieces(const Kernel& kernel) {
    if (kernel.kind != NodeKind::reduction) return 1;
    return split_of({.results = kernel.elements, .reduced = kernel.reduced, .inner = kernel.inner});
  }

  // Whether one of the two reduces rows, the other sums over the same rows, and both read them from memory (mix_order.h).
  [[nodiscard]] bool mixes(uint32_t index, size_t position, const std::vector<Read>& reads) const {
    const Kernel& kernel = groups_[index].kernel;
    const Node& node = joint_.nodes[position];
    if (kernel.kind != NodeKind::reduction || node.kind != NodeKind::reduction || kernel.inner == node.inner)
      return false;
    if (kernel.spread || node.has(kSpread) || kernel.elements != node.reduced || kernel.reduced != node.elements) {
      return false;
    }
    const int64_t rows = kernel.inner ? kernel.elements : node.elements;
    const int64_t columns = kernel.inner ? kernel.reduced : node.reduced;
    if (!takes_along(rows, columns)) return false;
    if (!kernel.inner && std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                                     [&](NodeId id) { return joint_.node(id).kind != NodeKind::reduction; })) {
      return false;
    }
    bool shares = false;
    for (const Read& read : reads) {
      if (maker_[read.value.value] == index) return false;
      if (read.elements != rows * columns) continue;
      shares = shares || std::any_of(kernel.reads.begin(), kernel.reads.end(), [&](const Read& known) {
                 return known.value == read.value && known.elements == read.elements;
               });
    }
    return shares;
  }

  // The kernel with which the node shares the most bytes, of those that it can join.
  uint32_t best_group(size_t position, const std::vector<Read>& reads) {
    std::vector<std::pair<uint32_t, int64_t>> shared;  // group, bytes
    const auto share = [&](uint32_t group, int64_t bytes) {
      for (auto& [known, sum] : shared) {
        if (known != group) continue;
        sum += bytes;
        return;
      }
      shared.emplace_back(group, bytes);
    };
    for (const Read& read : reads) {
      const Value& value = joint_.value(read.value);
      const int64_t bytes = std::min(value.bytes(), read.elements * static_cast<int64_t>(size_of(value.dtype)));
      if (maker_[read.value.value] != kNone) share(maker_[read.value.value], bytes);
      const bool part = read.elements < value.elements;
      for (const uint32_t group : reading_[read.value.value]) {
        if (part && !adds_as(group, joint_.nodes[position])) continue;  // another part than others read
        if (position - groups_[group].last <= static_cast<size_t>(kDistant)) share(group, bytes);
      }
    }
    std::stable_sort(shared.begin(), shared.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [group, bytes] : shared) {
      const Group& candidate = groups_[group];
      if (candidate.kernel.nodes.empty()) continue;  // taken in by another
      if (candidate.kernel.nodes.size() >= kMostNodes || is_handed_in(candidate.kernel)) continue;
      if (!loops_fit(candidate.kernel, joint_.nodes[position]) && !mixes(group, position, reads)) continue;
      if (meets_scatter(group, position, reads)) continue;
      if (can_run_in(group, reads)) return group;
    }
    return kNone;
  }

  // Whether the group adds the same into rows: each neighbour's share of an enlarged image.
  [[nodiscard]] bool adds_as(uint32_t group, const Node& node) const {
    const std::vector<NodeId>& nodes = groups_[group].kernel.nodes;
    return node.has(kScatters) && std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
             return joint_.node(id).op == node.op && joint_.node(id).has(kScatters);
           });
  }

  // Made by autograd, before the pass begins.
  [[nodiscard]] bool is_handed_in(const Kernel& kernel) const {
    const std::vector<ValueId>& made = joint_.node(kernel.nodes.front()).makes;
    return !made.empty() && joint_.value(made.front()).tangent;
  }

  // What is added into, and what came of it, is whole only between kernels.
  [[nodiscard]] bool meets_scatter(uint32_t group, size_t position, const std::vector<Read>& reads) const {
    const Node& node = joint_.nodes[position];
    if (node.has(kScatters) && maker_[node.reads.back().value.value] == group) return true;
    return std::any_of(reads.begin(), reads.end(), [&](const Read& read) {
      return maker_[read.value.value] == group && joint_.node(joint_.value(read.value).made_by).has(kScatters);
    });
  }

  // Whether nothing that the node reads has to run behind the group.
  bool can_run_in(uint32_t group, const std::vector<Read>& reads) {
    std::vector<uint32_t> makers;
    for (const Read& read : reads) {
      const uint32_t maker = maker_[read.value.value];
      if (maker != kNone && maker != group) makers.push_back(maker);
    }
    const uint32_t order = groups_[group].order;
    const std::vector<uint32_t> before =
        reached(std::move(makers), &Group::needs, [&](uint32_t at) { return groups_[at].order >= order; });
    return std::find(before.begin(), before.end(), group) == before.end();
  }

  // The groups that can be reached from some, by those that they need or that need them, among those that count.
  template <typename Counts>
  std::vector<uint32_t> reached(std::vector<uint32_t> open, std::vector<uint32_t> Group::*next, const Counts& counts) {
    std::vector<uint32_t> found;
    ++mark_;
    seen_.resize(groups_.size());
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (seen_[at] == mark_ || !counts(at)) continue;
      seen_[at] = mark_;
      found.push_back(at);
      const std::vector<uint32_t>& further = groups_[at].*next;
      open.insert(open.end(), further.begin(), further.end());
    }
    return found;
  }

  // A group has to run behind another from now on: where it does not, what lies between the two is put in order anew (the order is kept
  // as Pearce and Kelly do, "A dynamic topological sort algorithm for directed acyclic graphs", 2007).
  void need(uint32_t index, uint32_t maker) {
    Group& group = groups_[index];
    if (std::find(group.needs.begin(), group.needs.end(), maker) != group.needs.end()) return;
    group.needs.push_back(maker);
    groups_[maker].users.push_back(index);
    const uint32_t low = group.order;
    const uint32_t high = groups_[maker].order;
    if (high < low) return;
    std::vector<uint32_t> moved =
        reached({maker}, &Group::needs, [&](uint32_t at) { return groups_[at].order >= low; });
    const size_t before = moved.size();
    const std::vector<uint32_t> behind =
        reached({index}, &Group::users, [&](uint32_t at) { return groups_[at].order <= high; });
    moved.insert(moved.end(), behind.begin(), behind.end());
    const auto by_order = [&](uint32_t a, uint32_t b) { return groups_[a].order < groups_[b].order; };
    std::sort(moved.begin(), moved.begin() + static_cast<std::ptrdiff_t>(before), by_order);
    std::sort(moved.begin() + static_cast<std::ptrdiff_t>(before), moved.end(), by_order);
    std::vector<uint32_t> places;
    for (const uint32_t at : moved) places.push_back(groups_[at].order);
    std::sort(places.begin(), places.end());
    for (size_t i = 0; i < moved.size(); ++i) groups_[moved[i]].order = places[i];
  }

  // Elementwise kernels that nobody read before the node does are joined with its own (what draws the mask of a dropout).
  void take_in(uint32_t index, size_t position, const std::vector<Read>& reads) {
    for (const Read& read : reads) {
      const uint32_t from = maker_[read.value.value];
      if (from == kNone || from == index) continue;
      const Kernel& kernel = groups_[from].kernel;
      const size_t nodes = kernel.nodes.size() + groups_[index].kernel.nodes.size();
      if (kernel.kind != NodeKind::pointwise || nodes >= kMostNodes || is_handed_in(kernel)) continue;
      const bool fits = std::all_of(kernel.nodes.begin(), kernel.nodes.end(), [&](NodeId id) {
        const Node& node = joint_.node(id);
        return !node.has(kScatters) && loops_fit(groups_[index].kernel, node) &&
               std::all_of(node.makes.begin(), node.makes.end(),
                           [&](ValueId made) { return reading_[made.value].empty(); });
      });
      if (!fits || kernel.elements != joint_.nodes[position].elements || !can_run_in(index, kernel.reads)) continue;
      Kernel taken = std::move(groups_[from].kernel);
      groups_[from].kernel = {};
      for (const NodeId id : taken.nodes) join(index, id.value, lowering_.reads(id.value));
      std::sort(groups_[index].kernel.nodes.begin(), groups_[index].kernel.nodes.end(),
                [](NodeId a, NodeId b) { return a.value < b.value; });
    }
  }

  void join(uint32_t index, size_t position, const std::vector<Read>& reads) {
    Group& group = groups_[index];
    const Node& node = joint_.nodes[position];
    group.last = std::max(group.last, position);
    group.kernel.nodes.emplace_back(position);
    if (node.kind != NodeKind::library) add_nodes(group.kernel.inlined, lowering_.computed(position));
    const bool other_order = node.kind == NodeKind::reduction && group.kernel.kind == NodeKind::reduction &&
                             group.kernel.inner != node.inner;
    if (other_order) {
      const std::vector<NodeId> sums = node.inner ? group.kernel.nodes : std::vector<NodeId>{NodeId(position)};
      for (const NodeId id : sums) {
        if (node.inner && id == NodeId(position)) continue;
        const std::vector<ValueId>& made = joint_.node(id).makes;
        group.kernel.across.insert(group.kernel.across.end(), made.begin(), made.end());
      }
    }
    if (node.kind == NodeKind::reduction && (group.kernel.kind == NodeKind::pointwise || (other_order && node.inner))) {
      group.kernel.kind = NodeKind::reduction;
      group.kernel.elements = node.elements;
      group.kernel.reduced = node.reduced;
      group.kernel.inner = node.inner;
      group.kernel.spread = node.has(kSpread);
      group.kernel.apart = node.apart;
    }
    for (const Read& read : reads) {
      add_read(joint_, group.kernel.reads, read);
      group.kernel.parted = group.kernel.parted || (read.parted && node.kind == NodeKind::reduction);
      const uint32_t maker = maker_[read.value.value];
      if (maker != kNone && maker != index) need(index, maker);
      std::vector<uint32_t>& readers = reading_[read.value.value];
      if (std::find(readers.begin(), readers.end(), index) == readers.end()) readers.push_back(index);
    }
    for (const ValueId made : node.makes) maker_[made.value] = index;
  }

  // Reads of what it makes itself are none; writes are what somebody else reads.
  void finish(Group& group, const std::vector<bool>& stored) {
    const auto index = static_cast<uint32_t>(&group - groups_.data());
    std::erase_if(group.kernel.reads, [&](const Read& read) { return maker_[read.value.value] == index; });
    for (const NodeId id : group.kernel.nodes) {
      for (const ValueId made : joint_.node(id).makes) {
        const std::vector<uint32_t>& readers = reading_[made.value];
        const bool elsewhere =
            std::any_of(readers.begin(), readers.end(), [&](uint32_t reader) { return reader != index; });
        const bool library = group.kernel.kind == NodeKind::library;
        if (stored[made.value] || elsewhere || library || is_read_again(group.kernel, made)) {
          group.kernel.writes.push_back(made);
        }
      }
    }
    std::erase_if(group.kernel.across, [&](ValueId sum) {
      return std::find(group.kernel.writes.begin(), group.kernel.writes.end(), sum) == group.kernel.writes.end();
    });
    if (group.kernel.kind != NodeKind::library) find_over(group.kernel, index);
    group.kernel.pieces = pieces(group.kernel);
    if (group.kernel.pieces > 1) group.kernel.further = further(group.kernel);
  }

  // Whether a loop that reduces makes it, and the loop behind, which has what was reduced, looks at it once more. Rows that are short
  // are held in registers between the two.
  [[nodiscard]] bool is_read_again(const Kernel& kernel, ValueId made) const {
    const Value& value = joint_.value(made);
    const bool in_rows = kernel.inner && !kernel.spread && !kernel.apart && is_row(kernel);
    if (kernel.kind != NodeKind::reduction ||
        kernel.reduced <= (in_rows ? kLongestPersistentRow : kLongestPersistentColumn))
      return false;
    if (joint_.node(value.made_by).kind != NodeKind::pointwise) return false;
    if (value.elements != kernel.elements * kernel.reduced) return false;
    return std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [&](NodeId id) {
      if (joint_.node(id).kind != NodeKind::pointwise) return false;
      const std::vector<Read>& reads = lowering_.reads(id.value);
      const auto is_reduced_here = [&](const Read& read) {
        const NodeId by = joint_.value(read.value).made_by;
        return by.valid() && joint_.node(by).kind == NodeKind::reduction &&
               std::find(kernel.nodes.begin(), kernel.nodes.end(), by) != kernel.nodes.end();
      };
      return std::any_of(reads.begin(), reads.end(), [&](const Read& read) { return read.value == made; }) &&
             std::any_of(reads.begin(), reads.end(), is_reduced_here);
    });
  }

  // Of each result the inputs that have an element for each of its own, where all others in the kernel that read such an input ran
  // before, and element by element too: a reduction reads rows.
  void find_over(Kernel& kernel, uint32_t index) {
    std::vector<uint64_t> before(kernel.nodes.size());  // by node: those that it is made of
    for (size_t i = 0; i < kernel.nodes.size(); ++i) {
      for (const Read& read : lowering_.reads(kernel.nodes[i].value)) {
        if (maker_[read.value.value] != index) continue;
        const size_t by = position_of(kernel, joint_.value(read.value).made_by);
        if (by < i) before[i] |= before[by] | uint64_t{1} << by;
      }
    }
    kernel.over.resize(kernel.writes.size());
    for (size_t w = 0; w < kernel.writes.size(); ++w) {
      const Value& made = joint_.value(kernel.writes[w]);
      const size_t by = position_of(kernel, made.made_by);
      const Node& node = joint_.node(made.made_by);
      if (node.kind != NodeKind::pointwise || node.has(kTurns) || node.has(kScatters)) continue;
      for (const Read& read : lowering_.reads(made.made_by.value)) {
        const Value& input = joint_.value(read.value);
        const bool whole = read.elements == made.elements && input.elements == made.elements;
        if (!whole || input.dtype != made.dtype || maker_[read.value.value] == index) continue;
        if (read_so(kernel, by, read.value, before[by])) kernel.over[w].push_back(read.value);
      }
    }
  }
  static size_t position_of(const Kernel& kernel, NodeId node) {
    return static_cast<size_t>(std::find(kernel.nodes.begin(), kernel.nodes.end(), node) - kernel.nodes.begin());
  }
  [[nodiscard]] bool read_so(const Kernel& kernel, size_t by, ValueId value, uint64_t before) const {
    for (size_t i = 0; i < kernel.nodes.size(); ++i) {
      if (i == by) continue;
      const std::vector<Read>& reads = lowering_.reads(kernel.nodes[i].value);
      const bool also = std::any_of(reads.begin(), reads.end(), [&](const Read& read) { return read.value == value; });
      if (!also) continue;
      const Node& other = joint_.node(kernel.nodes[i]);
      if (other.kind == NodeKind::reduction || (before >> i & 1U) == 0) return false;
    }
    return true;
  }

  // Sums are put together one by one; mean and variance of one op at once, in several steps where there are many pieces.
  [[nodiscard]] int further(const Kernel& kernel) const {
    int sums = 0;
    int steps = 1;
    OpId last;
    for (const NodeId id : kernel.nodes) {
      const Node& node = joint_.node(id);
      if (node.kind != NodeKind::reduction) continue;
      const bool statistics = !node.backward && node.op == last;
      if (!statistics) ++sums;
      for (int64_t left = kernel.pieces; statistics && steps < 4; ++steps) {
        left = split_of({.results = kernel.elements, .reduced = left, .inner = false});
        if (left == 1) break;
      }
      last = node.op;
    }
    return std::max(sums, steps);
  }

  const JointGraph& joint_;
  const Lowering& lowering_;
  std::vector<Group> groups_;
  std::vector<uint32_t> maker_;                 // by value: the group that makes it
  std::vector<std::vector<uint32_t>> reading_;  // by value: groups that read it
  std::vector<uint32_t> seen_;
  uint32_t mark_ = 0;
};

}  // namespace

bool is_row(const Kernel& kernel) {
  constexpr int64_t kManyRows = 64 * kMultiprocessors;
  const bool across =
      std::any_of(kernel.reads.begin(), kernel.reads.end(), [](const Read& read) { return read.across; });
  return kernel.inner && !across && !(kernel.parted && kernel.elements >= kManyRows);
}

std::vector<Kernel> fuse(const JointGraph& joint, const std::vector<bool>& runs, const std::vector<bool>& stored) {
  const Lowering lowering(joint, runs, stored);
  Scheduler scheduler(joint, lowering);
  for (size_t i = 0; i < joint.nodes.size(); ++i) {
    if (!runs[i]) continue;
    const Node& node = joint.nodes[i];
    const bool real =
        std::any_of(node.makes.begin(), node.makes.end(), [&](ValueId made) { return lowering.is_stored(made); });
    if (real || node.kind == NodeKind::library) scheduler.add(i);
  }
  return scheduler.finished(stored);
}

}  // namespace forerun::compile
