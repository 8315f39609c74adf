// Copies, casts, joins, padding, indexing and creation.
#include <algorithm>

#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

Value clone_with(Tracer& t, const Value& x, Shape strides) {
  Value y = t.fresh(x->dtype, x->sizes, std::move(strides));
  Node* node = t.record("CloneBackward0", {x}, {y});
  t.emit("aten.clone.default", {x}, {y});
  if (node != nullptr) {
    node->backward = [](Values gradients) { return Values{gradients[0]}; };
  }
  return y;
}

}  // namespace

Value clone_contiguous(Tracer& t, const Value& x) { return clone_with(t, x, contiguous_strides(x->sizes)); }

Value contiguous(Tracer& t, const Value& x) { return is_contiguous(*x) ? x : clone_contiguous(t, x); }

Value to_format_of(Tracer& t, const Value& x, const Value& like) {
  if (suggests_channels_last(*like)) {
    return is_channels_last(*x) ? x : clone_with(t, x, channels_last_strides(x->sizes));
  }
  return contiguous(t, x);
}

Value to_copy(Tracer& t, const Value& x, DType dtype) {
  Value y = t.fresh(dtype, x->sizes, preserved_strides(*x));
  Node* node = t.record("ToCopyBackward0", {x}, {y});
  t.emit("aten._to_copy.default", {x}, {y}, {{"dtype", std::string(name_of(dtype))}});
  if (node != nullptr) {
    node->backward = [&t, original = x->dtype](Values gradients) {
      return Values{gradients[0]->dtype == original ? gradients[0] : to_copy(t, gradients[0], original)};
    };
  }
  return y;
}

void copy_in_place(Tracer& t, const Value& x, const Value& source) {
  Node* node = t.record_in_place("CopyBackwards", {x, source}, x);
  t.emit("aten.copy_.default", {x, source}, {x});
  if (node == nullptr) return;
  node->backward = [&t, node](Values gradients) {
    Values result(2);
    if (Tracer::wanted(*node, 0)) {  // what was overwritten
      result[0] = t.fresh(gradients[0]->dtype, gradients[0]->sizes);
      t.emit("aten.zeros_like.default", {gradients[0]}, {result[0]});
    }
    if (Tracer::wanted(*node, 1)) result[1] = gradients[0];
    return result;
  };
}

Value cat(Tracer& t, const Values& parts, int64_t dim) {
  const size_t at = wrap_dim(dim, parts[0]->sizes.size());
  Shape sizes = parts[0]->sizes;
  DType dtype = parts[0]->dtype;
  bool channels_last = suggests_channels_last(*parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    sizes[at] += parts[i]->sizes[at];
    dtype = promote(dtype, parts[i]->dtype);
    channels_last = channels_last && suggests_channels_last(*parts[i]);
  }
  Value y = t.fresh(dtype, sizes, channels_last ? channels_last_strides(sizes) : contiguous_strides(sizes));
  Node* node = t.record("CatBackward0", parts, {y});
  t.emit("aten.cat.default", parts, {y}, {{"dim", dim}});
  if (node != nullptr) {
    Shape extents;
    for (const Value& part : parts) extents.push_back(part->sizes[at]);
    node->backward = [&t, node, extents, dim](Values gradients) {
      Values result(extents.size());
      int64_t start = 0;
      for (size_t i = 0; i < extents.size(); ++i) {
        if (Tracer::wanted(*node, i)) result[i] = slice(t, gradients[0], dim, start, start + extents[i], 1);
        start += extents[i];
      }
      return result;
    };
  }
  return y;
}

Value stack(Tracer& t, const Values& parts, int64_t dim) {
  Shape sizes = parts[0]->sizes;
  const size_t at = wrap_dim(dim, sizes.size() + 1);
  sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(at), static_cast<int64_t>(parts.size()));
  DType dtype = parts[0]->dtype;
  for (const Value& part : parts) dtype = promote(dtype, part->dtype);
  Value y = t.fresh(dtype, sizes);
  Node* node = t.record("StackBackward0", parts, {y});
  t.emit("aten.stack.default", parts, {y}, {{"dim", dim}});
  if (node != nullptr) {
    node->backward = [&t, node, at, count = parts.size()](Values gradients) {
      Values result(count);
      for (size_t i = 0; i < count; ++i) {
        if (!Tracer::wanted(*node, i)) continue;
        result[i] = select(t, gradients[0], static_cast<int64_t>(at), static_cast<int64_t>(i));
      }
      return result;
    };
  }
  return y;
}

Value constant_pad(Tracer& t, const Value& x, const Shape& pads) {
  Shape sizes = x->sizes;
  for (size_t i = 0; i < pads.size() / 2; ++i) sizes[sizes.size() - 1 - i] += pads[2 * i] + pads[2 * i + 1];
  Value y = t.fresh(x->dtype, sizes, suggested_strides(*x, sizes));
  Node* node = t.record("ConstantPadNdBackward0", {x}, {y});
  t.emit("aten.constant_pad_nd.default", {x}, {y}, {{"pad", pads}, {"value", 0.0}});
  if (node != nullptr) {
    Shape back = pads;
    for (int64_t& pad : back) pad = -pad;
    node->backward = [&t, back](Values gradients) { return Values{constant_pad(t, gradients[0], back)}; };
  }
  return y;
}

Value roll(Tracer& t, const Value& x, const Shape& shifts, const Shape& dims) {
  Value y = t.fresh(x->dtype, x->sizes, preserved_strides(*x));
  Node* node = t.record("RollBackward0", {x}, {y});
  t.emit("aten.roll.default", {x}, {y}, {{"shifts", shifts}, {"dims", dims}});
  if (node != nullptr) {
    Shape back(shifts.rbegin(), shifts.rend());
    for (int64_t& shift : back) shift = -shift;
    node->backward = [&t, back, dims = Shape(dims.rbegin(), dims.rend())](Values gradients) {
      return Values{roll(t, gradients[0], back, dims)};
    };
  }
  return y;
}

Value repeat(Tracer& t, const Value& x, const Shape& times) {
  Shape sizes = x->sizes;
  Shape apart;  // the extents of the result with times and extents side by side
  Shape added;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (times[i] != 1) {
      added.push_back(static_cast<int64_t>(apart.size()));
      apart.push_back(times[i]);
    }
    apart.push_back(sizes[i]);
    sizes[i] *= times[i];
  }
  Value y = t.fresh(x->dtype, sizes);
  Node* node = t.record("RepeatBackward0", {x}, {y});
  t.emit("aten.repeat.default", {x}, {y}, {{"repeats", times}});
  if (node != nullptr) {
    node->backward = [&t, apart, added](Values gradients) {
      if (added.empty()) return Values{gradients[0]};
      return Values{sum(t, reshape(t, gradients[0], apart), added, false)};
    };
  }
  return y;
}

void read_on_host(Tracer& t, const Value& x) { t.emit("aten._local_scalar_dense.default", {x}, {}); }

Value create(Tracer& t, std::string_view name, const Shape& sizes, DType dtype, const Attributes& attributes) {
  Value y = t.fresh(dtype, sizes);
  Attributes full = attributes;
  if (full.find("size") == nullptr) full.set("size", sizes);
  if (full.find("dtype") == nullptr) full.set("dtype", std::string(name_of(dtype)));
  t.emit(name, {}, {y}, full);
  return y;
}

Value gather(Tracer& t, const Value& x, int64_t dim, const Value& index) {
  Value y = t.fresh(x->dtype, index->sizes);
  Node* node = t.record("GatherBackward0", {x}, {y});
  t.emit("aten.gather.default", {x, index}, {y}, {{"dim", dim}});
  if (node != nullptr) {
    node->backward = [&t, x, dim, index](Values gradients) {  // x is kept, though its shape alone counts
      Value zeros = t.fresh(gradients[0]->dtype, x->sizes);
      t.emit("aten.new_zeros.default", {gradients[0]}, {zeros}, {{"size", x->sizes}});
      Value whole = t.fresh(zeros->dtype, x->sizes);
      t.emit("aten.scatter_add.default", {zeros, index, gradients[0]}, {whole}, {{"dim", dim}});
      return Values{whole};
    };
  }
  return y;
}

Value index_select(Tracer& t, const Value& x, int64_t dim, const Value& index) {
  Shape sizes = x->sizes;
  sizes[wrap_dim(dim, sizes.size())] = index->sizes.empty() ? 1 : index->sizes[0];
  Value y = t.fresh(x->dtype, sizes);
  Node* node = t.record("IndexSelectBackward0", {x}, {y});
  t.emit("aten.index_select.default", {x, index}, {y}, {{"dim", dim}});
  if (node != nullptr) {
    node->backward = [&t, original = x->sizes, dim, index](Values gradients) {
      Value zeros = t.fresh(gradients[0]->dtype, original);
      t.emit("aten.new_zeros.default", {gradients[0]}, {zeros}, {{"size", original}});
      Value whole = t.fresh(zeros->dtype, original);
      t.emit("aten.index_add.default", {zeros, index, gradients[0]}, {whole}, {{"dim", dim}});
      return Values{whole};
    };
  }
  return y;
}

Value index(Tracer& t, const Value& x, const Values& indices, const Shape& size) {
  Value y = t.fresh(x->dtype, size);
  Node* node = t.record("IndexBackward0", {x}, {y});
  Values inputs = {x};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  t.emit("aten.index.Tensor", inputs, {y});
  if (node != nullptr) {
    node->backward = [&t, original = x->sizes, indices](Values gradients) {
      Value zeros = t.fresh(gradients[0]->dtype, original);
      t.emit("aten.new_zeros.default", {gradients[0]}, {zeros}, {{"size", original}});
      Values put = {zeros};
      put.insert(put.end(), indices.begin(), indices.end());
      put.push_back(gradients[0]);
      Value whole = t.fresh(zeros->dtype, original);
      t.emit("aten.index_put.default", put, {whole}, {{"accumulate", true}});
      return Values{whole};
    };
  }
  return y;
}

void masked_put_in_place(Tracer& t, const Value& x, const Value& mask, const Value& value, int64_t count) {
  Node* node = t.record_in_place("IndexPutBackward0", {x, mask, value}, x);
  t.emit("aten.index_put_.default", {x, mask, value}, {x});
  if (node == nullptr) return;
  node->backward = [&t, node, mask, value, count](Values gradients) {
    Values result(3);
    if (Tracer::wanted(*node, 0)) {
      const Value zeros = create(t, "aten.zeros.default", value->sizes, value->dtype);
      result[0] = t.fresh(gradients[0]->dtype, gradients[0]->sizes);
      t.emit("aten.index_put.default", {gradients[0], mask, zeros}, {result[0]});
    }
    if (Tracer::wanted(*node, 2)) {
      Shape taken = {count};
      const Shape& sizes = gradients[0]->sizes;
      taken.insert(taken.end(), sizes.begin() + static_cast<ptrdiff_t>(mask->sizes.size()), sizes.end());
      result[2] = t.fresh(gradients[0]->dtype, taken);
      t.emit("aten.index.Tensor", {gradients[0], mask}, {result[2]});
    }
    return result;
  };
}

}  // namespace forerun::derive::aten
