// HfConfig: a Hugging Face config.json, read key by key by the function that knows its model type.
//
// Every key is read, passed over (token ids, how weights were drawn: a list in hf_config.cpp) or left: `unread` names the
// rest, for a note in the answer. A value that would change the computation in a way that is not derived is an Error that
// names key, value and what there is. The first fault is kept and later reads return harmless values.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun::zoo {

class HfConfig {
 public:
  static Result<HfConfig> read(const std::string& path);
  // One JSON object; `where` names it in Errors.
  static Result<HfConfig> parse(const std::string& text, const std::string& where);

  // The value of a key; `otherwise`, the default of the library's configuration class, where it is missing. Null switches
  // a number or a flag off: 0, false.
  int64_t integer(const std::string& key, int64_t otherwise);
  double real(const std::string& key, double otherwise);
  bool flag(const std::string& key, bool otherwise);
  std::string text(const std::string& key, const std::string& otherwise);                        // null: `otherwise`
  std::vector<int64_t> integers(const std::string& key, const std::vector<int64_t>& otherwise);  // null: `otherwise`
  std::vector<std::string> texts(const std::string& key);  // a list of strings; empty where there is none
  // An object within; nothing where it is missing or null. What it leaves unread counts as this one's.
  std::optional<HfConfig> object(const std::string& key);
  bool has_items(const std::string& key);  // a list that is not empty
  [[nodiscard]] bool is_list(const std::string& key) const;
  [[nodiscard]] bool is_text(const std::string& key) const;
  [[nodiscard]] bool is_null(const std::string& key) const;  // there, and null
  int64_t label_count();  // num_labels, or as many as id2label names; 2 where the config has neither
  [[nodiscard]] bool given(const std::string& key) const;  // there and not null

  // Faults where the key has another value than the one that is derived.
  void must_be(const std::string& key, bool value, bool otherwise);
  void must_be_text(const std::string& key, const std::string& value);  // which is the default too
  void must_be_zero(const std::string& key, double otherwise = 0);
  // Marks keys as read that change nothing that is derived.
  void pass_over(std::initializer_list<const char*> keys);

  // The fault of a key with what is known of it.
  void fail(const std::string& key, const std::string& remedy);
  [[nodiscard]] Status status() const;
  // The keys that nobody read, in order.
  [[nodiscard]] std::vector<std::string> unread() const;

 private:
  using Value = std::shared_ptr<const nlohmann::json>;
  using Fault = std::shared_ptr<std::optional<Error>>;
  using Keys = std::shared_ptr<std::set<std::string>>;
  HfConfig(Value value, std::string where, std::string path, Fault fault, Keys unread);
  const nlohmann::json* take(const std::string& key);  // null where it is missing
  void wrong_kind(const std::string& key, std::string_view kind);

  Value value_;
  std::string where_;
  std::string path_;  // of this object within the file: "rope_parameters."
  Fault fault_;
  Keys unread_;  // with their paths
};

}  // namespace forerun::zoo
