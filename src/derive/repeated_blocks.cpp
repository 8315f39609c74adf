#include "derive/repeated_blocks.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph_builder.h"
#include "graph/op_modules.h"

namespace forerun::derive {
namespace {

constexpr size_t kFewest = 5;  // equal blocks of which any are left out
constexpr size_t kNowhere = SIZE_MAX;

struct BlockSpan {
  std::string_view name;
  size_t begin = 0, end = 0;  // ops
};

std::vector<BlockSpan> blocks_in_order(const Graph& graph) {
  std::vector<BlockSpan> blocks;
  const ModuleBlocks names(graph);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const std::string_view name = names.of(graph.module(graph.ops()[i]));
    if (name.empty()) continue;
    if (!blocks.empty() && blocks.back().name == name && blocks.back().end == i) {
      ++blocks.back().end;
    } else {
      blocks.push_back({name, i, i + 1});
    }
  }
  return blocks;
}

bool same_tensor(const Graph& graph, TensorId a, TensorId b) {
  const auto x = graph.shape(a), y = graph.shape(b);
  return graph.tensor(a).dtype == graph.tensor(b).dtype && std::equal(x.begin(), x.end(), y.begin(), y.end()) &&
         graph.storage(graph.tensor(a).storage).root == graph.storage(graph.tensor(b).storage).root;
}

bool same_blocks(const Graph& graph, const BlockSpan& a, const BlockSpan& b) {
  if (a.end - a.begin != b.end - b.begin) return false;
  for (size_t i = 0; i < a.end - a.begin; ++i) {
    const Op& x = graph.ops()[a.begin + i];
    const Op& y = graph.ops()[b.begin + i];
    if (x.name != y.name || x.attributes != y.attributes || x.input_count != y.input_count ||
        x.output_count != y.output_count) {
      return false;
    }
    for (size_t k = 0; k < x.input_count; ++k) {
      if (!same_tensor(graph, graph.inputs(x)[k], graph.inputs(y)[k])) return false;
    }
    for (size_t k = 0; k < x.output_count; ++k) {
      if (!same_tensor(graph, graph.outputs(x)[k], graph.outputs(y)[k])) return false;
    }
  }
  return true;
}

// Blocks first to last, each beginning where the one before ends.
struct BlockRun {
  size_t first = 0, count = 0;
};

BlockRun longest_run(const Graph& graph, const std::vector<BlockSpan>& blocks) {
  BlockRun longest;
  for (size_t first = 0; first < blocks.size();) {
    size_t end = first + 1;
    while (end < blocks.size() && blocks[end].begin == blocks[end - 1].end &&
           same_blocks(graph, blocks[first], blocks[end])) {
      ++end;
    }
    if (end - first > longest.count) longest = {first, end - first};
    first = end;
  }
  return longest;
}

class Shortening {
 public:
  Shortening(const Graph& graph, const std::vector<BlockSpan>& blocks, const BlockRun& run)
      : from_(graph),
        middle_(blocks[run.first + 1]),
        last_out_(blocks[run.first + run.count - 2]),
        begin_(blocks[run.first + 2].begin),
        end_(last_out_.end),
        made_by_(graph.tensors().size(), kNowhere),
        now_(graph.tensors().size()) {}

  // Nothing where what is left out is needed elsewhere.
  std::optional<Graph> build() {
    for (size_t i = 0; i < from_.op_count(); ++i) {
      for (const TensorId id : from_.outputs(from_.ops()[i])) {
        if (made_by_[id.value] == kNowhere) made_by_[id.value] = i;
      }
    }
    drop_own_roots();
    for (size_t i = 0; i < from_.tensors().size(); ++i) {
      if (is_root(TensorId(i)) && !dropped_[i]) copy(TensorId(i));
    }
    for (size_t i = 0; i < from_.op_count(); ++i) {
      if (i >= begin_ && i < end_) continue;
      if (!add_op(from_.ops()[i])) return std::nullopt;
    }
    for (const TensorId id : from_.results()) {
      const std::optional<TensorId> result = now(id);
      if (!result) return std::nullopt;
      to_.add_result(*result);
    }
    int64_t parameters = from_.parameter_count();
    for (const TensorId id : from_.parameters()) {
      if (dropped_[id.value]) {
        parameters -= from_.element_count(id);
      } else {
        to_.add_parameter(now_[id.value]);
      }
    }
    to_.set_parameter_count(parameters);
    return to_.finish();
  }

 private:
  [[nodiscard]] bool is_root(TensorId id) const { return from_.storage(from_.tensor(id).storage).root != Root::none; }

  // Weights of the blocks that are left out, which nobody else reads.
  void drop_own_roots() {
    dropped_.assign(from_.tensors().size(), false);
    const auto mark = [&](bool within, bool as) {
      for (size_t i = 0; i < from_.op_count(); ++i) {
        if ((i >= begin_ && i < end_) != within) continue;
        for (const TensorId id : from_.inputs(from_.ops()[i])) {
          if (is_root(id)) dropped_[id.value] = as;
        }
      }
    };
    mark(true, true);
    mark(false, false);
  }

  TensorId copy(TensorId id) {
    const Tensor& tensor = from_.tensor(id);
    const Storage& storage = from_.storage(tensor.storage);
    const StorageId own = to_.add_storage(storage.bytes, storage.on_gpu);
    if (storage.root != Root::none) to_.mark_root(own, storage.root, from_.names()[storage.root_name]);
    const auto shape = from_.shape(id);
    return now_[id.value] = to_.add_tensor(own, tensor.dtype, shape);
  }

  // What stands for a tensor: what the last block that is left out made, its like in the middle block made.
  std::optional<TensorId> now(TensorId id) {
    const size_t maker = made_by_[id.value];
    if (now_[id.value].valid()) return now_[id.value];
    if (maker == kNowhere || maker < last_out_.begin || maker >= last_out_.end) return std::nullopt;
    const Op& op = from_.ops()[maker];
    const Op& like = from_.ops()[middle_.begin + (maker - last_out_.begin)];
    for (size_t k = 0; k < op.output_count; ++k) {
      if (from_.outputs(op)[k] == id) return now_[from_.outputs(like)[k].value];
    }
    return std::nullopt;
  }

  bool add_op(const Op& op) {
    std::vector<TensorId> inputs, outputs;
    for (const TensorId id : from_.inputs(op)) {
      const std::optional<TensorId> input = now(id);
      if (!input) return false;
      inputs.push_back(*input);
    }
    for (const TensorId id : from_.outputs(op)) {
      const std::optional<TensorId> there = now(id);
      outputs.push_back(there ? *there : copy(id));
    }
    to_.add_op({.name = from_.name(op),
                .module = from_.module(op),
                .inputs = inputs,
                .outputs = outputs,
                .attributes = &from_.attributes(op)});
    return true;
  }

  const Graph& from_;
  BlockSpan middle_, last_out_;
  size_t begin_, end_;  // ops that are left out
  GraphBuilder to_;
  std::vector<size_t> made_by_;  // by tensor: the op
  std::vector<TensorId> now_;
  std::vector<bool> dropped_;
};

}  // namespace

ShortForward without_repeats(const Graph& forward) {
  const std::vector<BlockSpan> blocks = blocks_in_order(forward);
  const BlockRun run = longest_run(forward, blocks);
  if (run.count < kFewest) return {.graph = forward, .block = {}};
  std::optional<Graph> graph = Shortening(forward, blocks, run).build();
  if (!graph) return {.graph = forward, .block = {}};
  return {.graph = std::move(*graph),
          .block = std::string(blocks[run.first + 1].name),
          .others = static_cast<int64_t>(run.count - 3)};
}

}  // namespace forerun::derive
