#include "ingest/onnx/onnx_reader.h"

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <unordered_set>

#include "ingest/onnx/dataflow.h"
#include "ingest/onnx/dimensions.h"
#include "ingest/onnx/message_size.h"
#include "ingest/onnx/onnx_proto.h"
#include "ingest/onnx/translation.h"

namespace forerun {
namespace {

using ingest::Dataflow;
using ingest::Dimensions;
using ingest::Translation;

constexpr int64_t kMaxBytes = std::numeric_limits<int>::max();  // protobuf's own limit
constexpr int kMaxNesting = 100;                                // messages inside messages
constexpr int64_t kFirstVersionWithOpsets = 3;                  // of the file format; files before it have opset 1

// What the first bytes say a file is, where it is something else that models come in.
std::string_view other_format(std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04")) return "a zip archive (PyTorch's torch.save writes those)";
  if (bytes.starts_with("\x1f\x8b")) return "gzip data";
  if (bytes.starts_with("\x89HDF")) return "an HDF5 file (Keras)";
  if (bytes.starts_with("{") || bytes.starts_with("[")) return "JSON";
  if (bytes.starts_with("version https://git-lfs")) return "a Git LFS pointer, not the file itself";
  return "";
}

Error not_a_model(std::string_view bytes, const std::string& name) {
  const std::string_view format = bytes.empty() ? "an empty file" : other_format(bytes);
  if (!format.empty()) {
    return {fmt::format("not an ONNX model but {}", format), name, "give the file that the ONNX exporter wrote"};
  }
  return {"not a complete ONNX model: the protobuf message cannot be parsed", name,
          "the file is truncated, damaged or of another kind; export or download it again"};
}

Result<int64_t> opset_of(const onnx::ModelProto& model) {
  int64_t opset = 0;
  for (const onnx::OperatorSetIdProto& import : model.opset_import()) {
    if (import.domain().empty() || import.domain() == "ai.onnx") opset = std::max(opset, import.version());
  }
  if (opset == 0 && model.opset_import_size() == 0 && model.ir_version() < kFirstVersionWithOpsets) opset = 1;
  if (opset >= 1) return opset;
  return Error{"the model does not say which version of the ONNX operators (opset) it uses", "",
               "export it again, for opset 11 or later"};
}

// The inputs that a caller feeds: those without an initializer.
Result<std::vector<const onnx::ValueInfoProto*>> fed_inputs(const onnx::GraphProto& graph) {
  std::unordered_set<std::string_view> initialized;
  for (const onnx::TensorProto& tensor : graph.initializer()) initialized.insert(tensor.name());
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) initialized.insert(ingest::name_of(tensor));
  std::vector<const onnx::ValueInfoProto*> inputs;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initialized.contains(input.name())) continue;
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) {
      return Error{"the input does not state the shape of a tensor",
                   fmt::format("input '{}'", ingest::printable(input.name())),
                   "export the model with the shapes of its inputs"};
    }
    inputs.push_back(&input);
  }
  if (!inputs.empty()) return inputs;
  return Error{"the model has no inputs", "", "give a model that is fed data"};
}

// Image, tokens or flat, from the first input that carries samples; classes from the first result (the loss is its).
InputSpec describe_input(Translation& translation, size_t batch_axis) {
  ForwardBuilder& b = translation.builder();
  const auto is_tokens = [&](TensorId x) {
    return (b.dtype(x) == DType::int64 || b.dtype(x) == DType::int32) && b.shape(x).size() == 2;
  };
  const auto is_image = [&](TensorId x) { return is_floating(b.dtype(x)) && b.shape(x).size() == 4; };
  const auto is_features = [&](TensorId x) { return is_floating(b.dtype(x)) && b.shape(x).size() >= 2; };
  const std::vector<TensorId>& inputs = translation.inputs();
  const auto carries = [&](TensorId x) { return is_tokens(x) || is_features(x); };
  const auto found = std::find_if(inputs.begin(), inputs.end(), carries);
  const TensorId x = found == inputs.end() ? inputs.front() : *found;
  const Shape shape = b.shape(x);
  const Shape result = b.shape(translation.results().front());

  InputSpec spec;
  if (x != inputs.front() || batch_axis >= shape.size()) batch_axis = 0;
  spec.batch = shape.empty() ? 1 : shape[batch_axis];
  spec.classes = result.empty() ? 1 : result.back();
  spec.channels = 1;
  spec.size = 1;
  if (is_image(x)) {
    const bool dense = result.size() == 4;  // a class for each pixel
    spec.kind = dense ? InputKind::dense : InputKind::image;
    spec.channels = shape[1];
    spec.size = shape[2];
    if (dense) spec.classes = result[1];
  } else if (is_tokens(x)) {
    spec.kind = InputKind::tokens;
    spec.size = shape[1];
  } else {
    spec.kind = InputKind::flat;
    for (size_t i = 0; i < shape.size(); ++i) spec.channels *= i == batch_axis ? 1 : shape[i];
  }
  return spec;
}

Result<OnnxModel> translate(const onnx::ModelProto& model, const OnnxOptions& options) {
  const onnx::GraphProto& graph = model.graph();
  Result<int64_t> opset = opset_of(model);
  if (!opset) return opset.error();
  if (graph.output_size() == 0) {
    return Error{"the model has no outputs", "", "export it with its logits as an output"};
  }
  Result<Dataflow> flow = ingest::trace_dataflow(graph);
  if (!flow) return flow.error();
  Result<std::vector<const onnx::ValueInfoProto*>> inputs = fed_inputs(graph);
  if (!inputs) return inputs.error();
  Result<Dimensions> dimensions = Dimensions::bind(*inputs, options);
  if (!dimensions) return dimensions.error();

  Translation translation(graph, *flow, *opset);
  if (Status done = translation.add_roots(*inputs, *dimensions); !done) return done.error();
  if (Status done = translation.translate_nodes(*dimensions); !done) return done.error();
  if (Status done = translation.add_results(); !done) return done.error();

  OnnxModel out;
  out.input = describe_input(translation, dimensions->batch_axis());
  out.opaque_ops = translation.opaque_ops();
  out.opset = *opset;
  out.producer = ingest::printable(model.producer_name());
  if (!model.producer_version().empty()) out.producer += " " + ingest::printable(model.producer_version());
  Result<Graph> forward = translation.builder().finish();
  if (!forward) return forward.error();
  out.forward = std::move(*forward);
  return out;
}

Result<OnnxModel> parse(std::string_view bytes, const std::string& name, const OnnxOptions& options) {
  if (static_cast<int64_t>(bytes.size()) > kMaxBytes) {
    return Error{"larger than 2 GiB, which protobuf cannot parse", name,
                 "export the model with its weights as external data (save_as_external_data)"};
  }
  if (Status affordable = ingest::check_message_size(bytes); !affordable) return affordable.error().within(name);
  google::protobuf::Arena arena;
  auto* model = google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(static_cast<int>(kMaxBytes));
  stream.SetRecursionLimit(kMaxNesting);
  if (bytes.empty() || !model->MergePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return not_a_model(bytes, name);
  }
  if (!model->has_graph()) return not_a_model(bytes, name);
  Result<OnnxModel> out = translate(*model, options);
  if (!out) return out.error().within(name);
  return out;
}

Result<std::string> read_file(const std::string& path) {
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status)) return Error{"there is no such file", path, "check the path"};
  if (!std::filesystem::is_regular_file(status)) return Error{"not a regular file", path, "give an .onnx file"};
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, failed));
  if (!failed && size > kMaxBytes) {
    return Error{"larger than 2 GiB, which protobuf cannot parse", path,
                 "export the model with its weights as external data (save_as_external_data)"};
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  bytes.resize(failed ? 0 : static_cast<size_t>(size));
  if (failed || !file || !file.read(bytes.data(), size))
    return Error{"the file cannot be read", path, "check its permissions"};
  return bytes;
}

// What other libraries throw stops here.
template <class Work>
auto guarded(const std::string& name, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{"the model does not fit in this machine's memory", name, "use a machine with more memory"};
  } catch (const std::exception& thrown) {
    return Error{fmt::format("the model cannot be read: {}", thrown.what()), name, "export or download it again"};
  }
}

}  // namespace

Status check_trainable(const OnnxModel& model) {
  if (model.forward.parameter_tensors() > 0) return {};
  const auto has = [&](std::string_view part) {
    return std::any_of(model.opaque_ops.begin(), model.opaque_ops.end(),
                       [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
  };
  const std::string what = "the model has no weights, so there is nothing to train";
  if (has("If") || has("Loop") || has("Scan")) {
    return Error{what + ": those inside If, Loop and Scan are not read", "",
                 "export the model without control flow (traced for one form of the input)"};
  }
  if (has("QuantizeLinear") || has("DequantizeLinear") || has("Integer") || has("QLinear")) {
    return Error{what + ": those of quantized layers are integers", "",
                 "give the floating-point model that it was quantized from"};
  }
  return Error{what, "", "export the model with its weights, as initializers or Constant nodes"};
}

Result<OnnxModel> read_onnx_bytes(std::string_view bytes, const std::string& name, const OnnxOptions& options) {
  return guarded(name, [&]() { return parse(bytes, name, options); });
}

Result<OnnxModel> read_onnx(const std::string& path, const OnnxOptions& options) {
  return guarded(path, [&]() -> Result<OnnxModel> {
    Result<std::string> bytes = read_file(path);
    if (!bytes) return bytes.error();
    return parse(*bytes, path, options);
  });
}

}  // namespace forerun
