"""Pictures of bench/run paper, as SVG text: curves and bars. Used by paper_report.py."""
import math
from xml.sax.saxutils import escape

COLOURS = {"best": "#009e73", "tuned": "#0072b2", "paper": "#d55e00", "default": "#555555", "average": "#cc79a7",
           "worst": "#b8860b", "warm": "#56b4e9"}
FONT = 'font-family="sans-serif" font-size="12"'


def short(value):
    """A number for an axis or a bar."""
    if value == 0:
        return "0"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def steps(low, high, count=5):
    """Round numbers between low and high."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10 ** math.floor(math.log10(rough))
    step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(s - rough))
    first = math.ceil(low / step) * step
    return [round(first + i * step, 12) for i in range(int((high - first) / step + 1e-9) + 1)]


def text(x, y, words, anchor="middle", colour="#222222", turn=None):
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn is not None else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" {FONT}{turned}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour="#dddddd", width=1.0, dash=None):
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"{dashed}/>'


def document(width, height, parts, title):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img"><title>{escape(title)}</title><rect width="{width}" height="{height}" fill="#ffffff"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def panel(left, top, width, height, curves, names):
    """One diagram. curves: {kind: [(x, y)]}; names: (x axis, y axis); and a mark at names[2] on the y axis."""
    x_name, y_name, target = names
    points = [point for curve in curves.values() for point in curve]
    x_high = max(x for x, _ in points)
    y_low, y_high = min(target, min(y for _, y in points)), max(y for _, y in points)
    y_low -= 0.03 * (y_high - y_low)

    def at(x, y):
        y = min(max(y, y_low), y_high)
        return left + width * x / x_high, top + height * (y_high - y) / (y_high - y_low)

    parts = []
    for x in steps(0, x_high):
        parts += [line(at(x, 0)[0], top, at(x, 0)[0], top + height), text(at(x, 0)[0], top + height + 16, short(x))]
    for y in steps(y_low, y_high):
        parts += [line(left, at(0, y)[1], left + width, at(0, y)[1]), text(left - 6, at(0, y)[1] + 4, short(y), "end")]
    parts.append(line(left, at(0, target)[1], left + width, at(0, target)[1], "#222222", 1, "4 3"))
    for kind, curve in curves.items():
        path = " ".join(f"{at(x, y)[0]:.1f},{at(x, y)[1]:.1f}" for x, y in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[kind]}" stroke-width="1.8"/>')
    parts += [text(left + width / 2, top + height + 36, x_name), text(left - 48, top + height / 2, y_name, turn=-90)]
    return parts


def legend(x, y, kinds):
    parts = []
    for kind in kinds:
        parts += [line(x, y - 4, x + 20, y - 4, COLOURS[kind], 3), text(x + 26, y, kind, "start")]
        x += 34 + 8 * len(kind) + 16
    return parts


def loss_curves(title, curves, target):
    """Loss against time and against iterations. curves: {kind: [(seconds, iterations, objective)]}"""
    trimmed = {}
    tops = [curve[max(1, len(curve) // 20)][2] for curve in curves.values() if len(curve) > 1]
    for kind, curve in curves.items():
        trimmed[kind] = [(t, i, min(loss, 1.3 * max(tops))) for t, i, loss in curve]
    by_time = {kind: [(t, loss) for t, _, loss in curve] for kind, curve in trimmed.items()}
    by_iteration = {kind: [(i, loss) for _, i, loss in curve] for kind, curve in trimmed.items()}
    parts = legend(70, 22, curves)
    parts += panel(70, 40, 340, 240, by_time, ("virtual seconds", "training objective", target))
    parts += panel(490, 40, 340, 240, by_iteration, ("iterations", "training objective", target))
    return document(850, 330, parts, title)


def bars(title, cells, kinds, unit):
    """Groups of bars on a logarithmic scale from 1. cells: {name: {kind: value}}"""
    height, group, left = 260, 26 + 16 * len(kinds), 60
    width = left + group * len(cells) + 20
    high = max(max(values.values()) for values in cells.values())
    decades = max(1, math.ceil(math.log10(max(high, 1.01)) * 4) / 4)

    def up(value):
        return height * math.log10(max(value, 1)) / decades

    top = 50
    parts = legend(left, 22, kinds)
    for tick in (1, 2, 5, 10, 20, 50, 100, 200):
        if up(tick) <= height:
            y = top + height - up(tick)
            parts += [line(left, y, width - 10, y), text(left - 6, y + 4, short(tick), "end")]
    for g, (name, values) in enumerate(cells.items()):
        x = left + 13 + g * group
        for k, kind in enumerate(kinds):
            if kind not in values:
                continue
            tall = max(up(values[kind]), 1)
            parts.append(f'<rect x="{x + 16 * k:.1f}" y="{top + height - tall:.1f}" width="13" height="{tall:.1f}" '
                         f'fill="{COLOURS[kind]}"><title>{escape(name)}, {kind}: {short(values[kind])}</title></rect>')
        parts.append(text(x + 8 * len(kinds), top + height + 18 + 14 * (g % 2), name))
    parts.append(text(14, top + height / 2, unit, turn=-90))
    return document(max(width, 620), top + height + 46, parts, title)
