"""A replaced local file keeps its mode, its owner and the links to it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.results.files.atomic import check_place, whole_file, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


class LocalPath:
    """A path object as storages have it."""

    protocol = "file"

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __str__(self) -> str:
        return self.path


def write_half_of(path: Path) -> None:
    with suppress(KeyboardInterrupt), whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_replaced_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("as it was")
    path.chmod(mode)
    write_whole(path, b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


def test_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    write_whole(tmp_path / "rows.csv", b"new")
    assert mode_of(tmp_path / "rows.csv") == 0o644


def test_partial_file_is_private_until_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("as it was")
    path.chmod(0o600)
    with whole_file(path) as file:
        file.write(b"secret")
        [partial] = tmp_path.glob(".rows.csv.*.part")
        assert mode_of(partial) == 0o600


def test_mode_that_changes_during_the_query_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("as it was")
    with whole_file(path) as file:
        file.write(b"new")
        path.chmod(0o640)
    assert mode_of(path) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another user")
def test_replaced_file_keeps_its_owner_and_group(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("as it was")
    os.chown(path, 12345, 23456)
    write_whole(path, b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, path.read_bytes()) == (12345, 23456, b"new")


def test_log_says_that_an_owner_could_not_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("as it was")
    path.chmod(0o640)
    real = os.fstat

    def someone_elses(descriptor: int) -> os.stat_result:
        fields = list(real(descriptor))
        fields[stat.ST_UID] = 4_000_000
        return os.stat_result(fields)

    def refused(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fstat", someone_elses)
    monkeypatch.setattr(os, "fchown", refused)
    write_whole(path, b"new")
    assert "not its owner" in caplog.text
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o640)


@pytest.mark.parametrize("target", ["real/rows.csv", "real/new.csv"])
def test_symbolic_link_is_followed_and_stays(target: str, tmp_path: Path) -> None:
    real, link = tmp_path / target, tmp_path / "links" / "rows.csv"
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "rows.csv").write_text("as it was")
    link.parent.mkdir()
    link.symlink_to(Path("..") / target)
    check_place("output_path", LocalPath(link))
    write_half_of(link)
    assert not (tmp_path / "real" / "new.csv").exists()
    write_whole(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert [one.name for one in link.parent.iterdir()] == ["rows.csv"]
    assert not list((tmp_path / "real").glob(".*"))


def test_links_in_a_circle_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    link, other = tmp_path / "rows.csv", tmp_path / "other.csv"
    link.symlink_to(other)
    other.symlink_to(link)
    with pytest.raises(PlatformInputError, match="points back to itself"):
        check_place("output_path", LocalPath(link))


def test_link_to_a_folder_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "rows.csv"
    link.symlink_to("folder")
    with pytest.raises(PlatformInputError, match="this is a folder"):
        check_place("output_path", LocalPath(link))
