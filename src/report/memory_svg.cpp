// The timeline as a picture: areas by kind one above the other, phases along the top, the peak marked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/memory_answer.h"
#include "report/memory_timeline.h"

namespace forerun {
namespace {

constexpr double kPictureWidth = 1200, kPictureHeight = 620;
constexpr double kPlotLeft = 80, kPlotRight = 930, kPlotTop = 90, kPlotBottom = 560;  // of the plot

// From the bottom up: what stays first.
struct UseLayer {
  Use use;
  const char* colour;
};
constexpr UseLayer kLayers[] = {{Use::parameter, "#4e79a7"},  {Use::buffer, "#9c755f"},    {Use::state, "#b07aa1"},
                                {Use::input, "#bab0ac"},      {Use::workspace, "#edc948"}, {Use::gradient, "#e15759"},
                                {Use::activation, "#59a14f"}, {Use::temporary, "#f28e2b"}};

std::string xml_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

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
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"white\"/>\n",
        kPictureWidth, kPictureHeight);
    out_ += fmt::format("<text x=\"{}\" y=\"32\" font-size=\"18\" font-weight=\"bold\">{}</text>\n", kPlotLeft,
                        xml_text(timeline_.title));
    out_ += fmt::format("<text x=\"{}\" y=\"54\" fill=\"#555\">memory over the ops of iteration {}</text>\n", kPlotLeft,
                        timeline_.iteration + 1);
    scale();
    areas();
    reserved_line();
    phases();
    peak();
    legend();
    return out_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(double at) const {
    const auto ops = static_cast<double>(std::max<size_t>(1, timeline_.phases[3]));
    return kPlotLeft + (kPlotRight - kPlotLeft) * std::clamp(at / ops, 0.0, 1.0);
  }
  [[nodiscard]] double y_of(double bytes) const {
    return kPlotBottom - (kPlotBottom - kPlotTop) * bytes / static_cast<double>(std::max<int64_t>(1, most_));
  }

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
      const double y = y_of(bytes);
      out_ += fmt::format(
          "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>"
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#333\">{}</text>\n",
          kPlotLeft, kPlotRight, y, y, kPlotLeft - 8, y + 4,
          bytes == 0 ? "0" : size_text(Bytes(static_cast<int64_t>(bytes))));
    }
    const size_t ops = timeline_.phases[3];
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#333\">op 0</text>", kPlotLeft, kPlotBottom + 22);
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#333\">op {}</text>\n", kPlotRight,
                        kPlotBottom + 22, ops);
    if (!shows_device_) return;
    const double y = y_of(static_cast<double>(timeline_.device_memory.value));
    out_ += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#c00\" stroke-width=\"1.5\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" fill=\"#c00\">the GPU's memory</text>\n",
        kPlotLeft, kPlotRight, y, y, kPlotLeft + 6, y - 5);
  }

  void areas() {
    std::vector<double> below(shown_.size(), 0);
    for (const UseLayer& layer : kLayers) {
      std::vector<double> above = below;
      for (size_t i = 0; i < shown_.size(); ++i) {
        above[i] += static_cast<double>(timeline_.samples[shown_[i]].live[static_cast<size_t>(layer.use)]);
      }
      out_ += fmt::format("<path fill=\"{}\" d=\"", layer.colour);
      step_path(above, false);
      step_path(below, true);
      out_ += "Z\"/>\n";
      below = above;
    }
  }

  // Along the top of a layer and back along its bottom: each value holds until the next sample.
  void step_path(const std::vector<double>& values, bool back) {
    const size_t count = values.size();
    for (size_t k = 0; k < count; ++k) {
      const size_t i = back ? count - 1 - k : k;
      const double begin = i == 0 ? kPlotLeft : x_of(timeline_.samples[shown_[i]].at);
      const double end = i + 1 < count ? x_of(timeline_.samples[shown_[i + 1]].at) : kPlotRight;
      const char command = !back && k == 0 ? 'M' : 'L';
      out_ += fmt::format("{}{:.1f},{:.1f}L{:.1f},{:.1f}", command, back ? end : begin, y_of(values[i]),
                          back ? begin : end, y_of(values[i]));
    }
  }

  void reserved_line() {
    out_ += "<polyline fill=\"none\" stroke=\"#222\" stroke-dasharray=\"5 3\" points=\"";
    for (const size_t i : shown_) {
      out_ += fmt::format("{:.1f},{:.1f} ", x_of(timeline_.samples[i].at),
                          y_of(static_cast<double>(timeline_.samples[i].reserved)));
    }
    out_ += "\"/>\n";
  }

  void phases() {
    const char* names[] = {"forward", "backward", "update"};
    for (size_t phase = 0; phase < 3; ++phase) {
      const double begin = x_of(static_cast<double>(timeline_.phases[phase]));
      const double end = x_of(static_cast<double>(timeline_.phases[phase + 1]));
      if (end <= begin) continue;
      out_ += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#888\" stroke-dasharray=\"2 3\"/>\n",
          begin, kPlotTop - 14, kPlotBottom);
      const bool narrow = end - begin < 70;
      out_ +=
          fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\" fill=\"#333\">{}</text>\n",
                      narrow ? kPlotRight : (begin + end) / 2, kPlotTop - 18, narrow ? "end" : "middle", names[phase]);
    }
  }

  void peak() {
    if (timeline_.samples.empty()) return;
    const MemorySample& sample = timeline_.samples[timeline_.peak];
    const double x = x_of(sample.at);
    const double y = y_of(static_cast<double>(sample.total()));
    out_ += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2}\" stroke=\"black\"/>"
        "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"4\"/>\n",
        x, y, kPlotBottom);
    out_ += fmt::format("<text x=\"{}\" y=\"{}\">Peak {} at op {}: {}</text>\n", kPlotLeft, kPlotBottom + 46,
                        size_text(Bytes(sample.total())), std::max<int64_t>(0, static_cast<int64_t>(sample.at)),
                        xml_text(timeline_.peak_op));
  }

  void legend() {
    if (timeline_.samples.empty()) return;
    const MemorySample& sample = timeline_.samples[timeline_.peak];
    double y = kPlotTop + 10;
    const double x = kPlotRight + 24;
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" font-weight=\"bold\">at the peak</text>\n", x, y);
    for (size_t i = std::size(kLayers); i-- > 0;) {
      const int64_t bytes = sample.live[static_cast<size_t>(kLayers[i].use)];
      if (!ever_[static_cast<size_t>(kLayers[i].use)]) continue;
      y += 24;
      legend_line(
          x, y,
          fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/>", x, y - 12, kLayers[i].colour),
          std::string(name_of(kLayers[i].use)), bytes);
    }
    y += 30;
    legend_line(x, y,
                fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"#222\" stroke-dasharray=\"5 3\"/>",
                            x, x + 16, y - 5, y - 5),
                "reserved", sample.reserved);
  }

  void legend_line(double x, double y, const std::string& mark, const std::string& name, int64_t bytes) {
    out_ += fmt::format("{}<text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                        mark, x + 22, y, name, kPictureWidth - 20, y, size_text(Bytes(bytes)));
  }

  const MemoryTimeline& timeline_;
  int64_t most_ = 1;
  bool shows_device_ = false;
  std::array<bool, kUses> ever_ = {};  // whether a use has memory at any time
  std::vector<size_t> shown_;          // samples, one a column
  std::string out_;
};

}  // namespace

std::string to_svg(const MemoryTimeline& timeline) { return MemoryPicture(timeline).text(); }

}  // namespace forerun
