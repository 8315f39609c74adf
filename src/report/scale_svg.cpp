// Throughput over the number of GPUs, both on logarithmic axes, beside as many GPUs that never wait for each other.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/scale.h"
#include "report/table.h"

namespace forerun {
namespace {

constexpr double kScaleWidth = 900, kScaleHeight = 560;
constexpr double kScaleLeft = 100, kScaleRight = 860, kScaleTop = 80, kScaleBottom = 490;

double throughput_of(const scale::Step& step) {
  return step.tokens_per_second > 0 ? step.tokens_per_second : step.samples_per_second;
}

std::string scale_xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

class ScalePicture {
 public:
  explicit ScalePicture(const ScaleAnswer& answer) : answer_(answer) {
    for (const scale::Step& step : answer.steps) {
      const auto gpus = static_cast<double>(step.plan.gpus());
      const double ideal = throughput_of(step) / std::max(step.efficiency, 1e-9);
      x_.add(gpus);
      y_.add(throughput_of(step));
      y_.add(ideal);
    }
    y_.low = std::pow(10, std::floor(std::log10(std::max(y_.low, 1e-3))));
    y_.high = std::pow(10, std::ceil(std::log10(std::max(y_.high, 1e-3) * 1.0001)));
  }

  std::string text() {
    const bool tokens = !answer_.steps.empty() && answer_.steps[0].tokens_per_second > 0;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"white\"/>\n<text x=\"{2}\" y=\"32\" font-size=\"18\" font-weight=\"bold\">{3}: {4} per second over "
        "GPUs</text>\n<text x=\"{2}\" y=\"54\" fill=\"#555\">{5}, {6} a node, {7}; grey: GPUs that never wait</text>\n",
        kScaleWidth, kScaleHeight, kScaleLeft, scale_xml(answer_.model), tokens ? "tokens" : "samples",
        scale_xml(answer_.gpu), answer_.node, scale_xml(answer_.between));
    axes();
    curve("#bab0ac", true);
    curve("#4e79a7", false);
    points();
    return out_ + "</svg>\n";
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

  [[nodiscard]] double x_at(double gpus) const { return kScaleLeft + (kScaleRight - kScaleLeft) * x_.at(gpus); }
  [[nodiscard]] double y_at(double value) const { return kScaleBottom - (kScaleBottom - kScaleTop) * y_.at(value); }

  void axes() {
    for (double value = y_.low; value <= y_.high * 1.001; value *= 10) {
      out_ += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5}</text>\n",
          kScaleLeft, kScaleRight, y_at(value), kScaleLeft - 8, y_at(value) + 4,
          value >= 1 ? grouped(static_cast<int64_t>(value + 0.5)) : fmt::format("{:g}", value));
    }
    for (const scale::Step& step : answer_.steps) {
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                          x_at(static_cast<double>(step.plan.gpus())), kScaleBottom + 22, step.plan.gpus());
    }
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">GPUs</text>\n", (kScaleLeft + kScaleRight) / 2,
                        kScaleBottom + 48);
  }

  void curve(const char* colour, bool ideal) {
    std::string points;
    for (const scale::Step& step : answer_.steps) {
      const double value = ideal ? throughput_of(step) / std::max(step.efficiency, 1e-9) : throughput_of(step);
      points += fmt::format("{:.1f},{:.1f} ", x_at(static_cast<double>(step.plan.gpus())), y_at(value));
    }
    out_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n", colour, points);
  }

  void points() {
    for (const scale::Step& step : answer_.steps) {
      const double x = x_at(static_cast<double>(step.plan.gpus()));
      const double y = y_at(throughput_of(step));
      out_ += fmt::format(
          "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"4\" fill=\"{2}\"><title>{3}: {4:.1f}/s{5}</title></circle><text "
          "x=\"{0:.1f}\" y=\"{6:.1f}\" text-anchor=\"middle\" fill=\"#333\">{7:.0f} %</text>\n",
          x, y, step.fits ? "#4e79a7" : "#e15759", scale_xml(describe(step.plan)), throughput_of(step),
          step.fits ? "" : ", does not fit in memory", y + 20, 100 * step.efficiency);
    }
  }

  const ScaleAnswer& answer_;
  Span x_, y_;
  std::string out_;
};

}  // namespace

std::string to_svg(const ScaleAnswer& answer) { return ScalePicture(answer).text(); }

}  // namespace forerun
