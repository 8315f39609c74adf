// ConvolutionCases: the memory that cuDNN was measured to take for convolutions, and what that says of others.
//
// cuDNN chooses an algorithm by rules of its own. What it then asks for is mostly copies of input, output and weight in
// another layout, parts of a sum that is split, one product a picture, or a multiple of it all. A convolution that was
// not measured takes the middle of what the nearest measured ones of its kind would take at its size, each read as the
// formula that it fits. Cases carry the model family they were seen in, so that an evaluation can leave a family out;
// single-op measurements belong to none.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "memory/convolution_shape.h"

namespace forerun {

class LineReader;

class ConvolutionCases {
 public:
  // A line a case: pass (f, d, w), family or "-", then numbers. Lines that begin with # are passed over. Takes the file
  // with ".zst" behind its name where there is no other.
  static Result<ConvolutionCases> load(const std::filesystem::path& path);

  // A line a case, from text; `name` stands for the file in errors.
  static Result<ConvolutionCases> parse(std::string_view text, const std::string& name);

  // Bytes; nothing where no convolution of its kind was measured.
  [[nodiscard]] std::optional<int64_t> bytes(ConvolutionPass pass, const ConvolutionShape& shape) const;
  void leave_out(std::string_view family);
  [[nodiscard]] size_t size() const;

 private:
  static constexpr size_t kFeatures = 21;
  using Features = std::array<float, kFeatures>;  // differences add up to a distance
  static constexpr size_t kTelling = 8;
  using Telling = std::array<float, kTelling>;  // the features that tell most, the first among them

  struct Case {
    ConvolutionShape shape;
    int64_t bytes = 0;
    uint32_t family = 0;
  };
  // The cases of a kind in the order in which they are searched: by their features.
  struct Index {
    std::once_flag made;
    std::vector<uint32_t> cases;     // their places as they were read
    std::vector<Features> features;  // of each, together
    std::vector<Telling> telling;    // of each, apart: most cases are passed by after a look at them
  };
  struct Found {
    float distance = 0;
    size_t place = 0;
  };
  static constexpr size_t kNearest = 7;
  using Nearest = std::array<Found, kNearest>;  // nearest first

  static constexpr size_t kKinds = 144;

  static Result<ConvolutionCases> read(LineReader& reader);
  void add(ConvolutionPass pass, const ConvolutionShape& shape, int64_t bytes, std::string_view family);
  static size_t kind_of(ConvolutionPass pass, const ConvolutionShape& shape);
  [[nodiscard]] size_t kind_for(ConvolutionPass pass, const ConvolutionShape& shape) const;
  static Features features_of(ConvolutionPass pass, const ConvolutionShape& shape);
  // Made when it is first asked for: most models have convolutions of few kinds, or none.
  [[nodiscard]] const Index& index_of(size_t kind) const;
  static size_t find(const Index& index, const Features& features, Nearest& nearest);
  static double transferred(const Case& from, const ConvolutionShape& shape, const ConvolutionSizes& sizes);

  // By pass, precision, layout, whether transposed, dense or depthwise or grouped, and whether a tensor is beyond 2 GiB.
  std::array<std::vector<Case>, kKinds> kinds_;
  std::vector<std::string> families_;
  std::shared_ptr<std::array<Index, kKinds>> indices_ = std::make_shared<std::array<Index, kKinds>>();
};

}  // namespace forerun
