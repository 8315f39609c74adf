#include "scale/efficiency.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_file.h"

namespace forerun::scale {
namespace {

constexpr double kOctaves = 0.35;     // over which a correction fades
constexpr double kNoEvidence = 0.02;  // weight of "the formulas are right"

struct NumberField {
  const char* name;
  double Efficiency::*value;
};
constexpr NumberField kNumbers[] = {{"gemm", &Efficiency::gemm},
                                    {"attention", &Efficiency::attention},
                                    {"misaligned", &Efficiency::misaligned},
                                    {"hopper", &Efficiency::hopper},
                                    {"score_bytes", &Efficiency::score_bytes},
                                    {"elementwise", &Efficiency::elementwise},
                                    {"loss_bytes", &Efficiency::loss_bytes},
                                    {"update", &Efficiency::update},
                                    {"host_layer_us", &Efficiency::host_layer_us},
                                    {"host_tensor_us", &Efficiency::host_tensor_us},
                                    {"host_head_us", &Efficiency::host_head_us},
                                    {"host_embedding_us", &Efficiency::host_embedding_us},
                                    {"hop_us", &Efficiency::hop_us},
                                    {"zero3_share", &Efficiency::zero3_share},
                                    {"sharpness", &Efficiency::sharpness}};

nlohmann::ordered_json link_json(const LinkEfficiency& link) {
  return {{"call_us", link.call_us}, {"step_us", link.step_us}, {"share", link.share}};
}

}  // namespace

ShapeFactors factors_at(const Efficiency& efficiency, double tokens, double hidden, double tensor) {
  double weight = kNoEvidence;
  double layer = 0;
  double ends = 0;
  for (const ShapeCorrection& shape : efficiency.shapes) {
    const double a = std::log2(tokens / shape.tokens);
    const double b = std::log2(hidden / shape.hidden);
    const double c = std::log2(tensor / shape.tensor);
    const double near = std::exp(-(a * a + b * b + c * c) / (2 * kOctaves * kOctaves));
    weight += near;
    layer += near * std::log(shape.layer);
    ends += near * std::log(shape.ends);
  }
  return {std::exp(layer / weight), std::exp(ends / weight)};
}

Result<Efficiency> read_efficiency(const std::filesystem::path& path) {
  auto file = JsonObject::read(path);
  if (!file) return file.error();
  Efficiency e;
  if (file->text("format") != "scale/1") file->fail("format", "is not \"scale/1\"", "use a file of data/scale");
  e.name = path.stem().string();
  e.source = file->text("source");
  for (const NumberField& field : kNumbers) e.*field.value = file->number(field.name);
  e.fused_attention = file->number("fused_attention", Sign::not_negative) > 0;
  e.links = read_collective_efficiency(*file);
  for (JsonObject& shape : file->objects("shapes")) {
    e.shapes.push_back({shape.number("tokens"), shape.number("hidden"), shape.number("tensor"), shape.number("layer"),
                        shape.number("ends")});
  }
  if (const Status status = file->status(); !status) return status.error();
  return e;
}

std::string to_json(const Efficiency& e) {
  const auto rounded = [](double value) { return std::stod(fmt::format("{:.5g}", value)); };
  nlohmann::ordered_json json = {{"format", "scale/1"}, {"source", e.source}};
  for (const NumberField& field : kNumbers) json[field.name] = rounded(e.*field.value);
  json["fused_attention"] = e.fused_attention ? 1 : 0;
  json["within"] =
      link_json({rounded(e.links.within.call_us), rounded(e.links.within.step_us), rounded(e.links.within.share)});
  json["between"] = link_json(e.links.between);
  json["shapes"] = nlohmann::ordered_json::array();
  for (const ShapeCorrection& s : e.shapes) {
    json["shapes"].push_back({{"tokens", s.tokens},
                              {"hidden", s.hidden},
                              {"tensor", s.tensor},
                              {"layer", rounded(s.layer)},
                              {"ends", rounded(s.ends)}});
  }
  return json.dump(1) + "\n";
}

}  // namespace forerun::scale
