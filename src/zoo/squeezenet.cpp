// SqueezeNet 1.0 and 1.1 as torchvision builds them (Iandola et al. 2016).
#include <fmt/format.h>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

TensorId fire(ForwardBuilder& b, std::string_view name, TensorId x, int64_t squeeze, int64_t expand) {
  const Scope scope(b, name);
  x = Conv2d(b, "squeeze", b.extent(x, 1), squeeze, {.kernel = 1})(x);
  x = activate(b, "squeeze_activation", Activation::relu_, x);
  TensorId one = Conv2d(b, "expand1x1", squeeze, expand, {.kernel = 1})(x);
  one = activate(b, "expand1x1_activation", Activation::relu_, one);
  TensorId three = Conv2d(b, "expand3x3", squeeze, expand, {.kernel = 3, .padding = 1})(x);
  three = activate(b, "expand3x3_activation", Activation::relu_, three);
  return b.cat({one, three}, 1);
}

void build_squeezenet(ForwardBuilder& b, const Configuration& c) {
  const std::string& version = c.text("version");
  const bool first = version == "1_0";
  if (!first && version != "1_1") {
    b.fail(fmt::format("there is no SqueezeNet version '{}'", version.substr(0, 20)), "use version=1_0 or version=1_1");
    return;
  }
  // Fire modules by their squeezed channels (they expand to 4 times as many, twice); 0 is a pooling.
  const std::vector<int64_t> steps = first ? std::vector<int64_t>{0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64}
                                           : std::vector<int64_t>{0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64};
  TensorId x = image_input(b, c);
  {
    const Scope features(b, "features");
    const int64_t out = first ? 96 : 64;
    x = Conv2d(b, "0", c.integer("channels"), out, {.kernel = first ? 7 : 3, .stride = 2})(x);
    x = activate(b, "1", Activation::relu_, x);
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string name = std::to_string(i + 2);
      x = steps[i] == 0 ? max_pool(b, name, x, pooling(3, 2, 0, true)) : fire(b, name, x, steps[i], 4 * steps[i]);
    }
  }
  {
    const Scope classifier(b, "classifier");
    x = Dropout(b, "0", c.real("dropout"))(x);
    x = Conv2d(b, "1", 512, c.integer("classes"), {.kernel = 1})(x);
    x = activate(b, "2", Activation::relu_, x);
    x = global_pool(b, "3", x);
  }
  b.result(b.flatten(x, 1));
}

}  // namespace

Family squeezenet_family() {
  return {.name = "squeezenet",
          .description = "SqueezeNet (torchvision)",
          .parameters = with_image_parameters({
              {"version", "1_0", "1_0 or 1_1 (pools earlier, a third of the work)"},
              {"dropout", 0.5, "dropout before the classifier"},
          }),
          .build = build_squeezenet};
}

std::vector<NamedModel> squeezenet_models() {
  return {{"squeezenet1_0", "squeezenet", {{"version", "1_0"}}}, {"squeezenet1_1", "squeezenet", {{"version", "1_1"}}}};
}

}  // namespace forerun::zoo
