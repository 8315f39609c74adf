#include "ingest/capture/dynamo_decoder.h"

namespace forerun {

bool DynamoDecoder::decode(Value value, DynamoTrace& trace, std::vector<PieceRow>& pieces) {
  bool has_pieces = false;
  const bool read = each_field(value, "dynamo", [&](std::string_view key, Value item) {
    if (key == "torch") return text(item, "dynamo.torch", trace.torch);
    if (key == "problem") return text(item, "dynamo.problem", trace.problem);
    if (key == "graphs") return whole(item, "dynamo.graphs", trace.graphs);
    if (key == "masks") return masks(item, trace.masks);
    if (key == "traced") return has_pieces = traced(item, pieces);
    if (key != "breaks") return true;
    trace.breaks.clear();
    return each(item, "dynamo.breaks",
                [&](size_t /*position*/, Value row) { return graph_break(row, trace.breaks.emplace_back()); });
  });
  if (!read) return false;
  return has_pieces || !trace.problem.empty() || fail("dynamo has neither traced nor problem");
}

bool DynamoDecoder::masks(Value value, std::vector<bool>& masks) {
  masks.clear();
  return each(value, "dynamo.masks", [&](size_t /*position*/, Value item) {
    int64_t masked = 0;
    if (!whole(item, "an entry of dynamo.masks", masked)) return false;
    masks.push_back(masked != 0);
    return true;
  });
}

bool DynamoDecoder::traced(Value value, std::vector<PieceRow>& pieces) {
  ColumnGroup group("dynamo.traced");
  std::vector<uint32_t> first, end;
  std::vector<uint16_t> piece;
  const bool read = each_field(value, "dynamo.traced", [&](std::string_view key, Value item) {
    if (key == "first") return column(item, group, "first", 0, UINT32_MAX - 1, first);
    if (key == "end") return column(item, group, "end", 1, UINT32_MAX - 1, end);
    return key != "piece" || column(item, group, "piece", 1, UINT16_MAX, piece);
  });
  if (!read || !complete(group, {"first", "end", "piece"})) return false;
  pieces.clear();
  for (size_t i = 0; i < first.size(); ++i) pieces.push_back({first[i], end[i], piece[i]});
  return true;
}

bool DynamoDecoder::graph_break(Value value, GraphBreak& found) {
  return each_field(value, "an entry of dynamo.breaks", [&](std::string_view key, Value item) {
    if (key == "module") return text(item, "dynamo.breaks: module", found.module);
    if (key == "op") return text(item, "dynamo.breaks: op", found.op);
    if (key == "why") return text(item, "dynamo.breaks: why", found.why);
    return key != "where" || text(item, "dynamo.breaks: where", found.where);
  });
}

}  // namespace forerun
