#include "base/shard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

namespace forerun {
namespace {

std::optional<size_t> whole_number(std::string_view text) {
  size_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string words_text(const std::vector<std::string>* values) {
  if (values == nullptr) return "not given";
  return fmt::format("'{}'", fmt::join(*values, "' '"));
}

const std::vector<std::string>* find_words(const ShardedWork::Words& words, const std::string& name) {
  for (const auto& [known, values] : words) {
    if (known == name) return &values;
  }
  return nullptr;
}

std::string differing(std::string_view what, std::string_view there, std::string_view here) {
  return fmt::format("{} is {} there and {} here", what, there, here);
}

// The first name, in the order of either, whose values differ.
std::optional<std::string> words_difference(const ShardedWork::Words& there, const ShardedWork::Words& here) {
  for (const ShardedWork::Words* list : {&there, &here}) {
    for (const auto& [name, values] : *list) {
      const auto* left = find_words(there, name);
      const auto* right = find_words(here, name);
      if (left != nullptr && right != nullptr && *left == *right) continue;
      return differing(name, words_text(left), words_text(right));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string Shard::text() const { return fmt::format("{}/{}", index, count); }

Result<Shard> parse_shard(std::string_view text) {
  const size_t slash = text.find('/');
  const auto index = whole_number(text.substr(0, slash));
  const auto count = slash == std::string_view::npos ? std::nullopt : whole_number(text.substr(slash + 1));
  if (!index || !count || *count < 1 || *count > kMostShards) {
    return Error{fmt::format("'{}' is no shard", text), "--shard",
                 "write I/N, as 0/4, 1/4, 2/4 and 3/4 for four of them"};
  }
  if (*index >= *count) {
    return Error{fmt::format("there is no shard {} of {}", *index, *count), "--shard",
                 fmt::format("shards count from 0: write 0/{} to {}/{}", *count, *count - 1, *count)};
  }
  return Shard{*index, *count};
}

std::optional<std::string> difference(const ShardedWork& there, const ShardedWork& here) {
  if (there.verb != here.verb) return differing("the verb", there.verb, here.verb);
  if (auto words = words_difference(there.request, here.request)) return words;
  if (auto files = words_difference(there.files, here.files)) return "the content of the file " + *files;
  if (there.data != here.data) return differing("the fingerprint of the data folder", there.data, here.data);
  if (there.program != here.program) return differing("the program", there.program, here.program);
  if (there.cases != here.cases) {
    return differing("the number of cases", std::to_string(there.cases), std::to_string(here.cases));
  }
  if (there.about != here.about) return "what was read of the input is not the same";
  return std::nullopt;
}

}  // namespace forerun
