#include "derive/tensor_splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "derive/expert_parallel.h"
#include "derive/op_class.h"
#include "derive/value.h"

namespace forerun::derive {
namespace {

constexpr int64_t kRowsTogether = 128;    // of a vocabulary that does not divide: padded to a multiple on each GPU
constexpr int64_t kVocabulary = 4096;     // rows from which a table or a last layer is padded rather than left whole
constexpr int64_t kFewParts = 3;          // queries, keys and values
constexpr int64_t kWideLayer = 64;        // columns from which a layer is worth splitting
constexpr double kLeastShared = 0.95;     // of the weights of linear layers and tables
constexpr uint32_t kNobody = UINT32_MAX;  // no split
constexpr int64_t kMostGroup = int64_t{1} << 20;

int64_t elements_of(std::span<const int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

class SplitFinder {
 public:
  SplitFinder(const Graph& forward, int64_t gpus)
      : graph_(forward),
        gpus_(gpus),
        given_up_(forward.op_count(), false),
        made_by_(forward.tensors().size(), kNobody) {
    for (uint32_t i = 0; i < graph_.op_count(); ++i) {
      for (const TensorId id : graph_.outputs(graph_.ops()[i])) made_by_[id.value] = i;
    }
  }

  Result<TensorSplits> run() {
    do {
      begin_pass();
      for (size_t i = 0; i < graph_.op_count(); ++i) visit(i);
    } while (give_up_refused());
    if (Status status = check(); !status.ok()) return status.error();
    return TensorSplits{std::move(splits_), std::move(roles_)};
  }

 private:
  // --- splits, and the layers they began at: sets of them that are kept or given up together
  void begin_pass() {
    splits_.assign(graph_.tensors().size(), {});
    origins_.assign(graph_.tensors().size(), kNobody);
    roles_.assign(graph_.op_count(), GroupRole::alike);
    leaders_.resize(graph_.op_count());
    std::iota(leaders_.begin(), leaders_.end(), 0U);
    refused_.clear();
    refused_weights_.clear();
    summands_.assign(graph_.tensors().size(), false);
    lost_sum_ = false;
    token_indices_.assign(graph_.tensors().size(), false);
    for (size_t i = 0; i < graph_.tensors().size(); ++i) {
      token_indices_[i] = graph_.storage(graph_.tensors()[i].storage).root == Root::input;
    }
  }
  uint32_t leader(uint32_t op) {
    while (leaders_[op] != op) op = leaders_[op] = leaders_[leaders_[op]];
    return op;
  }
  bool give_up_refused() {
    std::set<uint32_t> lost;
    for (const uint32_t op : refused_) lost.insert(leader(op));
    bool any = false;
    for (uint32_t op = 0; op < leaders_.size(); ++op) {
      const bool begins = roles_[op] == GroupRole::columns || roles_[op] == GroupRole::experts;
      if (!begins || !lost.contains(leader(op))) continue;
      given_up_[op] = any = true;
    }
    return any;
  }
  [[nodiscard]] const Split& split(TensorId id) const { return splits_[id.value]; }
  void set(TensorId id, Split how, uint32_t origin) {
    splits_[id.value] = how;
    origins_[id.value] = origin;
  }
  void join(TensorId a, TensorId b) {
    const uint32_t x = origins_[a.value], y = origins_[b.value];
    if (x != kNobody && y != kNobody) leaders_[leader(x)] = leader(y);
  }
  // The split ends here although it must not.
  void refuse(const Op& op) {
    for (const TensorId id : graph_.inputs(op)) {
      if (origins_[id.value] != kNobody) {
        refused_.push_back(origins_[id.value]);
      } else if (split(id).any()) {
        refused_weights_.insert(id.value);
      }
    }
  }

  // --- ops
  [[nodiscard]] bool is_parameter(TensorId id) const {
    return graph_.storage(graph_.tensor(id).storage).root == Root::parameter;
  }
  [[nodiscard]] int rank(TensorId id) const { return static_cast<int>(graph_.shape(id).size()); }
  [[nodiscard]] int64_t extent(TensorId id, int dim) const { return graph_.shape(id)[static_cast<size_t>(dim)]; }
  [[nodiscard]] int wrapped(int64_t dim, TensorId id) const {
    return static_cast<int>(wrap_dim(dim, graph_.shape(id).size()));
  }

  // What one GPU has of so many columns or rows; 0: they are not split.
  [[nodiscard]] int64_t part_of(int64_t extent) const {
    if (extent % gpus_ == 0) return extent / gpus_;
    if (extent < kVocabulary) return 0;
    const int64_t each = (extent + gpus_ - 1) / gpus_;
    return (each + kRowsTogether - 1) / kRowsTogether * kRowsTogether;
  }

  void visit(size_t index) {
    const Op& op = graph_.ops()[index];
    const auto inputs = graph_.inputs(op);
    const auto outputs = graph_.outputs(op);
    const std::string_view name = graph_.name(op);
    if (!inputs.empty() && !outputs.empty() && op_class(name) == OpClass::view) {
      for (const TensorId id : outputs)
        token_indices_[id.value] = token_indices_[id.value] || token_indices_[inputs[0].value];
    }
    if (name == "aten.linear.default") return linear(index, inputs[0], inputs[1], 0, inputs.subspan(2));
    if (name == "aten.addmm.default") return linear(index, inputs[1], inputs[2], 1, inputs.first(1));
    if (name == "aten.embedding.default") return table(index, inputs[0], inputs[1]);
    if (is_expert_product(name)) return experts(index);
    if (std::any_of(inputs.begin(), inputs.end(), [&](TensorId id) { return summands_[id.value]; })) add_up(index);
    const bool any = std::any_of(inputs.begin(), inputs.end(), [&](TensorId id) { return split(id).any(); });
    if (!any) return;
    if (!keep(op, name, inputs, outputs)) refuse(op);
  }

  // `out`: which dimension of the weight has the columns; `biases`: none or one.
  void linear(size_t index, TensorId x, TensorId weight, int out, std::span<const TensorId> biases) {
    const Op& op = graph_.ops()[index];
    const TensorId y = graph_.outputs(op).front();
    if (!is_parameter(weight) || rank(weight) != 2) {
      if (split(x).any() || split(weight).any()) refuse(op);
      return;
    }
    const auto origin = static_cast<uint32_t>(index);
    if (split(x).any()) {
      const Split before = split(weight);  // of a layer that is applied several times
      const bool same = !before.any() || (before.dim == 1 - out && before.local == split(x).local);
      if (split(x).dim != rank(x) - 1 || !same) return refuse(op);
      set(weight, {1 - out, split(x).local}, kNobody);
      roles_[index] = GroupRole::rows;
      return;
    }
    const int64_t local = part_of(extent(weight, out));
    if (local == 0 && extent(weight, out) >= kWideLayer) unshared_.insert(extent(weight, out));
    if (given_up_[index] || local == 0 || (split(weight).any() && split(weight).dim != out)) {
      if (split(weight).any()) refused_weights_.insert(weight.value);
      return;
    }
    set(weight, {out, local}, kNobody);
    for (const TensorId bias : biases) set(bias, {0, local}, kNobody);
    set(y, {rank(y) - 1, local}, origin);
    roles_[index] = GroupRole::columns;
  }

  // Weights of experts are read turned over: [experts, in, out] of a parameter [experts, out, in].
  void experts(size_t index) {
    const Op& op = graph_.ops()[index];
    const TensorId x = graph_.inputs(op)[0], turned = graph_.inputs(op)[1], y = graph_.outputs(op)[0];
    const uint32_t turns = made_by_[turned.value];
    const TensorId weight = turns == kNobody ? turned : graph_.inputs(graph_.ops()[turns])[0];
    const bool known = turns != kNobody && graph_.name(graph_.ops()[turns]) == "aten.transpose.int" &&
                       is_parameter(weight) && rank(turned) == 3;
    if (split(x).any()) {
      if (!known || split(x).dim != 1) return refuse(op);
      set(turned, {1, split(x).local}, kNobody);
      set(weight, {2, split(x).local}, kNobody);
      summands_[y.value] = true;
      return;
    }
    const int64_t columns = extent(turned, 2);
    if (!known || given_up_[index] || columns % gpus_ != 0) {
      if (known && columns % gpus_ != 0) unshared_.insert(columns);
      return;
    }
    set(turned, {2, columns / gpus_}, kNobody);
    set(weight, {1, columns / gpus_}, kNobody);
    set(y, {1, columns / gpus_}, static_cast<uint32_t>(index));
    roles_[index] = GroupRole::experts;
    enter_above(index, x);
  }

  // The gradient of rows is added up where rows are taken of the tokens, which are fewer.
  void enter_above(size_t index, TensorId rows) {
    const auto made_as = [&](TensorId id, const char* name) {
      return made_by_[id.value] != kNobody && graph_.name(graph_.ops()[made_by_[id.value]]) == name;
    };
    TensorId id = rows;
    if (made_as(id, "aten.type_as.default")) id = graph_.inputs(graph_.ops()[made_by_[id.value]])[0];
    if (made_as(id, "aten.index.Tensor")) {
      roles_[made_by_[id.value]] = GroupRole::rows_of_experts;
    } else {
      roles_[index] = GroupRole::columns;
    }
  }

  // Summands pass through what is linear in them, up to the sum over a token's experts.
  void add_up(size_t index) {
    const Op& op = graph_.ops()[index];
    const std::string_view name = graph_.name(op);
    if (name == "aten.sum.dim_IntList") {
      roles_[index] = GroupRole::rows;
    } else if (name == "aten.mul.Tensor" || name == "aten.index.Tensor" || name == "aten.view.default" ||
               name == "aten.reshape.default") {
      summands_[graph_.outputs(op)[0].value] = true;
    } else {
      lost_sum_ = true;
    }
  }

  // Tables that tokens look into; those of positions stay whole.
  void table(size_t index, TensorId weight, TensorId indices) {
    if (!is_parameter(weight) || !token_indices_[indices.value] || extent(weight, 0) < kVocabulary) return;
    set(weight, {0, part_of(extent(weight, 0))}, kNobody);
    roles_[index] = GroupRole::table;
  }

  bool keep(const Op& op, std::string_view name, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    const Attributes& attributes = graph_.attributes(op);
    const TensorId x = inputs[0];
    if (name == "aten.view.default" || name == "aten.reshape.default" || name == "aten.flatten.using_ints") {
      return keep_viewed(x, outputs[0]);
    }
    if (name == "aten.transpose.int") {
      const int a = wrapped(attributes.get_int("dim0", 0), x), b = wrapped(attributes.get_int("dim1", 1), x);
      const int dim = split(x).dim == a ? b : split(x).dim == b ? a : split(x).dim;
      return keep_as(x, outputs[0], dim);
    }
    if (name == "aten.t.default") return keep_as(x, outputs[0], 1 - split(x).dim);
    if (name == "aten.permute.default") {
      const Shape dims = attributes.get_ints("dims");
      for (size_t i = 0; i < dims.size(); ++i) {
        if (wrapped(dims[i], x) == split(x).dim) return keep_as(x, outputs[0], static_cast<int>(i));
      }
      return false;
    }
    if (name == "aten.unsqueeze.default") {
      const int at = wrapped(attributes.get_int("dim", 0), outputs[0]);
      return keep_as(x, outputs[0], split(x).dim + (at <= split(x).dim ? 1 : 0));
    }
    if (name == "aten.squeeze.dim" || name == "aten.select.int") {
      const int at = wrapped(attributes.get_int("dim", 0), x);
      if (at == split(x).dim) return false;
      const bool goes = rank(outputs[0]) < rank(x);
      return keep_as(x, outputs[0], split(x).dim - (goes && at < split(x).dim ? 1 : 0));
    }
    if (name == "aten.expand.default") return keep_as(x, outputs[0], split(x).dim + rank(outputs[0]) - rank(x));
    if (name == "aten.split.Tensor" || name == "aten.split_with_sizes.default")
      return keep_parts(x, outputs, attributes);
    if (name == "aten.unbind.int" || name == "aten.slice.Tensor") {
      const int at = wrapped(attributes.get_int("dim", 0), x);
      if (at == split(x).dim) return false;
      const int dim = split(x).dim - (name == "aten.unbind.int" && at < split(x).dim ? 1 : 0);
      return std::all_of(outputs.begin(), outputs.end(), [&](TensorId y) { return keep_as(x, y, dim); });
    }
    if (name == "aten.cat.default") return keep_joined(inputs, outputs[0], wrapped(attributes.get_int("dim", 0), x));
    if (name == "aten.scaled_dot_product_attention.default") return keep_heads(inputs, outputs[0]);
    if (name == "aten.matmul.default") return keep_batched(inputs, outputs[0]);
    if (name == "aten.softmax.int" || name == "aten.log_softmax.int") {
      return wrapped(attributes.get_int("dim", -1), x) != split(x).dim && keep_as(x, outputs[0], split(x).dim);
    }
    if (name == "aten.layer_norm.default") {
      const auto normalized = static_cast<int>(attributes.get_ints("normalized_shape").size());
      return split(x).dim < rank(x) - normalized && keep_as(x, outputs[0], split(x).dim);
    }
    if (name == "aten.mean.dim" || name == "aten.sum.dim_IntList") return keep_reduced(x, outputs[0], attributes);
    return keep_elementwise(name, inputs, outputs);
  }

  bool keep_as(TensorId x, TensorId y, int dim) {
    set(y, {dim, split(x).local}, origins_[x.value]);
    return true;
  }

  // Extents are grouped so that each group of the one shape has as many elements as a group of the other; the split one
  // must be the outermost of its group, and one of the other group divides as it does.
  bool keep_viewed(TensorId x, TensorId y) {
    const auto from = graph_.shape(x), to = graph_.shape(y);
    size_t i = 0, j = 0;
    while (i < from.size() && j < to.size()) {
      const size_t first = i, there = j;
      int64_t a = from[i++], b = to[j++];
      while (a != b) {
        if (a < b ? i >= from.size() : j >= to.size()) return false;
        a < b ? a *= from[i++] : b *= to[j++];
      }
      while (a == 1 && b == 1 && i < from.size() && from[i] == 1 && j < to.size() && to[j] == 1) ++i, ++j;
      const auto dim = static_cast<size_t>(split(x).dim);
      if (dim < first || dim >= i) continue;
      if (elements_of(from.subspan(first, dim - first)) != 1) return false;
      size_t outer =
          there;  // the outermost that divides: [3, width] of fused queries, keys and values is split by width
      while (outer < j && (to[outer] == 1 || (to[outer] * split(x).local) % from[dim] != 0)) {
        if (to[outer] > kFewParts) unshared_.insert(to[outer]);
        ++outer;
      }
      if (outer == j) return false;
      set(y, {static_cast<int>(outer), to[outer] * split(x).local / from[dim]}, origins_[x.value]);
      return true;
    }
    return false;
  }

  bool keep_parts(TensorId x, std::span<const TensorId> outputs, const Attributes& attributes) {
    const int at = wrapped(attributes.get_int("dim", 0), x);
    const Split how = split(x);
    for (const TensorId y : outputs) {
      if (at != how.dim) {
        keep_as(x, y, how.dim);
        continue;
      }
      if ((extent(y, at) * how.local) % extent(x, at) != 0) return false;
      set(y, {at, extent(y, at) * how.local / extent(x, at)}, origins_[x.value]);
    }
    return true;
  }

  bool keep_joined(std::span<const TensorId> inputs, TensorId y, int dim) {
    for (const TensorId id : inputs) {
      if (!split(id).any() || split(id).dim == dim || split(id).dim != split(inputs[0]).dim) return false;
      join(id, inputs[0]);
    }
    return keep_as(inputs[0], y, split(inputs[0]).dim);
  }

  bool keep_heads(std::span<const TensorId> inputs, TensorId y) {
    constexpr int kHeads = 1;
    for (const TensorId id : inputs.first(3)) {
      if (split(id).dim != kHeads || rank(id) != 4) return false;
      join(id, inputs[0]);
    }
    if (inputs.size() > 3 && !split(inputs[3]).any() && rank(inputs[3]) == 4 && extent(inputs[3], kHeads) != 1)
      return false;
    return keep_as(inputs[0], y, kHeads);
  }

  bool keep_batched(std::span<const TensorId> inputs, TensorId y) {
    const Split a = split(inputs[0]), b = split(inputs[1]);
    if (!a.any() || a.dim != b.dim || rank(inputs[0]) != rank(inputs[1]) || a.dim >= rank(inputs[0]) - 2) return false;
    join(inputs[0], inputs[1]);
    return keep_as(inputs[0], y, a.dim);
  }

  bool keep_reduced(TensorId x, TensorId y, const Attributes& attributes) {
    int before = 0;
    for (const int64_t dim : attributes.get_ints("dim")) {
      const int at = wrapped(dim, x);
      if (at == split(x).dim) return false;
      if (at < split(x).dim) ++before;
    }
    if (attributes.get_ints("dim").empty()) return false;
    return keep_as(x, y, split(x).dim - (attributes.get_bool("keepdim", false) ? 0 : before));
  }

  // Operands broadcast from the last dimension; a whole one must have nothing, or one element, where others are split.
  bool keep_elementwise(std::string_view name, std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    const OpClass cls = op_class(name);
    const bool fits =
        cls == OpClass::elementwise || cls == OpClass::random || cls == OpClass::copy || cls == OpClass::view;
    if (!fits || outputs.size() != 1) return false;
    const TensorId y = outputs[0];
    const std::span<const TensorId> read = name == "aten.type_as.default" ? inputs.first(1) : inputs;
    std::optional<TensorId> first;
    for (const TensorId id : read) {
      if (!split(id).any()) continue;
      const int dim = split(id).dim + rank(y) - rank(id);
      if (extent(id, split(id).dim) != extent(y, dim)) return false;
      if (first && split(*first).dim + rank(y) - rank(*first) != dim) return false;
      if (first) join(id, *first);
      if (!first) first = id;
    }
    if (!first) return true;
    const int dim = split(*first).dim + rank(y) - rank(*first);
    for (const TensorId id : read) {
      const int own = dim - rank(y) + rank(id);
      if (!split(id).any() && own >= 0 && extent(id, own) != 1) return false;
    }
    return keep_as(*first, y, dim);
  }

  // --- what came of it
  [[nodiscard]] Status check() const {
    double all = 0, shared = 0;
    std::set<uint32_t> seen;
    for (const Op& op : graph_.ops()) {
      const auto inputs = graph_.inputs(op);
      for (const TensorId id : inputs) {
        if (!is_parameter(id) || rank(id) < 2 || !seen.insert(id.value).second) continue;
        const auto count = static_cast<double>(graph_.element_count(id));
        all += count;
        if (split(id).any()) shared += count;
      }
    }
    if (lost_sum_) {
      return Error{"what experts give is read before it is added up", "tensor parallelism", "leave out tp"};
    }
    if (!refused_weights_.empty()) {
      const Storage& storage = graph_.storage(graph_.tensor(TensorId(*refused_weights_.begin())).storage);
      return Error{fmt::format("{} would be split, and is read whole elsewhere", graph_.names()[storage.root_name]),
                   "tensor parallelism", "leave out tp"};
    }
    if (all > 0 && shared >= kLeastShared * all) return {};
    return Error{fmt::format("only {:.0f} % of the model's weights can be shared by {} GPUs",
                             all > 0 ? 100 * shared / all : 0.0, gpus_),
                 "tensor parallelism", remedy()};
  }

  [[nodiscard]] std::string remedy() const {
    int64_t common = 0;
    for (const int64_t extent : unshared_) common = std::gcd(common, extent);
    if (common < 2) return "its layers do not come in pairs that split columns and rows: leave out tp";
    int64_t below = 1, above = 0;
    for (int64_t group = 2; group <= std::min(common, kMostGroup); ++group) {
      if (common % group != 0) continue;
      if (group < gpus_) below = group;
      if (group > gpus_ && above == 0) above = group;
    }
    return above > 0 ? fmt::format("{} does not divide by {}: choose tp={} or tp={}", common, gpus_, below, above)
                     : fmt::format("{} does not divide by {}: choose tp={}", common, gpus_, below);
  }

  const Graph& graph_;
  int64_t gpus_;
  std::vector<bool> given_up_;  // by op: a layer that stays whole
  std::vector<Split> splits_;
  std::vector<uint32_t> origins_;  // by tensor: the layer its split began at
  std::vector<uint32_t> made_by_;  // by tensor: the op
  std::vector<bool> summands_;     // by tensor: every GPU has a part of the sum
  bool lost_sum_ = false;          // such a part is read as if it were all
  std::vector<uint32_t> leaders_;
  std::vector<uint32_t> refused_;
  std::vector<GroupRole> roles_;
  std::vector<bool> token_indices_;     // by tensor: numbers of tokens
  std::set<uint32_t> refused_weights_;  // that are split and read whole
  std::set<int64_t> unshared_;          // extents that did not divide
};

}  // namespace

Result<TensorSplits> tensor_splits(const Graph& forward, int64_t gpus) { return SplitFinder(forward, gpus).run(); }

}  // namespace forerun::derive
