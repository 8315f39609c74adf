#include "api/prices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/data_dir.h"

namespace forerun {
namespace {

const DeviceCatalogue& priced_devices() {
  static const DeviceCatalogue catalogue = *load_devices(*data_dir() / "devices");
  return catalogue;
}

std::string fault_in(const std::string& text) {
  const auto prices = parse_price_file(text, "mine.toml", priced_devices());
  return prices.ok() ? std::string() : prices.error().message();
}

TEST(Prices, AreReadFromAFileByAnyNameOfAGpu) {
  const auto prices =
      parse_price_file("currency = \"EUR\"\n[per_hour]\nh100 = 2.5\n\"NVIDIA A100-SXM4-80GB\" = 1\n4090 = 0.5\n",
                       "mine.toml", priced_devices());
  ASSERT_TRUE(prices.ok()) << prices.error().message();
  EXPECT_EQ(prices->currency, "EUR");
  EXPECT_EQ(prices->of("NVIDIA H100 80GB HBM3"), 2.5);
  EXPECT_EQ(prices->of("NVIDIA A100-SXM4-80GB"), 1.0);
  EXPECT_EQ(prices->of("NVIDIA GeForce RTX 4090"), 0.5);
  EXPECT_EQ(prices->of("Tesla T4"), std::nullopt);
}

TEST(Prices, FaultsOfAFileNameTheLineAndTheRemedy) {
  const std::pair<const char*, const char*> faults[] = {
      {"[per_hour]\nh100 = 2.5\nh1000 = 1\n", "line 3"},
      {"[per_hour]\nh100 = \"2.5\"\n", "give a number from 0 to 1000000"},
      {"[per_hour]\nh100 = -1\n", "cannot be '-1'"},
      {"[per_hour]\nh100 = nan\n", "line 2"},
      {"[per_hour]\nh100 = 1\n\"NVIDIA H100\" = 2\n", "has two prices"},
      {"[per_hour]\nh100 = [1]\n", "[...]"},
      {"[per_month]\nh100 = 1\n", "known are currency and the table [per_hour]"},
      {"per_hour = 3\n", "a price file has no 'per_hour'"},
      {"currency = 3\n[per_hour]\nh100 = 1\n", "currency = \"USD\""},
      {"currency = \"USD\"\n", "no prices"},
      {"", "no prices"},
      {"[per_hour\nh100 = 1\n", "is not valid TOML"},
      {"[per_hour]\nNVIDIA H100 = 1\n", "names with spaces stand in quotes"}};
  for (const auto& fault : faults) {
    EXPECT_NE(fault_in(fault.first).find(fault.second), std::string::npos) << fault.first << fault_in(fault.first);
  }
}

TEST(Prices, TheCommandLineComesBeforeTheFile) {
  const auto file = std::filesystem::temp_directory_path() / ("forerun_prices_" + std::to_string(getpid()) + ".toml");
  std::ofstream(file) << "[per_hour]\nh100 = 2.5\nt4 = 0.4\n";
  const auto prices = asked_prices(file.string(), {"h100=9"}, priced_devices());
  std::filesystem::remove(file);
  ASSERT_TRUE(prices.ok()) << prices.error().message();
  EXPECT_EQ(prices->of("NVIDIA H100 80GB HBM3"), 9);
  EXPECT_EQ(prices->of("Tesla T4"), 0.4);
  EXPECT_EQ(prices->gpus.size(), 2U);
  EXPECT_FALSE(asked_prices(file.string(), {}, priced_devices()).ok()) << "the file is gone";
  EXPECT_FALSE(asked_prices("/", {}, priced_devices()).ok());
  EXPECT_FALSE(asked_prices("", {}, priced_devices())->any());
}

TEST(Prices, TheExampleIsRead) {
  const auto prices = read_prices(FORERUN_SOURCE_DIR "/examples/prices.toml", priced_devices());
  ASSERT_TRUE(prices.ok()) << prices.error().message();
  EXPECT_GE(prices->gpus.size(), 5U);
}

}  // namespace
}  // namespace forerun
