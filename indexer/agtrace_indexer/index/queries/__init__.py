"""All that is asked of an index: a module for each topic, whose functions take a connection and return rows of our own.

Two engines answer: SQLite, which indexes, and PostgreSQL, which holds what the people of a team push. For the latter
a connection of `agtrace_team.connection` stands in for one of `sqlite3`, with SQLite's placeholders and errors. The
SQL is what both understand, with a few functions that PostgreSQL's schema brings along under SQLite's names (`instr`,
`json_each`, `group_concat`, sums of conditions); where there is no common way, two statements stand side by side, and
`queries.is_team` chooses. So there is no bare column beside `GROUP BY`, no subquery without an alias, no number where
a condition is meant (`x != 0`, not `x`), no scalar `min` and `max`, no `IS` but with `NULL`, no column named like one
of a joined table, and `NULLS FIRST` or `NULLS LAST` where something is sorted by what may be unknown.
"""
