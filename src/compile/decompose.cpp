#include "compile/decompose.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_set>

#include "compile/inner_steps.h"
#include "compile/layout_rule.h"
#include "compile/norms.h"
#include "compile/op_call.h"
#include "compile/padding.h"
#include "derive/op_class.h"

namespace forerun::compile {
namespace {

bool is_one_of(std::string_view name, std::string_view names) {
  for (size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == ' ') && (end == names.size() || names[end] == ' ')) return true;
  }
  return false;
}

// Whether the op reduces over the last dimension that has an extent. What is reduced over height and width of images with their channels
// last is not so, though the width is.
bool takes_last(const OpCall& call, std::span<const int64_t> from, bool channels_last) {
  auto rank = static_cast<int64_t>(from.size());
  while (rank > 0 && from[static_cast<size_t>(rank - 1)] == 1) --rank;
  const Attributes& attributes = call.graph().attributes(call.op);
  Shape dims = attributes.get_ints("dim");
  if (dims.empty() && attributes.find("dim") != nullptr) dims = {attributes.get_int("dim", -1)};
  if (dims.empty()) return true;  // over everything
  for (int64_t& dim : dims) dim += dim < 0 ? static_cast<int64_t>(from.size()) : 0;
  const auto takes = [&](int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); };
  if (channels_last && takes(2) && takes(3) && !takes(1)) return false;
  return takes(rank - 1);
}

Outputs elementwise(const OpCall& call, uint8_t flags = kPlain) {
  Outputs made;
  for (size_t place = 0; place < call.op.output_count; ++place) {
    made.push_back(call.build.pointwise(call.every(), call.elements(place), call.dtype(place), flags));
  }
  return made;
}

// A copy that transposes rows and columns. Images are left out: where they lie is Inductor's choice, not the model's.
bool turns(const OpCall& call) {
  if (call.op.input_count == 0 || call.op.output_count != 1) return false;
  const TensorId from = call.graph().inputs(call.op)[0];
  if (call.graph().shape(from).size() != 3 || call.elements(0) != call.in[0].elements) return false;
  return dimension_order(call.graph(), from) != dimension_order(call.graph(), call.output(0));
}

Outputs reduced(const OpCall& call) {
  Outputs made;
  const std::span<const int64_t> from = call.graph().shape(call.graph().inputs(call.op)[0]);
  const int64_t elements = call.in.empty() ? 1 : call.in[0].elements;
  const bool last = from.size() == 4 && from[1] > 1 && has_channels_last(call, call.graph().inputs(call.op)[0]);
  for (size_t place = 0; place < call.op.output_count; ++place) {
    const int64_t results = std::max<int64_t>(call.elements(place), 1);
    if (results >= elements || (results > 1 && elements / results <= kUnrolled)) {
      made.push_back(call.build.pointwise(call.every(), results, call.dtype(place)));
      continue;
    }
    made.push_back(call.build.reduction(call.every(), results, std::max<int64_t>(elements / results, 1),
                                        takes_last(call, from, last), call.dtype(place)));
  }
  return made;
}

// Where its input lies above the kink is told once, for both passes.
Outputs leaky(const OpCall& call) {
  const ValueId where = call.build.pointwise({call.all(0)}, call.elements(0), DType::boolean);
  call.build.set_above(call.in[0].value, where);
  return {call.build.pointwise({call.all(0), call.of(where)}, call.elements(0), call.dtype(0))};
}

// A gradient through a kink reads where the input was, a byte an element, which the forward pass can tell.
Outputs kink_backward(const OpCall& call) {
  ValueId where = call.build.above(call.in[1].value);
  if (!where.valid()) where = call.build.pointwise({call.all(1)}, call.in[1].elements, DType::boolean);
  return {call.build.pointwise({call.all(0), call.of(where)}, call.elements(0), call.dtype(0))};
}

bool has_16_bits(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

// What is made to add up to one: how many elements, and whether they lie far apart (classes of an image's points).
struct Distribution {
  int64_t width = 1;
  bool apart = false;
};

Distribution distribution_of(const OpCall& call) {
  const std::span<const int64_t> shape = call.graph().shape(call.output(0));
  if (shape.empty()) return {};
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t dim = call.graph().attributes(call.op).get_int("dim", -1);
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) dim = rank - 1;
  const bool last = std::all_of(shape.begin() + dim + 1, shape.end(), [](int64_t size) { return size == 1; });
  return {std::max<int64_t>(shape[static_cast<size_t>(dim)], 1), !last};
}

ValueId over(const OpCall& call, std::vector<Read> reads, int64_t elements, Distribution one) {
  const ValueId made = call.build.reduction(std::move(reads), elements / one.width, one.width, true, DType::float32);
  if (one.apart) call.build.set_apart();
  return made;
}

Outputs softmax(const OpCall& call) {
  const int64_t elements = call.in[0].elements;
  const Distribution one = distribution_of(call);
  const ValueId most = over(call, {call.all(0)}, elements, one);
  const ValueId sum = over(call, {call.all(0), call.of(most)}, elements, one);
  // Of what was left in 16 bits though autocast widens it eagerly (an enlarged image), the result is so too.
  const DType given = call.build.joint().value(call.in[0].value).dtype;
  const bool narrow = has_16_bits(given) && call.graph().tensor(call.graph().inputs(call.op)[0]).dtype != given;
  return {call.build.pointwise({call.all(0), call.of(most), call.of(sum)}, elements, narrow ? given : call.dtype(0))};
}

Outputs softmax_backward(const OpCall& call) {
  const int64_t elements = call.elements(0);
  const ValueId sum = over(call, {call.all(0), call.all(1)}, elements, distribution_of(call));
  return {call.build.pointwise({call.all(0), call.all(1), call.of(sum)}, elements, call.dtype(0))};
}

// The mask is random, and so never made twice.
Outputs dropout(const OpCall& call) {
  const ValueId mask = call.build.pointwise({}, call.elements(0), DType::boolean, kFusible);
  Outputs made = {call.build.pointwise({call.all(0), call.of(mask)}, call.elements(0), call.dtype(0))};
  if (call.op.output_count > 1) made.push_back(mask);
  return made;
}

// What looks at many elements is stored: more than eight reads, or thirty operations (graph.py, has_exceeded_max_reads and
// has_large_inner_fn of ir.py in torch/_inductor).
uint8_t pooling_flags(const OpCall& call) {
  constexpr int kManyLooks = 9, kManyLooksBack = 4;
  const std::string& name = call.graph().name(call.op);
  const int looks = window_looks(base_name(name), call.graph().attributes(call.op));
  return looks >= (is_backward(name) ? kManyLooksBack : kManyLooks) ? kAlone | kStored : kAlone;
}

Outputs pooled(const OpCall& call) {
  Outputs made = {call.build.pointwise(call.every(), call.elements(0), call.dtype(0), pooling_flags(call))};
  // Where the largest was, a byte each.
  if (call.op.output_count > 1) {
    made.push_back(call.build.pointwise(call.every(), call.elements(1), DType::int8, kAlone));
    call.build.set_above(call.in[0].value, made[1]);
  }
  return made;
}

// The gradient goes to where the largest was. What they were the largest of is not read, but kept all the same: up to PyTorch 2.11 the op
// takes it for its size (2.13 takes the op apart and does not).
Outputs largest_backward(const OpCall& call, ValueId where) {
  const Read sized = {call.in[1].value, 1};
  return {
      call.build.pointwise({call.all(0), sized, call.of(where)}, call.elements(0), call.dtype(0), pooling_flags(call))};
}

// Whether a gradient lies with its channels last: it does in the model, or a convolution made it where these are given theirs so.
bool comes_channels_last(const OpCall& call) {
  const TensorId gradient = call.graph().inputs(call.op)[0];
  if (call.graph().shape(gradient).size() != 4) return false;
  const std::vector<size_t> order = dimension_order(call.graph(), gradient);
  if (!order.empty() && order.back() == 1) return true;
  const JointGraph& joint = call.build.joint();
  NodeId maker = joint.value(call.in[0].value).made_by;
  while (maker.valid() && joint.node(maker).kind == NodeKind::pointwise && joint.node(maker).reads.size() == 1) {
    maker = joint.value(joint.node(maker).reads[0].value).made_by;  // a cast
  }
  if (!maker.valid() || joint.node(maker).kind != NodeKind::library || !call.build.channels_last()) return false;
  return op_class(call.graph().name(call.graph().op(joint.node(maker).op))) == OpClass::convolution;
}

// An enlarged image is looked up in the small one, so its gradient is added into zeros: once, or once for each neighbour that was
// weighted, and those are added up. The zeros lie plainly, whatever the gradient does.
Outputs enlarged_backward(const OpCall& call, int neighbours) {
  const Meeting meeting = comes_channels_last(call) ? Meeting::apart : Meeting::seldom;
  std::vector<Read> parts;
  for (int i = 0; i < neighbours; ++i) {
    const ValueId zeros = call.build.pointwise({}, call.elements(0), call.dtype(0), kFusible);
    const Read into = {zeros, call.in[0].elements};
    parts.push_back(call.of(call.build.scatter({call.all(0), into}, call.in[0].elements, call.dtype(0), meeting)));
  }
  if (neighbours == 1) return {parts[0].value};
  return {call.build.pointwise(std::move(parts), call.elements(0), call.dtype(0))};
}

int neighbours_of(std::string_view base) {
  if (!base.starts_with("upsample") && !base.starts_with("_upsample_nearest")) return 0;
  if (base.find("nearest") != std::string_view::npos) return 1;
  if (base.starts_with("upsample_linear1d")) return 2;
  if (base.starts_with("upsample_bilinear2d")) return 4;
  if (base.starts_with("upsample_trilinear3d")) return 8;
  return base.starts_with("upsample_bicubic2d") ? 16 : 0;
}

// Whether neighbouring threads, which take neighbouring rows where features do not lie together, often add into the same row of the table.
// T5's 32 biases of distances are the case: their sums were measured at about one addition a nanosecond.
bool is_crowded(const OpCall& call) {
  constexpr int64_t kFewRows = 64;
  const TensorId gradient = call.graph().inputs(call.op)[0];
  const std::span<const int64_t> shape = call.graph().shape(gradient);
  const std::span<const int64_t> strides = call.graph().strides(gradient);
  if (shape.empty() || strides.size() != shape.size() || strides.back() == 1 || shape.back() == 1) return false;
  return call.elements(0) / shape.back() <= kFewRows;
}

// A table of zeros, and rows added into it.
Outputs table_gradient(const OpCall& call) {
  const ValueId zeros = call.build.pointwise({}, call.elements(0), call.dtype(0), kFusible);
  std::vector<Read> reads = call.every();
  reads.push_back({zeros, call.in[0].elements});
  return {call.build.scatter(std::move(reads), call.in[0].elements, call.dtype(0),
                             is_crowded(call) ? Meeting::always : Meeting::seldom)};
}

Outputs scattered(const OpCall& call) {
  constexpr int64_t kSmallTable = 1 << 16;  // elements
  constexpr int64_t kMany = 16;             // that are added to each
  const int64_t moved = call.in.empty() ? call.elements(0) : call.in.back().elements;
  const bool often = call.elements(0) <= kSmallTable && moved >= kMany * call.elements(0);
  const ValueId copy = call.build.pointwise({call.all(0)}, call.elements(0), call.dtype(0), kFusible);
  std::vector<Read> reads(call.in.begin() + (call.in.empty() ? 0 : 1), call.in.end());
  reads.push_back({copy, moved});
  return {call.build.scatter(std::move(reads), std::max<int64_t>(moved, 1), call.dtype(0),
                             often ? Meeting::often : Meeting::seldom)};
}

// Rows of a table: no more of it is read than comes out.
Outputs looked_up(const OpCall& call, uint8_t flags) {
  std::vector<Read> reads = call.every();
  if (!reads.empty()) reads[0].elements = std::min(reads[0].elements, call.elements(0));
  return {call.build.pointwise(std::move(reads), call.elements(0), call.dtype(0), flags)};
}

// Between four neighbours: along the rows first, then along the columns by what these differ. Both are much to compute, and stored.
ValueId between_neighbours(const OpCall& call, Read from, DType dtype) {
  const int64_t elements = call.elements(0);
  const ValueId along = call.build.pointwise({from}, elements, DType::float32, kAlone | kStored);
  const ValueId between = call.build.pointwise({from, call.of(along)}, elements, DType::float32, kAlone | kStored);
  return dtype == DType::float32 ? between : call.build.pointwise({call.of(between)}, elements, dtype, kPlain);
}

// Autocast has it in float32 eagerly. Traced it is decomposed before autocast sees it, and stays in the type it was given in.
Outputs enlarged(const OpCall& call, int neighbours) {
  constexpr int kBilinear = 4;
  const JointGraph& joint = call.build.joint();
  const Value& given = joint.value(call.in[0].value);
  Read from = call.all(0);
  DType dtype = call.dtype(0);
  if (given.dtype == DType::float32 && given.made_by.valid()) {
    const Node& cast = joint.node(given.made_by);
    const bool is_cast = base_name(call.graph().name(call.graph().op(cast.op))) == "_to_copy" && cast.reads.size() == 1;
    if (is_cast && has_16_bits(joint.value(cast.reads[0].value).dtype)) {
      from = cast.reads[0];
      dtype = joint.value(from.value).dtype;
    }
  }
  if (neighbours == kBilinear) return {between_neighbours(call, from, dtype)};
  return {call.build.pointwise({from}, call.elements(0), dtype, kAlone)};
}

// Of a few tensors in one kernel; more are each copied to their place. Narrower than eagerly where all that is joined is.
Outputs joined(const OpCall& call) {
  constexpr size_t kFew = 8;
  const uint8_t flags = call.in.size() <= kFew ? kJoins : kJoins | kStored;
  const DType first = call.in.empty() ? call.dtype(0) : call.build.joint().value(call.in[0].value).dtype;
  const bool narrow = has_16_bits(first) && std::all_of(call.in.begin(), call.in.end(), [&](const Read& read) {
                        return call.build.joint().value(read.value).dtype == first;
                      });
  if (narrow && call.op.output_count == 1) return {call.build.pointwise(call.every(), call.elements(0), first, flags)};
  return elementwise(call, flags);
}

Outputs library(const OpCall& call) { return call.build.library(call.every()); }

// Whether the rows of a matrix, or its columns where these lie together, begin at multiples of eight elements.
bool has_aligned_rows(const Graph& graph, TensorId matrix) {
  const std::span<const int64_t> shape = graph.shape(matrix);
  const std::span<const int64_t> strides = graph.strides(matrix);
  const size_t rank = shape.size();
  if (strides.size() != rank) return padded_size(shape[rank - 1]) == shape[rank - 1];
  const int64_t pitch = strides[rank - 1] == 1 ? strides[rank - 2] : strides[rank - 1];
  return pitch % kAligned == 0;
}

// A product of matrices of 16 bits some of whose sizes are no multiples of eight is made of padded copies of them, where it is bound by
// arithmetic (pad_mm.py) and that is faster: Inductor measures it. On an H200 it was where rows of an operand or of the result begin at
// odd places, and never where only their number is odd (tokens of a batch). What is beyond the wanted result stays beside it.
Outputs product(const OpCall& call) {
  const std::span<const TensorId> inputs = call.graph().inputs(call.op);
  if (inputs.size() < 2 || call.op.output_count != 1) return library(call);
  const size_t first = inputs.size() - 2;
  const std::span<const int64_t> left = call.graph().shape(inputs[first]);
  const std::span<const int64_t> right = call.graph().shape(inputs[first + 1]);
  const size_t rank = left.size();
  if (!has_16_bits(call.dtype(0)) || rank < 2 || right.size() != rank) return library(call);
  const int64_t m = left[rank - 2];
  const int64_t k = left[rank - 1];
  const int64_t n = right[rank - 1];
  const bool aligned = has_aligned_rows(call.graph(), inputs[first]) &&
                       has_aligned_rows(call.graph(), inputs[first + 1]) && padded_size(n) == n;
  if (aligned || !is_padded(m, k, n)) return library(call);
  const int64_t batch = rank == 3 ? left[0] : 1;
  const auto padded = [&](size_t place, int64_t rows, int64_t columns) {
    const int64_t elements = batch * padded_size(rows) * padded_size(columns);
    if (elements == batch * rows * columns) return call.all(place);
    return call.of(call.build.pointwise({call.all(place)}, elements, call.dtype(0), kAlone));
  };
  std::vector<Read> reads = call.every();
  reads[first] = padded(first, m, k);
  reads[first + 1] = padded(first + 1, k, n);
  return {call.build.product(std::move(reads), batch * padded_size(m) * padded_size(n))};
}

// What a convolution reads, with its channels last: what the caller gave otherwise is copied.
std::vector<Read> turned(const OpCall& call) {
  std::vector<Read> reads = call.every();
  for (size_t place = 0; place < reads.size() && call.build.channels_last(); ++place) {
    const TensorId id = call.graph().inputs(call.op)[place];
    const Value& value = call.build.joint().value(reads[place].value);
    const std::vector<size_t> order = dimension_order(call.graph(), id);
    const bool image = call.graph().shape(id).size() == 4 && order.size() > 2 && call.graph().shape(id)[1] > 1;
    if (!image || value.made_by.valid() || value.tangent || order.back() == 1) continue;
    reads[place] = call.of(call.build.pointwise({reads[place]}, reads[place].elements, value.dtype, kPlain | kTurns));
  }
  return reads;
}

// A bias is added in a kernel of its own; its gradient is a sum.
Outputs convolution(const OpCall& call) {
  std::vector<Read> reads = turned(call);
  if (reads.size() < 3) return call.build.library(std::move(reads));
  Outputs made = call.build.library({reads[0], reads[1]}, call.in[2].value);
  made[0] = call.build.pointwise({call.of(made[0]), call.all(2)}, call.elements(0), call.dtype(0), kStored);
  return made;
}

// Whether a gradient of images that are given their channels last comes plainly, as it was made before the first convolution of the
// backward pass or behind a view: elementwise work leaves it as its first operand lies, sums of gradients as that of a convolution, and
// the library copies it.
bool comes_plainly(const OpCall& call) {
  const TensorId id = call.graph().inputs(call.op)[0];
  const std::vector<size_t> order = dimension_order(call.graph(), id);
  if (!call.build.channels_last() || call.graph().shape(id).size() != 4 || order.size() < 3 || order.back() == 1) {
    return false;
  }
  const JointGraph& joint = call.build.joint();
  std::unordered_set<uint32_t> seen;
  std::vector<Read> open = {call.all(0)};
  while (!open.empty()) {
    const Read read = open.back();
    const Value& value = joint.value(read.value);
    open.pop_back();
    if (!seen.insert(read.value.value).second || !value.made_by.valid()) continue;
    if (read.viewed && read.elements == value.elements) continue;
    const Node& node = joint.node(value.made_by);
    const std::string& name = call.graph().name(call.graph().op(node.op));
    if (node.kind == NodeKind::library && op_class(name) == OpClass::convolution) return false;
    if (node.kind != NodeKind::pointwise) continue;
    const size_t operands = std::min<size_t>(base_name(name) == "add" ? 2 : 1, node.reads.size());
    for (const Read& operand : std::span(node.reads).first(operands)) {
      // What is repeated is the gradient of a mean.
      if (operand.elements == value.elements || op_class(name) == OpClass::pooling) open.push_back(operand);
    }
  }
  return true;
}

Outputs convolution_backward(const OpCall& call) {
  std::vector<Read> reads = turned(call);
  reads[0].across = comes_plainly(call);
  if (!gives_bias_gradient(call.graph(), call.op)) return call.build.library(std::move(reads));
  const size_t bias = call.op.output_count - 1;
  const int64_t results = std::max<int64_t>(call.elements(bias), 1);
  Outputs made = bias > 0 ? call.build.library(std::move(reads), {}, bias) : Outputs();
  const bool last = has_channels_last(call, call.graph().inputs(call.op)[0]);
  made.push_back(call.build.reduction({call.all(0)}, results, std::max<int64_t>(call.in[0].elements / results, 1),
                                      !last, call.dtype(bias)));
  return made;
}

// A loss of class labels: the probability of each label is looked up, and averaged.
Outputs label_loss(const OpCall& call) {
  const int64_t labels = call.in.size() > 1 ? call.in[1].elements : 1;
  Outputs made(call.op.output_count);
  made[0] = call.build.reduction({{call.in[0].value, labels}, call.all(1)}, 1, labels, true, call.dtype(0));
  if (made.size() > 1) made[1] = call.build.reduction({call.all(1)}, 1, labels, true, call.dtype(1));
  return made;
}

// One at each label, zero elsewhere: told by comparing, so nothing of the wide input is read.
Outputs label_loss_backward(const OpCall& call) {
  std::vector<Read> reads;
  for (size_t place = 0; place < call.in.size(); ++place) {
    if (place != 1) reads.push_back(call.all(place));
  }
  return {call.build.pointwise(std::move(reads), call.elements(0), call.dtype(0))};
}

Outputs by_class(const OpCall& call, std::string_view name, std::string_view base) {
  switch (op_class(name)) {
    case OpClass::elementwise: return elementwise(call, base == "glu" ? kAlone : kPlain);
    case OpClass::reduction:
      if (is_backward(name)) return elementwise(call);
      return is_one_of(base, "cumsum cumprod logcumsumexp") ? elementwise(call, kAlone) : reduced(call);
    case OpClass::copy:
      if (is_one_of(base, "cat stack concat")) return joined(call);
      if (is_one_of(base, "constant_pad_nd pad repeat tile")) return elementwise(call, kAlone);
      return elementwise(call, turns(call) ? kPlain | kTurns : kPlain);
    case OpClass::creation: return elementwise({call.build, call.op, {}}, kPlain | kConstant);
    case OpClass::random: return elementwise(call, kFusible);
    case OpClass::pooling: {
      const int neighbours = is_backward(name) && !call.in.empty() ? neighbours_of(base) : 0;
      if (neighbours > 0) return enlarged_backward(call, neighbours);
      if (is_backward(name) && call.in.size() > 1 && base.starts_with("max_pool")) {
        const ValueId where = call.build.above(call.in[1].value);
        if (where.valid()) return largest_backward(call, where);
      }
      return neighbours_of(base) > 0 && !call.in.empty() ? enlarged(call, neighbours_of(base)) : pooled(call);
    }
    case OpClass::embedding: return looked_up(call, kAlone);
    case OpClass::indexing:
      if (is_one_of(base, "index _unsafe_index index_select gather take roll flip one_hot"))
        return looked_up(call, kPlain);
      if (base.starts_with("index_put") || base.starts_with("_index_put") || base.starts_with("index_add") ||
          base.starts_with("scatter") || base.starts_with("_unsafe_index_put")) {
        return scattered(call);
      }
      return library(call);
    case OpClass::gemm: return is_one_of(base, "mm addmm bmm") ? product(call) : library(call);
    default: return library(call);
  }
}

}  // namespace

bool gives_bias_gradient(const Graph& graph, const Op& op) {
  const Attributes& attributes = graph.attributes(op);
  const Shape bias = attributes.get_ints("bias_sizes", {});
  if (op.output_count == 0 || bias.empty() || bias[0] <= 0) return false;
  const AttributeValue* mask = attributes.find("output_mask");
  const auto* wanted = mask != nullptr ? std::get_if<std::vector<bool>>(mask) : nullptr;
  return wanted == nullptr || wanted->size() < 3 || (*wanted)[2];
}

std::vector<ValueId> decompose(NodeBuilder& build, const Op& op, std::span<const Read> reads) {
  const std::string_view name = build.graph().name(op);
  std::string_view base = base_name(name);
  if (is_in_place(name)) base.remove_suffix(1);
  const InnerSteps steps =
      inner_steps(base, reads.size(), build.graph().attributes(op).get_string("approximate") == "tanh");
  build.set_steps(steps.count);
  std::vector<Read> marked(reads.begin(), reads.end());
  const size_t looked_at = is_backward(name) ? 1 : 0;
  if (steps.looks_again && looked_at < marked.size()) marked[looked_at].again = true;
  const OpCall call{build, op, marked};
  if (op.output_count == 0) return library(call);
  if (is_one_of(base, "threshold_backward leaky_relu_backward hardtanh_backward") && reads.size() > 1) {
    return kink_backward(call);
  }
  if (base == "leaky_relu" && !reads.empty()) return leaky(call);
  if (is_one_of(base, "_softmax _log_softmax _safe_softmax") && !reads.empty()) return softmax(call);
  if (is_one_of(base, "_softmax_backward_data _log_softmax_backward_data")) return softmax_backward(call);
  if (base == "native_dropout" && !reads.empty()) return dropout(call);
  if (base == "embedding_dense_backward") return table_gradient(call);
  if (is_one_of(base, "nll_loss_forward nll_loss2d_forward") && reads.size() > 1) return label_loss(call);
  if (is_one_of(base, "nll_loss_backward nll_loss2d_backward") && reads.size() > 2) return label_loss_backward(call);
  if (is_one_of(base, "convolution _convolution cudnn_convolution")) return convolution(call);
  if (base == "convolution_backward") return convolution_backward(call);
  if (op_class(name) == OpClass::normalization && !reads.empty()) {
    if (!is_backward(name)) return norm(call, base);
    if (reads.size() > 2) return norm_backward(call, base);
  }
  return by_class(call, name, base);
}

}  // namespace forerun::compile
