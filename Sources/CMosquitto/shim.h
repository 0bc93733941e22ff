#include <mosquitto.h>
#include <mqtt_protocol.h>

// What driving the library's sockets needs from Linux, and Swift's Glibc module leaves out.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

static inline int fleetbus_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }
