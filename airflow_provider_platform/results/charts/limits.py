"""How much a chart may use: its specification comes from a service and is run as a program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChartLimits:
    """What one chart may take. Beyond any of these it is not drawn, and the process is ended."""

    seconds: float = 30.0
    """Wall time of one chart, in all its formats; the start of the process has as long again."""
    memory_bytes: int = 1 << 30
    """Resident memory of the process that draws."""
    rows: int = 50_000
    """Rows of data. A chart of fewer rows than there are would show something else."""
    input_bytes: int = 64 << 20
    output_bytes: int = 64 << 20
    """All pictures of one chart."""
    depth: int = 64
    """Objects and lists inside each other in a specification."""
