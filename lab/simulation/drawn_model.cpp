#include "lab/simulation/drawn_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/simulation/random_network.h"

namespace forerun::simulation {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Layers = std::vector<int64_t>;

// Parameters of one model as the zoo takes them.
class Parameters {
 public:
  template <class T>
  Parameters& set(const char* name, const T& value) {
    settings_.emplace_back(name, fmt::format("{}", value));
    return *this;
  }
  Parameters& set(const char* name, const Layers& list) {
    settings_.emplace_back(name, fmt::format("{}", fmt::join(list, ",")));
    return *this;
  }
  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
};

double rounded(double value, double step = 0.01) { return std::round(value / step) * step; }

// --- inputs

int64_t image_size(Load load, Drawing& draw, int64_t most = 320) {
  const int64_t low = load == Load::light ? 64 : load == Load::full ? 96 : 160;
  const int64_t high = std::min<int64_t>(load == Load::light ? 224 : 320, most);
  const double kind = draw.uniform();
  if (kind < 0.2 && high >= 224) return 224;
  if (kind < 0.3) return draw.integer(low, high);
  return 16 * draw.integer(low / 16, high / 16);
}

void set_image(Parameters& parameters, Load load, Drawing& draw) {
  parameters.set("image", image_size(load, draw))
      .set("channels", draw.weighted<int>({{3, 0.8}, {1, 0.08}, {4, 0.07}, {8, 0.05}}))
      .set("classes", draw.weighted<int>({{1000, 0.6}, {100, 0.15}, {10, 0.15}, {365, 0.1}}));
}

void set_tokens(Parameters& parameters, Load load, Drawing& draw, int64_t usual_vocabulary, int64_t longest = 1024) {
  const int64_t low = load == Load::light ? 32 : load == Load::full ? 64 : 128;
  const int64_t high = std::min<int64_t>(load == Load::light ? 256 : 1024, longest);
  int64_t length = draw.log_integer(low, high);
  if (draw.chance(0.7)) length = std::max<int64_t>(8, length - length % 8);
  int64_t vocabulary = draw.chance(0.5) ? usual_vocabulary : draw.log_integer(1000, 64000);
  if (draw.chance(0.6)) vocabulary -= vocabulary % 8;
  parameters.set("length", length).set("vocab", vocabulary);
}

// --- parts of models

// Blocks of each stage: in two of five draws those of a published model, else up to `most` of each.
Layers stages(Drawing& draw, const std::vector<Layers>& published, const Layers& most) {
  if (draw.chance(0.4)) return draw.one_of(published);
  Layers layers;
  for (const int64_t limit : most) layers.push_back(draw.log_integer(1, limit));
  return layers;
}

// A number of attention heads and the width they make.
std::pair<int64_t, int64_t> attention_heads(Drawing& draw, int64_t low, int64_t high) {
  const int64_t heads = draw.log_integer(low, high);
  return {heads,
          heads * draw.weighted<int64_t>({{64, 0.6}, {32, 0.1}, {48, 0.05}, {80, 0.05}, {96, 0.05}, {128, 0.15}})};
}

int64_t inner_width(Drawing& draw, int64_t width) {
  return draw.chance(0.6) ? 4 * width : draw.log_multiple(256, 6144, 64);
}

double usual_dropout(Drawing& draw) { return draw.chance(0.7) ? 0.1 : 0.0; }

// --- families

using Sampler = Parameters (*)(Load load, Drawing& draw);

template <Sampler own>
Parameters of_images(Load load, Drawing& draw) {
  Parameters parameters = own(load, draw);
  set_image(parameters, load, draw);
  return parameters;
}

const std::vector<Layers> kResNets = {{2, 2, 2, 2}, {3, 4, 6, 3}, {3, 4, 23, 3}, {3, 8, 36, 3}};

Parameters resnet(Load /*load*/, Drawing& draw) {
  const int kind = draw.weighted<int>({{0, 0.35}, {1, 0.4}, {2, 0.25}});  // basic, bottleneck, grouped
  Parameters parameters;
  parameters.set("block", kind == 0 ? "basic" : "bottleneck").set("layers", stages(draw, kResNets, {8, 8, 24, 6}));
  if (kind == 1 && draw.chance(0.5)) parameters.set("width", draw.log_multiple(32, 160, 8));
  if (kind == 2) {
    const auto groups = draw.one_of<int64_t>({2, 4, 8, 16, 32, 64});
    parameters.set("groups", groups)
        .set("width", std::max<int64_t>(1, draw.one_of<int64_t>({64, 128, 192, 256}) / groups));
  }
  return parameters;
}

Parameters wide_resnet(Load /*load*/, Drawing& draw) {
  return Parameters()
      .set("layers", stages(draw, {{3, 4, 6, 3}, {3, 4, 23, 3}}, {6, 8, 20, 5}))
      .set("width", draw.log_multiple(96, 320, 16));
}

Parameters alexnet(Load /*load*/, Drawing& draw) {
  return Parameters()
      .set("mult", draw.chance(0.5) ? 1.0 : rounded(draw.uniform(0.25, 2.5)))
      .set("fc", draw.chance(0.8) ? draw.log_multiple(512, 8192, 256) : draw.log_integer(400, 6000));
}

Parameters densenet(Load /*load*/, Drawing& draw) {
  const int64_t growth = draw.log_multiple(8, 64, 4);
  const Layers most = draw.one_of<Layers>({{12, 16, 32, 24}, {16, 24, 24}, {8, 12, 16, 12, 8}});
  return Parameters()
      .set("layers", stages(draw, {{6, 12, 24, 16}, {6, 12, 36, 24}, {6, 12, 32, 32}, {6, 12, 48, 32}}, most))
      .set("growth", growth)
      .set("init", draw.chance(0.5) ? 2 * growth : draw.log_multiple(16, 128, 8))
      .set("bn_size", draw.one_of<int>({4, 4, 4, 2, 3}));
}

Parameters mnasnet(Load /*load*/, Drawing& draw) {
  return Parameters().set("alpha",
                          draw.chance(0.6) ? draw.one_of({0.5, 0.75, 1.0, 1.3}) : rounded(draw.uniform(0.35, 2.5)));
}

Parameters efficientnet(Load /*load*/, Drawing& draw) {
  const double depth = draw.uniform(0.4, 3.2);
  return Parameters().set("w", rounded(draw.uniform(0.5, 2.2))).set("d", rounded(depth, 0.1));
}

Parameters convnext(Load /*load*/, Drawing& draw) {
  return Parameters()
      .set("dim", draw.chance(0.5) ? draw.one_of<int64_t>({96, 128, 192}) : draw.log_multiple(24, 256, 8))
      .set("layers", stages(draw, {{3, 3, 9, 3}, {3, 3, 27, 3}, {2, 2, 6, 2}}, {4, 5, 27, 4}));
}

Parameters mobilenet_v2(Load /*load*/, Drawing& draw) {
  return Parameters().set("width_mult",
                          draw.chance(0.5) ? draw.one_of({0.5, 1.0, 1.4}) : rounded(draw.uniform(0.35, 2.5)));
}

Parameters mobilenet_v3(Load /*load*/, Drawing& draw) {
  return Parameters()
      .set("size", draw.chance(0.5) ? "large" : "small")
      .set("width_mult", draw.chance(0.3) ? 0.75 : rounded(draw.uniform(0.5, 2.5)));
}

Parameters randwire(Load /*load*/, Drawing& draw) {
  return Parameters()
      .set("kind", draw.one_of({"ws", "er", "ba"}))
      .set("nodes", draw.integer(8, 40))
      .set("ch", draw.chance(0.4) ? draw.one_of<int64_t>({78, 109}) : draw.log_integer(16, 128))
      .set("stages", draw.weighted<int>({{3, 0.35}, {4, 0.45}, {5, 0.2}}))
      .set("seed", draw.integer(1'000'000, 999'000'000));  // those that are measured lie below
}

Parameters unet(Load load, Drawing& draw) {
  return Parameters()
      .set("width", draw.chance(0.6) ? draw.one_of<int64_t>({64, 32, 16}) : draw.log_multiple(16, 96, 8))
      .set("depth", draw.weighted<int>({{4, 0.5}, {3, 0.25}, {5, 0.15}, {2, 0.1}}))
      .set("image", image_size(load, draw))
      .set("channels", draw.chance(0.7) ? 3 : 1)
      .set("classes", draw.one_of({2, 2, 6, 19, 21}));
}

Parameters transformer(Load load, Drawing& draw) {
  const auto [heads, width] = attention_heads(draw, 2, 16);
  Parameters parameters;
  parameters.set("d", width)
      .set("heads", heads)
      .set("enc", draw.log_integer(1, 12))
      .set("dec", draw.log_integer(1, 12))
      .set("ff", inner_width(draw, width));
  set_tokens(parameters, load, draw, 32000, 512);
  return parameters;
}

Parameters recurrent(Load load, Drawing& draw) {
  const int64_t hidden =
      draw.chance(0.7) ? draw.one_of<int64_t>({128, 200, 256, 512, 650, 1024, 1500}) : draw.log_integer(48, 2048);
  Parameters parameters;
  parameters.set("d", draw.chance(0.4) ? hidden : draw.log_multiple(64, 1024, 32))
      .set("h", hidden)
      .set("layers", draw.log_integer(1, 16))
      .set("stack", draw.chance(0.4));
  set_tokens(parameters, load, draw, 10000, 512);
  return parameters;
}

Parameters bert(Load load, Drawing& draw) {
  const auto [heads, width] = attention_heads(draw, 2, 16);
  Parameters parameters;
  parameters.set("hidden", width)
      .set("layers", draw.log_integer(2, 24))
      .set("heads", heads)
      .set("intermediate", inner_width(draw, width))
      .set("dropout", usual_dropout(draw));
  if (draw.chance(0.2)) parameters.set("head", "classifier").set("labels", draw.one_of({2, 3, 10}));
  set_tokens(parameters, load, draw, 30522, 512);
  return parameters;
}

Parameters gpt2(Load load, Drawing& draw) {
  const auto [heads, width] = attention_heads(draw, 2, 25);
  Parameters parameters;
  parameters.set("width", width)
      .set("layers", draw.log_integer(2, 36))
      .set("heads", heads)
      .set("dropout", usual_dropout(draw));
  if (draw.chance(0.3)) parameters.set("inner", inner_width(draw, width));
  set_tokens(parameters, load, draw, 50257);
  return parameters;
}

Parameters llama(Load load, Drawing& draw) {
  const auto [heads, width] = attention_heads(draw, 4, 32);
  const auto shared = draw.one_of<int64_t>({1, 2, 4});
  Parameters parameters;
  parameters.set("hidden", width)
      .set("intermediate", draw.chance(0.5) ? (width * 8 / 3 + 63) / 64 * 64 : draw.log_multiple(512, 12288, 256))
      .set("layers", draw.log_integer(2, 32))
      .set("heads", heads)
      .set("kv_heads", heads % shared == 0 ? heads / shared : heads)
      .set("tied", draw.chance(0.3));
  set_tokens(parameters, load, draw, 32000, 2048);
  return parameters;
}

Parameters t5(Load load, Drawing& draw) {
  const auto heads = draw.one_of<int64_t>({4, 6, 8, 12, 16});
  const auto head = draw.one_of<int64_t>({64, 64, 32});
  const int64_t width = draw.chance(0.7) ? heads * head : draw.log_multiple(128, 1024, 64);
  Parameters parameters;
  parameters.set("d_model", width)
      .set("d_kv", head)
      .set("d_ff", inner_width(draw, width))
      .set("layers", draw.log_integer(2, 18))
      .set("decoder_layers", draw.log_integer(2, 18))
      .set("heads", heads)
      .set("dropout", usual_dropout(draw));
  set_tokens(parameters, load, draw, 32128, 512);
  return parameters;
}

Parameters dlrm(Load /*load*/, Drawing& draw) {
  const auto widths = [&](int64_t most) {
    Layers list(static_cast<size_t>(draw.integer(1, 4)));
    for (int64_t& width : list) width = draw.log_multiple(64, most, 64);
    return list;
  };
  const int64_t dim = draw.log_multiple(8, 128, 8);
  Layers rows(static_cast<size_t>(draw.integer(4, 40)));
  for (int64_t& count : rows) count = draw.log_integer(4, std::min<int64_t>(20'000'000, 125'000'000 / dim));
  return Parameters()
      .set("dim", dim)
      .set("pooling", draw.chance(0.5) ? 1 : draw.log_integer(2, 40))
      .set("bottom", widths(1024))
      .set("top", widths(2048))
      .set("rows", rows)
      .set("features", draw.chance(0.5) ? 13 : draw.log_integer(4, 512));
}

struct FamilyEntry {
  const char* name;
  Sampler sampler;
  double batch = 1;  // factor of the usual batch sizes: above 1 where a sample costs little
};

constexpr FamilyEntry kFamilies[] = {{"resnet", of_images<resnet>},
                                     {"wide_resnet", of_images<wide_resnet>, 0.7},
                                     {"alexnet", of_images<alexnet>, 4},
                                     {"densenet", of_images<densenet>, 0.6},
                                     {"mnasnet", of_images<mnasnet>},
                                     {"efficientnet", of_images<efficientnet>, 0.6},
                                     {"convnext", of_images<convnext>, 0.5},
                                     {"mobilenet_v2", of_images<mobilenet_v2>},
                                     {"mobilenet_v3", of_images<mobilenet_v3>, 1.5},
                                     {"unet", unet, 0.15},
                                     {"transformer", transformer, 0.3},
                                     {"lstm", recurrent},
                                     {"rnn", recurrent},
                                     {"bert", bert, 0.3},
                                     {"gpt2", gpt2, 0.15},
                                     {"llama", llama, 0.1},
                                     {"t5", t5, 0.2},
                                     {"dlrm", dlrm, 16},
                                     {"randwire", of_images<randwire>, 0.6}};
constexpr const char* kRandom = "random";
constexpr int kRandomShare = 9;  // times as often as one family of the zoo

// Log-uniform; every second one is rounded to a multiple of 8 or a power of two. Batch norm asks for two.
int64_t batch_size(double factor, Load load, Drawing& draw) {
  const double low = load == Load::light ? 1 : load == Load::full ? 24 : 192;
  const double high = load == Load::light ? 64 : load == Load::full ? 1024 : 8192;
  const int64_t least = std::max<int64_t>(2, std::llround(low * std::min(1.0, factor)));
  int64_t batch = draw.log_integer(least, std::max<int64_t>(least + 2, std::llround(high * factor)));
  if (draw.chance(0.5))
    batch = batch >= 24 ? 8 * ((batch + 4) / 8) : int64_t{1} << (63 - __builtin_clzll(static_cast<uint64_t>(batch)));
  return std::max<int64_t>(batch, 2);
}

}  // namespace

const std::vector<std::string>& drawn_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const FamilyEntry& family : kFamilies) list.emplace_back(family.name);
    list.insert(list.end(), kRandomShare, kRandom);
    return list;
  }();
  return names;
}

Result<zoo::Model> draw_model(const std::string& family, Load load, Drawing& drawing) {
  for (const FamilyEntry& entry : kFamilies) {
    if (family != entry.name) continue;
    Parameters parameters = entry.sampler(load, drawing);
    parameters.set("batch", batch_size(entry.batch, load, drawing));
    return zoo::build(family, parameters.settings());
  }
  if (family != kRandom) return Error{"no networks are drawn of the family '" + family + "'", "", "name another"};
  const bool tokens = drawing.chance(0.3);
  const int64_t batch = batch_size(tokens ? 0.3 : 1, load, drawing);
  return tokens ? random_token_network(batch, drawing)
                : random_image_network(batch, image_size(load, drawing), drawing);
}

}  // namespace forerun::simulation
