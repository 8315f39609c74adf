// Linear layers of the authors' traces, told apart into what computes and what does not.
//
// A layer stands as one op or as several with the same figures (product, bias, copy), as cuBLAS needs kernels; its
// backward is traced in some traces and stands as gap in others. In 64-bit floats, which the GPUs here compute slowly,
// the padding of tiles is what small batches take: 64 by 64, in rounds over the multiprocessors, cut along the inner
// extent where there are fewer tiles than those. Without this, ratios of small layers are carried over to large ones
// where they do not hold.
#pragma once

#include <span>
#include <string_view>

#include "lab/trees/op_figures.h"

namespace forerun::learn {

// Sets `bias`, `backward_us` and the roofline of the linear layers of a trace; `rows`, `names` and `figures` are its ops'.
// Of a layer's ops the first that has its FLOPs is the product; all others pass over its output.
void set_linear_layers(std::span<const OpRow* const> rows, std::span<const std::string_view> names,
                       double multiprocessors, std::span<OpFigures> figures);

}  // namespace forerun::learn
