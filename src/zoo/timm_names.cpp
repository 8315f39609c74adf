#include "zoo/timm_names.h"

#include <algorithm>
#include <iterator>

namespace forerun::zoo {
namespace {

struct TimmName {
  const char* timm;
  const char* zoo;
};

constexpr TimmName kTimmNames[] = {
    {"resnet18", "resnet18"},
    {"resnet34", "resnet34"},
    {"resnet50", "resnet50"},
    {"resnet101", "resnet101"},
    {"resnet152", "resnet152"},
    {"resnext50_32x4d", "resnext50_32x4d"},
    {"resnext101_32x8d", "resnext101_32x8d"},
    {"resnext101_64x4d", "resnext101_64x4d"},
    {"wide_resnet50_2", "wide_resnet50_2"},
    {"wide_resnet101_2", "wide_resnet101_2"},
    {"densenet121", "densenet121"},
    {"densenet161", "densenet161"},
    {"densenet169", "densenet169"},
    {"densenet201", "densenet201"},
    {"convnext_tiny", "convnext_tiny"},
    {"convnext_small", "convnext_small"},
    {"convnext_base", "convnext_base"},
    {"convnext_large", "convnext_large"},
    {"efficientnet_b0", "efficientnet_b0"},
    {"efficientnet_b1", "efficientnet_b1"},
    {"efficientnet_b2", "efficientnet_b2"},
    {"efficientnet_b3", "efficientnet_b3"},
    {"efficientnet_b4", "efficientnet_b4"},
    {"efficientnet_b5", "efficientnet_b5"},
    {"efficientnet_b6", "efficientnet_b6"},
    {"efficientnet_b7", "efficientnet_b7"},
    {"mobilenetv2_100", "mobilenet_v2"},
    {"mobilenetv3_large_100", "mobilenet_v3_large"},
    {"mobilenetv3_small_100", "mobilenet_v3_small"},
    {"mnasnet_050", "mnasnet0_5"},
    {"mnasnet_075", "mnasnet0_75"},
    {"mnasnet_100", "mnasnet1_0"},
    {"inception_v3", "inception_v3"},
    {"regnetx_004_tv", "regnet_x_400mf"},
    {"regnetx_008", "regnet_x_800mf"},
    {"regnetx_016", "regnet_x_1_6gf"},
    {"regnetx_032", "regnet_x_3_2gf"},
    {"regnetx_080", "regnet_x_8gf"},
    {"regnetx_160", "regnet_x_16gf"},
    {"regnetx_320", "regnet_x_32gf"},
    {"regnety_004", "regnet_y_400mf"},
    {"regnety_008_tv", "regnet_y_800mf"},
    {"regnety_016", "regnet_y_1_6gf"},
    {"regnety_032", "regnet_y_3_2gf"},
    {"regnety_080_tv", "regnet_y_8gf"},
    {"regnety_160", "regnet_y_16gf"},
    {"regnety_320", "regnet_y_32gf"},
};

}  // namespace

std::optional<std::string> zoo_name_of_timm(std::string_view name) {
  constexpr std::string_view kLibrary = "timm/";
  if (name.starts_with(kLibrary)) name.remove_prefix(kLibrary.size());
  name = name.substr(0, name.find('.'));
  const auto* found = std::find_if(std::begin(kTimmNames), std::end(kTimmNames),
                                   [&](const TimmName& known) { return known.timm == name; });
  return found == std::end(kTimmNames) ? std::nullopt : std::optional<std::string>(found->zoo);
}

std::vector<std::string> timm_names() {
  std::vector<std::string> names;
  for (const TimmName& known : kTimmNames) names.emplace_back(known.timm);
  return names;
}

}  // namespace forerun::zoo
