#include "compile/norms.h"

#include <algorithm>

namespace forerun::compile {
namespace {

// Whether the last dimension is the narrowest step. Told of rows of tokens alone: where images lie is Inductor's choice.
bool lies_in_rows(const Graph& graph, TensorId id) {
  const std::vector<size_t> order = dimension_order(graph, id);
  return graph.shape(id).size() != 3 || order.empty() || order.back() == 2;
}

// Statistics of groups of elements: how many groups, and whether their elements lie together.
struct Groups {
  int64_t count = 1;
  bool inner = true;
  bool rows = true;  // each is a row of the tensor
};

Groups groups_of(const OpCall& call, std::string_view base, int64_t elements) {
  const bool backward = base.ends_with("_backward");
  const bool layer =
      base.find("layer_norm") != std::string_view::npos || base.find("rms_norm") != std::string_view::npos;
  if (layer || base.find("group_norm") != std::string_view::npos) {
    const size_t mean = layer && base.find("rms_norm") != std::string_view::npos && !backward ? 1 : 2;
    const int64_t count = backward                   ? call.in[2].elements
                          : call.op.output_count > 1 ? call.elements(std::min<size_t>(mean, 1))
                                                     : 1;
    // A group's elements lie together with its channels last too, but not in the order in which they are reduced.
    const bool inner = layer || !has_channels_last(call, call.graph().inputs(call.op)[backward ? 1 : 0]);
    return {std::max<int64_t>(count, 1), inner, layer};
  }
  const TensorId input = call.graph().inputs(call.op)[backward && !base.starts_with("cudnn") ? 1 : 0];
  const std::span<const int64_t> shape = call.graph().shape(input);
  if (shape.size() < 2) return {std::max<int64_t>(elements, 1), false, false};
  const bool last = has_channels_last(call, input);
  return {shape[1], !last, !last};
}

// Norms over rows: the normalized rows are a value of their own, in float32, which the backward pass reads instead of the input.
bool over_rows(std::string_view base) {
  return base.find("layer_norm") != std::string_view::npos || base.find("rms_norm") != std::string_view::npos;
}

Outputs row_norm(const OpCall& call, std::string_view base) {
  const int64_t elements = call.elements(0);
  const Groups groups = groups_of(call, base, elements);
  const int64_t each = std::max<int64_t>(elements / groups.count, 1);
  const bool centred = base.find("layer_norm") != std::string_view::npos;
  const bool inner = lies_in_rows(call.graph(), call.graph().inputs(call.op)[0]);
  std::vector<Read> reads = {call.all(0)};
  Outputs made(call.op.output_count);
  if (centred) {
    const ValueId mean = call.build.reduction(reads, groups.count, each, inner, DType::float32);
    reads.push_back(call.of(mean));
    if (made.size() > 1) made[1] = mean;
  }
  const ValueId scale = call.build.reduction(reads, groups.count, each, inner, DType::float32);
  if (made.size() > (centred ? 2 : 1)) made[centred ? 2 : 1] = scale;
  reads.push_back(call.of(scale));
  const ValueId normalized = call.build.pointwise(std::move(reads), elements, DType::float32);
  call.build.set_normalized(scale, normalized);
  std::vector<Read> weighted = {call.of(normalized)};
  for (size_t place = 1; place < std::min<size_t>(call.in.size(), 3); ++place) weighted.push_back(call.all(place));
  made[0] = call.build.pointwise(std::move(weighted), elements, call.dtype(0));
  return made;
}

// dx from two sums over each row, dw and db from sums over everything else. What of it lies across, channels far apart, is near along the
// columns and far along the rows; where what is read lies both ways, a sum counts as one over what is far apart (num_splits of ir.py).
Outputs row_norm_backward(const OpCall& call, std::string_view base) {
  const Read gradient = call.all(0);
  const int64_t elements = gradient.elements;
  const Groups groups = groups_of(call, base, elements);
  const int64_t each = std::max<int64_t>(elements / groups.count, 1);
  const bool gradient_in_rows = lies_in_rows(call.graph(), call.graph().inputs(call.op)[0]);
  const bool input_in_rows = lies_in_rows(call.graph(), call.graph().inputs(call.op)[1]);
  const bool centred = base.find("layer_norm") != std::string_view::npos;
  const size_t place_of_scale = centred ? 3 : 2;
  const size_t statistics = std::min(place_of_scale, call.in.size() - 1);
  const Read scale = call.all(statistics);
  ValueId known = call.build.normalized(scale.value);
  if (!known.valid()) {
    std::vector<Read> reads(call.in.begin() + 1, call.in.begin() + static_cast<std::ptrdiff_t>(statistics) + 1);
    known = call.build.pointwise(std::move(reads), elements, DType::float32);
  }
  const Read normalized = call.of(known);
  std::vector<Read> sum_reads = {gradient};
  if (call.in.size() > statistics + 1) sum_reads.push_back(call.all(statistics + 1));  // the weight
  std::vector<Read> dot_reads = sum_reads;
  dot_reads.push_back(normalized);
  std::vector<Read> reads = dot_reads;
  if (centred) {
    reads.push_back(call.of(call.build.reduction(sum_reads, groups.count, each, gradient_in_rows, DType::float32)));
  }
  reads.push_back(
      call.of(call.build.reduction(dot_reads, groups.count, each, gradient_in_rows && input_in_rows, DType::float32)));
  reads.push_back(scale);
  Outputs made(call.op.output_count);
  made[0] = call.build.pointwise(std::move(reads), call.elements(0), call.dtype(0));
  for (size_t place = 1; place < made.size(); ++place) {
    const int64_t results = call.elements(place);
    if (results <= 0) continue;
    const bool weight = place == 1;
    made[place] = call.build.reduction(weight ? std::vector<Read>{gradient, normalized} : std::vector<Read>{gradient},
                                       results, std::max<int64_t>(elements / results, 1),
                                       !gradient_in_rows && !(weight && input_in_rows), call.dtype(place));
  }
  return made;
}

// Two sums over each channel of each image; groups, dw and db are put together of those.
Outputs group_norm_backward(const OpCall& call) {
  const Read gradient = call.all(0);
  const Read input = call.all(1);
  const int64_t elements = gradient.elements;
  const std::span<const int64_t> shape = call.graph().shape(call.graph().inputs(call.op)[1]);
  const int64_t images = shape.empty() ? 1 : std::max<int64_t>(shape[0], 1);
  const int64_t channels = shape.size() < 2 ? 1 : std::max<int64_t>(shape[1], 1);
  const int64_t each = std::max<int64_t>(elements / (images * channels), 1);
  const int64_t groups = std::max<int64_t>(call.in[2].elements, 1);
  const int64_t joined = std::max<int64_t>(images * channels / groups, 1);
  const bool last = has_channels_last(call, call.graph().inputs(call.op)[1]);
  const ValueId sum = call.build.reduction({gradient}, images * channels, each, !last, DType::float32, true);
  const ValueId dot = call.build.reduction({gradient, input}, images * channels, each, !last, DType::float32, true);
  std::vector<Read> small(call.in.begin() + 2, call.in.end());
  small.push_back(call.of(sum));
  small.push_back(call.of(dot));
  std::vector<Read> reads = {gradient, input};
  reads.insert(reads.end(), call.in.begin() + 2, call.in.end());
  for (int i = 0; i < 2; ++i) {
    const ValueId part = joined <= kUnrolled ? call.build.pointwise(small, groups, DType::float32)
                                             : call.build.reduction(small, groups, joined, true, DType::float32);
    reads.push_back(call.of(part));
  }
  Outputs made(call.op.output_count);
  made[0] = call.build.pointwise(std::move(reads), call.elements(0), call.dtype(0));
  for (size_t place = 1; place < made.size(); ++place) {
    const int64_t results = call.elements(place);
    if (results <= 0) continue;
    std::vector<Read> parts = place == 1 ? small : std::vector<Read>{call.of(sum)};
    made[place] = call.build.reduction(std::move(parts), results, images, false, call.dtype(place));
  }
  return made;
}

}  // namespace

// Norms over channels or groups of them.
Outputs norm(const OpCall& call, std::string_view base) {
  if (over_rows(base)) return row_norm(call, base);
  const int64_t elements = call.elements(0);
  const Groups groups = groups_of(call, base, elements);
  const int64_t each = std::max<int64_t>(elements / groups.count, 1);
  const ValueId mean =
      call.build.reduction({call.all(0)}, groups.count, each, groups.inner, DType::float32, !groups.rows);
  const ValueId spread = call.build.reduction({call.all(0), call.of(mean)}, groups.count, each, groups.inner,
                                              DType::float32, !groups.rows);
  std::vector<Read> reads = {call.all(0), call.of(mean), call.of(spread)};
  for (size_t place = 1; place < std::min<size_t>(call.in.size(), 3); ++place) reads.push_back(call.all(place));
  Outputs made = {call.build.pointwise(std::move(reads), elements, call.dtype(0))};
  made.resize(call.op.output_count);
  if (made.size() > 1) made[1] = mean;
  if (made.size() > 2) made[2] = spread;
  return made;
}

// dx, dw and db from two sums over each channel.
Outputs norm_backward(const OpCall& call, std::string_view base) {
  if (over_rows(base)) return row_norm_backward(call, base);
  if (base.find("group_norm") != std::string_view::npos) return group_norm_backward(call);
  const bool cudnn = base.starts_with("cudnn");
  const Read input = call.all(cudnn ? 0 : 1);
  const Read gradient = call.all(cudnn ? 1 : 0);
  const int64_t elements = gradient.elements;
  const Groups groups = groups_of(call, base, elements);
  const int64_t each = std::max<int64_t>(elements / groups.count, 1);
  // The weight is at place 2, what evaluation norms by at 3 and 4, the batch's own statistics behind.
  constexpr size_t kWeight = 2;
  const bool of_the_batch = call.in.size() > 6 && call.in[5].elements > 0;
  std::vector<Read> wide = {gradient, input};
  for (size_t place = kWeight + 1; place < call.in.size(); ++place) {
    if (of_the_batch && place < 5) continue;
    if (call.in[place].elements <= std::max(groups.count, elements / 16)) wide.push_back(call.all(place));
  }
  const ValueId sum = call.build.reduction({gradient}, groups.count, each, groups.inner, DType::float32, !groups.rows);
  const ValueId dot = call.build.reduction(wide, groups.count, each, groups.inner, DType::float32, !groups.rows);
  // What points along the input is taken away, then the mean; what is left is scaled.
  std::vector<Read> reads = wide;
  reads.push_back(call.of(dot));
  const ValueId across = call.build.pointwise(std::move(reads), elements, DType::float32);
  const ValueId centred = call.build.pointwise({call.of(across), call.of(sum)}, elements, DType::float32);
  std::vector<Read> scaled = {call.of(centred)};
  if (call.in.size() > kWeight) scaled.push_back(call.all(kWeight));
  Outputs made(call.op.output_count);
  made[0] = call.build.pointwise(std::move(scaled), call.elements(0), call.dtype(0));
  for (size_t place = 1; place < made.size(); ++place) {
    const int64_t results = call.elements(place);
    if (results != groups.count) continue;
    made[place] = call.build.pointwise({call.of(place == 1 ? dot : sum)}, results, call.dtype(place));
  }
  return made;
}

}  // namespace forerun::compile
