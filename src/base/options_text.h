// Options that users write as text: "KEY=VALUE", "KEY=VALUE,KEY=VALUE" and "NAME:KEY=VALUE,KEY=VALUE".
//
//   allox:alpha=0.5            a policy        jobs=1000,gpus=8,seed=1    made-up jobs
//   sgd:momentum=0.9,impl=fused  an optimizer   layers=2;width=64         settings in a cell of a table
//
// A key stands once and has a value; everything else is an Error. OptionReader turns values into numbers and words, and
// finds the keys that nobody asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"

namespace forerun {

using KeyValue = std::pair<std::string, std::string>;
using KeyValues = std::vector<KeyValue>;  // in the order given, each key once

// What an Error about such a text says beside what is wrong.
struct OptionGrammar {
  std::string where;   // the option: "--policy"; empty: the caller adds the place
  std::string remedy;  // how to write it: "write NAME or NAME:OPTION=NUMBER"
};

// The parts between separators, any of these characters; empty parts too.
std::vector<std::string_view> split_list(std::string_view text, std::string_view separators);

// Parts a text at its first '='; nothing where there is none.
std::optional<std::pair<std::string_view, std::string_view>> split_key_value(std::string_view text);

// The number that is all of the text; nothing where it is none, or not finite.
std::optional<double> number_in(std::string_view text);

// "2GiB", "512MiB"; nothing where the text is no such size, or none that memory can have.
std::optional<Bytes> size_in(std::string_view text);

Result<KeyValue> parse_key_value(std::string_view text, const OptionGrammar& grammar);

// Adds a key to those before it; one that is there already is an Error.
Status add_once(KeyValue added, KeyValues& to, const OptionGrammar& grammar);

// No text gives no keys.
Result<KeyValues> parse_key_values(std::string_view text, const OptionGrammar& grammar, char separator = ',');

struct NamedOptions {
  std::string name;
  KeyValues options;
};
// "NAME" or "NAME:KEY=VALUE,KEY=VALUE". Whether there is such a name is the caller's affair.
Result<NamedOptions> parse_named_options(std::string_view text, const OptionGrammar& grammar);

// Answers a key that is none of the known ones.
Error unknown_key(std::string_view key, const std::vector<std::string>& known, const OptionGrammar& grammar);

// Reads values by key, each with what it is where the key is not given. A value that is no number, is out of its range
// or is none of the words, and a key that nobody read, are faults: `status` tells the first.
class OptionReader {
 public:
  OptionReader(const KeyValues& options, OptionGrammar grammar)
      : options_(options), grammar_(std::move(grammar)), used_(options.size(), false) {}
  double number(std::string_view key, double otherwise, double least, double most);
  int64_t whole(std::string_view key, int64_t otherwise, double least, double most);
  // The place of the value among the words.
  size_t word(std::string_view key, size_t otherwise, const std::vector<std::string>& words);
  void refuse(std::string what) { faults_.push_back({std::move(what), grammar_.where, grammar_.remedy}); }
  [[nodiscard]] Status status() const;

 private:
  const std::string* find(std::string_view key);
  const KeyValues& options_;
  OptionGrammar grammar_;
  std::vector<bool> used_;
  std::vector<std::string> known_;
  std::vector<Error> faults_;
};

}  // namespace forerun
