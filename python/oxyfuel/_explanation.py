"""What ``oxyfuel.explain`` returns."""

import html


class Explanation:
    """The segments, graphs, breaks and guards of one call. ``str()`` and notebooks show it."""

    def __init__(self, metrics, segments):
        self.metrics = metrics
        self.segments = segments

    @property
    def graph_count(self):
        return self.metrics["graphs"]

    @property
    def breaks(self):
        return self.metrics["breaks"]

    def __str__(self):
        lines = [
            f"{self.graph_count} graph(s), {self.metrics['operators']} operators, {len(self.breaks)} break(s)",
            f"{self.metrics['kernels']} kernels, {self.metrics['extern_calls']} extern calls",
        ]
        for number, record in enumerate(self.breaks, 1):
            lines.append(f"break {number}: {record['reason']}")
            lines += [f"    at {line}" for line in record["stack"]]
            if record["hint"]:
                lines.append(f"    {record['hint']}")
        return "\n".join(lines + self.segments)

    __repr__ = __str__

    def _repr_html_(self):
        return f"<pre>{html.escape(str(self))}</pre>"
