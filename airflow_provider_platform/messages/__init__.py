"""Results as texts: tables and bars for a log or a terminal, messages for where people read.

Whatever an agent or its data says is data here: each target's mentions, links and markup are
escaped, and lengths stay below what the target takes.
"""
