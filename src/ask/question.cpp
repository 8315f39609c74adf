#include "ask/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "predict/job_time.h"

namespace forerun::ask {
namespace {

using nlohmann::ordered_json;

constexpr int kDeepest = 16;
constexpr double kExact = 9007199254740992.0;  // 2^53: up to here every whole number is a double

// A whole number, however it is written; nothing where it is none.
std::optional<int64_t> whole_in(const ordered_json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(std::abs(number) <= kExact) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// How deep lists and tables lie within one another: what reads and prints JSON calls itself for each.
int depth_of(std::string_view json) {
  int depth = 0, deepest = 0;
  bool within_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (within_text) {
      if (c == '\\') ++i;
      if (c == '"') within_text = false;
    } else if (c == '"') {
      within_text = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

std::string shown(const ordered_json& value) {
  constexpr size_t kMost = 60;
  std::string text = value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

std::string in_words(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool begins =
        text.compare(i, 2, "--") == 0 && i + 2 < text.size() && text[i + 2] >= 'a' && text[i + 2] <= 'z';
    const bool fresh = i == 0 || text[i - 1] == ' ' || text[i - 1] == '(' || text[i - 1] == '`' || text[i - 1] == '\'';
    if (!begins || !fresh) {
      out += text[i++];
      continue;
    }
    i += 2;
    for (; i < text.size() && ((text[i] >= 'a' && text[i] <= 'z') || text[i] == '-'); ++i) {
      out += text[i] == '-' ? '_' : text[i];
    }
  }
  return out;
}

}  // namespace

Error in_words(const Error& error) {
  return {in_words(error.what), in_words(error.where), in_words(error.remedy), error.kind};
}

Result<Question> Question::parse(std::string_view json) {
  constexpr const char* kForm = "give a JSON object of words, as {\"model\": \"resnet50\", \"batch\": 64}";
  if (json.size() > kLargest) return Error{fmt::format("is longer than {} bytes", kLargest), "question", kForm};
  if (depth_of(json) > kDeepest) return Error{"has lists within lists without end", "question", kForm};
  auto words = std::make_shared<ordered_json>(ordered_json::parse(json, nullptr, /*allow_exceptions=*/false));
  if (words->is_discarded() || !words->is_object()) return Error{"is no JSON object", "question", kForm};
  return Question(std::move(words));
}

const ordered_json* Question::find(const std::string& name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.push_back(name);
  const auto found = words_->find(name);
  return found == words_->end() || found->is_null() ? nullptr : &*found;
}

bool Question::has(const std::string& name) const {
  const auto found = words_->find(name);
  return found != words_->end() && !found->is_null();
}

void Question::refuse(const std::string& name, std::string what, std::string remedy) {
  if (!fault_) fault_ = Error{std::move(what), name, std::move(remedy)};
}

// A value as text: a text itself, a number, true or false.
std::optional<std::string> Question::word_of(const std::string& name, const ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (const auto whole = whole_in(value)) return fmt::format("{}", *whole);
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (!value.is_string()) {
    refuse(name, fmt::format("cannot be {}", shown(value)), "give a text or a number");
    return std::nullopt;
  }
  auto text = value.get<std::string>();
  if (text.empty()) {
    refuse(name, "is empty", "give a value, or leave it out");
    return std::nullopt;
  }
  if (text.find('\0') != std::string::npos) {
    refuse(name, "has a NUL within", "give text");
    return std::nullopt;
  }
  return text;
}

std::string Question::text(const std::string& name) {
  const ordered_json* value = find(name);
  if (value == nullptr) return "";
  if (!value->is_string()) {
    refuse(name, fmt::format("is no text: {}", shown(*value)), "give it in quotes");
    return "";
  }
  return word_of(name, *value).value_or("");
}

std::string Question::word(const std::string& name) {
  const ordered_json* value = find(name);
  return value == nullptr ? "" : word_of(name, *value).value_or("");
}

std::string Question::needed(const std::string& name, const std::string& remedy) {
  if (!has(name)) refuse(name, "is missing", remedy);
  return text(name);
}

std::vector<std::string> Question::texts(const std::string& name) {
  const ordered_json* value = find(name);
  std::vector<std::string> found;
  if (value == nullptr) return found;
  if (value->is_string()) return {word_of(name, *value).value_or("")};
  if (!value->is_array()) {
    refuse(name, fmt::format("is neither text nor a list of texts: {}", shown(*value)), "give one of these");
    return found;
  }
  for (const ordered_json& entry : *value) {
    if (!entry.is_string()) {
      refuse(name, fmt::format("holds what is no text: {}", shown(entry)), "give a list of texts");
      return {};
    }
    found.push_back(word_of(name, entry).value_or(""));
  }
  return found;
}

std::optional<int64_t> Question::whole(const std::string& name, int64_t least, int64_t most) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = whole_in(*value);
  if (number && *number >= least && *number <= most) return number;
  refuse(name, fmt::format("cannot be {}", shown(*value)),
         fmt::format("give a whole number from {} to {}", least, most));
  return std::nullopt;
}

std::vector<int64_t> Question::wholes(const std::string& name, int64_t least, int64_t most) {
  const ordered_json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_array()) {
    const auto number = whole(name, least, most);
    return number ? std::vector<int64_t>{*number} : std::vector<int64_t>{};
  }
  std::vector<int64_t> found;
  for (const ordered_json& entry : *value) {
    const auto number = whole_in(entry);
    if (!number || *number < least || *number > most) {
      refuse(name, fmt::format("cannot be {}", shown(entry)),
             fmt::format("give whole numbers from {} to {}", least, most));
      return {};
    }
    found.push_back(*number);
  }
  if (found.empty()) refuse(name, "is empty", "give a value, or leave it out");
  return found;
}

std::optional<int64_t> Question::count(const std::string& name, int64_t most) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return whole(name, 1, most);
  const std::string digits = count_text(value->get<std::string>());
  const auto number = number_in(digits);
  if (number && *number >= 1 && *number <= static_cast<double>(most) && *number == std::floor(*number)) {
    return static_cast<int64_t>(*number);
  }
  refuse(name, fmt::format("cannot be {}", shown(*value)),
         fmt::format("give a whole number from 1 to {}, or text as \"1.28M\"", most));
  return std::nullopt;
}

std::optional<double> Question::number(const std::string& name, double least, double most) {
  const ordered_json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= least && number <= most) return number;
  }
  refuse(name, fmt::format("cannot be {}", shown(*value)), fmt::format("give a number from {} to {}", least, most));
  return std::nullopt;
}

bool Question::flag(const std::string& name) {
  const ordered_json* value = find(name);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  refuse(name, fmt::format("cannot be {}", shown(*value)), "give true or false");
  return false;
}

KeyValues Question::settings(const std::string& name) {
  const ordered_json* value = find(name);
  KeyValues found;
  if (value == nullptr) return found;
  if (!value->is_object()) {
    refuse(name, fmt::format("is no table of names and values: {}", shown(*value)), "give one, as {\"image\": 384}");
    return found;
  }
  for (const auto& [key, entry] : value->items()) {
    std::string text;
    if (entry.is_array()) {
      for (const ordered_json& part : entry) {
        text += (text.empty() ? "" : ",") + word_of(name + "." + key, part).value_or("");
      }
    } else {
      text = word_of(name + "." + key, entry).value_or("");
    }
    if (key.empty() || text.empty()) refuse(name, "has a name or value that is empty", "give both");
    found.emplace_back(key, std::move(text));
  }
  return found;
}

std::vector<std::pair<std::string, std::vector<std::string>>> Question::lists(const std::string& name) {
  const ordered_json* value = find(name);
  std::vector<std::pair<std::string, std::vector<std::string>>> found;
  if (value == nullptr) return found;
  if (!value->is_object()) {
    refuse(name, fmt::format("is no table of names and lists: {}", shown(*value)), "give one, as {\"batch\": [8, 16]}");
    return found;
  }
  for (const auto& [key, entry] : value->items()) {
    std::vector<std::string> values;
    if (entry.is_array()) {
      for (const ordered_json& part : entry) values.push_back(word_of(key, part).value_or(""));
    } else {
      values.push_back(word_of(key, entry).value_or(""));
    }
    if (key.empty() || values.empty()) refuse(key.empty() ? name : key, "is empty", "give at least one value");
    found.emplace_back(key, std::move(values));
  }
  return found;
}

std::vector<Question> Question::questions(const std::string& name) {
  const ordered_json* value = find(name);
  std::vector<Question> found;
  const auto is_object = [](const ordered_json& entry) { return entry.is_object(); };
  if (value == nullptr || !value->is_array() || !std::all_of(value->begin(), value->end(), is_object)) {
    refuse(name, "is no list of tables", "give one, as [{...}, {...}]");
    return found;
  }
  for (const ordered_json& entry : *value) found.push_back(Question(std::make_shared<const ordered_json>(entry)));
  return found;
}

Status Question::status() const {
  if (fault_) return *fault_;
  for (const auto& [name, value] : words_->items()) {
    if (value.is_null() || std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    return Error{fmt::format("there is no word '{}' here", name), "", did_you_mean(name, known_)};
  }
  return {};
}

}  // namespace forerun::ask
