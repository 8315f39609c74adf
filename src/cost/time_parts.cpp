#include "cost/time_parts.h"

#include <cmath>

namespace forerun {

std::array<std::pair<std::string_view, Nanoseconds>, TimeParts::kCount> TimeParts::named() const {
  return {{{"computation", computation},
           {"memory_access", memory_access},
           {"latency", latency},
           {"idle", idle},
           {"communication", communication},
           {"bubble", bubble}}};
}

Nanoseconds TimeParts::total() const {
  Nanoseconds sum;
  for (const auto& [name, time] : named()) sum += time;
  return sum;
}

TimeParts TimeParts::of(Nanoseconds another) const {
  const auto all = static_cast<double>(total().value);
  if (all <= 0) return {.idle = another};
  TimeParts parts;
  // Sums are rounded rather than parts, so that the parts make up the whole.
  Nanoseconds sum;
  Nanoseconds given;
  const auto next = [&](Nanoseconds part) {
    sum += part;
    const Nanoseconds until(std::llround(static_cast<double>(another.value) * (static_cast<double>(sum.value) / all)));
    const Nanoseconds share = until - given;
    given = until;
    return share;
  };
  parts.computation = next(computation);
  parts.memory_access = next(memory_access);
  parts.latency = next(latency);
  parts.idle = next(idle);
  parts.communication = next(communication);
  parts.bubble = next(bubble);
  return parts;
}

TimeParts time_parts(std::span<const OpCost> costs, Nanoseconds time) {
  TimeParts parts;
  for (const OpCost& cost : costs) {
    const Nanoseconds alone = cost.gpu - cost.overlapped;
    switch (cost.bound) {
      case Bound::compute: parts.computation += alone; break;
      case Bound::memory: parts.memory_access += alone; break;
      case Bound::latency: parts.latency += alone; break;
      case Bound::none: break;
    }
  }
  const Nanoseconds busy = parts.total();
  if (busy > time) return parts.of(time);
  parts.idle = time - busy;
  return parts;
}

}  // namespace forerun
