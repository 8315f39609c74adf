// A database of a PostgreSQL server, by libpq. A build without libpq refuses such stores with a word.
#pragma once

#include <memory>
#include <string>

#include "store/database.h"

namespace forerun::store {

// Whether a store's name means a PostgreSQL server.
bool names_postgres(const std::string& name);
// The name without its password, for messages.
std::string without_password(const std::string& url);

Result<std::unique_ptr<Database>> open_postgres(const std::string& url);

}  // namespace forerun::store
