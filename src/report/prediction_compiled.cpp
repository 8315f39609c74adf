// What torch.compile would make of a prediction.
#include "report/prediction_compiled.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/csv_cells.h"
#include "report/job_time.h"
#include "report/memory_answer.h"
#include "report/prediction.h"
#include "report/table.h"

namespace forerun {
namespace {

std::string shown(Nanoseconds time) {
  const double value = milliseconds(time);
  if (value < 10) return fmt::format("{:.3f} ms", value);
  return value < 1000 ? fmt::format("{:.1f} ms", value) : fmt::format("{:.2f} s", value / 1e3);
}
std::string shown(Bytes bytes) { return size_text(bytes); }

double ratio(double compiled, double eager) { return eager > 0 ? compiled / eager : 0; }

std::string factor(double compiled, double eager) { return fmt::format("x {:.2f}", ratio(compiled, eager)); }

std::string reserved_text(const Prediction& p) {
  return (p.memory_answer.at_least ? "at least " : "") + shown(p.memory.peak_reserved);
}

std::string both_text(const CompiledPrediction& compiled, const Prediction& e) {
  const Prediction& c = compiled.prediction;
  const MemoryRange& allocated = c.memory_answer.allocated;
  Table table({"", "eager", "compiled", "", "likely range"});
  const auto time = [&](const char* name, Nanoseconds eager, Nanoseconds then, const std::string& range) {
    table.add({name, shown(eager), shown(then),
               factor(static_cast<double>(then.value), static_cast<double>(eager.value)), range});
  };
  const auto bytes = [&](const char* name, Bytes eager, Bytes then, const std::string& range) {
    table.add({name, shown(eager), shown(then),
               factor(static_cast<double>(then.value), static_cast<double>(eager.value)), range});
  };
  time("iteration", e.times.iteration, c.times.iteration, fmt::format("{} to {}", shown(c.p10), shown(c.p90)));
  time("GPU busy", e.times.gpu_busy, c.times.gpu_busy,
       fmt::format("{} to {}", shown(compiled.gpu_low), shown(compiled.gpu_high)));
  table.add({"kernels", grouped(e.kernels), grouped(c.kernels),
             factor(static_cast<double>(c.kernels), static_cast<double>(e.kernels)), ""});
  bytes("peak allocated", e.memory.peak_allocated, c.memory.peak_allocated,
        fmt::format("{} to {}", shown(allocated.low), shown(allocated.high)));
  table.add({"peak reserved", reserved_text(e), reserved_text(c),
             e.memory_answer.at_least || c.memory_answer.at_least
                 ? ""
                 : factor(static_cast<double>(c.memory.peak_reserved.value),
                          static_cast<double>(e.memory.peak_reserved.value)),
             ""});
  table.add({"in the GPU's memory", std::string(verdict_words(e.memory_answer.verdict)),
             std::string(verdict_words(c.memory_answer.verdict)), "", ""});
  table.add({"bound by", std::string(name_of(e.times.bound)), std::string(name_of(c.times.bound)), "", ""});
  const auto overlaps = [](const IterationTiming& times) { return times.gpu_busy > times.iteration; };
  return table.text() + (overlaps(e.times) || overlaps(c.times)
                             ? "  GPU busy is the sum of all kernels: those that run side by side count each\n"
                             : "");
}

std::string shortened(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width - 3) + "...";
}

std::string largest_text(const CompiledPrediction& c, bool details) {
  Table table({"generated kernel", "count", "GPU time", "each moves", "computes"});
  table.align_left(4);
  const size_t rows = details ? c.largest.size() : std::min<size_t>(c.largest.size(), 5);
  for (size_t i = 0; i < rows; ++i) {
    const FusedKernel& row = c.largest[i];
    table.add({row.kind, grouped(row.count), shown(row.gpu), shown(row.bytes), shortened(row.ops, details ? 200 : 48)});
  }
  return table.text();
}

struct BreaksAlike {
  const GraphBreak* first = nullptr;
  int64_t count = 0;
};

// Those for the same reason at the same op together, in the order of the first of each.
std::vector<BreaksAlike> alike(const std::vector<GraphBreak>& breaks) {
  std::vector<BreaksAlike> rows;
  for (const GraphBreak& found : breaks) {
    const auto known = std::find_if(rows.begin(), rows.end(), [&](const BreaksAlike& row) {
      return row.first->op == found.op && row.first->why == found.why && row.first->where == found.where;
    });
    if (known == rows.end()) {
      rows.push_back({&found, 1});
    } else {
      ++known->count;
    }
  }
  return rows;
}

std::string breaks_text(const CompiledPrediction& c) {
  if (c.breaks.empty()) return {};
  std::string text = wrapped(
      c.graphs > 0 ? fmt::format("  the graph breaks at {} place{}; {} graphs are compiled, forward and backward ones:",
                                 c.breaks.size(), c.breaks.size() == 1 ? "" : "s", c.graphs)
                   : "  nothing is compiled; the graph breaks:",
      "    ");
  for (const BreaksAlike& row : alike(c.breaks)) {
    const std::string& module = row.first->module;
    text += wrapped(fmt::format("  - {}{}: {} ({}{})", module.empty() ? "outside of any module" : module,
                                row.count > 1 ? fmt::format(" and {} more", row.count - 1) : "", row.first->why,
                                row.first->where.empty() ? "" : row.first->where + ", before ", row.first->op),
                    "    ");
  }
  return text;
}

}  // namespace

std::string to_text(const CompiledPrediction& c, const Prediction& eager, const TextStyle& style) {
  std::string text =
      fmt::format("\n{}\n{}", style.bold(fmt::format("Compiled    torch.compile, {} mode", name_of(c.mode()))),
                  both_text(c, eager));
  text += wrapped(
      fmt::format(
          "  {} generated kernels ({} pointwise, {} reductions, {} scatters) and {} calls of libraries; {} values, "
          "{}, kept for the backward pass, {} computed again{}{}",
          grouped(c.pointwise + c.reductions + c.scatters), grouped(c.pointwise), grouped(c.reductions),
          grouped(c.scatters), grouped(c.libraries), grouped(c.kept_values), shown(c.kept), grouped(c.computed_again),
          c.templates > 0 ? fmt::format("; {} elementwise kernels within tuned products", grouped(c.templates)) : "",
          c.compile_s ? fmt::format("; first iteration about {:.0f} s", *c.compile_s) : ""),
      "    ");
  text += breaks_text(c);
  if (c.prediction.job) text += job_text(*c.prediction.job);
  if (!c.largest.empty()) text += largest_text(c, style.details);
  if (!style.details) return text;
  Table libraries({"stays with a library", "count", "GPU time"});
  for (const OutsideKernels& row : c.libraries_by_name) libraries.add({row.name, grouped(row.count), shown(row.gpu)});
  text += "\n" + libraries.text() + "\nAssumed of the compiled model\n";
  for (const std::string& line : c.assumptions) text += wrapped("  - " + line, "    ");
  return text;
}

void write_fields(JsonWriter& json, const CompiledPrediction& c, const Prediction& eager) {
  const Prediction& p = c.prediction;
  json.field("mode", name_of(c.mode()))
      .field("iter_ms", milliseconds(p.times.iteration))
      .field("iter_low_ms", milliseconds(p.p10))
      .field("iter_high_ms", milliseconds(p.p90))
      .field("gpu_ms", milliseconds(p.times.gpu_busy))
      .field("gpu_low_ms", milliseconds(c.gpu_low))
      .field("gpu_high_ms", milliseconds(c.gpu_high))
      .field("host_ms", milliseconds(p.times.host_busy))
      .field("outside_host_ms", milliseconds(c.outside_host))
      .field("bound", name_of(p.times.bound))
      .field("iter_ratio", ratio(milliseconds(p.times.iteration), milliseconds(eager.times.iteration)))
      .field("gpu_ratio", ratio(milliseconds(p.times.gpu_busy), milliseconds(eager.times.gpu_busy)))
      .field("kernels", p.kernels)
      .field("eager_kernels", eager.kernels)
      .field("pointwise", c.pointwise)
      .field("reductions", c.reductions)
      .field("scatters", c.scatters)
      .field("generated_bytes", c.generated.value)
      .field("libraries", c.libraries)
      .field("templates", c.templates)
      .field("peak_allocated", p.memory.peak_allocated.value)
      .field("peak_allocated_low", p.memory_answer.allocated.low.value)
      .field("peak_allocated_high", p.memory_answer.allocated.high.value)
      .field("peak_reserved", p.memory.peak_reserved.value)
      .field("fits", p.memory_answer.verdict == FitVerdict::fits)
      .field("verdict", name_of(p.memory_answer.verdict))
      .field("samples_per_second", p.samples_per_second)
      .field("kept_values", c.kept_values)
      .field("kept_bytes", c.kept.value)
      .field("computed_again", c.computed_again)
      .field("graphs", c.graphs);
  json.key("breaks").begin_array();
  for (const GraphBreak& found : c.breaks) {
    json.begin_object()
        .field("module", found.module)
        .field("op", found.op)
        .field("why", found.why)
        .field("where", found.where)
        .end_object();
  }
  json.end_array();
  if (p.tokens_per_second > 0) json.field("tokens_per_second", p.tokens_per_second);
  if (p.job) write_json(json.key("job"), *p.job);
  if (c.compile_s) json.field("compile_s", *c.compile_s);
  json.key("largest_kernels").begin_array();
  for (const FusedKernel& row : c.largest) {
    json.begin_object()
        .field("kind", row.kind)
        .field("count", row.count)
        .field("gpu_ms", milliseconds(row.gpu))
        .field("bytes", row.bytes.value)
        .field("ops", row.ops)
        .field("module", row.module)
        .end_object();
  }
  json.end_array().key("library_calls").begin_array();
  for (const OutsideKernels& row : c.libraries_by_name) {
    json.begin_object()
        .field("name", row.name)
        .field("count", row.count)
        .field("gpu_ms", milliseconds(row.gpu))
        .end_object();
  }
  json.end_array().key("assumptions").begin_array();
  for (const std::string& line : c.assumptions) json.value(line);
  json.end_array();
}

std::string kernels_csv(const CompiledPrediction& compiled) {
  std::string csv = "phase,where,op,kernels,gpu_us,bytes,elements,reduced,computes,module\n";
  for (const CompiledOp& op : compiled.ops) {
    csv += fmt::format("{},{},{},{},{:.3f},{},{},{},{},{}\n", name_of(op.phase), op.inside ? "compiled" : "eager",
                       op.name, op.kernels, static_cast<double>(op.gpu.value) * 1e-3, op.bytes.value, op.elements,
                       op.reduced, csv_quoted(op.ops), csv_quoted(op.module));
  }
  return csv;
}

std::string to_json(const Prediction& eager, const CompiledPrediction& compiled) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.predict/1");
  write_fields(json, eager);
  json.key("compiled").begin_object();
  write_fields(json, compiled, eager);
  return json.end_object().end_object().take();
}

}  // namespace forerun
