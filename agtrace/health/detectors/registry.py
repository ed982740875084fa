"""All detectors, the most telling first: of two findings about the same events, only the first is shown."""

from __future__ import annotations

from agtrace.health.detectors import commits, context, dangers, failures, loops, outcome, waiting
from agtrace.health.finding import Detector

DETECTORS: tuple[Detector, ...] = (
    outcome.find_corrections,
    outcome.find_review_problems,
    dangers.find_dangerous_commands,
    commits.find_unchecked_commit,
    outcome.find_failing_check,
    commits.find_silenced_check,
    commits.find_swept_commit,
    outcome.find_unanswered_question,
    commits.find_edits_elsewhere,
    outcome.find_open_checks,
    failures.find_api_errors,
    failures.find_ended_on_failure,
    loops.find_same_action_same_error,
    loops.find_command_without_success,
    failures.find_returning_error,
    loops.find_edit_churn,
    loops.find_edit_without_success,
    failures.find_failure_streak,
    failures.find_unanswered_calls,
    failures.find_failed_calls,
    context.find_compaction_mid_task,
    context.find_cache_misses,
    context.find_large_results,
    waiting.find_slow_model,
    outcome.find_abandoned,
    outcome.find_left_question,
)
"""The rules of docs/health.md. Every finding carries the name and version of its detector."""
