#include "memory/convolution_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/line_reader.h"

namespace forerun {
namespace {

constexpr size_t kColumns = 16;              // of numbers in a line
constexpr int64_t kLargest = 1LL << 40;      // of a number in a line
constexpr double kShortIndex = 1LL << 31;    // bytes
constexpr size_t kWidths = 3;                // dense, depthwise, grouped
constexpr size_t kSwitches = 4;              // what divides the kinds of each in two
constexpr std::string_view kPasses = "fdw";  // in the order of ConvolutionPass
constexpr size_t kKindsOfPass = kWidths << kSwitches;
static_assert(kConvolutionKinds == kPasses.size() * kKindsOfPass);

// A section has all passes of a kind.
std::string section_of(size_t kind) { return fmt::format("{}", kind % kKindsOfPass); }

std::optional<ConvolutionPass> pass_named(std::string_view text) {
  const size_t pass = text.size() == 1 ? kPasses.find(text[0]) : std::string_view::npos;
  if (pass == std::string_view::npos) return std::nullopt;
  return static_cast<ConvolutionPass>(pass);
}

std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find('\t'), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool take_numbers(std::string_view line, std::array<int64_t, kColumns>& numbers) {
  for (int64_t& number : numbers) {
    const std::string_view word = take_word(line);
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (fault != std::errc() || end != word.data() + word.size() || number < 0 || number > kLargest) return false;
  }
  return line.empty();
}

ConvolutionShape shape_of(const std::array<int64_t, kColumns>& n) {
  ConvolutionShape shape{.half = n[0] != 0, .channels_last = n[1] != 0, .transposed = n[2] != 0};
  shape.groups = std::max<int64_t>(n[3], 1);
  shape.batch = n[4];
  shape.channels = n[5];
  shape.filters = n[6];
  shape.kernel = n[7];
  shape.kernel_height = std::max<int64_t>(n[8], 1);
  shape.stride = n[9];
  shape.dilation = n[10];
  shape.padding = n[11];
  shape.image = n[12];
  shape.out_image = n[13];
  shape.in_width = n[14];
  return shape;
}

std::optional<ConvolutionCase> case_in(std::string_view line) {
  const std::optional<ConvolutionPass> pass = pass_named(take_word(line));
  const std::string_view family = take_word(line);
  std::array<int64_t, kColumns> numbers = {};
  if (!pass || family.empty() || !take_numbers(line, numbers)) return std::nullopt;
  return ConvolutionCase{*pass, shape_of(numbers), numbers[kColumns - 1], std::string(family)};
}

}  // namespace

size_t convolution_kind(ConvolutionPass pass, const ConvolutionShape& s) {
  const size_t width = s.groups <= 1 ? 0 : s.groups == s.channels ? 1 : 2;
  const ConvolutionSizes sizes = sizes_of(s);
  size_t kind = static_cast<size_t>(pass) * kWidths + width;
  for (const bool is : {s.half, s.channels_last, s.transposed, std::max(sizes.input, sizes.output) > kShortIndex}) {
    kind = kind * 2 + (is ? 1 : 0);
  }
  return kind;
}

Result<ConvolutionFile> ConvolutionFile::load(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::exists(path, none)) {
    Result<LineReader> reader = LineReader::open(path.string());
    if (!reader) return reader.error();
    return read(*reader);
  }
  std::filesystem::path packed = path;
  Result<PackedSections> sections = PackedSections::open(packed.replace_extension(".bin"));
  if (!sections) return sections.error();
  ConvolutionFile file;
  file.sections_ = std::move(*sections);
  return file;
}

Result<ConvolutionFile> ConvolutionFile::parse(std::string_view text, const std::string& name) {
  LineReader reader = LineReader::from_text(text, name);
  return read(reader);
}

Result<ConvolutionFile> ConvolutionFile::read(LineReader& reader) {
  ConvolutionFile file;
  while (true) {
    const Result<std::optional<std::string_view>> next = reader.next();
    if (!next) return next.error();
    if (!*next) return file;
    if (is_blank(**next) || (*next)->front() == '#') continue;
    const std::optional<ConvolutionCase> found = case_in(**next);
    if (!found) {
      return Error{.what = fmt::format("not a convolution: a pass (f, d, w), a family and {} numbers", kColumns),
                   .where = fmt::format("{}:{}", reader.name(), reader.line_number()),
                   .remedy = "make the file again: python -m forerun.workspace_fit"};
    }
    file.lines_[convolution_kind(found->pass, found->shape)].append(**next).push_back('\n');
  }
}

std::string ConvolutionFile::lines_of(size_t kind) const {
  if (!sections_) return lines_[kind];
  const std::string name = section_of(kind);
  if (!sections_->has(name)) return {};
  Result<std::string> lines = sections_->unpack(name);
  CHECK(lines.ok(), lines.error().message());
  return std::move(*lines);
}

std::vector<ConvolutionCase> ConvolutionFile::cases_of(size_t kind) const {
  const std::string lines = lines_of(kind);
  std::vector<ConvolutionCase> cases;
  for (std::string_view rest = lines; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (rest.front() == kPasses[kind / kKindsOfPass]) {
      std::optional<ConvolutionCase> found = case_in(rest.substr(0, end));
      CHECK(found, "convolutions were packed that are none");
      cases.push_back(std::move(*found));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return cases;
}

Result<std::string> ConvolutionFile::packed() const {
  CHECK(!sections_, "it is packed already");
  std::vector<std::pair<std::string, std::string>> sections;
  for (size_t kind = 0; kind < kKindsOfPass; ++kind) {
    std::vector<std::string_view> lines;
    for (size_t pass = 0; pass < kPasses.size(); ++pass) {
      for (std::string_view rest = lines_[pass * kKindsOfPass + kind]; !rest.empty();) {
        const size_t end = rest.find('\n') + 1;
        lines.push_back(rest.substr(0, end));
        rest.remove_prefix(end);
      }
    }
    if (lines.empty()) continue;
    // Passes of one convolution beside each other are packed best.
    std::stable_sort(lines.begin(), lines.end(),
                     [](std::string_view a, std::string_view b) { return a.substr(1) < b.substr(1); });
    sections.emplace_back(section_of(kind), fmt::format("{}", fmt::join(lines, "")));
  }
  return packed_sections(sections);
}

}  // namespace forerun
