// Id<Tag>: an index into one table, typed so that an op cannot be looked up among the tensors.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace forerun {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(size_t index) : value(static_cast<uint32_t>(index)) {}

  [[nodiscard]] constexpr bool valid() const { return value != kNone; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace forerun

template <class Tag>
struct std::hash<forerun::Id<Tag>> {
  size_t operator()(forerun::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.value); }
};
