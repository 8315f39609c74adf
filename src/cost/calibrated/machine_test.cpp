#include "cost/calibrated/machine.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

constexpr const char* kOp =
    R"({"op": "aten.mm.default", "precision": "tf32", "inputs": [["float32", [8, 4], null], ["float32", [4, 2], [1, 4]], null],
        "outputs": [["float32", [8, 2], null]], "attributes": {"alpha": 1, "dims": [0, 1], "mask": [true, false], "x": null},
        "us": 4.2, "span_us": 4.3, "spread": 0.03, "kernels": 2, "again_us": 4.4, "within": true})";

std::string machine_with(const std::string& ops, const std::string& format = "machine/1") {
  return R"({"format": ")" + format +
         R"(", "card": {"gpu": "NVIDIA T4", "host": "c0ffee00", "torch": "2", "date": "2026-01-02",
    "driver": "1", "cuda": "13", "minutes": 5}, "gpu": {"device": {"name": "NVIDIA T4", "sm_count": 40}, "ops": [)" +
         ops +
         R"(]}, "host": {"cuda": [{"view": 1, "add": 4, "backward": {"view": 7}}, {"view": 3, "backward": {"view": 9}}]},
    "links": [{"kind": "host_to_device", "bytes": 1024, "us": 2}]})";
}

std::string fault_of(const std::string& text) {
  const auto machine = machine_from(text, "machine.json");
  return machine ? "" : machine.error().message();
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(Machine, IsReadWithAllItsParts) {
  const auto machine = machine_from(machine_with(kOp), "machine.json");
  ASSERT_TRUE(machine.ok()) << machine.error().message();
  EXPECT_EQ(machine->card.gpu, "NVIDIA T4");
  EXPECT_EQ(machine->card.missing(), "");
  ASSERT_EQ(machine->ops.size(), 1U);
  const OpReading& op = machine->ops[0];
  EXPECT_EQ(op.precision, Precision::tf32);
  ASSERT_EQ(op.inputs.size(), 3U);
  EXPECT_EQ(op.inputs[1]->strides, (Shape{1, 4}));
  EXPECT_FALSE(op.inputs[2].has_value());
  EXPECT_EQ(op.attributes.get_ints("dims"), (Shape{0, 1}));
  EXPECT_EQ(op.kernels, 2);
  EXPECT_DOUBLE_EQ(op.again_us, 4.4);
  EXPECT_TRUE(op.within);
  EXPECT_EQ(machine->links.size(), 1U);
  const Graph graph = graph_of({&op});
  EXPECT_EQ(graph.op_count(), 1U);
  EXPECT_EQ(graph.inputs(graph.ops()[0]).size(), 2U);
}

TEST(Machine, MediansAreOfKindsThatAllRoundsHave) {
  const auto machine = machine_from(machine_with(""), "machine.json");
  ASSERT_TRUE(machine.ok()) << machine.error().message();
  const HostCalibration host = median_of(machine->host_cuda);
  ASSERT_EQ(host.forward.size(), 1U);  // "add" was read once
  EXPECT_EQ(host.forward[0], (std::pair<std::string, double>("view", 2)));
  ASSERT_EQ(host.backward.size(), 1U);
  EXPECT_DOUBLE_EQ(host.backward[0].second, 8);
  EXPECT_TRUE(median_of({}).empty());
}

TEST(Machine, FaultsSayWhatAndWhere) {
  EXPECT_NE(fault_of("{").find("not JSON"), std::string::npos);
  EXPECT_NE(fault_of("[]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(fault_of(machine_with(kOp, "machine/2")).find("known is machine/1"), std::string::npos);
  EXPECT_NE(fault_of(R"({"format": "machine/1"})").find("card"), std::string::npos);
  EXPECT_NE(fault_of(R"({"format": "machine/1", "card": {}})").find("no reading"), std::string::npos);
  const std::string sound = machine_with(kOp);
  EXPECT_EQ(fault_of(sound), "");
  EXPECT_NE(fault_of(replaced(sound, "[8, 4]", "[8, -4]")).find("gpu.ops[0].inputs"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "[8, 4]", "[1e9, 4]")).find("whole number"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "[8, 4]", "[1099511627776, 1099511627776]")).find("too large"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "[1, 4]", "[1, 4, 2]")).find("another rank"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "[1, 4]", "[1, 1099511627776]")).find("too large"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "float32", "float31")).find("dtype"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "\"us\": 4.2", "\"us\": 0")).find("gpu.ops[0].us"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "\"us\": 4.2", "\"us\": \"4\"")).find("gpu.ops[0].us"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "tf32", "fp99")).find("precision"), std::string::npos);
  EXPECT_NE(fault_of(replaced(sound, "\"view\": 1", "\"view\": -1")).find("host.cuda"), std::string::npos);
}

TEST(Machine, ACardSaysWhatItLacks) {
  MachineCard card{
      .gpu = "NVIDIA T4", .driver = "1", .cuda = "13", .torch = "2", .host = "c0ffee00", .date = "2026-01-02"};
  EXPECT_EQ(card.missing(), "");
  card.driver.clear();
  EXPECT_EQ(card.missing(), "driver");
  card.gpu.clear();  // a host alone has none
  EXPECT_EQ(card.missing(), "");
  card.date.clear();
  EXPECT_EQ(card.missing(), "date");
}

}  // namespace
}  // namespace forerun
