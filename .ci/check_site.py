"""Checks the documentation that `make docs` has built in `build/docs`, as a reader would.

The first part reads the pages. The second part opens them as files in Chromium, as wide as a
notebook and as narrow as a phone; without Chromium on PATH it is left out, and the last line says
so. Each finding is a line; the exit code is 1 if there is one.
"""

from __future__ import annotations

import re
import shutil
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bs4 import BeautifulSoup
from playwright.sync_api import Error as NotShown
from playwright.sync_api import TimeoutError as TooLate
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

PROJECT = Path(__file__).resolve().parent.parent
SITE = PROJECT / "build" / "docs"
INDEX = "docs/index.html"
PICTURES = PROJECT / "docs" / "pictures"
NOT_PAGES = {"genindex.html", "index.html", "search.html"}
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOTEBOOK, PHONE = 1280, 390
SMALLEST = 0.7
"""The least scale at which a picture is shown: a font of 13 pixels then has 9 pixels."""
SEARCHED = "deferrable"
WITH_CODE = "docs/start.html"
GENERATED = re.compile(r"\bgenerated from\b|\bedited by hand\b")


class Site:
    """The built pages by their paths, and their content."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[str, BeautifulSoup]:
        return {
            name: BeautifulSoup((self.folder / name).read_text(), "html.parser")
            for name in sorted(
                str(file.relative_to(self.folder))
                for file in self.folder.rglob("*.html")
                if "_static" not in file.parts
            )
        }

    @cached_property
    def articles(self) -> dict[str, Any]:
        """The text of each page, without navigation and frame."""
        return {
            name: page.select_one("[role=main]")
            for name, page in self.pages.items()
            if name not in NOT_PAGES
        }

    def target(self, page: str, link: str) -> str:
        """Return the page to which a link leads, relative to the site."""
        path = (self.folder / page).parent / link.split("#")[0]
        resolved = path.resolve() if link.split("#")[0] else self.folder / page
        if resolved.is_relative_to(self.folder):
            return str(resolved.relative_to(self.folder))
        return str(resolved)


def main(folder: Path = SITE) -> int:
    """Print what is wrong with the site. Return 1 if something is wrong."""
    site = Site(folder)
    found = [
        *index_is_missing(site),
        *pages_outside_navigation(site),
        *pages_without_version(site),
        *foreign_resources(site),
        *unused_pictures(site, PICTURES),
        *remarks_before_the_end(site),
    ]
    browser = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if browser:
        found += in_browser(site, browser)
    for finding in found:
        print(f"docs: {finding}", file=sys.stderr)
    looked = "" if browser else ". Chromium is not on PATH, so no page was opened in a browser"
    print(f"{len(site.articles)} pages checked, {len(found)} findings{looked}")
    return 1 if found else 0


def index_is_missing(site: Site) -> Iterator[str]:
    """The folder opens at the first page."""
    index = site.pages.get("index.html")
    if index is None or index.select_one(f'a[href="{INDEX}"]') is None:
        yield f"{site.folder.name}/index.html does not lead to {INDEX}"
    if INDEX not in site.pages:
        yield f"{INDEX} is missing"


def pages_outside_navigation(site: Site) -> Iterator[str]:
    """Each page is in the sidebar of the first page."""
    if INDEX not in site.pages:
        return
    links = site.pages[INDEX].select(".sidebar-tree a[href]")
    listed = {site.target(INDEX, link["href"]) for link in links} | {INDEX}
    for name in site.articles:
        if name not in listed:
            yield f"{name} is not in the navigation"


def pages_without_version(site: Site) -> Iterator[str]:
    """Each page says which version it describes."""
    for name in site.articles:
        line = site.pages[name].select_one(".version-line")
        if line is None or not re.search(r"\d+\.\d+\.\d+.*Airflow 3\.\d", line.get_text()):
            yield f"{name} has no line with the version"


def foreign_resources(site: Site) -> Iterator[str]:
    """Nothing is loaded from elsewhere."""
    for name, page in site.pages.items():
        for element in page.select("script[src], img[src], link[rel=stylesheet][href]"):
            address = element.get("src") or element.get("href")
            if re.match(r"(https?:)?//", address):
                yield f"{name} loads {address}"


def unused_pictures(site: Site, folder: Path) -> Iterator[str]:
    """Each picture of the documentation is shown on a page."""
    shown = {
        Path(image["src"]).name
        for article in site.articles.values()
        for image in article.select("img[src]")
    }
    for picture in sorted(folder.rglob("*.png")):
        if picture.name not in shown:
            yield f"{picture.relative_to(folder.parent)} is on no page"


def remarks_before_the_end(site: Site) -> Iterator[str]:
    """Find pages whose note on how they are generated is not their last sentence."""
    for name, article in site.articles.items():
        texts = [part.get_text(" ", strip=True) for part in article.select("p")]
        for text in texts[:-1]:
            if GENERATED.search(text):
                yield f"{name} says that it is generated before its last sentence: {text!r}"
        made = "/reference/" in name or name == "docs/operations.html"
        if made and not (texts and GENERATED.search(texts[-1])):
            yield f"{name} does not end with the sentence that says how it is generated"


def in_browser(site: Site, browser: str) -> list[str]:
    """What is wrong with the pages as Chromium shows them."""
    found = []
    with sync_playwright() as driver:
        launched = driver.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--no-proxy-server"]
        )
        page = launched.new_page(
            viewport={"width": NOTEBOOK, "height": 800},
            permissions=["clipboard-read", "clipboard-write"],
        )
        page.set_default_timeout(60_000)
        for name in site.articles:
            page.goto((site.folder / name).as_uri())
            found += [f"{name}: {finding}" for finding in as_shown(page)]
        page.set_viewport_size({"width": NOTEBOOK, "height": 800})
        found += opened_folder(page, site)
        found += search_without_excerpts(page, site)
        found += button_that_does_not_copy(page, site)
        launched.close()
    return found


WIDE = """() => [...document.querySelectorAll('article *')].filter(element => {
  const scrolls = element.closest('.table-wrapper, pre, .highlight');
  return !scrolls && element.getBoundingClientRect().right > innerWidth + 1;
}).map(element => element.tagName.toLowerCase() + ' ' + element.textContent.trim().slice(0, 40))"""
PICTURE_WIDTHS = """() => [...document.querySelectorAll('article img')].map(
  image => [image.getAttribute('src').split('/').pop(), image.clientWidth, image.naturalWidth])"""
NARROW_COLUMNS = """() => [...document.querySelectorAll('article .table-wrapper table')].filter(
  table => [...table.querySelectorAll('td, th')].some(cell => {
    const words = cell.textContent.trim();
    return words.length > 12 && cell.clientWidth < 60;
  })).map(table => table.textContent.trim().slice(0, 40).replace(/\\s+/g, ' '))"""
BUTTONS = """() => [document.querySelectorAll('article div.highlight pre').length,
  document.querySelectorAll('article .copy-button').length]"""


def as_shown(page: Page) -> Iterator[str]:
    """What is wrong with the page that is open, on a notebook and on a phone."""
    page.set_viewport_size({"width": NOTEBOOK, "height": 800})
    code, buttons = page.evaluate(BUTTONS)
    if code != buttons:
        yield f"{code} pieces of code have {buttons} copy buttons"
    for picture, shown, width in page.evaluate(PICTURE_WIDTHS):
        if not width:
            yield f"the picture {picture} is missing"
        elif shown < SMALLEST * width and not in_table(page, picture):
            yield f"the picture {picture} is {width} wide but shown {shown} wide, too small to read"
    page.set_viewport_size({"width": PHONE, "height": 800})
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > PHONE:
        yield f"must be scrolled sideways on a phone, to {width}"
    for element in page.evaluate(WIDE)[:3]:
        yield f"is cut on a phone: {element}"
    for table in page.evaluate(NARROW_COLUMNS):
        yield f"has too narrow a column on a phone: {table}"


def in_table(page: Page, picture: str) -> bool:
    """Whether a picture is one of a contact sheet: small, side by side with others."""
    return page.locator(f"article table img[src$='{picture}']").count() > 0


def opened_folder(page: Page, site: Site) -> Iterator[str]:
    """The folder's index opens the first page."""
    try:
        page.goto((site.folder / "index.html").as_uri())
        # The whole address: the folder's own path may end in the same words.
        page.wait_for_url((site.folder / INDEX).as_uri(), timeout=30_000)
    except NotShown as error:
        yield f"index.html does not open {INDEX}: {error.message}"


def search_without_excerpts(page: Page, site: Site) -> Iterator[str]:
    """A search that is opened as a file finds pages and shows the text around the hits."""
    page.goto(f"{(site.folder / 'search.html').as_uri()}?q={SEARCHED}")
    try:
        page.locator("#search-results p.context").first.wait_for(timeout=60_000)
    except TooLate:
        yield f"a search for {SEARCHED} shows no excerpts"
        return
    texts = page.locator("#search-results p.context").all_inner_texts()
    if not any(SEARCHED in text.lower() for text in texts):
        yield f"no excerpt of a search has the word {SEARCHED}"


def button_that_does_not_copy(page: Page, site: Site) -> Iterator[str]:
    """A click on a copy button puts the code into the clipboard."""
    page.goto((site.folder / WITH_CODE).as_uri())
    code = page.locator("article div.highlight").first
    code.hover()
    button = code.locator(".copy-button")
    if not button.count():
        yield f"the first code block of {WITH_CODE} has no copy button"
        return
    button.click()
    try:
        button.get_by_text("Copied").wait_for(timeout=20_000)
    except TooLate:
        yield f"the first copy button of {WITH_CODE} says {button.inner_text()!r}"
        return
    copied = page.evaluate("navigator.clipboard.readText()")
    if copied.strip() != code.locator("pre").inner_text().strip():
        yield f"the first copy button of {WITH_CODE} copies {copied!r}"


if __name__ == "__main__":
    sys.exit(main())
