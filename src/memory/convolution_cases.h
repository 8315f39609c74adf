// ConvolutionCases: the memory that cuDNN was measured to take for convolutions, and what that says of others.
//
// cuDNN chooses an algorithm by rules of its own. What it then asks for is mostly copies of input, output and weight in
// another layout, parts of a sum that is split, one product a picture, or a multiple of it all. A convolution that was
// not measured takes the middle of what the nearest measured ones of its kind would take at its size, each read as the
// formula that it fits. Cases carry the model family they were seen in, so that an evaluation can leave a family out;
// single-op measurements belong to none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "memory/convolution_file.h"
#include "memory/convolution_shape.h"

namespace forerun {

class ConvolutionCases {
 public:
  ConvolutionCases() : ConvolutionCases(ConvolutionFile()) {}
  explicit ConvolutionCases(ConvolutionFile file);
  static Result<ConvolutionCases> load(const std::filesystem::path& path);
  static Result<ConvolutionCases> parse(std::string_view text, const std::string& name);

  // Bytes; nothing where no convolution of its kind was measured. What was said last is kept.
  [[nodiscard]] std::optional<int64_t> bytes(ConvolutionPass pass, const ConvolutionShape& shape) const;
  // The same without what is kept, by one way to find the nearest cases: one after the other, or by boxes around those that lie
  // together, which takes a while to make and finds the same.
  enum class Search : uint8_t { in_order, boxes };
  [[nodiscard]] std::optional<int64_t> bytes(ConvolutionPass pass, const ConvolutionShape& shape, Search search) const;
  void leave_out(std::string_view family);
  [[nodiscard]] size_t size() const;

 private:
  static constexpr size_t kFeatures = 21;
  using Features = std::array<float, kFeatures>;  // differences add up to a distance
  static constexpr size_t kTelling = 8;
  using Telling = std::array<float, kTelling>;  // the features that tell most, the first among them

  static constexpr size_t kAbreast = 8;
  using Row = std::array<std::array<float, kAbreast>, kFeatures>;  // of eight cases, each feature together

  // Cases that lie together: between which values their features lie, and which they are.
  struct Box {
    Features low, high;
    uint32_t begin = 0, end = 0;  // places in `placed`
    uint32_t halves = 0;          // the first of two boxes that it is made of; 0: none
    uint32_t rows = 0;            // where it is not divided: the first of its rows
  };
  // The cases of a kind in the order in which they are searched: by their features. Read when the first is asked for: most models
  // have convolutions of few kinds, or none.
  struct Kind {
    std::once_flag read;
    std::vector<ConvolutionCase> cases;
    std::vector<Features> features;  // of each, together
    std::vector<Telling> telling;    // of each, apart: most cases are passed by after a look at them

    // For a kind that is asked often: boxes within boxes, the first of which has all cases, and their cases together.
    std::atomic<uint32_t> asked = 0;
    std::once_flag boxed;
    std::vector<Box> boxes;
    std::vector<uint32_t> placed;  // places among the cases
    std::vector<Row> rows;         // of the boxes that are not divided, eight of `placed` in each
  };
  struct Known;
  struct Found {
    float distance = 0;
    size_t place = 0;
  };
  static constexpr size_t kNearest = 7;
  using Nearest = std::array<Found, kNearest>;  // nearest first

  static Features features_of(ConvolutionPass pass, const ConvolutionShape& shape);
  [[nodiscard]] Kind& kind(size_t number) const;
  [[nodiscard]] Kind& kind_for(ConvolutionPass pass, const ConvolutionShape& shape) const;
  static size_t find(const Kind& kind, const Features& features, Nearest& nearest);
  // The same by boxes.
  static void make_boxes(Kind& kind);
  static size_t find_boxed(const Kind& kind, const Features& features, Nearest& nearest);
  static double transferred(const ConvolutionCase& from, const ConvolutionShape& shape, const ConvolutionSizes& sizes);

  std::shared_ptr<Known> known_;  // shared by copies
};

}  // namespace forerun
