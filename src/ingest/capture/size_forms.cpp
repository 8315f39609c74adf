#include "ingest/capture/size_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ingest/capture/record_columns.h"

namespace forerun {
namespace {

constexpr const char* kMoveRemedy = "capture it again with --batch-sizes 4,8,12 (and --lengths), or ask without";
constexpr int64_t kMostSize = int64_t{1} << 30;
constexpr int64_t kMostPower = 4;

Error cannot_move(std::string what) { return {std::move(what), "", kMoveRemedy}; }

// The values of forms at given sizes.
class FormValues {
 public:
  FormValues(const SizeForms& forms, std::vector<int64_t> sizes) : forms_(forms), sizes_(std::move(sizes)) {}

  [[nodiscard]] std::optional<int64_t> at(uint32_t form) const {
    if (form >= forms_.forms.size() || forms_.forms[form].size() != forms_.terms.size()) return std::nullopt;
    int64_t sum = 0;
    for (size_t i = 0; i < forms_.terms.size(); ++i) {
      int64_t product = forms_.forms[form][i];
      for (size_t d = 0; d < sizes_.size(); ++d) {
        for (int64_t power = 0; power < forms_.terms[i][d]; ++power) {
          if (__builtin_mul_overflow(product, sizes_[d], &product)) return std::nullopt;
        }
      }
      if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    }
    return sum < 0 || sum > RecordLimits::kMostBytes ? std::nullopt : std::optional(sum);
  }

 private:
  const SizeForms& forms_;
  std::vector<int64_t> sizes_;
};

// Puts the values of the forms in their places.
class Mover {
 public:
  Mover(const FormValues& values, RecordColumns& columns, std::vector<std::string>& texts)
      : values_(values), columns_(columns), texts_(texts) {}

  bool move() {
    const SizeForms& forms = columns_.forms;
    const auto all = [&](const std::vector<SizeForms::Place>& places, auto place_of) {
      return std::all_of(places.begin(), places.end(), [&](const SizeForms::Place& place) {
        const std::optional<int64_t> value = values_.at(place.form);
        int64_t* target = place_of(place);
        if (!value || target == nullptr) return false;
        *target = *value;
        return true;
      });
    };
    return all(forms.input, [&](const SizeForms::Place& place) { return input(place.entry); }) &&
           all(forms.shapes, [&](const SizeForms::Place& place) { return extent(place); }) &&
           all(forms.storages, [&](const SizeForms::Place& place) { return bytes(place.entry); }) &&
           all(forms.offsets, [&](const SizeForms::Place& place) { return offset(place.entry); }) && move_attributes();
  }

 private:
  int64_t* input(uint32_t position) {
    InputSpec& input = columns_.input;
    if (position == 1) return &input.batch;
    const bool tokens = input.kind == InputKind::tokens;
    return position == 2 ? (tokens ? &input.size : &input.channels) : nullptr;
  }
  int64_t* extent(const SizeForms::Place& place) {
    if (place.entry >= columns_.shapes.size()) return nullptr;
    const ExtentsRow& row = columns_.shapes[place.entry];
    return place.place < row.rank ? &columns_.extents[row.first + place.place] : nullptr;
  }
  int64_t* bytes(uint32_t entry) {
    return entry < columns_.storages.size() ? &columns_.storages[entry].bytes.value : nullptr;
  }
  int64_t* offset(uint32_t entry) {
    return entry < columns_.tensors.size() ? &columns_.tensors[entry].offset : nullptr;
  }

  bool move_attributes() {
    std::map<const char*, std::string_view> moved;  // by where the recorded text begins
    texts_.clear();
    texts_.reserve(columns_.forms.attributes.size());
    for (const SizeForms::Text& text : columns_.forms.attributes) {
      if (text.entry >= columns_.attributes.size()) return false;
      std::string& whole = texts_.emplace_back();
      for (const auto& part : text.parts) {
        if (const auto* form = std::get_if<uint32_t>(&part)) {
          const std::optional<int64_t> value = values_.at(*form);
          if (!value) return false;
          whole += fmt::format("{}", *value);
        } else {
          whole += std::get<std::string_view>(part);
        }
      }
      moved.emplace(columns_.attributes[text.entry].data(), whole);
    }
    for (OpRow& op : columns_.ops) {
      if (const auto found = moved.find(op.attributes.data()); found != moved.end()) op.attributes = found->second;
    }
    return true;
  }

  const FormValues& values_;
  RecordColumns& columns_;
  std::vector<std::string>& texts_;
};

// Sizes in the order of the record's dimensions.
Result<std::vector<int64_t>> sizes_in(const SizeForms& forms, const RecordSizes& asked) {
  std::vector<int64_t> sizes = forms.recorded;
  const auto set = [&](std::string_view name, const std::optional<int64_t>& size) -> Status {
    if (!size) return {};
    if (*size < 1 || *size > kMostSize) return cannot_move(fmt::format("the {} cannot be {}", name, *size));
    const auto found = std::find(forms.dimensions.begin(), forms.dimensions.end(), name);
    if (found == forms.dimensions.end()) return cannot_move(fmt::format("the record has one {} only", name));
    sizes[static_cast<size_t>(found - forms.dimensions.begin())] = *size;
    return {};
  };
  if (Status status = set("batch", asked.batch); !status.ok()) return status.error();
  if (Status status = set("length", asked.length); !status.ok()) return status.error();
  return sizes;
}

bool well_formed(const SizeForms& forms) {
  return forms.recorded.size() == forms.dimensions.size() &&
         std::all_of(forms.terms.begin(), forms.terms.end(), [&](const std::vector<int64_t>& powers) {
           return powers.size() == forms.dimensions.size() &&
                  std::all_of(powers.begin(), powers.end(), [](int64_t p) { return p >= 0 && p <= kMostPower; });
         });
}

}  // namespace

Status move_to(const RecordSizes& sizes, RecordColumns& columns, std::vector<std::string>& texts) {
  const SizeForms& forms = columns.forms;
  if (!columns.has(RecordField::parametric)) {
    const bool as_recorded = (!sizes.batch || *sizes.batch == columns.input.batch) && !sizes.length;
    return as_recorded ? Status() : cannot_move("the record was captured at one size");
  }
  if (!forms.fixed.empty()) return cannot_move("the record cannot be moved to another size: " + forms.fixed);
  if (!well_formed(forms)) return Error{"parametric: recorded and terms do not go with its dimensions", "", ""};
  Result<std::vector<int64_t>> asked = sizes_in(forms, sizes);
  if (!asked) return asked.error();
  if (*asked == forms.recorded) return {};
  const FormValues values(forms, std::move(*asked));
  if (!Mover(values, columns, texts).move()) {
    return Error{"parametric names an entry or a form that is not there, or gives a number below 0 or beyond 2^60", "",
                 ""};
  }
  return {};
}

}  // namespace forerun
