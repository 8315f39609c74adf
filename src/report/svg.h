// Picture: what the drawings of answers share. Text is escaped here and nowhere else; colours are those of Okabe and Ito
// (Color Universal Design, 2008), which people with any common kind of colour blindness tell apart, and lines beyond
// them are dashed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forerun::svg {

// Text as it stands in XML: markup is escaped, control characters are left out, and bytes that are no UTF-8 are replaced,
// so that any name gives a picture that can be read.
std::string escaped(std::string_view text);

// At most so many characters, the last of them '~' where some are cut off.
std::string shortened(std::string_view text, size_t most);

inline constexpr size_t kColours = 8;
const char* colour(size_t series);  // of the first series, the second ...; repeats after kColours
inline constexpr const char* kBlue = "#0072b2";
inline constexpr const char* kVermilion = "#d55e00";
inline constexpr const char* kGreen = "#009e73";
inline constexpr const char* kPurple = "#cc79a7";
inline constexpr const char* kOrange = "#e69f00";
inline constexpr const char* kSky = "#56b4e9";
inline constexpr const char* kYellow = "#f0e442";
inline constexpr const char* kGrey = "#bbbbbb";
inline constexpr const char* kInk = "#222222";

struct Line {
  const char* colour = kInk;
  double width = 1;
  const char* dash = "";  // "4 3"; empty: drawn through
};
Line line_of(size_t series);

struct Font {
  const char* anchor = "start";  // middle, end
  const char* colour = kInk;
  double size = 0;  // 0: the picture's
  bool bold = false;
};

using Point = std::pair<double, double>;

// Where values are drawn, in the picture's units.
struct Plot {
  double left = 0, top = 0, width = 0, height = 0;
  [[nodiscard]] double right() const { return left + width; }
  [[nodiscard]] double bottom() const { return top + height; }
  [[nodiscard]] double x(double share) const { return left + width * share; }
  [[nodiscard]] double y(double share) const { return top + height * (1 - share); }
};

class Picture {
 public:
  Picture(double width, double height) : width_(width), height_(height) {}

  void text(double x, double y, std::string_view text, const Font& font = {});
  void line(Point from, Point to, const Line& line);
  void curve(const std::vector<Point>& points, const Line& line);
  void area(const std::vector<Point>& outline, const char* colour);
  void box(const Plot& where, const char* colour);
  // `hint` is shown where the pointer rests.
  void dot(Point at, const char* colour, std::string_view hint = "");

  void heading(double x, std::string_view title, std::string_view below);
  void frame(const Plot& plot, std::string_view title);
  // A tick, its label and, within the plot, a line of the grid; places are shares of the axis.
  void tick_below(const Plot& plot, double share, std::string_view label);
  void tick_left(const Plot& plot, double share, std::string_view label);
  // One line of a legend: a sample of the curve or, where the line's width is 0, a patch of colour.
  void legend_line(Point at, const Line& line, std::string_view name);

  [[nodiscard]] std::string document() const;

 private:
  double width_, height_;
  std::string body_;
};

// 0 and its multiples up to `most`, in steps of 1, 2 or 5 times a power of ten: `fewest` steps at least.
std::vector<double> round_ticks(double most, int fewest = 4);

}  // namespace forerun::svg
