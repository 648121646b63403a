"""What the service's SQL cannot do, judged by the words of a statement before it is sent.

The service answers queries over its data model, one at a time. It has no transactions and no
sessions, and SQL neither writes rows nor defines tables. The service would refuse such a statement
in words of its own; a sentence from here comes earlier and says what to do instead.
"""

from __future__ import annotations

from airflow_provider_platform.client.data_api.sql_tokens import read_tokens

_QUERIES = frozenset({"desc", "describe", "explain", "select", "show", "table", "values", "with"})
_ONLY_READS = "the service's SQL is read-only"
_NO_TABLES = (
    "the service's SQL cannot create tables, not even temporary ones: the data model defines the "
    "tables"
)
_NO_TRANSACTIONS = "the service has no transactions: each query runs on its own"
_NO_SESSION = (
    "the service keeps no session between queries: pass timezone, branch_name and cache as "
    "arguments"
)
_NO_PROCEDURES = "the service's SQL has neither procedures nor prepared statements"
_REASONS = {
    word: reason
    for words, reason in (
        ("copy delete insert load merge replace truncate update upsert", _ONLY_READS),
        ("alter analyze comment create drop grant refresh rename revoke vacuum", _NO_TABLES),
        ("abort begin commit end lock release rollback savepoint start", _NO_TRANSACTIONS),
        ("discard reset set use", _NO_SESSION),
        ("call deallocate declare do exec execute prepare", _NO_PROCEDURES),
    )
    for word in words.split()
}
_WRITES = {("insert", "into"), ("delete", "from"), ("merge", "into")}


def why_not_a_query(sql: str) -> str | None:
    """Why the text cannot be one query that reads, as far as its words say; None if it may be."""
    words = [token.code for token in read_tokens(sql) if token.is_code]
    while words and words[-1] == ";":
        words.pop()
    if not words:
        return "it contains only white space and comments"
    first = next((word for word in words if word != "("), "(")
    if first not in _QUERIES:
        reason = _REASONS.get(first)
        return f"it begins with {first.upper()[:20]}{', and ' + reason if reason else ''}"
    if ";" in words:
        return "it contains several statements"
    if (writes := _writing_word(words)) is not None:
        return f"it contains {writes.upper()}, and {_ONLY_READS}"
    if _selects_into(words):
        return f"it is SELECT INTO, and {_NO_TABLES}"
    return None


def _writing_word(words: list[str]) -> str | None:
    """The word of a statement in or after the parentheses of a WITH that changes rows."""
    for at, word in enumerate(words[1:], start=1):
        if words[at - 1] not in ("(", ")"):
            continue
        if (word, *words[at + 1 : at + 2]) in _WRITES:
            return word
        if word == "update" and "set" in words[at + 2 : at + 6]:
            return word
    return None


def _selects_into(words: list[str]) -> bool:
    """Whether INTO is a word of the query itself."""
    depth = 0
    for at, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if word == "into" and depth == 0 and words[at - 1] not in (".", "as"):
            return True
    return False
