// CompactColumn: numbers of a table, each in as few bytes (1, 2, 4 or 8) as the largest so far needs.
//
// A trace of a gigabyte has millions of rows, and most columns hold small numbers or "none": at fixed widths they would take twice the
// memory. The column is written again, wider, when a number comes that does not fit, at most three times. Numbers without a sign count
// as ones with it, so that the largest (kNoIndex, an invalid NameId) is -1 and takes one byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/interner.h"

namespace forerun {

template <class T>
class CompactColumn {
 public:
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] size_t memory() const { return bytes_.capacity(); }  // bytes held

  [[nodiscard]] T operator[](size_t i) const {
    switch (width_) {
      case 1: return from_number(load<int8_t>(i));
      case 2: return from_number(load<int16_t>(i));
      case 4: return from_number(load<int32_t>(i));
      default: return from_number(load<int64_t>(i));
    }
  }
  [[nodiscard]] T back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    const int64_t number = to_number(value);
    make_fit(number);
    if (bytes_.size() < (size_ + 1) * width_) bytes_.resize((size_ + 1) * width_);
    store(size_++, number);
  }

  void set(size_t i, T value) {
    CHECK(i < size_, "a row that is not there");
    const int64_t number = to_number(value);
    make_fit(number);
    store(i, number);
  }

  // The rows of another column behind these, each as `changed` makes it.
  template <class Changed>
  void append(const CompactColumn& rows, const Changed& changed) {
    bytes_.resize((size_ + rows.size()) * width_);
    for (size_t i = 0; i < rows.size(); ++i) push_back(changed(rows[i]));
  }

  // Row i becomes what was row order[i].
  void permute(const std::vector<uint32_t>& order) {
    CHECK(order.size() == size_, "one place for each row");
    switch (width_) {
      case 1: return permuted<int8_t>(order);
      case 2: return permuted<int16_t>(order);
      case 4: return permuted<int32_t>(order);
      default: return permuted<int64_t>(order);
    }
  }

  bool operator==(const CompactColumn& other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if ((*this)[i] != other[i]) return false;
    }
    return true;
  }

 private:
  static int64_t to_number(T value) {
    if constexpr (std::is_same_v<T, NameId>) {
      return static_cast<int32_t>(value.value);
    } else if constexpr (std::is_unsigned_v<T>) {
      return static_cast<std::make_signed_t<T>>(value);
    } else {
      return value;
    }
  }
  static T from_number(int64_t number) {
    if constexpr (std::is_same_v<T, NameId>) {
      return NameId(static_cast<uint32_t>(number));
    } else {
      return static_cast<T>(number);
    }
  }

  template <class Stored>
  [[nodiscard]] Stored load(size_t i) const {
    Stored stored;
    std::memcpy(&stored, bytes_.data() + i * sizeof(Stored), sizeof(Stored));
    return stored;
  }
  template <class Stored>
  void store_as(size_t i, int64_t number) {
    const auto stored = static_cast<Stored>(number);
    std::memcpy(bytes_.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  void store(size_t i, int64_t number) {
    switch (width_) {
      case 1: return store_as<int8_t>(i, number);
      case 2: return store_as<int16_t>(i, number);
      case 4: return store_as<int32_t>(i, number);
      default: return store_as<int64_t>(i, number);
    }
  }

  void make_fit(int64_t number) {
    if (number >= least_ && number <= most_) return;
    size_t width = width_;
    do {
      width *= 2;
      most_ = width == 8 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (8 * width - 1)) - 1;
      least_ = -most_ - 1;
    } while (number < least_ || number > most_);
    CompactColumn wider;
    wider.width_ = width;
    wider.least_ = least_;
    wider.most_ = most_;
    wider.append(*this, [](T value) { return value; });
    *this = std::move(wider);
  }

  template <class Stored>
  void permuted(const std::vector<uint32_t>& order) {
    std::vector<unsigned char> sorted(size_ * sizeof(Stored));
    for (size_t i = 0; i < order.size(); ++i) {
      std::memcpy(sorted.data() + i * sizeof(Stored), bytes_.data() + order[i] * sizeof(Stored), sizeof(Stored));
    }
    bytes_ = std::move(sorted);
  }

  std::vector<unsigned char> bytes_;
  size_t size_ = 0;
  size_t width_ = 1;
  int64_t least_ = std::numeric_limits<int8_t>::min(), most_ = std::numeric_limits<int8_t>::max();
};

}  // namespace forerun
