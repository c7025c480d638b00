"""Self-contained HTML reports: the page and its charts."""

from atpgraph.report.charts import Bar, Line, Point, bar_chart, histogram, line_chart, scatter_chart
from atpgraph.report.page import Section, page, table, write_page

__all__ = [
    "Bar",
    "Line",
    "Point",
    "Section",
    "bar_chart",
    "histogram",
    "line_chart",
    "page",
    "scatter_chart",
    "table",
    "write_page",
]
