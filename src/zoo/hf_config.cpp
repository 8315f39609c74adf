#include "zoo/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/byte_source.h"

namespace forerun::zoo {
namespace {

// Keys that change nothing that a training iteration dispatches: provenance, token numbers, how weights are drawn, labels,
// and what only generation reads.
constexpr std::array kPassedOver = {
    "_name_or_path",
    "_commit_hash",
    "_num_labels",
    "architectures",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "cache_implementation",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_decoder_ids",
    "id2label",
    "initializer_factor",
    "initializer_range",
    "is_encoder_decoder",
    "label2id",
    "language",
    "length_penalty",
    "max_length",
    "max_position_embeddings",
    "min_length",
    "model_type",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "rope_theta",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "vocab_size",
};

bool is_passed_over(const std::string& key) {
  return key.ends_with("_token_id") || key.ends_with("_token_ids") || key.ends_with("_token_index") ||
         std::find(kPassedOver.begin(), kPassedOver.end(), key) != kPassedOver.end();
}

std::string shown(const nlohmann::json& value) {
  constexpr size_t kLongest = 60;
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

}  // namespace

HfConfig::HfConfig(Value value, std::string where, std::string path, Fault fault, Keys unread)
    : value_(std::move(value)),
      where_(std::move(where)),
      path_(std::move(path)),
      fault_(std::move(fault)),
      unread_(std::move(unread)) {
  for (const auto& [key, unused] : value_->items()) {
    if (!is_passed_over(key)) unread_->insert(path_ + key);
  }
}

Result<HfConfig> HfConfig::read(const std::string& path) {
  constexpr size_t kLargest = size_t{1} << 20;  // bytes; the largest of those seen have some ten thousand
  auto source = ByteSource::open(path);
  if (!source) return source.error();
  std::string text(kLargest, '\0');
  size_t held = 0;
  while (held < kLargest) {
    const auto count = (*source)->read(text.data() + held, kLargest - held);
    if (!count) return count.error();
    if (*count == 0) break;
    held += *count;
  }
  if (held == kLargest) return Error{"holds more than 1 MiB", path, "give the config.json of a model"};
  text.resize(held);
  return parse(text, path);
}

Result<HfConfig> HfConfig::parse(const std::string& text, const std::string& where) {
  auto value = std::make_shared<const nlohmann::json>(nlohmann::json::parse(text, nullptr, false));
  if (!value->is_object()) {
    return Error{"is no JSON object", where, "give the config.json of a model of the transformers library"};
  }
  return HfConfig(std::move(value), where, "", std::make_shared<std::optional<Error>>(),
                  std::make_shared<std::set<std::string>>());
}

bool HfConfig::given(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

const nlohmann::json* HfConfig::take(const std::string& key) {
  unread_->erase(path_ + key);
  const auto found = value_->find(key);
  return found == value_->end() ? nullptr : &*found;
}

void HfConfig::fail(const std::string& key, const std::string& remedy) {
  if (fault_->has_value()) return;
  const auto found = value_->find(key);
  const std::string value = found == value_->end() ? "missing" : shown(*found);
  fault_->emplace(Error{fmt::format("{}{} is {}", path_, key, value), where_, remedy});
}

void HfConfig::wrong_kind(const std::string& key, std::string_view kind) {
  fail(key, fmt::format("it must be {}", kind));
}

int64_t HfConfig::integer(const std::string& key, int64_t otherwise) {
  const nlohmann::json* value = take(key);
  if (value == nullptr) return otherwise;
  if (value->is_null()) return 0;
  constexpr int64_t kMost = int64_t{1} << 31;  // products of two stay far from overflow
  const bool whole = value->is_number_integer() && !(value->is_number_unsigned() && value->get<uint64_t>() > kMost);
  if (whole && value->get<int64_t>() >= -kMost) return value->get<int64_t>();
  wrong_kind(key, "a whole number of at most 2^31");
  return otherwise;
}

double HfConfig::real(const std::string& key, double otherwise) {
  const nlohmann::json* value = take(key);
  if (value == nullptr) return otherwise;
  if (value->is_null()) return 0;
  if (value->is_number()) return value->get<double>();
  wrong_kind(key, "a number");
  return otherwise;
}

bool HfConfig::flag(const std::string& key, bool otherwise) {
  const nlohmann::json* value = take(key);
  if (value == nullptr) return otherwise;
  if (value->is_null()) return false;
  if (value->is_boolean()) return value->get<bool>();
  wrong_kind(key, "true or false");
  return otherwise;
}

std::string HfConfig::text(const std::string& key, const std::string& otherwise) {
  const nlohmann::json* value = take(key);
  if (value == nullptr || value->is_null()) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  wrong_kind(key, "text");
  return otherwise;
}

std::vector<int64_t> HfConfig::integers(const std::string& key, const std::vector<int64_t>& otherwise) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const nlohmann::json* value = take(key);
  if (value == nullptr || value->is_null()) return otherwise;
  std::vector<int64_t> list;
  for (const nlohmann::json& item : *value) {
    const bool whole = value->is_array() && item.is_number_integer() &&
                       !(item.is_number_unsigned() && item.get<uint64_t>() > kMost) && item.get<int64_t>() >= -kMost;
    if (whole) list.push_back(item.get<int64_t>());
  }
  if (value->is_array() && list.size() == value->size()) return list;
  wrong_kind(key, "a list of whole numbers of at most 2^31");
  return otherwise;
}

std::vector<std::string> HfConfig::texts(const std::string& key) {
  const nlohmann::json* value = take(key);
  std::vector<std::string> list;
  if (value == nullptr || value->is_null()) return list;
  if (!value->is_array()) {
    wrong_kind(key, "a list of names");
    return list;
  }
  for (const nlohmann::json& item : *value) {
    if (!item.is_string()) {
      wrong_kind(key, "a list of names");
      return {};
    }
    list.push_back(item.get<std::string>());
  }
  return list;
}

bool HfConfig::has_items(const std::string& key) {
  const nlohmann::json* value = take(key);
  return value != nullptr && !value->is_null() && !value->empty();
}

bool HfConfig::is_text(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && found->is_string();
}

bool HfConfig::is_list(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && found->is_array();
}

bool HfConfig::is_null(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && found->is_null();
}

int64_t HfConfig::label_count() {
  constexpr int64_t kUsual = 2;
  const nlohmann::json* labels = take("id2label");
  const bool named = labels != nullptr && labels->is_object() && !labels->empty();
  return integer("num_labels", named ? static_cast<int64_t>(labels->size()) : kUsual);
}

std::optional<HfConfig> HfConfig::object(const std::string& key) {
  const nlohmann::json* value = take(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_object()) {
    wrong_kind(key, "an object");
    return std::nullopt;
  }
  return HfConfig(std::make_shared<const nlohmann::json>(*value), where_, path_ + key + ".", fault_, unread_);
}

void HfConfig::must_be(const std::string& key, bool value, bool otherwise) {
  if (flag(key, otherwise) != value) fail(key, fmt::format("{} is what can be derived", value));
}

void HfConfig::must_be_text(const std::string& key, const std::string& value) {
  if (text(key, value) != value) fail(key, fmt::format("{} is what can be derived", value));
}

void HfConfig::must_be_zero(const std::string& key, double otherwise) {
  if (real(key, otherwise) != 0) fail(key, "0 is what can be derived");
}

void HfConfig::pass_over(std::initializer_list<const char*> keys) {
  for (const char* key : keys) unread_->erase(path_ + key);
}

Status HfConfig::status() const { return fault_->has_value() ? Status(**fault_) : Status(); }

std::vector<std::string> HfConfig::unread() const { return {unread_->begin(), unread_->end()}; }

}  // namespace forerun::zoo
