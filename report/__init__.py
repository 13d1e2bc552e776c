"""The report page of a run: one HTML file that opens offline, with the figures of `query.results`.

render(run) -> str      the page as HTML, from a run, its PageData, or the JSON of one
render_comparison(data) -> str  the page of a comparison
keep(path, html, run)   write it atomically, without replacing other files

embedding    escaping of untrusted texts, JSON inside HTML
page         the template, the script, the styles, and the content security policy
keeping      writing the file
"""

from __future__ import annotations

from crystalperf.report.embedding import shown as shown
from crystalperf.report.keeping import check as check
from crystalperf.report.keeping import keep as keep
from crystalperf.report.page import comparison_name as comparison_name
from crystalperf.report.page import render as render
from crystalperf.report.page import render_comparison as render_comparison
