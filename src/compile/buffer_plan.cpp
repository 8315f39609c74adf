#include "compile/buffer_plan.h"

#include <algorithm>
#include <unordered_map>

namespace forerun::compile {
namespace {

constexpr size_t kNever = SIZE_MAX;

class Planner {
 public:
  Planner(const JointGraph& joint, const std::vector<Kernel>& kernels, const PassValues& values,
          std::vector<int64_t> estimate)
      : joint_(joint),
        kernels_(kernels),
        values_(values),
        estimate_(std::move(estimate)),
        peak_(estimate_.empty() ? 0 : *std::max_element(estimate_.begin(), estimate_.end())),
        takes_(joint.values.size()),
        last_use_(joint.values.size(), kNever),
        taken_(joint.values.size()),
        mine_(joint.values.size()) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      for (const Read& read : kernels[i].reads) last_use_[read.value.value] = i;
      for (const ValueId made : kernels[i].writes) last_use_[made.value] = i;
    }
  }

  std::vector<ValueId> planned() {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      place(i);
      free(i);
    }
    return std::move(takes_);
  }

 private:
  struct Freed {
    ValueId value;
    size_t at;  // kernel
  };

  void place(size_t at) {
    const Kernel& kernel = kernels_[at];
    if (kernel.kind == NodeKind::library && values_.makes_itself(kernel)) return;
    for (size_t i = 0; i < kernel.writes.size(); ++i) {
      const ValueId made = kernel.writes[i];
      if (joint_.value(made).tangent || add_into(made)) continue;
      if (i < kernel.over.size() && write_over(at, made, kernel.over[i])) continue;
      hand_on(at, made);
    }
  }

  // Rows are added where the table lies.
  bool add_into(ValueId made) {
    const Node& node = joint_.node(joint_.value(made).made_by);
    if (!node.has(kScatters)) return false;
    const ValueId table = node.reads.back().value;
    if (!mine_[table.value] || taken_[table.value]) return false;
    take(made, table);
    return true;
  }

  // Takes the memory of an input that ends here.
  bool write_over(size_t at, ValueId made, const std::vector<ValueId>& inputs) {
    for (const ValueId id : inputs) {
      const Value& input = joint_.value(id);
      const bool ends = last_use_[id.value] == at && !values_.stored[id.value] && !taken_[id.value];
      if (!ends || !input.made_by.valid() || input.forward_result || input.backward_result) continue;
      if (input.tangent || input.returned) continue;  // the caller's
      if (input.dtype != joint_.value(made).dtype || values_.bytes(id) != values_.bytes(made)) continue;
      take(made, id);
      return true;
    }
    return false;
  }

  void hand_on(size_t at, ValueId made) {
    const auto found = pool_.find(key_of(made));
    if (found == pool_.end() || found->second.empty()) return;
    const Freed freed = found->second.back();
    if (freed.at + 1 != at) {
      const auto begin = estimate_.begin() + static_cast<std::ptrdiff_t>(freed.at) + 1;
      const auto end = estimate_.begin() + static_cast<std::ptrdiff_t>(at);
      const int64_t bytes = values_.bytes(made);
      if (*std::max_element(begin, end) + bytes > peak_) return;
      for (auto step = begin; step != end; ++step) *step += bytes;
    }
    found->second.pop_back();
    take(made, freed.value);
  }

  void take(ValueId made, ValueId from) {
    takes_[made.value] = from;
    taken_[from.value] = true;
  }

  // What the pass was given is freed, and not handed on.
  void free(size_t at) {
    const Kernel& kernel = kernels_[at];
    const auto give = [&](ValueId id) {
      if (last_use_[id.value] != at || taken_[id.value] || values_.stored[id.value] || !mine_[id.value]) return;
      const Value& value = joint_.value(id);
      if (value.tangent || value.returned) return;
      pool_[key_of(id)].push_back({id, at});
      mine_[id.value] = false;
    };
    for (const ValueId made : kernel.writes) mine_[made.value] = true;
    for (const Read& read : kernel.reads) give(read.value);
    for (const ValueId made : kernel.writes) give(made);
  }

  [[nodiscard]] uint64_t key_of(ValueId id) const {
    return static_cast<uint64_t>(values_.bytes(id)) << 8U | static_cast<uint64_t>(joint_.value(id).dtype);
  }

  const JointGraph& joint_;
  const std::vector<Kernel>& kernels_;
  const PassValues& values_;
  std::vector<int64_t> estimate_;
  int64_t peak_;
  std::vector<ValueId> takes_;
  std::vector<size_t> last_use_;
  std::vector<bool> taken_;                                // by value: its memory went to another
  std::vector<bool> mine_;                                 // by value: this pass made it, and it is not free
  std::unordered_map<uint64_t, std::vector<Freed>> pool_;  // by type and size
};

}  // namespace

std::vector<ValueId> plan_buffers(const JointGraph& joint, const std::vector<Kernel>& kernels, const PassValues& values,
                                  std::vector<int64_t> estimate) {
  return Planner(joint, kernels, values, std::move(estimate)).planned();
}

}  // namespace forerun::compile
