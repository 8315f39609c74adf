// DynamoDecoder: the field `dynamo` of a run record -> what Dynamo made of the model, and which ops are compiled together.
//
//   {"torch": "2.13.0", "graphs": 2, "masks": [1, 0], "traced": {"first": [0, 7], "end": [6, 12], "piece": [1, 2]},
//    "breaks": [{"module": "head", "op": "aten.mul.Tensor", "why": "...", "where": "model.py:12"}]}
//   {"torch": "2.13.0", "problem": "RuntimeError: ..."}
#pragma once

#include "ingest/capture/json_walk.h"
#include "ingest/capture/record_columns.h"

namespace forerun {

class DynamoDecoder : public JsonWalk {
 public:
  bool decode(Value value, DynamoTrace& trace, std::vector<PieceRow>& pieces);

 private:
  bool masks(Value value, std::vector<bool>& masks);
  bool traced(Value value, std::vector<PieceRow>& pieces);
  bool graph_break(Value value, GraphBreak& found);
};

}  // namespace forerun
