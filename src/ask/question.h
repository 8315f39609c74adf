// Question: the words of a question as JSON, {"model": "resnet50", "batch": 64, "price": {"h100": 2.5}}, read by name.
//
// Names are those of the program's options with '_' for '-'. As with OptionReader (base/options_text.h) the first fault is
// kept and later reads give harmless values, so that a question reads all of its words and asks status() once; words that
// nobody read are faults too, answered with the nearest that are known. What is null counts as not given.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/options_text.h"
#include "base/result.h"

namespace forerun::ask {

// An error that speaks of options, "--clip-grad", as one that speaks of words, "clip_grad".
Error in_words(const Error& error);

class Question {
 public:
  static constexpr size_t kLargest = size_t{16} << 20;  // bytes of JSON

  static Result<Question> parse(std::string_view json);

  [[nodiscard]] bool has(const std::string& name) const;
  // Empty where it is not given; given, it is not empty.
  std::string text(const std::string& name);
  // The same, or a number: "16:q_proj" and 16.
  std::string word(const std::string& name);
  // A text, which must be given.
  std::string needed(const std::string& name, const std::string& remedy);
  // A text, or a list of texts.
  std::vector<std::string> texts(const std::string& name);
  // A number without a fraction: 64, and 2e9 too.
  std::optional<int64_t> whole(const std::string& name, int64_t least, int64_t most);
  std::vector<int64_t> wholes(const std::string& name, int64_t least, int64_t most);
  // The same, or a text with a unit: "1.28M", "15B".
  std::optional<int64_t> count(const std::string& name, int64_t most);
  std::optional<double> number(const std::string& name, double least, double most);
  bool flag(const std::string& name);
  // {"image": 384, "layers": [3, 4, 6, 3]}: values as --set takes them, "384" and "3,4,6,3".
  KeyValues settings(const std::string& name);
  // {"batch": [8, 16], "gpu": "h100"}: every key with its values, in the order given.
  std::vector<std::pair<std::string, std::vector<std::string>>> lists(const std::string& name);
  // [{...}, {...}]: each a question of its own, with a status of its own.
  std::vector<Question> questions(const std::string& name);

  // The question is at fault in a way that only its asker knows.
  void refuse(const std::string& name, std::string what, std::string remedy);
  // The first fault.
  [[nodiscard]] Status status() const;

 private:
  using Json = std::shared_ptr<const nlohmann::ordered_json>;  // shared, so that this header needs no nlohmann::json
  explicit Question(Json words) : words_(std::move(words)) {}
  const nlohmann::ordered_json* find(const std::string& name);
  std::optional<std::string> word_of(const std::string& name, const nlohmann::ordered_json& value);

  Json words_;
  std::vector<std::string> known_;  // names that were read
  std::optional<Error> fault_;
};

}  // namespace forerun::ask
