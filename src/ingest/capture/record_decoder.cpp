#include "ingest/capture/record_decoder.h"

#include <charconv>

#include "base/line_reader.h"
#include "ingest/capture/column_decoder.h"
#include "ingest/capture/dynamo_decoder.h"
#include "ingest/capture/environment_decoder.h"
#include "ingest/capture/measurement_decoder.h"
#include "ingest/capture/op_decoder.h"
#include "ingest/capture/size_forms_decoder.h"

namespace forerun {
namespace {

std::optional<Root> root_named(std::string_view name) {
  if (name == "param") return Root::parameter;
  if (name == "buffer") return Root::buffer;
  if (name == "state") return Root::state;
  if (name == "input") return Root::input;
  return std::nullopt;
}

}  // namespace

class RecordDecoder::Impl : JsonWalk {
 public:
  Status decode(std::string_view line, Fields fields, RecordColumns& columns) {
    columns.clear();
    columns_ = &columns;
    groups_.start(columns);
    measurements_.start(columns, fields);
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    auto code = parser_.iterate(line.data(), line.size(), line.size() + LineReader::kPadding).get(document);
    if (code == simdjson::SUCCESS) code = document.get_object().get(object);
    if (code != simdjson::SUCCESS) fail(code, "the record", "a JSON object");
    const bool read =
        code == simdjson::SUCCESS && each_field(object, "the record", [&](std::string_view key, Value value) {
          const auto field = record_field_named(key);
          if (!field || !is_wanted(*field, fields)) return true;
          columns.seen |= uint64_t{1} << static_cast<unsigned>(*field);
          return decode_field(*field, value);
        });
    if (!read) return Error{complaint(), "", ""};
    const char* rest = nullptr;
    if (document.current_location().get(rest) == simdjson::SUCCESS) {
      return Error{"the record is followed by more text on its line", "", ""};
    }
    if (!groups_.finish()) return Error{groups_.complaint(), "", ""};
    return {};
  }

 private:
  bool decode_field(RecordField field, Value value) {
    switch (field) {
      case RecordField::schema: return schema(value);
      case RecordField::id: return text(value, "id", columns_->id);
      case RecordField::backend: return backend(value);
      case RecordField::family: return text(value, "family", columns_->family);
      case RecordField::args: return arguments(value);
      case RecordField::input: return input(value);
      case RecordField::run: return setup(value);
      case RecordField::env: return environment(value);
      case RecordField::params: return count(value, "params", columns_->parameter_count);
      case RecordField::param_tensors: return count(value, "param_tensors", columns_->parameter_tensors);
      case RecordField::warnings: return texts(value, "warnings", columns_->warnings);
      case RecordField::assumed: return texts(value, "assumed", columns_->assumed);
      case RecordField::op_names: return texts(value, "op_names", columns_->op_names);
      case RecordField::modules: return texts(value, "modules", columns_->modules);
      case RecordField::dtypes: return groups_.dtypes(value) || fail(groups_.complaint());
      case RecordField::shapes: return groups_.shapes(value) || fail(groups_.complaint());
      case RecordField::attributes: return groups_.attributes(value) || fail(groups_.complaint());
      case RecordField::nodes: return groups_.nodes(value) || fail(groups_.complaint());
      case RecordField::tensors: return groups_.tensors(value) || fail(groups_.complaint());
      case RecordField::ops: return ops(value);
      case RecordField::storages: return storages(value);
      case RecordField::frees: return frees(value);
      case RecordField::roots: return roots(value);
      case RecordField::parametric: return forms_.decode(value, columns_->forms) || fail(forms_.complaint());
      case RecordField::dynamo:
        return dynamo_.decode(value, columns_->dynamo, columns_->pieces) || fail(dynamo_.complaint());
      default: return measurements_.decode(field, value) || fail(measurements_.complaint());
    }
  }

  bool schema(Value value) {
    std::string_view name;
    if (!text(value, "schema", name)) return false;
    if (name == "run/1" || name == "run/2" || name == "run/3") return true;
    return fail(fmt::format("schema is \"{}\"; known: run/1, run/2, run/3", name.substr(0, 60)));
  }

  bool backend(Value value) {
    std::string_view name;
    return text(value, "backend", name) &&
           named("backend", name, backend_named(name), "cuda, generic", columns_->backend);
  }

  bool arguments(Value value) {
    std::string_view raw;
    if (!object_text(value, "args", raw)) return false;
    auto checked = arguments_.decode(raw);
    if (!checked) return fail("args " + checked.error().what);
    columns_->arguments = checked->to_json();  // valid JSON even where the record holds Infinity
    return true;
  }

  bool count(Value value, std::string_view what, int64_t& out) {
    if (!whole(value, what, out)) return false;
    if (out < 0 || out > RecordLimits::kMostElements)
      return fail(fmt::format("{} is {}, not between 0 and 2^46", what, out));
    return true;
  }

  // ["image", batch, channels, size, classes], ["tokens", batch, length, vocabulary, flavour], "dense" as "image",
  // ["flat", batch, features, 0, classes]
  bool input(Value value) {
    InputSpec& input = columns_->input;
    size_t entries = 0;
    const bool read = each(value, "input", [&](size_t position, Value item) {
      ++entries;
      std::string_view kind;
      const bool tokens = input.kind == InputKind::tokens;
      switch (position) {
        case 0:
          return text(item, "the kind of input", kind) &&
                 named("the kind of input", kind, input_kind_named(kind), "image, tokens, dense, flat", input.kind);
        case 1: return count(item, "input's batch", input.batch);
        case 2: return count(item, "input's second number", tokens ? input.size : input.channels);
        case 3: return count(item, "input's third number", tokens ? input.classes : input.size);
        case 4:
          return tokens ? text(item, "input's flavour", input.flavour) : count(item, "input's classes", input.classes);
        default: return true;
      }
    });
    if (read && entries < 5) return fail(fmt::format("input has {} entries instead of 5", entries));
    return read;
  }

  bool setup(Value value) {
    bool has_precision = false;
    bool has_optimizer = false;
    const bool read = each_field(value, "run", [&](std::string_view key, Value item) {
      std::string_view name;
      if (key == "channels_last") return flag(item, "run.channels_last", columns_->setup.channels_last);
      if (key == "accumulate") return accumulate(item);
      if (key == "optimizer") return has_optimizer = optimizer(item);
      if (key == "checkpoint") {
        return text(item, "run.checkpoint", name) && named("run.checkpoint", name, checkpointing_named(name),
                                                           "none, block, selective", columns_->setup.checkpointing);
      }
      if (key == "lora") return lora(item);
      if (key == "freeze") return own_texts(item, "run.freeze", columns_->setup.freeze);
      if (key == "quantize") return quantize(item);
      if (key == "clip_grad") return number(item, "run.clip_grad", columns_->setup.clip_norm);
      if (key == "loop") {
        return text(item, "run.loop", name) && named("run.loop", name, training_loop_named(name),
                                                     "plain, trainer, lightning, accelerate", columns_->setup.loop);
      }
      if (key == "attention") {
        return text(item, "run.attention", name) &&
               named("run.attention", name, attention_named(name), "sdpa, flash, eager", columns_->setup.attention);
      }
      if (key == "ema") return flag(item, "run.ema", columns_->setup.ema);
      if (key != "precision") return true;
      has_precision = true;
      return text(item, "run.precision", name) &&
             named("run.precision", name, precision_named(name), "fp32, tf32, amp_bf16, amp_fp16, bf16, fp16",
                   columns_->setup.precision);
    });
    if (read && !has_precision) return fail("run lacks precision");
    if (read && !has_optimizer) return fail("run lacks optimizer");
    return read;
  }

  bool accumulate(Value value) {
    int64_t& batches = columns_->setup.accumulate;
    if (!count(value, "run.accumulate", batches)) return false;
    return batches > 0 || fail("run.accumulate is 0");
  }

  bool own_texts(Value value, std::string_view what, std::vector<std::string>& out) {
    std::vector<std::string_view> read;
    if (!texts(value, what, read)) return false;
    out.assign(read.begin(), read.end());
    return true;
  }

  bool lora(Value value) {
    LoraSpec& spec = columns_->setup.lora;
    const bool read = each_field(value, "run.lora", [&](std::string_view key, Value item) {
      if (key == "rank") return count(item, "the adapters' rank", spec.rank);
      if (key == "targets") return own_texts(item, "run.lora.targets", spec.targets);
      if (key == "dropout") return number(item, "the adapters' dropout", spec.dropout);
      return true;
    });
    return read && (spec.rank > 0 || fail("the adapters' rank is 0"));
  }

  bool quantize(Value value) {
    std::string_view words;
    if (!text(value, "run.quantize", words)) return false;
    const auto spec = parse_quantize(std::string(words));
    if (!spec) return fail("run.quantize: " + spec.error().what + "; " + spec.error().remedy);
    columns_->setup.quantize = *spec;
    return true;
  }

  bool optimizer(Value value) {
    OptimizerSpec& spec = columns_->setup.optimizer;
    bool has_name = false;
    const bool read = each_field(value, "run.optimizer", [&](std::string_view key, Value item) {
      std::string_view name;
      if (key == "lr") return number(item, "the optimizer's lr", spec.learning_rate);
      if (key == "momentum") return number(item, "the optimizer's momentum", spec.momentum);
      if (key == "weight_decay") return number(item, "the optimizer's weight_decay", spec.weight_decay);
      if (key == "impl") {
        return text(item, "the optimizer's impl", name) &&
               named("the optimizer's impl", name, optimizer_impl_named(name), "forloop, foreach, fused", spec.impl);
      }
      if (key != "name") return true;
      has_name = true;
      if (!text(item, "the optimizer's name", name)) return false;
      spec.kind = optimizer_named(name).value_or(OptimizerKind::other);  // its ops are in the record all the same
      return true;
    });
    if (read && !has_name) return fail("run.optimizer lacks name");
    return read;
  }

  bool environment(Value value) {
    EnvironmentDecoder decoder;
    return each_field(value, "env", [&](std::string_view key, Value item) {
      return decoder.entry(key, item, columns_->environment) || fail(decoder.complaint());
    });
  }

  bool ops(Value value) {
    if (is_object(value)) return groups_.ops(value) || fail(groups_.complaint());
    groups_.forget_ops();
    OpDecoder decoder(*columns_);
    return decoder.decode(value) || fail(decoder.complaint());
  }

  bool storages(Value value) {
    if (is_object(value)) return groups_.storages(value) || fail(groups_.complaint());
    columns_->storages.clear();
    return each(value, "storages", [&](size_t id, Value item) {
      StorageRow row;
      size_t entries = 0;
      std::string_view device;
      const bool read = each(item, "a storage", [&](size_t position, Value part) {
        ++entries;
        if (position == 0) return whole(part, "its size", row.bytes.value);
        return position > 1 || text(part, "its device", device);
      });
      if (!read) return fail(fmt::format("storage {}: {}", id, complaint()));
      if (entries < 2) return fail(fmt::format("storage {} is not [bytes, device]", id));
      if (row.bytes.value < 0 || row.bytes.value > RecordLimits::kMostBytes) {
        return fail(fmt::format("storage {} has {} bytes, not between 0 and 2^60", id, row.bytes.value));
      }
      row.on_gpu = device != "cpu" && device != "meta";
      columns_->storages.push_back(row);
      return true;
    });
  }

  bool frees(Value value) {
    if (is_object(value)) return groups_.frees(value) || fail(groups_.complaint());
    columns_->frees.clear();
    return each(value, "frees", [&](size_t index, Value item) {
      FreeRow row;
      size_t entries = 0;
      const bool read = each(item, "an entry of frees", [&](size_t position, Value part) {
        ++entries;
        return position > 1 || whole(part, "an entry of frees", position == 0 ? row.op : row.storage);
      });
      if (read && entries < 2) return fail(fmt::format("entry {} of frees is not [op, storage]", index));
      columns_->frees.push_back(row);
      return read;
    });
  }

  // run/1: {"7": ["param", "fc.weight"]}; run/2: {"storage": [7], "kind": "p", "name": ["fc.weight"]}.
  bool roots(Value value) {
    simdjson::ondemand::object object;
    if (auto code = value.get_object().get(object)) return fail(code, "roots", "an object");
    const auto found = object.find_field_unordered("storage").error();
    if (found != simdjson::SUCCESS && found != simdjson::NO_SUCH_FIELD) return fail(found, "roots", "an object");
    if (auto code = object.reset().error()) return fail(code, "roots", "an object");
    if (found == simdjson::SUCCESS) return groups_.roots(object) || fail(groups_.complaint());
    columns_->roots.clear();
    return each_field(object, "roots", [&](std::string_view key, Value item) { return root(key, item); });
  }

  bool root(std::string_view key, Value value) {
    RootRow row;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), row.storage);
    if (code != std::errc() || end != key.data() + key.size()) {
      return fail(fmt::format("roots names storage \"{}\", which is no number", key.substr(0, 60)));
    }
    size_t entries = 0;
    const bool read = each(value, "a root", [&](size_t position, Value part) {
      ++entries;
      std::string_view kind;
      if (position == 1) return text(part, "a root's name", row.name);
      if (position > 1) return true;
      return text(part, "a root's kind", kind) &&
             named("a root's kind", kind, root_named(kind), "param, buffer, state, input", row.root);
    });
    if (read && entries < 2) return fail(fmt::format("root {} is not [kind, name]", key.substr(0, 60)));
    columns_->roots.push_back(row);
    return read;
  }

  simdjson::ondemand::parser parser_;
  AttributeDecoder arguments_;
  ColumnDecoder groups_;
  SizeFormsDecoder forms_;
  DynamoDecoder dynamo_;
  MeasurementDecoder measurements_;
  RecordColumns* columns_ = nullptr;
};

RecordDecoder::RecordDecoder() : impl_(std::make_unique<Impl>()) {}
RecordDecoder::RecordDecoder(RecordDecoder&&) noexcept = default;
RecordDecoder& RecordDecoder::operator=(RecordDecoder&&) noexcept = default;
RecordDecoder::~RecordDecoder() = default;

Status RecordDecoder::decode(std::string_view text, Fields fields, RecordColumns& columns) {
  return impl_->decode(text, fields, columns);
}

}  // namespace forerun
