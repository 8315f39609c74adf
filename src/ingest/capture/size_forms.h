// SizeForms: how the numbers of a captured iteration change with its batch, or the length of its sequences.
//
// forerun.capture records an iteration at several sizes, holds the ops against one another, and writes each number that
// moves as a form: whole-number coefficients of products of the sizes (docs/records.md, `parametric`). `move_to` puts
// the numbers of another size in their places in the record's tables; what is built of them is checked as any record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace forerun {

struct RecordColumns;

// The sizes that a record is to be moved to; without any, it is taken as it was recorded.
struct RecordSizes {
  std::optional<int64_t> batch;
  std::optional<int64_t> length;
  [[nodiscard]] bool any() const { return batch || length; }
};

struct SizeForms {
  struct Place {
    uint32_t entry = 0;  // of the table
    uint32_t place = 0;  // within the entry
    uint32_t form = 0;
  };
  struct Text {
    uint32_t entry = 0;
    std::vector<std::variant<std::string_view, uint32_t>> parts;  // JSON text, and forms whose value stands between
  };

  std::vector<std::string> dimensions;      // "batch", "length"
  std::vector<int64_t> recorded;            // the size of each in the record as it stands
  std::vector<std::vector<int64_t>> terms;  // powers of the dimensions
  std::vector<std::vector<int64_t>> forms;  // a coefficient for each term
  std::vector<Place> input;                 // numbers of the input field, by their position in it
  std::vector<Place> shapes, storages, offsets;
  std::vector<Text> attributes;
  std::string fixed;  // why the record cannot be moved
};

// The record's tables at other sizes. `texts` keeps attributes that are written anew.
Status move_to(const RecordSizes& sizes, RecordColumns& columns, std::vector<std::string>& texts);

}  // namespace forerun
