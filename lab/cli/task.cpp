#include "lab/cli/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/program.h"

namespace forerun::cli {
namespace {

std::string padded_lines(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [left, right] : rows) width = std::max(width, right.empty() ? 0 : left.size());
  std::string text;
  for (const auto& [left, right] : rows) {
    text += right.empty() ? fmt::format("  {}\n", left) : fmt::format("  {:<{}}  {}\n", left, width, right);
  }
  return text;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr()) continue;
    names.push_back(option->get_lnames().empty() ? option->get_name() : "--" + option->get_lnames().front());
  }
  return names;
}

// `word` is the first that no option takes.
Error foreign_word(const CLI::App& app, const std::string& called, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return {fmt::format("`{}` does not take {}", called, name.starts_with("-") ? name : "'" + word + "'"), "",
          fmt::format("it takes {}", fmt::join(option_names(app), ", "))};
}

}  // namespace

const Task* find_task(const std::vector<Task>& tasks, const std::string& name) {
  for (const Task& task : tasks) {
    const auto& former = task.former_names;
    if (name == task.name || std::find(former.begin(), former.end(), name) != former.end()) return &task;
  }
  return nullptr;
}

Result<Run> parse_task(const Task& task, const std::string& called, const std::vector<std::string>& words) {
  CLI::App app{task.summary, called};
  Run run = task.add(app);
  if (!task.examples.empty()) app.footer("Examples:\n" + example_lines(task.examples));
  refuse_empty_values(app);
  app.allow_extras();  // told below, with what the task takes
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the last word first
  } catch (const CLI::CallForHelp&) {
    return print_run(app.help());
  } catch (const CLI::ParseError& error) {
    return Error{error.what(), "", fmt::format("see `{} --help`", called)};
  }
  if (const auto rest = app.remaining(); !rest.empty()) return foreign_word(app, called, rest.front());
  return run;
}

std::vector<std::string> options_of(const Task& task) {
  CLI::App app;
  const Run unused = task.add(app);
  return option_names(app);
}

std::string task_lines(const std::vector<Task>& tasks) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Task& task : tasks) rows.emplace_back(task.name, task.summary);
  return padded_lines(rows);
}

std::string example_lines(const std::vector<Example>& examples) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Example& example : examples) rows.emplace_back(example.command, example.what);
  return padded_lines(rows);
}

void add_task_verb(CLI::App& app, Run& chosen, const std::string& name, const std::string& summary, ParseVerb parse) {
  CLI::App* verb = app.add_subcommand(name, summary);
  verb->prefix_command();
  verb->set_help_flag();
  verb->callback([verb, parse, &chosen] {
    chosen = [words = verb->remaining(), parse] {
      const auto run = parse(words);
      if (run) return (*run)();
      fail(run.error());
      return static_cast<int>(kUsage);
    };
  });
}

Run print_run(std::string text) {
  return [text = std::move(text)] {
    fmt::print("{}", text);
    return static_cast<int>(kDone);
  };
}

}  // namespace forerun::cli
