#include "serve/kept_answers.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "guard/models_version.h"
#include "serve/service.h"
#include "serve/sha256.h"

namespace forerun::serve {
namespace {

constexpr const char* kPrinted = "give what a verb of forerun printed with --json";

Result<store::NewResult> kept_answer(const nlohmann::ordered_json& answer, const std::string& where,
                                     const std::string& version) {
  const auto schema = answer.find("schema");
  const std::string name = schema == answer.end() || !schema->is_string() ? "" : schema->get<std::string>();
  constexpr std::string_view kOurs = "forerun.";
  const size_t slash = name.find('/');
  if (!name.starts_with(kOurs) || slash == std::string::npos)
    return Error{"is no answer of Forerun: it has no schema", where, kPrinted};
  store::NewResult result{.kind = name.substr(kOurs.size(), slash - kOurs.size()),
                          .question = "{}",
                          .answer = answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                          .made_by = version};
  result.question_hash = sha256_hex(result.answer).substr(0, 32);
  result.figures = figures_of(result.answer, result.question);
  // What was asked for; `model` is its family.
  if (answer.contains("id") && answer["id"].is_string()) result.figures.model = answer["id"].get<std::string>();
  return result;
}

}  // namespace

Result<std::vector<store::NewResult>> kept_answers(const std::string& text, const std::string& where) {
  const auto version = guard::models_version();
  if (!version) return version.error();
  std::vector<nlohmann::ordered_json> answers;
  auto whole = nlohmann::ordered_json::parse(text, nullptr, false);
  if (whole.is_object()) {
    answers.push_back(std::move(whole));
  } else {
    size_t number = 0;
    for (size_t from = 0; from < text.size();) {
      const size_t end = std::min(text.find('\n', from), text.size());
      const std::string line = text.substr(from, end - from);
      from = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      auto one = nlohmann::ordered_json::parse(line, nullptr, false);
      if (!one.is_object()) return Error{"is no JSON object", fmt::format("{}, line {}", where, number), kPrinted};
      answers.push_back(std::move(one));
    }
  }
  if (answers.empty()) return Error{"is empty", where, kPrinted};
  std::vector<store::NewResult> results;
  for (const auto& answer : answers) {
    auto kept = kept_answer(answer, where, *version);
    if (!kept) return kept.error();
    results.push_back(std::move(*kept));
  }
  return results;
}

}  // namespace forerun::serve
