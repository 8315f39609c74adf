// How PyTorch's DistributedDataParallel groups gradients: in buckets, in the order in which gradients come.
//
// Source: Li et al. (2020). A bucket is closed when it holds 25 MiB (bucket_cap_mb), the first one, so that the exchange begins
// early, when it holds 1 MiB. What a bucket holds in memory (memory/data_parallel.h) and when it travels
// (timeline/gradient_exchange.h) follow from this one rule.
#pragma once

#include <span>
#include <vector>

#include "base/quantity.h"

namespace forerun {

inline constexpr Bytes kBucket{int64_t{25} << 20}, kFirstBucket{int64_t{1} << 20};

// The last gradient of each bucket, by index; the last bucket may not be full.
std::vector<size_t> bucket_ends(std::span<const Bytes> gradients, Bytes first = kFirstBucket, Bytes others = kBucket);

}  // namespace forerun
