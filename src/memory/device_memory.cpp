#include "memory/device_memory.h"

#include <algorithm>

#include "memory/allocator_settings.h"

namespace forerun {
namespace {

constexpr int64_t kAddressStep = int64_t{32} << 20;

}  // namespace

std::optional<int64_t> DeviceMemory::allocate(int64_t bytes) {
  if (bytes > capacity_ - used_) return std::nullopt;
  used_ += bytes;
  auto hole = bytes > largest_hole_ ? holes_.end() : holes_.begin();
  int64_t largest = 0;  // of those that are passed over
  while (hole != holes_.end() && hole->second < bytes) largest = std::max(largest, hole++->second);
  if (hole == holes_.end() && bytes <= largest_hole_) largest_hole_ = largest;
  if (hole == holes_.end()) {
    const int64_t size = round_up(bytes, kAddressStep);
    if (size > lowest_) {
      used_ -= bytes;
      return std::nullopt;
    }
    lowest_ -= size;
    hole = holes_.emplace(lowest_, size).first;
    largest_hole_ = std::max(largest_hole_, size - bytes);
  }
  const auto [address, size] = *hole;
  holes_.erase(hole);
  if (size > bytes) holes_.emplace(address + bytes, size - bytes);
  return address;
}

void DeviceMemory::release(int64_t address, int64_t bytes) {
  used_ -= bytes;
  const auto hole = holes_.emplace(address, bytes).first;
  const auto next = std::next(hole);
  if (next != holes_.end() && next->first == address + bytes) {
    hole->second += next->second;
    holes_.erase(next);
  }
  largest_hole_ = std::max(largest_hole_, hole->second);
  if (hole == holes_.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second != address) return;
  before->second += hole->second;
  largest_hole_ = std::max(largest_hole_, before->second);
  holes_.erase(hole);
}

int64_t DeviceMemory::reserve(int64_t bytes) {
  lowest_ = (lowest_ - bytes) / kSpaceStep * kSpaceStep;
  return lowest_;
}

bool DeviceMemory::map(int64_t /*address*/, int64_t bytes) {
  if (bytes > capacity_ - used_) return false;
  used_ += bytes;
  return true;
}

void DeviceMemory::unmap(int64_t /*address*/, int64_t bytes) { used_ -= bytes; }

}  // namespace forerun
