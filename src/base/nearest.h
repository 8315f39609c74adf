// nearest: the known names closest to a mistyped one, for messages that answer an unknown name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forerun {

// Steps to turn one word into the other: insert, delete, replace a letter or swap two neighbours. Letter case, '-', '_'
// and '.' do not count. Only the first 64 letters are compared.
int edit_distance(std::string_view a, std::string_view b);

// At most `most` candidates, closest first (ties: in the order given, each once); those that merely start with the word
// rank behind typing errors of one letter. Always at least one where there are candidates.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, size_t most = 3);

// "did you mean a, b or c?"; empty where there are no candidates.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace forerun
