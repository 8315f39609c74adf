#include "ingest/chakra/execution_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/needs_dataset.h"

namespace forerun {
namespace {

constexpr const char* kFlatNodes = R"({"schema": "1.0.1", "pid": 7, "nodes": [
  {"name": "## forward ##", "id": 2, "parent": 1, "fw_parent": 0, "seq_id": -1, "tid": 1, "op_schema": "",
   "inputs": [], "input_shapes": [], "input_types": [], "outputs": [], "output_shapes": [], "output_types": []},
  {"name": "aten::mm", "id": 5, "parent": 2, "fw_parent": 0, "seq_id": 11, "tid": 1, "op_schema": "aten::mm",
   "inputs": [[3,4,0,64,4,"cuda:0"]], "input_shapes": [[8, 8]], "input_types": ["Tensor"],
   "outputs": [[6,7,0,64,4,"cuda:0"]], "output_shapes": [[8, 8]], "output_types": ["Tensor"]},
  {"id": 9}]})";

constexpr const char* kNestedNodes = R"({"schema": "1.1.0-chakra.0.0.4", "pid": 7, "nodes": [
  {"id": 8, "name": "record_param_comms", "ctrl_deps": 2, "inputs": {"values": [], "shapes": [], "types": []},
   "outputs": {"values": [], "shapes": [], "types": []},
   "attrs": [{"name": "tid", "type": "uint64", "value": 2}, {"name": "pg_size", "type": "uint64", "value": 4},
             {"name": "pg_name", "type": "string", "value": "world"}, {"name": "dtype", "type": "string", "value": "Half"}]},
  {"id": 9, "name": "nccl:all_reduce", "ctrl_deps": 8,
   "inputs": {"values": [[[1,2,0,1000,2,"cuda:0"],[3,4,0,24,2,"cuda:0"]], 5], "shapes": [[1000]], "types": ["x"]},
   "outputs": {"values": [], "shapes": [], "types": []},
   "attrs": [{"name": "seq_id", "type": "int64", "value": -1}, {"name": "fw_parent", "type": "uint64", "value": 3}]}]})";

// Protobuf by hand.
std::string wire_varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string wire_number(uint32_t field, uint64_t value) { return wire_varint(field << 3) + wire_varint(value); }
std::string wire_bytes(uint32_t field, const std::string& bytes) {
  return wire_varint(field << 3 | 2) + wire_varint(bytes.size()) + bytes;
}
std::string wire_message(const std::string& bytes) { return wire_varint(bytes.size()) + bytes; }
std::string wire_attribute(const std::string& name, uint32_t field, uint64_t value) {
  return wire_bytes(10, wire_bytes(1, name) + wire_number(field, value));
}

std::string small_chakra() {
  const std::string metadata =
      wire_bytes(1, "0.0.4") + wire_bytes(2, wire_bytes(1, "schema") + wire_bytes(29, "1.0.1"));
  const std::string op = wire_number(1, 4) + wire_bytes(2, "aten::mm") + wire_number(3, 4) + wire_number(4, 1) +
                         wire_number(7, 12) + wire_bytes(8, wire_bytes(1, "[[1, 2, 0, 6, 4, 'cuda:0']]")) +
                         wire_attribute("seq_id", 9, UINT64_MAX);
  const std::string sum = wire_number(1, 5) + wire_bytes(2, "ncclKernel") + wire_number(3, 7) +
                          wire_bytes(5, wire_varint(4) + wire_varint(300)) + wire_attribute("is_cpu_op", 27, 0) +
                          wire_attribute("comm_type", 9, 2) + wire_attribute("comm_size", 9, 4096);
  return wire_message(metadata) + wire_message(op) + wire_message(sum);
}

TEST(ExecutionTraceReader, ReadsFlatNodes) {
  const auto trace = execution_trace_from_bytes(kFlatNodes, "made up");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  EXPECT_EQ(trace->schema, "1.0.1");
  ASSERT_EQ(trace->nodes.size(), 2U);
  EXPECT_EQ(trace->skipped, 1);
  EXPECT_EQ(trace->nodes[0].kind, NodeKind::label);
  const ExecutionNode& node = trace->nodes[1];
  EXPECT_EQ(node.kind, NodeKind::op);
  EXPECT_EQ(node.sequence, 11);
  EXPECT_EQ(trace->control_of(node)[0], 2U);
  EXPECT_EQ(trace->names[node.inputs.shapes], "[[8,8]]");
  EXPECT_EQ(tensor_bytes(trace->names[node.outputs.values]), 256);
}

TEST(ExecutionTraceReader, ReadsNestedNodesAndWhatCollectivesCarry) {
  const auto trace = execution_trace_from_bytes(kNestedNodes, "made up");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  ASSERT_EQ(trace->collectives.size(), 1U);
  const ExecutionCollective& collective = trace->collectives[0];
  EXPECT_EQ(collective.name, "all_reduce");
  EXPECT_EQ(collective.bytes, 2048);
  EXPECT_EQ(collective.group, "world");
  EXPECT_EQ(collective.dtype, "Half");
  EXPECT_EQ(collective.group_size, 4);
  EXPECT_EQ(trace->nodes[1].forward_parent, 3);
  EXPECT_EQ(trace->nodes[0].thread, 2);
}

TEST(ExecutionTraceReader, ReadsChakra) {
  const std::string bytes = small_chakra();
  EXPECT_TRUE(looks_like_chakra(bytes));
  const auto trace = execution_trace_from_bytes(bytes, "made up");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  EXPECT_TRUE(trace->chakra);
  EXPECT_EQ(trace->schema, "1.0.1");
  ASSERT_EQ(trace->nodes.size(), 2U);
  EXPECT_EQ(trace->nodes[0].duration_us, 12);
  EXPECT_EQ(trace->nodes[0].sequence, -1);
  EXPECT_EQ(tensor_bytes(trace->names[trace->nodes[0].inputs.values]), 24);
  const auto data = trace->data_of(trace->nodes[1]);
  EXPECT_EQ(std::vector<uint64_t>(data.begin(), data.end()), (std::vector<uint64_t>{4, 300}));
  ASSERT_EQ(trace->collectives.size(), 1U);
  EXPECT_EQ(trace->collectives[0].name, "all_gather");
  EXPECT_EQ(trace->collectives[0].bytes, 4096);
}

TEST(ExecutionTraceReader, ChakraCutShortGivesWhatIsThere) {
  const std::string bytes = small_chakra();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto trace = execution_trace_from_bytes(bytes.substr(0, length), "cut");
    if (trace.ok()) {
      EXPECT_EQ(trace->nodes.size(), 1U);
    }
  }
  const auto trace = execution_trace_from_bytes(bytes.substr(0, bytes.size() - 3), "cut");
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->truncated);
}

TEST(ExecutionTraceReader, ACutFileIsAnErrorThatSaysWhere) {
  const std::string path = ::testing::TempDir() + std::to_string(getpid()) + "_cut.et";
  const std::string nested = kNestedNodes;
  const std::string chakra = small_chakra();
  for (const std::string& bytes : {nested.substr(0, nested.find_last_of(']')), chakra.substr(0, chakra.size() - 3)}) {
    std::ofstream(path, std::ios::binary) << bytes;
    const auto trace = read_execution_trace(path);
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.error().where, path);
    EXPECT_NE(trace.error().what.find("ends at byte " + std::to_string(bytes.size())), std::string::npos)
        << trace.error().message();
  }
  EXPECT_TRUE(read_execution_trace(path, /*partial=*/true).ok());
  std::filesystem::remove(path);
}

TEST(ExecutionTraceReader, WhatIsNoTraceIsAnError) {
  for (const std::string text : {"", "   ", "{}", "[]", "{\"nodes\": []}", "{\"nodes\": [1, {}]}",
                                 "{\"schema\": ", "hello", "\x01\x02\x03\x04"}) {
    const auto trace = execution_trace_from_bytes(text, "made up");
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_FALSE(trace.error().remedy.empty());
  }
  EXPECT_FALSE(looks_like_chakra(kNestedNodes));
  EXPECT_FALSE(read_execution_trace("/nowhere/at/all").ok());
}

TEST(ExecutionTraceReader, BytesOfTensorsInBothNotations) {
  EXPECT_EQ(tensor_bytes(R"([[5,6,0,112,4,"cuda:0"],[48],[1],0])"), 448);
  EXPECT_EQ(tensor_bytes("[[[430, 431, 0, 53120, 4, 'cuda:0']], '<Object>', 0, 0, -1]"), 212'480);
  EXPECT_EQ(tensor_bytes("[1, 2, 3, 4, 5]"), 0);
  EXPECT_EQ(tensor_bytes("[[1,2,0,-4,4,\"cuda:0\"]"), 0);
  EXPECT_EQ(tensor_bytes("[[1,2,0,99999999999999999999,4,\"x\"]"), 0);
  EXPECT_EQ(tensor_bytes("[[[["), 0);
}

struct RealTrace {
  const char* path;
  const char* schema;
  size_t nodes;
  size_t collectives;
  int64_t bytes;  // of all-reduces
};

TEST(ExecutionTraceReader, RealFiles) {
  NEEDS_DATASET(folder, "traces");
  // ResNet-50 has 25,557,032 parameters: one iteration, and three.
  for (const RealTrace& real : {RealTrace{"/chakra/chakra.0.et.gz", "1.0.1", 3664, 7, 102'228'128},
                                RealTrace{"/param/resnet_et.json.gz", "1.1.0-chakra.0.0.4", 14392, 21, 306'684'384},
                                RealTrace{"/param/dlrm_8ranks_et/dlrm_eg_0.json.gz", "1.0.1", 1675, 8, -1}}) {
    const auto trace = read_execution_trace(folder + real.path);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    EXPECT_EQ(trace->schema, real.schema);
    EXPECT_EQ(trace->nodes.size(), real.nodes);
    EXPECT_EQ(trace->collectives.size(), real.collectives);
    EXPECT_EQ(trace->skipped, 0);
    int64_t bytes = 0;
    for (const ExecutionCollective& collective : trace->collectives) {
      if (collective.name == "all_reduce") bytes += collective.bytes;
    }
    if (real.bytes >= 0) {
      EXPECT_EQ(bytes, real.bytes);
    }
  }
}

}  // namespace
}  // namespace forerun
