#include "lab/papers/published_claims.h"

#include "base/data_dir.h"

namespace forerun {
namespace {

PublishedClaim claim_of(JsonObject& row) {
  PublishedClaim claim{
      .optimization = row.text("optimization"), .source = row.text("source"), .claim = row.text("claim")};
  if (row.has("cannot")) {
    claim.cannot = row.text("cannot");
    return claim;
  }
  claim.throughput = row.number("throughput");
  claim.differs = row.text("differs");
  claim.model = row.text("model");
  claim.gpu = row.text("gpu");
  claim.batch = row.integer("batch");
  claim.before = row.texts("before");
  claim.after = row.texts("after");
  claim.gbps = row.texts("largest_over_gbps");
  if (claim.after.empty()) row.fail("after", "nothing is applied", "name the optimization as --apply takes it");
  return claim;
}

}  // namespace

Result<PublishedClaims> published_claims(JsonObject file) {
  constexpr const char* kSchema = "forerun.papers.optimizations/1";
  if (file.text("schema") != kSchema) file.fail("schema", std::string("must be ") + kSchema);
  PublishedClaims published;
  JsonObject daydream = file.object("daydream");
  published.daydream_mean = daydream.number("mean_error");
  published.daydream_largest = daydream.number("largest_error");
  for (JsonObject& row : file.objects("claims")) published.claims.push_back(claim_of(row));
  if (const Status status = file.status(); !status) return status.error();
  return published;
}

Result<PublishedClaims> published_claims() {
  const auto data = data_dir();
  if (!data) return data.error();
  auto file = JsonObject::read(*data / "papers" / "optimizations.json");
  if (!file) return file.error();
  return published_claims(std::move(*file));
}

}  // namespace forerun
