// ConvolutionFile: the convolutions whose memory was measured, by kind.
//
// As text, a line a case: pass (f, d, w), family or "-", then numbers; lines that begin with # are passed over. Packed
// (base/packed_sections.h), a section of such lines for every kind, all passes of it together: a model asks few kinds, and
// only those are unpacked and read. `forerun-lab calibrate convolutions` packs the text.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/packed_sections.h"
#include "base/result.h"
#include "memory/convolution_shape.h"

namespace forerun {

class LineReader;

struct ConvolutionCase {
  ConvolutionPass pass = ConvolutionPass::convolution;
  ConvolutionShape shape;
  int64_t bytes = 0;
  std::string family;  // that it was seen in; "-": in none
};

// Kinds are told by pass, precision, layout, whether transposed, dense or depthwise or grouped, and whether a tensor is beyond
// 2 GiB: kinds 2n and 2n + 1 differ in the last.
constexpr size_t kConvolutionKinds = 144;
size_t convolution_kind(ConvolutionPass pass, const ConvolutionShape& shape);

class ConvolutionFile {
 public:
  // Text or packed; where there is no such file, the one that ends in ".bin" in its place.
  static Result<ConvolutionFile> load(const std::filesystem::path& path);
  // Text; `name` stands for the file in errors.
  static Result<ConvolutionFile> parse(std::string_view text, const std::string& name);

  // In the file's order.
  [[nodiscard]] std::vector<ConvolutionCase> cases_of(size_t kind) const;
  // The bytes of the packed form, of what was read as text.
  [[nodiscard]] Result<std::string> packed() const;

 private:
  static Result<ConvolutionFile> read(LineReader& reader);
  [[nodiscard]] std::string lines_of(size_t kind) const;

  std::array<std::string, kConvolutionKinds> lines_;  // of text
  std::optional<PackedSections> sections_;            // in their place
};

}  // namespace forerun
