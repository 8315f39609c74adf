// The contract of the HTTP API as OpenAPI 3.1, made from the list of routes and of the words of questions. docs/schema/http/openapi.json
// is the same text, which a test holds it to.
#pragma once

#include <string>

namespace forerun::serve {

std::string openapi_json();

}  // namespace forerun::serve
