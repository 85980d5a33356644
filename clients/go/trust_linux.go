package incumbent

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const clockBoottime = 7

// now is CLOCK_BOOTTIME in nanoseconds: it goes on while the machine sleeps, which Go's own clock doesn't.
func now() uint64 {
	var at syscall.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&at)), 0)
	if failed != 0 {
		return ^uint64(0) // Without a clock nothing can be trusted.
	}
	return uint64(at.Nano())
}

func mapTrust(path, hold string, term uint64) *uint64 {
	if path == "" || binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	page, err := syscall.Mmap(int(file.Fd()), 0, 128, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, known := timeNamespace()
	fits := err == nil && known && string(page[:8]) == "INCTRST1" &&
		binary.LittleEndian.Uint64(page[16:]) == term &&
		hex.EncodeToString(page[24:40]) == hold &&
		hex.EncodeToString(page[40:56]) == strings.ReplaceAll(strings.TrimSpace(string(boot)), "-", "") &&
		binary.LittleEndian.Uint64(page[56:]) == namespace
	if !fits {
		_ = syscall.Munmap(page)
		return nil
	}
	// It stays mapped: somebody may ask at any time, and a page for each hold is little.
	return (*uint64)(unsafe.Pointer(&page[8]))
}

func timeNamespace() (uint64, bool) {
	link, err := os.Readlink("/proc/self/ns/time")
	if os.IsNotExist(err) {
		return 0, true // A kernel without them has one clock for all.
	}
	number := strings.TrimSuffix(strings.TrimPrefix(link, "time:["), "]")
	inode, bad := strconv.ParseUint(number, 10, 64)
	return inode, err == nil && bad == nil
}
