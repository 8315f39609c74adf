// The vocabulary of ForwardBuilder, second part: views, joins, splits, indexing and creation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "graph/forward_builder.h"

namespace forerun {
namespace {

int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

std::optional<Shape> ForwardBuilder::resolved(TensorId x, const Shape& size) {
  const int64_t count = product(shape(x));
  Shape out = size;
  int64_t known = 1;
  std::optional<size_t> open;
  bool fits = true;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1 && !open) {
      open = i;
    } else if (out[i] < 0 || (out[i] > 0 && known > (int64_t{1} << 46) / out[i])) {
      fits = false;
    } else {
      known *= out[i];
    }
  }
  if (fits && open) {
    fits = known > 0 && count % known == 0;
    if (fits) out[*open] = count / known;
  } else {
    fits = fits && known == count;
  }
  if (!fits) {
    fail(fmt::format("a tensor of shape {} cannot be seen as {}", text_of(shape(x)), text_of(size)));
    return std::nullopt;
  }
  return out;
}

TensorId ForwardBuilder::view(TensorId x, const Shape& size) {
  const std::optional<Shape> out = resolved(x, size);
  return out ? emit("aten.view.default", {x}, *out, dtype(x), {{"size", size}}) : dummy();
}

TensorId ForwardBuilder::reshape(TensorId x, const Shape& size) {
  const std::optional<Shape> out = resolved(x, size);
  return out ? emit("aten.reshape.default", {x}, *out, dtype(x), {{"shape", size}}) : dummy();
}

TensorId ForwardBuilder::flatten(TensorId x, int64_t first, int64_t last) {
  const Shape in = shape(x);
  const auto rank = static_cast<int64_t>(in.size());
  first = wrap(first, rank);
  last = wrap(last, rank);
  if (failed() || first > last) {
    fail(fmt::format("cannot flatten dimensions {} to {} of {}", first, last, text_of(in)));
    return dummy();
  }
  Shape out(in.begin(), in.begin() + first);
  out.push_back(product({in.begin() + first, in.begin() + std::min(last + 1, rank)}));
  if (last + 1 < rank) out.insert(out.end(), in.begin() + last + 1, in.end());
  return emit("aten.flatten.using_ints", {x}, out, dtype(x), {{"start_dim", first}, {"end_dim", last}});
}

TensorId ForwardBuilder::permute(TensorId x, const Shape& dims) {
  const Shape in = shape(x);
  Shape out;
  std::vector<bool> used(in.size());
  for (const int64_t dim : dims) {
    const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(in.size())));
    if (failed() || wrapped >= in.size() || used[wrapped]) {
      fail(fmt::format("{} is not a permutation of the dimensions of {}", text_of(dims), text_of(in)));
      return dummy();
    }
    used[wrapped] = true;
    out.push_back(in[wrapped]);
  }
  if (out.size() != in.size())
    fail(fmt::format("{} is not a permutation of the dimensions of {}", text_of(dims), text_of(in)));
  return emit("aten.permute.default", {x}, out, dtype(x), {{"dims", dims}});
}

TensorId ForwardBuilder::transpose(TensorId x, int64_t dim0, int64_t dim1) {
  Shape out = shape(x);
  const auto rank = static_cast<int64_t>(out.size());
  const int64_t a = wrap(dim0, rank);
  const int64_t b = wrap(dim1, rank);
  if (failed() || rank == 0) return dummy();
  std::swap(out[static_cast<size_t>(a)], out[static_cast<size_t>(b)]);
  return emit("aten.transpose.int", {x}, out, dtype(x), {{"dim0", dim0}, {"dim1", dim1}});
}

TensorId ForwardBuilder::contiguous(TensorId x) { return emit("aten.contiguous.default", {x}, shape(x), dtype(x)); }

TensorId ForwardBuilder::unsqueeze(TensorId x, int64_t dim) {
  Shape out = shape(x);
  const int64_t wrapped = wrap(dim, static_cast<int64_t>(out.size()) + 1);
  out.insert(out.begin() + wrapped, 1);
  return emit("aten.unsqueeze.default", {x}, out, dtype(x), {{"dim", dim}});
}

TensorId ForwardBuilder::squeeze(TensorId x, int64_t dim) {
  Shape out = shape(x);
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(out.size())));
  if (wrapped < out.size() && out[wrapped] == 1) out.erase(out.begin() + static_cast<int64_t>(wrapped));
  return emit("aten.squeeze.dim", {x}, out, dtype(x), {{"dim", dim}});
}

TensorId ForwardBuilder::expand(TensorId x, const Shape& size) {
  const Shape in = shape(x);
  Shape out = size;
  bool fits = size.size() >= in.size();
  for (size_t i = 0; fits && i < size.size(); ++i) {  // from the last dimension
    int64_t& extent = out[size.size() - 1 - i];
    const int64_t have = i < in.size() ? in[in.size() - 1 - i] : 1;
    if (extent == -1) extent = have;
    fits = extent == have || (have == 1 && extent >= 0);
  }
  if (!fits) {
    fail(fmt::format("a tensor of shape {} cannot be expanded to {}", text_of(in), text_of(size)));
    return dummy();
  }
  return emit("aten.expand.default", {x}, out, dtype(x), {{"size", size}});
}

TensorId ForwardBuilder::select(TensorId x, int64_t dim, int64_t index) {
  Shape out = shape(x);
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(out.size())));
  if (failed() || wrapped >= out.size() || index >= out[wrapped] || index < -out[wrapped]) {
    fail(fmt::format("index {} lies outside dimension {} of {}", index, dim, text_of(out)));
    return dummy();
  }
  out.erase(out.begin() + static_cast<int64_t>(wrapped));
  return emit("aten.select.int", {x}, out, dtype(x), {{"dim", dim}, {"index", index}});
}

TensorId ForwardBuilder::slice(TensorId x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  Shape out = shape(x);
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(out.size())));
  if (failed() || wrapped >= out.size() || step < 1) {
    fail(fmt::format("slice of dimension {} of {} with step {}", dim, text_of(out), step));
    return dummy();
  }
  const int64_t extent = out[wrapped];
  const int64_t first = std::clamp<int64_t>(start < 0 ? start + extent : start, 0, extent);
  const int64_t last = std::clamp<int64_t>(end < 0 ? end + extent : end, first, extent);
  out[wrapped] = (last - first + step - 1) / step;
  return emit("aten.slice.Tensor", {x}, out, dtype(x), {{"dim", dim}, {"start", start}, {"end", end}, {"step", step}});
}

std::vector<TensorId> ForwardBuilder::split(TensorId x, const Shape& sizes, int64_t dim) {
  const Shape in = shape(x);
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(in.size())));
  if (failed() || wrapped >= in.size() || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != in[wrapped]) {
    fail(fmt::format("sizes {} do not split dimension {} of {}", text_of(sizes), dim, text_of(in)));
    return std::vector<TensorId>(sizes.size(), dummy());
  }
  std::vector<std::pair<Shape, DType>> parts;
  for (const int64_t size : sizes) {
    parts.emplace_back(in, dtype(x));
    parts.back().first[wrapped] = size;
  }
  return emit_many("aten.split_with_sizes.default", {x}, parts, {{"split_sizes", sizes}, {"dim", dim}});
}

std::vector<TensorId> ForwardBuilder::split_every(TensorId x, int64_t size, int64_t dim) {
  const Shape in = shape(x);
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(in.size())));
  if (failed() || wrapped >= in.size() || size < 1) {
    fail(fmt::format("cannot split dimension {} of {} by {}", dim, text_of(in), size));
    return {dummy()};
  }
  std::vector<std::pair<Shape, DType>> parts;
  for (int64_t start = 0; start < in[wrapped]; start += size) {
    parts.emplace_back(in, dtype(x));
    parts.back().first[wrapped] = std::min(size, in[wrapped] - start);
  }
  return emit_many("aten.split.Tensor", {x}, parts, {{"split_size", size}, {"dim", dim}});
}

std::vector<TensorId> ForwardBuilder::chunk(TensorId x, int64_t chunks, int64_t dim) {
  if (chunks < 1) {
    fail("chunk into fewer than one part");
    return {dummy()};
  }
  return split_every(x, (extent(x, dim) + chunks - 1) / chunks, dim);
}

std::vector<TensorId> ForwardBuilder::unbind(TensorId x, int64_t dim) {
  Shape part = shape(x);
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(part.size())));
  if (failed() || wrapped >= part.size()) return {dummy()};
  const auto count = static_cast<size_t>(part[wrapped]);
  part.erase(part.begin() + static_cast<int64_t>(wrapped));
  return emit_many("aten.unbind.int", {x}, std::vector<std::pair<Shape, DType>>(count, {part, dtype(x)}),
                   {{"dim", dim}});
}

TensorId ForwardBuilder::cat(const std::vector<TensorId>& parts, int64_t dim) {
  if (parts.empty()) {
    fail("concatenation of nothing");
    return dummy();
  }
  Shape out = shape(parts.front());
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(out.size())));
  DType result = dtype(parts.front());
  for (size_t i = 1; i < parts.size() && !failed(); ++i) {
    Shape part = shape(parts[i]);
    if (part.size() != out.size() || wrapped >= part.size()) {
      fail(fmt::format("cannot concatenate {} and {}", text_of(out), text_of(part)));
      return dummy();
    }
    const int64_t grown = out[wrapped] + part[wrapped];
    part[wrapped] = out[wrapped];
    if (part != out)
      fail(fmt::format("cannot concatenate {} and {} along {}", text_of(out), text_of(shape(parts[i])), dim));
    out[wrapped] = grown;
    result = promote(result, dtype(parts[i]));
  }
  return emit("aten.cat.default", parts, out, result, {{"dim", dim}});
}

TensorId ForwardBuilder::stack(const std::vector<TensorId>& parts, int64_t dim) {
  if (parts.empty()) {
    fail("stack of nothing");
    return dummy();
  }
  Shape out = shape(parts.front());
  const int64_t wrapped = wrap(dim, static_cast<int64_t>(out.size()) + 1);
  out.insert(out.begin() + wrapped, static_cast<int64_t>(parts.size()));
  return emit("aten.stack.default", parts, out, dtype(parts.front()), {{"dim", dim}});
}

TensorId ForwardBuilder::roll(TensorId x, const Shape& shifts, const Shape& dims) {
  return emit("aten.roll.default", {x}, shape(x), dtype(x), {{"shifts", shifts}, {"dims", dims}});
}

TensorId ForwardBuilder::pad(TensorId x, const Shape& pads) {
  Shape out = shape(x);
  if (pads.size() % 2 != 0 || pads.size() / 2 > out.size()) {
    fail(fmt::format("padding {} does not fit {}", text_of(pads), text_of(out)));
    return dummy();
  }
  for (size_t i = 0; i < pads.size() / 2; ++i) out[out.size() - 1 - i] += pads[2 * i] + pads[2 * i + 1];
  return emit("aten.constant_pad_nd.default", {x}, out, dtype(x), {{"pad", pads}});
}

TensorId ForwardBuilder::upsample_nearest2d(TensorId x, int64_t height, int64_t width) {
  Shape out = shape(x);
  if (out.size() != 4) fail("upsampling needs an image");
  if (failed()) return dummy();
  out[2] = height;
  out[3] = width;
  return emit("aten.upsample_nearest2d.default", {x}, out, dtype(x), {{"output_size", Shape{height, width}}});
}

TensorId ForwardBuilder::upsample_bilinear2d(TensorId x, int64_t height, int64_t width, bool align_corners) {
  Shape out = shape(x);
  if (out.size() != 4) fail("upsampling needs an image");
  if (failed()) return dummy();
  out[2] = height;
  out[3] = width;
  return emit("aten.upsample_bilinear2d.default", {x}, out, dtype(x),
              {{"output_size", Shape{height, width}}, {"align_corners", align_corners}});
}

TensorId ForwardBuilder::gather(TensorId x, int64_t dim, TensorId index) {
  return emit("aten.gather.default", {x, index}, shape(index), dtype(x), {{"dim", dim}});
}

TensorId ForwardBuilder::index_select(TensorId x, int64_t dim, TensorId index) {
  Shape out = shape(x);
  const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(out.size())));
  if (failed() || wrapped >= out.size()) return dummy();
  out[wrapped] = extent(index, 0);
  return emit("aten.index_select.default", {x, index}, out, dtype(x), {{"dim", dim}});
}

TensorId ForwardBuilder::index(TensorId x, const std::vector<TensorId>& indices, const Shape& result) {
  std::vector<TensorId> inputs = {x};
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return emit("aten.index.Tensor", inputs, result, dtype(x));
}

TensorId ForwardBuilder::create(std::string_view name, const Shape& shape, DType dtype, const Attributes& attributes) {
  Attributes full = {{"size", shape}, {"dtype", std::string(name_of(dtype))}};
  for (const auto& [key, value] : attributes.entries()) full.set(key, value);
  return emit(name, {}, shape, dtype, full);
}

}  // namespace forerun
