"""The page of a run: one file that opens offline; its figures are those of `query.results`.

render(run) -> str      the page as HTML; also of a Picture, or of the JSON of one
keep(path, html, run)   write it, all or nothing, where nothing else is lost

embedding    names and texts of strangers' logs made harmless, JSON that no HTML parser takes for anything else
page         the template, the script, the styles, and the policy that lets nothing else run
keeping      the file
"""

from __future__ import annotations

from crystalperf.report.embedding import shown as shown
from crystalperf.report.keeping import check as check
from crystalperf.report.keeping import keep as keep
from crystalperf.report.page import render as render
