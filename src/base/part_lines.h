// The lines of a part: a file that holds what a shard has done of a question (base/part_file.h writes it, base/part_set.h
// merges several).
//
//   {"schema":"forerun.part/1","verb":"sweep","shard":1,"shards":4,"cases":8,"program":"0.1.0, build 5c1e...","data":"09af...",
//    "request":{"MODEL":["resnet50"],"--over":["batch=1..8"]},"files":{},"about":{}}
//   {"case":1,"sum":"5bd1c0ffee123456","row":{...}}
//   {"case":5,"sum":"8f00b2047e9b1234","row":{...}}
//
// A case's line holds its answer as it stands, and a sum over both, by which a line that a stopped machine left half written
// is told from a whole one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/shard.h"

namespace forerun {

struct PartHead {
  ShardedWork work;
  Shard shard;
};

std::string part_head_line(const PartHead& head);
// `where` names the file. An Error where it is no head of a part.
Result<PartHead> parse_part_head(std::string_view line, const std::string& where);

struct PartCase {
  size_t number = 0;
  std::string_view row;  // within the line
};

std::string part_case_line(size_t number, std::string_view row);
// Nothing where the line is not whole.
std::optional<PartCase> parse_part_case(std::string_view line);

// A line without its end, and where in the file it begins.
struct PlacedLine {
  uint64_t at = 0;
  std::string_view text;
  bool ended = true;  // false: the file ends before the line does
};

// Hands over the lines of an open file from its beginning; ends with the first Error of `take`. `path` is for messages.
Status each_line(int file, const std::string& path, const std::function<Status(const PlacedLine&)>& take);

}  // namespace forerun
