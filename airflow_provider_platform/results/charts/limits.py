"""The limits of a chart, and its scale: an agent writes what is run as a program here."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_platform.client.formats.service_text import MAX_CHART_CHARACTERS


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
    specification_characters: int = MAX_CHART_CHARACTERS
    """Of a specification without the rows."""
    scale: float = 2.0
    """Pixels of a PNG for each unit of the chart: two are sharp on the screens of today."""
    side: int = 16_384
    """Pixels of a picture's longer side: beyond it browsers and mail programs show nothing."""
    pixels: int = 1 << 26
    """Of a whole picture, four bytes each in memory."""
    depth: int = 64
    """Objects and lists inside each other in a specification."""
