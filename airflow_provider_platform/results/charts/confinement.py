"""The confinement of the process that draws charts: what the kernel refuses it from here on.

A specification is written by an agent, and V8 runs what is made of it. Whoever gets out of V8 is in
this process, so this process can do nothing but compute and use the pipes that it has. Two means of
the Linux kernel do that, both without root permissions, both for good:

- A seccomp filter answers system calls by number: connections, programs and child processes,
  everything that changes files, other processes and their memory, and the kernel itself. It must
  stand; where it does not, nothing is drawn (`ConfinementError`).
- Landlock (Linux 5.13) answers by path: besides the time zone and the number of processors, files
  are read below one folder only, which the parent makes and copies fonts into. So the `/proc`
  entries of the parent, and files with secrets, stay closed. Where the kernel has no Landlock,
  `seal` closes all files instead, once the library has started. Texts in scripts that the
  library's own fonts lack then show boxes.

A result of zero is no proof: an emulator or an outer filter can answer zero and do nothing. So
each means is tried from inside before a specification is read.

The worker loads this file as a script's neighbour, so that it imports the standard library alone.
Sources: seccomp(2), landlock(7), capabilities(7), and the kernel's tables of system calls.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Instruction = tuple[int, int, int, int]

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Of each machine: its column in the table below, and its AUDIT_ARCH number."""

# System calls that the filter refuses, with their numbers on x86_64 and on aarch64.
# fmt: off
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # connections
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242),
    # programs
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None),
    # files
    "creat": (85, None), "mknod": (133, None), "mknodat": (259, 33), "mkdir": (83, None),
    "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "link": (86, None),
    "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36), "truncate": (76, 45),
    "ftruncate": (77, 46), "fallocate": (285, 47), "copy_file_range": (326, 285),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # mounts
    "mount": (165, 40), "umount2": (166, 39), "move_mount": (429, 429), "open_tree": (428, 428),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "pivot_root": (155, 41), "chroot": (161, 51),
    "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "kcmp": (312, 272),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "setpgid": (109, 154), "setsid": (112, 157), "unshare": (272, 97), "setns": (308, 268),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # identity
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "setgroups": (116, 159), "capset": (126, 91),
    # shared memory
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "acct": (163, 89), "syslog": (103, 116), "settimeofday": (164, 170), "adjtimex": (159, 171),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "sethostname": (170, 161),
    "setdomainname": (171, 162), "personality": (135, 92), "iopl": (172, None),
    "ioperm": (173, None), "modify_ldt": (154, None), "vhangup": (153, 58),
}
_PARTLY: dict[str, tuple[int | None, int | None]] = {
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "clone": (56, 220),
    "clone3": (435, 435), "kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261),
    "socketpair": (53, 199), "readlink": (89, None), "readlinkat": (267, 78),
    "seccomp": (317, 277),
}
# fmt: on
_NEWEST_KNOWN = 462
"""Calls with higher numbers came after this table was made and are answered as unknown."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_ALLOW: Instruction = (_RETURN, 0, 0, 0x7FFF0000)
_REFUSE: Instruction = (_RETURN, 0, 0, 0x00050000 | errno.EACCES)
_UNKNOWN: Instruction = (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)

_CLONE_THREAD, _CLONE_SIGHAND = 0x00010000, 0x00000800
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0o20000000  # O_TMPFILE
_AT_FDCWD = -100

READABLE = (
    "/usr/share/zoneinfo", "/etc/localtime", "/sys/devices/system/cpu", "/sys/fs/cgroup",
    "/dev/urandom", "/dev/null",
)  # fmt: skip
"""What the library reads while it draws, besides fonts: the time zone, the number of processors."""

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = ((1, 13), (2, 14), (3, 15), (5, 16))
"""Landlock's version, and how many rights on files it knows from there on."""


class ConfinementError(Exception):
    """The kernel does not confine this process; the message is why and what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the process that draws charts cannot be sandboxed: {reason}. Charts need Linux "
            "(x86_64 or aarch64) with a kernel and a container security profile that allow "
            "seccomp filters. Run the task on such a worker, or leave out the charts"
        )


def confine(readable: Sequence[str] = READABLE) -> bool:
    """Confine this process for good; return whether Landlock took part.

    Where it did not, call `seal` before a specification is read. Raises ConfinementError; the
    process is not confined then and must end.
    """
    if sys.platform != "linux":
        raise ConfinementError(f"the system is {sys.platform}, not Linux")
    _machine()
    _one_thread()
    if _prctl(38, 1) != 0:  # PR_SET_NO_NEW_PRIVS
        raise ConfinementError(f"PR_SET_NO_NEW_PRIVS failed ({_reason()})")
    _drop_capabilities()
    landlocked = _landlock(readable)
    _install(_program())
    _verify_filter()
    if landlocked:
        _expect(
            "Landlock does not block access to files", errno.EACCES, "openat", _AT_FDCWD, b"/", 0
        )
    return landlocked


def seal() -> None:
    """Have no file opened from here on, in any thread. Raises ConfinementError."""
    calls = ("open", "openat", "openat2", "readlink", "readlinkat")
    _install(_guarded([line for call in calls for line in _when(call, [_REFUSE])]))
    _expect("the sealed process can still open files", errno.EACCES, "openat", _AT_FDCWD, b"/", 0)


# The filter


def _program() -> list[Instruction]:
    """The filter as a program of BPF."""
    own = os.getpid()
    lines: list[Instruction] = [
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _NEWEST_KNOWN + 1),
        _UNKNOWN,
    ]
    for call in _REFUSED:
        lines += _when(call, [_REFUSE])
    lines += _when("clone3", [_UNKNOWN])  # its flags are in memory; libc falls back to clone
    lines += _when("openat2", [_UNKNOWN])
    lines += _when("clone", [_argument(0), (_ANY_BIT, 0, 1, _CLONE_THREAD), _ALLOW, _REFUSE])
    for call, position in (("open", 1), ("openat", 2)):
        lines += _when(call, [_argument(position), (_ANY_BIT, 0, 1, _WRITES), _REFUSE, _ALLOW])
    for call in ("kill", "tgkill"):
        lines += _when(call, [_argument(0), (_EQUAL, 0, 1, own), _ALLOW, _REFUSE])
    lines += _when(
        "prlimit64",
        [_argument(0), (_EQUAL, 1, 0, 0), (_EQUAL, 0, 1, own), _ALLOW, _REFUSE],
    )
    lines += _when(
        "socketpair",  # streams, which reach nobody else; a datagram could be sent to an address
        [
            _argument(0),
            (_EQUAL, 0, 4, socket.AF_UNIX),
            _argument(1),
            (_AND, 0, 0, 0xF),
            (_EQUAL, 0, 1, socket.SOCK_STREAM),
            _ALLOW,
            _REFUSE,
        ],
    )
    return _guarded(lines)


def _guarded(lines: list[Instruction]) -> list[Instruction]:
    """The lines for this machine's calls; those of another machine (32 bits) are refused."""
    machine = _MACHINES[platform.machine()][1]
    return [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, machine),
        _REFUSE,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, 0x40000000),  # the calls of x32
        _REFUSE,
        *lines,
        _ALLOW,
    ]


def _when(call: str, answer: list[Instruction]) -> list[Instruction]:
    """Lines that answer a call. The last line of `answer` must return."""
    number = number_of(call)
    return [] if number is None else [(_EQUAL, 0, len(answer), number), *answer]


def _argument(position: int) -> Instruction:
    """Load the low half of an argument, as the kernel takes flags and process numbers."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * position)


def _install(program: list[Instruction]) -> None:
    """Install a filter for all threads of this process."""
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    loaded = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    # SECCOMP_SET_MODE_FILTER with SECCOMP_FILTER_FLAG_TSYNC
    if _call("seccomp", 1, 1, loaded) != 0:
        raise ConfinementError(f"the kernel refused the seccomp filter ({_reason()})")
    if _prctl(21) != 2:  # PR_GET_SECCOMP
        raise ConfinementError("the seccomp filter is not active although the kernel accepted it")


def _verify_filter() -> None:
    """Try what must be refused, each in a way that does nothing where it is not refused."""
    empty, nowhere = b"", -1
    attempts: list[tuple[str, tuple[int | bytes | None, ...]]] = [
        ("socket", (socket.AF_UNIX, socket.SOCK_STREAM, 0)),
        ("connect", (nowhere, None, 0)),
        ("execve", (empty, None, None)),
        ("clone", (_CLONE_SIGHAND, None, None, None, None)),  # an invalid combination
        ("openat", (_AT_FDCWD, empty, os.O_WRONLY)),
        ("unlinkat", (_AT_FDCWD, empty, 0)),
        ("renameat2", (_AT_FDCWD, empty, _AT_FDCWD, empty, 0)),
        ("truncate", (empty, 0)),
        ("ftruncate", (nowhere, 0)),
        ("linkat", (_AT_FDCWD, empty, _AT_FDCWD, empty, 0)),
        ("symlinkat", (empty, _AT_FDCWD, empty)),
        ("mkdirat", (_AT_FDCWD, empty, 0)),
        ("fchmodat", (_AT_FDCWD, empty, 0)),
        ("ptrace", (nowhere, 0, None, None)),
        ("process_vm_readv", (os.getpid(), None, 0, None, 0, 0)),
        ("process_vm_writev", (os.getpid(), None, 0, None, 0, 0)),
        ("kill", (os.getppid() or 1, 0)),
        ("pidfd_open", (nowhere, 0)),
        ("setns", (nowhere, 0)),
        ("io_uring_setup", (0, None)),
        ("bpf", (nowhere, None, 0)),
    ]
    for call, arguments in attempts:
        _expect(f"the filter does not block {call}", errno.EACCES, call, *arguments)
    _expect("the filter does not block clone3", errno.ENOSYS, "clone3", None, 0)


def _expect(otherwise: str, expected: int, call: str, /, *arguments: int | bytes | None) -> None:
    if _call(call, *arguments) != -1 or ctypes.get_errno() != expected:
        raise ConfinementError(otherwise)


# Landlock


def _landlock(readable: Sequence[str]) -> bool:
    """Close all files but those to read; False where the kernel has no Landlock."""
    version = _system(444, None, 0, 1)  # LANDLOCK_CREATE_RULESET_VERSION
    if version < 1:
        # Not built in, not switched on, or hidden by the profile of the container.
        if ctypes.get_errno() in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES):
            return False
        raise ConfinementError(f"the version of Landlock cannot be read ({_reason()})")
    rights = max(count for since, count in _FILE_RIGHTS if since <= version)
    attributes = struct.pack(
        "=QQQ",
        (1 << rights) - 1,
        0b11 if version >= 4 else 0,  # to bind and to connect
        0b11 if version >= 6 else 0,  # abstract sockets and signals
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _system(444, attributes[:size], size, 0)
    if rules < 0:
        raise ConfinementError(f"Landlock refused the rules ({_reason()})")
    try:
        for path in readable:
            _allow_reading(rules, path)
        if _system(446, rules, 0) != 0:
            raise ConfinementError(f"Landlock does not restrict the process ({_reason()})")
    finally:
        os.close(rules)
    return True


def _allow_reading(rules: int, path: str) -> None:
    try:
        below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)  # noqa: PTH112
        if _system(445, rules, 1, struct.pack("=Qi", rights, below), 0) != 0:
            raise ConfinementError(f"Landlock refused the rule for {path} ({_reason()})")
    finally:
        os.close(below)


# The process


def _one_thread() -> None:
    """Landlock binds the thread that asks for it, and threads that it starts later."""
    try:
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    except OSError as error:
        raise ConfinementError(
            f"the threads of the process cannot be counted ({error.strerror})"
        ) from None
    if threads != 1:
        raise ConfinementError(f"the process already has {threads} threads")


def _drop_capabilities() -> None:
    """Give up root's capabilities: to raise limits, to reach other users' files and processes."""
    if _call("capset", struct.pack("=Ii", 0x20080522, 0), bytes(24)) != 0:
        raise ConfinementError(f"the capabilities of the process cannot be dropped ({_reason()})")


def _machine() -> int:
    known = _MACHINES.get(platform.machine())
    if known is None or struct.calcsize("P") != 8 or sys.byteorder != "little":
        raise ConfinementError(
            f"the filter does not support {platform.machine() or 'this machine'} with "
            f"{8 * struct.calcsize('P')} bits"
        )
    return known[0]


def number_of(call: str) -> int | None:
    """The number of a system call on this machine; None where the machine lacks the call."""
    return {**_REFUSED, **_PARTLY}[call][_machine()]


def _call(call: str, *arguments: int | bytes | None) -> int:
    number = number_of(call)
    if number is None:
        raise ValueError(call)
    return _system(number, *arguments)


def _system(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call. Every number goes as a long: varargs of C are read as such."""
    ctypes.set_errno(0)
    passed = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    result: int = call(ctypes.c_long(number), *passed)
    return result


def _prctl(option: int, value: int = 0) -> int:
    ctypes.set_errno(0)
    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    result: int = call(option, value, 0, 0, 0)
    return result


def _reason() -> str:
    number = ctypes.get_errno()
    return os.strerror(number) if number else "no reason is given"
