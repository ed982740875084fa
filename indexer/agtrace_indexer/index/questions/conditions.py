"""Conditions that several topics share, as SQL over `event` e or `project`."""

from __future__ import annotations

COUNTED = "e.superseded_by IS NULL AND e.copy_of IS NULL"
"""The events that count in their session: neither replaced nor copied from an older one."""

LIVE = "(e.superseded_by IS NULL OR e.superseded_by > :newest)"
"""The events that no other had replaced at the moment of a snapshot, whose newest event has the id :newest."""

PROJECTS_BY_HASH = "SELECT id FROM project WHERE hash >= :hash AND hash < :hash || char(1114111)"
"""The projects whose hash begins with :hash."""
