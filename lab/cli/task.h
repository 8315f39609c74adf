// Task: one thing that a verb of forerun-lab can do, with options of its own: a suite of `eval`, a predictor of `train`, a
// model of `calibrate`. The verb finds the task by its name and gives it the rest of the command line.
//
// An option that the task does not take is a usage error that says what it takes: nothing is passed over in silence.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace forerun::cli {

struct Example {
  std::string command;  // "forerun eval --suite memory"
  std::string what;     // shown beside it; may be empty
};

struct Task {
  std::string name;
  std::string summary;  // one sentence without a full stop
  // Adds its options to the command line, and gives what it runs once they are read.
  std::function<Run(CLI::App&)> add;
  std::vector<Example> examples;
  std::vector<std::string> former_names;  // still understood, and not shown
};

// The task of that name, or former name; null where there is none.
const Task* find_task(const std::vector<Task>& tasks, const std::string& name);

// What the words ask of a task: a run, which prints the task's help where that is asked for. `called` is how the user comes to
// the task, "forerun eval --suite memory". An Error is one of usage.
Result<Run> parse_task(const Task& task, const std::string& called, const std::vector<std::string>& words);

// The options of a task as the user writes them: "--data", "--json".
std::vector<std::string> options_of(const Task& task);

// Lines with name and summary of each task, and of examples with what they do, in columns.
std::string task_lines(const std::vector<Task>& tasks);
std::string example_lines(const std::vector<Example>& examples);

// Adds a verb that leaves all of its words, --help too, to `parse`, whose Errors are those of usage.
using ParseVerb = Result<Run> (*)(const std::vector<std::string>& words);
void add_task_verb(CLI::App& app, Run& chosen, const std::string& name, const std::string& summary, ParseVerb parse);

// A run that prints a text and is done.
Run print_run(std::string text);

}  // namespace forerun::cli
