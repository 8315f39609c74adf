#include "ingest/capture/size_forms_decoder.h"

namespace forerun {

namespace {
constexpr int64_t kMostEntry = UINT32_MAX - 1;
}  // namespace

bool SizeFormsDecoder::decode(Value value, SizeForms& forms) {
  return each_field(value, "parametric", [&](std::string_view key, Value item) {
    if (key == "dimensions") return names(item, forms.dimensions);
    if (key == "recorded") {
      forms.recorded.clear();
      return numbers(item, "parametric.recorded", [&](size_t /*position*/, int64_t number) {
        forms.recorded.push_back(number);
        return true;
      });
    }
    if (key == "terms") return rows(item, "parametric.terms", forms.terms);
    if (key == "forms") return rows(item, "parametric.forms", forms.forms);
    if (key == "input") return places(item, "parametric.input", forms.input);
    if (key == "shapes") return places(item, "parametric.shapes", forms.shapes);
    if (key == "storages") return places(item, "parametric.storages", forms.storages);
    if (key == "offsets") return places(item, "parametric.offsets", forms.offsets);
    if (key == "attributes") return texts_with_forms(item, forms.attributes);
    if (key == "fixed") return text(item, "parametric.fixed", forms.fixed);
    return true;
  });
}

bool SizeFormsDecoder::names(Value value, std::vector<std::string>& out) {
  std::vector<std::string_view> views;
  if (!texts(value, "parametric.dimensions", views)) return false;
  out.assign(views.begin(), views.end());
  return true;
}

bool SizeFormsDecoder::rows(Value value, std::string_view what, std::vector<std::vector<int64_t>>& out) {
  out.clear();
  return each(value, what, [&](size_t /*position*/, Value item) {
    std::vector<int64_t>& row = out.emplace_back();
    return numbers(item, what, [&](size_t /*position*/, int64_t number) {
      row.push_back(number);
      return true;
    });
  });
}

bool SizeFormsDecoder::places(Value value, std::string_view what, std::vector<SizeForms::Place>& out) {
  ColumnGroup group(what);
  std::vector<uint32_t> entries, places, forms;
  const bool read = each_field(value, what, [&](std::string_view key, Value item) {
    if (key == "entry") return column(item, group, "entry", 0, kMostEntry, entries);
    if (key == "place") return column(item, group, "place", 0, kMostEntry, places);
    if (key == "form") return column(item, group, "form", 0, kMostEntry, forms);
    return true;
  });
  if (!read || !complete(group, {"entry", "form"})) return false;
  out.clear();
  for (size_t i = 0; i < entries.size(); ++i) out.push_back({entries[i], places.empty() ? 0 : places[i], forms[i]});
  return true;
}

bool SizeFormsDecoder::texts_with_forms(Value value, std::vector<SizeForms::Text>& out) {
  ColumnGroup group("parametric.attributes");
  std::vector<uint32_t> entries;
  out.clear();
  const bool read = each_field(value, group.name(), [&](std::string_view key, Value item) {
    if (key == "entry") return column(item, group, "entry", 0, kMostEntry, entries);
    if (key != "text") return true;
    return each(item, "parametric.attributes.text",
                [&](size_t /*position*/, Value list) { return parts(list, out.emplace_back()); }) &&
           group.add("text", out.size());
  });
  if (!read || !complete(group, {"entry", "text"})) return false;
  for (size_t i = 0; i < out.size(); ++i) out[i].entry = entries[i];
  return true;
}

bool SizeFormsDecoder::parts(Value value, SizeForms::Text& out) {
  return each(value, "an entry of parametric.attributes.text", [&](size_t /*position*/, Value item) {
    simdjson::ondemand::json_type type{};
    if (item.type().get(type) == simdjson::SUCCESS && type == simdjson::ondemand::json_type::string) {
      std::string_view words;
      if (!text(item, "a part of an attribute", words)) return false;
      out.parts.emplace_back(words);
      return true;
    }
    uint32_t form = 0;
    if (!index(item, "a form in an attribute", form)) return false;
    out.parts.emplace_back(form);
    return true;
  });
}

}  // namespace forerun
