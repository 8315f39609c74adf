// A database in one file: SQLite by its C interface, with a write-ahead log, readable by its owner alone.
#pragma once

#include <memory>
#include <string>

#include "store/database.h"

namespace forerun::store {

// `create`: a file that is not there is made. A file that is there and no SQLite database is an Error.
Result<std::unique_ptr<Database>> open_sqlite(const std::string& path, bool create);

}  // namespace forerun::store
