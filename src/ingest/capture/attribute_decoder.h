// AttributeDecoder: the JSON object of an op's attributes -> Attributes.
//
//   {"size": [2, -1], "dim": 1, "keepdim": true, "eps": 1e-05, "dtype": "bfloat16", "names": null}
//
// Lists of one kind become typed lists, other lists and objects keep their JSON text. Infinity, which JSON lacks and
// Python writes, is kept as the string "Infinity" or "-Infinity"; NaN is an error, as is anything else that is not
// JSON.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "graph/attribute.h"

namespace forerun {

class AttributeDecoder {
 public:
  AttributeDecoder();
  AttributeDecoder(AttributeDecoder&&) noexcept;
  AttributeDecoder& operator=(AttributeDecoder&&) noexcept;
  ~AttributeDecoder();

  Result<Attributes> decode(std::string_view object_text);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace forerun
