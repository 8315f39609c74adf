#include "derive/value.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace forerun::derive {
namespace {

constexpr int64_t kMostCounted = int64_t{1} << 58;  // beyond it counts stay there: such an iteration is refused

// The product of two counts, without overflow.
int64_t capped_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kMostCounted ? kMostCounted : product;
}

// Strides of a contiguous tensor, from the last dimension to the first: `take(dim, stride)` for each.
template <class Take>
void each_contiguous_stride(const Shape& sizes, Take take) {
  int64_t stride = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    take(dim, stride);
    stride = capped_product(stride, std::max<int64_t>(sizes[dim], 1));
  }
}

// Strides that put the dimensions in this order, fastest first.
Shape strides_in_order(const Shape& sizes, const std::vector<size_t>& fastest_first) {
  Shape strides(sizes.size());
  int64_t stride = 1;
  for (const size_t dim : fastest_first) {
    strides[dim] = stride;
    stride = capped_product(stride, std::max<int64_t>(sizes[dim], 1));
  }
  return strides;
}

bool matches_strides(const Shape& sizes, const Shape& strides, const Shape& expected) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && strides[i] != expected[i]) return false;
  }
  return true;
}

}  // namespace

size_t wrap_dim(int64_t dim, size_t rank) {
  const auto wrapped = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
  CHECK(wrapped < std::max<size_t>(rank, 1), "dimension out of range");
  return wrapped;
}

int64_t element_count(const Shape& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, capped_product);
}

Shape contiguous_strides(const Shape& sizes) {
  Shape strides(sizes.size());
  each_contiguous_stride(sizes, [&](size_t dim, int64_t stride) { strides[dim] = stride; });
  return strides;
}

Shape channels_last_strides(const Shape& sizes) {
  CHECK(sizes.size() == 4 || sizes.size() == 5, "channels last is for images");
  std::vector<size_t> order = {1};
  for (size_t i = sizes.size() - 1; i >= 2; --i) order.push_back(i);
  order.push_back(0);
  return strides_in_order(sizes, order);
}

bool is_contiguous(const TensorState& v) {
  bool contiguous = true;
  each_contiguous_stride(v.sizes, [&](size_t dim, int64_t stride) {
    contiguous = contiguous && (v.sizes[dim] == 1 || v.strides[dim] == stride);
  });
  return contiguous || element_count(v.sizes) == 0;
}

bool is_channels_last(const TensorState& v) {
  return (v.sizes.size() == 4 || v.sizes.size() == 5) &&
         matches_strides(v.sizes, v.strides, channels_last_strides(v.sizes));
}

// PyTorch's strides-like test: strides grow in the order C, W, H, N, ties and zero strides of N x C x 1 x 1 excluded.
bool suggests_channels_last(const TensorState& v) {
  if (v.sizes.size() != 4 || v.strides[1] == 0) return false;
  int64_t least = 0;
  for (const size_t dim : {1, 3, 2, 0}) {
    if (v.sizes[dim] == 0 || v.strides[dim] < least) return false;
    if (dim == 0 && least == v.strides[1]) return false;  // N111 and the like are contiguous
    least = v.strides[dim];
    if (v.sizes[dim] > 1) least *= v.sizes[dim];
  }
  return true;
}

bool is_dense(const TensorState& v) {
  if (is_contiguous(v) && element_count(v.sizes) > 0) return true;
  std::vector<size_t> order(v.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (v.sizes[a] < 2) return false;
    if (v.sizes[b] < 2) return true;
    return v.strides[a] < v.strides[b];
  });
  int64_t expected = 1;
  for (const size_t dim : order) {
    if (v.sizes[dim] < 2) return true;
    if (v.strides[dim] != expected) return false;
    expected *= v.sizes[dim];
  }
  return true;
}

Shape elementwise_strides(const Shape& sizes, ValueSpan inputs) {
  bool same_shape = true;
  for (const Value& v : inputs) same_shape = same_shape && v->sizes == sizes;
  if (same_shape && inputs.size() > 0) {
    const auto all = [&](auto&& test) { return std::all_of(inputs.begin(), inputs.end(), test); };
    if (all([](const Value& v) { return is_contiguous(*v); })) return contiguous_strides(sizes);
    if (all([](const Value& v) { return is_channels_last(*v); })) return channels_last_strides(sizes);
    if (all([&](const Value& v) { return is_dense(*v) && v->strides == inputs[0]->strides; })) {
      return inputs[0]->strides;
    }
  }
  // Insertion sort of the dimensions, fastest first; the first input with an opinion decides.
  const size_t rank = sizes.size();
  const auto stride = [&](const Value& v, size_t dim) -> int64_t {
    const size_t missing = rank - v->sizes.size();
    if (dim < missing || (v->sizes[dim - missing] == 1 && sizes[dim] != 1)) return 0;
    return v->strides[dim - missing];
  };
  const auto compare = [&](size_t a, size_t b) {
    for (const Value& v : inputs) {
      const int64_t sa = stride(v, a);
      const int64_t sb = stride(v, b);
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  for (size_t i = 1; i < rank; ++i) {
    size_t moving = i;
    for (size_t other = i; other-- > 0;) {
      const int verdict = compare(order[other], order[moving]);
      if (verdict > 0) {
        std::swap(order[other], order[moving]);
        moving = other;
      } else if (verdict < 0) {
        break;
      }
    }
  }
  return strides_in_order(sizes, order);
}

Shape suggested_strides(const TensorState& v, const Shape& sizes) {
  return suggests_channels_last(v) ? channels_last_strides(sizes) : contiguous_strides(sizes);
}

Shape preserved_strides(const TensorState& v) {
  if (is_dense(v)) return v.strides;
  return elementwise_strides(v.sizes, {Value::make(v)});
}

std::optional<Shape> view_strides(const TensorState& v, const Shape& sizes) {
  if (element_count(v.sizes) == 0) return v.sizes == sizes ? v.strides : contiguous_strides(sizes);
  Shape strides(sizes.size());
  auto view_dim = static_cast<int64_t>(sizes.size()) - 1;
  int64_t chunk_base_stride = v.strides.empty() ? 1 : v.strides.back();
  int64_t tensor_numel = 1;
  int64_t view_numel = 1;
  for (auto dim = static_cast<int64_t>(v.sizes.size()) - 1; dim >= 0; --dim) {
    const auto d = static_cast<size_t>(dim);
    tensor_numel *= v.sizes[d];
    const bool chunk_ends = dim == 0 || (v.sizes[d - 1] != 1 && v.strides[d - 1] != tensor_numel * chunk_base_stride);
    if (!chunk_ends) continue;
    while (view_dim >= 0 && (view_numel < tensor_numel || sizes[static_cast<size_t>(view_dim)] == 1)) {
      strides[static_cast<size_t>(view_dim)] = view_numel * chunk_base_stride;
      view_numel *= sizes[static_cast<size_t>(view_dim)];
      --view_dim;
    }
    if (view_numel != tensor_numel) return std::nullopt;
    if (dim > 0) {
      chunk_base_stride = v.strides[d - 1];
      tensor_numel = 1;
      view_numel = 1;
    }
  }
  if (v.sizes.empty()) {
    for (int64_t& stride : strides) stride = 1;
    view_dim = -1;
  }
  return view_dim == -1 ? std::optional(strides) : std::nullopt;
}

}  // namespace forerun::derive
