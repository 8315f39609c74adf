#include "lab/learn/ets/shared_form.h"

#include <algorithm>
#include <unordered_map>

#include "lab/trees/op_figures.h"

namespace forerun::learn {
namespace {

constexpr double kShortestUs = 2;       // that a kernel takes however little it does
constexpr double kSharedGapUs = 20;     // behind an op
constexpr double kSharedReached = 0.5;  // of peak rates

// Places of the shared form in OpRow::hyper.
enum SharedPlace : size_t { kProduct = 0, kGroupCount = 3, kWindowPlaces = 4, kUpdatedTensors = 5 };
// Of a record's product and window, as lab/dataset/record_example.cpp has them.
enum RecordPlace : size_t { kRecordGemm = 14, kRecordWindow = 19, kRecordGroups = 24 };

// The authors' numbers that occur in their traces.
OpClass traced_class(std::string_view number) {
  static const std::unordered_map<std::string_view, OpClass> classes = {
      {"203", OpClass::convolution}, {"201", OpClass::gemm},        {"205", OpClass::normalization},
      {"0", OpClass::normalization}, {"183", OpClass::pooling},     {"189", OpClass::pooling},
      {"199", OpClass::pooling},     {"181", OpClass::softmax},     {"213", OpClass::copy},
      {"210", OpClass::random},      {"212", OpClass::random},      {"152", OpClass::elementwise},
      {"154", OpClass::elementwise}, {"156", OpClass::elementwise}, {"159", OpClass::elementwise},
      {"166", OpClass::elementwise}, {"243", OpClass::elementwise}, {"244", OpClass::elementwise},
      {"21", OpClass::elementwise},  {"23", OpClass::elementwise},  {"35", OpClass::elementwise},
      {"234", OpClass::elementwise}};
  const auto found = classes.find(number);
  return found == classes.end() ? OpClass::opaque : found->second;
}

void set_product(double m, double n, double k, double groups, double window, OpRow& row) {
  const double extents[] = {m, n, k};
  for (size_t i = 0; i < 3; ++i) row.hyper[kProduct + i] = static_cast<float>(extents[i]);
  row.hyper[kGroupCount] = static_cast<float>(groups);
  row.hyper[kWindowPlaces] = static_cast<float>(window);
}

OpRow shared_of_trace(const OpRow& row, std::string_view name) {
  const OpFigures figures = figures_of(row, name);
  OpRow shared;
  shared.cls = traced_class(name);
  const bool product = figures.m * figures.n * figures.k > 1;
  const double passes = product && row.phase == Phase::backward ? 2 : 1;
  shared.set(Amount::flops, passes * figures.flops);
  shared.set(Amount::bytes_read, passes * figures.bytes);
  // Of backward the first product is the gradient of the input.
  const bool swapped = row.phase == Phase::backward;
  if (product) {
    set_product(figures.m, swapped ? figures.k : figures.n, swapped ? figures.n : figures.k, figures.groups,
                figures.kernel, shared);
  }
  return shared;
}

OpRow shared_of_record(const OpRow& row) {
  OpRow shared;
  shared.cls = row.cls;
  shared.set(Amount::flops, row.amount(Amount::flops));
  shared.set(Amount::bytes_read, double{row.amount(Amount::bytes_read)} + row.amount(Amount::bytes_written));
  const auto& hyper = row.hyper;
  set_product(hyper[kRecordGemm], hyper[kRecordGemm + 1], hyper[kRecordGemm + 2], hyper[kRecordGroups],
              double{hyper[kRecordWindow]} * hyper[kRecordWindow + 1], shared);
  if (row.cls == OpClass::optimizer) shared.hyper[kUpdatedTensors] = row.amount(Amount::tensors);
  return shared;
}

double arithmetic_of(const OpRow& row, const Example& example, const Device& device) {
  if (size_of(row.dtype) == 2) return std::max(device.rate(Unit::bf16_tensor), device.rate(Unit::fp16_tensor));
  if (size_of(row.dtype) == 8) return device.rate(Unit::fp64);
  const bool product = row.cls == OpClass::gemm || row.cls == OpClass::convolution || row.cls == OpClass::rnn;
  return device.rate(product && example.precision == Precision::tf32 ? Unit::tf32_tensor : Unit::fp32);
}

}  // namespace

bool is_traced_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

DataSet in_shared_form(const DataSet& data) {
  DataSet shared;
  shared.source = data.source;
  std::vector<uint32_t> place_of;
  for (const OpRow& row : data.rows()) {
    const std::string& name = data.name_of_row(row);
    OpRow same = is_traced_name(name) ? shared_of_trace(row, name) : shared_of_record(row);
    same.name = shared.intern_name(name_of(same.cls));
    same.phase = row.phase;
    same.dtype = row.dtype;
    same.on_gpu = row.on_gpu;
    place_of.push_back(shared.intern(same));
  }
  for (const Example& example : data.examples()) {
    Example copy = example;
    for (uint32_t& row : copy.ops) row = place_of[row];
    shared.add(std::move(copy));
  }
  shared.division = data.division;
  return shared;
}

std::vector<OpScale> shared_scales(const DataSet& data, const Example& example, std::span<const uint32_t> places,
                                   const Device& device) {
  const double bandwidth = std::max(device.memory_bandwidth, 1.0);
  std::vector<OpScale> scales;
  const OpRow* before = nullptr;
  for (const uint32_t place : places) {
    const OpRow& row = data.rows()[example.ops[place]];
    const double rate = std::max(kSharedReached * arithmetic_of(row, example, device), 1.0);
    const double seconds = std::max(row.amount(Amount::flops) / rate, row.amount(Amount::bytes_read) / bandwidth);
    scales.push_back({.time_us = kShortestUs + 1e6 * seconds, .gap_us = kSharedGapUs, .repeats = &row == before});
    before = &row;
  }
  return scales;
}

}  // namespace forerun::learn
