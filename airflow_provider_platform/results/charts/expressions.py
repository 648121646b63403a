"""Which expressions a chart may hold: those that compute, and reach nothing but data.

Vega runs expressions as JavaScript. Its own parser keeps out statements and calls of methods, but
not `datum.constructor`, and some of its functions call what they are given: `vlSelectionTest` with
a made-up store runs the author's getters. So every expression is parsed here, in the grammar of
vega-expression or a narrower one, and must consist of

- functions of the list below,
- members with names that lead to data: written out, or numbers, and none that every object of
  JavaScript has (`constructor`, `__proto__`),
- literals, signals, `datum` and the usual operators.

Expressions are read from the compiled specification (Vega, not Vega-Lite), where all are in a few
known properties, also those that Vega-Lite puts together of names and formats. What Vega-Lite
itself makes for selections is allowed in the very form that it has.

This file is loaded by the worker as a script's neighbour: it imports the standard library alone.
Sources: vega.github.io/vega/docs/expressions, the grammar of vega-expression, and the compiled
forms of Vega-Lite 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_DEEPEST = 64
_LONGEST = 200_000
_MOST_IN_A_ROW = 32


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NUMERIC_FUNCTIONS = _words("""
    abs acos asin atan atan2 ceil cos exp floor hypot log pow random round sin sqrt tan
    sampleNormal cumulativeNormal densityNormal quantileNormal sampleLogNormal cumulativeLogNormal
    densityLogNormal quantileLogNormal sampleUniform cumulativeUniform densityUniform
    quantileUniform now date day dayofyear year quarter month week hours minutes seconds
    milliseconds time timezoneoffset utc utcdate utcday utcdayofyear utcyear utcquarter utcmonth
    utcweek utchours utcminutes utcseconds utcmilliseconds indexof lastindexof parseInt parseFloat
    toNumber bandspace luminance contrast
""")
"""Functions whose result is a number: also the only ones in `list[…]`."""

FUNCTIONS = NUMERIC_FUNCTIONS | _words("""
    isNaN isArray isBoolean isDate isDefined isNumber isObject isRegExp isString isValid isFinite
    isTuple clamp max min length span bandwidth
    toBoolean toDate toString datetime dayAbbrevFormat dayFormat monthFormat monthAbbrevFormat
    timeUnitSpecifier timeOffset utcOffset timeSequence utcSequence
    extent clampRange inrange join peek reverse sequence slice sort pluck lerp if test regexp
    lower upper pad replace split substring trim truncate btoa atob
    format formatLocale timeFormat timeParse utcFormat utcParse
    rgb hsl lab hcl gradient scale invert domain range
    panLinear panLog panPow panSymlog zoomLinear zoomLog zoomPow zoomSymlog
    geoArea geoBounds geoCentroid geoScale containerSize x y xy pinchDistance pinchAngle
    inScope data indata item group modify vlSelectionTest vlSelectionIdTest vlSelectionResolve
    vlSelectionTuples
""")
"""The functions of Vega that an expression may call, some with certain arguments only."""

_NAMED = {"scale": 2, "invert": 2, "domain": 1, "range": 1, "bandwidth": 1, "geoScale": 1,
          "data": 1, "indata": 3, "gradient": 4}  # fmt: skip
"""Functions that look something up by its name, which must be written out, and how many arguments
they may have: one more would be the group to look in."""

INHERITED = _words("""
    constructor prototype __proto__ __defineGetter__ __defineSetter__ __lookupGetter__
    __lookupSetter__ hasOwnProperty isPrototypeOf propertyIsEnumerable toString toLocaleString
    valueOf toJSON
""")
"""What every object of JavaScript has: the name of no member, key, property or parameter."""

_OUTSIDE = _words("window self globalThis document eval Function arguments require process Deno")

_EVENT_READ: set[tuple[str | None, ...]] = {
    ("item", "mark", "name"),
    *(
        (name,)
        for name in _words("""
        shiftKey ctrlKey altKey metaKey key button buttons deltaX deltaY deltaMode clientX clientY
        type
    """)
    ),
}
_SELECTIONS_READ: dict[str, set[tuple[str | None, ...]]] = {
    "item": {
        ("mark", "marktype"),
        ("mark", "role"),
        ("isVoronoi",),
        ("items", None, "items", None, "datum"),
    },
    "group": {("datum",)},
}
_UNIT = "isTuple(group()) ? group() : unit"
"""How Vega-Lite keeps the view under the pointer, in its own signal `unit`."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<string>"(?:[^"\\\n\r\u2028\u2029]|\\[^\n\r\u2028\u2029])*"
               |'(?:[^'\\\n\r\u2028\u2029]|\\[^\n\r\u2028\u2029])*')
    |(?P<name>[^\W\d][\w$]*|\$[\w$]*)
    |(?P<sign>>>>|===|!==|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~&|^?:,.()\[\]{}])""",
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?![*/])(?:[^\\/\[\n\r]|\\[^\n\r]|\[(?:[^\]\\\n\r]|\\[^\n\r])*\])+/[gimuy]*")
_KEYWORDS = _words("""
    break case catch class const continue debugger default delete do else enum export extends
    finally for function in instanceof new return super switch this throw try typeof var void
    while with yield let static await async of
""")
_BINARY = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "===": 6, "!==": 6,
    "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8, ">>>": 8, "+": 9, "-": 9,
    "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_ARITHMETIC = frozenset({"-", "*", "/", "%", "|", "^", "&", "<<", ">>", ">>>"})


class ExpressionError(Exception):
    """An expression that a chart may not hold; the message is which one and why."""


@dataclass(frozen=True)
class Node:
    """A part of an expression.

    `parts` are the operands, the arguments, the items of a list, the values of an object, or the
    object of a member and its computed key.
    """

    kind: str
    """literal, regex, name, member, call, list, object, unary, binary, conditional."""
    value: Any = None
    """The literal, the name, the member's name, the function's, the operator's."""
    parts: tuple[Node, ...] = ()


def check_expression(text: str) -> None:
    """Raise ExpressionError for an expression that may do more than compute with data."""
    try:
        if len(text) > _LONGEST:
            raise ExpressionError(f"is longer than {_LONGEST:,} characters")
        _check(_Parser(text).expression())
    except ExpressionError as error:
        shown = text if len(text) <= 120 else f"{text[:120]}…"
        raise ExpressionError(f"the expression {shown!r} {error}") from None


def check_specification(vega: Mapping[str, Any]) -> None:
    """Check every expression of a compiled specification. Raises ExpressionError."""
    for text in expressions_of(vega):
        check_expression(text)


def members_of(text: str, name: str) -> list[list[str]]:
    """The members of a name that an expression reads: `datum.a.b` is `["a", "b"]`, and what follows
    a computed key is left out. Raises ExpressionError."""
    members: list[list[str]] = []
    nodes = [_Parser(text).expression()] if len(text) <= _LONGEST else []
    while nodes:
        node = nodes.pop()
        if node.kind == "member":
            path, keys, root = _path(node)
            if root.kind == "name" and root.value == name:
                written = path[: path.index(None)] if None in path else path
                if written:
                    members.append([str(part) for part in written])
                nodes += keys
                continue
        nodes += reversed(node.parts)
    return members


_NO_ITEM = Node("unary", "!", (Node("member", "item", (Node("name", "event"),)),))
"""`!event.item`, by which Vega-Lite asks whether the pointer is over nothing."""

_EXPRESSIONS = _words("signal expr update init test filter trigger insert remove toggle modify")
_SELECTOR = re.compile(r"[\w\s:@*>,.#!-]*")


def expressions_of(value: Any, key: str = "", signal: str = "") -> Iterator[str]:
    """The expressions of a compiled specification, below the property `key` or the signal.

    Rows of data hold none. Raises ExpressionError for a property or a signal with a name that
    objects inherit, and for an event selector in the short form with a filter inside, which
    Vega-Lite writes out when it compiles.
    """
    if isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                if key in _EXPRESSIONS:
                    yield item
                continue
            within = item
            if isinstance(item, Mapping):
                if key == "data" and isinstance(item.get("values"), list):
                    within = {name: part for name, part in item.items() if name != "values"}
                if key == "signals":
                    signal = str(item.get("name"))
                    if signal in INHERITED:
                        raise ExpressionError(f"a parameter may not be called {signal!r}")
            yield from expressions_of(within, key, signal)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name in INHERITED:
                raise ExpressionError(f"a property may not be called {name!r}")
            if not isinstance(item, str):
                yield from expressions_of(item, name, signal)
            elif name in _EXPRESSIONS or (name == "values" and "trigger" in value):
                if not (item == _UNIT and signal == "unit"):
                    yield item
            elif name == "events" and _SELECTOR.fullmatch(item) is None:
                raise ExpressionError(
                    f"the event selector {item[:120]!r} contains an expression, which is not "
                    "allowed"
                )


# What is allowed


def _check(node: Node) -> None:
    if node.kind == "name":
        if node.value in _OUTSIDE or node.value in ("event", "item", "group", "unit"):
            raise ExpressionError(f"uses {node.value!r}, which gives access to more than the data")
    elif node.kind == "member":
        _check_member(node)
    elif node.kind == "call":
        _check_call(node)
    elif node != _NO_ITEM:
        for part in node.parts:
            _check(part)


def _check_member(node: Node) -> None:
    path, all_keys, root = _path(node)
    if root.kind == "name" and root.value == "event":
        if path not in _EVENT_READ:
            raise ExpressionError(
                "reads a property of the event that is not allowed (allowed are, for example, "
                "type, key, button and clientX)"
            )
        return
    if root.kind == "call" and root.value in _SELECTIONS_READ:
        # `group("cell").datum` is data: what follows it is read like other data.
        allowed = _SELECTIONS_READ[root.value]
        if not any(path[: len(known)] == known for known in allowed):
            raise ExpressionError(f"reads a property of {root.value}() that is not allowed")
        if any(part.kind != "literal" for part in (*root.parts, *all_keys)):
            raise ExpressionError(f"calls {root.value!r} with arguments")
        return
    owner, *keys = node.parts
    for key in keys:
        if not _is_number(key):
            raise ExpressionError(
                "reads a property by a calculated name, as in a[b]; write the name, or use a number"
            )
        _check(key)
    if owner.kind == "list":
        if not keys:
            raise ExpressionError(
                "reads a property of a list; only the items of a list can be read"
            )
    elif owner.kind not in ("name", "member", "call", "conditional"):
        raise ExpressionError("reads a member of a value that has none, for example of a number")
    _check(owner)


def _path(node: Node) -> tuple[tuple[str | None, ...], list[Node], Node]:
    """The names of the members from the first one on (None: computed), the computed keys, and what
    they are members of."""
    names: list[str | None] = []
    keys: list[Node] = []
    while node.kind == "member":
        names.append(node.value)
        keys += node.parts[1:]
        node = node.parts[0]
    return tuple(reversed(names)), keys, node


def _check_call(node: Node) -> None:
    name, arguments = node.value, node.parts
    if name not in FUNCTIONS:
        raise ExpressionError(f"calls {name!r}, which is not an allowed function")
    node_kinds = [part.kind for part in arguments]
    match name:
        case "item" | "group":  # only members of theirs, which `_check_member` reads
            fits = False
        case "vlSelectionTest" | "vlSelectionIdTest":
            fits = (
                _is_store(arguments)
                and node_kinds[1:] in (["name"], ["name", "literal"])
                and arguments[1].value == "datum"
            )
        case "vlSelectionResolve":
            fits = _is_store(arguments) and set(node_kinds) == {"literal"}
        case "modify":
            fits = _is_store(arguments) and all(map(_is_own_tuple, arguments[1:]))
        case "vlSelectionTuples":
            fits = all(map(_is_plain, arguments))
        case "x" | "y" | "xy":
            if [part.value for part in arguments] == ["unit"] and node_kinds == ["name"]:
                return
            fits = True
        case "replace":  # a function in place of the text would be called
            fits = node_kinds[2:] == ["literal"]
        case "pluck":
            fits = node_kinds[1:] == ["literal"] and INHERITED.isdisjoint(
                re.split(r"[.\[\]'\"\\]+", str(arguments[1].value))
            )
        case _:
            fits = name not in _NAMED or (
                node_kinds[:1] == ["literal"] and len(arguments) <= _NAMED[name]
            )
    if not fits:
        raise ExpressionError(f"calls {name!r} with arguments that are not allowed")
    for part in arguments:
        _check(part)


def _is_store(arguments: tuple[Node, ...]) -> bool:
    """Whether the first argument is the store of a selection, as Vega-Lite names it."""
    return (
        bool(arguments)
        and arguments[0].kind == "literal"
        and re.fullmatch(r"\w+_store", str(arguments[0].value)) is not None
    )


def _is_own_tuple(node: Node) -> bool:
    """`p_tuple`, `true`, or `p_toggle ? null : p_tuple`: signals that Vega-Lite makes."""
    if node.kind == "name":
        return re.fullmatch(r"\w+_(tuple|toggle)", node.value) is not None
    return node.kind == "literal" or (
        node.kind == "conditional" and all(map(_is_own_tuple, node.parts))
    )


def _is_plain(node: Node) -> bool:
    """Data written out: `[{unit: "", fields: p_tuple_fields, values: ["u"]}]`."""
    if node.kind == "name":
        return re.fullmatch(r"\w+_tuple_fields", node.value) is not None
    return node.kind in ("literal", "list", "object") and all(map(_is_plain, node.parts))


def _is_number(node: Node) -> bool:
    """Whether an expression can give nothing but a number, as an index of a list."""
    if node.kind == "literal":
        return isinstance(node.value, float)
    if node.kind == "unary":
        return node.value in "+-~"
    if node.kind == "binary":
        return set(node.value) <= _ARITHMETIC or (
            set(node.value) <= {"+", *_ARITHMETIC} and all(map(_is_number, node.parts))
        )
    return node.kind == "call" and node.value in NUMERIC_FUNCTIONS


# The grammar


def _unexpected(value: str, expected: str) -> ExpressionError:
    """Return the error of a token in the wrong place; an empty one is the end of the text."""
    token = f"has {value!r}" if value else "ends"
    return ExpressionError(f"{token} where {expected} should be")


class _Parser:
    """Reads one expression. Whatever it does not know is an error."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._kind, self._value = "", ""
        self._start = 0
        self._next()

    def expression(self) -> Node:
        node = self._conditional()
        if self._kind != "end":
            raise ExpressionError(f"continues with {self._value!r} where it should end")
        return node

    def _next(self) -> None:
        while True:
            self._start = self._at
            if self._at == len(self._text):
                self._kind, self._value = "end", ""
                return
            match = _TOKEN.match(self._text, self._at)
            if match is None or match.lastgroup is None:
                raise ExpressionError(f"has the unexpected character {self._text[self._at]!r}")
            self._kind, self._value, self._at = match.lastgroup, match[0], match.end()
            if self._kind != "space":
                break
        if self._value == "/" and self._text[self._at : self._at + 1] in ("*", "/"):
            raise ExpressionError("has a comment")
        if self._kind in ("number", "regex") and re.match(
            r"[\w$\\]", self._text[self._at : self._at + 1]
        ):
            raise ExpressionError("has a number that is directly followed by a name")

    def _take(self, sign: str) -> bool:
        if self._kind == "sign" and self._value == sign:
            self._next()
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise _unexpected(self._value, f"{sign!r}")

    def _conditional(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError("is nested too deeply")
        parts = [self._operators(1)]
        while self._take("?"):  # a chain: Vega-Lite orders a scale by one of any length
            parts.append(self._conditional())
            self._need(":")
            parts.append(self._operators(1))
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Node("conditional", None, tuple(parts))

    def _operators(self, least: int) -> Node:
        node = self._unary()
        while self._kind == "sign" and (level := _BINARY.get(self._value, 0)) >= least:
            operators, operands = [], [node]
            while self._kind == "sign" and _BINARY.get(self._value, 0) == level:
                operators.append(self._value)
                self._next()
                operands.append(self._operators(level + 1))
            node = Node("binary", tuple(operators), tuple(operands))
        return node

    def _unary(self) -> Node:
        operators: list[str] = []
        while self._kind == "sign" and self._value in "+-~!":
            operators.append(self._value)
            self._next()
        node = self._members()
        if len(operators) > _MOST_IN_A_ROW:
            raise ExpressionError("has too many operators one after another")
        for operator in reversed(operators):
            node = Node("unary", operator, (node,))
        return node

    def _members(self) -> Node:
        node = self._primary()
        count = 0
        while self._kind == "sign" and self._value in ("(", ".", "["):
            count += 1
            if count > _MOST_IN_A_ROW:
                raise ExpressionError("reads members too deeply, as in a.b.c.d")
            if self._take("."):
                node = Node("member", self._member_name(), (node,))
            elif self._take("["):
                key = self._conditional()
                self._need("]")
                if key.kind == "literal" and isinstance(key.value, str):
                    node = Node("member", _allowed(key.value), (node,))
                else:
                    node = Node("member", None, (node, key))
            elif node.kind == "name":
                self._next()
                node = Node("call", node.value, self._items(")"))
            else:
                raise ExpressionError("calls something that is not a Vega function")
        return node

    def _member_name(self) -> str:
        name = self._value
        if self._kind != "name":
            raise _unexpected(name, "the name of a member")
        self._next()
        return _allowed(name)

    def _items(self, end: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._take(end):
            if items:
                self._need(",")
            items.append(self._conditional())
        return tuple(items)

    def _primary(self) -> Node:
        category, value = self._kind, self._value
        if category == "sign" and value == "/":
            return self._regex()
        self._next()
        if category == "number":
            return Node("literal", float(int(value, 16) if value[:2] in ("0x", "0X") else value))
        if category == "string":
            return Node("literal", _text_of(value))
        if category == "name":
            constants: dict[str, Any] = {"true": True, "false": False, "null": None}
            if value in constants:
                return Node("literal", constants[value])
            if value in _KEYWORDS:
                raise ExpressionError(f"has the word {value!r}, which is not allowed")
            if self._kind == "sign" and self._value == "(":
                return Node("name", value)  # `toString(…)` is one of Vega's functions
            return Node("name", _allowed(value, "the name"))
        if value == "(":
            node = self._conditional()
            self._need(")")
            return node
        if value == "[":
            return Node("list", None, self._items("]"))
        if value == "{":
            return self._object()
        raise _unexpected(value, "a value")

    def _object(self) -> Node:
        values: list[Node] = []
        while not self._take("}"):
            if values:
                self._need(",")
            if self._kind not in ("name", "string", "number"):
                raise _unexpected(self._value, "a key")
            _allowed(_text_of(self._value) if self._kind == "string" else self._value)
            self._next()
            self._need(":")
            values.append(self._conditional())
        return Node("object", None, tuple(values))

    def _regex(self) -> Node:
        match = _REGEX.match(self._text, self._start)
        if match is None:
            raise ExpressionError("has a regular expression that does not end")
        self._at = match.end()
        self._next()
        return Node("regex", match[0])


def _allowed(name: str, role: str = "the member") -> str:
    if name in INHERITED:
        raise ExpressionError(f"uses {role} {name!r}, which gives access to more than the data")
    return name


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)


def _text_of(literal: str) -> str:
    """The text of a string literal."""

    def plain(match: re.Match[str]) -> str:
        if code := match[1] or match[2]:
            return chr(int(code, 16))
        if match[3].isdigit() or match[3] in "ux":
            raise ExpressionError(f"has the escape {match[0]!r}, which is not allowed")
        return _ESCAPES.get(match[3], match[3])

    return _ESCAPE.sub(plain, literal[1:-1])
