"""Pages for people: what was asked of this sandbox, and what came of it."""
