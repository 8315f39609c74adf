#include "zoo/timm_names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "zoo/zoo.h"

namespace forerun::zoo {
namespace {

TEST(TimmNames, BuildNetsWithAsManyParametersAsTimmPublishes) {
  const std::pair<const char*, int64_t> published[] = {
      {"resnet50.a1_in1k", 25557032},      {"timm/mobilenetv3_large_100.ra_in1k", 5483032},
      {"convnext_tiny.fb_in1k", 28589128}, {"efficientnet_b0", 5288548},
      {"regnety_016.tv2_in1k", 11202430},  {"densenet121", 7978856},
      {"mobilenetv2_100", 3504872},        {"mnasnet_100", 4383312},
      {"inception_v3.tv_in1k", 23834568},
  };
  for (const auto& [name, parameters] : published) {
    EXPECT_TRUE(is_known_name(name)) << name;
    const auto model = build(name, {{"batch", "1"}});
    ASSERT_TRUE(model) << name << ": " << model.error().message();
    EXPECT_EQ(model->forward.parameter_count(), parameters) << name;
  }
}

TEST(TimmNames, NameModelsOfTheZoo) {
  for (const std::string& name : timm_names()) {
    const auto meant = zoo_name_of_timm(name);
    ASSERT_TRUE(meant) << name;
    const bool known =
        std::any_of(models().begin(), models().end(), [&](const NamedModel& m) { return m.name == *meant; });
    EXPECT_TRUE(known) << *meant;
  }
}

TEST(TimmNames, LeaveOutWhatIsAnotherNet) {
  for (const char* name : {"tf_efficientnet_b0", "vit_tiny_patch16_224", "regnety_008", "resnet50d", "timm/", "."}) {
    EXPECT_FALSE(is_known_name(name)) << name;
  }
  const auto model = build("regnety_017", {});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message().find("regnety_016"), std::string::npos) << model.error().message();
}

}  // namespace
}  // namespace forerun::zoo
