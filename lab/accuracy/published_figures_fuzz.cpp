// Fuzzes the reader of papers' figures (data/papers).
#include <cstdint>
#include <string>

#include "base/check.h"
#include "lab/accuracy/published.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = JsonObject::parse(text, "fuzz");
  if (!parsed.ok()) return 0;
  const auto figures = figures_of_paper(*parsed);
  CHECK(figures.ok() || !figures.error().what.empty(), "an error without what");
  if (!figures.ok()) return 0;
  for (const PublishedFigure& figure : figures->systems) {
    CHECK(figure.mre > 0 && figure.mre <= 1, "an error that is no share of 1");
    CHECK(!training_command(figure).empty(), "a figure without its command");
  }
  return 0;
}
