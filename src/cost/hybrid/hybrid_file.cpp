#include "cost/hybrid/hybrid_file.h"

#include <algorithm>

#include "base/little_endian.h"
#include "base/output_file.h"

namespace forerun::hybrid {
namespace {

constexpr std::string_view kMagic = "forerun hybrid/3\n";
constexpr const char* kHead = "head";

bool take_ranges(std::string_view& bytes, std::array<Range, kColumns>& seen) {
  return std::all_of(seen.begin(), seen.end(),
                     [&](Range& range) { return take_little(bytes, range.low) && take_little(bytes, range.high); });
}

Error broken(std::string what) { return {std::move(what), "", "train it again with `forerun train hybrid`"}; }

std::string section_of(size_t model) { return std::string(name_of(static_cast<Model>(model))); }

}  // namespace

std::string head_to_bytes(const ResidualModel& residual_model) {
  std::string bytes(kMagic);
  put_short_text(bytes, residual_model.gpu);
  for (const std::optional<KernelModel>& known : residual_model.models) {
    put_little(bytes, known ? static_cast<uint32_t>(known->ops.size()) : 0);
    if (!known) continue;
    for (const std::string& op : known->ops) put_short_text(bytes, op);
    for (const Range& range : known->seen) {
      put_little(bytes, range.low);
      put_little(bytes, range.high);
    }
  }
  return bytes;
}

Result<ResidualModel> head_from_bytes(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return broken("this is no hybrid cost model of this version");
  bytes.remove_prefix(kMagic.size());
  ResidualModel residual_model;
  if (!take_short_text(bytes, residual_model.gpu)) return broken("the hybrid cost model ends too early");
  for (std::optional<KernelModel>& model : residual_model.models) {
    uint32_t ops = 0;
    if (!take_little(bytes, ops) || ops > bytes.size()) return broken("the hybrid cost model ends too early");
    if (ops == 0) continue;
    KernelModel& known = model.emplace();
    known.ops.resize(ops);
    for (std::string& op : known.ops) {
      if (!take_short_text(bytes, op)) return broken("the hybrid cost model ends too early");
    }
    if (!take_ranges(bytes, known.seen)) return broken("the hybrid cost model ends too early");
  }
  if (!bytes.empty()) return broken("the hybrid cost model goes on behind its end");
  return residual_model;
}

Result<std::string> to_bytes(const ResidualModel& residual_model) {
  std::vector<std::pair<std::string, std::string>> sections = {{kHead, head_to_bytes(residual_model)}};
  for (size_t model = 0; model < kModelCount; ++model) {
    const std::optional<KernelModel>& known = residual_model.models[model];
    if (known) sections.emplace_back(section_of(model), to_bytes(known->forests.get()));
  }
  return packed_sections(sections);
}

namespace {

Result<ResidualModel> from_sections(const PackedSections& sections) {
  const Result<std::string> head = sections.unpack(kHead);
  if (!head) return head.error();
  Result<ResidualModel> residual_model = head_from_bytes(*head);
  if (!residual_model) return residual_model.error();
  for (size_t model = 0; model < kModelCount; ++model) {
    std::optional<KernelModel>& known = residual_model->models[model];
    if (!known) continue;
    std::string section = section_of(model);
    if (!sections.has(section)) return broken("the hybrid cost model has no section " + section);
    known->forests = DeferredForests(sections, std::move(section));
  }
  return residual_model;
}

}  // namespace

Result<ResidualModel> from_bytes(std::string bytes) {
  const Result<PackedSections> sections = PackedSections::parse(std::move(bytes));
  if (!sections) return sections.error();
  return from_sections(*sections);
}

Result<ResidualModel> load_residual_model(const std::filesystem::path& file) {
  const Result<PackedSections> sections = PackedSections::open(file);
  if (!sections) return sections.error();
  Result<ResidualModel> residual_model = from_sections(*sections);
  if (!residual_model) return residual_model.error().within(file.string());
  return residual_model;
}

Status save_residual_model(const ResidualModel& residual_model, const std::filesystem::path& file) {
  const Result<std::string> bytes = to_bytes(residual_model);
  if (!bytes) return bytes.error();
  return write_whole_file(file.string(), *bytes);
}

}  // namespace forerun::hybrid
