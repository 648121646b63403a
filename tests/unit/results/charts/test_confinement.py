"""Code that escapes from V8 can do nothing, and without a filter no chart is drawn.

The real worker runs with a library that executes what a specification says, which is the worst
that a specification can be made to do.
"""

from __future__ import annotations

import base64
import errno
import json
import platform
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.results.charts import (
    ChartError,
    ChartLimits,
    ChartRenderer,
    confinement,
)
from airflow_provider_platform.results.charts import process as drawing
from airflow_provider_platform.results.charts.fonts import FontFolder
from airflow_provider_platform.results.charts.process import DrawingProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in confinement._MACHINES,
    reason="the kernel confines on Linux",
)

FONTS = Path(__file__).with_name("fonts")
LIMITS = ChartLimits(seconds=120)
REQUEST = {"formats": ["svg"], "scale": 1, "side": 9, "pixels": 9, "lacking": ""}
LANDLOCK_CALLS = [[number, None, errno.ENOSYS] for number in (444, 445, 446)]

HOSTILE_LIBRARY = '''
import ctypes, json, os, signal, socket, subprocess, threading

def get_vegalite_versions():
    return ["5.8"]

def vegalite_to_vega(spec, vl_version):
    return spec

def svg_to_png(svg, scale=1):
    return b""

def register_font_directory(folder):
    pass

def vega_to_svg(spec, allowed_base_urls):
    spec = json.loads(spec)
    if "attempt" not in spec:
        return "<svg/>"
    try:
        exec(spec["attempt"], {**globals(), "call": call})
    except OSError as error:
        return f"refused {error.errno}"
    return "done"

def call(number, *arguments):
    """A system call as it is, without the checks of a library."""
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), "")
'''


@pytest.fixture
def hostile_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "vl_convert.py").write_text(HOSTILE_LIBRARY)
    monkeypatch.setattr(drawing, "packages_folder", lambda: str(folder))
    return folder


@pytest.fixture
def under_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[list[int | None]]], None]:
    """Have the worker run under a filter like that of a container's profile."""

    def use(calls: list[list[int | None]]) -> None:
        python = tmp_path / "python"
        script = Path(__file__).with_name("outer_filter.py")
        parts = [sys.executable, "-I", str(script), json.dumps(calls), sys.executable]
        python.write_text(f'#!/bin/sh\nexec {shlex.join(parts)} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))

    return use


@pytest.fixture(params=["landlock", "no landlock"])
def worker(
    request: pytest.FixtureRequest,
    hostile_library: Path,
    under_profile: Callable[[list[list[int | None]]], None],
) -> Iterator[DrawingProcess]:
    """The real worker with the hostile library, with Landlock and where the kernel lacks it."""
    if request.param == "no landlock":
        under_profile(LANDLOCK_CALLS)  # type: ignore[arg-type]
    elif confinement._system(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")
    process = DrawingProcess(LIMITS)
    try:
        yield process
    finally:
        process.kill()


def outcome(worker: DrawingProcess, attempt: str) -> str:
    answer = worker.ask({**REQUEST, "spec": {"attempt": attempt}})
    return base64.b64decode(answer["pictures"]["svg"]).decode()


REFUSED = f"refused {errno.EACCES}"


@pytest.mark.one_case_in(6)
@pytest.mark.parametrize(
    "attempt",
    [
        "open({file!r}, 'w')",
        "open({file!r}, 'a')",
        "open({file!r}, 'r+')",
        "open({folder!r} + '/new', 'x')",
        "os.open({file!r}, os.O_RDONLY | os.O_TRUNC)",
        "os.unlink({file!r})",
        "os.remove({file!r})",
        "os.rename({file!r}, {folder!r} + '/moved')",
        "os.replace({file!r}, {folder!r} + '/moved')",
        "os.truncate({file!r}, 0)",
        "os.link({file!r}, {folder!r} + '/linked')",
        "os.symlink({file!r}, {folder!r} + '/linked')",
        "os.mkdir({folder!r} + '/new')",
        "os.mkfifo({folder!r} + '/new')",
        "os.rmdir({empty!r})",
        "os.chmod({file!r}, 0o777)",
        "os.chown({file!r}, 0, 0)",
        "os.utime({file!r}, (0, 0))",
        "os.setxattr({file!r}, 'user.x', b'x')",
        "os.memfd_create('x')",
    ],
)
def test_the_worker_changes_no_file(worker: DrawingProcess, tmp_path: Path, attempt: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "empty").mkdir()
    file = folder / "file"
    file.write_text("content")
    before = file.stat()
    places = {"file": str(file), "folder": str(folder), "empty": str(folder / "empty")}
    assert outcome(worker, attempt.format(**places)) == REFUSED
    assert sorted(path.name for path in folder.iterdir()) == ["empty", "file"]
    after = file.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (
        before.st_mode, before.st_mtime_ns, before.st_nlink,
    )  # fmt: skip
    assert file.read_text() == "content"


def test_the_worker_changes_no_file_that_it_had_open(hostile_library: Path, tmp_path: Path) -> None:
    file = tmp_path / "open"
    file.write_text("content")
    library = hostile_library / "vl_convert.py"
    library.write_text(f"{HOSTILE_LIBRARY}\nkept = open({str(file)!r}, 'r+b', buffering=0)\n")
    process = DrawingProcess(LIMITS)
    try:
        assert outcome(process, "os.ftruncate(kept.fileno(), 0)") == REFUSED
        too_large = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); kept.write(b'x')"
        assert outcome(process, too_large) == f"refused {errno.EFBIG}"
    finally:
        process.kill()
    assert file.read_text() == "content"


@pytest.mark.one_case_in(6)
@pytest.mark.parametrize(
    "attempt",
    [
        "socket.socket()",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socketpair()[0].connect('\\0name')",
        "os.execv('/bin/true', ['true'])",
        "subprocess.run(['/bin/true'])",
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.kill(os.getppid(), 0)",
        "os.kill(-1, 0)",
        "os.killpg(os.getpid(), 0)",
        "os.pidfd_open(os.getppid())",
        "os.setsid()",
        "os.setpgid(0, 0)",
        "os.setuid(os.getuid())",
        "os.sched_setaffinity(os.getppid(), [0])",
        "call(number('ptrace'), 16, os.getppid(), 0, 0)",
        "call(number('process_vm_readv'), os.getppid(), 0, 0, 0, 0, 0)",
        "call(number('process_vm_writev'), os.getppid(), 0, 0, 0, 0, 0)",
        "call(number('prlimit64'), os.getppid(), 7, 0, 0)",
        "call(number('shmget'), 1, 4096, 0o1600)",
        "call(number('unshare'), 0x10000000)",
        "call(number('io_uring_setup'), 1, 0)",
    ],
)
def test_the_worker_reaches_no_other_process(worker: DrawingProcess, attempt: str) -> None:
    def number(match: re.Match[str]) -> str:
        return str(confinement.number_of(match[1]))

    assert outcome(worker, re.sub(r"number\('(\w+)'\)", number, attempt)) == REFUSED
    assert outcome(worker, "pass") == "done"


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize(
    "entry", ["environ", "mem", "maps", "cmdline", "status", "root/etc/passwd"]
)
def test_the_worker_reads_nothing_of_its_parent(worker: DrawingProcess, entry: str) -> None:
    assert outcome(worker, f"open(f'/proc/{{os.getppid()}}/{entry}', 'rb').read(1)") == REFUSED


def test_the_worker_reads_no_file_of_the_machine(worker: DrawingProcess, tmp_path: Path) -> None:
    secret = tmp_path / "airflow.cfg"
    secret.write_text("secret")
    for path in (str(secret), "/etc/passwd", "/proc/self/environ", "/"):
        assert outcome(worker, f"os.open({path!r}, os.O_RDONLY)") == REFUSED


def test_every_refused_call_is_refused_in_every_thread(worker: DrawingProcess) -> None:
    numbers = [number for call in confinement._REFUSED if (number := confinement.number_of(call))]
    attempt = f"""
answers = []
def attempt_all():
    for number in {numbers}:
        try:
            call(number, -1, -1, -1, -1, -1, -1)
            answers.append(0)
        except OSError as error:
            answers.append(error.errno)
thread = threading.Thread(target=attempt_all)
thread.start()
thread.join()
attempt_all()
assert answers == [{errno.EACCES}] * {2 * len(numbers)}, answers
"""
    assert outcome(worker, attempt) == "done"


def test_system_calls_newer_than_the_table_fail_as_unknown(worker: DrawingProcess) -> None:
    newer = [confinement._NEWEST_KNOWN + 1, confinement._NEWEST_KNOWN + 4, 1000]
    for number in (*newer, confinement.number_of("clone3")):
        assert outcome(worker, f"call({number}, 0, 0, 0, 0)") == f"refused {errno.ENOSYS}"


def test_worker_started_by_root_has_no_capabilities(worker: DrawingProcess) -> None:
    outcome(worker, "pass")
    process = worker._process
    assert process is not None
    status = Path(f"/proc/{process.pid}/status").read_text()
    held = dict(
        re.findall(
            r"^(CapPrm|CapEff|CapInh|CapAmb|NoNewPrivs|Seccomp):\s*(\w+)$", status, re.MULTILINE
        )
    )
    assert {int(held[name], 16) for name in held if name.startswith("Cap")} == {0}
    assert (held["NoNewPrivs"], held["Seccomp"]) == ("1", "2")


@pytest.mark.parametrize(
    ("call", "argument", "answer", "reason"),
    [
        ("seccomp", None, errno.EINVAL, "the kernel refused the seccomp filter"),
        ("seccomp", None, errno.ENOSYS, "the kernel refused the seccomp filter"),
        ("seccomp", None, errno.EPERM, "the kernel refused the seccomp filter"),
        ("seccomp", None, 0, "the filter does not block socket"),
        ("capset", None, errno.EPERM, "the capabilities of the process cannot be dropped"),
        ("prctl", 38, errno.EINVAL, "PR_SET_NO_NEW_PRIVS failed"),
    ],
)
def test_failed_seccomp_filter_refuses_every_chart(
    call: str,
    argument: int | None,
    answer: int,
    reason: str,
    hostile_library: Path,
    under_profile: Callable[[list[list[int | None]]], None],
) -> None:
    prctl = {"x86_64": 157, "aarch64": 167}[platform.machine()]
    number = prctl if call == "prctl" else confinement.number_of(call)
    under_profile([[number, argument, answer]])
    process = DrawingProcess(LIMITS)
    with pytest.raises(ChartError, match=f"cannot be sandboxed: {reason}.*leave out the charts"):
        outcome(process, "pass")
    assert process._process is None


@pytest.mark.parametrize("number", [445, 446])
def test_failed_landlock_setup_refuses_every_chart(
    number: int,
    hostile_library: Path,
    under_profile: Callable[[list[list[int | None]]], None],
) -> None:
    if confinement._system(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")
    under_profile([[number, None, errno.EPERM]])
    with pytest.raises(ChartError, match="cannot be sandboxed: Landlock"):
        outcome(DrawingProcess(LIMITS), "pass")


def test_landlock_without_effect_refuses_every_chart(
    hostile_library: Path, under_profile: Callable[[list[list[int | None]]], None]
) -> None:
    if confinement._system(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")
    under_profile([[446, None, 0]])
    with pytest.raises(
        ChartError, match="cannot be sandboxed: Landlock does not block access to files"
    ):
        outcome(DrawingProcess(LIMITS), "pass")


def test_worker_with_threads_refuses_to_be_confined(hostile_library: Path) -> None:
    library = hostile_library / "vl_convert.py"
    started = "\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    library.write_text(HOSTILE_LIBRARY + started)
    with pytest.raises(ChartError, match="the process already has 2 threads"):
        outcome(DrawingProcess(LIMITS), "pass")


def test_unknown_processor_refuses_every_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(confinement.ConfinementError, match="does not support riscv64 with 64 bits"):
        confinement.confine()


@pytest.mark.exhaustive
def test_charts_are_drawn_if_the_kernel_has_no_landlock(
    under_profile: Callable[[list[list[int | None]]], None],
) -> None:
    pytest.importorskip("vl_convert", reason="the extra charts is not installed")
    under_profile(LANDLOCK_CALLS)  # type: ignore[arg-type]
    bars = {"mark": "bar", "encoding": {"x": {"field": "a"}, "y": {"field": "b"}}}
    with ChartRenderer(LIMITS) as renderer:
        found = renderer.render(bars, [{"name": "a"}, {"name": "b"}], [["x", 1]], ["png", "html"])
    assert found["png"].startswith(b"\x89PNG")
    assert b"vegaEmbed" in found["html"]


def test_missing_landlock_draws_unknown_characters_as_boxes_with_a_note(
    under_profile: Callable[[list[list[int | None]]], None],
) -> None:
    pytest.importorskip("vl_convert", reason="the extra charts is not installed")
    under_profile(LANDLOCK_CALLS)  # type: ignore[arg-type]
    bars = {"mark": "bar", "encoding": {"x": {"field": "a"}, "y": {"field": "b"}}}
    with ChartRenderer(LIMITS, FONTS) as renderer:
        found = renderer.render(bars, [{"name": "a"}, {"name": "b"}], [["東京", 1]], ["png"])
    assert found["png"].startswith(b"\x89PNG")
    [note] = found.notes
    assert note.startswith("No font has a glyph for 京東, so ")
    assert "the worker needs Linux 5.13 or newer with Landlock" in note


def test_the_worker_reads_the_copies_of_its_fonts_and_no_folder_that_they_come_from(
    hostile_library: Path, tmp_path: Path
) -> None:
    if confinement._system(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")
    given = tmp_path / "fonts"
    shutil.copytree(FONTS, given)
    (given / "secret.txt").write_text("secret")
    fonts = FontFolder(given)
    process = DrawingProcess(LIMITS, fonts)
    try:
        assert outcome(process, "pass") == "done"
        fonts.add("ไ")
        [copies] = fonts.folders
        assert outcome(process, f"open({copies!r} + '/thai.ttf', 'rb').read()") == "done"
        for path in (given / "thai.ttf", given / "secret.txt", "/usr/share/fonts", "/etc/fonts"):
            assert outcome(process, f"os.open({str(path)!r}, 0)") == REFUSED
        assert outcome(process, f"open({copies!r} + '/new', 'w')") == REFUSED
    finally:
        process.kill()
        fonts.close()


@pytest.mark.parametrize(
    ("machine", "header", "prefix"),
    [
        ("x86_64", "x86_64-linux-gnu/asm/unistd_64.h", "__NR_"),
        ("aarch64", "asm-generic/unistd.h", "__NR(?:3264)?_"),
    ],
)
def test_system_call_numbers_equal_the_kernel_headers(
    machine: str, header: str, prefix: str
) -> None:
    path = Path("/usr/include") / header
    if not path.exists():
        pytest.skip("the kernel's headers are not installed")
    text = path.read_text()
    known = {
        name: int(number) for name, number in re.findall(rf"#define {prefix}(\w+)\s+(\d+)", text)
    }
    column = confinement._MACHINES[machine][0]
    table = {**confinement._REFUSED, **confinement._PARTLY}
    newer = {"fchmodat2", "memfd_secret", "quotactl_fd"}
    assert {name: numbers[column] for name, numbers in table.items() if name not in newer} == {
        name: known.get(name) for name in table if name not in newer
    }
