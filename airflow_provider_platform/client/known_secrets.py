"""Hides known secrets in texts, also if they are shortened or encoded.

`operations.secret_names` recognises secrets by the names of the fields in which the service sends
them, and `http.api_errors` recognises secrets in the service's messages.

The rule: every run of `SHORTEST_SECRET` or more consecutive characters of a secret is hidden, in
every form in which a service may write it. A service shortens a secret in the middle
(`sk-live_9f8A…xyz12345`), wraps it, or encodes it: as JSON, in a URL (once or twice), as
hexadecimal, HTML or base64. Because the rule is about runs, each way to shorten a secret needs no
rule of its own. In a JWT, the rule applies to the signature. All tokens of a service begin with
similar characters, so the other parts are hidden only in a long run.

How a run is found. Eight consecutive bytes always contain four bytes that begin at a multiple of
four. So the text is read as 32-bit words, and each word is looked up, in C, in the set of words of
all forms. Some words of the forms (`\\u00`, `;&#x`) are common in ordinary texts, so more bytes
must match: eight bytes that contain a word have two more bytes before or after it. If these six
bytes are in a form too, the match is extended to both sides. It counts if it is long enough.
"""

from __future__ import annotations

import base64
import html
import json
import re
import string
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, compress, count
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, quote_plus

HIDDEN = "***"
CUT = "…"
"""Replaces the part that was cut from a text of the service."""
SHORTEST_SECRET = 8
"""The least number of consecutive characters of a secret that is hidden everywhere. A shorter
secret, of at least `SHORTEST_WORD` characters, is hidden as a whole word only, because it could be
a part of ordinary words."""
SHORTEST_WORD = 5
LONG_RUN = 40
"""The least number of consecutive characters of a JWT's payload that is hidden: two tokens of a
service share shorter parts."""
FULLY_ENCODED = 50
"""How many of the secrets that one client learns from responses are hidden in every form. Later
secrets are hidden only as they are and URL-encoded, so that a list of a thousand tokens stays
cheap."""

_WORD = 4
_MORE = 2
"""The number of bytes before or after a word that must match too."""
_PIECE = _WORD + _MORE
_SAME_PIECES = 16
"""How many positions of a piece one form stores. If a form repeats a piece, further positions find
no other runs."""
_BASE64 = frozenset((string.ascii_letters + string.digits + "+/-_=").encode())
_PADDING = ord("=")
_TOKEN = frozenset((string.ascii_letters + string.digits + "-_.").encode())
_JWT = re.compile(r"eyJ[\w-]+\.[\w-]{8,}\.[\w-]{8,}", re.ASCII)

T = TypeVar("T")
Encode = Callable[[str], str]


def printable(text: str) -> str:
    """Return the text as one line: control characters (line ends, escape codes) are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _in_hex(character: str) -> str:
    return _bytes(character).hex()


def _escaped(pattern: str, *, every: bool = False) -> Encode:
    """Return an encoding that writes characters by their code point: all characters, or all except
    ASCII letters and digits."""

    def encode(character: str) -> str:
        plain = character.isascii() and character.isalnum() and not every
        return character if plain else pattern.format(ord(character))

    return encode


def _escaped_only(characters: str, pattern: str) -> Encode:
    """Return an encoding that writes these characters by their code point, and the others as
    JSON."""
    return lambda character: (
        pattern.format(ord(character)) if character in characters else _in_json(character)
    )


def _in_markup(character: str) -> str:
    """HTML as template engines write it: `/`, `=` and "`" by their code point too."""
    return f"&#x{ord(character):X};" if character in "/=`" else _in_html(character)


def _in_html(character: str) -> str:
    return "&#39;" if character == "'" else html.escape(character)


def _in_json(character: str) -> str:
    return json.dumps(character)[1:-1]


def _in_address(character: str) -> str:
    return quote(character, safe="", errors="surrogatepass")


def _lower_escapes(encode: Encode) -> Encode:
    """Return a URL encoding whose escapes have lower-case letters."""

    def lower(character: str) -> str:
        escaped = encode(character)
        return escaped if escaped == character else escaped.lower()

    return lower


def _after(first: Encode, then: Encode) -> Encode:
    return lambda character: "".join(map(then, first(character)))


def _replacing(old: str, new: str) -> Encode:
    return lambda character: new if character == old else character


ENCODINGS: tuple[Encode, ...] = (
    _in_json,
    lambda character: json.dumps(character, ensure_ascii=False)[1:-1],
    _after(_in_json, _in_json),
    _replacing("/", "\\/"),
    _replacing("'", "\\'"),
    _in_address,
    _lower_escapes(_in_address),
    lambda character: quote(character, errors="surrogatepass"),
    lambda character: quote(character, safe="!'()*", errors="surrogatepass"),
    lambda character: quote_plus(character, errors="surrogatepass"),
    _after(_in_json, _in_address),
    _after(_in_address, _in_address),
    _lower_escapes(_after(_in_address, _in_address)),
    _in_hex,
    lambda character: _in_hex(character).upper(),
    html.escape,
    _in_html,
    _in_markup,
    lambda character: "&apos;" if character == "'" else html.escape(character),
    _after(_escaped("&#{};"), html.escape),
    _escaped("%{:02X}", every=True),
    _escaped("%{:02x}", every=True),
    _escaped("\\x{:02x}", every=True),
    *(
        _escaped_only(characters, pattern)
        for characters in ("<>&", "<>&'=", "<>&'\"+`")
        for pattern in ("\\u{:04x}", "\\u{:04X}")
    ),
    *(
        _escaped(pattern, every=every)
        for pattern in ("\\u{:04x}", "\\u{:04X}", "&#{};", "&#x{:x};", "&#x{:X};")
        for every in (False, True)
    ),
    printable,
)
"""For each form that encodes character by character: the function that encodes one character."""


class Form(NamedTuple):
    """One way in which a text may contain a secret, as bytes.

    A unit is the encoding of one character. `starts` says where each unit begins, and where the
    last unit ends. A run has at least `least` units. If a byte next to a run is in `around`, it is
    hidden with the run.
    """

    data: bytes
    starts: tuple[int, ...]
    least: int = SHORTEST_SECRET
    around: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        units: Iterable[str],
        *,
        least: int = SHORTEST_SECRET,
        around: frozenset[int] = frozenset(),
    ) -> Form:
        """Return the form that consists of these units."""
        coded = [_bytes(unit) for unit in units]
        return cls(b"".join(coded), (0, *accumulate(map(len, coded))), least, around)

    def words(self) -> Iterator[int]:
        """Return the offsets of the words by which every run can be found. They come in blocks of
        four consecutive offsets, because a word of the text may begin at any of them. The blocks
        are so close that the shortest run contains a whole block."""
        for block in range(0, len(self.data), self._stride()):
            yield from range(block, min(block + _WORD, len(self.data) - _WORD + 1))

    def pieces(self) -> Iterator[int]:
        """Return the offsets of the pieces that begin or end with one of these words."""
        last = len(self.data) - _PIECE
        positions = {piece for word in self.words() for piece in (word, word - _MORE)}
        return iter(sorted(piece for piece in positions if 0 <= piece <= last))

    def _stride(self) -> int:
        pairs = zip(self.starts, self.starts[self.least :], strict=False)
        shortest = min((end - start for start, end in pairs), default=0)
        return max(_WORD, shortest - 2 * (_WORD - 1))

    def run(self, data: bytes, at: int, offset: int) -> tuple[int, int] | None:
        """Return the longest run of whole units around a word, as a range of `data`; None if it is
        too short. `data` has the word at `at`, this form has it at `offset`."""
        form = self.data
        left = right = 0
        while at > left and offset > left and data[at - left - 1] == form[offset - left - 1]:
            left += 1
        most = min(len(data) - at, len(form) - offset)
        while right < most and data[at + right] == form[offset + right]:
            right += 1
        first = bisect_left(self.starts, offset - left)
        last = bisect_right(self.starts, offset + right) - 1
        if last - first < self.least:
            return None
        start, end = at - offset + self.starts[first], at - offset + self.starts[last]
        while start and data[start - 1] in self.around and data[start - 1] != _PADDING:
            start -= 1
        while end < len(data) and data[end] in self.around:
            end += 1
        return start, end


def forms(secret: str) -> list[str]:
    """Return the secret in every form in which a text may contain it, except base64."""
    return list({_decoded(form.data): None for form in all_forms(secret) if not form.around})


def base64_forms(secret: str) -> list[str]:
    """Return the base64 characters of the secret inside a longer text. Base64 encodes groups of
    three bytes, and a secret can begin at any of the three bytes. For each case, these are the
    characters that depend only on the secret."""
    return list(dict.fromkeys(form for text in _written(secret) for form in _in_base64(text)))


def maskable(secrets: Iterable[str]) -> list[str]:
    """Return the secrets in the forms that a log most likely shows: as they are, in JSON,
    URL-encoded, in base64. Airflow's mask compares whole texts, and each text costs time."""
    texts: dict[str, None] = {}
    for secret in secrets:
        texts[secret] = None
        if len(secret) < SHORTEST_SECRET:
            continue
        shown = (secret.strip(), _in_json_text(secret), quote(secret), quote(secret, safe=""))
        texts.update(dict.fromkeys((*shown, quote_plus(secret), *base64_forms(secret))))
    return list(texts)


def _in_json_text(text: str) -> str:
    return json.dumps(text)[1:-1]


@lru_cache(maxsize=256)
def plain_forms(secret: str) -> tuple[Form, ...]:
    """Return the secret as it is and URL-encoded."""
    encodings: tuple[Encode, ...] = (str, _in_address)
    parts = _parts(secret)
    return tuple(dict.fromkeys(part.form(encode) for part in parts for encode in encodings))


@lru_cache(maxsize=256)
def all_forms(secret: str) -> tuple[Form, ...]:
    """Return the secret in every form."""
    forms: dict[Form, None] = {}
    for part in _parts(secret):
        encodings: tuple[Encode, ...] = (str, *ENCODINGS)
        forms.update(dict.fromkeys(part.form(encode) for encode in encodings))
        forms.update(
            (Form.of(text, least=part.least, around=_BASE64), None)
            for written in _written(part.text)
            for text in _in_base64(written)
        )
    return tuple(forms)


class _Part(NamedTuple):
    """A part of a secret. Each run of at least `least` of its characters is hidden."""

    text: str
    least: int = SHORTEST_SECRET
    around: frozenset[int] = frozenset()

    def form(self, encode: Encode) -> Form:
        return Form.of(map(encode, self.text), least=self.least, around=self.around)


def _parts(secret: str) -> tuple[_Part, ...]:
    """Return the parts of a secret that are hidden: the secret itself; for a JWT its signature, and
    its payload with the signature."""
    if not _JWT.fullmatch(secret):
        return (_Part(secret),)
    _, payload, signature = secret.split(".")
    return (
        _Part(signature, around=_TOKEN),
        _Part(f"{payload}.{signature}", LONG_RUN, _TOKEN),
    )


def _written(secret: str) -> list[str]:
    """Return the secret as a request or response body contains it: as it is, and in JSON."""
    in_json = (_in_json_text(secret), json.dumps(secret, ensure_ascii=False)[1:-1])
    return list(dict.fromkeys((secret, *in_json)))


def _in_base64(text: str) -> Iterator[str]:
    plain = _bytes(text)
    for shift in range(3):
        first, end = (8 * shift + 5) // 6, 8 * (shift + len(plain)) // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * shift + plain).decode()[first:end]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


class Redactor:
    """Replaces every run of its own secrets, and of the secrets of `base`, with `***`.

    With `share`, a run must also be that fraction of its secret, because all keys of a service
    begin with similar characters.
    """

    def __init__(
        self, secrets: Iterable[str] = (), *, base: Redactor | None = None, share: float = 0.0
    ) -> None:
        self._base = base
        self._share = share
        self._forms: list[Form] = []
        self._words: set[int] = set()
        """All words of the forms."""
        self._places: dict[bytes, list[tuple[int, int]]] = {}
        """The positions of each piece of `_PIECE` bytes: the number of the form, and the offset in
        it."""
        self._short: set[str] = set()
        for secret in dict.fromkeys(secrets):
            self.add(secret)

    def add(self, secret: str, *, encoded: bool = True) -> None:
        """Hide this secret too; with `encoded`, in every form."""
        if len(secret.strip()) < SHORTEST_SECRET:
            if len(secret) >= SHORTEST_WORD:
                self._short.add(secret)
            return
        for form in all_forms(secret) if encoded else plain_forms(secret):
            if self._share:
                least = int(self._share * (len(form.starts) - 1))
                form = form._replace(least=max(form.least, least))  # noqa: PLW2901
            number = len(self._forms)
            self._forms.append(form)
            data = form.data
            for offset in form.words():
                self._words.add(int.from_bytes(data[offset : offset + _WORD], sys.byteorder))
            for offset in form.pieces():
                places = self._places.setdefault(data[offset : offset + _PIECE], [])
                if sum(known == number for known, _ in places[-_SAME_PIECES:]) < _SAME_PIECES:
                    places.append((number, offset))

    def text(self, text: str) -> str:
        """Return the text without the secrets. If it contains none, return it unchanged."""
        if len(text) >= SHORTEST_SECRET:
            data = _bytes(text)
            if ranges := self.ranges(data):
                text = _without(data, ranges)
        for word in self.short_secrets:
            if word in text:
                text = _without_word(text, word)
        return text

    def value(self, value: T) -> T:
        """Return a JSON value with every text redacted. If it contains no secret, return the same
        object."""
        if not isinstance(value, str) and not self._may_hold(value):
            return value
        redacted: Any = self._value(value)
        return value if redacted is None else redacted

    def finds(self, text: str) -> bool:
        """Return whether the text contains a secret."""
        return self.text(text) != text

    def error(self, error: BaseException) -> None:
        """Remove the secrets from an error and its causes, in place. A cause that cannot be changed
        and still shows a secret is unlinked."""
        seen: set[int] = set()
        pending = [error]
        while pending:
            current = pending.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            self._in_place(current)
            for link in ("__cause__", "__context__"):
                other = getattr(current, link)
                if other is None:
                    continue
                self._in_place(other)
                if self.finds(str(other)) or self.finds(repr(other)):
                    suppress = current.__suppress_context__
                    setattr(current, link, None)
                    current.__suppress_context__ = suppress
                else:
                    pending.append(other)

    def _in_place(self, error: BaseException) -> None:
        for name, value in list(vars(error).items()):
            if (clean := self._value(value)) is not None:
                vars(error)[name] = clean
        if (args := self._value(error.args)) is not None:
            error.args = args

    def _value(self, value: Any) -> Any:
        """Return the redacted value; None if nothing was hidden."""
        if isinstance(value, str):
            clean = self.text(value)
            return None if clean == value else clean
        if type(value) in (list, tuple):
            items = [self._value(item) for item in value]
            if all(item is None for item in items):
                return None
            pairs = zip(items, value, strict=True)
            return type(value)(old if new is None else new for new, old in pairs)
        if type(value) is dict:
            return self._object(value)
        return None

    def _object(self, value: dict[Any, Any]) -> dict[Any, Any] | None:
        """Return a redacted object, with its names redacted too; None if nothing was hidden."""
        changed = {
            name: clean for name, item in value.items() if (clean := self._value(item)) is not None
        }
        names = {name: clean for name in value if (clean := self._value(name)) is not None}
        if not names:
            return {**value, **changed} if changed else None
        return {names.get(name, name): changed.get(name, item) for name, item in value.items()}

    def _may_hold(self, value: Any) -> bool:
        """Return whether any text in the value may contain a secret. Checks all texts at once."""
        texts: list[str] = []
        pending = [value]
        while pending:
            current = pending.pop()
            if type(current) is dict:
                texts.extend(name for name in current if type(name) is str)
                current = list(current.values())
            if type(current) in (list, tuple):
                texts.extend([item for item in current if type(item) is str])
                pending.extend([item for item in current if type(item) in (list, tuple, dict)])
        together = "\n".join(texts)
        return bool(self.ranges(_bytes(together), most=1)) or any(
            word in together for word in self.short_secrets
        )

    @property
    def short_secrets(self) -> set[str]:
        """The secrets that are hidden as whole words only."""
        return self._short | self._base.short_secrets if self._base else self._short

    def ranges(self, data: bytes, *, most: int | None = None) -> list[tuple[int, int]]:
        """Return the sorted ranges of the bytes that contain a secret, at most `most` from each
        redactor."""
        inherited = self._base.ranges(data, most=most) if self._base is not None else []
        words = memoryview(data)[: len(data) // _WORD * _WORD].cast("I")
        if self._words.isdisjoint(words):
            return inherited
        own: list[tuple[int, int]] = []
        done = 0
        for position in compress(count(), map(self._words.__contains__, words)):
            at = position * _WORD
            run = self._longest_run(data, at) if at >= done else None
            if run is not None:
                own.append(run)
                done = run[1]
                if len(own) == most:
                    break
        return sorted([*inherited, *own])

    def _longest_run(self, data: bytes, word: int) -> tuple[int, int] | None:
        """Return the longest run of any form around the word at this offset of `data`."""
        longest = (0, 0)
        for at in (word, word - _MORE):
            for number, offset in self._places.get(data[at : at + _PIECE], ()):
                run = self._forms[number].run(data, at, offset)
                if run is not None:
                    longest = max(longest, run, key=lambda span: span[1] - span[0])
        return longest if longest[1] else None


def _without(data: bytes, ranges: list[tuple[int, int]]) -> str:
    """Return the text of these bytes, with `***` in place of each range."""
    parts: list[bytes] = []
    done = 0
    for start, end in ranges:
        if start > done or not parts:
            parts += [data[done:start], HIDDEN.encode()]
        done = max(done, end)
    return _decoded(b"".join([*parts, data[done:]]))


def _without_word(text: str, word: str) -> str:
    """Return the text with `***` in place of the word, if no letter, digit or `_` is next to it."""
    parts = text.split(word)
    kept = [parts[0]]
    for part in parts[1:]:
        before, after = kept[-1][-1:], part[:1]
        inside = any(character.isalnum() or character == "_" for character in (before, after))
        kept += [word if inside else HIDDEN, part]
    return "".join(kept)


@lru_cache(maxsize=16)
def redactor(secrets: tuple[str, ...]) -> Redactor:
    """Return the Redactor of these secrets. All clients of one connection share it."""
    return Redactor(secrets)


class KnownSecrets:
    """The secrets that one client has sent or received. It keeps them as long as it exists."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        own = tuple(dict.fromkeys(secret for secret in secrets if secret))
        self._known = dict.fromkeys(own)
        self._redactor = Redactor(base=redactor(own))
        self._learned = 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def learn(self, secrets: Iterable[str]) -> list[str]:
        """Hide these secrets from now on. Return the new ones."""
        new = [secret for secret in dict.fromkeys(secrets) if secret and secret not in self._known]
        for secret in new:
            self._known[secret] = None
            self._redactor.add(secret, encoded=self._learned < FULLY_ENCODED)
            self._learned += 1
        return new

    def redact(self, value: T) -> T:
        """Return JSON, or a text, without secrets, so that it can be shown or stored."""
        return self._redactor.value(value)

    def hide_in(self, error: BaseException) -> None:
        """Remove the secrets from an error, in place."""
        self._redactor.error(error)
