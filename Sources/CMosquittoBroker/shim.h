#include <mosquitto.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

// Swift cannot call what takes a variable number of arguments.
static inline void fleetbus_broker_log(int level, const char *text) { mosquitto_log_printf(level, "%s", text); }
