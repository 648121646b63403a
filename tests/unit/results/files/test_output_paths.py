"""Output paths are checked before anything is written there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError, ResultWriteError
from airflow_provider_platform.results.files.atomic import check_place, write_whole


def place(path: Path) -> Any:
    return SimpleNamespace(protocol="file", path=str(path))


def in_storage(error: BaseException, protocol: str = "sftp") -> Any:
    """A path in a storage that fails when it is looked at."""

    class Storage:
        def info(self, path: str) -> None:
            raise error

    return SimpleNamespace(protocol=protocol, path="/lake/rows.csv", fs=Storage())


@pytest.mark.parametrize("length", [99, 101, 250, 255])
def test_file_with_a_long_name_is_written_and_its_remains_are_removed(
    length: int, tmp_path: Path
) -> None:
    path = tmp_path / ("n" * (length - 4) + ".csv")
    check_place("output_path", place(path))

    from airflow_provider_platform.results.files import atomic

    target = atomic._target_of(place(path))
    target.write(b"half")
    target.file.close()
    assert len(list(tmp_path.iterdir())) == 1
    write_whole(place(path), b"rows")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"rows"


@pytest.mark.parametrize("folder", ["", "not/there/yet"])
@pytest.mark.parametrize("name", ["n" * 256, "ä" * 128, "folder" * 50 + "/rows.csv"])
def test_name_that_the_file_system_does_not_take_is_refused(
    name: str, folder: str, tmp_path: Path
) -> None:
    with pytest.raises(PlatformInputError, match=r"Nothing was sent: output_path .*name too long"):
        check_place("output_path", place(tmp_path / folder / name))


def test_path_that_the_file_system_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlatformInputError, match="File name too long"):
        check_place("output_path", place(tmp_path.joinpath(*["folder"] * 800) / "rows.csv"))


@pytest.mark.parametrize("protocol", ["sftp", "s3", "gs", "abfs"])
def test_unreachable_storage_is_a_retryable_error(protocol: str) -> None:
    error = ConnectionRefusedError(111, "Connection refused")
    with pytest.raises(ResultWriteError, match=r"Nothing was sent: .* Connection refused. Check"):
        check_place("output_path", in_storage(error, protocol))


@pytest.mark.parametrize("protocol", ["sftp", "s3", "gs", "abfs"])
@pytest.mark.parametrize(
    "error", [PermissionError("Forbidden"), OSError("Forbidden: lake"), NotImplementedError()]
)
def test_storage_that_refuses_only_the_check_is_not_an_error(
    error: BaseException, protocol: str
) -> None:
    check_place("output_path", in_storage(error, protocol))


def test_folder_that_a_storage_does_not_have_yet_is_not_an_error() -> None:
    check_place("output_path", in_storage(FileNotFoundError("/lake")))
    with pytest.raises(PlatformInputError, match="the bucket 'lake' does not exist"):
        check_place("output_path", in_storage(FileNotFoundError("lake"), "s3"))


def test_full_disk_says_what_to_do() -> None:
    device = Path("/dev/full")
    if not device.exists() or not os.access(device, os.W_OK):
        pytest.skip("there is no /dev/full here")
    from airflow_provider_platform.results.files.atomic import writing

    def write() -> None:
        with writing(device), device.open("wb", buffering=0) as file:
            file.write(b"rows")

    with pytest.raises(ResultWriteError, match=r"No space left on device. Free space"):
        write()
