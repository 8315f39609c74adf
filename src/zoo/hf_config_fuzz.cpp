// Fuzzes config.json files: whatever stands in one, it is a model that can be built in a small size or an Error with words.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "zoo/architectures.h"
#include "zoo/zoo.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace forerun;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<zoo::HfConfig> config = zoo::HfConfig::parse(text, "fuzz");
  if (!config.ok()) {
    CHECK(!config.error().what.empty() && config.error().where == "fuzz", "an error without what or where");
    return 0;
  }
  const Result<zoo::DescribedModel> model = zoo::described_model(*config);
  if (!model.ok()) {
    CHECK(!model.error().what.empty() && model.error().where == "fuzz", "an error without what or where");
    return 0;
  }
  if (model->parameters.integer("layers") > 8) return 0;  // nothing new, and slow
  const Result<zoo::Model> built =
      zoo::build_recorded(zoo::kConfigFamily, text, {.kind = model->family.input, .batch = 1, .size = 16});
  if (!built.ok()) CHECK(!built.error().what.empty(), "an error without words");
  return 0;
}
