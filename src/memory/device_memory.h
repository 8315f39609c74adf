// DeviceMemory: the GPU's memory as the CUDA driver hands it out, and SegmentSource, what an allocator asks it for.
//
// Addresses decide which of two equally large free blocks is taken, so they are part of a faithful simulation. As seen
// on an H200 (driver 580): a new range of addresses, in steps of 32 MiB, lies below the ranges before it; what a segment
// leaves of its range is given to later ones that fit, lowest first. Left out: what the process allocated and freed
// before, whose ranges are used again, and the memory of other processes and of the context (lower the capacity by it).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace forerun {

class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  // cudaMalloc and cudaFree: the address of new memory, nothing where it is spent.
  virtual std::optional<int64_t> allocate(int64_t bytes) = 0;
  virtual void release(int64_t address, int64_t bytes) = 0;

  // Expandable segments: address space alone, from a multiple of kSpaceStep on, and memory for a part of it.
  static constexpr int64_t kSpaceStep = int64_t{20} << 20;
  virtual int64_t reserve(int64_t bytes) = 0;
  virtual bool map(int64_t address, int64_t bytes) = 0;
  virtual void unmap(int64_t address, int64_t bytes) = 0;

  // How much there is in all.
  [[nodiscard]] virtual int64_t capacity() const = 0;
};

class DeviceMemory final : public SegmentSource {
 public:
  static constexpr int64_t kPlenty = int64_t{1} << 56;  // 64 PiB: far more than any GPU, and far from overflow
  explicit DeviceMemory(int64_t capacity = kPlenty) : capacity_(capacity) {}

  std::optional<int64_t> allocate(int64_t bytes) override;
  void release(int64_t address, int64_t bytes) override;
  int64_t reserve(int64_t bytes) override;
  bool map(int64_t address, int64_t bytes) override;
  void unmap(int64_t address, int64_t bytes) override;
  [[nodiscard]] int64_t capacity() const override { return capacity_; }
  [[nodiscard]] int64_t used() const { return used_; }

 private:
  int64_t capacity_;
  int64_t used_ = 0;
  int64_t lowest_ = int64_t{1} << 60;  // addresses are taken downwards from here
  std::map<int64_t, int64_t> holes_;   // address -> bytes, of ranges that are taken and empty
  int64_t largest_hole_ = 0;           // none is larger
};

}  // namespace forerun
