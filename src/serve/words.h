// The words that a question may have over HTTP: a list of what is allowed, so that no word reaches a file by itself.
//
// A word that names a file on the command line names an upload here, "upload:" and its id, and becomes the upload's name in
// the folder of uploads. A model is a name of the zoo or an upload; a policy one of the built-in ones, never a file that would be
// run. Words that bound the whole process (threads, limits) are the server's own affair and left out. What a worker may
// open is bounded by the kernel beside this (serve/worker.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun::serve {

enum class WordKind : unsigned char { text, number, flag, list, table, any, model, file, files, policies, axes };

struct Word {
  const char* name;
  WordKind kind;
};

struct AllowedQuestion {
  const char* name;
  const char* does;  // for the contract
  bool at_once;      // may be asked without a job
  std::vector<Word> words;
};

const std::vector<AllowedQuestion>& allowed_questions();
const AllowedQuestion* find_question(std::string_view name);

struct Admitted {
  std::string json;                  // as a worker is asked it
  std::vector<std::string> uploads;  // that it names, in order and each once
};

// `is_there` tells whether there is an upload of an id.
Result<Admitted> admit(const AllowedQuestion& question, std::string_view body,
                       const std::function<bool(const std::string&)>& is_there);

}  // namespace forerun::serve
