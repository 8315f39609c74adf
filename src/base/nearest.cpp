#include "base/nearest.h"

#include <algorithm>
#include <utility>

namespace forerun {
namespace {

constexpr size_t kLongest = 64;

std::string folded(std::string_view word) {
  std::string result;
  for (const char c : word.substr(0, kLongest)) {
    if (c == '-' || c == '_' || c == '.' || c == ' ') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::string left = folded(a);
  const std::string right = folded(b);
  std::vector<std::vector<int>> steps(left.size() + 1, std::vector<int>(right.size() + 1));
  for (size_t i = 0; i <= left.size(); ++i) steps[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= right.size(); ++j) steps[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= left.size(); ++i) {
    for (size_t j = 1; j <= right.size(); ++j) {
      const int replaced = steps[i - 1][j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      steps[i][j] = std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
        steps[i][j] = std::min(steps[i][j], steps[i - 2][j - 2] + 1);
      }
    }
  }
  return steps[left.size()][right.size()];
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, size_t most) {
  const std::string start = folded(word);
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(word, candidate);
    if (start.size() > 1 && folded(candidate).starts_with(start)) distance = std::min(distance, 2);
    const bool seen = std::any_of(ranked.begin(), ranked.end(), [&](const auto& r) { return r.second == candidate; });
    if (!seen) ranked.emplace_back(distance, candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // Names as far from the word as most names are would only distract: keep those close to the best one.
  const int furthest = ranked.empty() ? 0 : std::max(ranked.front().first + 1, static_cast<int>(start.size()) / 3);
  std::vector<std::string> result;
  for (const auto& [distance, candidate] : ranked) {
    if (result.size() < most && (result.empty() || distance <= furthest)) result.push_back(candidate);
  }
  return result;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> names = nearest(word, candidates);
  if (names.empty()) return "";
  std::string text = "did you mean " + names.front();
  for (size_t i = 1; i < names.size(); ++i) text += (i + 1 == names.size() ? " or " : ", ") + names[i];
  return text + "?";
}

}  // namespace forerun
