#include "device/catalogue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/data_dir.h"
#include "device/link_sources.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGood = R"({"format": "device/1", "name": "Test GPU", "aliases": ["tg"], "vendor": "Nobody",
  "sources": {"d": "a datasheet"},
  "sm_count": {"value": 10, "source": "d"}, "clock_mhz": {"value": 1000, "source": "d"},
  "memory_mib": {"value": 1024, "source": "d"}, "memory_gb_per_s": {"value": 100, "source": "d"},
  "l2_mib": {"value": 4, "source": "d"}, "fp64_tflops": {"value": 1, "source": "d"},
  "fp32_tflops": {"value": 2, "source": "d"}, "pcie_gb_per_s": {"value": 32, "source": "d"},
  "launch_gap_us": {"value": 1.5, "source": "d"}})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class CatalogueTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("forerun_catalogue_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& text) {
    const fs::path path = folder_ / "gpu.json";
    std::ofstream(path) << text;
    return path;
  }
  std::string error_of(const std::string& text) {
    DeviceCatalogue catalogue;
    const Status status = catalogue.add_file(write(text));
    return status.ok() ? "" : status.error().message();
  }
  fs::path folder_;
};

TEST_F(CatalogueTest, ReadsADevice) {
  DeviceCatalogue catalogue;
  ASSERT_TRUE(catalogue.add_file(write(kGood)).ok());
  const Result<Device> device = catalogue.find("TEST-gpu");
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device->sm_count, 10);
  EXPECT_EQ(device->memory, Bytes(int64_t{1} << 30));
  EXPECT_DOUBLE_EQ(device->memory_bandwidth, 100e9);
  EXPECT_EQ(device->launch_gap, Nanoseconds(1500));
  EXPECT_DOUBLE_EQ(device->peak.fp32, 2e12);
  EXPECT_DOUBLE_EQ(device->rate(Unit::tf32_tensor), 2e12);  // falls back on fp32
  EXPECT_EQ(device->unit_or_fallback(Unit::bf16_tensor), Unit::fp32);
}

TEST_F(CatalogueTest, WhatAProgramCanTakeMayBeLessThanTheBoardHas) {
  DeviceCatalogue catalogue;
  const std::string usable =
      replaced(kGood, "\"l2_mib\"", "\"usable_mib\": {\"value\": 1000, \"source\": \"d\"}, \"l2_mib\"");
  ASSERT_TRUE(catalogue.add_file(write(usable)).ok());
  EXPECT_EQ(catalogue.find("tg")->memory, Bytes(int64_t{1000} << 20));
  EXPECT_EQ(catalogue.find("tg")->board_memory, Bytes(int64_t{1} << 30));
  EXPECT_NE(error_of(replaced(usable, "\"value\": 1000, \"source\": \"d\"}, \"l2",
                              "\"value\": 1025, \"source\": \"d\"}, \"l2"))
                .find("usable_mib"),
            std::string::npos);
}

TEST_F(CatalogueTest, TheCapabilityIsTheFilesOwnOrTheGenerations) {
  const auto read = [&](const std::string& further) {
    DeviceCatalogue catalogue;
    const Status status = catalogue.add_file(write(replaced(kGood, "\"sources\"", further + "\"sources\"")));
    EXPECT_TRUE(status.ok()) << status.error().message();
    return *catalogue.find("tg");
  };
  EXPECT_EQ(read("").compute_capability, 0);
  EXPECT_EQ(read("").blas_workspace, Bytes(8519680));
  EXPECT_EQ(read("\"architecture\": \"hopper\", ").compute_capability, 90);
  EXPECT_EQ(read("\"architecture\": \"hopper\", ").blas_workspace, Bytes(int64_t{32} << 20));
  const auto capability = [](const std::string& value) {
    return "\"compute_capability\": {\"value\": " + value + ", \"source\": \"d\"}, ";
  };
  const std::string own = "\"architecture\": \"blackwell\", " + capability("12.0");
  EXPECT_EQ(read(own).compute_capability, 120);
  EXPECT_EQ(read(own).capability_text(), "12.0");
  EXPECT_EQ(read(capability("9.0")).architecture, "hopper");
  EXPECT_EQ(read(capability("8.6")).architecture, "ampere-rtx");
  EXPECT_EQ(read(capability("8.7")).architecture, "ampere");
  EXPECT_EQ(read(capability("6.1")).architecture, "pascal");
  EXPECT_EQ(read(capability("8.9")).blas_workspace, Bytes(8519680));
  const std::string workspace = "\"blas_workspace_kib\": {\"value\": 1024, \"source\": \"d\"}, ";
  EXPECT_EQ(read(workspace).blas_workspace, Bytes(int64_t{1} << 20));
}

TEST_F(CatalogueTest, RefusesAGenerationThatContradictsItself) {
  const auto error = [&](const std::string& further) {
    return error_of(replaced(kGood, "\"sources\"", further + "\"sources\""));
  };
  const std::string hopper = "\"architecture\": \"hopper\", ";
  EXPECT_NE(error(hopper + "\"compute_capability\": {\"value\": 8.0, \"source\": \"d\"}, ").find("hopper"),
            std::string::npos);
  EXPECT_NE(error("\"compute_capability\": {\"value\": 1e300, \"source\": \"d\"}, ").find("compute_capability"),
            std::string::npos);
  EXPECT_EQ(error("\"architecture\": \"cdna2\", "), "") << "another vendor's generations are its own";
  const std::string nvidia = replaced(kGood, "Nobody", "NVIDIA");
  EXPECT_NE(error_of(replaced(nvidia, "\"sources\"", "\"architecture\": \"hoper\", \"sources\"")).find("hopper"),
            std::string::npos);
  EXPECT_EQ(error_of(nvidia), "") << "both may be left out";
}

TEST_F(CatalogueTest, ALinkJoinsTwoBoardsWhereTheFileOrItsGenerationSaysSo) {
  const auto linked = [&](const std::string& further) {
    DeviceCatalogue catalogue;
    const Status status = catalogue.add_file(write(replaced(kGood, "\"sources\"", further + "\"sources\"")));
    EXPECT_TRUE(status.ok()) << status.error().message();
    return catalogue.find("tg")->linked_gpus;
  };
  const std::string link = "\"link_gb_per_s\": {\"value\": 100, \"source\": \"d\"}, ";
  const std::string bridge = "\"link_gpus\": {\"value\": 2, \"source\": \"d\"}, ";
  EXPECT_EQ(linked(link), 0);
  EXPECT_EQ(linked(link + bridge), 2);
  EXPECT_EQ(linked(link + "\"architecture\": \"turing\", "), 2);
  EXPECT_EQ(linked("\"architecture\": \"turing\", "), 0) << "nothing to join";
  EXPECT_NE(error_of(replaced(kGood, "\"sources\"", bridge + "\"sources\"")).find("link_gb_per_s"), std::string::npos);
}

TEST_F(CatalogueTest, FaultsNameFileAndField) {
  const std::string good = kGood;
  EXPECT_NE(error_of(replaced(good, "\"sm_count\"", "\"sm_counts\"")).find("gpu.json, sm_count"), std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"value\": 100,", "\"value\": -100,")).find("memory_gb_per_s.value"),
            std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"value\": 4,", "\"value\": 0,")).find("l2_mib.value"), std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"value\": 2,", "\"value\": \"two\",")).find("not a number"), std::string::npos);
  EXPECT_NE(error_of(replaced(good, "\"value\": 2,", "\"value\": 1e999,")), "");
  EXPECT_NE(error_of(replaced(good, "\"value\": 2,", "\"value\": NaN,")), "");
  EXPECT_NE(error_of("[1, 2]"), "");
  EXPECT_NE(error_of("{\"format\": "), "");
  EXPECT_NE(error_of(replaced(good, "device/1", "device/9")).find("device/9"), std::string::npos);
}

TEST_F(CatalogueTest, EveryNumberNeedsASource) {
  const std::string without = replaced(kGood, "{\"value\": 10, \"source\": \"d\"}", "{\"value\": 10}");
  EXPECT_NE(error_of(without).find("sm_count.source"), std::string::npos);
  const std::string unknown =
      replaced(kGood, "{\"value\": 10, \"source\": \"d\"}", "{\"value\": 10, \"source\": \"e\"}");
  EXPECT_NE(error_of(unknown).find("sm_count.source"), std::string::npos);
}

TEST_F(CatalogueTest, AUserFileReplacesADeviceButTakesNoOthersAlias) {
  DeviceCatalogue catalogue;
  ASSERT_TRUE(catalogue.add_file(write(kGood)).ok());
  ASSERT_TRUE(catalogue.add_file(write(replaced(kGood, "\"value\": 10,", "\"value\": 20,"))).ok());
  EXPECT_EQ(catalogue.devices().size(), 1u);
  EXPECT_EQ(catalogue.find("tg")->sm_count, 20);
  const Status clash = catalogue.add_file(write(replaced(kGood, "Test GPU", "Other GPU")));
  ASSERT_FALSE(clash.ok());
  EXPECT_NE(clash.error().message().find("tg"), std::string::npos);
}

TEST_F(CatalogueTest, MissingFilesAndFolders) {
  DeviceCatalogue catalogue;
  EXPECT_FALSE(catalogue.add_file(folder_ / "absent.json").ok());
  EXPECT_FALSE(load_devices(folder_ / "absent").ok());
  EXPECT_FALSE(load_devices(folder_).ok());  // empty
}

TEST(ShippedCatalogueTest, HoldsTheKnownGpusAndLinks) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  const Result<DeviceCatalogue> catalogue = load_devices(*folder / "devices");
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().message();
  for (const char* name : {"h200",
                           "NVIDIA H200",
                           "h100",
                           "h100-sxm",
                           "h100-pcie",
                           "a100-40gb",
                           "a100-80gb",
                           "v100",
                           "t4",
                           "2080ti",
                           "3080ti",
                           "3090",
                           "4090",
                           "l4",
                           "p100",
                           "p4",
                           "mi250x",
                           "MI300X",
                           "NVIDIA GeForce RTX 2080 Ti",
                           "Tesla T4",
                           "NVIDIA A100-SXM4-80GB"}) {
    EXPECT_TRUE(catalogue->find(name).ok()) << name;
  }
  for (const char* name : {"pcie3", "pcie4", "pcie5", "nvlink2", "nvlink3", "nvlink4", "1gbe", "10gbe", "25gbe",
                           "40gbe", "100gbe", "hdr", "ndr", "10 GbE"}) {
    EXPECT_TRUE(catalogue->find_link(name).ok()) << name;
  }
  for (const Device& d : catalogue->devices()) {
    // Lanes per multiprocessor that the peak rate implies: 64 or 128 on every known design.
    const double lanes = d.peak.fp32 / (2 * static_cast<double>(d.sm_count) * d.clock_mhz * 1e6);
    EXPECT_TRUE((lanes > 60 && lanes < 68) || (lanes > 122 && lanes < 134)) << d.name << " " << lanes;
    EXPECT_GE(d.peak.fp16_tensor, d.peak.tf32_tensor) << d.name;
  }
}

// What torch.cuda.get_device_properties().total_memory is said to be, and boards of one name and different sizes.
TEST(ShippedCatalogueTest, MemoryIsWhatAProgramSees) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  const Result<DeviceCatalogue> catalogue = load_devices(*folder / "devices");
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().message();
  const auto gib = [&](const char* name) { return gibibytes(catalogue->find(name)->memory); };
  EXPECT_NEAR(gib("t4"), 14.56, 0.005);
  EXPECT_NEAR(gib("4090"), 23.65, 0.005);
  EXPECT_NEAR(gib("h200"), 139.80, 0.005);
  EXPECT_NEAR(gib("Tesla V100-SXM2-16GB"), 15.78, 0.005);
  EXPECT_NEAR(gib("Tesla V100-PCIE-16GB"), 15.78, 0.005);
  EXPECT_NEAR(gib("v100"), 31.74, 0.005);
  for (const Device& d : catalogue->devices()) {
    if (d.name != "NVIDIA H200") {
      EXPECT_LT(d.memory, d.board_memory) << d.name;
    }
    EXPECT_GT(static_cast<double>(d.memory.value), 0.9 * static_cast<double>(d.board_memory.value)) << d.name;
    EXPECT_EQ(d.vendor == "NVIDIA", d.compute_capability > 0) << d.name;
    // A name that says a size has that size.
    for (const int64_t size : {12, 16, 24, 32, 40, 80}) {
      const std::string text = std::to_string(size) + "GB";
      const size_t at = d.name.find(text);  // but not that of a GH200's CPU, 480GB
      const bool named = at != std::string::npos && (at == 0 || std::isdigit(d.name[at - 1]) == 0);
      EXPECT_TRUE(!named || d.board_memory == Bytes(size << 30)) << d.name;
      for (const std::string& alias : d.aliases) {
        EXPECT_TRUE(!alias.ends_with(text) || d.board_memory == Bytes(size << 30)) << alias;
      }
    }
  }
}

TEST(ShippedCatalogueTest, UnknownNamesAreAnsweredWithNearOnes) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok()) << folder.error().message();
  const Result<DeviceCatalogue> catalogue = load_devices(*folder / "devices");
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().message();
  const Result<Device> device = catalogue->find("h201");
  ASSERT_FALSE(device.ok());
  EXPECT_NE(device.error().message().find("h200"), std::string::npos) << device.error().message();
  EXPECT_FALSE(catalogue->find("").ok());
  EXPECT_FALSE(catalogue->find_link("token ring").ok());
}

TEST_F(CatalogueTest, WhereAGpuWasMeasuredIsOneOfThree) {
  DeviceCatalogue catalogue;
  ASSERT_TRUE(catalogue.add_file(write(kGood)).ok());
  EXPECT_EQ(catalogue.find("tg")->measured, Measured::never);
  ASSERT_TRUE(
      catalogue.add_file(write(replaced(kGood, "\"sources\"", "\"measured\": \"elsewhere\", \"sources\""))).ok());
  EXPECT_EQ(catalogue.find("tg")->measured, Measured::elsewhere);
  EXPECT_NE(error_of(replaced(kGood, "\"sources\"", "\"measured\": \"twice\", \"sources\"")).find("known are here"),
            std::string::npos);
}

TEST_F(CatalogueTest, FiguresOfLinksHaveTheSourcesThatTheirFileNames) {
  const auto catalogue = load_devices(*data_dir() / "devices");
  const auto own = write(R"({"format": "links/1", "sources": {"a": "our tests", "b": "our guess"}, "links": [
    {"name": "rail", "aliases": [], "gb_per_s": {"value": 46, "source": "a"}, "latency_us": {"value": 6, "source": "b"}},
    {"name": "1 GbE", "aliases": [], "gb_per_s": {"value": 0.1, "source": "a"}, "latency_us": {"value": 6, "source": "a"}}]})");
  const auto sources = load_link_sources({own.string()});
  ASSERT_TRUE(sources.ok()) << sources.error().message();
  EXPECT_EQ(sources->at("rail").bandwidth, "our tests");
  EXPECT_EQ(sources->at("rail").latency, "our guess");
  EXPECT_EQ(sources->at("1 GbE").latency, "our tests");  // as its figures are replaced
  for (const Link& link : catalogue->links()) {
    EXPECT_FALSE(sources->at(link.name).bandwidth.empty()) << link.name;
    EXPECT_FALSE(sources->at(link.name).latency.empty()) << link.name;
  }
  EXPECT_FALSE(load_link_sources({"/nowhere.json"}).ok());
}

TEST_F(CatalogueTest, HasTheBoardsThatUsersAskForByTheNamesTheyUse) {
  const auto catalogue = load_devices(*data_dir() / "devices");
  ASSERT_TRUE(catalogue.ok()) << catalogue.error().message();
  for (const char* name :
       {"b200",         "b300",         "gh200",     "h20", "h800", "a10",    "a10g",   "l40s", "l4",   "5090",
        "rtx_6000_ada", "rtx_pro_6000", "v100-16gb", "a30", "t4",   "mi300x", "mi325x", "a100", "h100", "4090"}) {
    EXPECT_TRUE(catalogue->find(name).ok()) << name;
  }
  EXPECT_EQ(catalogue->find("h200")->measured, Measured::here);
  EXPECT_EQ(catalogue->find("5090")->architecture, "blackwell-rtx");
}

}  // namespace
}  // namespace forerun
