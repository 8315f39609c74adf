// forerun-lab, the program that has the predictors and suites of research. It is another one since loading LibTorch takes longer
// than the answers of all other verbs.
#pragma once

#include <string>
#include <vector>

namespace forerun::cli {

// Puts forerun-lab, which lies beside this program, in its place, with these words. Returns, with an exit code and a word
// on standard error that names what was asked for, only where it cannot be run.
int hand_to_lab(const std::string& asked, std::vector<std::string> words);

// The same with the words that this program was called with.
int hand_all_to_lab(const std::string& asked);

}  // namespace forerun::cli
