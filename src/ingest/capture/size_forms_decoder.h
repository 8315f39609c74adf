// SizeFormsDecoder: the field `parametric` of a run record -> SizeForms.
//
//   {"dimensions": ["batch"], "recorded": [4], "terms": [[0], [1]], "forms": [[0, 1], [0, 64]],
//    "input": {"entry": [1], "form": [0]}, "shapes": {"entry": [0], "place": [0], "form": [0]},
//    "storages": {"entry": [2], "form": [1]}, "offsets": {"entry": [], "form": []},
//    "attributes": {"entry": [3], "text": [["{\"size\":[", 0, ",16]}"]]}}
//   {"dimensions": ["batch"], "recorded": [4], "fixed": "op 12, aten.view.default in encoder: ..."}
#pragma once

#include "ingest/capture/json_walk.h"
#include "ingest/capture/size_forms.h"

namespace forerun {

class SizeFormsDecoder : public JsonWalk {
 public:
  bool decode(Value value, SizeForms& forms);

 private:
  bool names(Value value, std::vector<std::string>& out);
  bool rows(Value value, std::string_view what, std::vector<std::vector<int64_t>>& out);
  bool places(Value value, std::string_view what, std::vector<SizeForms::Place>& out);
  bool texts_with_forms(Value value, std::vector<SizeForms::Text>& out);
  bool parts(Value value, SizeForms::Text& out);
};

}  // namespace forerun
