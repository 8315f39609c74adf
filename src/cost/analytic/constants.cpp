#include "cost/analytic/constants.h"

#include "base/json_file.h"

namespace forerun {
namespace {

ClassConstants read_class(JsonObject object, const ClassConstants& otherwise) {
  ClassConstants c;
  c.compute = object.number_or("compute", otherwise.compute);
  c.memory = object.number_or("memory", otherwise.memory);
  c.passes = object.number_or("passes", otherwise.passes);
  c.kernels = object.number_or("kernels", otherwise.kernels, Sign::not_negative);
  c.channels_last = object.number_or("channels_last", otherwise.channels_last);
  c.fixed = nanoseconds_from_us(object.number_or("fixed_us", microseconds(otherwise.fixed), Sign::not_negative));
  return c;
}

void read_products(JsonObject object, AnalyticConstants& constants) {
  for (JsonObject& tile : object.objects("tiles")) {
    constants.tiles.push_back({tile.integer("m"), tile.integer("n"), tile.number("efficiency")});
  }
  if (constants.tiles.empty()) object.fail("tiles", "at least one tile is needed");
  constants.k_step = object.integer("k_step");
  constants.k_step_latency = nanoseconds_from_us(object.number("k_step_latency_us", Sign::not_negative));
  constants.split_k_least = object.integer("split_k_least");
  constants.unaligned = object.number("unaligned");
  constants.layout_passes = object.number("layout_passes", Sign::not_negative);
  constants.layout_kernels = object.number("layout_kernels", Sign::not_negative);
  JsonObject units = object.object("unit_efficiency");
  const auto narrowest = static_cast<size_t>(Unit::fp8_tensor);  // nothing was measured: as bfloat16
  for (size_t i = 0; i < narrowest; ++i) {
    constants.unit_efficiency[i] = units.number(std::string(name_of(static_cast<Unit>(i))));
  }
  constants.unit_efficiency[narrowest] = constants.unit_efficiency[static_cast<size_t>(Unit::bf16_tensor)];
}

}  // namespace

const ClassConstants& AnalyticConstants::of(OpClass cls, std::string_view base) const {
  const auto found = ops.find(base);
  return found != ops.end() ? found->second : classes[static_cast<size_t>(cls)];
}

Result<AnalyticConstants> load_analytic_constants(const std::filesystem::path& path) {
  Result<JsonObject> file = JsonObject::read(path);
  if (!file.ok()) return file.error();
  AnalyticConstants constants;
  const std::string format = file->text("format");
  if (format != "analytic/1") file->fail("format", "unknown format \"" + format + "\"", "known is analytic/1");
  constants.kernel_floor = nanoseconds_from_us(file->number("kernel_floor_us", Sign::not_negative));
  JsonObject cache = file->object("cache");
  constants.cache_share = cache.number("share", Sign::not_negative);
  constants.cache_speedup = cache.number("speedup");
  read_products(file->object("products"), constants);
  JsonObject recurrent = file->object("recurrent");
  constants.persistent_width = recurrent.integer("persistent_width", Sign::not_negative);
  constants.persistent_step = nanoseconds_from_us(recurrent.number("persistent_step_us", Sign::not_negative));
  constants.step = nanoseconds_from_us(recurrent.number("step_us", Sign::not_negative));
  JsonObject foreach = file->object("foreach");
  constants.foreach_chunk = foreach.integer("chunk");
  constants.foreach_blocks = foreach.integer("blocks");
  constants.foreach_tensors = foreach.integer("tensors");
  JsonObject classes = file->object("classes");
  for (size_t i = 0; i < kOpClassCount; ++i) {
    constants.classes[i] = read_class(classes.object(std::string(name_of(static_cast<OpClass>(i)))), {});
  }
  JsonObject ops = file->object("ops");
  for (const std::string& name : ops.keys()) {
    const bool depthwise = name.starts_with("depthwise_convolution");
    const OpClass cls = depthwise ? OpClass::convolution : op_class("aten." + name);
    if (cls == OpClass::opaque) ops.fail(name, "no known op has this name", "give the base name: \"gelu_backward\"");
    constants.ops.emplace(name, read_class(ops.object(name), constants.classes[static_cast<size_t>(cls)]));
  }
  if (!file->status().ok()) return file->status().error();
  return constants;
}

}  // namespace forerun
