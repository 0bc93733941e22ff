// What Swift's Glibc module leaves out. No header of Glibc's stands here: its types would come from this module, too.
#include <linux/fs.h>
#include <sys/syscall.h>

long syscall(long number, ...);

// Gives a file another name, unless something has that name. 0, or -1 and errno: EINVAL where the file system cannot,
// ENOSYS where the kernel cannot.
static inline int fleetbus_rename_to_new(const char *path, const char *other) {
    const int here = -100;  // AT_FDCWD
    return (int)syscall(SYS_renameat2, here, path, here, other, RENAME_NOREPLACE);
}

// Makes all files of the file system of an open file durable. 0, or -1 and errno, also where an earlier write failed.
static inline int fleetbus_syncfs(int descriptor) { return (int)syscall(SYS_syncfs, descriptor); }
