#include "lab/accuracy/published.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/data_dir.h"

namespace forerun {
namespace {

using learn::Target;

constexpr const char* kFigureFiles[] = {"ets.json", "dnnperf.json"};  // in the order of their rows in tables
constexpr const char* kFiguresSchema = "forerun.papers.figures/1";
constexpr const char* kDripleSchema = "forerun.papers.driple/1";

void check_paper(JsonObject& paper, const char* wanted) {
  if (paper.text("schema") != wanted) paper.fail("schema", std::string("must be ") + wanted);
  paper.text("paper");
}

double error_share(JsonObject& object, const std::string& field) {
  const double value = object.number(field);
  if (value > 1) object.fail(field, "an error is a share of 1", "divide per cent by 100");
  return value;
}

PublishedFigure figure_of(JsonObject& row) {
  PublishedFigure figure{.label = row.text("label"),
                         .predictor = row.text("predictor"),
                         .settings = row.texts("settings"),
                         .system = row.text("system")};
  const std::string quantity = row.text("quantity");
  if (quantity == learn::name_of(Target::peak_bytes)) {
    figure.quantity = Target::peak_bytes;
  } else if (quantity != learn::name_of(Target::iteration_ms)) {
    row.fail("quantity", "there is no quantity '" + quantity + "'", "write iteration_ms or peak_bytes");
  }
  figure.mre = error_share(row, "mre");
  figure.rmse = row.number_or(figure.quantity == Target::peak_bytes ? "rmse_gb" : "rmse_ms", 0);
  if (row.has("unseen_mre")) figure.unseen = error_share(row, "unseen_mre");
  for (const std::string& name : row.keys()) {
    const std::set<std::string> known = {
        "label",    "predictor", "settings",   "system",
        "quantity", "mre",       "unseen_mre", figure.quantity == Target::peak_bytes ? "rmse_gb" : "rmse_ms"};
    if (!known.contains(name)) row.fail(name, "the field is not known", "data/papers/README.md lists the fields");
  }
  return figure;
}

}  // namespace

Result<PublishedFigures> figures_of_paper(JsonObject paper) {
  check_paper(paper, kFiguresSchema);
  PublishedFigures figures;
  std::set<std::tuple<std::string, std::string, Target>> seen;
  for (JsonObject& table : paper.objects("tables")) {
    const std::string kind = table.text("kind");
    if (kind != "systems" && kind != "ablations") table.fail("kind", "must be systems or ablations");
    const std::string suite = table.text("suite");
    const std::string source = table.text("source");
    const std::string split = table.has("split") ? table.text("split") : "";
    if (table.has("split") && split != "random") table.fail("split", "must be random, or left out");
    for (JsonObject& row : table.objects("rows")) {
      PublishedFigure figure = figure_of(row);
      figure.suite = suite;
      figure.source = source;
      figure.seen = split == "random";
      if (!seen.emplace(suite, figure.label, figure.quantity).second) {
        row.fail("label", "'" + figure.label + "' has two figures of one quantity", "keep one of them");
      }
      (kind == "systems" ? figures.systems : figures.ablations).push_back(std::move(figure));
    }
  }
  if (const Status status = paper.status(); !status) return status.error();
  return figures;
}

Result<PublishedFigures> published_figures(const std::string& suite, const std::filesystem::path& folder) {
  PublishedFigures of_suite;
  for (const char* file : kFigureFiles) {
    auto paper = JsonObject::read(folder / file);
    if (!paper) return paper.error();
    const auto figures = figures_of_paper(std::move(*paper));
    if (!figures) return figures.error();
    const auto take = [&](const std::vector<PublishedFigure>& from, std::vector<PublishedFigure>& to) {
      std::copy_if(from.begin(), from.end(), std::back_inserter(to),
                   [&](const PublishedFigure& figure) { return figure.suite == suite; });
    };
    take(figures->systems, of_suite.systems);
    take(figures->ablations, of_suite.ablations);
  }
  return of_suite;
}

Result<PublishedFigures> published_figures(const std::string& suite) {
  const auto data = data_dir();
  if (!data) return data.error();
  return published_figures(suite, *data / "papers");
}

Result<DriplePublished> published_driple(JsonObject paper) {
  check_paper(paper, kDripleSchema);
  DriplePublished published;
  JsonObject errors = paper.object("errors");
  const char* const resources[] = {"gpu", "memory", "send", "receive"};
  for (size_t i = 0; i < published.errors.size(); ++i) published.errors[i] = error_share(errors, resources[i]);
  JsonObject transfer = paper.object("transfer");
  published.time_ratio = transfer.number("time_ratio");
  published.data_ratio = transfer.number("data_ratio");
  if (const Status status = paper.status(); !status) return status.error();
  return published;
}

Result<DriplePublished> published_driple() {
  const auto data = data_dir();
  if (!data) return data.error();
  auto paper = JsonObject::read(*data / "papers" / "driple.json");
  if (!paper) return paper.error();
  return published_driple(std::move(*paper));
}

std::string weights_folder(const std::string& suite, const learn::Division& division) {
  return division.random ? suite + "-random" : suite;
}

std::string training_command(const PublishedFigure& figure, const learn::Division& division) {
  std::string command = "forerun train " + figure.predictor + " --suite " + figure.suite;
  if (division.random) command += " --split " + learn::to_text(division);
  for (const std::string& setting : figure.settings) command += " --set " + setting;
  return command + " --out data/weights/" + weights_folder(figure.suite, division) + "/" + figure.label;
}

}  // namespace forerun
