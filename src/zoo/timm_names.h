// Names that the timm library gives to convolutional nets of the zoo: the same layers with the same parameters, within 1 % of
// the GPU time and 0.5 % of the memory of timm's own code. A pretrained tag behind a dot (resnet50.a1_in1k) and "timm/" before
// the name change nothing.
//
// Not among them, though they look alike: tf_* (padded on one side), vgg* (a classifier of convolutions), vit_* and swin_*
// (other attention), and where timm means another net by the name: mnasnet_140, regnetx_004, regnety_008, regnety_080.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forerun::zoo {

// The zoo's name; nothing where timm has no such net or the zoo has not.
std::optional<std::string> zoo_name_of_timm(std::string_view name);

std::vector<std::string> timm_names();

}  // namespace forerun::zoo
