#include "compile/run_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "base/check.h"

namespace forerun::compile {
namespace {

constexpr uint32_t kNoKernel = UINT32_MAX;

void add_once(std::vector<uint32_t>& list, uint32_t entry) {
  if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
}

// By kernel: its place in an order.
std::vector<uint32_t> places_in(const std::vector<uint32_t>& order) {
  std::vector<uint32_t> places(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  return places;
}

// Every kernel behind what it needs, which is put right before it; both in the order given.
std::vector<uint32_t> behind_needs(const std::vector<uint32_t>& kernels,
                                   const std::vector<std::vector<uint32_t>>& needs) {
  std::vector<uint32_t> order;
  std::vector<bool> seen(needs.size());
  std::vector<std::pair<uint32_t, size_t>> open;  // kernel, how many of its needs were visited
  const auto visit = [&](uint32_t kernel) {
    if (!seen[kernel]) open.emplace_back(kernel, 0);
    seen[kernel] = true;
  };
  for (const uint32_t start : kernels) {
    visit(start);
    while (!open.empty()) {
      const uint32_t at = open.back().first;
      if (open.back().second < needs[at].size()) {
        visit(needs[at][open.back().second++]);
        continue;
      }
      order.push_back(at);
      open.pop_back();
    }
  }
  return order;
}

}  // namespace

PassMemory::PassMemory(const JointGraph& joint, const std::vector<Kernel>& kernels, const std::vector<bool>& stored,
                       const std::vector<bool>& kept)
    : buffer_of_(joint.values.size(), kNoKernel),
      makes_(kernels.size()),
      reads_(kernels.size()),
      needs_(kernels.size()),
      users_(kernels.size()),
      size_(kernels.size()),
      first_(kernels.size()),
      again_(kernels.size()) {
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    again_[k] = std::none_of(kernels[k].nodes.begin(), kernels[k].nodes.end(),
                             [&](NodeId id) { return joint.node(id).backward; });
  }
  std::vector<std::pair<NodeId, uint32_t>> nodes;  // and their kernels; a table comes before what adds rows to it
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    for (const NodeId id : kernels[k].nodes) nodes.emplace_back(id, k);
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.first.value < b.first.value; });
  for (const auto& [id, k] : nodes) {
    const Node& node = joint.node(id);
    for (const ValueId made : node.makes) {
      // What rows are added into is written by the one that adds.
      const uint32_t into = node.has(kScatters) ? buffer_of_[node.reads.back().value.value] : kNoKernel;
      if (into == kNoKernel) {
        add_value(made, k, joint, stored);
      } else {
        buffer_of_[made.value] = into;
        buffers_[into].stored = buffers_[into].stored || stored[made.value];
      }
      first_[k] = first_[k] || joint.value(made).tangent;
    }
  }
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    for (const Read& read : kernels[k].reads) {
      const Value& value = joint.value(read.value);
      uint32_t& buffer = buffer_of_[read.value.value];
      if (buffer == kNoKernel && kept[read.value.value] && value.made_by.valid()) {
        add_value(read.value, kNoKernel, joint, stored);
      }
      if (buffer == kNoKernel || buffers_[buffer].maker == k) continue;
      add_once(reads_[k], buffer);
      add_once(buffers_[buffer].readers, k);
    }
  }
  // A kernel needs whoever wrote what it reads: the maker of a table, and those that added rows to it before.
  std::vector<uint32_t> writer(joint.values.size(), kNoKernel);
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    for (const NodeId id : kernels[k].nodes) {
      for (const ValueId made : joint.node(id).makes) writer[made.value] = k;
    }
  }
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    for (const Read& read : kernels[k].reads) {
      const uint32_t need = writer[read.value.value];
      if (need == kNoKernel || need == k) continue;
      add_once(needs_[k], need);
      add_once(users_[need], k);
    }
  }
}

void PassMemory::add_value(ValueId value, uint32_t maker, const JointGraph& joint, const std::vector<bool>& stored) {
  const Value& known = joint.value(value);
  const int64_t bytes = known.tangent ? 0 : known.bytes();
  buffer_of_[value.value] = static_cast<uint32_t>(buffers_.size());
  buffers_.push_back({.bytes = bytes, .maker = maker, .readers = {}, .stored = stored[value.value]});
  if (maker == kNoKernel) return;
  makes_[maker].push_back(buffer_of_[value.value]);
  size_[maker] += bytes;
}

std::vector<uint32_t> PassMemory::order() const {
  const std::vector<uint32_t> baseline = sorted();
  std::vector<uint32_t> best = baseline;
  int64_t least = peak(baseline);
  for (const auto& method :
       {&PassMemory::least_memory_first, &PassMemory::first_come_first, &PassMemory::depth_first}) {
    std::vector<uint32_t> tried = (this->*method)(baseline);
    CHECK(tried.size() == baseline.size(), "every kernel runs once");
    const int64_t bytes = peak(tried);
    if (bytes >= least) continue;
    least = bytes;
    best = std::move(tried);
  }
  std::stable_partition(best.begin(), best.end(), [&](uint32_t kernel) { return first_[kernel]; });
  return best;
}

std::vector<int64_t> PassMemory::estimate(const std::vector<uint32_t>& order) const {
  const std::vector<uint32_t> place = places_in(order);
  std::vector<int64_t> bytes(order.size() + 1);
  for (const Buffer& buffer : buffers_) {
    const uint32_t begin = buffer.maker == kNoKernel ? 0 : place[buffer.maker];
    bytes[begin] += buffer.bytes;
    if (buffer.stored) continue;
    uint32_t last = begin;
    for (const uint32_t reader : buffer.readers) last = std::max(last, place[reader]);
    bytes[last + 1] -= buffer.bytes;
  }
  for (size_t i = 1; i < bytes.size(); ++i) bytes[i] += bytes[i - 1];
  bytes.pop_back();
  return bytes;
}

int64_t PassMemory::peak(const std::vector<uint32_t>& order) const {
  const std::vector<int64_t> bytes = estimate(order);
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

// What is computed again runs when it is needed first.
std::vector<uint32_t> PassMemory::sorted() const {
  std::vector<uint32_t> kernels(makes_.size());
  std::iota(kernels.begin(), kernels.end(), 0);
  if (std::find(again_.begin(), again_.end(), false) != again_.end()) {
    std::stable_partition(kernels.begin(), kernels.end(), [&](uint32_t kernel) { return !again_[kernel]; });
  }
  return behind_needs(kernels, needs_);
}

// Of those that can run: one that stays below the peak so far and leaves the least, or else the one that takes the least.
std::vector<uint32_t> PassMemory::least_memory_first(const std::vector<uint32_t>& baseline) const {
  const std::vector<uint32_t> index = places_in(baseline);
  std::vector<uint32_t> left(makes_.size());  // needs that have not run
  std::vector<uint32_t> ready;
  std::vector<uint32_t> uses(buffers_.size());
  std::vector<int64_t> frees(makes_.size());
  int64_t live = 0;
  int64_t results = 0;
  for (uint32_t b = 0; b < buffers_.size(); ++b) {
    const Buffer& buffer = buffers_[b];
    uses[b] = static_cast<uint32_t>(buffer.readers.size()) + (buffer.stored ? 1 : 0);
    if (buffer.maker == kNoKernel) live += buffer.bytes;
    if (buffer.stored) results += buffer.bytes;
  }
  for (const uint32_t k : baseline) {
    left[k] = static_cast<uint32_t>(needs_[k].size());
    if (left[k] == 0) ready.push_back(k);
    for (const uint32_t b : reads_[k]) frees[k] += uses[b] == 1 ? buffers_[b].bytes : 0;
    for (const uint32_t b : makes_[k]) frees[k] += uses[b] == 0 ? buffers_[b].bytes : 0;
  }
  int64_t most = std::max(live, results);
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const int64_t gap = most - live;
    const auto key = [&](uint32_t k) {
      return std::tuple(size_[k] > gap ? size_[k] : 0, size_[k] - frees[k], index[k]);
    };
    size_t best = 0;
    for (size_t i = 1; i < ready.size(); ++i) {
      if (key(ready[i]) < key(ready[best])) best = i;
    }
    const uint32_t at = ready[best];
    ready[best] = ready.back();
    ready.pop_back();
    order.push_back(at);
    live += size_[at];
    most = std::max(most, live);
    live -= frees[at];
    for (const uint32_t user : users_[at]) {
      if (--left[user] == 0) ready.push_back(user);
    }
    for (const uint32_t b : reads_[at]) {
      if (--uses[b] != 1) continue;
      for (const uint32_t reader : buffers_[b].readers) frees[reader] += buffers_[b].bytes;
    }
  }
  return order;
}

// Whose needs ran the earliest is first.
std::vector<uint32_t> PassMemory::first_come_first(const std::vector<uint32_t>& baseline) const {
  const std::vector<uint32_t> index = places_in(baseline);
  using Entry = std::pair<std::vector<uint32_t>, uint32_t>;  // when its needs ran, place in the baseline
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<uint32_t> left(makes_.size());
  std::vector<uint32_t> ran(makes_.size());
  const auto push = [&](uint32_t k) {
    std::vector<uint32_t> when;
    for (const uint32_t need : needs_[k]) when.push_back(ran[need]);
    std::sort(when.begin(), when.end());
    ready.emplace(std::move(when), index[k]);
  };
  for (const uint32_t k : baseline) {
    left[k] = static_cast<uint32_t>(needs_[k].size());
    if (left[k] == 0) push(k);
  }
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    const uint32_t at = baseline[ready.top().second];
    ready.pop();
    ran[at] = static_cast<uint32_t>(order.size());
    order.push_back(at);
    for (const uint32_t user : users_[at]) {
      if (--left[user] == 0) push(user);
    }
  }
  return order;
}

// Those that read and make the least first, each behind what it needs.
std::vector<uint32_t> PassMemory::depth_first(const std::vector<uint32_t>& baseline) const {
  const std::vector<uint32_t> index = places_in(baseline);
  std::vector<int64_t> moved = size_;
  for (uint32_t k = 0; k < moved.size(); ++k) {
    for (const uint32_t b : reads_[k]) moved[k] += buffers_[b].bytes;
  }
  const auto lighter = [&](uint32_t a, uint32_t b) {
    return std::pair(moved[a], index[a]) < std::pair(moved[b], index[b]);
  };
  std::vector<uint32_t> light = baseline;
  std::sort(light.begin(), light.end(), lighter);
  std::vector<std::vector<uint32_t>> needs = needs_;
  for (std::vector<uint32_t>& list : needs) std::sort(list.begin(), list.end(), lighter);
  return behind_needs(light, needs);
}

}  // namespace forerun::compile
