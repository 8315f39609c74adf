#include "api/sweep.h"

#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <map>
#include <mutex>

#include "base/options_text.h"
#include "base/parallel.h"
#include "predict/setup_text.h"

namespace forerun {
namespace {

constexpr size_t kMostValues = 1'000'000;
constexpr size_t kMostCases = 10'000'000;

Error bad_axis(const std::string& text, const std::string& what) {
  return {fmt::format("{} in '{}'", what, text), "--over",
          "write NAME=VALUE,VALUE,... or NAME=FIRST..LAST, FIRST..LAST+STEP, FIRST..LAST*FACTOR"};
}

// Eats a whole number from the front of `text`.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// FIRST..LAST, FIRST..LAST+STEP or FIRST..LAST*FACTOR; nothing where the text is no such range.
struct Range {
  int64_t first = 0, last = 0, step = 1;
  bool multiplies = false;
};
std::optional<Range> range_in(std::string_view text) {
  Range range;
  const auto first = take_number(text);
  if (!first || !text.starts_with("..")) return std::nullopt;
  text.remove_prefix(2);
  const auto last = take_number(text);
  if (!last) return std::nullopt;
  range.first = *first;
  range.last = *last;
  if (text.empty()) return range;
  range.multiplies = text.front() == '*';
  if (!range.multiplies && text.front() != '+') return std::nullopt;
  text.remove_prefix(1);
  const auto step = take_number(text);
  if (!step || !text.empty()) return std::nullopt;
  range.step = *step;
  return range;
}

// A configuration as it is put together, word by word.
struct PartialCase {
  ModelRequest request;
  std::string gpu;

  Status set(const std::string& name, const std::string& value) {
    if (name == "model") {
      request.model = value;
      request.file.reset();
    } else if (name == "gpu") {
      gpu = value;
    } else if (name == "batch") {
      return set_batch(value);
    } else if (name == "precision") {
      const auto precision = parse_precision(value);
      if (!precision) return precision.error();
      request.setup.precision = *precision;
    } else if (name == "optimizer") {
      const auto optimizer = parse_optimizer(value);
      if (!optimizer) return optimizer.error();
      request.setup.optimizer = *optimizer;
      request.default_optimizer = false;
    } else if (name == "checkpoint") {
      const auto checkpointing = parse_checkpointing(value);
      if (!checkpointing) return checkpointing.error();
      request.setup.checkpointing = *checkpointing;
    } else if (name == "quantize") {
      const auto quantize = parse_quantize(value);
      if (!quantize) return quantize.error();
      request.setup.quantize = *quantize;
    } else if (name == "compile") {
      const auto mode = parse_compile_mode(value);
      if (!mode) return mode.error();
      request.setup.compile = *mode;
    } else if (name == "lora") {
      const auto lora = parse_lora(value);
      if (!lora) return lora.error();
      request.setup.lora = *lora;
    } else if (name == "accumulate") {
      return set_whole(name, value, 4096, request.setup.accumulate);
    } else if (name == "channels_last") {
      if (value != "true" && value != "false") {
        return Error{fmt::format("channels_last cannot be '{}'", value), "--over", "give true or false"};
      }
      request.setup.channels_last = value == "true";
    } else {
      request.settings.emplace_back(name, value);
    }
    return {};
  }

  Status set_batch(std::string_view value) {
    int64_t batch = 0;
    if (Status status = set_whole("batch", value, int64_t{1} << 30, batch); !status.ok()) return status;
    request.batch = batch;
    return {};
  }

  static Status set_whole(std::string_view name, std::string_view value, int64_t most, int64_t& into) {
    std::string_view rest = value;
    const auto number = take_number(rest);
    if (!number || !rest.empty() || *number < 1 || *number > most) {
      return Error{fmt::format("{} cannot be '{}'", name, value), "--over",
                   fmt::format("give whole numbers from 1 to {}", most)};
    }
    into = *number;
    return {};
  }
};

Status append(const std::string& text, const Range& range, std::vector<std::string>& values) {
  if (range.last < range.first) return bad_axis(text, fmt::format("{} is below {}", range.last, range.first));
  if (range.multiplies ? range.step < 2 || range.first < 1 : range.step < 1) {
    return bad_axis(text, "the range does not get to its end");
  }
  for (int64_t value = range.first;;) {
    if (values.size() >= kMostValues) return bad_axis(text, fmt::format("more than {} values", kMostValues));
    values.push_back(fmt::format("{}", value));
    const bool at_end = range.multiplies ? value > range.last / range.step : range.step > range.last - value;
    if (at_end) return {};
    value = range.multiplies ? value * range.step : value + range.step;
  }
}

}  // namespace

Result<SweepAxis> parse_axis(const std::string& text) {
  const auto named = split_key_value(text);
  if (!named || named->first.empty() || named->second.empty()) return bad_axis(text, "no NAME=VALUES");
  SweepAxis axis{std::string(named->first), {}};
  for (const std::string_view value : split_list(named->second, ",")) {
    if (value.empty()) return bad_axis(text, "an empty value");
    if (const auto range = range_in(value)) {
      if (const Status status = append(text, *range, axis.values); !status.ok()) return status.error();
    } else {
      axis.values.emplace_back(value);
    }
  }
  return axis;
}

Result<size_t> product_size(const std::vector<SweepAxis>& axes) {
  size_t size = 1;
  for (const SweepAxis& axis : axes) {
    if (axis.values.empty()) return Error{"no value", "--over " + axis.name, "give one or more"};
    if (axis.values.size() > kMostCases / size) {
      return Error{fmt::format("more than {} configurations", kMostCases), "--over", "sweep over fewer values"};
    }
    size *= axis.values.size();
  }
  return size;
}

std::vector<std::string> product_values(const std::vector<SweepAxis>& axes, size_t number) {
  std::vector<std::string> values(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    values[i] = axes[i].values[number % axes[i].values.size()];
    number /= axes[i].values.size();
  }
  return values;
}

namespace {

Result<PartialCase> fixed_case(const SweepRequest& request) {
  PartialCase fixed{request.base, request.gpu};
  for (const auto& [name, value] : request.fixed) {
    if (const Status status = fixed.set(name, value); !status.ok()) return status.error();
  }
  return fixed;
}

Result<SweepCase> whole_case(PartialCase partial, const SweepRequest& request, const CostModels& cost_models) {
  if (partial.request.model.empty())
    return Error{"there is no model", "", "name one, or several with --over model=A,B"};
  Result<Device> device = asked_gpu(partial.gpu, cost_models);
  if (!device) return device.error();
  const auto price = price_of_run(request.prices, *device, request.job);
  if (!price) return price.error();
  return SweepCase{{}, std::move(partial.request), std::move(*device), request.job, *price};
}

}  // namespace

Result<SweepCases> sweep_cases(const SweepRequest& request, const CostModels& cost_models) {
  if (const Status status = check_job_length(request.job); !status.ok()) return status.error();
  const Result<size_t> size = product_size(request.axes);
  if (!size) return size.error();
  Result<PartialCase> first = fixed_case(request);
  if (!first) return first.error();
  for (const SweepAxis& axis : request.axes) {
    if (const Status status = first->set(axis.name, axis.values.front()); !status.ok()) return status.error();
  }
  if (const auto whole = whole_case(*first, request, cost_models); !whole) return whole.error();
  // Each word sets something of its own, so that all configurations are sound where each value is, beside any others.
  for (const SweepAxis& axis : request.axes) {
    for (const std::string& value : axis.values) {
      PartialCase one = *first;
      one.request.settings.clear();  // which are not looked at here
      if (const Status status = one.set(axis.name, value); !status.ok()) return status.error();
      if (axis.name != "gpu") continue;
      if (const auto whole = whole_case(std::move(one), request, cost_models); !whole) return whole.error();
    }
  }
  return SweepCases(request, cost_models, *size);
}

std::vector<std::string> SweepCases::names() const {
  std::vector<std::string> names;
  for (const SweepAxis& axis : request_.axes) names.push_back(axis.name);
  return names;
}

std::vector<std::string> SweepCases::values(size_t number) const { return product_values(request_.axes, number); }

SweepCase SweepCases::operator[](size_t number) const {
  CHECK(number < size_, "a configuration beyond the last");
  Result<PartialCase> partial = fixed_case(request_);
  std::vector<std::string> values = this->values(number);
  for (size_t i = 0; i < values.size(); ++i) {
    const Status status = partial->set(request_.axes[i].name, values[i]);
    CHECK(status.ok(), status.error().message());
  }
  Result<SweepCase> whole = whole_case(std::move(*partial), request_, *cost_models_);
  whole->values = std::move(values);
  return std::move(*whole);
}

Result<Prediction> predict_case(const SweepCase& one, const CostModels& cost_models) {
  const Result<TrainingRun> run = build_run(one.request, one.device);
  if (!run) return run.error();
  Prediction prediction = predict(*run, one.device, cost_models, {}, 1);
  if (const Status status = set_job(one.job, one.device, one.price, prediction); !status.ok()) return status.error();
  return prediction;
}

Status sweep(const SweepCases& cases, const CostModels& cost_models, unsigned threads, const SweepHandler& each,
             const WorkControl& control, const Shard& shard) {
  const size_t count = shard.cases_of(cases.size());
  Work work(control, "configurations", static_cast<int64_t>(count));
  std::mutex order;
  std::map<size_t, Result<Prediction>> done;  // ahead of their turn
  size_t turn = 0;
  std::exception_ptr failed;  // of `each`, which is told of a case once
  const auto stopped = [&] {
    const std::lock_guard lock(order);
    return failed != nullptr;
  };
  Status status = parallel_for(count, threads, work, [&](size_t i) {
    if (stopped()) return;
    Result<Prediction> prediction = predict_case(cases[shard.number(i)], cost_models);
    const std::lock_guard lock(order);
    done.emplace(i, std::move(prediction));
    for (auto first = done.begin(); !failed && first != done.end() && first->first == turn; first = done.begin()) {
      ++turn;
      try {
        each(cases[shard.number(first->first)], first->second);
      } catch (...) {
        failed = std::current_exception();
      }
      done.erase(first);
    }
  });
  if (failed) std::rethrow_exception(failed);
  return status;
}

}  // namespace forerun
