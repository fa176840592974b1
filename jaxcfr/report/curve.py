"""A convergence curve as inline SVG, coloured by the page's style sheet."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 40  # margins, in pixels


def curve_svg(points: Sequence[tuple[float, float]], name: str, *, width: int, height: int) -> str:
    """Values over iterations, logarithmic where the numbers allow.

    Args:
      points: (iteration, value) pairs, at least one; values are finite and at least 0.
      name: of the values, with their unit.
      width, height: in pixels.
    """
    xs, ys = zip(*sorted(points), strict=True)
    across = _Scale(xs, LEFT, width - RIGHT)
    up = _Scale(ys, height - BOTTOM, TOP, always=True)
    pieces = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{html.escape(name)} by iteration">'
    ]
    for value, shown in across.ticks(4 if width < 500 else 7):
        x = across(value)
        pieces.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - BOTTOM}"/>')
        pieces.append(f'<text x="{x:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{shown}</text>')
    for value, shown in up.ticks(6):
        y = up(value)
        pieces.append(f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        pieces.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>')
    pieces.append(f'<text x="{(LEFT + width - RIGHT) / 2}" y="{height - 4}" text-anchor="middle">iteration</text>')
    # What is exactly 0 has no place on a logarithmic axis: it breaks the line, and is marked at the bottom.
    stretch: list[str] = []
    for x, y in [*zip(xs, ys, strict=True), (0.0, math.nan)]:
        if up.shows(y):
            stretch.append(f"{across(x):.1f},{up(y):.1f}")
        elif stretch:
            pieces.append(f'<polyline class="curve" points="{" ".join(stretch)}"/>')
            stretch = []
    for x, y in zip(xs, ys, strict=True):
        title = f"<title>iteration {x:,.0f}: {y:.4g}</title>"
        if up.shows(y):
            pieces.append(f'<circle class="point" cx="{across(x):.1f}" cy="{up(y):.1f}" r="3">{title}</circle>')
        else:
            pieces.append(
                f'<text class="zero" x="{across(x):.1f}" y="{height - BOTTOM - 4}" text-anchor="middle">0{title}</text>'
            )
    return "".join([*pieces, "</svg>"])


class _Scale:
    """From numbers to pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, always: bool = False) -> None:
        """`always` makes it logarithmic whenever a value is positive, else only from a decade on."""
        positive = [value for value in values if value > 0]
        self.start, self.end = start, end
        self.log = bool(positive) and (always or (len(positive) == len(values) and max(values) >= 10 * min(values)))
        low, high = (min(positive), max(positive)) if self.log else (min(values), max(values))
        if self.log:
            low, high = math.log10(low), math.log10(high)
        room = 0.05 * (high - low) or 0.5
        self.low, self.high = low - room, high + room

    def shows(self, value: float) -> bool:
        return value > 0 if self.log else math.isfinite(value)

    def __call__(self, value: float) -> float:
        place = math.log10(value) if self.log else value
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round numbers in the range, at most about so many."""
        first, last = math.ceil(self.low), math.floor(self.high)
        if not self.log:
            step = 10 ** math.floor(math.log10((self.high - self.low) / most))
            step *= next(lead for lead in (1, 2, 5, 10) if (self.high - self.low) / (step * lead) <= most)
            numbers = [step * n for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        elif last - first >= 2:
            numbers = [10.0**power for power in range(first, last + 1, math.ceil((last - first + 1) / most))]
        else:
            leads = (1, 2, 5) if last > first else range(1, 10)
            numbers = [lead * 10.0**power for power in range(first - 1, last + 1) for lead in leads]
            numbers = [value for value in numbers if self.low <= math.log10(value) <= self.high]
        return [(value, _number(value)) for value in numbers]


def _number(value: float) -> str:
    if value == 0 or 0.01 <= abs(value) < 100_000:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
