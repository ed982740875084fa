"""Difficult values of arguments: patterns, references, times, names of methods, words to search for."""

from __future__ import annotations


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.strip("\n").split("\n"))


REGEXES = (
    *_lines(r"""
(a+)+$
(a|aa)+$
(.*)*x
((a{1,200}){1,200}){1,200}
(?P<
[
\
(?=x)
(?<=a+)b
(\w+)\1+$
a{99999999}
\p{L}
[[:alpha:]]
(?R)
(?#
^$|x*
\N{GREEK SMALL LETTER ALPHA}
(?(1)a|b)
a**
(?V1)[a--b]
\Z\A\G
"""),
    *("\0", "(?i)" * 500 + "a", "(" * 500 + "a" + ")" * 500, ".{0,60000}" * 9, "x" * 2_000, "|" * 900),
)

REFERENCES = (
    *_lines("""
ax:
ax://
ax://[x]/
AX://HEALTH
ax://health/
ax://health?x=1
ax://health#x
ax://session/
ax://session/../../etc/passwd
ax://session/%2e%2e%2fetc%2fpasswd
ax://user@session:99999/x
ax://event//0
ax://event/x/-1
ax://event/x/٣
ax://event/x/99999999999999999999
ax://analysis/
ax://report/-1d
ax://report/1e9d
ax://report/9999999d
ax://report/today
ax://report/10000-01-01
file:///etc/passwd
http://[::1
潮
"""),
    *("", " ax://health ", "ax://session/\0", "ax://session/" + "x" * 5_000, "ax://event/" + "/" * 3_000),
    "ax://report/" + "9" * 400,
)

MOMENTS = _lines("""
today
0d
1d
-3d
7 d
٣d
1e9d
99999999999999d
999999w
now
2026-13-45
0001-01-01
0001-01-01T00:00:00+14:00
9999-12-31T23:59:59Z
2026-10-01T10:00:00+99:00
2026-10-01T10:00:00+23:59
""")

METHODS = (
    "",
    *_lines("""
initialize
ping
tools/list
tools/call/
resources/list
resources/templates/list
resources/subscribe
prompts/list
logging/setLevel
completion/complete
sampling/createMessage
server/discover
rpc.discover
no/such/method
notifications/cancelled
notifications/progress
notifications/roots/list_changed
"""),
)

WORDS = ("tide", "a", "", "the", "error", "e", ".", "\n", "\ud800", "é", "ﬁ", "İ", "ß" * 999, "test", "/", "Bash", '"')
