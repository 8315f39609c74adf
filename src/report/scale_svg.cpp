// Throughput over the number of GPUs, both on logarithmic axes, beside as many GPUs that never wait for each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/scale.h"
#include "report/svg.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr svg::Plot kScalePlot{.left = 100, .top = 80, .width = 760, .height = 410};

double throughput_of(const scale::Step& step) {
  return step.tokens_per_second > 0 ? step.tokens_per_second : step.samples_per_second;
}

double ideal_throughput_of(const scale::Step& step) { return throughput_of(step) / std::max(step.efficiency, 1e-9); }

class ScalePicture {
 public:
  explicit ScalePicture(const ScaleAnswer& answer) : answer_(answer) {
    for (const scale::Step& step : answer.steps) {
      const auto gpus = static_cast<double>(step.plan.gpus());
      x_.add(gpus);
      y_.add(throughput_of(step));
      y_.add(ideal_throughput_of(step));
    }
    y_.low = std::pow(10, std::floor(std::log10(std::max(y_.low, 1e-3))));
    y_.high = std::pow(10, std::ceil(std::log10(std::max(y_.high, 1e-3) * 1.0001)));
  }

  std::string text() {
    const bool tokens = !answer_.steps.empty() && answer_.steps[0].tokens_per_second > 0;
    picture_.heading(
        kScalePlot.left, fmt::format("{}: {} per second over GPUs", answer_.model, tokens ? "tokens" : "samples"),
        fmt::format("{}, {} a node, {}; grey: GPUs that never wait", answer_.gpu, answer_.node, answer_.between));
    axes();
    curve({.colour = "#999999", .width = 2, .dash = "6 3"}, ideal_throughput_of);
    curve({.colour = svg::kBlue, .width = 2}, throughput_of);
    points();
    return picture_.document();
  }

 private:
  struct Span {
    double low = 1e300, high = 0;
    void add(double value) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    [[nodiscard]] double at(double value) const {
      return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
    }
  };

  [[nodiscard]] svg::Point point_of(const scale::Step& step, double value) const {
    return {kScalePlot.x(x_.at(static_cast<double>(step.plan.gpus()))), kScalePlot.y(y_.at(value))};
  }

  void axes() {
    for (double value = y_.low; value <= y_.high * 1.001; value *= 10) {
      picture_.tick_left(kScalePlot, y_.at(value),
                         value >= 1 ? grouped(static_cast<int64_t>(value + 0.5)) : fmt::format("{:g}", value));
    }
    for (const scale::Step& step : answer_.steps) {
      const int64_t gpus = step.plan.gpus();
      picture_.tick_below(kScalePlot, x_.at(static_cast<double>(gpus)), fmt::format("{}", gpus));
    }
    picture_.text(kScalePlot.x(0.5), kScalePlot.bottom() + 48, "GPUs", {.anchor = "middle"});
  }

  void curve(const svg::Line& line, double (*value)(const scale::Step&)) {
    std::vector<svg::Point> points;
    for (const scale::Step& step : answer_.steps) points.push_back(point_of(step, value(step)));
    picture_.curve(points, line);
  }

  void points() {
    for (const scale::Step& step : answer_.steps) {
      const svg::Point at = point_of(step, throughput_of(step));
      picture_.dot(at, step.fits ? svg::kBlue : svg::kVermilion,
                   fmt::format("{}: {:.1f}/s{}", describe(step.plan), throughput_of(step),
                               step.fits ? "" : ", does not fit in memory"));
      picture_.text(at.first, at.second + 20, fmt::format("{:.0f} %{}", 100 * step.efficiency, step.fits ? "" : " !"),
                    {.anchor = "middle"});
    }
  }

  const ScaleAnswer& answer_;
  Span x_, y_;
  svg::Picture picture_{900, 560};
};

}  // namespace

std::string to_svg(const ScaleAnswer& answer) { return ScalePicture(answer).text(); }

}  // namespace forerun
