// What tasks of forerun-lab say while they run and in the end: answers on standard output, all else on standard error.
#pragma once

#include <fmt/format.h>

#include <string>

#include "cli/command.h"
#include "cli/html_option.h"
#include "records/data_scan.h"

namespace forerun::cli {

// Prints an answer as text or as one line of JSON, or the Error in its place.
template <class Answer>
int print_answer(const Result<Answer>& answer, bool json) {
  if (!answer) return fail(answer.error());
  fmt::print("{}", json ? to_json(*answer) + "\n" : to_text(*answer));
  return kDone;
}

// How a suite of `eval` answers: printed as text or JSON, and where asked for as a page.
struct SuiteForm {
  bool json = false;
  HtmlPage page;
};

inline void add_form(CLI::App& app, SuiteForm& form, const char* json = "Print one JSON object") {
  add_html_option(app, form.page.path);
  app.add_flag("--json", form.json, json);
  // The options are gone when the suite runs.
  app.callback([&app, &form] {
    form.page.verb = "eval";
    form.page.command = app.get_name() + options_text(app);
  });
}

template <class Answer>
int print_answer(const Result<Answer>& answer, const SuiteForm& form) {
  if (const int code = print_answer(answer, form.json); code != kDone || form.page.path.empty()) return code;
  const Status written = write_html(form.page, to_json(*answer));
  return written.ok() ? kDone : fail(written.error());
}

inline void tell(const std::string& what) { fmt::print(stderr, "{}\n", what); }
inline void tell_error(const Error& error) { fmt::print(stderr, "forerun: {}\n", error.message()); }
inline void tell_problem(const DataProblem& problem) { tell_error(problem.error()); }

}  // namespace forerun::cli
