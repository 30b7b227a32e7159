"""What ``oxyfuel.explain`` returns."""

import html

# What to do about a break that brings no advice.
_ELSE = "nothing, unless it runs often: Python performs the instruction, and capture goes on behind it"


def _count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _symbol(symbol):
    bounds = f", {symbol['range']}" if symbol["range"] else ""
    hint = "" if symbol["hint"] is None else f": {symbol['hint']} at the capture"
    return f"{symbol['name']} = {symbol['source']}{hint}{bounds}"


class Explanation:
    """The regions that a call went through, in the order of their first visits: where each begins, what it computes, its
    guards, and why it ends where it does. ``str()`` and notebooks show it.

    ``segments`` is a list of dicts: ``function``, ``file`` and ``line`` (empty and 0 for a call that was captured whole),
    ``is_captured``, ``is_pending`` (it runs in eager while its kernels are compiled), ``operators``, ``kernels``,
    ``extern_calls``, ``device_graphs`` (CUDA graphs that calls replay by now), ``device_graph_bytes`` (of the memory that
    these work in, which all graphs of one stream share), ``not_replayed`` (why some steps are in none), ``visits``,
    ``guards``, ``symbols``, and ``end``, a break or ``None``. A symbol is a dict with ``name``, ``source``, ``hint`` (its
    value at the capture, or None if data decide it) and ``range``.
    A break is a dict with ``reason``, ``hint`` and ``stack``, the user's lines from the innermost on. ``metrics`` is what
    :func:`oxyfuel.metrics` gave after the call.
    """

    def __init__(self, metrics, segments):
        self.metrics = metrics
        self.segments = segments

    @property
    def graphs(self):
        return [segment for segment in self.segments if segment["operators"]]

    @property
    def graph_count(self):
        return len(self.graphs)

    @property
    def breaks(self):
        """Each break once, in the order in which the call came to them. A break in a callee that was inlined at first ends a
        region of the caller and one of the callee: it is given with the lines of both."""
        found = {}
        for segment in self.segments:
            end = segment["end"]
            if end:
                key = (end["reason"], *end["stack"][:1])
                if key not in found or len(end["stack"]) > len(found[key]["stack"]):
                    found[key] = end
        return list(found.values())

    def _summary(self):
        operators, kernels, calls = (
            sum(segment[what] for segment in self.segments) for what in ("operators", "kernels", "extern_calls")
        )
        return (
            f"{self.graph_count} graph(s), {_count(operators, 'operator')}, {len(self.breaks)} break(s); "
            f"{_count(kernels, 'kernel')}, {_count(calls, 'extern call')}"
        )

    @staticmethod
    def _title(segment):
        place = f" from {segment['file']}:{segment['line']}" if segment["file"] else ", whole"
        what = "in Python"
        if segment["is_captured"]:
            what = _count(segment["operators"], "operator") if segment["operators"] else "no operators"
        if segment["is_pending"]:
            what += ", being compiled: it runs in eager until then"
        return f"{segment['function']}{place}: {what}, {_count(segment['visits'], 'visit')}"

    @staticmethod
    def _end_lines(record):
        return [f"at {line}" for line in record["stack"][:1]] + [f"called from {line}" for line in record["stack"][1:]] + [
            f"what to do: {record['hint'] or _ELSE}"
        ]

    def __str__(self):
        lines = [self._summary()]
        for number, segment in enumerate(self.segments, 1):
            lines.append(f"{number}. {self._title(segment)}")
            lines += [f"    symbol {_symbol(symbol)}" for symbol in segment["symbols"]]
            lines += [f"    guard {guard}" for guard in segment["guards"]]
            if segment["device_graphs"]:
                shared = f"{segment['device_graph_bytes'] / 2**20:.1f} MiB that graphs of one stream share"
                lines.append(f"    {_count(segment['device_graphs'], 'CUDA graph')} in {shared}")
            lines += [f"    not in a CUDA graph: {reason}" for reason in segment["not_replayed"]]
            if segment["end"]:
                lines.append(f"    {'ends' if segment['is_captured'] else 'not captured'}: {segment['end']['reason']}")
                lines += [f"        {line}" for line in self._end_lines(segment["end"])]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        def listed(lines):
            return "<ul>" + "".join(f"<li><code>{html.escape(line)}</code></li>" for line in lines) + "</ul>"

        parts = [f"<div><p><b>{html.escape(self._summary())}</b></p><ol>"]
        for segment in self.segments:
            parts.append(f"<li>{html.escape(self._title(segment))}")
            if segment["end"]:
                verb = "ends" if segment["is_captured"] else "not captured"
                parts.append(f"<div>{verb}: {html.escape(segment['end']['reason'])}{listed(self._end_lines(segment['end']))}</div>")
            if segment["not_replayed"]:
                parts.append(f"<div>not in a CUDA graph:{listed(segment['not_replayed'])}</div>")
            if segment["symbols"]:
                title = _count(len(segment["symbols"]), "symbol")
                parts.append(f"<details><summary>{title}</summary>{listed(map(_symbol, segment['symbols']))}</details>")
            if segment["guards"]:
                title = _count(len(segment["guards"]), "guard")
                parts.append(f"<details><summary>{title}</summary>{listed(segment['guards'])}</details>")
            parts.append("</li>")
        return "".join(parts) + "</ol></div>"
