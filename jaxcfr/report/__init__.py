"""Reports: a game and a strategy on one page that needs nothing else."""

from jaxcfr.report.page import report_page, write_report

__all__ = ["report_page", "write_report"]
