#include "lab/dataset/dataset.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>

#include "base/check.h"

namespace forerun::learn {
namespace {

// FNV-1a over the bits of a row.
class Hash {
 public:
  void add(uint64_t value) { state_ = (state_ ^ value) * 1099511628211ULL; }
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  [[nodiscard]] uint64_t value() const {  // mixed, so that near inputs do not give near results
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

 private:
  uint64_t state_ = 14695981039346656037ULL;
};

uint64_t hash_of(const OpRow& row) {
  Hash hash;
  hash.add(row.name.value);
  hash.add(static_cast<uint64_t>(row.phase) << 24 | static_cast<uint64_t>(row.dtype) << 16 |
           static_cast<uint64_t>(row.cls) << 8 | static_cast<uint64_t>(row.on_gpu));
  for (const float x : row.amounts) hash.add(std::bit_cast<uint32_t>(x));
  for (const float x : row.hyper) hash.add(std::bit_cast<uint32_t>(x));
  return hash.value();
}

}  // namespace

std::string_view name_of(Split split) {
  switch (split) {
    case Split::train: return "train";
    case Split::test: return "test";
    case Split::ood: break;
  }
  return "ood";
}

std::optional<Split> split_named(std::string_view name) {
  for (const Split split : {Split::train, Split::test, Split::ood}) {
    if (name == name_of(split)) return split;
  }
  return std::nullopt;
}

std::string to_text(const Division& division) {
  return division.random ? "random:" + std::to_string(division.seed) : "families";
}

Result<Division> parse_division(std::string_view text) {
  constexpr std::string_view kRandom = "random";
  if (text == to_text(Division{})) return Division{};
  if (text == kRandom) return Division{.random = true};
  Division division{.random = true};
  if (text.substr(0, kRandom.size() + 1) == "random:") {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + kRandom.size() + 1, end, division.seed);
    if (read.ec == std::errc() && read.ptr == end) return division;
  }
  return Error{"'" + std::string(text) + "' is no way to split data", "--split",
               "give families, random, or random:SEED with a whole number"};
}

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::gpu: return "gpu";
    case Bound::host: return "host";
    case Bound::unknown: break;
  }
  return "unknown";
}

uint32_t DataSet::intern(const OpRow& row) {
  CHECK(row.name.value < names_.size(), "a row's name must be one of its data set");
  const uint64_t hash = hash_of(row);
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (rows_[it->second] == row) return it->second;
  }
  const auto at = static_cast<uint32_t>(rows_.size());
  rows_.push_back(row);
  index_.emplace(hash, at);
  return at;
}

void DataSet::add(Example example) {
  for (const uint32_t row : example.ops) CHECK(row < rows_.size(), "an example's op must be a row of its data set");
  const size_t count = example.ops.size();
  const Targets& targets = example.targets;
  CHECK(targets.op_us.empty() || targets.op_us.size() == count, "a GPU time for each op, or none");
  CHECK(targets.gap_us.empty() || targets.gap_us.size() == count, "a gap for each op, or none");
  CHECK(targets.host_us.empty() || targets.host_us.size() == count, "a host time for each op, or none");
  examples_.push_back(std::move(example));
}

void DataSet::append(const DataSet& other) {
  std::vector<uint32_t> here;
  here.reserve(other.rows_.size());
  for (OpRow row : other.rows_) {
    row.name = intern_name(other.name_of_row(row));
    here.push_back(intern(row));
  }
  for (Example example : other.examples_) {
    for (uint32_t& row : example.ops) row = here[row];
    add(std::move(example));
  }
}

Selection select(const DataSet& data, Split split) {
  Selection chosen;
  for (size_t i = 0; i < data.examples().size(); ++i) {
    if (data.examples()[i].split == split) chosen.push_back(static_cast<uint32_t>(i));
  }
  return chosen;
}

Status divide(DataSet& data, const Division& division) {
  CHECK(!data.division.random, "a data set is divided once");
  if (!division.random) return {};
  bool measured = false;
  for (const Example& example : data.examples()) {
    measured = measured || !example.configuration.empty();
    if (example.configuration.empty() && example.split != Split::train) {
      return Error{"cannot be split at random: '" + example.id + "' does not say which configuration it is",
                   data.source, "give run records, or a data set that was written from them"};
    }
  }
  if (!measured) {
    return Error{"cannot be split at random: nothing of it was measured", data.source,
                 "give run records, or a data set that was written from them"};
  }
  for (Example& example : data.examples()) {
    if (example.kept_back) example.split = Split::ood;
    if (example.kept_back || example.configuration.empty()) continue;
    Hash hash;
    hash.add("judged");  // not the hash that chooses what is validated on
    hash.add(example.configuration);
    hash.add(division.seed);
    const double place = static_cast<double>(hash.value() >> 11) * 0x1p-53;  // from 0 to below 1
    example.split = place < kRandomlyJudged ? Split::test : Split::train;
  }
  data.division = division;
  return {};
}

Fold split_for_validation(const DataSet& data, double fraction, uint64_t seed) {
  std::map<std::string, Selection> groups;
  size_t total = 0;
  Fold fold;
  for (const uint32_t i : select(data, Split::train)) {
    const Example& example = data.examples()[i];
    if (data.division.random && example.configuration.empty()) {
      fold.train.push_back(i);
      continue;
    }
    groups[data.division.random ? example.configuration : example.group].push_back(i);
    ++total;
  }
  std::vector<std::pair<uint64_t, const std::string*>> order;
  for (const auto& [group, members] : groups) {
    Hash hash;
    hash.add(group);
    hash.add(seed);
    order.emplace_back(hash.value(), &group);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });

  const auto wanted = static_cast<size_t>(fraction * static_cast<double>(total) + 0.5);
  for (size_t i = 0; i < order.size(); ++i) {
    const Selection& members = groups[*order[i].second];
    // A group that would overshoot by more than it brings is left to train on; the last group always is.
    const size_t have = fold.validation.size();
    const bool nearer = have < wanted && (have == 0 || have + members.size() - wanted <= wanted - have ||
                                          have + members.size() <= wanted);
    Selection& part = fraction > 0 && nearer && i + 1 < order.size() ? fold.validation : fold.train;
    part.insert(part.end(), members.begin(), members.end());
  }
  std::sort(fold.train.begin(), fold.train.end());
  std::sort(fold.validation.begin(), fold.validation.end());
  return fold;
}

Fold split_by_groups(const DataSet& data, std::span<const std::string> beginnings) {
  Fold fold;
  for (const uint32_t i : select(data, Split::train)) {
    const std::string& group = data.examples()[i].group;
    const bool apart = std::any_of(beginnings.begin(), beginnings.end(),
                                   [&](const std::string& beginning) { return group.rfind(beginning, 0) == 0; });
    (apart ? fold.validation : fold.train).push_back(i);
  }
  return fold;
}

}  // namespace forerun::learn
