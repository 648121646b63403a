"""Files that tasks wrote open from their links. No other file of the machine does."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.sandbox.raw_client import Platform

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
CSV = b"country,revenue\nSpain,30.5\n<b>,-3\n"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def opened(
    platform: Platform, path: Path | str, sha256: str | None = None, *, raw: bool = False
) -> httpx.Response:
    """What the link to a file answers; its digest is that of its content by default."""
    if sha256 is None:
        sha256 = digest(Path(path).read_bytes())
    pattern = f"{platform.sandbox.url}/app/file?path={{path}}&sha256={{sha256}}"
    link = pattern.format(path=quote(str(path)), sha256=sha256)
    return platform.http.get(link.replace("/file?", "/file/content?") if raw else link)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", CSV),
        ("rows.csv", CSV.replace(b",", b";")),
        ("rows.csv", b"\xef\xbb\xbf" + CSV),
        ("rows.tsv", CSV.replace(b",", b"\t")),
        ("rows.csv.gz", gzip.compress(CSV, mtime=0)),
        (
            "rows.jsonl",
            b'{"country": "Spain", "revenue": 30.5}\n{"country": "<b>", "revenue": -3}\n',
        ),
    ],
)
def test_file_of_rows_is_a_table(
    platform: Platform, tmp_path: Path, name: str, content: bytes
) -> None:
    shown = opened(platform, written(tmp_path, name, content))
    assert shown.status_code == 200
    for text in ("<th>country</th>", ">Spain</td>", ">30.5</td>", ">&lt;b&gt;</td>", "2 rows"):
        assert text in shown.text


def test_parquet_file_is_a_table_whatever_it_is_called(platform: Platform, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "rows"
    parquet.write_table(pyarrow.table({"id": list(range(1000)), "name": ["x"] * 1000}), path)
    shown = opened(platform, path).text
    assert "<th>id</th><th>name</th>" in shown
    assert '<td class="number">99</td>' in shown
    assert '<td class="number">100</td>' not in shown
    assert "The first 100 rows" in shown


def test_picture_is_shown_and_can_be_downloaded(platform: Platform, tmp_path: Path) -> None:
    path = written(tmp_path, "chart.png", PNG)
    assert "<img src=" in opened(platform, path).text
    raw = opened(platform, path, raw=True)
    assert (raw.content, raw.headers["content-type"]) == (PNG, "image/png")


def test_page_of_html_runs_in_a_frame_without_an_origin(platform: Platform, tmp_path: Path) -> None:
    path = written(tmp_path, "chart.html", b"<script>1</script>")
    shown = opened(platform, path)
    assert 'sandbox="allow-scripts"' in shown.text
    assert "<script" not in shown.text
    policy = opened(platform, path, raw=True).headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "frame-ancestors 'self'" in policy


def test_file_of_an_answer_shows_the_whole_answer(platform: Platform, tmp_path: Path) -> None:
    files = {"query-1.csv": CSV, "query-1.png": PNG}
    described = {name: {"name": name, "sha256": digest(content)} for name, content in files.items()}
    manifest = {
        "question": "revenue by country?",
        "answer": "Spain & more",
        "queries": [
            {
                "title": "Revenue",
                "sql": "SELECT 1",
                "error": None,
                "file": described["query-1.csv"],
                "charts": [described["query-1.png"]],
            }
        ],
    }
    for name, content in files.items():
        written(tmp_path, name, content)
    path = written(tmp_path, "manifest.json", json.dumps(manifest).encode())
    for link in (tmp_path / "query-1.png", path):
        shown = opened(platform, link).text
        for text in ("revenue by country?", "Spain &amp; more", "<img src=", "<th>country</th>"):
            assert text in shown
    written(tmp_path, "query-1.csv", b"id\n1\n")
    shown = opened(platform, path).text
    assert "does not hold what the task wrote" in shown
    assert "<th>id</th>" not in shown


def test_manifest_links_only_to_files_of_its_folder(platform: Platform, tmp_path: Path) -> None:
    folder = tmp_path / "answer"
    folder.mkdir()
    outside = written(tmp_path, "secret.csv", b"secret\n1\n")
    queries = [
        {"file": {"name": name, "sha256": digest(outside.read_bytes())}}
        for name in ("../secret.csv", str(outside))
    ]
    path = written(folder, "manifest.json", json.dumps({"queries": queries}).encode())
    shown = opened(platform, path)
    assert shown.status_code == 200
    assert "<th>secret</th>" not in shown.text


@pytest.mark.parametrize("raw", [False, True], ids=["page", "content"])
def test_file_without_its_digest_is_not_shown(
    platform: Platform, tmp_path: Path, raw: bool
) -> None:
    path = written(tmp_path, "rows.csv", b"secret,1\n")
    for sha256 in ("", "0" * 64, digest(b"secret,2\n")):
        shown = opened(platform, path, sha256, raw=raw)
        assert shown.status_code == 404
        assert "secret," not in shown.text
        assert "does not hold what the task wrote" in shown.text


def test_only_rows_pictures_and_texts_are_shown(platform: Platform, tmp_path: Path) -> None:
    for name in ("passwd", "id_rsa", "settings.py", "rows.csv.exe"):
        path = written(tmp_path, name, b"root:x:0:0\n")
        for raw in (False, True):
            shown = opened(platform, path, raw=raw)
            assert shown.status_code == 404
            assert "root:x" not in shown.text


@pytest.mark.parametrize("path", ["", "rows.csv", "/nowhere/rows.csv", "/dev/zero", "/tmp"])
def test_missing_file_gives_a_not_found_page(platform: Platform, path: str) -> None:
    shown = opened(platform, path, "0" * 64)
    assert shown.status_code == 404
    assert "Not here" in shown.text


def test_pipe_does_not_stop_the_sandbox(platform: Platform, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    assert opened(platform, tmp_path / "rows.csv", "0" * 64).status_code == 404


def test_foreign_page_cannot_read_a_file(platform: Platform, tmp_path: Path) -> None:
    path = written(tmp_path, "rows.csv", CSV)
    link = f"{platform.sandbox.url}/app/file/content?path={path}&sha256={digest(CSV)}"
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        assert platform.http.get(link, headers=headers).status_code == 403
    answer = platform.http.get(link)
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_only_the_beginning_of_a_long_line_is_read(platform: Platform, tmp_path: Path) -> None:
    line = b'{"a": "' + b"x" * (4 << 20) + b'"}\n'
    path = written(tmp_path, "x.jsonl.gz", gzip.compress(line, 1))
    assert "Its rows are not shown" in opened(platform, path).text


@pytest.mark.parametrize("content", [b"", b"a\n", b"\xff\xfe\0\0", b'"', b"PAR1", b"[1]\n", b"1\n"])
@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet", "x.csv.gz", "x.jsonl.zst"])
def test_broken_file_of_rows_has_a_page(
    platform: Platform, tmp_path: Path, name: str, content: bytes
) -> None:
    assert opened(platform, written(tmp_path, name, content)).status_code == 200
