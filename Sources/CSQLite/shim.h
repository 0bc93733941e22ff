#include <sqlite3.h>

// sqlite3_config takes a variable number of arguments, which Swift does not call. Without statistics of its memory SQLite
// allocates without a lock that all threads of a process share. Only before the first database of the process is opened.
static inline int fleetbus_sqlite_without_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
