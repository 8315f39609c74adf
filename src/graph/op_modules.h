// Which module of the model each op belongs to: backward ops belong to the module of the forward op they differentiate,
// which captures name by its autograd sequence number, or the op of a block that ran again within the backward pass; of what
// did not have to run again (the last product of a block), the last that did. Ops of the update, and those nothing is known of,
// keep their own.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace forerun {

// Whether an op of the backward pass is one of a checkpointed block that runs forward again.
bool runs_again(const Graph& graph, const Op& op);

// Modules by sequence number, the first that came with it. Numbers mostly count the ops; records may have any.
class SequenceModules {
 public:
  explicit SequenceModules(const Graph& graph) : few_(graph.op_count() + 1) {}
  void add(uint32_t sequence, NameId module) {
    if (sequence >= few_.size()) {
      many_.try_emplace(sequence, module);
    } else if (!few_[sequence].valid()) {
      few_[sequence] = module;
    }
  }
  // Invalid where there is none.
  [[nodiscard]] NameId of(uint32_t sequence) const {
    if (sequence < few_.size()) return few_[sequence];
    const auto found = many_.find(sequence);
    return found == many_.end() ? NameId() : found->second;
  }

 private:
  std::vector<NameId> few_;
  std::unordered_map<uint32_t, NameId> many_;
};

// By op.
std::vector<NameId> op_modules(const Graph& graph);

// The block that a module or parameter belongs to: its name up to the first part that is a number, as layers of a list
// are called: "layer1.0" of "layer1.0.conv2", "transformer.h.11" of "transformer.h.11.mlp.c_fc.weight". Empty where no
// part is a number, or where nothing lies below it (the layer itself is one op: "features.0").
std::string_view block_of(std::string_view module);

// The blocks of a model's modules. An op of the block itself (a residual sum, in "transformer.h.11") belongs to it where
// other ops lie below it.
class ModuleBlocks {
 public:
  explicit ModuleBlocks(const Graph& graph);
  // Empty where a module or parameter is part of none.
  [[nodiscard]] std::string_view of(std::string_view module) const;

 private:
  std::set<std::string, std::less<>> names_;
};

// "transformer.h.*.mlp" of "transformer.h.11.mlp": layers of a list under one name.
std::string folded_module(std::string_view module);

}  // namespace forerun
