#include "lab/ask/op_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/svg.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr size_t kKinds = 12;       // of ops in the table
constexpr size_t kMostBars = 4000;  // in a lane of the picture: more are thinner than a pixel

struct KindSum {
  std::string name, phase;
  int64_t count = 0;
  double predicted = 0;
  double measured = 0;
  double off = 0;  // sum of absolute differences
};

std::vector<KindSum> kinds_of(const OpTrace& trace) {
  std::map<std::pair<std::string, std::string>, KindSum> sums;
  for (const OpTraceRow& row : trace.rows) {
    KindSum& sum = sums[{row.phase, row.name}];
    sum.name = row.name;
    sum.phase = row.phase;
    ++sum.count;
    sum.predicted += row.predicted.gpu_us;
    if (!row.measured) continue;
    sum.measured += row.measured->gpu_us;
    sum.off += std::abs(row.predicted.gpu_us - row.measured->gpu_us);
  }
  std::vector<KindSum> kinds;
  for (auto& [key, sum] : sums) kinds.push_back(std::move(sum));
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const KindSum& a, const KindSum& b) { return a.predicted > b.predicted; });
  return kinds;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + csv_cell(cell);
  return line + "\n";
}

using TimeOf = OpTime (*)(const OpTraceRow&);
OpTime predicted_of(const OpTraceRow& row) { return row.predicted; }
OpTime measured_of(const OpTraceRow& row) { return row.measured.value_or(OpTime()); }

double total_us(const OpTrace& trace, TimeOf time) {
  double sum = 0;
  for (const OpTraceRow& row : trace.rows) sum += time(row).gpu_us + time(row).gap_us;
  return sum;
}

const char* phase_colour(const std::string& phase) {
  return phase == "forward" ? svg::kBlue : phase == "backward" ? svg::kVermilion : svg::kGreen;
}

// The ops of a lane as bars; neighbours too thin to be seen apart are drawn as one.
void draw_lane(svg::Picture& picture, const svg::Plot& lane, const OpTrace& trace, TimeOf time, double most_us) {
  double at = 0;
  const double least = most_us / static_cast<double>(kMostBars);
  double from = -1;
  double to = 0;
  const char* colour = svg::kBlue;
  const auto flush = [&] {
    if (from < 0) return;
    picture.box({lane.x(from / most_us), lane.top, std::max(lane.width * (to - from) / most_us, 0.2), lane.height},
                colour);
  };
  for (const OpTraceRow& row : trace.rows) {
    const OpTime t = time(row);
    const char* next = phase_colour(row.phase);
    if (from < 0 || next != colour || at - to > least) {
      flush();
      from = at;
      colour = next;
    }
    to = at + t.gpu_us;
    at = to + t.gap_us;
  }
  flush();
}

}  // namespace

OpTrace op_trace(const TrainingRun& run, const std::string& predictor, const learn::Prediction& prediction,
                 const std::vector<OpTime>& measured) {
  OpTrace trace{.id = run.id, .predictor = predictor};
  for (size_t i = 0; i < std::min(run.graph.op_count(), prediction.op_us.size()); ++i) {
    const Op& op = run.graph.op(OpId(i));
    const OpTime time{.gpu_us = prediction.op_us[i],
                      .gap_us = i < prediction.gap_us.size() ? prediction.gap_us[i] : 0.0};
    const bool known = i < measured.size();
    if (time.gpu_us <= 0 && time.gap_us <= 0 && (!known || measured[i].gpu_us <= 0)) continue;
    OpTraceRow row{.op = i,
                   .name = run.graph.name(op),
                   .phase = std::string(name_of(op.phase)),
                   .module = run.graph.module(op),
                   .predicted = time};
    if (!measured.empty()) row.measured = known ? measured[i] : OpTime();
    trace.rows.push_back(std::move(row));
  }
  return trace;
}

std::string to_text(const OpTrace& trace) {
  const bool measured = trace.has_measured();
  std::vector<std::string> heading = {"op", "phase", "ops", "predicted ms"};
  if (measured) heading.insert(heading.end(), {"measured ms", "error, op by op"});
  Table table(heading);
  table.align_left(1);
  const std::vector<KindSum> kinds = kinds_of(trace);
  for (size_t i = 0; i < std::min(kinds.size(), kKinds); ++i) {
    const KindSum& kind = kinds[i];
    std::vector<std::string> cells = {kind.name, kind.phase, grouped(kind.count),
                                      fmt::format("{:.3f}", kind.predicted / 1e3)};
    if (measured) {
      cells.push_back(fmt::format("{:.3f}", kind.measured / 1e3));
      cells.push_back(kind.measured > 0 ? percent(kind.off / kind.measured) : "-");
    }
    table.add(std::move(cells));
  }
  const std::string rest = kinds.size() > kKinds ? fmt::format("  and {} more kinds\n", kinds.size() - kKinds) : "";
  return fmt::format("\n{}'s trace, op by op: {} ops on the GPU\n{}{}", trace.predictor,
                     grouped(static_cast<int64_t>(trace.rows.size())), table.text(), rest);
}

std::string to_csv(const OpTrace& trace) {
  const bool measured = trace.has_measured();
  std::vector<std::string> heading = {"op", "name", "phase", "module", "predicted_gpu_us", "predicted_gap_us"};
  if (measured) heading.insert(heading.end(), {"measured_gpu_us", "measured_gap_us"});
  std::string text = csv_line(heading);
  for (const OpTraceRow& row : trace.rows) {
    std::vector<std::string> cells = {std::to_string(row.op),
                                      row.name,
                                      row.phase,
                                      row.module,
                                      fmt::format("{:.3f}", row.predicted.gpu_us),
                                      fmt::format("{:.3f}", row.predicted.gap_us)};
    if (measured) {
      cells.push_back(fmt::format("{:.3f}", row.measured->gpu_us));
      cells.push_back(fmt::format("{:.3f}", row.measured->gap_us));
    }
    text += csv_line(cells);
  }
  return text;
}

std::string to_svg(const OpTrace& trace) {
  constexpr double kWidth = 1100;
  constexpr double kLeft = 160;
  const bool measured = trace.has_measured();
  const double lanes = measured ? 2 : 1;
  svg::Picture picture(kWidth, 150 + 80 * lanes);
  picture.heading(kLeft, trace.id,
                  fmt::format("ops of one iteration as {} tells them{}", trace.predictor,
                              measured ? ", and as they were measured" : ""));
  const double predicted_us = total_us(trace, predicted_of);
  const double measured_us = measured ? total_us(trace, measured_of) : 0;
  const double most = std::max({predicted_us, measured_us, 1.0});
  const svg::Plot axis{kLeft, 80, kWidth - kLeft - 40, 80 * lanes};
  for (const double tick : svg::round_ticks(most / 1e3)) {
    if (tick * 1e3 <= most) picture.tick_below(axis, tick * 1e3 / most, fmt::format("{:g} ms", tick));
  }
  draw_lane(picture, {axis.left, 95, axis.width, 50}, trace, predicted_of, most);
  picture.text(kLeft - 10, 125, fmt::format("{} {:.2f} ms", trace.predictor, predicted_us / 1e3), {.anchor = "end"});
  if (measured) {
    draw_lane(picture, {axis.left, 175, axis.width, 50}, trace, measured_of, most);
    picture.text(kLeft - 10, 205, fmt::format("measured {:.2f} ms", measured_us / 1e3), {.anchor = "end"});
  }
  double x = kLeft;
  for (const char* phase : {"forward", "backward", "update"}) {
    picture.legend_line({x, 80 + 80 * lanes + 50}, {.colour = phase_colour(phase), .width = 0}, phase);
    x += 130;
  }
  return picture.document();
}

std::string to_chrome(const OpTrace& trace) {
  JsonWriter json;
  json.begin_object().key("traceEvents").begin_array();
  const auto lane = [&](int number, const std::string& name, TimeOf time) {
    json.begin_object().field("ph", "M").field("name", "thread_name").field("pid", 0).field("tid", number);
    json.key("args").begin_object().field("name", name).end_object().end_object();
    double at = 0;
    for (const OpTraceRow& row : trace.rows) {
      const OpTime t = time(row);
      json.begin_object().field("ph", "X").field("name", row.name).field("cat", row.phase).field("pid", 0);
      json.field("tid", number).field("ts", at).field("dur", t.gpu_us);
      json.key("args")
          .begin_object()
          .field("op", static_cast<int64_t>(row.op))
          .field("module", row.module)
          .end_object();
      json.end_object();
      at += t.gpu_us + t.gap_us;
    }
  };
  lane(0, trace.predictor, predicted_of);
  if (trace.has_measured()) lane(1, "measured", measured_of);
  json.end_array().field("displayTimeUnit", "ms").end_object();
  return json.take() + "\n";
}

}  // namespace forerun
