// Views: ops that launch no kernel, and their gradients.
#include <algorithm>

#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

Shape inferred(const Value& x, Shape size) {
  int64_t known = 1;
  for (const int64_t extent : size) known *= extent == -1 ? 1 : extent;
  for (int64_t& extent : size) {
    if (extent == -1) extent = known == 0 ? 0 : element_count(x->sizes) / known;
  }
  return size;
}

// Emits a view and records a node whose gradient is `back` of the result's gradient.
template <class Back>
Value emit_view(Tracer& t, std::string_view name, std::string_view node_name, const Value& x, Shape sizes,
                Shape strides, const Attributes& attributes, Back back) {
  Value y = t.alias(x, x->dtype, std::move(sizes), std::move(strides));
  Node* node = t.record(node_name, {x}, {y});
  t.emit(name, {x}, {y}, attributes);
  if (node != nullptr) {
    node->backward = [back = std::move(back)](Values gradients) { return Values{back(gradients[0])}; };
  }
  return y;
}

Value swapped(Tracer& t, std::string_view name, std::string_view node_name, const Value& x, size_t a, size_t b,
              const Attributes& attributes) {
  Shape sizes = x->sizes;
  Shape strides = x->strides;
  if (a < sizes.size() && b < sizes.size()) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return emit_view(t, name, node_name, x, sizes, strides, attributes,
                   [&t, name, node_name, a, b, attributes](const Value& g) {
                     return swapped(t, name, node_name, g, a, b, attributes);
                   });
}

}  // namespace

Value view(Tracer& t, const Value& x, const Shape& size) {
  const Shape sizes = inferred(x, size);
  const auto strides = view_strides(*x, sizes);
  CHECK(strides.has_value(), "view of a tensor whose strides do not allow it");
  return emit_view(t, "aten.view.default", "ViewBackward0", x, sizes, *strides, {{"size", size}},
                   [&t, original = x->sizes](const Value& g) { return reshape(t, g, original); });
}

Value unsafe_view(Tracer& t, const Value& x, const Shape& size) {
  const auto strides = view_strides(*x, size);
  CHECK(strides.has_value(), "_unsafe_view of a tensor whose strides do not allow it");
  Value y = emit_view(t, "aten._unsafe_view.default", "UnsafeViewBackward0", x, size, *strides, {{"size", size}},
                      [&t, original = x->sizes](const Value& g) { return reshape(t, g, original); });
  y->base = nullptr;  // autograd takes it for a tensor of its own: what is written into it is no write into x
  return y;
}

Value reshape(Tracer& t, const Value& x, const Shape& size) {
  const Shape sizes = inferred(x, size);
  if (view_strides(*x, sizes)) return view(t, x, sizes);
  return unsafe_view(t, clone_contiguous(t, x), sizes);
}

Value transpose2d(Tracer& t, const Value& x) { return swapped(t, "aten.t.default", "TBackward0", x, 0, 1, {}); }

Value transpose(Tracer& t, const Value& x, int64_t dim0, int64_t dim1) {
  return swapped(t, "aten.transpose.int", "TransposeBackward0", x, wrap_dim(dim0, x->sizes.size()),
                 wrap_dim(dim1, x->sizes.size()), {{"dim0", dim0}, {"dim1", dim1}});
}

Value permute(Tracer& t, const Value& x, const Shape& dims) {
  Shape sizes, strides, back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t from = wrap_dim(dims[i], x->sizes.size());
    sizes.push_back(x->sizes[from]);
    strides.push_back(x->strides[from]);
    back[from] = static_cast<int64_t>(i);
  }
  return emit_view(t, "aten.permute.default", "PermuteBackward0", x, sizes, strides, {{"dims", dims}},
                   [&t, back](const Value& g) { return permute(t, g, back); });
}

Value unsqueeze(Tracer& t, const Value& x, int64_t dim) {
  const size_t at = wrap_dim(dim, x->sizes.size() + 1);
  Shape sizes = x->sizes;
  Shape strides = x->strides;
  const int64_t stride = at < sizes.size() ? sizes[at] * strides[at] : 1;
  sizes.insert(sizes.begin() + static_cast<int64_t>(at), 1);
  strides.insert(strides.begin() + static_cast<int64_t>(at), stride);
  return emit_view(t, "aten.unsqueeze.default", "UnsqueezeBackward0", x, sizes, strides, {{"dim", dim}},
                   [&t, at](const Value& g) { return squeeze(t, g, static_cast<int64_t>(at)); });
}

Value squeeze(Tracer& t, const Value& x, int64_t dim) {
  const size_t at = wrap_dim(dim, x->sizes.size());
  Shape sizes = x->sizes;
  Shape strides = x->strides;
  const bool drops = at < sizes.size() && sizes[at] == 1;
  if (drops) {
    sizes.erase(sizes.begin() + static_cast<int64_t>(at));
    strides.erase(strides.begin() + static_cast<int64_t>(at));
  }
  return emit_view(t, "aten.squeeze.dim", "SqueezeBackward1", x, sizes, strides, {{"dim", dim}},
                   [&t, at, drops](const Value& g) { return drops ? unsqueeze(t, g, static_cast<int64_t>(at)) : g; });
}

Value alias(Tracer& t, const Value& x) {
  return emit_view(t, "aten.alias.default", "AliasBackward0", x, x->sizes, x->strides, {},
                   [](const Value& g) { return g; });
}

Value expand(Tracer& t, const Value& x, const Shape& size) {
  Shape sizes = size;
  Shape strides(size.size());
  const size_t missing = size.size() - x->sizes.size();
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t have = i < missing ? 1 : x->sizes[i - missing];
    if (sizes[i] == -1) sizes[i] = have;
    strides[i] = i < missing || (have == 1 && sizes[i] != 1) ? 0 : x->strides[i - missing];
  }
  return emit_view(
      t, "aten.expand.default", "ExpandBackward0", x, sizes, strides, {{"size", size}},
      [&t, original = x->sizes](const Value& g) { return g->sizes == original ? g : sum_to(t, g, original); });
}

Value select(Tracer& t, const Value& x, int64_t dim, int64_t index) {
  const size_t at = wrap_dim(dim, x->sizes.size());
  Shape sizes = x->sizes;
  Shape strides = x->strides;
  sizes.erase(sizes.begin() + static_cast<int64_t>(at));
  strides.erase(strides.begin() + static_cast<int64_t>(at));
  const Attributes where = {{"input_sizes", x->sizes}, {"dim", dim}, {"index", index}};
  return emit_view(t, "aten.select.int", "SelectBackward0", x, sizes, strides, {{"dim", dim}, {"index", index}},
                   [&t, original = x->sizes, where](const Value& g) {
                     Value whole = t.fresh(g->dtype, original);
                     t.emit("aten.select_backward.default", {g}, {whole}, where);
                     return whole;
                   });
}

Value slice(Tracer& t, const Value& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const size_t at = wrap_dim(dim, x->sizes.size());
  const int64_t extent = x->sizes[at];
  const int64_t first = std::clamp<int64_t>(start < 0 ? start + extent : start, 0, extent);
  const int64_t last = std::clamp<int64_t>(end < 0 ? end + extent : end, first, extent);
  Shape sizes = x->sizes;
  Shape strides = x->strides;
  sizes[at] = (last - first + step - 1) / step;
  strides[at] *= step;
  const Attributes range = {{"dim", dim}, {"start", start}, {"end", end}, {"step", step}};
  return emit_view(t, "aten.slice.Tensor", "SliceBackward0", x, sizes, strides, range,
                   [&t, original = x->sizes, range](const Value& g) {
                     Value whole = t.fresh(g->dtype, original);
                     Attributes attributes = {{"input_sizes", original}};
                     for (const auto& [key, value] : range.entries()) attributes.set(key, value);
                     t.emit("aten.slice_backward.default", {g}, {whole}, attributes);
                     return whole;
                   });
}

namespace {

Values split_parts(Tracer& t, std::string_view name, std::string_view node_name, const Value& x, const Shape& sizes,
                   size_t at, const Attributes& attributes) {
  Values parts;
  for (const int64_t size : sizes) {
    Shape part = x->sizes;
    part[at] = size;
    parts.push_back(t.alias(x, x->dtype, part, x->strides));
  }
  Node* node = t.record(node_name, {x}, parts);
  t.emit(name, {x}, parts, attributes);
  if (node != nullptr) {
    std::vector<Shape> shapes;
    for (const Value& part : parts) shapes.push_back(part->sizes);
    node->backward = [&t, shapes, at, dtype = x->dtype](Values gradients) {
      for (size_t i = 0; i < shapes.size(); ++i) {
        if (!gradients[i]) gradients[i] = create(t, "aten.zeros.default", shapes[i], dtype);
      }
      return Values{cat(t, gradients, static_cast<int64_t>(at))};
    };
  }
  return parts;
}

}  // namespace

Values split_with_sizes(Tracer& t, const Value& x, const Shape& sizes, int64_t dim) {
  return split_parts(t, "aten.split_with_sizes.default", "SplitWithSizesBackward0", x, sizes,
                     wrap_dim(dim, x->sizes.size()), {{"split_sizes", sizes}, {"dim", dim}});
}

Values split_every(Tracer& t, const Value& x, int64_t size, int64_t dim) {
  const size_t at = wrap_dim(dim, x->sizes.size());
  Shape sizes;
  for (int64_t start = 0; start < x->sizes[at]; start += size) sizes.push_back(std::min(size, x->sizes[at] - start));
  return split_parts(t, "aten.split.Tensor", "SplitBackward0", x, sizes, at, {{"split_size", size}, {"dim", dim}});
}

Values unbind(Tracer& t, const Value& x, int64_t dim) {
  const size_t at = wrap_dim(dim, x->sizes.size());
  Shape sizes = x->sizes;
  Shape strides = x->strides;
  sizes.erase(sizes.begin() + static_cast<int64_t>(at));
  strides.erase(strides.begin() + static_cast<int64_t>(at));
  Values parts;
  for (int64_t i = 0; i < x->sizes[at]; ++i) parts.push_back(t.alias(x, x->dtype, sizes, strides));
  Node* node = t.record("UnbindBackward0", {x}, parts);
  t.emit("aten.unbind.int", {x}, parts, {{"dim", dim}});
  if (node != nullptr) {
    node->backward = [&t, sizes, at, dtype = x->dtype](Values gradients) {
      for (Value& g : gradients) {
        if (!g) g = create(t, "aten.zeros.default", sizes, dtype);
      }
      return Values{stack(t, gradients, static_cast<int64_t>(at))};
    };
  }
  return parts;
}

// In place: only the strides of x change (adaptive pooling marks its N x C x 1 x 1 result as channels last).
void as_strided_in_place(Tracer& t, const Value& x, const Shape& strides) {
  Node* node = t.record("AsStridedBackward1", {x}, {x});
  if (node != nullptr) {
    node->backward = [&t, sizes = x->sizes, strides, old = x->strides](Values gradients) {
      return Values{as_strided_backward(t, gradients[0], sizes, strides, sizes, old)};
    };
  }
  const Value before = t.alias(x, x->dtype, x->sizes, x->strides);
  x->strides = strides;
  x->id = t.graph().add_tensor(x->storage->id(), x->dtype, x->sizes, strides);
  t.emit("aten.as_strided_.default", {before}, {x}, {{"size", x->sizes}, {"stride", strides}});
}

Value as_strided_backward(Tracer& t, Value gradient, const Shape& sizes, const Shape& strides, const Shape& base_sizes,
                          const Shape& base_strides) {
  Shape kept_sizes, kept_strides;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) {
      gradient = squeeze(t, gradient, static_cast<int64_t>(i));
    } else {
      kept_sizes.insert(kept_sizes.begin(), sizes[i]);
      kept_strides.insert(kept_strides.begin(), strides[i]);
    }
  }
  Value flat = t.fresh(gradient->dtype, {element_count(base_sizes)});
  t.emit("aten.new_zeros.default", {gradient}, {flat}, {{"size", flat->sizes}});
  Value part = t.alias(flat, flat->dtype, kept_sizes, kept_strides);
  t.emit("aten.as_strided.default", {flat}, {part},
         {{"size", kept_sizes}, {"stride", kept_strides}, {"storage_offset", int64_t{0}}});
  t.emit("aten.copy_.default", {part, gradient}, {part});
  Value whole = t.alias(flat, flat->dtype, base_sizes, base_strides);
  t.emit("aten.as_strided.default", {flat}, {whole},
         {{"size", base_sizes}, {"stride", base_strides}, {"storage_offset", int64_t{0}}});
  return whole;
}

}  // namespace forerun::derive::aten
