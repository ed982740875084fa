"""All detectors, the most telling first: of two findings about the same events, only the first is shown."""

from __future__ import annotations

from agtrace.health.detectors import (
    checkouts,
    commits,
    context,
    context_errors,
    corrections,
    dangers,
    edits,
    ending,
    failed_edits,
    failures,
    loops,
    monologue,
    questions,
    reviews,
    todos,
    tokens,
    waiting,
)
from agtrace.health.finding import Detector

DETECTORS: tuple[Detector, ...] = (
    corrections.find_corrections,
    reviews.find_review_problems,
    dangers.find_dangerous_commands,
    commits.find_unchecked_commit,
    questions.find_unanswered_question,
    checkouts.find_edits_elsewhere,
    todos.find_open_checks,
    failures.find_api_errors,
    failures.find_ended_on_failure,
    loops.find_same_action_same_error,
    loops.find_command_without_success,
    failures.find_returning_error,
    edits.find_edit_churn,
    failed_edits.find_edit_without_success,
    failures.find_failure_streak,
    loops.find_alternation,
    loops.find_same_action_same_observation,
    monologue.find_monologue,
    context_errors.find_context_errors,
    failures.find_unanswered_calls,
    failures.find_failed_calls,
    context.find_compaction_mid_task,
    tokens.find_cache_misses,
    tokens.find_large_results,
    waiting.find_slow_model,
    ending.find_abandoned,
    ending.find_left_question,
)
"""The rules of docs/health.md. Every finding carries the name and version of its detector."""
