#include "report/whatif_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/csv_cells.h"
#include "base/json_writer.h"
#include "report/svg.h"
#include "report/table.h"
#include "report/whatif.h"

namespace forerun {
namespace {

constexpr svg::Plot kSweepPlot{.left = 100, .top = 80, .width = 760, .height = 380};

double longest_ms(const WhatIfSweepAnswer& answer) {
  double longest = answer.baseline_ms;
  for (const WhatIfCurve& curve : answer.curves) {
    for (const WhatIfAnswer& point : curve.points) longest = std::max(longest, point.predicted_ms);
  }
  return longest;
}

}  // namespace

std::string to_text(const WhatIfSweepAnswer& answer) {
  std::vector<std::string> heading = {answer.sweep.key};
  for (const WhatIfCurve& curve : answer.curves) {
    heading.push_back(applied_text(curve.applied) + ", ms");
    heading.emplace_back("range ms");
    heading.emplace_back("of the speed alone");
  }
  const bool two = answer.curves.size() == 2;
  if (two) heading.emplace_back("the second's throughput");
  Table table(heading);
  for (size_t i = 0; i < answer.sweep.values.size(); ++i) {
    std::vector<std::string> row = {answer.sweep.values[i]};
    for (const WhatIfCurve& curve : answer.curves) {
      const WhatIfAnswer& point = curve.points[i];
      row.push_back(fmt::format("{:.3f}", point.predicted_ms));
      row.push_back(fmt::format("{:.1f} to {:.1f}", point.low_ms, point.high_ms));
      row.push_back(percent(answer.baseline_ms / point.predicted_ms));
    }
    if (two) {
      row.push_back(
          signed_percent(answer.curves[0].points[i].predicted_ms / answer.curves[1].points[i].predicted_ms - 1));
    }
    table.add(std::move(row));
  }
  std::string text =
      fmt::format("{}\n  nothing applied: {:.3f} ms an iteration\n{}", answer.file, answer.baseline_ms, table.text());
  for (const WhatIfCurve& curve : answer.curves) {
    for (const std::string& assumption : shared_assumptions(curve.points)) {
      text += fmt::format("assumed for {}: {}\n", applied_text(curve.applied), assumption);
    }
  }
  return text;
}

std::string to_json(const WhatIfSweepAnswer& answer) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.whatif.sweep/1")
      .field("file", answer.file)
      .field("key", answer.sweep.key)
      .field("values", answer.sweep.values)
      .field("baseline_ms", answer.baseline_ms)
      .key("curves")
      .begin_array();
  for (const WhatIfCurve& curve : answer.curves) {
    json.begin_object().field("applied", curve.applied).key("points").begin_array();
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const WhatIfAnswer& point = curve.points[i];
      json.begin_object()
          .field("value", answer.sweep.values[i])
          .field("predicted_ms", point.predicted_ms)
          .field("low_ms", point.low_ms)
          .field("high_ms", point.high_ms)
          .field("predicted_gpu_ms", point.predicted_gpu_ms)
          .field("assumptions", point.assumptions)
          .end_object();
    }
    json.end_array().end_object();
  }
  return json.end_array().end_object().take();
}

std::string to_csv(const WhatIfSweepAnswer& answer) {
  std::string text = csv_cell(answer.sweep.key) + ",applied,baseline_ms,predicted_ms,low_ms,high_ms,predicted_gpu_ms\n";
  for (const WhatIfCurve& curve : answer.curves) {
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const WhatIfAnswer& point = curve.points[i];
      text +=
          fmt::format("{},{},{},{},{},{},{}\n", csv_cell(answer.sweep.values[i]), csv_cell(applied_text(curve.applied)),
                      answer.baseline_ms, point.predicted_ms, point.low_ms, point.high_ms, point.predicted_gpu_ms);
    }
  }
  return text;
}

std::string to_svg(const WhatIfSweepAnswer& answer) {
  const size_t values = answer.sweep.values.size();
  svg::Picture picture(900, 520 + 20 * static_cast<double>(answer.curves.size()));
  picture.heading(kSweepPlot.left, "Iteration time over " + answer.sweep.key,
                  fmt::format("{}; grey: nothing applied", svg::shortened(answer.file, 90)));
  picture.frame(kSweepPlot, "");
  const std::vector<double> ticks = svg::round_ticks(longest_ms(answer));
  const double top = std::max(longest_ms(answer), ticks.back());
  const auto across = [&](size_t i) {
    return values == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(values - 1);
  };
  for (const double tick : ticks) picture.tick_left(kSweepPlot, tick / top, fmt::format("{:g} ms", tick));
  for (size_t i = 0; i < values; ++i) picture.tick_below(kSweepPlot, across(i), answer.sweep.values[i]);
  const double alone = kSweepPlot.y(answer.baseline_ms / top);
  picture.line({kSweepPlot.left, alone}, {kSweepPlot.right(), alone},
               {.colour = svg::kGrey, .width = 2, .dash = "6 3"});
  for (size_t c = 0; c < answer.curves.size(); ++c) {
    const WhatIfCurve& curve = answer.curves[c];
    std::vector<svg::Point> points;
    for (size_t i = 0; i < values; ++i) {
      points.emplace_back(kSweepPlot.x(across(i)), kSweepPlot.y(curve.points[i].predicted_ms / top));
    }
    picture.curve(points, svg::line_of(c));
    for (size_t i = 0; i < values; ++i) {
      picture.dot(points[i], svg::line_of(c).colour,
                  fmt::format("{}: {:.1f} ms", answer.sweep.values[i], curve.points[i].predicted_ms));
    }
    picture.legend_line({kSweepPlot.left, kSweepPlot.bottom() + 60 + 20 * static_cast<double>(c)}, svg::line_of(c),
                        applied_text(curve.applied));
  }
  return picture.document();
}

}  // namespace forerun
