// Matrix products and what linear and matmul turn into.
#include <algorithm>

#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

bool is_column_major(const TensorState& v) { return v.strides[0] == 1 && v.strides[1] == v.sizes[0]; }

// Gradient of `a` in a @ b. The layout of `a` decides which of two equal forms PyTorch takes.
Value left_gradient(Tracer& t, const Value& g, const Value& b, bool left_is_column_major) {
  if (left_is_column_major) return transpose2d(t, mm(t, b, transpose2d(t, g)));
  return mm(t, g, transpose2d(t, b));
}

Value right_gradient(Tracer& t, const Value& g, const Value& a, bool right_is_column_major) {
  if (right_is_column_major) return transpose2d(t, mm(t, transpose2d(t, g), a));
  return mm(t, transpose2d(t, a), g);
}

}  // namespace

Value mm(Tracer& t, const Value& a, const Value& b) {
  Value y = t.fresh(a->dtype, {a->sizes[0], b->sizes[1]});
  Node* node = t.record("MmBackward0", {a, b}, {y});
  t.emit("aten.mm.default", {a, b}, {y});
  if (node != nullptr) {
    const Value kept_a = Tracer::wanted(*node, 1) ? a : nullptr;
    const Value kept_b = Tracer::wanted(*node, 0) ? b : nullptr;
    node->backward = [&t, node, kept_a, kept_b, a_column = is_column_major(*a),
                      b_column = is_column_major(*b)](Values gs) {
      Values result(2);
      if (Tracer::wanted(*node, 1)) result[1] = right_gradient(t, gs[0], kept_a, b_column);
      if (Tracer::wanted(*node, 0)) result[0] = left_gradient(t, gs[0], kept_b, a_column);
      return result;
    };
  }
  return y;
}

Value addmm(Tracer& t, const Value& bias, const Value& a, const Value& b) {
  Value y = t.fresh(a->dtype, {a->sizes[0], b->sizes[1]});
  Node* node = t.record("AddmmBackward0", {bias, a, b}, {y});
  t.emit("aten.addmm.default", {bias, a, b}, {y});
  if (node != nullptr) {
    const Value kept_a = Tracer::wanted(*node, 2) ? a : nullptr;
    const Value kept_b = Tracer::wanted(*node, 1) ? b : nullptr;
    node->backward = [&t, node, kept_a, kept_b, a_column = is_column_major(*a),
                      b_column = is_column_major(*b)](Values gs) {
      Values result(3);
      if (Tracer::wanted(*node, 1)) result[1] = left_gradient(t, gs[0], kept_b, a_column);
      if (Tracer::wanted(*node, 2)) result[2] = right_gradient(t, gs[0], kept_a, b_column);
      result[0] = gs[0];
      return result;
    };
  }
  return y;
}

Value bmm(Tracer& t, const Value& a, const Value& b) {
  Value y = t.fresh(a->dtype, {a->sizes[0], a->sizes[1], b->sizes[2]});
  Node* node = t.record("BmmBackward0", {a, b}, {y});
  t.emit("aten.bmm.default", {a, b}, {y});
  if (node != nullptr) {
    node->backward = [&t, node, a, b](Values gradients) {
      Values result(2);
      if (Tracer::wanted(*node, 1)) result[1] = bmm(t, transpose(t, a, 1, 2), gradients[0]);
      if (Tracer::wanted(*node, 0)) result[0] = bmm(t, gradients[0], transpose(t, b, 1, 2));
      return result;
    };
  }
  return y;
}

// beta * addend + alpha * a @ b, with an addend that has no gradient.
Value baddbmm(Tracer& t, const Value& addend, const Value& a, const Value& b, const Attributes& attributes) {
  Value y = t.fresh(a->dtype, {a->sizes[0], a->sizes[1], b->sizes[2]});
  Node* node = t.record("BaddbmmBackward0", {a, b}, {y});
  t.emit("aten.baddbmm.default", {addend, a, b}, {y}, attributes);
  if (node == nullptr) return y;
  const auto scaled = [&t, alpha = attributes.get_double("alpha", 1)](const Value& g) {
    return alpha == 1 ? g : pointwise(t, "aten.mul.Scalar", {g}, {{"other", alpha}});
  };
  node->backward = [&t, node, a, b, scaled](Values gradients) {
    Values result(2);
    if (Tracer::wanted(*node, 0)) result[0] = scaled(bmm(t, gradients[0], transpose(t, b, 1, 2)));
    if (Tracer::wanted(*node, 1)) result[1] = scaled(bmm(t, transpose(t, a, 1, 2), gradients[0]));
    return result;
  };
  return y;
}

Value matmul(Tracer& t, const Value& a, const Value& b) {
  const size_t rank_a = a->sizes.size();
  const size_t rank_b = b->sizes.size();
  if (rank_a == 2 && rank_b == 2) return mm(t, a, b);
  if (rank_a == 1) {  // row vector
    Value y = matmul(t, unsqueeze(t, a, 0), b);
    return squeeze(t, y, static_cast<int64_t>(y->sizes.size()) - 2);
  }
  if (rank_b == 1) {
    Value y = matmul(t, a, unsqueeze(t, b, 1));
    return squeeze(t, y, -1);
  }
  if (rank_a >= 3 && rank_b == 2) {  // folded into one product
    Shape out = a->sizes;
    out.back() = b->sizes[1];
    const Value flat =
        reshape(t, a, {element_count(a->sizes) / std::max<int64_t>(a->sizes.back(), 1), a->sizes.back()});
    return unsafe_view(t, mm(t, flat, b), out);
  }
  if (rank_a == 2 && needs_gradient(a)) {  // folded as well, the other way round; PyTorch transposes once to find out
    transpose(t, b, -2, -1);
    const Value turned = transpose(t, b, -2, -1);
    const Value y = matmul(t, turned, transpose2d(t, a));
    return contiguous(t, transpose(t, y, -2, -1));
  }
  // Batches: broadcast, fold them into one dimension, multiply, unfold.
  const size_t batch_rank = std::max(rank_a, rank_b) - 2;
  Shape batch(batch_rank, 1);
  for (const Value& v : {a, b}) {
    for (size_t i = 0; i + 2 < v->sizes.size(); ++i) {
      int64_t& extent = batch[batch_rank - (v->sizes.size() - 2) + i];
      if (extent == 1) extent = v->sizes[i];
    }
  }
  const auto folded = [&](const Value& v) {
    Shape wide = batch;
    wide.insert(wide.end(), v->sizes.end() - 2, v->sizes.end());
    const Value expanded = expand(t, v, wide);
    return reshape(t, expanded, {element_count(batch), wide[batch_rank], wide[batch_rank + 1]});
  };
  const Value left = folded(a);
  const Value right = folded(b);
  Shape out = batch;
  out.push_back(a->sizes[rank_a - 2]);
  out.push_back(b->sizes[rank_b - 1]);
  return unsafe_view(t, bmm(t, left, right), out);
}

Value linear(Tracer& t, const Value& x, const Value& weight, const Value& bias) {
  if (bias && x->sizes.size() == 2) {
    const Value transposed = transpose2d(t, weight);
    return addmm(t, bias, x, transposed);
  }
  if (bias && is_contiguous(*x)) {
    Shape out = x->sizes;
    out.back() = weight->sizes[0];
    const Value flat = view(t, x, {element_count(x->sizes) / std::max<int64_t>(x->sizes.back(), 1), x->sizes.back()});
    const Value transposed = transpose2d(t, weight);
    return view(t, addmm(t, bias, flat, transposed), out);
  }
  const Value y = matmul(t, x, transpose2d(t, weight));
  return bias ? add(t, y, bias) : y;
}

namespace {

Value emit_grouped_mm(Tracer& t, const Value& a, const Value& b, const Value& offsets, const Shape& sizes) {
  Value y = t.fresh(a->dtype, sizes);
  t.emit("aten._grouped_mm.default", {a, b, offsets}, {y});
  return y;
}

}  // namespace

Value grouped_mm(Tracer& t, const Value& a, const Value& b, const Value& offsets) {
  Value y = t.fresh(a->dtype, {a->sizes[0], b->sizes[2]});
  Node* node = t.record("GroupedMmBackward0", {a, b}, {y});
  t.emit("aten._grouped_mm.default", {a, b, offsets}, {y});
  if (node == nullptr) return y;
  node->backward = [&t, node, a, b, offsets](Values gradients) {
    const Value& g = gradients[0];
    Values result(2);
    if (Tracer::wanted(*node, 1)) {
      const Value turned = transpose(t, g, -2, -1);
      const Shape sizes = {b->sizes[0], b->sizes[2], b->sizes[1]};
      result[1] = transpose(t, emit_grouped_mm(t, turned, a, offsets, sizes), -2, -1);
    }
    if (Tracer::wanted(*node, 0)) {
      result[0] = emit_grouped_mm(t, g, transpose(t, b, -2, -1), offsets, a->sizes);
    }
    return result;
  };
  return y;
}

}  // namespace forerun::derive::aten
