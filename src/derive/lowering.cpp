#include "derive/lowering.h"

#include <algorithm>
#include <array>

#include "derive/context_parallel.h"
#include "derive/expert_parallel.h"
#include "derive/op_class.h"
#include "derive/tensor_parallel.h"

namespace forerun::derive {
namespace {

using Rule = Values (*)(const OpCall&);

// Arguments are cast from the last to the first, as C++ evaluates PyTorch's autocast wrapper.
std::array<Value, 3> lowered3(const OpCall& c) {
  std::array<Value, 3> cast;
  for (size_t i = 3; i-- > 0;) cast[i] = c.autocast.lower(c.optional(i));
  return cast;
}

Values convolution(const OpCall& c) {
  const auto [x, weight, bias] = lowered3(c);
  return {aten::convolution(c.tracer, x, weight, bias, c.attributes)};
}

Values linear(const OpCall& c) {
  const auto [x, weight, bias] = lowered3(c);
  return {aten::linear(c.tracer, x, weight, bias)};
}

Values addmm(const OpCall& c) {
  const auto [bias, a, b] = lowered3(c);
  return {aten::addmm(c.tracer, bias, a, b)};
}

Values matmul(const OpCall& c) {
  if (!c.attributes.get_bool("autocast", true)) return {aten::matmul(c.tracer, c.in(0), c.in(1))};
  const auto [a, b, none] = lowered3(c);
  return {aten::matmul(c.tracer, a, b)};
}

Values bmm(const OpCall& c) {
  const auto [a, b, none] = lowered3(c);
  return {aten::bmm(c.tracer, a, b)};
}

Values baddbmm(const OpCall& c) {
  const auto [addend, a, b] = lowered3(c);
  return {aten::baddbmm(c.tracer, addend, a, b, c.attributes)};
}

Values grouped_mm(const OpCall& c) { return {aten::grouped_mm(c.tracer, c.in(0), c.in(1), c.in(2))}; }

Values batch_norm(const OpCall& c) {
  return {aten::batch_norm(c.tracer, c.in(0), {c.in(1), c.in(2), c.in(3), c.in(4)}, c.attributes)};
}

Values layer_norm(const OpCall& c) {
  Value bias = c.autocast.widen(c.optional(2));
  Value weight = c.autocast.widen(c.optional(1));
  return {aten::layer_norm(c.tracer, c.autocast.widen(c.in(0)), weight, bias, c.attributes)};
}

Values group_norm(const OpCall& c) {
  return {aten::group_norm(c.tracer, c.autocast.widen(c.in(0)), c.in(1), c.in(2), c.attributes)};
}

Values weight_norm(const OpCall& c) { return aten::weight_norm(c.tracer, c.in(0), c.in(1), c.attributes); }

Values embedding(const OpCall& c) { return {aten::embedding(c.tracer, c.in(0), c.in(1), c.attributes)}; }
Values embedding_bag(const OpCall& c) { return {aten::embedding_bag(c.tracer, c.in(0), c.in(1), c.in(2))}; }

Values max_pool2d(const OpCall& c) { return {aten::max_pool2d(c.tracer, c.in(0), c.results[0].first, c.attributes)}; }
Values avg_pool2d(const OpCall& c) { return {aten::avg_pool2d(c.tracer, c.in(0), c.results[0].first, c.attributes)}; }
Values adaptive_avg_pool2d(const OpCall& c) {
  return {aten::adaptive_avg_pool2d(c.tracer, c.in(0), c.attributes.get_ints("output_size"))};
}
Values upsample(const OpCall& c) {
  return {aten::upsample(c.tracer, c.name, c.autocast.widen(c.in(0)), c.results[0].first, c.attributes)};
}

Values dropout(const OpCall& c) {
  const double p = c.attributes.get_double("p", 0.5);
  if (p == 0) return {c.in(0)};
  return {aten::dropout(c.tracer, c.in(0), p)};
}

Values dropout_in_place(const OpCall& c) {
  const double p = c.attributes.get_double("p", 0.5);
  if (p != 0) aten::dropout_in_place(c.tracer, c.in(0), p);
  return {c.in(0)};
}

// A mask of booleans becomes one of 0 and minus infinity.
Value additive_mask(Tracer& t, const Value& allowed, DType dtype) {
  const Value infinity = aten::create(t, "aten.scalar_tensor.default", {}, dtype);
  const Value zero = aten::create(t, "aten.scalar_tensor.default", {}, dtype);
  return aten::where(t, allowed, zero, infinity);
}

// As memory-efficient attention wants it: rows begin at multiples of 8 elements, and it is spread over all heads.
Value aligned_mask(Tracer& t, Value mask, const Value& query, const Value& key) {
  constexpr int64_t kAlignment = 8;
  const int64_t length = mask->sizes.back();
  const bool aligned = mask->strides.back() == 1 && std::all_of(mask->strides.begin(), mask->strides.end() - 1,
                                                                [](int64_t s) { return s % kAlignment == 0; });
  if (!aligned) {
    mask = aten::constant_pad(t, mask, {0, kAlignment - length % kAlignment});
    mask = aten::slice(t, mask, -1, 0, length, 1);
  }
  return aten::expand(t, mask, {query->sizes[0], query->sizes[1], query->sizes[2], key->sizes[2]});
}

Values attention(const OpCall& c) {
  Value mask = c.optional(3);
  const auto [lowered_query, lowered_key, lowered_value] = lowered3(c);
  if (mask && is_floating(mask->dtype)) mask = c.autocast.lower(mask);
  aten::AttentionCall call{lowered_query, lowered_key, lowered_value, mask, {}};
  for (const auto& [name, value] : c.attributes.entries()) {
    if (name != "never_masked") call.attributes.set(name, value);
  }
  DispatchTarget target = c.target;
  if (c.attributes.get_bool("never_masked", false)) target.traced_masks = false;
  if (target.traced_masks) call = aten::traced_attention(c.tracer, std::move(call));
  const auto& [query, key, value, given, attributes] = call;
  mask = given;
  AttentionBackend backend =
      attention_backend(target, {query, key, value, mask}, attributes.get_bool("enable_gqa", false),
                        attributes.get_bool("is_causal", false));
  const bool drops = attributes.get_double("dropout_p", 0) > 0;
  if (drops && needs_gradient(mask)) backend = AttentionBackend::math;  // no fused kernel takes both
  if (mask && mask->dtype == DType::boolean) mask = additive_mask(c.tracer, mask, query->dtype);
  if (mask && backend == AttentionBackend::efficient) mask = aligned_mask(c.tracer, mask, query, key);
  return {aten::attention(c.tracer, backend, query, key, value, mask, attributes)};
}

Values recurrent(const OpCall& c) {
  aten::RnnCall call;
  call.kind = c.name.starts_with("aten.lstm")       ? RnnKind::lstm
              : c.name.starts_with("aten.gru")      ? RnnKind::gru
              : c.name.starts_with("aten.rnn_relu") ? RnnKind::relu
                                                    : RnnKind::tanh;
  call.hidden = c.attributes.get_int("hidden_size", 1);
  call.layers = c.attributes.get_int("num_layers", 1);
  call.directions = c.attributes.get_bool("bidirectional", false) ? 2 : 1;
  call.bias = c.attributes.get_bool("has_biases", true);
  call.batch_first = c.attributes.get_bool("batch_first", true);
  call.dropout = c.attributes.get_double("dropout", 0);
  call.cast_to_half = c.autocast.on();
  return {aten::rnn(c.tracer, c.in(0), Values(c.inputs.begin() + 1, c.inputs.end()), call)};
}

Values softmax(const OpCall& c) {
  return {aten::softmax(c.tracer, c.autocast.widen(c.in(0)), c.attributes.get_int("dim", -1))};
}
Values log_softmax(const OpCall& c) {
  return {aten::log_softmax(c.tracer, c.autocast.widen(c.in(0)), c.attributes.get_int("dim", -1))};
}
Values mean(const OpCall& c) {
  return {aten::mean(c.tracer, c.in(0), c.attributes.get_ints("dim"), c.attributes.get_bool("keepdim", false))};
}

// A tensor made after the shape or type of another: new_zeros, zeros_like. No gradient flows.
Values create_after(const OpCall& c) {
  Value y = c.tracer.fresh(c.results[0].second, c.results[0].first);
  c.tracer.emit(c.name, c.inputs, {y}, c.attributes);
  return {y};
}

Values sum(const OpCall& c) {
  if (!is_floating(c.in(0)->dtype)) return create_after(c);  // of numbers: int64, whatever they are
  return {aten::sum(c.tracer, c.autocast.widen(c.in(0)), c.attributes.get_ints("dim"),
                    c.attributes.get_bool("keepdim", false))};
}

Values mse_loss(const OpCall& c) {
  const Value target = c.autocast.widen(c.in(1));
  return {aten::mse_loss(c.tracer, c.autocast.widen(c.in(0)), target)};
}

Values ctc_loss(const OpCall& c) {
  return aten::ctc_loss(c.tracer, {c.in(0), c.in(1), c.in(2), c.in(3)}, c.results[1].first, c.attributes);
}

Values topk(const OpCall& c) { return aten::topk(c.tracer, c.in(0), c.results[0].first, c.attributes); }

Values to_dtype(const OpCall& c) {
  const DType dtype = c.results[0].second;
  return {c.in(0)->dtype == dtype ? c.in(0) : aten::to_copy(c.tracer, c.in(0), dtype)};
}

Values type_as(const OpCall& c) {
  const DType dtype = c.in(1)->dtype;
  return {c.in(0)->dtype == dtype ? c.in(0) : aten::to_copy(c.tracer, c.in(0), dtype)};
}

// --- shape
Values view(const OpCall& c) { return {aten::reshape(c.tracer, c.in(0), c.attributes.get_ints("size"))}; }
Values reshape(const OpCall& c) { return {aten::reshape(c.tracer, c.in(0), c.attributes.get_ints("shape"))}; }
Values flatten(const OpCall& c) {
  if (c.in(0)->sizes == c.results[0].first) return {c.in(0)};
  return {aten::reshape(c.tracer, c.in(0), c.results[0].first)};
}
Values permute(const OpCall& c) { return {aten::permute(c.tracer, c.in(0), c.attributes.get_ints("dims"))}; }
Values transpose(const OpCall& c) {
  return {aten::transpose(c.tracer, c.in(0), c.attributes.get_int("dim0", 0), c.attributes.get_int("dim1", 1))};
}
Values transpose2d(const OpCall& c) { return {aten::transpose2d(c.tracer, c.in(0))}; }
Values contiguous(const OpCall& c) { return {aten::contiguous(c.tracer, c.in(0))}; }
Values unsqueeze(const OpCall& c) { return {aten::unsqueeze(c.tracer, c.in(0), c.attributes.get_int("dim", 0))}; }
Values squeeze(const OpCall& c) { return {aten::squeeze(c.tracer, c.in(0), c.attributes.get_int("dim", 0))}; }
Values expand(const OpCall& c) { return {aten::expand(c.tracer, c.in(0), c.attributes.get_ints("size"))}; }
Values select(const OpCall& c) {
  return {aten::select(c.tracer, c.in(0), c.attributes.get_int("dim", 0), c.attributes.get_int("index", 0))};
}
Values slice(const OpCall& c) {
  return {aten::slice(c.tracer, c.in(0), c.attributes.get_int("dim", 0), c.attributes.get_int("start", 0),
                      c.attributes.get_int("end", INT64_MAX), c.attributes.get_int("step", 1))};
}
Values split_with_sizes(const OpCall& c) {
  return aten::split_with_sizes(c.tracer, c.in(0), c.attributes.get_ints("split_sizes"),
                                c.attributes.get_int("dim", 0));
}
Values split(const OpCall& c) {
  return aten::split_every(c.tracer, c.in(0), c.attributes.get_int("split_size", 1), c.attributes.get_int("dim", 0));
}
Values unbind(const OpCall& c) { return aten::unbind(c.tracer, c.in(0), c.attributes.get_int("dim", 0)); }
Values cat(const OpCall& c) { return {aten::cat(c.tracer, c.inputs, c.attributes.get_int("dim", 0))}; }
Values stack(const OpCall& c) { return {aten::stack(c.tracer, c.inputs, c.attributes.get_int("dim", 0))}; }
Values repeat(const OpCall& c) { return {aten::repeat(c.tracer, c.in(0), c.attributes.get_ints("repeats"))}; }
Values roll(const OpCall& c) {
  return {aten::roll(c.tracer, c.in(0), c.attributes.get_ints("shifts"), c.attributes.get_ints("dims"))};
}
Values pad(const OpCall& c) { return {aten::constant_pad(c.tracer, c.in(0), c.attributes.get_ints("pad"))}; }
Values gather(const OpCall& c) { return {aten::gather(c.tracer, c.in(0), c.attributes.get_int("dim", 0), c.in(1))}; }
Values index_select(const OpCall& c) {
  return {aten::index_select(c.tracer, c.in(0), c.attributes.get_int("dim", 0), c.in(1))};
}
Values index(const OpCall& c) {
  return {aten::index(c.tracer, c.in(0), Values(c.inputs.begin() + 1, c.inputs.end()), c.results[0].first)};
}
Values where(const OpCall& c) { return {aten::where(c.tracer, c.in(0), c.in(1), c.in(2))}; }

// Division that rounds: of integers it gives integers, without a gradient.
Values rounded_division(const OpCall& c) {
  if (!is_floating(c.in(0)->dtype)) return create_after(c);
  return {aten::unary(c.tracer, c.name, c.in(0), c.attributes)};
}
// new_empty has the type of the tensor it is made after.
Values new_empty(const OpCall& c) {
  Value y = c.tracer.fresh(c.in(0)->dtype, c.results[0].first);
  c.tracer.emit(c.name, c.inputs, {y}, c.attributes);
  return {y};
}
Values copy_in_place(const OpCall& c) {
  aten::copy_in_place(c.tracer, c.in(0), c.in(1));
  return {c.in(0)};
}
// Sums of integers and booleans are int64; no gradient flows.
Values cumulative_sum(const OpCall& c) {
  if (!is_floating(c.in(0)->dtype)) return create_after(c);
  return {aten::unary(c.tracer, c.name, c.autocast.widen(c.in(0)), c.attributes)};
}
// Numbers from Python: they live in host memory, unless the source asks for the GPU.
Values lift_fresh(const OpCall& c) {
  const bool on_gpu = c.attributes.get_bool("on_gpu", false);
  Value y = c.tracer.fresh(c.results[0].second, c.results[0].first, contiguous_strides(c.results[0].first), on_gpu);
  c.tracer.emit(c.name, {y}, {y});
  return {y};
}
// "autocast": of the type that products have.
Values created(const OpCall& c) {
  const bool lowered = c.autocast.on() && c.attributes.get_bool("autocast", false);
  return {aten::create(c.tracer, c.name, c.results[0].first, lowered ? c.autocast.type() : c.results[0].second)};
}
// x.requires_grad_(): x becomes a leaf that gets a gradient.
Values require_gradient(const OpCall& c) {
  c.tracer.make_parameter(c.in(0));
  return {c.in(0)};
}
// A variable of the model's source that lives until here.
Values hold(const OpCall&) { return {}; }
Values masked_put_in_place(const OpCall& c) {
  aten::masked_put_in_place(c.tracer, c.in(0), c.in(1), c.in(2), c.attributes.get_int("count", 0));
  return {c.in(0)};
}
Values alias(const OpCall& c) { return {aten::alias(c.tracer, c.in(0))}; }
Values bloom_gelu(const OpCall& c) { return {aten::bloom_gelu(c.tracer, c.in(0))}; }
Values rotate_complex(const OpCall& c) { return {aten::rotate_complex(c.tracer, c.in(0), c.in(1))}; }
Values enter_group(const OpCall& c) { return {aten::enter_group(c.tracer, c.in(0))}; }
Values leave_group(const OpCall& c) { return {aten::leave_group(c.tracer, c.in(0))}; }
Values swap_rows(const OpCall& c) { return {aten::swap_rows(c.tracer, c.in(0))}; }
Values gather_sequence(const OpCall& c) { return {aten::gather_sequence(c.tracer, c.in(0), c.results[0].first)}; }
Values masked_fill(const OpCall& c) { return {aten::masked_fill(c.tracer, c.in(0), c.in(1), c.attributes)}; }

// --- elementwise: the same name with one tensor (and a number) or two
template <Value (*Binary)(Tracer&, const Value&, const Value&)>
Values arithmetic(const OpCall& c) {
  const bool of_integers = !is_floating(c.in(0)->dtype) && is_floating(c.results[0].second);
  if (c.inputs.size() == 1 && of_integers) return create_after(c);  // with a real number
  if (c.inputs.size() == 1) return {aten::unary(c.tracer, c.name, c.in(0), c.attributes)};
  return {Binary(c.tracer, c.in(0), c.in(1))};
}

template <void (*Binary)(Tracer&, const Value&, const Value&)>
Values arithmetic_in_place(const OpCall& c) {
  if (c.inputs.size() == 1) {
    aten::unary_in_place(c.tracer, c.name, c.in(0), c.attributes);
  } else {
    Binary(c.tracer, c.in(0), c.in(1));
  }
  return {c.in(0)};
}

struct RuleRow {
  std::string_view name;
  Rule rule;
};

// The forward vocabulary of graph/forward_builder.h that needs a rule of its own. Elementwise ops fall through to `lower`.
constexpr std::array kLoweringRules = {
    RuleRow{"aten.convolution.default", convolution},
    RuleRow{"aten.linear.default", linear},
    RuleRow{"aten.addmm.default", addmm},
    RuleRow{"aten.matmul.default", matmul},
    RuleRow{"aten.bmm.default", bmm},
    RuleRow{"aten.baddbmm.default", baddbmm},
    RuleRow{"aten._grouped_mm.default", grouped_mm},
    RuleRow{"aten.batch_norm.default", batch_norm},
    RuleRow{"aten.layer_norm.default", layer_norm},
    RuleRow{"aten.group_norm.default", group_norm},
    RuleRow{"aten._weight_norm_interface.default", weight_norm},
    RuleRow{"aten.embedding.default", embedding},
    RuleRow{"aten.embedding_bag.default", embedding_bag},
    RuleRow{"aten.max_pool2d.default", max_pool2d},
    RuleRow{"aten.avg_pool2d.default", avg_pool2d},
    RuleRow{"aten.adaptive_avg_pool2d.default", adaptive_avg_pool2d},
    RuleRow{"aten.upsample_nearest2d.default", upsample},
    RuleRow{"aten.upsample_bilinear2d.default", upsample},
    RuleRow{"aten.upsample_linear1d.default", upsample},
    RuleRow{"aten.dropout.default", dropout},
    RuleRow{"aten.dropout_.default", dropout_in_place},
    RuleRow{"aten.scaled_dot_product_attention.default", attention},
    RuleRow{"aten.lstm.input", recurrent},
    RuleRow{"aten.gru.input", recurrent},
    RuleRow{"aten.rnn_tanh.input", recurrent},
    RuleRow{"aten.rnn_relu.input", recurrent},
    RuleRow{"aten.softmax.int", softmax},
    RuleRow{"aten.log_softmax.int", log_softmax},
    RuleRow{"aten.mean.dim", mean},
    RuleRow{"aten.sum.dim_IntList", sum},
    RuleRow{"aten.mse_loss.default", mse_loss},
    RuleRow{"aten._ctc_loss.Tensor", ctc_loss},
    RuleRow{"aten.topk.default", topk},
    RuleRow{"aten.to.dtype", to_dtype},
    RuleRow{"aten.type_as.default", type_as},
    RuleRow{"aten.view.default", view},
    RuleRow{"aten.reshape.default", reshape},
    RuleRow{"aten.flatten.using_ints", flatten},
    RuleRow{"aten.permute.default", permute},
    RuleRow{"aten.transpose.int", transpose},
    RuleRow{"aten.t.default", transpose2d},
    RuleRow{"aten.contiguous.default", contiguous},
    RuleRow{"aten.unsqueeze.default", unsqueeze},
    RuleRow{"aten.squeeze.dim", squeeze},
    RuleRow{"aten.expand.default", expand},
    RuleRow{"aten.select.int", select},
    RuleRow{"aten.slice.Tensor", slice},
    RuleRow{"aten.split_with_sizes.default", split_with_sizes},
    RuleRow{"aten.split.Tensor", split},
    RuleRow{"aten.unbind.int", unbind},
    RuleRow{"aten.cat.default", cat},
    RuleRow{"aten.stack.default", stack},
    RuleRow{"aten.repeat.default", repeat},
    RuleRow{"aten.roll.default", roll},
    RuleRow{"aten.constant_pad_nd.default", pad},
    RuleRow{"aten.gather.default", gather},
    RuleRow{"aten.index_select.default", index_select},
    RuleRow{"aten.index.Tensor", index},
    RuleRow{"aten.where.self", where},
    RuleRow{"aten.new_empty.default", new_empty},
    RuleRow{"aten.copy_.default", copy_in_place},
    RuleRow{"aten.new_zeros.default", create_after},
    RuleRow{"aten.new_ones.default", create_after},
    RuleRow{"aten.zeros_like.default", create_after},
    RuleRow{"aten.ones_like.default", create_after},
    RuleRow{"aten.full_like.default", create_after},
    RuleRow{"aten.cumsum.default", cumulative_sum},
    RuleRow{"aten.lift_fresh.default", lift_fresh},
    RuleRow{"aten.zeros.default", created},
    RuleRow{"aten.rand.default", created},
    RuleRow{"aten.alias.default", alias},
    RuleRow{"aten.masked_fill.Scalar", masked_fill},
    RuleRow{"forerun.require_gradient.default", require_gradient},
    RuleRow{"forerun.hold.default", hold},
    RuleRow{"forerun.masked_put_.default", masked_put_in_place},
    RuleRow{"forerun.rotate_complex.default", rotate_complex},
    RuleRow{"forerun.bloom_gelu.default", bloom_gelu},
    RuleRow{kEnterGroup, enter_group},
    RuleRow{kLeaveGroup, leave_group},
    RuleRow{kSwapRows, swap_rows},
    RuleRow{kGatherSequence, gather_sequence},
    RuleRow{"aten.add.Tensor", arithmetic<aten::add>},
    RuleRow{"aten.sub.Tensor", arithmetic<aten::sub>},
    RuleRow{"aten.mul.Tensor", arithmetic<aten::mul>},
    RuleRow{"aten.div.Tensor", arithmetic<aten::div>},
    RuleRow{"aten.div.Tensor_mode", rounded_division},
    RuleRow{"aten.add_.Tensor", arithmetic_in_place<aten::add_in_place>},
    RuleRow{"aten.mul_.Tensor", arithmetic_in_place<aten::mul_in_place>},
    RuleRow{"aten.div_.Tensor", arithmetic_in_place<aten::div_in_place>},
};

}  // namespace

std::vector<std::string_view> lowered_ops() {
  std::vector<std::string_view> names;
  for (const RuleRow& row : kLoweringRules) names.push_back(row.name);
  return names;
}

Values lower(const OpCall& call) {
  const auto* found = std::find_if(kLoweringRules.begin(), kLoweringRules.end(),
                                   [&](const RuleRow& row) { return row.name == call.name; });
  if (found != kLoweringRules.end()) return found->rule(call);
  const bool aten_name = call.name.starts_with("aten.");
  if (aten_name && call.inputs.empty() && call.results.size() == 1) {
    return {aten::create(call.tracer, call.name, call.results[0].first, call.results[0].second, call.attributes)};
  }
  if (aten_name && !call.inputs.empty() && is_in_place(call.name)) {
    if (call.inputs.size() == 1) {
      aten::unary_in_place(call.tracer, call.name, call.in(0), call.attributes);
    } else {
      call.tracer.emit(call.name, call.inputs, {call.in(0)}, call.attributes);
    }
    return {call.in(0)};
  }
  if (aten_name && call.inputs.size() == 1 && call.results.size() == 1 && call.results[0].first == call.in(0)->sizes) {
    const Value x = runs_in_float32(call.name) ? call.autocast.widen(call.in(0)) : call.in(0);
    return {aten::unary(call.tracer, call.name, x, call.attributes)};
  }
  if (aten_name && call.attributes.find("dim") != nullptr && call.inputs.size() == 1 && call.results.size() == 1 &&
      aten::reduced_sizes(call.in(0)->sizes, call.attributes.get_ints("dim"),
                          call.attributes.get_bool("keepdim", false)) == call.results[0].first) {
    return {aten::reduce(call.tracer, call.name, call.in(0), call.attributes.get_ints("dim"),
                         call.attributes.get_bool("keepdim", false))};
  }
  return aten::opaque(call.tracer, call.name, call.inputs, call.results, call.attributes);
}

}  // namespace forerun::derive
