#include "graph/op_kinds.h"

#include <algorithm>

namespace forerun {
namespace {

constexpr uint32_t kMostOperands = 32;

}  // namespace

bool OpKinds::write_key(const Op& op) {
  key_.clear();
  if (op.input_count + op.output_count > kMostOperands) return false;
  key_.insert(key_.end(), {op.name.value, op.attributes.value, op.input_count, op.output_count});
  const std::span<const TensorId> operands(graph_.inputs(op).data(), op.input_count + op.output_count);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& tensor = graph_.tensor(operands[i]);
    if (!tensor.strides.valid()) return false;
    const Storage& storage = graph_.storage(tensor.storage);
    uint32_t first = 0;  // that has this storage
    while (graph_.tensor(operands[first]).storage != tensor.storage) ++first;
    const auto bytes = static_cast<uint64_t>(storage.bytes.value);
    key_.insert(key_.end(), {tensor.shape.value, tensor.strides.value, static_cast<uint32_t>(bytes),
                             static_cast<uint32_t>(bytes >> 32U),
                             static_cast<uint32_t>(tensor.dtype) << 8U | (storage.on_gpu ? 1U << 7U : 0U) | first});
  }
  return true;
}

OpKinds::Kind OpKinds::of(const Op& op) {
  if (!write_key(op)) return {count_++, true};
  uint64_t hash = key_.size();
  for (const uint32_t part : key_) hash = mixed(hash, part);
  const uint32_t found = index_.find(hash, [&](uint32_t known) {
    const size_t begin = known == 0 ? 0 : end_[known - 1];
    return std::equal(key_.begin(), key_.end(), keys_.begin() + static_cast<std::ptrdiff_t>(begin),
                      keys_.begin() + static_cast<std::ptrdiff_t>(end_[known]));
  });
  if (found != IdIndex::kNone) return {number_[found], false};
  index_.add(hash, static_cast<uint32_t>(end_.size()));
  keys_.insert(keys_.end(), key_.begin(), key_.end());
  end_.push_back(keys_.size());
  number_.push_back(count_);
  return {count_++, true};
}

}  // namespace forerun
