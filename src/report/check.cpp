#include "report/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_writer.h"
#include "report/table.h"

namespace forerun {
namespace {

using guard::CheckAnswer;
using guard::GuardOutcome;
using guard::RuleOutcome;
using guard::Verdict;

constexpr const char* kHeading[] = {"guard", "must hold", "before", "now", "change", "limit", "verdict"};

std::string words_of(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string figure_text(const std::optional<double>& value, guard::Unit unit) {
  if (!value) return "-";
  return unit == guard::Unit::milliseconds ? fmt::format("{:.3f} ms", *value) : fmt::format("{:.3f} GiB", *value);
}

std::string limit_text(const RuleOutcome& rule) {
  if (!rule.limit) return "";
  return rule.of_baseline ? signed_percent(*rule.limit) : figure_text(rule.limit, rule.unit);
}

// The cells of a rule but the guard's name.
std::vector<std::string> rule_cells(const GuardOutcome& outcome, const RuleOutcome& rule) {
  const auto change = rule.change();
  const bool fits = rule.unit == guard::Unit::verdict;
  const std::string before =
      fits ? outcome.baseline ? words_of(outcome.baseline->figures.verdict) : "-" : figure_text(rule.before, rule.unit);
  return {rule.rule,
          before,
          fits ? words_of(outcome.guarded.figures.verdict) : figure_text(rule.now, rule.unit),
          change ? signed_percent(*change) : "",
          limit_text(rule),
          words_of(std::string(name_of(rule.verdict)))};
}

bool is_doubtful(const GuardOutcome& outcome) {
  return std::any_of(outcome.rules.begin(), outcome.rules.end(),
                     [](const RuleOutcome& rule) { return rule.verdict == Verdict::not_judged; });
}

std::string check_headline(const CheckAnswer& answer) {
  const auto failing = std::count_if(answer.guards.begin(), answer.guards.end(),
                                     [](const GuardOutcome& guard) { return !guard.passes(); });
  const size_t all = answer.guards.size();
  const std::string guards = fmt::format("{} guard{}", all, all == 1 ? "" : "s");
  const std::string kept = answer.updated ? fmt::format("; {} has the figures of now", answer.lock) : "";
  const auto doubtful = std::count_if(answer.guards.begin(), answer.guards.end(), is_doubtful);
  const std::string doubt =
      doubtful > 0 ? fmt::format("; {} not judged against the baseline of another Forerun", doubtful) : "";
  if (failing == 0) return fmt::format("{} hold{}{}{}", guards, all == 1 ? "s" : "", doubt, kept);
  return fmt::format("{} of {} fail{}{}{}", failing, guards, failing == 1 ? "s" : "", doubt, kept);
}

// Every note once, with the guards that it is about.
std::vector<std::string> notes_of(const CheckAnswer& answer) {
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;
  for (const GuardOutcome& outcome : answer.guards) {
    for (const std::string& note : outcome.notes) {
      const auto same =
          std::find_if(notes.begin(), notes.end(), [&](const auto& other) { return other.first == note; });
      if (same == notes.end()) {
        notes.emplace_back(note, std::vector{outcome.guarded.name});
      } else {
        same->second.push_back(outcome.guarded.name);
      }
    }
  }
  std::vector<std::string> lines;
  lines.reserve(notes.size());
  for (const auto& [note, names] : notes) lines.push_back(fmt::format("{}: {}", fmt::join(names, ", "), note));
  return lines;
}

void write_figures(JsonWriter& json, const guard::Figures& figures) {
  json.field("iter_ms", figures.iteration_ms)
      .field("reserved_gib", figures.reserved_gib)
      .field("verdict", figures.verdict);
}

void write_guard(JsonWriter& json, const GuardOutcome& outcome) {
  json.begin_object()
      .field("name", outcome.guarded.name)
      .field("passes", outcome.passes())
      .field("gpu", outcome.guarded.gpu);
  json.field("asked", outcome.guarded.asked);
  write_figures(json, outcome.guarded.figures);
  json.key("baseline");
  if (outcome.baseline) {
    json.begin_object().field("asked", outcome.baseline->asked);
    write_figures(json, outcome.baseline->figures);
    json.field("predicted_by", outcome.baseline->predicted_by).end_object();
  } else {
    json.value(nullptr);
  }
  json.key("rules").begin_array();
  for (const RuleOutcome& rule : outcome.rules) {
    json.begin_object()
        .field("rule", rule.rule)
        .field("verdict", name_of(rule.verdict))
        .field("before", rule.before)
        .field("now", rule.now)
        .field("change", rule.change())
        .field("limit", rule.limit)
        .end_object();
  }
  json.end_array().field("notes", outcome.notes).end_object();
}

}  // namespace

std::string to_text(const CheckAnswer& answer, const TextStyle& style) {
  Table table({std::begin(kHeading), std::end(kHeading)});
  table.align_left(1);
  table.align_left(6);
  for (const GuardOutcome& outcome : answer.guards) {
    std::string name = outcome.guarded.name;
    for (const RuleOutcome& rule : outcome.rules) {
      std::vector<std::string> row = {std::exchange(name, "")};
      for (std::string& cell : rule_cells(outcome, rule)) row.push_back(std::move(cell));
      if (!passes(rule.verdict)) row.back() = style.colored(words_of(row.back()), TextColor::red);
      if (rule.verdict == Verdict::not_judged) row.back() = style.colored(row.back(), TextColor::yellow);
      table.add(std::move(row));
    }
  }
  std::string text = style.bold(check_headline(answer)) + "\n" + table.text();
  for (const std::string& note : notes_of(answer)) text += wrapped(note, "  ");
  return text;
}

std::string to_markdown(const CheckAnswer& answer) {
  std::string text = fmt::format("**{}**\n\n| {} |\n|---|---|--:|--:|--:|--:|---|\n", check_headline(answer),
                                 fmt::join(kHeading, " | "));
  const auto escaped = [](const std::string& cell) {
    std::string out;
    for (const char c : cell) out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
    return out;
  };
  for (const GuardOutcome& outcome : answer.guards) {
    for (const RuleOutcome& rule : outcome.rules) {
      std::vector<std::string> cells = rule_cells(outcome, rule);
      if (!passes(rule.verdict)) cells.back() = "**" + cells.back() + "**";
      text += fmt::format("| {} | {} |\n", escaped(outcome.guarded.name), fmt::join(cells, " | "));
    }
  }
  for (const std::string& note : notes_of(answer)) text += "\n" + note + "\n";
  return text;
}

std::string to_json(const CheckAnswer& answer) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "forerun.check/1")
      .field("passes", answer.passes())
      .field("lock", answer.lock)
      .field("updated", answer.updated)
      .field("predicted_by", answer.predicted_by)
      .key("guards")
      .begin_array();
  for (const GuardOutcome& outcome : answer.guards) write_guard(json, outcome);
  return json.end_array().field("text", to_text(answer)).end_object().take();
}

}  // namespace forerun
