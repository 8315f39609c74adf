#include "ask/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "ask/answers.h"
#include "ask/predictions.h"
#include "ask/run_words.h"
#include "base/options_text.h"
#include "guard/guard_file.h"
#include "guard/lock_file.h"
#include "guard/models_version.h"
#include "report/check.h"

namespace forerun::ask {
namespace {

constexpr double kMostShare = 1000;
constexpr double kMostFigure = 1e12;

// "10%" as 0.1.
std::optional<double> read_share(Question& question, const std::string& name) {
  const std::string text = question.word(name);
  if (text.empty()) return std::nullopt;
  const auto number = text.back() == '%' ? number_in(std::string_view(text).substr(0, text.size() - 1)) : std::nullopt;
  if (!number || *number < 0 || *number > kMostShare) {
    question.refuse(name, fmt::format("cannot be '{}'", text), "write a share, as \"10%\"");
    return std::nullopt;
  }
  return *number / 100;
}

guard::Rules read_rules(Question& question) {
  guard::Rules rules;
  rules.fits = question.flag("fits");
  if (question.has("fits") && !rules.fits)
    question.refuse("fits", "can only be true", "leave it out where it need not fit");
  rules.slower_than_baseline = read_share(question, "slower_than_baseline");
  rules.memory_above_baseline = read_share(question, "memory_above_baseline");
  rules.iteration_ms_at_most = question.number("iteration_ms_at_most", 0, kMostFigure);
  rules.reserved_gib_at_most = question.number("reserved_gib_at_most", 0, kMostFigure);
  return rules;
}

// Asked once all words were read, so that a rule that is misspelt is told first.
Status check_any(const guard::Rules& rules) {
  if (rules.any()) return {};
  return Error{"no rule says what must hold", "", fmt::format("give one of {}", fmt::join(guard::Rules::kNames, ", "))};
}

guard::Figures figures_of(const Prediction& prediction) {
  return {.iteration_ms = milliseconds(prediction.times.iteration),
          .reserved_gib = gibibytes(prediction.memory.peak_reserved),
          .verdict = std::string(name_of(prediction.memory_answer.verdict))};
}

Result<guard::Guarded> guarded_by(const guard::GuardEntry& entry, const Asking& asking) {
  Result<Question> question = Question::parse(entry.words);
  if (!question) return question.error();
  guard::Guarded guarded{.name = entry.name, .asked = entry.asked, .rules = read_rules(*question)};
  const auto predicted = predictions(*question, asking);
  if (!predicted) return predicted.error();
  if (const Status status = check_any(guarded.rules); !status.ok()) return status.error();
  if (predicted->size() != 1) {
    return Error{fmt::format("the file holds {} runs", predicted->size()), "model", "guard a capture of one run"};
  }
  guarded.gpu = predicted->front().gpu;
  guarded.figures = figures_of(predicted->front());
  return guarded;
}

// Where the baselines are.
struct LockPlace {
  std::string path;
  std::string section;
  bool update = false;
  bool whole = false;  // an update drops what the section has of other guards: these are all that there are
};

Result<guard::CheckAnswer> judged(std::vector<guard::Guarded> guards, const LockPlace& place) {
  Result<guard::Lock> lock = guard::read_lock(place.path);
  if (!lock) return lock.error();
  Result<std::string> version = guard::models_version();
  if (!version) return version.error();
  guard::CheckAnswer answer{.lock = place.path, .predicted_by = std::move(*version), .updated = place.update};
  guard::Baselines& kept = (*lock)[place.section];
  guard::Baselines updated = place.whole ? guard::Baselines() : kept;
  for (guard::Guarded& guarded : guards) {
    updated[guarded.name] = {guarded.figures, guarded.asked, answer.predicted_by};
    const auto found = kept.find(guarded.name);
    auto baseline = found == kept.end() ? std::nullopt : std::optional(found->second);
    answer.guards.push_back(guard::judge(std::move(guarded), std::move(baseline), answer.predicted_by, place.update));
  }
  if (!place.update) return answer;
  kept = std::move(updated);
  if (const Status status = guard::write_lock(place.path, *lock); !status.ok()) return status.error();
  return answer;
}

Result<guard::Guarded> read_guarded(Question& question) {
  guard::Guarded guarded{.name = question.needed("name", "give the guard's"),
                         .asked = question.needed("asked", "give the words that were predicted"),
                         .gpu = question.text("gpu"),
                         .rules = read_rules(question)};
  guarded.figures = {.iteration_ms = question.number("iteration_ms", 0, kMostFigure).value_or(0),
                     .reserved_gib = question.number("reserved_gib", 0, kMostFigure).value_or(0),
                     .verdict = question.needed("verdict", "give that of the prediction")};
  if (const Status status = question.status(); !status.ok()) return status.error().within("guard " + guarded.name);
  if (const Status status = check_any(guarded.rules); !status.ok())
    return status.error().within("guard " + guarded.name);
  return guarded;
}

}  // namespace

Result<guard::CheckAnswer> check(const CheckRequest& request, const Asking& asking) {
  const auto entries = guard::read_guards(request.file);
  if (!entries) return entries.error();
  Work work(asking.control, "guards", static_cast<int64_t>(entries->size()));
  std::vector<guard::Guarded> guards;
  for (const guard::GuardEntry& entry : *entries) {
    Result<guard::Guarded> guarded = guarded_by(entry, asking);
    if (!guarded) return in_words(guarded.error()).within(entry.place);
    guards.push_back(std::move(*guarded));
    if (const Status status = work.advance(); !status.ok()) return status.error();
  }
  const std::filesystem::path file = request.file;
  const std::string name = file.filename().string();
  return judged(std::move(guards),
                {.path = request.lock.empty() ? (file.parent_path() / "forerun.lock").string() : request.lock,
                 .section = name == CheckRequest().file ? "check" : "check " + name,
                 .update = request.update,
                 .whole = true});
}

Result<std::string> answer_check(Question& question, const Asking& asking) {
  CheckRequest request;
  if (std::string file = question.text("file"); !file.empty()) request.file = std::move(file);
  request.lock = question.text("lock");
  request.update = question.flag("update");
  const WorkControl control = read_limits(question, asking.control);
  if (const Status status = question.status(); !status.ok()) return status.error();
  const auto answer = check(request, {.knowledge = asking.knowledge, .control = control});
  if (!answer) return answer.error();
  return to_json(*answer);
}

Result<std::string> answer_judge(Question& question, const Asking& /*asking*/) {
  LockPlace place{.path = question.needed("lock", "give the lock's file"),
                  .section = question.needed("section", "give who asks"),
                  .update = question.flag("update")};
  std::vector<Question> entries = question.questions("guards");
  if (const Status status = question.status(); !status.ok()) return status.error();
  std::vector<guard::Guarded> guards;
  for (Question& entry : entries) {
    Result<guard::Guarded> guarded = read_guarded(entry);
    if (!guarded) return guarded.error();
    guards.push_back(std::move(*guarded));
  }
  const auto answer = judged(std::move(guards), place);
  if (!answer) return answer.error();
  return to_json(*answer);
}

}  // namespace forerun::ask
