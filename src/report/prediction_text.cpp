// Predictions for people: one screen for one run, one line for one of many, and the table of errors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "predict/compiled.h"
#include "report/job_time.h"
#include "report/prediction.h"
#include "report/table.h"
#include "report/text_style.h"

namespace forerun {
namespace {

constexpr size_t kOutOfDistributionShown = 5;

std::string ms(Nanoseconds t) {
  const double value = milliseconds(t);
  return value < 10     ? fmt::format("{:.3f} ms", value)
         : value < 1000 ? fmt::format("{:.1f} ms", value)
                        : fmt::format("{:.2f} s", value / 1e3);
}

std::string bytes(Bytes b) { return size_text(b); }

std::string input_text(const Prediction& p) {
  const InputSpec& in = p.input;
  switch (in.kind) {
    case InputKind::image:
    case InputKind::dense: return fmt::format("batch {} x {} x {} x {}", in.batch, in.channels, in.size, in.size);
    case InputKind::tokens: return fmt::format("batch {} x {} tokens", in.batch, in.size);
    case InputKind::flat: return fmt::format("batch {} x {} features", in.batch, in.channels);
  }
  return "";
}

std::string bound_text(const IterationTiming& t) {
  // Kernels that run side by side count more than once among what is busy.
  const double busy =
      t.iteration.value == 0 ? 0 : static_cast<double>(t.gpu_busy.value) / static_cast<double>(t.iteration.value);
  const double share = std::min(busy, 1.0);
  switch (t.bound) {
    case Bottleneck::host: return fmt::format("host-bound: the GPU is busy {} of the time", percent(share));
    case Bottleneck::memory: return fmt::format("memory-bound on the GPU, busy {} of the time", percent(share));
    case Bottleneck::compute: return fmt::format("compute-bound on the GPU, busy {} of the time", percent(share));
  }
  return "";
}

std::string costs_text(const std::vector<CostShare>& rows, bool modules) {
  Table table(modules ? std::vector<std::string>{"module", "GPU time", "share", "ops", "mostly"}
                      : std::vector<std::string>{"op", "phase", "GPU time", "share", "ops", "mostly"});
  if (!modules) table.align_left(1);
  for (const CostShare& row : rows) {
    std::vector<std::string> cells = {row.name.empty() ? "(outside any module)" : row.name};
    if (!modules) cells.push_back(row.phase);
    cells.insert(cells.end(), {ms(row.gpu), percent(row.share), grouped(row.count), row.bound});
    table.add(cells);
  }
  return table.text("  ");
}

}  // namespace

std::string_view verdict_words(FitVerdict verdict) {
  return verdict == FitVerdict::does_not_fit  ? "DOES NOT FIT"
         : verdict == FitVerdict::may_not_fit ? "MAY NOT FIT"
                                              : "fits";
}

std::string rate_text(double per_second) {
  return per_second < 1     ? fmt::format("{:.3g}", per_second)
         : per_second < 100 ? fmt::format("{:.2f}", per_second)
                            : grouped(std::llround(per_second));
}

std::string needed_text(const Prediction& p) {
  return (p.memory_answer.at_least ? "at least " : "") + size_text(p.memory.peak_reserved + p.context);
}

std::string memory_headline(const Prediction& p) {
  std::string out = fmt::format("Memory      {} allocated, ", bytes(p.memory.peak_allocated));
  if (!p.memory_answer.at_least) out += fmt::format("{} reserved, ", bytes(p.memory.peak_reserved));
  return out + fmt::format("{} with the CUDA context: {} in {}\n", needed_text(p),
                           verdict_words(p.memory_answer.verdict), bytes(p.device_memory));
}

std::string setup_text(const TrainingSetup& s) {
  std::string text =
      fmt::format("{}, {} ({})", name_of(s.precision), name_of(s.optimizer.kind), name_of(s.optimizer.impl));
  if (s.optimizer.momentum != 0) text += fmt::format(" momentum {}", s.optimizer.momentum);
  if (s.channels_last) text += ", channels last";
  if (s.lora.rank > 0) text += fmt::format(", LoRA of rank {}", s.lora.rank);
  if (s.quantize.any()) text += fmt::format(", {} weights", text_of(s.quantize));
  if (!s.freeze.empty()) text += ", some frozen";
  if (s.checkpointing != Checkpointing::none) text += fmt::format(", checkpointing ({})", name_of(s.checkpointing));
  if (s.accumulate > 1) text += fmt::format(", {} micro-batches", s.accumulate);
  if (s.clip_norm > 0) text += ", gradients clipped";
  if (s.ema) text += ", moving average";
  if (s.attention != Attention::sdpa) text += fmt::format(", {} attention", name_of(s.attention));
  if (s.compile != CompileMode::none) text += fmt::format(", torch.compile ({})", name_of(s.compile));
  if (s.loop != TrainingLoop::plain) text += fmt::format(", {} loop", name_of(s.loop));
  return text;
}

std::string warnings_text(const Prediction& p) {
  std::string out;
  for (const std::string& warning : p.warnings) out += "WARNING  " + warning + "\n";
  return out;
}

namespace {

constexpr size_t kLinesShown = 25;

std::string bar(double share, size_t width) {
  const auto full = static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  std::string text;
  for (size_t i = 0; i < width; ++i) text += i < full ? "\u2588" : "\u2591";
  return text;
}

// "4.23 of 139.80 GiB", or with both units where they differ.
std::string of_memory(const Prediction& p) {
  std::string needed = needed_text(p);
  const std::string whole = size_text(p.device_memory);
  const std::string unit = whole.substr(whole.rfind(' '));
  if (needed.ends_with(unit)) needed.resize(needed.size() - unit.size());
  return needed + " of " + whole;
}

// "fits, 4.23 of 139.80 GiB; 24.5 ms, 1,307 samples/s; host-bound"; `run`: which of several it is.
std::string headline(const Prediction& p, const TextStyle& style, const char* run = "") {
  const FitVerdict verdict = p.memory_answer.verdict;
  const TextColor color = verdict == FitVerdict::does_not_fit  ? TextColor::red
                          : verdict == FitVerdict::may_not_fit ? TextColor::yellow
                                                               : TextColor::green;
  const std::string rate = p.tokens_per_second > 0 ? rate_text(p.tokens_per_second) + " tokens/s"
                                                   : rate_text(p.samples_per_second) + " samples/s";
  std::string out = run + style.colored(verdict_words(verdict), color);
  out += fmt::format(", {}; {}, {}; {}-bound", of_memory(p), ms(p.times.iteration), rate, name_of(p.times.bound));
  return style.bold(out) + "\n";
}

// A line for each run that is told of.
std::string headlines(const Prediction& p, const CompiledPrediction* compiled, const TextStyle& style) {
  if (compiled == nullptr) return headline(p, style);
  return headline(p, style, "eager:    ") + headline(compiled->prediction, style, "compiled: ");
}

std::string run_text(const Prediction& p) {
  return wrapped(fmt::format("{} on {}: {}, {}", p.id, p.gpu, input_text(p), setup_text(p.setup)), "  ") +
         fmt::format("  {} parameters, {} ops, {} kernels an iteration\n", grouped(p.parameters), grouped(p.ops),
                     grouped(p.kernels));
}

std::string remedies_text(const Prediction& p) {
  if (p.remedies.empty()) return "";
  std::string out = "the host would hold it back less with ";
  for (size_t i = 0; i < p.remedies.size(); ++i) {
    const HostRemedy& remedy = p.remedies[i];
    out += fmt::format("{}{} ({}, {} samples/s)", i == 0 ? "" : "; ", remedy.what, ms(remedy.iteration),
                       rate_text(remedy.samples_per_second));
  }
  return wrapped("  " + out, "    ");
}

std::string time_text(const Prediction& p, const TextStyle& style) {
  const IterationTiming& t = p.times;
  std::string out = fmt::format("Iteration   {}   {} samples/s", ms(t.iteration), rate_text(p.samples_per_second));
  if (p.tokens_per_second > 0) out += fmt::format("   {} tokens/s", rate_text(p.tokens_per_second));
  out += fmt::format("\n  8 of 10 such runs take {} to {}", ms(p.p10), ms(p.p90));
  out += fmt::format("\n  forward {}, backward {}, update {}\n", ms(t.phases[0]), ms(t.phases[1]), ms(t.phases[2]));
  out += fmt::format("  GPU {}, host {}: {}", ms(t.gpu_busy), ms(t.host_busy), bound_text(t));
  if (style.terminal && t.iteration.value > 0) {
    out += "  " + bar(static_cast<double>(t.gpu_busy.value) / static_cast<double>(t.iteration.value), 20);
  }
  return out + "\n" + remedies_text(p);
}

std::string unmeasured_text(const Prediction& p) {
  std::string out;
  if (!p.unknown_ops.empty()) {
    out += "\nOps without a rule, costed by their bytes\n";
    for (const auto& [name, count] : p.unknown_ops) out += fmt::format("  {} x{}\n", name, count);
  }
  if (p.out_of_distribution.empty()) return out;
  out += fmt::format("\nOps unlike any that was measured ({} of the GPU's time)\n", percent(1 - p.measured_share));
  size_t shown = 0;
  for (const auto& [name, count] : p.out_of_distribution) {
    if (++shown > kOutOfDistributionShown) break;
    out += fmt::format("  {} x{}\n", name, count);
  }
  if (p.out_of_distribution.size() > kOutOfDistributionShown) {
    out += fmt::format("  and {} other kinds\n", p.out_of_distribution.size() - kOutOfDistributionShown);
  }
  return out;
}

// All there is to tell.
std::string detailed_text(const Prediction& p, const TextStyle& style, const CompiledPrediction* compiled) {
  std::string out = warnings_text(p) + headlines(p, compiled, style) + run_text(p) + "\n" + time_text(p, style) + "\n";
  if (p.job) out += job_text(*p.job) + "\n";
  out += memory_headline(p);
  out += memory_text(p.memory, p.memory_answer, p.context);
  out += "\nCostliest ops\n" + costs_text(p.costliest_ops, false);
  out += "\nCostliest modules (forward and backward)\n" + costs_text(p.costliest_modules, true);
  out += unmeasured_text(p);
  out += "\nAssumed\n";
  for (const std::string& assumption : p.usual_assumptions) out += "  - " + assumption + "\n";
  for (const std::string& assumption : p.assumptions) out += "  - " + assumption + "\n";
  return out;
}

// What the memory is made of, the largest first, in words.
std::string memory_parts_text(const Prediction& p) {
  auto parts = parts_of(p.memory, p.memory_answer, p.context);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr size_t kShown = 6;
  std::string out = "at the peak: ";
  Bytes others;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i < kShown) out += fmt::format("{}{} {}", i == 0 ? "" : ", ", parts[i].first, size_text(parts[i].second));
    if (i >= kShown) others += parts[i].second;
  }
  if (others.value > 0) out += fmt::format(", other {}", size_text(others));
  return wrapped("  " + out, "    ");
}

}  // namespace

std::string memory_summary(const Prediction& p) {
  const MemoryAnswer& answer = p.memory_answer;
  std::string out = fmt::format("Memory      {} with the CUDA context: {} allocated", needed_text(p),
                                size_text(p.memory.peak_allocated));
  if (!answer.at_least) out += fmt::format(", {} reserved", size_text(p.memory.peak_reserved));
  out += "\n";
  if (answer.parallel.any()) out += fmt::format("  per GPU, with {}\n", parallel_text(answer.parallel));
  if (!answer.allocator.empty()) out += fmt::format("  with PYTORCH_CUDA_ALLOC_CONF={}\n", answer.allocator);
  if (!answer.at_least && answer.driver.high > answer.driver.low) {
    out +=
        fmt::format("  8 of 10 such runs need {} to {}\n", size_text(answer.driver.low), size_text(answer.driver.high));
  }
  if (answer.retries > 0) {
    out += fmt::format("  gets by because the allocator gives unused segments back ({}), which costs time\n",
                       times_text(answer.retries));
  }
  return out + memory_parts_text(p) + wrapped("  peak in " + moment_text(answer.peak), "    ");
}

namespace {

// What this answer rests on beside what every answer does; at most two lines, and how many more there are.
std::string caveats_text(const Prediction& p) {
  constexpr size_t kShown = 2;
  std::string out;
  if (p.measured_share < 0.9) {
    out += fmt::format("{} of the GPU's time is in ops unlike any that was measured\n", percent(1 - p.measured_share));
  }
  for (size_t i = 0; i < std::min(kShown, p.assumptions.size()); ++i) {
    out += wrapped("Assumed: " + p.assumptions[i], "  ");
  }
  const size_t more = p.usual_assumptions.size() + p.assumptions.size() - std::min(kShown, p.assumptions.size());
  return out + fmt::format("--details: tables of ops, modules and live memory, and {} {}assumptions\n", more,
                           p.assumptions.empty() ? "" : "more ");
}

size_t lines_of(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

}  // namespace

std::string to_text(const Prediction& p, const TextStyle& style, const CompiledPrediction* compiled) {
  if (style.details) return detailed_text(p, style, compiled);
  std::string out = warnings_text(p) + headlines(p, compiled, style) + run_text(p) + "\n" + time_text(p, style) + "\n";
  if (p.job) out += job_text(*p.job) + "\n";
  out += memory_summary(p) + "\n";
  const std::string caveats = caveats_text(p);
  constexpr size_t kHeadings = 3;  // two, and a line behind the table
  const size_t taken = lines_of(out) + lines_of(caveats) + kHeadings;
  constexpr size_t kFewest = 2, kMost = 5;
  const size_t rows = std::clamp(taken < kLinesShown ? kLinesShown - taken : 0, kFewest, kMost);
  std::vector<CostShare> layers = p.costliest_layers;
  layers.resize(std::min(layers.size(), rows));
  out += "Costliest layers (forward and backward)\n" + costs_text(layers, true) + "\n";
  return out + caveats;
}

namespace {

std::string_view fits_cell(FitVerdict verdict) {
  return verdict == FitVerdict::fits ? "yes" : verdict == FitVerdict::may_not_fit ? "maybe" : "NO";
}

}  // namespace

std::string summary_header() {
  return fmt::format("{:<28} {:>11} {:>11} {:>11}  {:<7} {:>11} {:>11}  {}\n", "run", "iteration", "GPU", "host",
                     "bound", "allocated", "reserved", "fits");
}

std::string summary_line(const Prediction& p) {
  return fmt::format("{:<28} {:>11} {:>11} {:>11}  {:<7} {:>11} {:>11}  {}{}\n", p.id, ms(p.times.iteration),
                     ms(p.times.gpu_busy), ms(p.times.host_busy), name_of(p.times.bound),
                     bytes(p.memory.peak_allocated), bytes(p.memory.peak_reserved), fits_cell(p.memory_answer.verdict),
                     p.job ? "  job " + duration_text(p.job->hours) : "");
}

namespace {

struct ErrorSummary {
  int64_t runs = 0;
  double iteration = 0, gpu = 0, allocated = 0, reserved = 0;
  std::vector<double> iterations;

  void add(const ErrorSample& s) {
    ++runs;
    iteration += s.iteration;
    gpu += s.gpu;
    allocated += s.allocated;
    reserved += s.reserved;
    iterations.push_back(s.iteration);
  }
  [[nodiscard]] std::vector<std::string> row(const std::string& name) const {
    const auto n = static_cast<double>(runs);
    return {name,
            fmt::format("{}", runs),
            percent(iteration / n),
            percent(upper_median(iterations)),
            percent(gpu / n),
            percent(allocated / n),
            percent(reserved / n)};
  }
};

}  // namespace

std::string error_table(const std::vector<ErrorSample>& samples) {
  if (samples.empty()) return "";
  std::map<std::string, ErrorSummary> families;
  ErrorSummary all, gpu_bound, host_bound;
  for (const ErrorSample& s : samples) {
    families[s.family].add(s);
    all.add(s);
    (s.gpu_bound ? gpu_bound : host_bound).add(s);
  }
  Table table({"family", "runs", "iteration", "(median)", "GPU busy", "allocated", "reserved"});
  for (auto& [name, summary] : families) table.add(summary.row(name));
  if (gpu_bound.runs > 0) table.add(gpu_bound.row("GPU-bound"));
  if (host_bound.runs > 0) table.add(host_bound.row("host-bound"));
  table.add(all.row("all"));
  return "Error against the measurements in the file: mean |predicted - measured| / measured\n" + table.text();
}

}  // namespace forerun
