"""The report of a run: a self-contained page, and a summary for the terminal."""

from kernelarc.clients.report.data import (
    AgentFacts,
    AttemptFacts,
    InsightFacts,
    ProblemFacts,
    PromotionFacts,
    ReportData,
    RunFacts,
    Speedup,
    WorkloadFacts,
)
from kernelarc.clients.report.page import build_report
from kernelarc.clients.report.summary import summarise

__all__ = [
    "AgentFacts",
    "AttemptFacts",
    "InsightFacts",
    "ProblemFacts",
    "PromotionFacts",
    "ReportData",
    "RunFacts",
    "Speedup",
    "WorkloadFacts",
    "build_report",
    "summarise",
]
