#include "store/result_json.h"

namespace forerun::store {

void write_fields(JsonWriter& json, const ResultRow& row) {
  const ResultFigures& figures = row.figures;
  json.field("id", row.id)
      .field("kind", row.kind)
      .field("created", iso_time(row.created))
      .field("made_by", row.made_by)
      .field("model", figures.model)
      .field("gpu", figures.gpu)
      .field("batch", figures.batch)
      .field("precision", figures.precision)
      .field("iter_ms", figures.iter_ms)
      .field("iter_low_ms", figures.iter_low_ms)
      .field("iter_high_ms", figures.iter_high_ms)
      .field("peak_reserved", figures.peak_reserved)
      .field("fits", figures.fits)
      .field("tags", row.tags);
}

void write_fields(JsonWriter& json, const Measurement& measurement) {
  json.field("id", measurement.id)
      .field("result", measurement.result)
      .field("created", iso_time(measurement.created))
      .field("iter_ms", measurement.iter_ms)
      .field("peak_reserved", measurement.peak_reserved)
      .field("machine", measurement.machine);
}

std::string page_json(const ResultPage& page) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.store.list/1").key("results").begin_array();
  for (const ResultRow& row : page.rows) {
    json.begin_object();
    write_fields(json, row);
    json.end_object();
  }
  json.end_array().key("next");
  page.next.empty() ? json.value(nullptr) : json.value(page.next);
  return json.end_object().take();
}

std::string result_json(const KeptResult& result, const std::vector<Measurement>& measurements) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.store.show/1");
  write_fields(json, result.row);
  json.key("measurements").begin_array();
  for (const Measurement& one : measurements) {
    json.begin_object();
    write_fields(json, one);
    json.end_object();
  }
  json.end_array().key("question").raw(result.question).key("answer").raw(result.answer);
  return json.end_object().take();
}

}  // namespace forerun::store
