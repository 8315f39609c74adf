// The tables of a store, and how a store of an earlier version becomes one of this: steps forward, all in one transaction.
//
// The table forerun_store says that a database is ours and which version its tables have; a SQLite file has our application_id
// too. A database that is not ours, or of a later version, is refused and left as it was.
#pragma once

#include "store/database.h"

namespace forerun::store {

constexpr int64_t kSchemaVersion = 1;

// `create`: a database without any tables becomes a store. `made` tells whether it did.
Status prepare_schema(Database& database, bool create, bool& made);

}  // namespace forerun::store
