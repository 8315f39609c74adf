// The timeline as a picture: areas by kind one above the other, phases along the top, the peak marked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/memory_answer.h"
#include "report/memory_timeline.h"
#include "report/svg.h"

namespace forerun {
namespace {

constexpr double kPictureWidth = 1200, kPictureHeight = 620;
constexpr svg::Plot kMemoryPlot{.left = 80, .top = 90, .width = 850, .height = 470};
constexpr svg::Line kReservedLine{.dash = "5 3"};

// From the bottom up: what stays first.
struct UseLayer {
  Use use;
  const char* colour;
};
constexpr UseLayer kLayers[] = {{Use::parameter, svg::kBlue},   {Use::buffer, svg::kSky},
                                {Use::state, svg::kPurple},     {Use::input, svg::kGrey},
                                {Use::workspace, svg::kYellow}, {Use::gradient, svg::kVermilion},
                                {Use::activation, svg::kGreen}, {Use::temporary, svg::kOrange}};

class MemoryPicture {
 public:
  explicit MemoryPicture(const MemoryTimeline& timeline) : timeline_(timeline) {
    for (const MemorySample& sample : timeline.samples) {
      most_ = std::max({most_, sample.total(), sample.reserved});
      for (size_t use = 0; use < kUses; ++use) ever_[use] |= sample.live[use] > 0;
    }
    if (timeline.device_memory.value > 0 &&
        static_cast<double>(timeline.device_memory.value) < 1.6 * static_cast<double>(most_)) {
      shows_device_ = true;
      most_ = std::max(most_, timeline.device_memory.value);
    }
    choose_columns();
  }

  std::string text() {
    picture_.heading(kMemoryPlot.left, timeline_.title,
                     fmt::format("memory over the ops of iteration {}", timeline_.iteration + 1));
    scale();
    areas();
    reserved_line();
    phases();
    peak();
    legend();
    return picture_.document();
  }

 private:
  [[nodiscard]] double x_of(double at) const {
    const auto ops = static_cast<double>(std::max<size_t>(1, timeline_.phases[3]));
    return kMemoryPlot.x(std::clamp(at / ops, 0.0, 1.0));
  }
  [[nodiscard]] double share_of(double bytes) const { return bytes / static_cast<double>(std::max<int64_t>(1, most_)); }
  [[nodiscard]] double y_of(double bytes) const { return kMemoryPlot.y(share_of(bytes)); }

  // One sample a column of half a unit, the largest: thousands of ops still make a small file, and no peak is lost.
  void choose_columns() {
    int64_t column = -1;
    for (size_t i = 0; i < timeline_.samples.size(); ++i) {
      const auto at = static_cast<int64_t>(x_of(timeline_.samples[i].at) * 2);
      if (at != column) {
        shown_.push_back(i);
        column = at;
      } else if (timeline_.samples[i].total() > timeline_.samples[shown_.back()].total()) {
        shown_.back() = i;
      }
    }
  }

  void scale() {
    const double target = static_cast<double>(most_) / 6;
    double step = std::pow(2.0, std::round(std::log2(std::max(1.0, target))));
    while (static_cast<double>(most_) / step > 10) step *= 2;
    for (double bytes = 0; bytes <= static_cast<double>(most_) * 1.0001; bytes += step) {
      picture_.tick_left(kMemoryPlot, share_of(bytes),
                         bytes == 0 ? "0" : size_text(Bytes(static_cast<int64_t>(bytes))));
    }
    const double below = kMemoryPlot.bottom() + 22;
    picture_.text(kMemoryPlot.left, below, "op 0");
    picture_.text(kMemoryPlot.right(), below, fmt::format("op {}", timeline_.phases[3]), {.anchor = "end"});
    if (!shows_device_) return;
    const double y = y_of(static_cast<double>(timeline_.device_memory.value));
    picture_.line({kMemoryPlot.left, y}, {kMemoryPlot.right(), y}, {.colour = svg::kVermilion, .width = 1.5});
    picture_.text(kMemoryPlot.left + 6, y - 5, "the GPU's memory", {.colour = svg::kVermilion});
  }

  void areas() {
    std::vector<double> below(shown_.size(), 0);
    for (const UseLayer& layer : kLayers) {
      if (!ever_[static_cast<size_t>(layer.use)]) continue;
      std::vector<double> above = below;
      for (size_t i = 0; i < shown_.size(); ++i) {
        above[i] += static_cast<double>(timeline_.samples[shown_[i]].live[static_cast<size_t>(layer.use)]);
      }
      std::vector<svg::Point> outline = steps(above);
      const std::vector<svg::Point> bottom = steps(below);
      outline.insert(outline.end(), bottom.rbegin(), bottom.rend());
      picture_.area(outline, layer.colour);
      below = std::move(above);
    }
  }

  // Each value holds until the next sample.
  [[nodiscard]] std::vector<svg::Point> steps(const std::vector<double>& values) const {
    std::vector<svg::Point> points;
    for (size_t i = 0; i < values.size(); ++i) {
      const double y = y_of(values[i]);
      points.emplace_back(i == 0 ? kMemoryPlot.left : x_of(timeline_.samples[shown_[i]].at), y);
      points.emplace_back(i + 1 < values.size() ? x_of(timeline_.samples[shown_[i + 1]].at) : kMemoryPlot.right(), y);
    }
    return points;
  }

  void reserved_line() {
    std::vector<svg::Point> points;
    for (const size_t i : shown_) {
      points.emplace_back(x_of(timeline_.samples[i].at), y_of(static_cast<double>(timeline_.samples[i].reserved)));
    }
    picture_.curve(points, kReservedLine);
  }

  void phases() {
    const char* names[] = {"forward", "backward", "update"};
    for (size_t phase = 0; phase < 3; ++phase) {
      const double begin = x_of(static_cast<double>(timeline_.phases[phase]));
      const double end = x_of(static_cast<double>(timeline_.phases[phase + 1]));
      if (end <= begin) continue;
      picture_.line({begin, kMemoryPlot.top - 14}, {begin, kMemoryPlot.bottom()}, {.colour = "#888888", .dash = "2 3"});
      const bool narrow = end - begin < 70;
      picture_.text(narrow ? kMemoryPlot.right() : (begin + end) / 2, kMemoryPlot.top - 18, names[phase],
                    {.anchor = narrow ? "end" : "middle"});
    }
  }

  void peak() {
    if (timeline_.samples.empty()) return;
    const MemorySample& sample = timeline_.samples[timeline_.peak];
    const svg::Point at(x_of(sample.at), y_of(static_cast<double>(sample.total())));
    picture_.line(at, {at.first, kMemoryPlot.bottom()}, {});
    picture_.dot(at, svg::kInk);
    picture_.text(kMemoryPlot.left, kMemoryPlot.bottom() + 46,
                  fmt::format("Peak {} at op {}: {}", size_text(Bytes(sample.total())),
                              std::max<int64_t>(0, static_cast<int64_t>(sample.at)), timeline_.peak_op));
  }

  void legend() {
    if (timeline_.samples.empty()) return;
    const MemorySample& sample = timeline_.samples[timeline_.peak];
    double y = kMemoryPlot.top + 10;
    picture_.text(kMemoryPlot.right() + 24, y, "at the peak", {.bold = true});
    for (size_t i = std::size(kLayers); i-- > 0;) {
      const auto use = static_cast<size_t>(kLayers[i].use);
      if (!ever_[use]) continue;
      legend_row(y += 24, {.colour = kLayers[i].colour, .width = 0}, name_of(kLayers[i].use), sample.live[use]);
    }
    legend_row(y + 30, kReservedLine, "reserved", sample.reserved);
  }

  void legend_row(double y, const svg::Line& line, std::string_view name, int64_t bytes) {
    picture_.legend_line({kMemoryPlot.right() + 24, y}, line, name);
    picture_.text(kPictureWidth - 20, y, size_text(Bytes(bytes)), {.anchor = "end"});
  }

  const MemoryTimeline& timeline_;
  int64_t most_ = 1;
  bool shows_device_ = false;
  std::array<bool, kUses> ever_ = {};  // whether a use has memory at any time
  std::vector<size_t> shown_;          // samples, one a column
  svg::Picture picture_{kPictureWidth, kPictureHeight};
};

}  // namespace

std::string to_svg(const MemoryTimeline& timeline) { return MemoryPicture(timeline).text(); }

}  // namespace forerun
