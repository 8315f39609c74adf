#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace forerun::svg {
namespace {

constexpr const char* kSeries[] = {kBlue, kVermilion, kGreen, kPurple, kOrange, kSky, kInk, "#8c8c8c"};
static_assert(std::size(kSeries) == kColours);
constexpr const char* kDashes[] = {"", "6 3", "2 3", "8 3 2 3"};
constexpr const char* kGrid = "#e4e4e4";
constexpr const char* kFrame = "#999999";

// Bytes of the UTF-8 character at the front; 0 where there is none.
size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || beyond ? 0 : length;
}

std::string_view entity(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&apos;";
    default: return {};
  }
}

std::string stroke(const Line& line) {
  std::string text = fmt::format("stroke=\"{}\" stroke-width=\"{:g}\"", line.colour, line.width);
  if (*line.dash != '\0') text += fmt::format(" stroke-dasharray=\"{}\"", line.dash);
  return text;
}

// In tenths of a pixel, as pictures are written.
std::pair<int64_t, int64_t> tenths(const Point& point) {
  return {std::llround(10 * point.first), std::llround(10 * point.second)};
}

// Whether b adds nothing between a and c: it lies on their way, along one of the axes.
bool on_the_way(const Point& a, const Point& b, const Point& c) {
  const auto [ax, ay] = tenths(a);
  const auto [bx, by] = tenths(b);
  const auto [cx, cy] = tenths(c);
  const bool upright = ax == bx && bx == cx && (ay - by) * (by - cy) >= 0;
  const bool level = ay == by && by == cy && (ax - bx) * (bx - cx) >= 0;
  return upright || level;
}

// Steps of a series that is finer than the picture are drawn once: a tenth of the text, and the same picture.
std::string joined(const std::vector<Point>& points) {
  std::vector<Point> kept;
  for (const Point& point : points) {
    if (!kept.empty() && tenths(kept.back()) == tenths(point)) continue;
    while (kept.size() >= 2 && on_the_way(kept[kept.size() - 2], kept.back(), point)) kept.pop_back();
    kept.push_back(point);
  }
  std::string text;
  for (const auto& [x, y] : kept) text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", x, y);
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = character_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (const std::string_view instead = entity(text.front()); !instead.empty()) {
      out += instead;
    } else if (length > 1 || static_cast<unsigned char>(text.front()) >= 0x20) {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string shortened(std::string_view text, size_t most) {
  size_t count = 0, kept = 0, end = 0;  // characters, and bytes of all but the last of those that there is room for
  while (end < text.size()) {
    if (++count == most) kept = end;
    if (count > most) return std::string(text.substr(0, kept)) + "~";
    end += std::max<size_t>(character_length(text.substr(end)), 1);
  }
  return std::string(text);
}

const char* colour(size_t series) { return kSeries[series % kColours]; }

Line line_of(size_t series) {
  return {.colour = colour(series), .width = 1.5, .dash = kDashes[series / kColours % std::size(kDashes)]};
}

void Picture::text(double x, double y, std::string_view text, const Font& font) {
  body_ +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"", x, y, font.anchor, font.colour);
  if (font.size > 0) body_ += fmt::format(" font-size=\"{:g}\"", font.size);
  if (font.bold) body_ += " font-weight=\"bold\"";
  body_ += ">" + escaped(text) + "</text>\n";
}

void Picture::line(Point from, Point to, const Line& line) {
  body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from.first, from.second,
                       to.first, to.second, stroke(line));
}

void Picture::curve(const std::vector<Point>& points, const Line& line) {
  body_ += fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", stroke(line), joined(points));
}

void Picture::area(const std::vector<Point>& outline, const char* colour) {
  body_ += fmt::format("<polygon fill=\"{}\" points=\"{}\"/>\n", colour, joined(outline));
}

void Picture::box(const Plot& where, const char* colour) {
  body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", where.left,
                       where.top, where.width, where.height, colour);
}

void Picture::dot(Point at, const char* colour, std::string_view hint) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\">", at.first, at.second, colour);
  if (!hint.empty()) body_ += "<title>" + escaped(hint) + "</title>";
  body_ += "</circle>\n";
}

void Picture::heading(double x, std::string_view title, std::string_view below) {
  text(x, 32, title, {.size = 18, .bold = true});
  text(x, 54, below, {.colour = "#555555"});
}

void Picture::frame(const Plot& plot, std::string_view title) {
  text(plot.left, plot.top - 8, title);
  body_ +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"{}\"/>\n",
                  plot.left, plot.top, plot.width, plot.height, kFrame);
}

void Picture::tick_below(const Plot& plot, double share, std::string_view label) {
  const double x = plot.x(share);
  if (share > 0 && share < 1) line({x, plot.top}, {x, plot.bottom()}, {.colour = kGrid});
  text(x, plot.bottom() + 18, label, {.anchor = "middle"});
}

void Picture::tick_left(const Plot& plot, double share, std::string_view label) {
  const double y = plot.y(share);
  line({plot.left, y}, {plot.right(), y}, {.colour = kGrid});
  text(plot.left - 7, y + 4, label, {.anchor = "end"});
}

void Picture::legend_line(Point at, const Line& line, std::string_view name) {
  if (line.width > 0) {
    this->line({at.first, at.second - 4}, {at.first + 16, at.second - 4}, line);
  } else {
    box({at.first, at.second - 12, 14, 14}, line.colour);
  }
  text(at.first + 22, at.second, name);
}

std::string Picture::document() const {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
             "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             width_, height_) +
         body_ + "</svg>\n";
}

std::vector<double> round_ticks(double most, int fewest) {
  if (!(most > 0) || !std::isfinite(most)) return {0};
  double step = std::pow(10, std::floor(std::log10(most / fewest)));
  for (const double factor : {5.0, 2.0}) {
    if (most / (step * factor) >= fewest) {
      step *= factor;
      break;
    }
  }
  std::vector<double> ticks;
  for (int i = 0; i * step <= most * (1 + 1e-9); ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace forerun::svg
