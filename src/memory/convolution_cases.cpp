#include "memory/convolution_cases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/recent_results.h"

namespace forerun {
namespace {

constexpr double kFew = 64 * 1024;    // bytes that do not grow with the tensors
constexpr double kAlike = 0.003;      // how far a measured size may lie from its formula
constexpr double kRounded = 2048;     // bytes that a formula leaves out
constexpr double kMostParts = 600;    // of a split sum
constexpr double kLimit = 1LL << 34;  // bytes that cuDNN takes where it asks for as much as it may
constexpr size_t kFewCases = 3;
constexpr double kMostBytes = 1e17;  // bytes
constexpr float kSelf = 0.1F;        // the distance at which a case counts half as much as one at no distance
constexpr std::array<size_t, 8> kTold = {0, 1, 2, 4, 8, 11, 13, 20};  // features that tell most, the first among them
constexpr size_t kMostKept = 4096;                                    // shapes of a generation
constexpr uint32_t kOften = 128;     // times that a kind is searched in order before boxes are made
constexpr size_t kLeast = 64;        // cases of a box that is not divided further
constexpr float kSurely = 1.00001F;  // adding up in another order changes a sum by less
constexpr float kDoublings = 5;      // alignment beyond 32 tells nothing

// How much each feature weighs, in the order in which features_of gives them.
constexpr std::array<std::array<float, 21>, 3> kWeights = {{
    {0.55F, 1.3F,  5.0F, 2.0F, 1.2F, 0.15F, 0.5F, 1.0F, 1.5F, 0.1F, 0.1F,
     1.2F,  0.25F, 0.6F, 1.6F, 0.5F, 0.1F,  0.3F, 0.2F, 0.7F, 0.7F},
    {1.0F, 2.4F, 4.0F, 1.0F, 0.2F, 0.0F, 0.5F, 1.0F, 2.5F, 0.75F, 0.4F,
     2.5F, 0.1F, 0.6F, 0.5F, 0.8F, 0.6F, 0.1F, 3.0F, 1.5F, 0.1F},
    {1.6F, 2.2F, 8.0F, 4.0F, 0.9F, 0.75F, 0.5F, 2.5F, 1.0F, 0.15F, 0.5F,
     0.5F, 0.6F, 0.4F, 0.8F, 0.7F, 0.0F,  0.1F, 0.5F, 0.5F, 0.4F},
}};

float doublings(int64_t value) { return std::log2(static_cast<float>(value) + 1.0F); }

float alignment(int64_t value) {
  if (value <= 0) return 0;
  return std::min(kDoublings, static_cast<float>(std::countr_zero(static_cast<uint64_t>(value))));
}

// All that tells a convolution's memory.
using ShapeKey = std::array<uint32_t, 2 + 2 * 12>;

ShapeKey key_of(ConvolutionPass pass, const ConvolutionShape& s) {
  ShapeKey key{static_cast<uint32_t>(pass),
               (s.half ? 1U : 0U) | (s.channels_last ? 2U : 0U) | (s.transposed ? 4U : 0U)};
  size_t at = 2;
  for (const int64_t value : {s.groups, s.batch, s.channels, s.filters, s.kernel, s.kernel_height, s.stride, s.dilation,
                              s.padding, s.image, s.out_image, s.in_width}) {
    key[at++] = static_cast<uint32_t>(static_cast<uint64_t>(value));
    key[at++] = static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32U);
  }
  return key;
}

bool alike(double measured, double formula) {
  return std::abs(measured - formula) <= std::max(kRounded, kAlike * formula);
}

}  // namespace

ConvolutionSizes sizes_of(const ConvolutionShape& s) {
  ConvolutionSizes sizes;
  sizes.element = s.half ? 2 : 4;
  const int64_t step = s.half ? 8 : 4;
  const int64_t groups = std::max<int64_t>(s.groups, 1);
  const int64_t in = s.channels / groups;
  const int64_t out = s.filters / groups;
  const auto up = [&](int64_t value) {
    const int64_t whole = (value + step - 1) / step * step;
    return static_cast<double>(whole);
  };
  const auto real = [](int64_t value) { return static_cast<double>(value); };
  const double pixels = real(s.batch) * real(s.image) * sizes.element;
  const double out_pixels = real(s.batch) * real(s.out_image) * sizes.element;
  const double window = real(s.kernel) * sizes.element;
  sizes.input = pixels * real(s.channels);
  sizes.output = out_pixels * real(s.filters);
  sizes.weight = window * real(in) * real(out) * real(groups);
  sizes.padded_input = pixels * up(in) * real(groups);
  sizes.padded_output = out_pixels * up(out) * real(groups);
  sizes.padded_weight = window * up(in) * up(out) * real(groups);
  return sizes;
}

struct ConvolutionCases::Known {
  explicit Known(ConvolutionFile from, std::vector<std::string> without = {})
      : file(std::move(from)), left_out(std::move(without)) {}
  ConvolutionFile file;
  std::vector<std::string> left_out;  // families
  std::array<Kind, kConvolutionKinds> kinds;
  std::mutex keeping;
  RecentResults<std::optional<int64_t>> recent{std::tuple_size_v<ShapeKey>, kMostKept};  // guarded by keeping
};

ConvolutionCases::ConvolutionCases(ConvolutionFile file) : known_(std::make_shared<Known>(std::move(file))) {}

Result<ConvolutionCases> ConvolutionCases::load(const std::filesystem::path& path) {
  Result<ConvolutionFile> file = ConvolutionFile::load(path);
  if (!file) return file.error();
  return ConvolutionCases(std::move(*file));
}

Result<ConvolutionCases> ConvolutionCases::parse(std::string_view text, const std::string& name) {
  Result<ConvolutionFile> file = ConvolutionFile::parse(text, name);
  if (!file) return file.error();
  return ConvolutionCases(std::move(*file));
}

namespace {

std::array<float, kTold.size()> telling_of(const std::array<float, 21>& features) {
  std::array<float, kTold.size()> telling;
  for (size_t i = 0; i < kTold.size(); ++i) telling[i] = features[kTold[i]];
  return telling;
}

}  // namespace

ConvolutionCases::Kind& ConvolutionCases::kind(size_t number) const {
  Kind& kind = known_->kinds[number];
  std::call_once(kind.read, [&] {
    struct Placed {
      Features features;
      ConvolutionCase measured;
    };
    std::vector<Placed> placed;
    for (ConvolutionCase& each : known_->file.cases_of(number)) {
      if (std::find(known_->left_out.begin(), known_->left_out.end(), each.family) != known_->left_out.end()) continue;
      placed.push_back({features_of(each.pass, each.shape), std::move(each)});
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Placed& a, const Placed& b) { return a.features < b.features; });
    for (Placed& each : placed) {
      kind.features.push_back(each.features);
      kind.telling.push_back(telling_of(each.features));
      kind.cases.push_back(std::move(each.measured));
    }
  });
  return kind;
}

void ConvolutionCases::leave_out(std::string_view family) {
  std::vector<std::string> left_out = known_->left_out;
  left_out.emplace_back(family);
  known_ = std::make_shared<Known>(known_->file, std::move(left_out));
}

size_t ConvolutionCases::size() const {
  size_t sum = 0;
  for (size_t number = 0; number < kConvolutionKinds; ++number) sum += kind(number).cases.size();
  return sum;
}

// cuDNN has other algorithms for tensors beyond 2 GiB, but few of them were measured.
ConvolutionCases::Kind& ConvolutionCases::kind_for(ConvolutionPass pass, const ConvolutionShape& shape) const {
  const size_t number = convolution_kind(pass, shape);
  Kind& same = kind(number);
  if (same.cases.size() >= kFewCases) return same;
  Kind& other = kind(number ^ 1U);
  return same.cases.size() < std::min(kFewCases, other.cases.size()) ? other : same;
}

ConvolutionCases::Features ConvolutionCases::features_of(ConvolutionPass pass, const ConvolutionShape& s) {
  const int64_t groups = std::max<int64_t>(s.groups, 1);
  const int64_t in = s.channels / groups;
  const int64_t out = s.filters / groups;
  const int64_t height = std::max<int64_t>(s.kernel_height, 1);
  const int64_t step = s.half ? 8 : 4;
  Features features = {doublings(s.batch),
                       doublings(height),
                       doublings(s.stride),
                       in == 1 ? 1.0F : 0.0F,
                       alignment(in),
                       doublings(in) + doublings(out),
                       doublings(s.batch) + doublings(s.out_image),
                       doublings(s.padding),
                       doublings(s.kernel / height),
                       doublings(s.out_image),
                       doublings(in),
                       doublings(out),
                       doublings(s.image),
                       alignment(out),
                       doublings(s.dilation),
                       doublings(groups),
                       s.out_image % 4 == 0 ? 1.0F : 0.0F,
                       s.out_image % 8 == 0 ? 1.0F : 0.0F,
                       in % step == 0 ? 1.0F : 0.0F,
                       out % step == 0 ? 1.0F : 0.0F,
                       doublings(in) + doublings(s.kernel)};
  const auto& weights = kWeights[static_cast<size_t>(pass)];
  for (size_t i = 0; i < kFeatures; ++i) features[i] *= weights[i];
  return features;
}

// Goes outwards from where the first feature is the same, until that feature alone is too far away; cases whose first
// feature is equal lie together and are looked at in one go.
size_t ConvolutionCases::find(const Kind& kind, const Features& wanted, Nearest& nearest) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  const std::vector<Telling>& cases = kind.telling;
  const Telling telling = telling_of(wanted);
  nearest.fill({.distance = kFar});
  const auto look_at = [&](size_t at) {
    const float worst = nearest.back().distance;
    std::array<float, 4> sums;
    for (size_t i = 0; i < 4; ++i) {
      sums[i] = std::abs(cases[at][i] - telling[i]) + std::abs(cases[at][i + 4] - telling[i + 4]);
    }
    if ((sums[0] + sums[1]) + (sums[2] + sums[3]) >= worst * kSurely) return;
    const Features& each = kind.features[at];
    float distance = 0;
    for (size_t i = 0; i < kFeatures; ++i) distance += std::abs(each[i] - wanted[i]);
    if (distance >= worst) return;
    size_t place = kNearest - 1;
    for (; place > 0 && nearest[place - 1].distance > distance; --place) nearest[place] = nearest[place - 1];
    nearest[place] = {distance, at};
  };
  const auto start = std::lower_bound(cases.begin(), cases.end(), wanted[0],
                                      [](const Telling& each, float value) { return each[0] < value; });
  auto above = static_cast<size_t>(start - cases.begin());
  size_t below = above;
  while (below > 0 || above < cases.size()) {
    const float up = above < cases.size() ? cases[above][0] - wanted[0] : kFar;
    const float down = below > 0 ? wanted[0] - cases[below - 1][0] : kFar;
    if (std::min(up, down) >= nearest.back().distance) break;
    if (up <= down) {
      const float same = cases[above][0];
      for (; above < cases.size() && cases[above][0] == same; ++above) look_at(above);
    } else {
      const float same = cases[below - 1][0];
      for (; below > 0 && cases[below - 1][0] == same; --below) look_at(below - 1);
    }
  }
  return std::min(cases.size(), kNearest);
}

void ConvolutionCases::make_boxes(Kind& kind) {
  kind.placed.resize(kind.features.size());
  std::iota(kind.placed.begin(), kind.placed.end(), 0U);
  kind.boxes.push_back({.low = {}, .high = {}, .begin = 0, .end = static_cast<uint32_t>(kind.placed.size())});
  for (size_t number = 0; number < kind.boxes.size(); ++number) {
    Box box = kind.boxes[number];
    if (box.begin == box.end) continue;
    box.low = box.high = kind.features[kind.placed[box.begin]];
    for (uint32_t i = box.begin; i < box.end; ++i) {
      const Features& each = kind.features[kind.placed[i]];
      for (size_t f = 0; f < kFeatures; ++f) {
        box.low[f] = std::min(box.low[f], each[f]);
        box.high[f] = std::max(box.high[f], each[f]);
      }
    }
    size_t widest = 0;
    for (size_t f = 0; f < kFeatures; ++f) {
      if (box.high[f] - box.low[f] > box.high[widest] - box.low[widest]) widest = f;
    }
    if (box.end - box.begin > kLeast && box.high[widest] > box.low[widest]) {
      const uint32_t middle = box.begin + (box.end - box.begin) / 2;
      const auto at = [&](uint32_t place) { return kind.placed.begin() + place; };
      std::nth_element(at(box.begin), at(middle), at(box.end), [&](uint32_t a, uint32_t b) {
        return std::pair(kind.features[a][widest], a) < std::pair(kind.features[b][widest], b);
      });
      box.halves = static_cast<uint32_t>(kind.boxes.size());
      kind.boxes.push_back({.low = {}, .high = {}, .begin = box.begin, .end = middle});
      kind.boxes.push_back({.low = {}, .high = {}, .begin = middle, .end = box.end});
    } else {
      box.rows = static_cast<uint32_t>(kind.rows.size());
      for (uint32_t first = box.begin; first < box.end; first += kAbreast) {
        Row& row = kind.rows.emplace_back();
        for (size_t i = 0; i < kAbreast; ++i) {  // the last case fills the row up
          const Features& features = kind.features[kind.placed[std::min<size_t>(first + i, box.end - 1)]];
          for (size_t f = 0; f < kFeatures; ++f) row[f][i] = features[f];
        }
      }
    }
    kind.boxes[number] = box;
  }
}

namespace {

// How far the nearest point of a box is at the least, but for the order of adding up.
float distance_to(const std::array<float, 21>& low, const std::array<float, 21>& high,
                  const std::array<float, 21>& wanted) {
  const auto outside = [&](size_t f) { return std::max(std::max(low[f] - wanted[f], wanted[f] - high[f]), 0.0F); };
  std::array<float, 4> sums{};
  for (size_t f = 0; f < 20; f += 4) {
    for (size_t i = 0; i < 4; ++i) sums[i] += outside(f + i);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]) + outside(20);
}

}  // namespace

// Nearer boxes first; a box that is farther away than the last of the nearest is passed by with all in it. Of cases that are equally far
// those are taken that a search in order meets first.
size_t ConvolutionCases::find_boxed(const Kind& kind, const Features& wanted, Nearest& nearest) {
  constexpr float kFar = std::numeric_limits<float>::infinity();
  nearest.fill({.distance = kFar, .place = kind.features.size()});
  // When a search in order meets it: how far its first feature is, those above first, then outwards.
  const auto met = [&](size_t place) {
    if (place == kind.features.size()) return std::tuple(kFar, true, int64_t{0});  // no case
    const float first = kind.telling[place][0];
    const bool below = first < wanted[0];
    const auto outwards = static_cast<int64_t>(place);
    return std::tuple(below ? wanted[0] - first : first - wanted[0], below, below ? -outwards : outwards);
  };
  const auto before = [&](const Found& a, const Found& b) {
    if (a.distance != b.distance) return a.distance < b.distance;
    return met(a.place) < met(b.place);
  };
  const auto take = [&](const Found& found) {
    if (!before(found, nearest.back())) return;
    size_t at = kNearest - 1;
    for (; at > 0 && before(found, nearest[at - 1]); --at) nearest[at] = nearest[at - 1];
    nearest[at] = found;
  };
  // Cases from `first` on. Of each, features are added up in their order, as in a search in order.
  const auto look_at_row = [&](const Row& row, uint32_t first, uint32_t end) {
    constexpr size_t kSome = 9;  // after which most are too far already
    std::array<float, kAbreast> sums{};
    const auto add = [&](size_t from, size_t to) {
      for (size_t f = from; f < to; ++f) {
        for (size_t i = 0; i < kAbreast; ++i) sums[i] += std::abs(row[f][i] - wanted[f]);
      }
    };
    const auto any_near = [&](float worst) {
      bool any = false;
      for (const float sum : sums) any |= sum <= worst;
      return any;
    };
    const float worst = nearest.back().distance;
    add(0, kSome);
    if (!any_near(worst)) return;
    add(kSome, kFeatures);
    if (!any_near(worst)) return;
    for (uint32_t i = 0; i < kAbreast && first + i < end; ++i) take({sums[i], kind.placed[first + i]});
  };
  struct Open {
    float distance;
    uint32_t box;
  };
  std::array<Open, 64> open;  // boxes are halved: no more than one a level waits
  size_t waiting = 0;
  open[waiting++] = {0, 0};
  while (waiting > 0) {
    const Open next = open[--waiting];
    if (next.distance > nearest.back().distance * kSurely) continue;
    const Box& box = kind.boxes[next.box];
    if (box.halves == 0) {
      size_t row = box.rows;
      for (uint32_t first = box.begin; first < box.end; first += kAbreast)
        look_at_row(kind.rows[row++], first, box.end);
      continue;
    }
    std::array<Open, 2> halves;
    for (uint32_t i = 0; i < 2; ++i) {
      const Box& half = kind.boxes[box.halves + i];
      halves[i] = {distance_to(half.low, half.high, wanted), box.halves + i};
    }
    if (halves[0].distance < halves[1].distance) std::swap(halves[0], halves[1]);
    for (const Open& half : halves) open[waiting++] = half;
  }
  return std::min(kind.features.size(), kNearest);
}

// What the measured case would take at another size: by the first formula that it fits.
double ConvolutionCases::transferred(const ConvolutionCase& from, const ConvolutionShape& shape,
                                     const ConvolutionSizes& to) {
  const auto measured = static_cast<double>(from.bytes);
  if (measured <= kRounded) return measured;
  const ConvolutionSizes sizes = sizes_of(from.shape);
  constexpr std::array<unsigned, 7> kParts = {7, 3, 5, 6, 1, 2, 4};  // bits: 1 input, 2 output, 4 weight
  const auto sum = [](const ConvolutionSizes& of, unsigned parts) {
    return ((parts & 1U) != 0 ? of.padded_input : 0) + ((parts & 2U) != 0 ? of.padded_output : 0) +
           ((parts & 4U) != 0 ? of.padded_weight : 0);
  };
  for (const unsigned parts : kParts) {
    const double formula = sum(sizes, parts);
    if (alike(measured, formula)) return std::max(0.0, measured - formula + sum(to, parts));
  }
  const double pictures = static_cast<double>(from.shape.batch) * sizes.float_weight();
  if (alike(measured, pictures)) return static_cast<double>(shape.batch) * to.float_weight();
  const double copies = sum(sizes, 3);
  const double beyond = measured - copies;
  if (beyond > 0 && beyond < copies && beyond < kMostParts * sizes.float_weight()) {
    return sum(to, 3) + beyond / sizes.float_weight() * to.float_weight();
  }
  const double parts = measured / std::max(sizes.float_weight(), 1.0);
  if (parts > 0.9 && parts < kMostParts && alike(measured, std::round(parts) * sizes.float_weight())) {
    return parts * to.float_weight();
  }
  if (measured <= kFew || alike(measured, kLimit)) return measured;
  return measured / std::max(sizes.all(), 1.0) * to.all();
}

std::optional<int64_t> ConvolutionCases::bytes(ConvolutionPass pass, const ConvolutionShape& shape) const {
  const ShapeKey key = key_of(pass, shape);
  {
    const std::lock_guard lock(known_->keeping);
    if (const auto kept = known_->recent.find(key)) return *kept;
  }
  const bool often = kind_for(pass, shape).asked.fetch_add(1, std::memory_order_relaxed) >= kOften;
  const std::optional<int64_t> found = bytes(pass, shape, often ? Search::boxes : Search::in_order);
  const std::lock_guard lock(known_->keeping);
  known_->recent.keep(key, found);
  return found;
}

std::optional<int64_t> ConvolutionCases::bytes(ConvolutionPass pass, const ConvolutionShape& shape,
                                               Search search) const {
  Nearest nearest;
  Kind& kind = kind_for(pass, shape);
  if (search == Search::boxes) std::call_once(kind.boxed, [&] { make_boxes(kind); });
  const Features features = features_of(pass, shape);
  const size_t count = search == Search::boxes ? find_boxed(kind, features, nearest) : find(kind, features, nearest);
  if (count == 0) return std::nullopt;
  const ConvolutionSizes sizes = sizes_of(shape);
  std::array<std::pair<double, float>, kNearest> values;  // bytes, weight
  float all = 0;
  for (size_t i = 0; i < count; ++i) {
    const float weight = 1 / (kSelf + nearest[i].distance);
    values[i] = {transferred(kind.cases[nearest[i].place], shape, sizes), weight};
    all += weight;
  }
  std::sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  float passed = 0;
  for (size_t i = 0; i < count; ++i) {
    passed += values[i].second;
    if (passed >= all / 2) return static_cast<int64_t>(std::min(values[i].first, kMostBytes));
  }
  return static_cast<int64_t>(std::min(values[count - 1].first, kMostBytes));
}

}  // namespace forerun
