// Reductions, softmax and the loss.
#include <algorithm>

#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

std::vector<bool> reduced_dims(const Shape& sizes, const Shape& dims) {
  std::vector<bool> gone(sizes.size(), dims.empty());
  for (const int64_t dim : dims) gone[wrap_dim(dim, sizes.size())] = true;
  return gone;
}

// The gradient of a sum, spread over what was summed.
Value spread(Tracer& t, Value g, const Shape& sizes, const Shape& dims, bool keep_dims) {
  if (!keep_dims && !dims.empty()) {
    const std::vector<bool> gone = reduced_dims(sizes, dims);
    for (size_t i = 0; i < gone.size(); ++i) {
      if (gone[i]) g = unsqueeze(t, g, static_cast<int64_t>(i));
    }
  }
  return expand(t, g, sizes);
}

Attributes reduction_attributes(const Shape& dims, bool keep_dims) {
  Attributes attributes = {{"dim", dims}};
  if (keep_dims) attributes.set("keepdim", true);
  return attributes;
}

}  // namespace

Shape reduced_sizes(const Shape& sizes, const Shape& dims, bool keep_dims) {
  const auto rank = static_cast<int64_t>(sizes.size());
  for (const int64_t dim : dims) {
    if (dim < -rank || dim >= rank) return {};
  }
  const std::vector<bool> gone = reduced_dims(sizes, dims);
  Shape out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!gone[i]) out.push_back(sizes[i]);
    if (gone[i] && keep_dims) out.push_back(1);
  }
  return out;
}

Value sum(Tracer& t, const Value& x, const Shape& dims, bool keep_dims) {
  Value y = t.fresh(x->dtype, reduced_sizes(x->sizes, dims, keep_dims));
  Node* node = t.record("SumBackward1", {x}, {y});
  if (dims.empty()) {
    t.emit("aten.sum.default", {x}, {y});
  } else {
    t.emit("aten.sum.dim_IntList", {x}, {y}, reduction_attributes(dims, keep_dims));
  }
  if (node != nullptr) {
    node->backward = [&t, sizes = x->sizes, dims, keep_dims](Values gradients) {
      return Values{spread(t, gradients[0], sizes, dims, keep_dims)};
    };
  }
  return y;
}

Value mean(Tracer& t, const Value& x, const Shape& dims, bool keep_dims) {
  Value y = t.fresh(x->dtype, reduced_sizes(x->sizes, dims, keep_dims));
  Node* node = t.record("MeanBackward1", {x}, {y});
  if (dims.empty() && !keep_dims) {
    t.emit("aten.mean.default", {x}, {y});
  } else {
    t.emit("aten.mean.dim", {x}, {y}, reduction_attributes(dims, keep_dims));
  }
  if (node != nullptr) {
    const int64_t count = element_count(x->sizes) / std::max<int64_t>(element_count(y->sizes), 1);
    node->backward = [&t, sizes = x->sizes, dims, keep_dims, count](Values gradients) {
      const Value wide = spread(t, gradients[0], sizes, dims, keep_dims);
      return Values{pointwise(t, "aten.div.Scalar", {wide}, {{"other", count}})};
    };
  }
  return y;
}

Value reduce(Tracer& t, std::string_view name, const Value& x, const Shape& dims, bool keep_dims) {
  Value y = t.fresh(x->dtype, reduced_sizes(x->sizes, dims, keep_dims));
  Node* node = t.record("AmaxBackward0", {x}, {y});
  t.emit(name, {x}, {y}, reduction_attributes(dims, keep_dims));
  if (node != nullptr) {
    const Value kept = t.save_result(y);
    node->backward = [&t, x, kept, dims, keep_dims](Values gradients) {
      const Value wide = spread(t, gradients[0], x->sizes, dims, keep_dims);
      const Value best = spread(t, t.unpack_result(kept), x->sizes, dims, keep_dims);
      const Value mask = pointwise(t, "aten.eq.Tensor", {x, best}, {}, DType::boolean);
      return Values{pointwise(t, "aten.mul.Tensor", {wide, mask}, {}, wide->dtype)};
    };
  }
  return y;
}

Value sum_to(Tracer& t, const Value& x, const Shape& sizes) {
  const size_t leading = x->sizes.size() - sizes.size();
  Shape dims;
  for (size_t i = 0; i < x->sizes.size(); ++i) {
    if (i < leading || (sizes[i - leading] == 1 && x->sizes[i] != 1)) dims.push_back(static_cast<int64_t>(i));
  }
  if (sizes.empty()) return sum(t, x, {}, false);
  Value y = dims.empty() ? x : sum(t, x, dims, true);
  return leading > 0 ? view(t, y, sizes) : y;
}

namespace {

Value softmax_like(Tracer& t, const Value& x, int64_t dim, std::string_view name, std::string_view node_name,
                   std::string_view backward_name) {
  Value y = t.fresh(x->dtype, x->sizes);
  Node* node = t.record(node_name, {x}, {y});
  t.emit(name, {x}, {y},
         name == "aten._safe_softmax.default" ? Attributes{{"dim", dim}}
                                              : Attributes{{"dim", dim}, {"half_to_float", false}});
  if (node != nullptr) {
    const Value kept = t.save_result(y);
    node->backward = [&t, kept, dim, backward_name](Values gradients) {
      const Value result = t.unpack_result(kept);
      Value g = t.fresh(result->dtype, result->sizes);
      t.emit(backward_name, {gradients[0], result}, {g},
             {{"dim", dim}, {"input_dtype", std::string(name_of(result->dtype))}});
      return Values{g};
    };
  }
  return y;
}

}  // namespace

Value softmax(Tracer& t, const Value& x, int64_t dim) {
  return softmax_like(t, x, dim, "aten._softmax.default", "SoftmaxBackward0", "aten._softmax_backward_data.default");
}

Value safe_softmax(Tracer& t, const Value& x, int64_t dim) {
  return softmax_like(t, x, dim, "aten._safe_softmax.default", "SafeSoftmaxBackward0",
                      "aten._softmax_backward_data.default");
}

Value log_softmax(Tracer& t, const Value& x, int64_t dim) {
  return softmax_like(t, x, dim, "aten._log_softmax.default", "LogSoftmaxBackward0",
                      "aten._log_softmax_backward_data.default");
}

Value nll_loss(Tracer& t, const Value& log_probabilities, const Value& target) {
  const bool per_pixel = log_probabilities->sizes.size() == 4;
  const std::string op = per_pixel ? "aten.nll_loss2d" : "aten.nll_loss";
  Value loss = t.fresh(log_probabilities->dtype, {});
  Value weight = t.fresh(log_probabilities->dtype, {});
  const Attributes attributes = {{"reduction", int64_t{1}}, {"ignore_index", int64_t{-100}}};
  Node* node = t.record(per_pixel ? "NllLoss2DBackward0" : "NllLossBackward0", {log_probabilities}, {loss, weight});
  weight->history = nullptr;
  t.emit(op + "_forward.default", {log_probabilities, target}, {loss, weight}, attributes);
  if (node != nullptr) {
    node->backward = [&t, op, log_probabilities, target, weight, attributes](Values gradients) {
      Value g = t.fresh(log_probabilities->dtype, log_probabilities->sizes, preserved_strides(*log_probabilities));
      t.emit(op + "_backward.default", {gradients[0], log_probabilities, target, weight}, {g}, attributes);
      return Values{g};
    };
  }
  return loss;
}

Value mse_loss(Tracer& t, const Value& x, const Value& target) {
  Value loss = t.fresh(promote(x->dtype, target->dtype), {});
  Node* node = t.record("MseLossBackward0", {x, target}, {loss});
  t.emit("aten.mse_loss.default", {x, target}, {loss});
  if (node != nullptr) {
    const Attributes attributes = {{"reduction", int64_t{1}}};
    node->backward = [&t, node, x, target, attributes](Values gradients) {
      Values result(2);
      const Values sides = {x, target};
      for (size_t i = 0; i < 2; ++i) {
        if (!Tracer::wanted(*node, i)) continue;
        result[i] = t.fresh(sides[i]->dtype, sides[i]->sizes, preserved_strides(*sides[i]));
        t.emit("aten.mse_loss_backward.default", {gradients[0], sides[i], sides[1 - i]}, {result[i]}, attributes);
      }
      return result;
    };
  }
  return loss;
}

Values ctc_loss(Tracer& t, const CtcOperands& operands, const Shape& alpha, const Attributes& attributes) {
  const Value& x = operands.log_probabilities;
  const Values others = {operands.labels, operands.frame_counts, operands.label_counts};
  Value losses = t.fresh(x->dtype, {alpha[0]});
  Value paths = t.fresh(x->dtype, alpha);
  Node* node = t.record("CtcLossBackward0", {x}, {losses, paths});
  paths->history = nullptr;
  t.emit("aten._ctc_loss.Tensor", {x, others[0], others[1], others[2]}, {losses, paths}, attributes);
  if (node != nullptr) {
    const Value kept_losses = t.save_result(losses);
    const Value kept_paths = t.save_result(paths);
    node->backward = [&t, x, others, kept_losses, kept_paths, attributes](Values gradients) {
      const Value unpacked_losses = t.unpack_result(kept_losses);
      const Value unpacked_paths = t.unpack_result(kept_paths);
      Value g = t.fresh(x->dtype, x->sizes);
      t.emit("aten._ctc_loss_backward.Tensor",
             {gradients[0], x, others[0], others[1], others[2], unpacked_losses, unpacked_paths}, {g}, attributes);
      return Values{g};
    };
  }
  return {losses, paths};
}

Values topk(Tracer& t, const Value& x, const Shape& size, const Attributes& attributes) {
  Value values = t.fresh(x->dtype, size);
  Value places = t.fresh(DType::int64, size);
  Node* node = t.record("TopkBackward0", {x}, {values});
  t.emit("aten.topk.default", {x}, {values, places}, attributes);
  if (node != nullptr) {
    node->backward = [&t, original = x->sizes, places](Values gradients) {
      const Value zeros = t.fresh(gradients[0]->dtype, original);
      t.emit("aten.new_zeros.default", {gradients[0]}, {zeros}, {{"size", original}});
      const Value whole = t.fresh(zeros->dtype, original);
      t.emit("aten.scatter.src", {zeros, places, gradients[0]}, {whole}, {{"dim", int64_t{-1}}});
      return Values{whole};
    };
  }
  return {values, places};
}

}  // namespace forerun::derive::aten
