#include "cost/hybrid/op_features.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cost/analytic/analytic.h"
#include "derive/fp8_linear.h"

namespace forerun::hybrid {
namespace {

using Extents = std::span<const int64_t>;

float log2_of(double value) { return static_cast<float>(std::log2(std::max(value, 0.0) + 1.0)); }
float log2_of(int64_t value) { return log2_of(static_cast<double>(value)); }
float time_log(double us) { return static_cast<float>(std::log2(us + 1e-3)); }
// How often an extent can be halved: tensor cores and vector loads like multiples of 8.
float evenness(int64_t extent) {
  return extent <= 0 ? 0.0F : static_cast<float>(std::min(std::countr_zero(static_cast<uint64_t>(extent)), 7));
}

int64_t product(Extents extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

// The extent at `place` from the end; 1 beyond the first.
int64_t from_end(Extents shape, size_t place) { return place < shape.size() ? shape[shape.size() - 1 - place] : 1; }

// The extent at `place` from the end of an image or a window; 1 where it has fewer: a sequence is an image of one row.
int64_t spatial(Extents shape, size_t place) { return place + 2 < shape.size() ? from_end(shape, place) : 1; }

class Columns {
 public:
  Columns(std::array<float, kColumns>& values, size_t first, size_t end) : values_(values), next_(first), end_(end) {}
  Columns& add(float value) {
    CHECK(next_ < end_, "more features than columns");
    values_[next_++] = value;
    return *this;
  }
  Columns& add(bool value) { return add(value ? 1.0F : 0.0F); }
  Columns& size(int64_t extent) { return add(log2_of(extent)); }

 private:
  std::array<float, kColumns>& values_;
  size_t next_;
  size_t end_;
};

struct Call {
  const Graph& graph;
  const Op& op;
  const OpWork& work;
  const LayoutTracker& layouts;
  const Device& device;
  const TrainingSetup& setup;
  const AnalyticConstants& constants;
  std::string_view base;
  std::vector<RowWork>* works = nullptr;  // where the rows' work is asked for
  bool in_bfloat16 = false;               // a product of fp8 operands is looked at as one of bfloat16

  [[nodiscard]] std::span<const TensorId> inputs() const { return graph.inputs(op); }
  [[nodiscard]] std::span<const TensorId> outputs() const { return graph.outputs(op); }
  [[nodiscard]] const Attributes& attributes() const { return graph.attributes(op); }
  [[nodiscard]] Layout layout(size_t input) const {
    if (in_bfloat16) return {.permuted = input == 1};  // the second operand lies by rows, as a linear layer's weight
    return input < inputs().size() ? layouts.of(inputs()[input]) : Layout{};
  }
  [[nodiscard]] Extents shape(size_t input) const {
    return input < inputs().size() ? graph.shape(inputs()[input]) : Extents{};
  }
  [[nodiscard]] Extents result() const {
    if (!outputs().empty()) return graph.shape(outputs()[0]);
    return shape(0);
  }
  [[nodiscard]] size_t main_input() const;
};

// The operand whose extents tell most: the activation, which some ops carry second.
size_t Call::main_input() const {
  const bool addend = base.starts_with("addmm") || base.starts_with("baddbmm") || base.starts_with("addmv");
  return addend || base == "embedding" ? 1 : 0;
}

Model model_of(OpClass cls) {
  switch (cls) {
    case OpClass::gemm: return Model::gemm;
    case OpClass::convolution: return Model::convolution;
    case OpClass::attention: return Model::attention;
    case OpClass::rnn: return Model::rnn;
    case OpClass::normalization: return Model::normalization;
    case OpClass::reduction: return Model::reduction;
    case OpClass::softmax: return Model::softmax;
    case OpClass::pooling: return Model::pooling;
    case OpClass::embedding: return Model::embedding;
    case OpClass::indexing: return Model::indexing;
    case OpClass::copy: return Model::copy;
    case OpClass::optimizer: return Model::optimizer;
    default: return Model::elementwise;
  }
}

// -- columns by kind of kernel

void gemm_columns(const Call& call, Columns& c) {
  const GemmShape gemm = call.work.gemm_count > 0 ? call.work.gemm_table[0] : GemmShape{};
  const size_t a = call.main_input();
  const Layout left = call.layout(a);
  const Layout right = call.layout(a + 1);
  c.size(gemm.batch).size(gemm.m).size(gemm.n).size(gemm.k);
  c.add(evenness(gemm.m)).add(evenness(gemm.n)).add(evenness(gemm.k));
  c.add(left.permuted).add(right.permuted).add(left.expanded || right.expanded).add(left.sliced || right.sliced);
  const auto tiles = [&](int64_t side) {
    return static_cast<double>(gemm.batch) * std::ceil(static_cast<double>(gemm.m) / static_cast<double>(side)) *
           std::ceil(static_cast<double>(gemm.n) / static_cast<double>(side));
  };
  const double sms = static_cast<double>(std::max<int64_t>(call.device.sm_count, 1));
  for (const int64_t side : {64, 128, 256}) {
    const double waves = tiles(side) / sms;
    c.add(log2_of(waves)).add(static_cast<float>(waves / std::ceil(waves)));  // how full the last wave is
  }
  c.add(static_cast<float>(std::log2(static_cast<double>(std::max<int64_t>(gemm.m, 1)) /
                                     static_cast<double>(std::max<int64_t>(gemm.n, 1)))));
}

int64_t largest(const Shape& extents, int64_t otherwise) {
  return extents.empty() ? otherwise : *std::max_element(extents.begin(), extents.end());
}

struct ConvolutionOperands {
  Extents x, y, weight;
};

ConvolutionOperands convolution_operands(const Call& call) {
  if (is_backward(call.base)) return {call.shape(1), call.shape(0), call.shape(2)};
  return {call.shape(0), call.result(), call.shape(1)};
}

void convolution_columns(const Call& call, const GemmShape& gemm, Columns& c) {
  const ConvolutionOperands o = convolution_operands(call);
  const int64_t groups = call.attributes().get_int("groups", 1);
  const Shape stride = call.attributes().get_ints("stride", {1});
  const Shape dilation = call.attributes().get_ints("dilation", {1});
  const Shape padding = call.attributes().get_ints("padding", {0});
  const int64_t in = from_end(o.weight, o.weight.size() >= 2 ? o.weight.size() - 2 : 0);
  const int64_t out = o.weight.empty() ? 1 : o.weight[0] / std::max<int64_t>(groups, 1);
  const size_t data = is_backward(call.base) ? 1 : 0;
  c.size(o.x.empty() ? 1 : o.x[0]).size(in).size(out).size(groups);
  c.size(spatial(o.x, 1)).size(spatial(o.x, 0)).size(spatial(o.y, 1)).size(spatial(o.y, 0));
  c.size(spatial(o.weight, 1)).size(spatial(o.weight, 0));
  c.size(largest(stride, 1)).size(largest(dilation, 1)).size(largest(padding, 0));
  c.add(evenness(in)).add(evenness(out));
  c.add(call.attributes().get_bool("transposed", false)).add(groups > 1 && in == 1 && out == 1);
  c.add(call.layout(data).channels_last).add(call.layout(0).channels_last);
  c.size(gemm.m).size(gemm.n).size(gemm.k);
  const double sms = static_cast<double>(std::max<int64_t>(call.device.sm_count, 1));
  const double tiles = static_cast<double>(gemm.batch) * std::ceil(static_cast<double>(gemm.m) / 128.0) *
                       std::ceil(static_cast<double>(gemm.n) / 128.0);
  c.add(log2_of(tiles / sms)).add(evenness(from_end(o.x, 0))).add(evenness(o.x.empty() ? 1 : o.x[0]));
  c.add(!is_backward(call.base) && call.inputs().size() > 2);  // a bias is added by a kernel of its own
}

void attention_columns(const Call& call, Columns& c) {
  const size_t first = is_backward(call.base) ? 1 : 0;
  const Extents q = call.shape(first);
  const Extents k = call.shape(first + 1);
  const Extents v = call.shape(first + 2);
  c.size(from_end(q, 3)).size(from_end(q, 2)).size(from_end(q, 1)).size(from_end(k, 1)).size(from_end(q, 0));
  c.size(from_end(v, 0)).size(from_end(k, 2)).add(evenness(from_end(q, 0))).add(evenness(from_end(q, 1)));
  c.add(call.attributes().get_bool("is_causal", false)).add(call.attributes().get_double("dropout_p", 0) > 0);
  const size_t mask = first + 3;
  c.add(call.shape(mask).size() == 4 && !is_backward(call.base)).add(call.layout(first).permuted);
  c.size(product(q) / std::max<int64_t>(1, from_end(q, 0) * from_end(q, 1)));
}

void rnn_columns(const Call& call, Columns& c) {
  const Attributes& a = call.attributes();
  const Extents x = call.shape(0);
  const bool batch_first = a.get_bool("batch_first", false);
  const int64_t batch = from_end(x, batch_first ? 2 : 1);
  const int64_t length = from_end(x, batch_first ? 1 : 2);
  const int64_t hidden = a.get_int("hidden_size", 1);
  c.size(length).size(batch).size(from_end(x, 0)).size(hidden).size(a.get_int("num_layers", 1));
  c.add(static_cast<float>(a.get_int("mode", 2))).add(a.get_bool("bidirectional", false));
  c.add(a.get_double("dropout", 0) > 0).add(evenness(hidden)).add(evenness(from_end(x, 0))).add(evenness(batch));
  c.add(batch_first).size(a.get_int("proj_size", 0)).size(length * a.get_int("num_layers", 1));
}

// Elements that are put together, elements that remain, and how far apart in memory the former lie.
struct Reduced {
  int64_t count = 1;
  int64_t kept = 1;
  int64_t inner = 1;
};

Reduced reduced(Extents shape, const Shape& dims) {
  Reduced r;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t last = -1;
  for (int64_t d = 0; d < rank; ++d) {
    const bool taken = dims.empty() || std::any_of(dims.begin(), dims.end(),
                                                   [&](int64_t dim) { return (dim < 0 ? dim + rank : dim) == d; });
    (taken ? r.count : r.kept) *= shape[static_cast<size_t>(d)];
    if (taken) last = d;
  }
  for (int64_t d = last + 1; d < rank; ++d) r.inner *= shape[static_cast<size_t>(d)];
  return r;
}

Shape dims_of(const Call& call) {
  Shape dims = call.attributes().get_ints("dim", {});
  if (dims.empty() && call.attributes().find("dim") != nullptr) dims = {call.attributes().get_int("dim", 0)};
  return dims;
}

void reduction_columns(const Call& call, Columns& c) {
  const Reduced r = reduced(call.shape(0), dims_of(call));
  c.size(r.count).size(r.kept).size(r.inner).add(evenness(r.inner)).add(evenness(r.count)).add(r.inner == 1);
}

void norm_columns(const Call& call, Columns& c) {
  const bool backward = is_backward(call.base);
  const Extents x = call.shape(0);
  const int64_t elements = product(x);
  int64_t row = from_end(x, 0);  // what is normalised together
  if (call.base.find("batch_norm") != std::string_view::npos) {
    row = x.size() > 1 ? elements / std::max<int64_t>(x[1], 1) : elements;
  } else if (call.base.find("group_norm") != std::string_view::npos) {
    row = elements / std::max<int64_t>(1, (x.empty() ? 1 : x[0]) * call.attributes().get_int("group", 1));
  } else if (const Shape normalised = call.attributes().get_ints("normalized_shape", {}); !normalised.empty()) {
    row = product(normalised);
  }
  c.size(row).size(elements / std::max<int64_t>(row, 1)).add(evenness(row)).add(backward);
  c.size(x.size() > 1 ? x[1] : 1).size(x.empty() ? 1 : x[0]).size(x.size() > 2 ? product(x.subspan(2)) : 1);
  c.add(evenness(x.size() > 1 ? x[1] : 1));
  c.add(evenness(x.size() > 2 ? product(x.subspan(2)) : 1)).add(call.layout(backward ? 1 : 0).channels_last);
}

void softmax_columns(const Call& call, Columns& c) { reduction_columns(call, c); }

void pooling_columns(const Call& call, Columns& c) {
  const Shape kernel = call.attributes().get_ints("kernel_size", {1});
  const Shape stride = call.attributes().get_ints("stride", {1});
  const size_t data = is_backward(call.base) && call.inputs().size() > 1 ? 1 : 0;
  const Extents x = call.shape(data);
  const Extents y = is_backward(call.base) ? call.shape(0) : call.result();
  c.size(kernel.empty() ? 1 : kernel[0]).size(stride.empty() ? 1 : stride[0]).add(call.layout(data).channels_last);
  c.size(from_end(x, 3) * from_end(x, 2)).size(from_end(x, 1) * from_end(x, 0));
  c.size(from_end(y, 1) * from_end(y, 0)).size(from_end(x, 2)).add(evenness(from_end(x, 2)));
}

void embedding_columns(const Call& call, Columns& c) {
  const bool backward = is_backward(call.base);
  const Extents table = backward ? call.result() : call.shape(0);
  const int64_t indices = product(call.shape(1));
  c.size(table.empty() ? 1 : table[0]).size(from_end(table, 0)).size(indices).add(backward);
  c.add(
      log2_of(static_cast<double>(indices) / static_cast<double>(std::max<int64_t>(1, table.empty() ? 1 : table[0]))));
}

void indexing_columns(const Call& call, Columns& c) {
  reduction_columns(call, c);
  c.size(product(call.shape(1))).size(from_end(call.shape(1), 0)).add(call.attributes().get_bool("accumulate", false));
}

void copy_columns(const Call& call, Columns& c) {
  int64_t smallest = INT64_MAX;
  for (const TensorId input : call.inputs()) smallest = std::min(smallest, call.graph.element_count(input));
  c.size(call.inputs().empty() ? 0 : smallest).size(call.attributes().get_int("dim", 0));
}

void optimizer_columns(const Call& call, Columns& c) {
  const int64_t tensors = std::max<int64_t>(call.work.tensors, 1);
  int64_t elements = 0;
  int64_t largest = 0;
  int64_t small = 0;
  const auto inputs = call.inputs().first(std::min(call.inputs().size(), static_cast<size_t>(tensors)));
  for (const TensorId input : inputs) {
    const int64_t count = call.graph.element_count(input);
    elements += count;
    largest = std::max(largest, count);
    small += count < 65536 ? 1 : 0;
  }
  c.size(tensors).size(elements).size(elements / tensors).size(largest).size(small);
  c.size(static_cast<int64_t>(call.inputs().size()) / tensors).size(static_cast<int64_t>(call.outputs().size()));
}

// -- the general columns

// What a feature row reads first and writes, which for a convolution's gradients is not what the op does.
struct Ends {
  size_t main = 0;  // input
  Extents result;
  Layout out;
  DType out_type = DType::float32;
};

// How many tensors an op takes and how its result lies says something of these only; elsewhere it depends on
// who wrote it down.
bool counts_tensors(Model model) {
  return model == Model::elementwise || model == Model::copy || model == Model::optimizer;
}

bool has_products(Model model) {
  return model == Model::gemm || model == Model::convolution || model == Model::data_gradient ||
         model == Model::weight_gradient;
}

bool is_gradient(Model model) { return model == Model::data_gradient || model == Model::weight_gradient; }

Ends ends_of(const Call& call, Model model) {
  if (is_gradient(model)) {
    const size_t like = model == Model::data_gradient ? 1 : 2;
    return {1, call.shape(like), call.layout(like), call.work.compute_dtype};
  }
  Ends ends{call.main_input(), call.result(), {}, DType::float32};
  if (!call.inputs().empty()) ends.out_type = call.graph.tensor(call.inputs()[0]).dtype;
  if (call.outputs().empty()) return ends;
  if (counts_tensors(model)) ends.out = call.layouts.of(call.outputs()[0]);
  ends.out_type = call.graph.tensor(call.outputs()[0]).dtype;
  return ends;
}

// The unit as a column. Half-precision products run at about one speed in either type; a column of its own tells them apart where
// libraries choose other kernels.
Unit unit_column(const Call& call, Model model) {
  const Unit unit = product_unit(call.work, call.setup.precision);
  return unit == Unit::fp16_tensor && model != Model::rnn ? Unit::bf16_tensor : unit;
}

void general_columns(const Call& call, const FeatureRow& feature_row, double read, double written, double flops,
                     Columns& c) {
  const Ends ends = ends_of(call, feature_row.model);
  const Extents x = call.shape(ends.main);
  const Layout first = call.layout(ends.main);
  const Layout second = call.layout(ends.main + 1);
  const bool given = ends.main < call.inputs().size() && !call.in_bfloat16;
  const DType in_type = given ? call.graph.tensor(call.inputs()[ends.main]).dtype : ends.out_type;
  c.add(static_cast<float>(unit_column(call, feature_row.model)));
  c.add(in_type == DType::float16 && has_products(feature_row.model));
  c.add(static_cast<float>(size_of(in_type))).add(static_cast<float>(size_of(ends.out_type)));
  c.add(time_log(feature_row.analytic_us)).add(time_log(feature_row.compute_us)).add(time_log(feature_row.memory_us));
  c.add(log2_of(read)).add(log2_of(written)).add(log2_of(flops)).add(log2_of(flops / std::max(read + written, 1.0)));
  const bool counts = counts_tensors(feature_row.model);
  c.size(counts ? static_cast<int64_t>(call.inputs().size()) : 0);
  c.size(counts ? static_cast<int64_t>(call.outputs().size()) : 0);
  for (size_t place = 0; place < 4; ++place) c.size(from_end(x, place));
  for (size_t place = 0; place < 4; ++place) c.size(from_end(ends.result, place));
  c.size(product(x)).size(product(ends.result));
  c.add(first.permuted).add(first.expanded).add(first.sliced).add(first.channels_last);
  c.add(second.permuted).add(second.expanded).add(second.sliced).add(second.channels_last);
  c.size(product(call.shape(ends.main + 1))).add(ends.out.permuted).add(ends.out.channels_last);
}

void specific_columns(const Call& call, Model model, const GemmShape& gemm, Columns& c) {
  switch (model) {
    case Model::gemm: return gemm_columns(call, c);
    case Model::convolution:
    case Model::data_gradient:
    case Model::weight_gradient: return convolution_columns(call, gemm, c);
    case Model::attention: return attention_columns(call, c);
    case Model::rnn: return rnn_columns(call, c);
    case Model::normalization: return norm_columns(call, c);
    case Model::reduction: return reduction_columns(call, c);
    case Model::softmax: return softmax_columns(call, c);
    case Model::pooling: return pooling_columns(call, c);
    case Model::embedding: return embedding_columns(call, c);
    case Model::indexing: return indexing_columns(call, c);
    case Model::copy: return copy_columns(call, c);
    case Model::optimizer: return optimizer_columns(call, c);
    case Model::elementwise: return;
  }
}

FeatureRow make_piece(const Call& call, Model model, std::string_view op, const GemmShape& gemm, double read,
                      double written, double flops) {
  RowWork row{.model = model,
              .op = op,
              .unit = product_unit(call.work, call.setup.precision),
              .work = call.work,
              .flops = flops,
              .moved = read + written,
              .channels_last = reads_channels_last(call.graph, call.op, call.layouts)};
  if (call.work.cls == OpClass::convolution) {  // of its backward, one gradient
    row.work.gemm_table[0] = gemm;
    row.work.gemm_count = flops > 0 ? 1 : 0;
    row.work.cls = flops > 0 ? OpClass::convolution : OpClass::reduction;
    row.work.flops = Flops(flops);
    row.work.read = Bytes(static_cast<int64_t>(read));
    row.work.written = Bytes(static_cast<int64_t>(written));
  }
  const RowTimes times = times_on(row, call.device, call.setup.precision, call.constants);
  FeatureRow feature_row{.model = model,
                         .op = op,
                         .analytic_us = times.analytic_us,
                         .compute_us = times.compute_us,
                         .memory_us = times.memory_us,
                         .kernels = times.kernels,
                         .launches = static_cast<double>(call.work.launches),
                         .steps = static_cast<double>(std::max<int64_t>(call.work.steps, 1))};
  Columns general(feature_row.columns, 1, kGeneral);
  general_columns(call, feature_row, read, written, flops, general);
  Columns specific(feature_row.columns, kGeneral, kColumns);
  specific_columns(call, model, gemm, specific);
  if (call.works != nullptr) call.works->push_back(row);
  return feature_row;
}

std::array<bool, 3> wanted_gradients(const Call& call) {
  std::array<bool, 3> wanted = {true, true, true};
  if (const AttributeValue* value = call.attributes().find("output_mask"); value != nullptr) {
    if (const auto* flags = std::get_if<std::vector<bool>>(value)) {
      for (size_t i = 0; i < wanted.size() && i < flags->size(); ++i) wanted[i] = (*flags)[i];
    }
  }
  return wanted;
}

std::vector<FeatureRow> convolution_backward_pieces(const Call& call) {
  std::vector<FeatureRow> feature_rows;
  const std::array<bool, 3> wanted = wanted_gradients(call);
  const auto bytes = [&](size_t input) {
    return input < call.inputs().size() ? static_cast<double>(call.graph.bytes_of(call.inputs()[input]).value) : 0.0;
  };
  const double y = bytes(0);
  const double x = bytes(1);
  const double w = bytes(2);
  size_t gemm = 0;
  const auto next = [&] { return gemm < call.work.gemm_count ? call.work.gemm_table[gemm++] : GemmShape{}; };
  if (wanted[0]) {
    const GemmShape g = next();
    feature_rows.push_back(make_piece(call, Model::data_gradient, call.base, g, y + w, x, g.flops()));
  }
  if (wanted[1]) {
    const GemmShape g = next();
    feature_rows.push_back(make_piece(call, Model::weight_gradient, call.base, g, y + x, w, g.flops()));
  }
  if (wanted[2] && !call.attributes().get_ints("bias_sizes", {}).empty() &&
      call.attributes().get_ints("bias_sizes", {})[0] > 0) {
    FeatureRow bias = make_piece(call, Model::reduction, "sum", {}, y, 0, 0);
    Columns specific(bias.columns, kGeneral, kColumns);
    const Reduced r = reduced(call.shape(0), {0, 2, 3});
    specific.size(r.count).size(r.kept).size(r.inner).add(evenness(r.inner)).add(evenness(r.count)).add(r.inner == 1);
    feature_rows.push_back(bias);
  }
  return feature_rows;
}

// A product in fp8: none was measured, so that its analytic time is corrected as that of the same product in bfloat16 is.
FeatureRow fp8_piece(const Call& call) {
  OpWork wide = call.work;
  wide.compute_dtype = DType::bfloat16;
  wide.read = Bytes(2 * call.work.read.value);
  constexpr std::string_view kTwin = "mm";
  const Call twin{call.graph, call.op,        wide,  call.layouts, call.device,
                  call.setup, call.constants, kTwin, nullptr,      true};
  const GemmShape gemm = wide.gemm_count > 0 ? wide.gemm_table[0] : GemmShape{};
  FeatureRow feature_row = make_piece(twin, Model::gemm, kTwin, gemm, static_cast<double>(wide.read.value),
                                      static_cast<double>(wide.written.value), wide.flops.value);
  const RowWork row{.model = Model::gemm,
                    .op = kTwin,
                    .unit = product_unit(call.work, call.setup.precision),
                    .work = call.work,
                    .flops = call.work.flops.value,
                    .moved = static_cast<double>(call.work.bytes().value),
                    .channels_last = false};
  const RowTimes times = times_on(row, call.device, call.setup.precision, call.constants);
  feature_row.analytic_us = times.analytic_us;
  feature_row.compute_us = times.compute_us;
  feature_row.memory_us = times.memory_us;
  feature_row.in_fp8 = true;
  if (call.works != nullptr) call.works->push_back(row);
  return feature_row;
}

}  // namespace

std::string_view name_of(Model model) {
  constexpr std::array<std::string_view, kModelCount> kNames = {
      "gemm",          "convolution", "data_gradient", "weight_gradient", "attention", "rnn",
      "normalization", "elementwise", "reduction",     "softmax",         "pooling",   "embedding",
      "indexing",      "copy",        "optimizer"};
  return kNames[static_cast<size_t>(model)];
}

RowTimes times_on(const RowWork& row, const Device& device, Precision precision, const AnalyticConstants& constants) {
  const OpCost cost = analytic_cost(row.work, row.op, device, {precision, row.channels_last}, constants);
  return {.analytic_us = std::max(static_cast<double>(cost.gpu.value) / 1e3, 0.5),
          .compute_us = row.flops / std::max(device.rate(row.unit), 1.0) * 1e6,
          .memory_us = row.moved / std::max(device.memory_bandwidth, 1.0) * 1e6,
          .kernels = static_cast<double>(std::max(cost.kernels, 1))};
}

std::vector<FeatureRow> featurize(const Graph& graph, const Op& op, const OpWork& work, const LayoutTracker& layouts,
                                  const Device& device, const TrainingSetup& setup, const AnalyticConstants& constants,
                                  std::vector<RowWork>* works) {
  if (work.cls == OpClass::view || !work.on_gpu) return {};
  std::string_view base = base_name(graph.name(op));
  if (base == "stack") base = "cat";  // the same kernels, of views with one more dimension
  const Call call{graph, op, work, layouts, device, setup, constants, base, works};
  if (work.cls == OpClass::convolution && is_backward(call.base)) return convolution_backward_pieces(call);
  if (call.base == derive::kFp8Product) return {fp8_piece(call)};
  return {make_piece(call, model_of(work.cls), call.base, work.gemm_count > 0 ? work.gemm_table[0] : GemmShape{},
                     static_cast<double>(work.read.value), static_cast<double>(work.written.value), work.flops.value)};
}

}  // namespace forerun::hybrid
