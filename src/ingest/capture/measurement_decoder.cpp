#include "ingest/capture/measurement_decoder.h"

#include "ingest/capture/recency_ranks.h"

namespace forerun {
namespace {

constexpr std::string_view kActions = "arfSXMUO";
constexpr int64_t kAny = INT64_MAX;

}  // namespace

bool MeasurementDecoder::decode(RecordField field, Value value) {
  Measurement& m = columns_->measured;
  switch (field) {
    case RecordField::status: return status(value);
    case RecordField::error: return text(value, "error", m.error);
    case RecordField::tried: return tried(value);
    case RecordField::host_us: return host_times(value);
    case RecordField::mem: return memory(value);
    case RecordField::mem_init: return bytes(value, "mem_init", m.initial);
    case RecordField::base_allocated: return bytes(value, "base_allocated", m.base_allocated);
    case RecordField::time_ms: return times(value);
    case RecordField::kernels: return kernels(value);
    case RecordField::profile: return profile(value);
    case RecordField::kernel_names: return kernel_names(value);
    case RecordField::alloc_trace: return trace(value);
    default: return true;
  }
}

bool MeasurementDecoder::status(Value value) {
  std::string_view name;
  Measurement& m = columns_->measured;
  const bool read =
      text(value, "status", name) && named("status", name, run_status_named(name), "ok, oom, failed", m.status);
  m.out_of_memory = m.status == RunStatus::oom;
  return read;
}

bool MeasurementDecoder::tried(Value value) {
  MemoryTried& tried = columns_->measured.tried.emplace();
  return each_field(value, "tried", [&](std::string_view key, Value item) {
    if (is_null(item)) return true;
    if (key == "phase") return text(item, "tried.phase", tried.phase);
    Bytes* out = key == "requested"   ? &tried.requested
                 : key == "reserved"  ? &tried.reserved
                 : key == "allocated" ? &tried.allocated
                                      : nullptr;
    return out == nullptr || bytes(item, "an entry of tried", *out);
  });
}

bool MeasurementDecoder::host_times(Value value) {
  HostCalibration& host = columns_->environment.calibration;
  host = {};
  const auto entry = [&](std::vector<std::pair<std::string, double>>& list, std::string_view key, Value item) {
    if (is_null(item)) return true;
    double us = 0;
    if (!number(item, "an entry of host_us", us)) return false;
    if (us < 0) return fail(fmt::format("host_us.{} is negative ({})", key.substr(0, 60), us));
    list.emplace_back(key, us);
    return true;
  };
  return each_field(value, "host_us", [&](std::string_view key, Value item) {
    if (!is_object(item)) return entry(host.forward, key, item);
    if (key != "backward") return true;
    return each_field(item, "host_us.backward",
                      [&](std::string_view name, Value us) { return entry(host.backward, name, us); });
  });
}

bool MeasurementDecoder::least_zero(Value value, std::string_view what, int64_t& out) {
  if (!whole(value, what, out)) return false;
  return out >= 0 || fail(fmt::format("{} is negative ({})", what, out));
}

bool MeasurementDecoder::bytes(Value value, std::string_view what, Bytes& out) {
  if (!whole(value, what, out.value)) return false;
  if (out.value >= 0 && out.value <= RecordLimits::kMostBytes) return true;
  return fail(fmt::format("{} is {}, not between 0 and 2^60", what, out.value));
}

bool MeasurementDecoder::memory(Value value) {
  Measurement& m = columns_->measured;
  return each_field(value, "mem", [&](std::string_view key, Value item) {
    if (key == "segments") return whole(item, "mem.segments", m.segments);
    if (key == "retries") return whole(item, "mem.retries", m.retries);
    Bytes* out = key == "peak_allocated"   ? &m.peak_allocated
                 : key == "peak_reserved"  ? &m.peak_reserved
                 : key == "peak_active"    ? &m.peak_active
                 : key == "peak_requested" ? &m.peak_requested
                 : key == "allocated"      ? &m.allocated
                 : key == "device_used"    ? &m.device_used
                 : key == "device_total"   ? &m.device_total
                                           : nullptr;
    return out == nullptr || bytes(item, "an entry of mem", *out);
  });
}

bool MeasurementDecoder::times(Value value) {
  return each_field(value, "time_ms", [&](std::string_view key, Value item) {
    if (key == "synced_median") return number(item, "time_ms.synced_median", columns_->measured.synced_median_ms);
    return key != "pipelined_median" ||
           number(item, "time_ms.pipelined_median", columns_->measured.pipelined_median_ms);
  });
}

bool MeasurementDecoder::kernels(Value value) {
  columns_->kernels.clear();
  columns_->has_launches = false;
  return is_object(value) ? kernel_columns(value) : kernel_rows(value);
}

// Microseconds as nanoseconds: three decimals are exact.
bool MeasurementDecoder::nanoseconds(Value value, std::string_view what, int64_t least, int64_t& out) {
  double us = 0;
  if (!number(value, what, us)) return false;
  const double ns = us * 1e3;
  if (!(ns >= static_cast<double>(least) && ns <= static_cast<double>(RecordLimits::kMostNanoseconds))) {
    return fail(fmt::format("{} is {} us", what, us));
  }
  out = std::llround(ns);
  return true;
}

// [name index, start us, duration us, stream, launch us, launch duration us, thread, op index or -1]
bool MeasurementDecoder::kernel_rows(Value value) {
  columns_->has_launches = whole_;
  return each(value, "kernels", [&](size_t position, Value item) {
    KernelRow row;
    size_t entries = 0;
    const bool read = each(item, "a kernel", [&](size_t place, Value part) {
      ++entries;
      if (place == 2) return nanoseconds(part, "a kernel's duration", 0, row.ns);
      if (place == 7) return whole(part, "a kernel's op", row.op);
      if (!whole_) return true;
      switch (place) {
        case 0: return least_zero(part, "a kernel's name", row.name);
        case 1: return nanoseconds(part, "a kernel's start", -RecordLimits::kMostNanoseconds, row.start_ns);
        case 3: return whole(part, "a kernel's stream", row.stream);
        case 4: return nanoseconds(part, "a kernel's launch", -RecordLimits::kMostNanoseconds, row.launch_ns);
        case 5: return nanoseconds(part, "a launch's duration", 0, row.launch_duration_ns);
        case 6: return whole(part, "a kernel's thread", row.thread);
        default: return true;
      }
    });
    if (!read) return fail(fmt::format("kernel {}: {}", position, complaint()));
    if (entries < 8) return fail(fmt::format("kernel {} has {} entries instead of 8", position, entries));
    columns_->kernels.push_back(row);
    return true;
  });
}

bool MeasurementDecoder::kernel_columns(Value value) {
  ColumnGroup group("kernels");
  constexpr int64_t most = RecordLimits::kMostNanoseconds;
  std::vector<int64_t> ns, op, name, start, stream, launch, launch_ns, thread, captured;
  bool gaps = false;  // start is counted from the end of the kernel before, not from its start
  const bool read = each_field(value, "kernels", [&](std::string_view key, Value item) {
    if (key == "ns") return column(item, group, "ns", 0, most, ns);
    if (key == "op") return column(item, group, "op", -1, kAny, op);
    if (!whole_) return true;
    if (key == "name") return column(item, group, "name", 0, kAny, name);
    if (key == "start") {
      gaps = is_object(item);
      if (!gaps) return column(item, group, "start", -most, most, start);
      return packed(item, "gaps", [&](Value list) { return column(list, group, "start", -most, most, start); });
    }
    if (key == "stream") return column(item, group, "stream", -kAny, kAny, stream);
    if (key == "launch") return column(item, group, "launch", -most, most, launch);
    if (key == "launch_ns") return column(item, group, "launch_ns", 0, most, launch_ns);
    if (key == "thread") return column(item, group, "thread", -kAny, kAny, thread);
    return key != "captured_ns" || column(item, group, "captured_ns", 0, most, captured);
  });
  if (!read || !complete(group, {"ns", "op"})) return false;
  if (whole_ && !complete(group, {"name", "start", "stream"})) return false;
  // run/3 leaves the columns of launches out, all of them.
  const bool launches = group.has("launch") || group.has("launch_ns") || group.has("thread");
  columns_->has_launches = launches;
  if (launches && !complete(group, {"launch", "launch_ns", "thread"})) return false;
  int64_t started = 0;
  int64_t launched = 0;
  for (size_t i = 0; i < ns.size(); ++i) {
    KernelRow& row = columns_->kernels.emplace_back();
    row.ns = ns[i];
    row.op = op[i];
    if (!whole_) continue;
    const int64_t before = gaps && i > 0 ? ns[i - 1] : 0;
    if (__builtin_add_overflow(started, before, &started) || __builtin_add_overflow(started, start[i], &started) ||
        __builtin_add_overflow(launched, launches ? launch[i] : 0, &launched)) {
      return fail(fmt::format("kernel {}: its times add up to more than 2^63 ns", i));
    }
    row.start_ns = started;
    row.name = name[i];
    row.stream = stream[i];
    if (!launches) continue;
    row.launch_ns = launched;
    row.launch_duration_ns = launch_ns[i];
    row.thread = thread[i];
  }
  return true;
}

bool MeasurementDecoder::profile(Value value) {
  return each_field(value, "profile", [&](std::string_view key, Value item) {
    if (key == "aligned") return flag(item, "profile.aligned", columns_->measured.aligned);
    if (key != "phases") return true;
    return each_field(item, "profile.phases", [&](std::string_view name, Value span) {
      const size_t phase = name == "forward" ? 0 : name == "backward" ? 1 : name == "update" ? 2 : 3;
      std::array<double, 2> ends = {};
      if (phase == 3) return true;
      const bool read = each(span, "a phase of profile.phases", [&](size_t position, Value end) {
        return position > 1 || number(end, "a phase of profile.phases", ends[position]);
      });
      columns_->measured.host_us[phase] = ends[1] - ends[0];
      return read;
    });
  });
}

bool MeasurementDecoder::kernel_names(Value value) {
  columns_->kernel_name_count = 0;
  return each(value, "kernel_names", [&](size_t /*position*/, Value /*item*/) {
    ++columns_->kernel_name_count;
    return true;
  });
}

bool MeasurementDecoder::action(std::string_view letter, char& out) {
  if (letter.size() != 1 || kActions.find(letter[0]) == std::string_view::npos) {
    return fail(fmt::format("an action is \"{}\"; known: a, r, f, S, X, M, U, O",
                            letter.size() == 1 ? printable(letter[0]) : std::string(letter.substr(0, 60))));
  }
  out = letter[0];
  return true;
}

bool MeasurementDecoder::trace(Value value) {
  columns_->trace.events.clear();
  const bool read = is_object(value) ? trace_columns(value) : trace_rows(value);
  if (read || complaint().starts_with("alloc_trace")) return read;
  return fail(fmt::format("alloc_trace: {}", complaint()));
}

bool MeasurementDecoder::trace_rows(Value value) {
  return each(value, "it", [&](size_t index, Value item) {
    AllocatorEvent event;
    size_t entries = 0;
    const bool read = each(item, "an event", [&](size_t position, Value part) {
      ++entries;
      std::string_view letter;
      switch (position) {
        case 0: return text(part, "an action", letter) && action(letter, event.action);
        case 1: return least_zero(part, "an address", event.address);
        case 2: return least_zero(part, "a size", event.size);
        case 3: return whole(part, "a stream", event.stream);
        default: return true;
      }
    });
    if (read && entries < 4) return fail(fmt::format("event {} has {} entries instead of 4", index, entries));
    columns_->trace.events.push_back(event);
    return read;
  });
}

bool MeasurementDecoder::trace_columns(Value value) {
  ColumnGroup group("alloc_trace");
  std::string_view actions;
  std::vector<int64_t> address, size, stream;
  bool told = false;  // run/3: {"told": sizes that do not follow from an event before}
  const bool read = each_field(value, "it", [&](std::string_view key, Value item) {
    if (key == "action") return text(item, "action", actions) && group.add("action", actions.size());
    if (key == "address") return addresses(item, group, address);
    if (key == "size") {
      told = is_object(item);
      if (!told) return column(item, group, "size", 0, kAny, size);
      ColumnGroup apart("alloc_trace");
      return packed(item, "told", [&](Value list) { return column(list, apart, "size", 0, kAny, size); });
    }
    if (key == "stream") return column(item, group, "stream", -kAny, kAny, stream);
    if (key == "address_base") return whole(item, "address_base", columns_->trace.address_base.emplace());
    return key != "marks" || marks(item);
  });
  if (!read || !complete(group, {"action", "address", "stream"})) return false;
  if (!told && !complete(group, {"size"})) return false;
  size_t taken = 0;
  KnownSizes known;
  for (size_t i = 0; i < actions.size(); ++i) {
    AllocatorEvent& event = columns_->trace.events.emplace_back();
    if (!action(actions.substr(i, 1), event.action)) return false;
    event.address = address[i];
    event.stream = stream[i];
    if (const auto follows = told ? known.size_of(event) : std::nullopt) {
      event.size = *follows;
    } else if (taken < size.size()) {
      event.size = size[taken++];
    } else {
      return fail(fmt::format("size tells {}, too few", size.size()));
    }
    known.take(event);
  }
  return taken == size.size() || fail(fmt::format("size tells {}, of which {} are used", size.size(), taken));
}

// A list or, in run/3, {"recency": its rank among the addresses by when they were seen last (0: never), "new": those seen
// for the first time, in their order}.
bool MeasurementDecoder::addresses(Value value, ColumnGroup& group, std::vector<int64_t>& out) {
  if (!is_object(value)) return column(value, group, "address", 0, kAny, out);
  std::vector<int64_t> recency, fresh;
  ColumnGroup parts("address");
  const bool read = each_field(value, "address", [&](std::string_view key, Value item) {
    if (key == "recency") return column(item, parts, "recency", 0, kAny, recency);
    return key != "new" || column(item, parts, "new", 0, kAny, fresh);
  });
  if (!read) return false;
  RecencyRanks ranks(recency.size());
  size_t taken = 0;
  out.clear();
  for (size_t i = 0; i < recency.size(); ++i) {
    const auto rank = static_cast<uint64_t>(recency[i]);
    if (rank > ranks.size()) return fail(fmt::format("event {} has address {} of {} seen", i, rank, ranks.size()));
    if (rank > 0) {
      const size_t seen = ranks.event(rank);
      out.push_back(out[seen]);
      ranks.remove(seen);
    } else if (taken < fresh.size()) {
      out.push_back(fresh[taken++]);
    } else {
      return fail(fmt::format("address has {} new ones, too few", fresh.size()));
    }
    ranks.add(i);
  }
  if (taken != fresh.size())
    return fail(fmt::format("address has {} new ones, of which {} are used", fresh.size(), taken));
  return group.add("address", out.size());
}

bool MeasurementDecoder::marks(Value value) {
  columns_->trace.marks.clear();
  return each(value, "marks", [&](size_t index, Value item) {
    AllocatorTrace::Mark mark;
    size_t entries = 0;
    const bool read = each(item, "a mark", [&](size_t position, Value part) {
      ++entries;
      return position == 0 ? whole(part, "a mark's event", mark.event)
                           : position > 1 || text(part, "a mark's name", mark.name);
    });
    if (read && entries < 2) return fail(fmt::format("mark {} is not [event, name]", index));
    columns_->trace.marks.push_back(mark);
    return read;
  });
}

}  // namespace forerun
