// Kernels that were generated cost their fixed time and their bytes; what is not sound in the file is named.
#include "cost/generated/generated.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/data_dir.h"
#include "base/json_file.h"
#include "compile/compiled_iteration.h"
#include "cost/host/cuda_graph.h"
#include "graph/graph_builder.h"

namespace forerun {
namespace {

CompileConstants kept() {
  const Result<CompileConstants> constants = load_compile_constants(*data_dir() / kCompileFile);
  EXPECT_TRUE(constants.ok()) << (constants.ok() ? "" : constants.error().what);
  return *constants;
}

TEST(GeneratedKernels, CostTheirBytesBesideAFixedTime) {
  GraphBuilder build;
  const int64_t shape[] = {1 << 20};
  const TensorId in = build.add_tensor(build.add_storage(Bytes(4 << 20)), DType::float32, shape);
  const TensorId out = build.add_tensor(build.add_storage(Bytes(4 << 20)), DType::float32, shape);
  const TensorId inputs[] = {in};
  const TensorId outputs[] = {out};
  build.add_op({.name = compile::kPointwise, .inputs = inputs, .outputs = outputs});
  build.add_op({.name = "aten.mm.default", .inputs = inputs, .outputs = outputs});
  const Graph graph = build.finish();
  Device device;
  device.memory_bandwidth = 4e12;
  CompileConstants constants;
  constants.pointwise = {.fixed = Nanoseconds(1000), .bandwidth_share = 0.5};
  std::vector<OpCost> costs(2);
  costs[1].gpu = Nanoseconds(7);
  CompiledParts parts;
  parts.inside = {true, false};
  parts.passes = {{.first = OpId(0), .end = OpId(1), .given = {}}};
  cost_compiled(graph, parts, CompileMode::standard, device, constants, costs);
  EXPECT_EQ(costs[0].gpu.value, 1000 + 4194);  // 8 MiB at 2 TB/s
  EXPECT_EQ(costs[0].kernels, 1);
  EXPECT_EQ(costs[1].gpu.value, 7);
  HostCosts host{.ops = {Nanoseconds(1), Nanoseconds(2)}, .per_iteration = Nanoseconds(5), .loop = {}};
  constants.host_kernel = Nanoseconds(100);
  constants.host_graph = Nanoseconds(50);
  cost_compiled_host(graph, parts, CompileMode::standard, costs, constants, 0.5, host);
  EXPECT_EQ(host.ops[0].value, 300);  // at half the speed
  EXPECT_EQ(host.ops[1].value, 2);
  EXPECT_EQ(outside_host(parts, host).value, 7);
}

// One reduction of rows of float32.
Nanoseconds reduced(int64_t rows, int64_t row, const Attributes& work, const CompileConstants& constants) {
  GraphBuilder build;
  const int64_t from[] = {rows * row};
  const int64_t to[] = {rows};
  const TensorId inputs[] = {build.add_tensor(build.add_storage(Bytes(4 * rows * row)), DType::float32, from)};
  const TensorId outputs[] = {build.add_tensor(build.add_storage(Bytes(4 * rows)), DType::float32, to)};
  Attributes attributes = {{"elements", rows}, {"reduced", row}};
  for (const auto& [name, count] : work.entries()) attributes.set(name, count);
  if (work.find("inner") == nullptr) attributes.set("inner", true);
  build.add_op({.name = compile::kReduction, .inputs = inputs, .outputs = outputs, .attributes = &attributes});
  Device device;
  device.memory_bandwidth = 4e12;
  device.peak.fp32 = 67e12;
  CompiledParts parts;
  parts.inside = {true};
  std::vector<OpCost> costs(1);
  cost_compiled(build.finish(), parts, CompileMode::standard, device, constants, costs);
  return costs[0].gpu;
}

TEST(GeneratedKernels, ComputeBesideMovingAndFillRowsUp) {
  CompileConstants constants;
  constants.arithmetic = {.element = 0, .random = 4, .erf = 1, .exp = 1, .trig = 2};
  constants.persistent = {.fixed = Nanoseconds(1000), .bandwidth_share = 1};
  const Nanoseconds plain = reduced(1 << 14, 1000, {}, constants);
  const Nanoseconds drawn = reduced(1 << 14, 1000, {{"random", int64_t{1}}}, constants);
  const double moving = static_cast<double>(plain.value) - 1000;
  const double computing = 1024.0 * (1 << 14) * 4e-3;  // rows of 1,000 are held as 1,024
  EXPECT_NEAR(static_cast<double>(drawn.value), 1000 + std::hypot(moving, computing), 1);
  EXPECT_EQ(reduced(1 << 14, 1000, {{"random", int64_t{1}}}, constants),
            reduced(1 << 14, 1000, {{"trig", int64_t{2}}}, constants));
}

// Rows that many add into take a time for each addition, and far more where neighbouring threads meet.
TEST(GeneratedKernels, AddIntoRowsOneByOne) {
  CompileConstants constants;
  constants.arithmetic.add = 2;
  constants.arithmetic.crowded = 500;
  constants.persistent = {.fixed = Nanoseconds(1000), .bandwidth_share = 1};
  const auto adding = [&](const char* how) { return reduced(64, 128, {{how, int64_t{10'000'000}}}, constants).value; };
  EXPECT_NEAR(static_cast<double>(adding("adds")), 1000 + 20'000, 10);
  EXPECT_NEAR(static_cast<double>(adding("crowded")), 1000 + 5'000'000, 10);
}

TEST(GeneratedKernels, LongRowsAreAddedUpStepByStep) {
  CompileConstants constants;
  constants.looped = {.fixed = Nanoseconds(3000), .bandwidth_share = 1, .step_ns = 1};
  EXPECT_NEAR(static_cast<double>(reduced(2, 100'000, {}, constants).value), 103'000, 100);
}

// Rows and columns have constants of their own; what lies in another order than it is read in comes at a smaller share.
TEST(GeneratedKernels, ReadAcrossMoreSlowly) {
  CompileConstants constants;
  constants.looped = {.fixed = Nanoseconds(1000), .bandwidth_share = 1, .across_share = 0.25};
  constants.looped_columns = {.fixed = Nanoseconds(2000), .bandwidth_share = 0.5};
  const auto moving = [&](const Attributes& how, int64_t fixed) {
    return static_cast<double>(reduced(1 << 10, 1 << 14, how, constants).value - fixed);
  };
  const double straight = moving({}, 1000);
  EXPECT_NEAR(moving({{"across", int64_t{4} << 24}}, 1000) / straight, 4, 0.01);
  EXPECT_NEAR(moving({{"across", int64_t{2} << 24}}, 1000) / straight, 2.5, 0.01);
  EXPECT_NEAR(moving({{"inner", false}}, 2000) / straight, 2, 0.01);
}

// Short rows take their time each, shorter ones less.
TEST(GeneratedKernels, AddUpRowsOneByOne) {
  CompileConstants constants;
  constants.persistent = {.fixed = Nanoseconds(1000), .bandwidth_share = 1e6, .row_ps = 100};
  const auto rows = [&](int64_t row) { return static_cast<double>(reduced(1 << 20, row, {}, constants).value - 1000); };
  EXPECT_NEAR(rows(64), 104'858, 10);
  EXPECT_NEAR(rows(49), 104'858, 10);  // held as 64
  EXPECT_NEAR(rows(512), 104'858, 10);
  EXPECT_NEAR(rows(16), 26'214, 10);
}

// Mean and variance take their time each where the bytes are few.
TEST(GeneratedKernels, TakeStatisticsWhileBytesMove) {
  CompileConstants constants;
  constants.looped_columns = {.fixed = Nanoseconds(1000), .bandwidth_share = 1, .statistics_ps = 10};
  const Attributes columns = {{"inner", false}};
  const Attributes statistics = {{"inner", false}, {"statistics", int64_t{1}}};
  const auto taking = [&](const Attributes& how) {
    return static_cast<double>(reduced(1 << 10, 1 << 14, how, constants).value - 1000);
  };
  EXPECT_NEAR(taking(statistics), 10 * (1 << 24) * 1e-3, 100);
  constants.looped_columns.statistics_ps = 0.001;
  EXPECT_EQ(taking(statistics), taking(columns));
}

// Short rows are held whole, and looped over where they are no rows to Inductor: each element then takes its time.
TEST(GeneratedKernels, LoopOverWhatIsNoRow) {
  CompileConstants constants;
  constants.persistent = {.fixed = Nanoseconds(1000), .bandwidth_share = 1e6};
  constants.looped = {.fixed = Nanoseconds(9000), .bandwidth_share = 1e6};
  constants.looped_short = {.fixed = Nanoseconds(2000), .bandwidth_share = 1e6, .across_share = 1e6, .element_ps = 4};
  const auto rows = [&](int64_t row, const Attributes& how) {
    return static_cast<double>(reduced(1 << 14, row, how, constants).value);
  };
  EXPECT_NEAR(rows(256, {}), 1000, 5);
  EXPECT_NEAR(rows(256, {{"row", false}}), 2000 + (1 << 22) * 4e-3, 20);
  EXPECT_NEAR(rows(64, {{"row", false}}), 1000, 5) << "so few are held all the same";
  EXPECT_NEAR(rows(2048, {{"row", false}}), 9000, 5);
}

// Whoever applies a norm by statistics of another kernel takes their root for each element.
TEST(GeneratedKernels, TakeRootsOfNormsAnew) {
  CompileConstants constants;
  constants.persistent = {.fixed = Nanoseconds(1000), .bandwidth_share = 1e6};
  constants.arithmetic.norm = 1;
  const auto norms = [&](int64_t count) { return reduced(1 << 14, 1 << 10, {{"norms", count}}, constants).value; };
  EXPECT_NEAR(static_cast<double>(norms(1)), 1000 + (1 << 24) * 1e-3, 20);
  EXPECT_NEAR(static_cast<double>(norms(2)), 1000 + 2 * (1 << 24) * 1e-3, 20);
}

// A pooling layer looks at each element of a window; where it compares places, that costs more.
TEST(GeneratedKernels, LookIntoWindows) {
  CompileConstants constants;
  constants.arithmetic.look = 1;
  constants.arithmetic.look_back = 2;
  const auto looks = [&](const char* how) { return reduced(1 << 14, 1 << 10, {{how, int64_t{9}}}, constants).value; };
  EXPECT_NEAR(static_cast<double>(looks("looks_back")), 2 * static_cast<double>(looks("looks")), 5000);
}

// A small table that all look up is added into slowly, in 16 bits more so.
TEST(GeneratedKernels, AddIntoSmallTables) {
  CompileConstants constants;
  constants.persistent = {.fixed = Nanoseconds(1000), .bandwidth_share = 1};
  constants.arithmetic.often = 100;
  constants.arithmetic.often_narrow = 400;
  const auto adding = [&](const char* how) { return reduced(64, 128, {{how, int64_t{1'000'000}}}, constants).value; };
  EXPECT_NEAR(static_cast<double>(adding("often")), 1000 + 100'000, 100);
  EXPECT_NEAR(static_cast<double>(adding("often_narrow")), 1000 + 400'000, 100);
}

// An A100 has fewer multiprocessors at a lower clock: what is computed takes 1.7 times as long, what is moved goes by its memory.
TEST(GeneratedKernels, ComputeAsFastAsMultiprocessorsTick) {
  GraphBuilder build;
  const int64_t shape[] = {1 << 20};
  const TensorId outputs[] = {build.add_tensor(build.add_storage(Bytes(4)), DType::float32, shape)};
  const Attributes attributes = {{"elements", int64_t{1} << 30}, {"exp", int64_t{4}}};
  build.add_op({.name = compile::kPointwise, .outputs = outputs, .attributes = &attributes});
  const Graph graph = build.finish();
  CompiledParts parts;
  parts.inside = {true};
  CompileConstants constants;
  constants.arithmetic.exp = 1;
  const auto took = [&](int64_t sms, double mhz) {
    Device device;
    device.memory_bandwidth = 1e18;
    device.sm_count = sms;
    device.clock_mhz = mhz;
    std::vector<OpCost> costs(1);
    cost_compiled(graph, parts, CompileMode::standard, device, constants, costs);
    return static_cast<double>(costs[0].gpu.value);
  };
  EXPECT_NEAR(took(108, 1410) / took(132, 1980), 132 * 1980.0 / (108 * 1410.0), 1e-4);
}

// A product, what alone reads it, and another reader of that.
struct ProductAndReader {
  Graph graph;
  CompiledParts parts;
  Device device;
  CompileConstants constants;
  std::vector<OpCost> costs = std::vector<OpCost>(2);

  ProductAndReader() {
    GraphBuilder build;
    const int64_t elements = 1 << 20;
    const int64_t square[] = {1 << 10, 1 << 10}, flat[] = {elements};
    const StorageId storages[] = {build.add_storage(Bytes(4 << 20)), build.add_storage(Bytes(4 << 20)),
                                  build.add_storage(Bytes(4 << 20))};
    const TensorId given[] = {build.add_tensor(storages[0], DType::float32, square)};
    const TensorId product[] = {build.add_tensor(storages[1], DType::float32, square)};
    const TensorId read[] = {build.add_tensor(storages[1], DType::float32, flat)};
    const TensorId result[] = {build.add_tensor(storages[2], DType::float32, flat)};
    const Attributes size = {{"elements", elements}};
    build.add_op({.name = "aten.mm.default", .inputs = given, .outputs = product});
    build.add_op({.name = compile::kPointwise, .inputs = read, .outputs = result, .attributes = &size});
    build.mark_freed(storages[1], OpId(2));
    graph = build.finish();
    parts.inside = {true, true};
    parts.passes = {{.first = OpId(0), .end = OpId(2), .given = {storages[0]}}};
    device.memory_bandwidth = 4e12;
    constants.pointwise = {.fixed = Nanoseconds(1000), .bandwidth_share = 0.5};
    costs[0] = {.gpu = Nanoseconds(9000), .overlapped = {}, .kernels = 1};
  }
};

TEST(GeneratedKernels, ATunedProductTakesInWhatReadsItWhereThatIsFaster) {
  ProductAndReader p;
  cost_compiled(p.graph, p.parts, CompileMode::autotune_without_graphs, p.device, p.constants, p.costs);
  EXPECT_EQ(p.costs[0].gpu.value, 10000);  // at nine tenths of the library's speed; nothing further is moved
  EXPECT_EQ(p.costs[1].kernels, 0);
  ProductAndReader large;
  large.costs[0].gpu = Nanoseconds(90'000'000);  // the template would lose more than the reader takes
  cost_compiled(large.graph, large.parts, CompileMode::autotune_without_graphs, large.device, large.constants,
                large.costs);
  EXPECT_EQ(large.costs[0].gpu.value, 90'000'000);
  EXPECT_EQ(large.costs[1].kernels, 1);
}

TEST(GeneratedKernels, ACudaGraphCopiesWhatItIsGivenAndIsLaunchedOnce) {
  ProductAndReader p;
  cost_compiled(p.graph, p.parts, CompileMode::reduce_overhead, p.device, p.constants, p.costs);
  EXPECT_EQ(p.costs[0].kernels, 2);
  EXPECT_EQ(p.costs[0].gpu.value, 9000 + 1000 + 4194);  // 8 MiB at 2 TB/s
  p.constants.host_graph = Nanoseconds(400'000);
  p.constants.host_library = p.constants.host_kernel = Nanoseconds(20'000);
  HostCosts host{.ops = {Nanoseconds(1), Nanoseconds(2)}, .per_iteration = {}, .loop = {}};
  cost_compiled_host(p.graph, p.parts, CompileMode::reduce_overhead, p.costs, p.constants, 1, host);
  EXPECT_EQ(host.ops[0].value, 400'000 + 20'000 + cuda_graph_launch(3).value);
  EXPECT_EQ(host.ops[1].value, 0);
}

TEST(GeneratedKernels, KernelsOfACudaGraphAreMarked) {
  ProductAndReader p;
  cost_compiled(p.graph, p.parts, CompileMode::standard, p.device, p.constants, p.costs);
  EXPECT_FALSE(p.costs[0].captured);
  cost_compiled(p.graph, p.parts, CompileMode::reduce_overhead, p.device, p.constants, p.costs);
  EXPECT_TRUE(p.costs[0].captured);
}

TEST(GeneratedKernels, AParameterTakesTheHostLessWhereAGraphMakesItsGradient) {
  HostConstants host;
  host.parameter = Nanoseconds(40'000);
  CompileConstants constants;
  constants.host_parameter = Nanoseconds(20'000);
  CompiledParts parts;
  EXPECT_EQ(compiled_host(host, parts, constants).parameter.value, 40'000);  // nothing was compiled
  parts.passes.emplace_back();
  EXPECT_EQ(compiled_host(host, parts, constants).parameter.value, 20'000);
}

TEST(GeneratedKernels, CostTheHostByTheKindOfCall) {
  GraphBuilder build;
  const int64_t shape[] = {1};
  const TensorId tensor[] = {build.add_tensor(build.add_storage(Bytes(4)), DType::float32, shape)};
  CompiledParts parts;
  for (const std::string_view name : {std::string_view("aten.mm.default"), std::string_view("aten.convolution.default"),
                                      std::string_view("aten.convolution_backward.default"),
                                      std::string_view("aten._scaled_dot_product_flash_attention.default")}) {
    build.add_op({.name = name, .inputs = tensor, .outputs = tensor});
    parts.inside.push_back(true);
  }
  parts.passes = {{.first = OpId(0), .end = OpId(4), .given = {}}};
  CompileConstants constants;
  constants.host_library = Nanoseconds(1);
  constants.host_convolution = Nanoseconds(20);
  constants.host_convolution_backward = Nanoseconds(300);
  constants.host_attention = Nanoseconds(4000);
  HostCosts host{.ops = std::vector<Nanoseconds>(4), .per_iteration = {}, .loop = {}};
  std::vector<OpCost> costs(4);
  for (OpCost& cost : costs) cost.kernels = 1;
  cost_compiled_host(build.finish(), parts, CompileMode::standard, costs, constants, 1, host);
  EXPECT_EQ(host.ops[0].value, 1);
  EXPECT_EQ(host.ops[1].value, 20);
  EXPECT_EQ(host.ops[2].value, 300);
  EXPECT_EQ(host.ops[3].value, 4000);
}

// What products in bfloat16 took where PyTorch tuned them: by the best template, and by the best of the libraries' kernels.
TEST(GeneratedKernels, TemplatesReachWhatWasMeasured) {
  const std::string file = (*data_dir() / "compile" / "tuned_products.jsonl").string();
  std::ifstream lines(file);
  std::vector<double> shares;
  for (std::string line; std::getline(lines, line);) {
    Result<JsonObject> row = JsonObject::parse(line, file);
    ASSERT_TRUE(row.ok()) << row.error().message();
    if (row->text("call") != "mm" || row->text("type") != "bfloat16") continue;
    if (!row->has("template_us") || !row->has("library_us")) continue;  // it was not among the ten best
    shares.push_back(row->number("library_us") / row->number("template_us"));
  }
  ASSERT_EQ(shares.size(), 47u);
  std::sort(shares.begin(), shares.end());
  EXPECT_NEAR(kTemplateShare, shares[shares.size() / 2], 0.02);
}

TEST(GeneratedKernels, AreReadFromTheDataFolder) {
  const CompileConstants constants = kept();
  EXPECT_GT(constants.looped.fixed.value, 0);
  EXPECT_LE(constants.gpu.low, 1);
  EXPECT_GE(constants.gpu.high, 1);
}

TEST(GeneratedKernels, AFileThatIsNotSoundIsRefused) {
  const std::string file = testing::TempDir() + "kernels.json";
  for (const char* text :
       {"{}", "{\"format\": \"compile-kernels/9\"}", "[", "{\"format\": \"compile-kernels/5\", \"kernels\": 3}"}) {
    std::ofstream(file) << text;
    EXPECT_FALSE(load_compile_constants(file).ok()) << text;
  }
}

}  // namespace
}  // namespace forerun
