#include "compile/joint_graph.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "compile/decompose.h"
#include "compile/graph_breaks.h"
#include "compile/layout_rule.h"
#include "derive/op_class.h"

namespace forerun::compile {
namespace {

// Libraries read values for checks of their own, which they leave out while they are traced.
bool reads_on_host(const Graph& graph, const Op& op) {
  const std::string_view base = base_name(graph.name(op));
  return base == "_local_scalar_dense" || base == "item";
}

bool is_loss(std::string_view name) {
  const std::string_view base = base_name(name);
  return base == "_log_softmax" || base.starts_with("nll_loss") || base.find("_loss") != std::string_view::npos ||
         base.starts_with("binary_cross_entropy");
}

bool moves_alone(const std::string& name) { return op_class(name) == OpClass::view || base_name(name) == "_to_copy"; }

// Whether neighbours of what an op reads are far apart where its loops take them: where the narrowest step of a whole operand is not along
// the dimension along which the result lies, or along which it is reduced. Images whose layout Inductor chooses are left out.
bool reads_across(const Graph& graph, const Op& op, TensorId input, bool channels_last) {
  const std::span<const int64_t> shape = graph.shape(input);
  if (shape.size() < 3 || (shape.size() == 4 && channels_last) || op.output_count == 0) return false;
  if (op_class(graph.name(op)) == OpClass::gemm || op_class(graph.name(op)) == OpClass::convolution) return false;
  const std::vector<size_t> order = dimension_order(graph, input);
  if (order.size() < 2) return false;
  const TensorId result = graph.outputs(op)[0];
  const bool alike = std::ranges::equal(graph.shape(result), shape);
  const std::vector<size_t> wanted = alike ? dimension_order(graph, result) : std::vector<size_t>();
  size_t last = shape.size() - 1;
  while (last > 0 && shape[last] == 1) --last;
  return order.back() != (wanted.empty() ? last : wanted.back());
}

bool looks_up(std::string_view name) {
  const std::string_view base = base_name(name);
  return base == "index" || base == "embedding" || base == "gather" || base == "index_select";
}

// Whether an op's loops do not take an operand's elements as they lie, from the first to the last: where they are looked up, lie apart, or
// come again between others (is_contiguous of torch/_inductor/dependencies.py, where indices that make one step are joined).
bool reads_in_parts(const Graph& graph, const Op& op, TensorId input, bool channels_last) {
  if (op.output_count == 0) return false;
  if (looks_up(graph.name(op))) return input == graph.inputs(op)[0];
  const std::span<const int64_t> shape = graph.shape(input);
  const std::span<const int64_t> strides = graph.strides(input);
  const std::span<const int64_t> result = graph.shape(graph.outputs(op)[0]);
  if (strides.size() != shape.size() || shape.size() > result.size() || (shape.size() == 4 && channels_last))
    return false;
  const size_t missing = result.size() - shape.size();
  int64_t next = 0;      // the step that what lies behind makes; 0: nothing does
  bool between = false;  // something came again since
  for (size_t dim = result.size(); dim-- > 0;) {
    if (result[dim] <= 1) continue;
    const bool again = dim < missing || shape[dim - missing] == 1 || strides[dim - missing] == 0;
    if (again) {
      between = next > 0;
      continue;
    }
    if (shape[dim - missing] != result[dim]) return false;  // no operand of elementwise work
    const int64_t step = strides[dim - missing];
    if (between || step != std::max<int64_t>(next, 1)) return true;
    next = step * result[dim];
  }
  return false;
}

// The first of the last ops that are a loss by name, with the views and casts before them; the end where there is none.
size_t named_loss(const Graph& graph, size_t first, size_t end) {
  constexpr size_t kMostBehind = 4;  // means and sums of losses
  const auto name = [&](size_t op) -> const std::string& { return graph.name(graph.ops()[op]); };
  size_t loss = end;
  for (size_t i = end; i-- > first;) {
    if (is_loss(name(i))) {
      loss = i;
    } else if (loss == end ? end - i > kMostBehind : !moves_alone(name(i))) {
      break;
    }
  }
  while (loss > first && loss < end && moves_alone(name(loss - 1))) --loss;
  return loss;
}

// The first op of the trailing stretch of the forward pass that belongs to no module: the loss. Where one of its ops is a loss
// by name, what stands before that is the model's own, but for views and casts.
size_t loss_begin(const Graph& graph, size_t first, size_t end) {
  const auto name = [&](size_t op) -> const std::string& { return graph.name(graph.ops()[op]); };
  size_t begin = end;
  while (begin > first && graph.module(graph.ops()[begin - 1]).empty()) --begin;
  if (begin == first) return named_loss(graph, first, end);  // no op names its module, as in ONNX files
  size_t loss = begin;
  while (loss < end && !is_loss(name(loss))) ++loss;
  if (loss == end) return begin;
  while (loss > begin && moves_alone(name(loss - 1))) --loss;
  return loss;
}

void place_round(const Graph& graph, bool loss_inside, Round& round) {
  size_t backward = round.first;
  while (backward < round.end && graph.ops()[backward].phase == Phase::forward) ++backward;
  const size_t loss = loss_inside ? backward : loss_begin(graph, round.first, backward);
  std::unordered_set<uint32_t> outside;  // sequence numbers of the loss
  std::unordered_set<uint32_t> inside;
  round.places.assign(round.end - round.first, Place::outside);
  for (size_t i = round.first; i < backward; ++i) {
    const Op& op = graph.ops()[i];
    round.places[i - round.first] = i < loss ? Place::forward : Place::outside;
    (i < loss ? inside : outside).insert(op.sequence);
  }
  bool entered = loss_inside;
  for (size_t i = backward; i < round.end; ++i) {
    const Op& op = graph.ops()[i];
    const bool known = op.sequence != 0 && inside.contains(op.sequence) && !outside.contains(op.sequence);
    entered = entered || known;
    const std::string& node = graph.names()[op.autograd_node];
    const bool accumulates = node.find("AccumulateGrad") != std::string::npos;
    const bool seeds = i == backward && op_class(graph.name(op)) == OpClass::creation;
    if (entered && !accumulates && !seeds) round.places[i - round.first] = Place::backward;
  }
}

// Whether the forward pass, with the loss, ends in what Dynamo traced.
bool ends_in_piece(const Graph& graph, const Round& round) {
  bool inside = false;
  for (size_t i = round.first; i < round.end && graph.ops()[i].phase == Phase::forward; ++i) {
    const Op& op = graph.ops()[i];
    if (op_class(graph.name(op)) != OpClass::view) inside = op.piece != 0;
  }
  return inside;
}

// Follows which value a tensor has as ops write storages.
class Values {
 public:
  Values(const Graph& graph, JointGraph& joint) : graph_(graph), joint_(joint), storages_(graph.storages().size()) {}

  Read read(TensorId tensor) {
    Held& held = storages_[graph_.tensor(tensor).storage.value];
    if (!held.value.valid()) held.value = given(tensor);
    const TensorId made = joint_.values[held.value.value].tensor;
    const bool viewed = made.valid() && !std::ranges::equal(graph_.shape(made), graph_.shape(tensor));
    return {.value = held.value, .elements = graph_.element_count(tensor), .viewed = viewed};
  }
  void write(TensorId tensor, ValueId value) {
    Held& held = storages_[graph_.tensor(tensor).storage.value];
    held.value = value;
    held.written = true;
    if (!joint_.values[value.value].tensor.valid()) joint_.values[value.value].tensor = tensor;
  }
  [[nodiscard]] ValueId held(StorageId storage) const { return storages_[storage.value].value; }
  [[nodiscard]] bool written(StorageId storage) const { return storages_[storage.value].written; }
  void write_outside(StorageId storage, bool backward) { storages_[storage.value] = {.tangent = backward}; }

 private:
  struct Held {
    ValueId value;
    bool written = false;
    bool tangent = false;  // by the backward pass outside: whoever reads it is handed a gradient
  };

  ValueId given(TensorId tensor) {
    const StorageId id = graph_.tensor(tensor).storage;
    const Storage& storage = graph_.storage(id);
    const DType dtype = graph_.tensor(tensor).dtype;
    joint_.values.push_back({.dtype = dtype,
                             .elements = storage.bytes.value / std::max<int64_t>(size_of(dtype), 1),
                             .tensor = tensor,
                             .given = id,
                             .parameter = storage.root == Root::parameter || storage.root == Root::buffer,
                             .tangent = storages_[id.value].tangent});
    return ValueId(joint_.values.size() - 1);
  }

  const Graph& graph_;
  JointGraph& joint_;
  std::vector<Held> storages_;
};

class JointBuilder {
 public:
  JointBuilder(const Graph& graph, const Round& round)
      : graph_(graph), round_(round), build_(graph, joint_, round.channels_last), values_(graph, joint_) {}

  JointGraph built() {
    for (size_t i = round_.first; i < round_.end; ++i) take(i);
    for (size_t i = round_.end; i < graph_.op_count(); ++i) outside(graph_.ops()[i]);
    keep_roots();
    return std::move(joint_);
  }

 private:
  void take(size_t index) {
    const Op& op = graph_.ops()[index];
    const Place place = round_.places[index - round_.first];
    if (place == Place::outside) return outside(op);
    if (reads_on_host(graph_, op)) return;
    if (op_class(graph_.name(op)) == OpClass::view) return view(op);
    build_.begin(OpId(index), place == Place::backward);
    if (place == Place::backward && round_.loss_inside && op_class(graph_.name(op)) == OpClass::gemm) add_tangent(op);
    std::vector<Read> reads;
    for (const TensorId input : graph_.inputs(op)) {
      reads.push_back(values_.read(input));
      reads.back().across = reads_across(graph_, op, input, round_.channels_last);
      reads.back().parted = reads_in_parts(graph_, op, input, round_.channels_last);
    }
    if (place == Place::backward && add_in_product(op, reads)) return;
    const bool cast = place == Place::backward && cast_product(op, reads);
    if (already_cast(op, reads)) return values_.write(graph_.outputs(op)[0], reads[0].value);
    ValueId* const known = known_cast(op, reads);
    if (known != nullptr && known->valid()) return values_.write(graph_.outputs(op)[0], *known);
    const std::vector<ValueId> made = decompose(build_, op, reads);
    if (known != nullptr) *known = made[0];
    if (cast) joint_.values[made[0].value].dtype = *round_.autocast;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].valid()) values_.write(graph_.outputs(op)[i], made[i]);
    }
  }

  // The gradient of a parameter that a product and something else give is added in the product, which then runs behind both (addmm of
  // torch/_inductor/fx_passes/post_grad.py, where what reads the sum is not elementwise): embeddings tied to the last layer.
  bool add_in_product(const Op& op, const std::vector<Read>& reads) {
    if (base_name(graph_.name(op)) != "add" || op.output_count != 1 || reads.size() != 2) return false;
    const TensorId sum = graph_.outputs(op)[0];
    if (graph_.storage(graph_.tensor(sum).storage).freed_before.valid()) return false;
    for (size_t place = 0; place < 2; ++place) {
      const Value product = joint_.value(reads[place].value);
      const Value other = joint_.value(reads[1 - place].value);
      if (!product.made_by.valid() || product.dtype != other.dtype || product.dtype != graph_.tensor(sum).dtype)
        continue;
      const Node node = joint_.node(product.made_by);
      const bool is_mm = node.kind == NodeKind::library && base_name(graph_.name(graph_.op(node.op))) == "mm";
      if (!is_mm || !node.backward || product.elements != reads[1 - place].elements) continue;
      if (is_read(reads[place].value)) continue;
      std::vector<Read> all = node.reads;
      all.push_back(reads[1 - place]);
      build_.begin(node.op, true);
      const ValueId made = build_.library(std::move(all)).front();
      joint_.values[made.value].tensor = sum;
      values_.write(sum, made);
      return true;
    }
    return false;
  }
  [[nodiscard]] bool is_read(ValueId value) const {
    return std::any_of(joint_.nodes.begin(), joint_.nodes.end(), [&](const Node& node) {
      return std::any_of(node.reads.begin(), node.reads.end(), [&](const Read& read) { return read.value == value; });
    });
  }

  // What autocast makes of a product of the backward pass in float32.
  bool cast_product(const Op& op, std::vector<Read>& reads) {
    const std::string_view base = base_name(graph_.name(op));
    const bool product = base == "mm" || base == "addmm" || base == "bmm" || base == "baddbmm";
    if (!round_.autocast || !product || op.output_count != 1) return false;
    if (graph_.tensor(graph_.outputs(op)[0]).dtype != DType::float32) return false;
    for (Read& read : reads) {
      if (joint_.value(read.value).dtype != DType::float32) continue;
      const int64_t elements = joint_.value(read.value).elements;
      ValueId& known = cast_of(read.value, *round_.autocast);
      if (!known.valid()) known = build_.pointwise({{read.value, elements}}, elements, *round_.autocast);
      read.value = known;
    }
    return true;
  }

  // A cast to the type that the value has here, though not eagerly.
  [[nodiscard]] bool already_cast(const Op& op, const std::vector<Read>& reads) const {
    if (reads.size() != 1 || op.output_count != 1 || base_name(graph_.name(op)) != "_to_copy") return false;
    const DType dtype = graph_.tensor(graph_.outputs(op)[0]).dtype;
    const Value& from = joint_.value(reads[0].value);
    return from.dtype == dtype && graph_.tensor(graph_.inputs(op)[0]).dtype != dtype;
  }

  // Where a cast of a whole value is kept, since the same cast is made once (fx_graph_cse): autocast casts activations anew for every
  // product that reads them. Null for other ops.
  ValueId* known_cast(const Op& op, const std::vector<Read>& reads) {
    if (reads.size() != 1 || op.output_count != 1 || base_name(graph_.name(op)) != "_to_copy") return nullptr;
    const Value& from = joint_.value(reads[0].value);
    if (reads[0].elements != from.elements) return nullptr;
    return &cast_of(reads[0].value, graph_.tensor(graph_.outputs(op)[0]).dtype);
  }
  ValueId& cast_of(ValueId value, DType dtype) {
    return casts_[uint64_t{value.value} << 8U | static_cast<uint64_t>(dtype)];
  }

  // A model that returns its logits beside the loss is handed a gradient of them too: zeros, which are added to the real one before
  // the first product reads it.
  void add_tangent(const Op& op) {
    if (tangent_added_) return;
    for (const TensorId input : graph_.inputs(op)) {
      const Read read = values_.read(input);
      const Value logits = joint_.value(read.value);
      if (!logits.made_by.valid() || !joint_.node(logits.made_by).backward) continue;
      tangent_added_ = true;
      mark_returned(op.sequence);
      const ValueId zeros = build_.pointwise({}, logits.elements, logits.dtype, kFusible | kStored);
      joint_.values[zeros.value].tangent = true;
      const ValueId sum =
          build_.pointwise({{read.value, logits.elements}, {zeros, logits.elements}}, logits.elements, logits.dtype);
      values_.write(input, sum);
      return;
    }
  }

  // The logits: what the product of the forward pass made whose backward that is.
  void mark_returned(uint32_t sequence) {
    for (size_t i = round_.first; i < round_.end; ++i) {
      const Op& op = graph_.ops()[i];
      if (op.phase != Phase::forward) return;
      if (op.sequence != sequence || op_class(graph_.name(op)) != OpClass::gemm) continue;
      for (const TensorId output : graph_.outputs(op)) {
        const ValueId value = values_.held(graph_.tensor(output).storage);
        if (value.valid()) joint_.values[scaled_logits(value).value].returned = true;
      }
    }
  }

  // What is returned of them: scaled, or bounded by a tanh (Gemma 2, Cohere).
  [[nodiscard]] ValueId scaled_logits(ValueId logits) const {
    for (const Node& node : joint_.nodes) {
      if (node.backward || node.kind != NodeKind::pointwise || node.makes.size() != 1) continue;
      const bool reads = std::any_of(node.reads.begin(), node.reads.end(), [&](const Read& read) {
        return read.value == logits && read.elements == node.elements;
      });
      const std::string_view base = base_name(graph_.name(graph_.op(node.op)));
      if (reads && (base == "mul" || base == "div" || base == "tanh")) logits = node.makes.front();
    }
    return logits;
  }

  // A new storage that is merely allocated holds nothing yet.
  void view(const Op& op) {
    for (const TensorId output : graph_.outputs(op)) {
      if (values_.held(graph_.tensor(output).storage).valid() || op.input_count == 0) continue;
      bool shares = false;
      for (const TensorId input : graph_.inputs(op)) {
        shares = shares || graph_.tensor(input).storage == graph_.tensor(output).storage;
      }
      if (shares) values_.read(output);
    }
  }

  // Reads results of the compiled graph; what it makes is given to it.
  void outside(const Op& op) {
    for (const TensorId input : graph_.inputs(op)) {
      const ValueId value = values_.held(graph_.tensor(input).storage);
      if (value.valid()) is_result(value);
    }
    if (op_class(graph_.name(op)) == OpClass::view) return;
    for (const TensorId output : graph_.outputs(op)) {
      values_.write_outside(graph_.tensor(output).storage, op.phase == Phase::backward);
    }
  }

  void is_result(ValueId id) {
    Value& value = joint_.values[id.value];
    if (!value.made_by.valid()) return;
    (joint_.node(value.made_by).backward ? value.backward_result : value.forward_result) = true;
  }

  // What lives beyond the iteration was written for somebody: gradients, running statistics.
  void keep_roots() {
    for (size_t i = 0; i < graph_.storages().size(); ++i) {
      const StorageId id(i);
      if (values_.written(id) && !graph_.storage(id).freed_before.valid()) is_result(values_.held(id));
    }
  }

  const Graph& graph_;
  const Round& round_;
  JointGraph joint_;
  NodeBuilder build_;
  Values values_;
  std::unordered_map<uint64_t, ValueId> casts_;  // by value and type
  bool tangent_added_ = false;
};

}  // namespace

std::vector<Round> rounds_of(const Graph& graph, bool loss_inside, std::optional<DType> autocast,
                             const DynamoTrace* dynamo, std::vector<GraphBreak>& breaks) {
  std::vector<Round> whole;
  const std::vector<Op>& ops = graph.ops();
  for (size_t i = 0; i < ops.size() && ops[i].phase != Phase::update; ++i) {
    const bool begins = i == 0 || (ops[i].phase == Phase::forward && ops[i - 1].phase == Phase::backward);
    if (begins) whole.push_back({.first = i});
    whole.back().end = i + 1;
  }
  std::vector<Round> rounds;
  for (size_t i = 0; i < whole.size(); ++i) {
    whole[i].loss_inside = dynamo != nullptr ? ends_in_piece(graph, whole[i]) : loss_inside;
    whole[i].autocast = autocast;
    place_round(graph, whole[i].loss_inside, whole[i]);
    std::vector<GraphBreak> found;
    for (Round& round : pieces_of(graph, std::move(whole[i]), dynamo, found)) rounds.push_back(std::move(round));
    if (i == 0) breaks = std::move(found);
  }
  for (Round& round : rounds) round.channels_last = puts_channels_last(graph, round);
  return rounds;
}

JointGraph joint_graph(const Graph& graph, const Round& round) { return JointBuilder(graph, round).built(); }

}  // namespace forerun::compile
