"""Secrets are masked wherever they are, and nothing else is."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from agtrace_indexer.events.searchable_text import call_text, clean_json, stored, unmasked
from agtrace_indexer.redact import engine, redact, redact_json, scanner, suspicious
from agtrace_indexer.redact.engine import looking, secret_of
from agtrace_indexer.redact.names import Strength, strength
from agtrace_indexer.redact.printing import PRINTED, Prints, mask_output, prints
from agtrace_indexer.redact.rules import CARRIERS, Carrier, Form, forms
from agtrace_indexer.redact.scanner import Look, Scanner, ScannerError
from agtrace_indexer.redact.values import Tier, is_example
from agtrace_indexer.run import index
from agtrace_schema.events import ToolCall
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agtrace.asking import claude_log
from tests.contents import contents
from tests.depth import depth, examples, part
from tests.secrets.corpus import near_misses, secrets
from tests.secrets.tokens import tokens_of

MASK = re.compile(r"\[redacted: ([a-z0-9-]{1,40})\]")
LENGTH = depth(5_000, 50_000)
LARGEST = depth(100_000, 10**9)
"""Bytes: larger published logs are read only in a thorough run."""
SECONDS = 2.4  # for 10,000 characters: a fortieth of it is usual; what is not linear takes minutes for 50,000
DENSEST = "><cookie=>"  # in so many places a rule may begin that only windows keep the search from being quadratic

# --- tokens that are known by their forms

FORMS = forms()


@cache
def _made(pattern: str) -> tuple[str, ...]:
    """Tokens of a form, always the same ones, the simplest first."""
    return tokens_of(pattern, depth(2, 20))


def _tokens() -> list[tuple[Form, str]]:
    """Each form with its tokens, but for those that read like what documentation writes: `sk_0000000000000000`."""
    return [(form, token) for form in FORMS for token in _made(form.pattern) if not _reads_like_an_example(form, token)]


def _reads_like_an_example(form: Form, token: str) -> bool:
    found = re.fullmatch(form.pattern, token)
    assert found is not None
    return is_example(found["secret"] if "secret" in found.re.groupindex else token)


def _kinds(text: str) -> set[str]:
    """The kinds of all forms that are anywhere in a text."""
    return {form.kind for form in FORMS if _compiled(form.bounded).search(text)}


_compiled = cache(re.compile)


FILLER = "An ordinary line — with nothing in it.\n" * depth(60, 500)


@pytest.mark.parametrize(
    "around",
    (
        "before {} after",
        "{}",
        "first\\n{}\\nthird",
        '{{"output": "first\\n{}\\n", "code": 0}}',
        '{{\\"output\\": \\"{}\\"}}',
        "\ud800 é {}",
        "Größe 你好 😀 {} 😀",
        FILLER + "{}\n" + FILLER,
    )[:: depth(3, 1)],
    ids=ascii,
)
def test_a_token_of_every_form_is_masked_and_says_its_kind(around: str) -> None:
    wrong = []
    before, _, after = around.replace("{{", "{").replace("}}", "}").partition("{}")
    for form, token in _tokens():
        masked = redact(before + token + after)
        told = set(MASK.findall(masked))
        whole = masked.startswith(before) and masked.endswith(after) and token not in masked
        if not whole or not (form.kind in told or told & _kinds(token)):
            wrong.append((form.kind, token, masked[:200]))
    assert wrong == []


def test_the_file_of_forms_has_a_kind_a_pattern_that_both_engines_read_and_a_source_in_each_line() -> None:
    path = Path(redact.__code__.co_filename).with_name("forms.tsv")
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("# ")]
    assert len(lines) == len(FORMS) >= 400 and len(set(lines)) == len(lines)
    for line in lines:
        kind, pattern, source, *first = line.split("\t")
        assert re.fullmatch(r"[a-z0-9-]{1,40}", kind) and source.strip() and len(first) < 2, line
        groups = re.compile(pattern).groupindex.keys()
        assert groups <= {"secret"}, line
    assert len({form.pattern for form in FORMS}) == len(FORMS), "a pattern stands there twice"
    assert Scanner([Look(form.pattern.replace("?P<secret>", "?:")) for form in FORMS]).hits("nothing") == []


def test_every_carrier_says_its_kind_and_which_part_is_the_secret() -> None:
    for carrier in CARRIERS:
        assert re.fullmatch(r"[a-z0-9-]{1,40}", carrier.kind)
        assert re.compile(carrier.pattern).groupindex.keys() <= {"secret", "name", "sign", "quote", "inner"}


def test_each_secret_says_how_sure_it_is_and_only_what_is_sure_enough_is_masked() -> None:
    noted: list[tuple[str, str, str]] = []
    with looking(noted):
        redact_json({"a": f"{TOKEN}\nDB_PASSWORD=correcthorse\nsecret: mossyhorse", "password": "grey heron"})
    assert {each[:2] for each in noted} == {
        ("github-token", "definite"), ("password", "likely"), ("secret", "possible"),
    }  # fmt: skip
    assert redact("secret: mossyhorse") == "secret: mossyhorse"


# --- what names say


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        (
            Strength.PASSWORD,
            "password DB_PASSWORD dbPassword user-password password2 PASSWORD_PROD passwd ROOT_PW pass pwd passphrase"
            " PGPASSWORD spring.datasource.password smtp_pass mysqlPwd Passwort contraseña senha пароль 密码",
        ),
        (
            Strength.SECRET,
            "secret client_secret CLIENT_SECRET clientSecret SECRET_KEY_BASE secret_key private_key APP_KEY signing_key"
            " credentials jwt SALT секрет",
        ),
        (
            Strength.TOKEN,
            "token access_token accessToken GITHUB_TOKEN x-auth-token api_key apiKey API-KEY x-api-key apikey"
            " OPENAI_API_KEY AWS_SECRET_ACCESS_KEY Authorization token_v2 令牌",
        ),
        (
            Strength.KEY,
            "some_key STORAGE_KEY session_key signature_sig sig dsn SENTRY_DSN sid admin_auth user_session my_cookie",
        ),
        (
            Strength.NONE,
            "name path keyboard monkey passenger tokenizer token_count max_tokens num_tokens tokens_used public_key"
            " publicKey publishable_key cache_key primary_key foreignKey sort_key object_key key keys hash session"
            " auth password_file token_url secret_name password_length passwords_changed_at commit_hash host_key"
            " has_password is_secret forgot_password reset_password continuation_token cancellation_token design_token"
            " secretary compass bypass_rules authors author 密 ''",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Strength) else "",
)
def test_a_name_says_how_surely_its_value_is_a_secret(expected: Strength, names: str) -> None:
    assert {name: strength(name).name for name in names.split()} == dict.fromkeys(names.split(), expected.name)


def test_only_the_end_of_a_very_long_name_counts() -> None:
    assert strength("a_" * 100_000 + "password") is Strength.PASSWORD
    assert strength("password" + "_a_file" * 100_000) is Strength.NONE


# --- the scanner

MIXED = "é你😀 token-1 \u200b größe token-22 é"


@pytest.mark.parametrize("text", ["a token-1, token-22", MIXED, "token-1" + "😀" * 50 + "token-22"])
def test_the_scanner_tells_characters_not_bytes(text: str) -> None:
    first, second = text.index("token-1"), text.index("token-22")
    ends = [(first + len("token-1"), 0), (second + len("token-2"), 0)]
    assert Scanner([Look("token-[0-9]{1,2}")]).hits(text) == ends
    begins = Scanner([Look("TOKEN-[0-9]", any_case=True, from_start=True)])
    assert begins.hits(text) == [(first, 0), (second, 0)]
    assert [look for _, look in Scanner([Look("none"), Look("token", once=True)]).hits(text)] == [1]


def test_a_token_is_found_however_much_of_nothing_splits_it() -> None:
    for nothing in ("\x01", "\u200b", "\x1b[0m", "&shy;", "\\u200b", "%E2%80%8B"):
        split = f"{TOKEN[:20]}{nothing * 1000}{TOKEN[20:]}"
        assert redact(f"a {split} b") == f"a {redact(TOKEN)} b"


@pytest.mark.parametrize("pattern", ["(?<=a)b", "(?=a)b", r"(a)\1", "(", "a{1,100000}", "a*"])
def test_a_pattern_that_the_scanner_cant_look_for_is_refused(pattern: str) -> None:
    with pytest.raises(ScannerError):
        Scanner([Look("fine"), Look(pattern)])


def test_without_hyperscan_the_same_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = part([case.text for case in (*secrets(), *near_misses())], 0, 4)
    before = list(map(redact, texts))
    monkeypatch.setattr(scanner, "hyperscan", None)
    monkeypatch.setattr(engine, "_built", [])
    assert list(map(engine.Redactor(engine.Own()).redact, texts)) == before


@pytest.mark.thorough
def test_eight_threads_find_what_one_finds() -> None:
    texts = part([case.text for case in (*secrets(), *near_misses())], 0, 5)
    scanner = Scanner([form.look for form in FORMS])
    alone = [(redact(text), scanner.hits(text)) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        together = threads.map(lambda _: [(redact(text), scanner.hits(text)) for text in texts], range(8))
    assert all(found == alone for found in together)


# --- what readers found in real logs, and what came out of everyday configuration

S = "(x8&k2w@9f$v7b3n_q1z"
"""A value as Django makes them, which begins like an expression."""


@pytest.mark.parametrize(
    "text",
    [
        "--- PASS: TestHTTP2Server (0.01s)\nbuild\tpass\t0\nbuild\tpending\t0\nwe pass utf8Bytes, and pass bun@1.3.14",
        ':root { --pass: #34d399; }\ntests pass, `build.ps1` too; --pwd "D:/x"; pin bun@1.3.14 and restore',
        "/etc/passwd:root:x:0:0\ntests/test_token:15:assert\nSet CODEX_API_KEY environment variable",
        "key: Ed25519PublicKey, token: r'[A-Za-z0-9]{4}', auth: \"scram-sha-256\", secret ``a.b.Certificate``",
        "const c = { password: `$" + "{a}`, token: t.onCreate(n), key:e.altKey?r.C0.ESC:r.C1.CR }",
        "2026-01-02T03:04:05.6Z   API_KEY: \n2026-01-02T03:04:05.7Z ##[end]\nid: 'pw:api@93', API key: lsv2_pt_0c1...",
        "postgres://shop:shop@db/shop {username: 'minimal', password: 'minimal'} tiktoken o200k_base, X_TOKEN errors**",
        '[sessionKey]="sessionKey()" STORAGE_KEY="side-panel-width" {token: "fcm_token_001", apikey: \'PERSISTED77\'}',
        "retype_password=Retype new password\nlogin(\n  password=secretive)\nwith secrets:\n- `01ec942` (10)",
        "API key - skipping chat endpoint tests, per pass: every sync makes every zone\nCookie: mac=00:1A:79:AA:BB:CC",
        "| Token | Role |\n|---|---|\n| `bg-gray-950` | canvas |\n| rules pass | reward allocations reconcile |\n",
    ],
)
def test_words_of_prose_results_of_tests_columns_paths_and_code_are_no_secrets(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("setting", ["pw: {}", 'PW="{}"', "psk={}"])
def test_a_name_that_begins_one_of_many_texts_is_one(setting: str) -> None:
    masked = redact_json({"file_path": "notes.txt", "content": setting.format("Xk9$mQ2vLr")})
    assert "Xk9" not in masked["content"] and masked["file_path"] == "notes.txt"


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD=q7'Qz7mKx91", 'password: q`Qz7mKx91\\9"k2w@9f', "password: 'x9''Qz7mKx91'", "-x-pw Qz7mKx91",
        "https://u:p#a'Qz7mKx91@h.org/x", "Cookie: a=b; sid=Qz7mKx91LpRt", "--a-pw akay jwni rycs kqzvbnwp -f x",
        f"SECRET_KEY = '{S}'", f"os.environ.get('SECRET_KEY', '{S}')", f'"password": "%{S}"', f"DB_PASSWORD={S}",
        f"spring.datasource.password={S};<)|''x", f"define('AUTH_KEY', '?}}[ 3x|v!@#9Pq {S}');",
        "kind: Secret\nstringData:\n  key: |\n    951bc3 {S}\n", f'toml = 1\nsecret = """{S}"""',
        "<secret>{AQAAABAAAAAQ0Wd8bq2c9XnZ1" + "aB3=}</secret>", f"<secret><![CDATA[{S}]]></secret>",
        f'Content-Disposition: form-data; name="password"\r\n\r\n{S}\r\n--x', f'["mysqladmin", "-p{S}"]',
        f"BASIC_AUTH=u:{S}", f"gh auth login --with-token <<< '{S}'", "secrets:\n  - Qz7mKx91LpRt\n", f'Fernet(b"{S}")',
        f"A temporary password is generated for root@localhost: {S}", "密码是Qz7mKx91Lp", f"db.password=\\\n  {S}\n",
        "SENDGRID_KEY=3f2504e0-4f89-41d3-9a0c-0305e82c3301", "Uid=sa;Pwd=kqzvbnwpxmtr;", "{password: kqzvbnwpxmtr}",
        "host=a password=kqzvbnwpxmtr", "user=a&password=kqzvbnwpxmtr&x=1", "ftp u:Qz7mKx91Lp@db.example.org",
        f"<AdministratorPassword><Value>{S.replace('&', '')}</Value></AdministratorPassword>",
        "INSERT INTO u (a, password) VALUES ('x', 'Qz7mKx91')", "| user | password |\n|---|---|\n| mira | Qz7mKx91 |",
        "+PASSWORD=[-Qz7mKx91Lp-]{+Zq8nLw20Mk+}", "... cut ...\n" + "Qz7mKx91" * 8 + "\n-----END PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_no_piece_of_a_value_comes_out_of_everyday_configuration(text: str) -> None:
    masked = redact(text)
    pieces = ("k2w@9f", "b3n_q1z", "951bc3", "0Wd8bq2c9", "Qz7mKx91", "Zq8nLw20", "3f2504e0", "kqzvbnwp")
    assert masked != text and not [piece for piece in pieces if piece in masked]


def test_letters_are_a_password_where_only_configuration_sets_them() -> None:
    texts = (
        "db:\n  user: app\n  password: {}\n", "user=app\npassword={}\n", "[mysql]\nuser = app\npassword = {}\n",
        "ENV DB_PASSWORD {}\n", "psql 'host=a password={} sslmode=require'", "https://u:{}@h.example", "ENV A_PASS {}",
        "<password>{}</password>", "a.setPassword('{}')", "az login -u me -p {}", "openssl rsa -passin pass:{}",
    )  # fmt: skip
    for word in ("walnutharbor", "walnut_harbor_tulip", "walnut.harbor.tulip"):
        assert [text for text in texts if word in redact(text.format(word))] == []


def test_a_command_that_prints_a_secret_is_known_unless_it_goes_elsewhere(tmp_path: Path) -> None:
    printing = (
        "pass show work/db;op read op://a/b/c;cd a && terraform output -raw x;aws --profile p secretsmanager"
        " get-secret-value --query SecretString;echo $(gh auth token);sudo cat /etc/shadow;ssh host 'pass show a/b';"
        "kubectl -n a get secret b -o jsonpath='{.data.password}' | base64 -d;fly ssh console -C 'printenv DB_PASSWORD'"
    )
    silent = (
        "T=$(pass show a/b);pass show a/b | docker login --password-stdin;kubectl get secrets;gh auth status"
        ";op item list;pass show a/b > file;git commit -m 'pass show a/b';terraform output;pass to/from it"
    )
    assert [one for one in printing.split(";") if prints(one) is not Prints.ONLY_A_SECRET] == []
    assert [one for one in silent.split(";") if prints(one)] == []
    mixed = prints("cd a && pass show b/c; make test")
    assert mixed is Prints.ALSO_A_SECRET
    for text in ("Error: b is not in the password store.", "gpg: decryption failed: No secret key\n"):
        assert mask_output(text, Prints.ONLY_A_SECRET, failed=False) == text
    assert prints("dotenv get DB_PASSWORD") is prints("crudini --get a.ini db password") is mixed
    assert mask_output("walnutharbor\n", mixed, failed=False) == f"{PRINTED}\n"
    assert mask_output("Kx9!fooBar77\n3 passed", mixed, failed=False) == f"{PRINTED}\n3 passed"
    log = claude_log(tmp_path / "home", "aaaaaaaa-0000-4000-8000-000000000001").prompt("show it")
    log.call("Bash", {"command": "pass show work/db"}, "correct horse battery").call("Bash", {"command": "ls"}, "a.txt")
    found = index(tmp_path / "index.sqlite3", [str(tmp_path / "home")], otherwise=[])
    texts = [text for _, _, text, _ in contents(tmp_path / "index.sqlite3")["texts"]]
    assert found and PRINTED in texts and "a.txt" in texts and "horse" not in "".join(texts)


# --- disguises

TOKEN = "ghp_" + "a1B2" * 10
HIDDEN = "[redacted: github-token]"


@pytest.mark.parametrize(
    "text",
    [
        TOKEN[:9] + "\u200b" + TOKEN[9:], TOKEN[:9] + "\u00ad\u2060" + TOKEN[9:], TOKEN[:9] + "\\u200b" + TOKEN[9:],
        TOKEN[:9] + "\x1b[31m" + TOKEN[9:] + "\x1b[0m", TOKEN[:9] + "\\u001b[1;31m" + TOKEN[9:],
        TOKEN[:9] + "\\\\u001b[0m" + TOKEN[9:], TOKEN[:3] + "%5F" + TOKEN[4:], TOKEN[:3] + "\\u005f" + TOKEN[4:],
        TOKEN[:3] + "&#95;" + TOKEN[4:],
    ],
)  # fmt: skip
def test_a_token_that_is_split_or_encoded_is_masked_whole(text: str) -> None:
    masked = redact(f"see {text} there")
    assert HIDDEN in masked and "a1B2" not in masked
    assert masked.startswith("see ") and masked.endswith(" there")


@pytest.mark.parametrize(
    "text",
    [
        "Password: **{0}**", "**Password:** {0}", "the password is <b>{0}</b>", "the password is __{0}__",
        "docker login -u me -p **{0}** registry.example.org", '""password"": ""{0}""', "'password': '\\''{0}'\\''",
        "password:\u00a0{0}", "password%3A+{0}%0A", "-password: |\n-  {0}",
        "     1\u2192password: |\n     2\u2192  {0}", "The password for the old server: {0}",
        'password = "a1b2\\"{0}"', '{{"Key": "db.password", "Type": "SecureString", "Value": "{0}"}}',
        '"db_password": {{"sensitive": true, "value": "{0}"}}', "MY_TOKEN=s.{0}", "join --token abcdef.{0}",
    ],
)  # fmt: skip
def test_a_secret_is_masked_between_emphasis_and_other_quotes_and_after_other_blanks(text: str) -> None:
    assert "hunter2X9zebra7Q" not in redact(text.format("hunter2X9zebra7Q"))


@pytest.mark.parametrize("between", ["\\\n", "\\\n    ", "\\ ", "\n"])
def test_a_token_that_is_wrapped_is_masked_with_its_rest(between: str) -> None:
    wide = f"{'the token that the deployment uses is':<40}"
    assert redact(f"{wide}{TOKEN}{between}Qz7mKx91LpRt5Wn8Vb2s\nnext line") == f"{wide}{HIDDEN}\nnext line"
    assert redact(f"{wide}{TOKEN}\nrequirements-of-the-project.txt\n") == (
        f"{wide}{HIDDEN}\nrequirements-of-the-project.txt\n"
    )


@pytest.mark.parametrize("wide", [0, 40])
@pytest.mark.parametrize(
    "following",
    ["FEATURE=enable-New-checkout-2026", "COMMIT=3fa9c21B7d0e4f5a6b7c8d9e0f1a2b3c", "- BuildNumber20261128release", ""],
)
def test_a_setting_on_the_line_after_a_token_stays(following: str, wide: int) -> None:
    text = f"{'':>{wide}}OPENAI_API_KEY={{}}\n{following}\nrest"
    assert redact(text.format(TOKEN)) == text.format(HIDDEN)


@pytest.mark.parametrize("before", ["", "x", "xy"])
@pytest.mark.parametrize("secret", [TOKEN, '{"password": "correct-horse-1"}', "API_KEY=abcdef123456"])
def test_a_run_of_base64_that_holds_a_secret_is_masked_whole(before: str, secret: str) -> None:
    packed = base64.b64encode(f"{before} {secret} and more".encode()).decode()
    assert redact(f"data: {packed}\n") == "data: [redacted: base64-secret]\n"
    wrapped = "\n".join(packed[at : at + 76] for at in range(0, len(packed), 76))
    assert redact(wrapped) == "[redacted: base64-secret]"


def test_base64_of_anything_else_stays() -> None:
    for said in (b"hello, world " * 20, bytes(range(256)) * 40, b"a password is needed here, a token, a secret"):
        packed = base64.b64encode(said).decode()
        assert redact(packed) == packed


def test_a_secret_stands_in_the_query_of_an_encoded_url() -> None:
    assert "k7w2mq94xd3t" not in redact("https://a.org/?next=%2Flogin%3Faccess_token%3Dk7w2mq94xd3t%26x%3D1")
    assert "hunter2x" not in redact("{\\u0022password\\u0022:\\u0022hunter2x\\u0022}")


@pytest.mark.parametrize(
    "text",
    [
        "550e8400-e29b-41d4-a716-446655440000 /home/user/projects/secret/token/password.py:12",
        "<hook_context>Remember: PWD=/home/mira/projects/tidepool</hook_context>",
        "<note>GOOGLE_APPLICATION_CREDENTIALS=/home/mira/keys/tide-sa.json</note>",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (HEAD -> main)",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        '"integrity": "sha512-K0Ptm/47OKfQRpNQ2J/oIN/3QYiK6FwW+eJbILhsdxh2WTdq4mLC6g=="',
        "**Designing token signing**, **API Key Fallback**, [app-token change](https://a.org/2026-x1), `x_token` p.2x",
        "task-agent-12-change-proof, risk-based-approach-to-things, disk-usage-of-everything-there",
        '"max_tokens": 4096, "token_count": "1234567890", "tokens": "abcdefgh12"',
        "token=REDACTED password: '[redacted: x]' secret = \"<your secret>\" api_key=****************",
        "def login(password: str, token: AccessToken, api_key=settings.API_KEY2, secret=get_secret1())",
        "api_key = os.environ['API_KEY'], const token = await fetchToken(user1), password = $PASSWORD1",
        "https://example.org:8443/a@b, git@x.org:o/n.git, ssh://git@host:22/x, postgres://user:password@localhost/db",
        "TOKEN_FILE=/run/secrets/token1 PASSWORD=/run/secrets/db1 SECRET_KEY=os.environ['X1']",
        "Press any key: the token is expired; password: must be 8 characters",
        "ghp_" + "x" * 36 + " ANTHROPIC_API_KEY=sk-ant-... STRIPE_SECRET_KEY=sk_test_...",
        '<span class="token string" style="color:#e31">&quot;guest&quot;</span> urn:a:oauth:token-type:access_token7',
        'self.db_password = "".join(letters), storageKey="app:fetch:v2", gpg --recv-keys ' + "A1B2C3D4" * 5,
        "password: choose-a-strong-one, password=reset-password-form-input, Password: UserDetailsService",
        "| API_KEY | string | required |\n| KEY_COUNT | a1b2c3d4e5f6 | x |",
        "CLIENT_SECRET=\nREDIRECT_URI=http://a.org/x1\n+API_TOKEN=\n+API_URL=https://a.org/v1\n2\tX_TOKEN=\n3\tY=a1b2c3",
        "private_key: Ed25519PrivateKey | Ed448PrivateKey, token: AccessTokenV1, password = process.argv[2]",
        'ERR_PASSWORD = "ERR_PASSWORD_TOO_SHORT_8", pass: 12/14, proxy_auth=proxy.raw_auth',
        "jwt: completionJwt, password: z.string().min(6, private_key = vec![0u8; 32], if (token === '--no-emit-zod')",
        "Authorization: Bearer {token}, Bearer <token>, bearer of unpleasant-surprises",
        "cache_key = f'user:{user_id}:v2-a1b2c3', primary key: 0a1b2c3d4e5f6071, sort_key=2026-11-22T10:00:00Z",
        'HKDF(salt="CipherBox-v1"), "Ns::Type::AccessKey": "0a1b2c3d4e5f6071", "token": "iVBORw0KGgoAAAANSUhEUgAAAAEA"',
        "name,token_count,max_tokens\nrun-1,a1b2c3d4e5f6,4096\nkind: ConfigMap\ndata:\n  colour: a1b2c3d4e5f60718\n",
        "'http://a:80','b@c' 'http://h:8080?x=a@b', Cookie: a=Qz7mKx91LpRt, \"password\": \"change-forgot-user-data\"",
        "INSERT INTO users (id, primary_key) VALUES (1, 'a1b2c3d4e5f60718')",
        "docker login registry.example.org && docker push registry.example.org/app:1.2.3",
        'curl -u "$USER:$PASSWORD" https://example.org/, mysql -p, redis-cli -a "$REDIS_PASSWORD"',
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        *(
            (f"call_iBQMwffF7gibMKI1KbRwmkP0/{TOKEN}{end}", f"call_iBQMwffF7gibMKI1KbRwmkP0/{HIDDEN}{end}")
            for end in ("", "/b")
        ),
        ("postgres://app:hunter2@db/app", "postgres://app:[redacted: url-password]@db/app"),
        (
            "curl -H 'Authorization: Bearer abc12345'",
            "curl -H 'Authorization: Bearer [redacted: authorization-header]'",
        ),
        ('{\\"api_key\\": \\"zq7zzzzz\\"}', '{\\"api_key\\": \\"[redacted: secret]\\"}'),
        ("x-api-key: 0a7b2e3d4c", "x-api-key: [redacted: secret]"),
        ("GITHUB_TOKEN=ghp_" + "a1" * 18, "GITHUB_TOKEN=[redacted: github-token]"),
        ("API key Qz7mKx91LpRt", "API key [redacted: secret]"),
        ('"partner_key": "Qz7mKx91LpRt5Wn8Vb2s"', '"partner_key": "[redacted: key]"'),
        ("Server=db;Password=violet-quartz-tulip-turtle;", "Server=db;Password=[redacted: password];"),
        ('"password": "change-strength-relearn-reliably"', '"password": "[redacted: password]"'),
        ("passphrase: TimberPuzzleJungleBadger", "passphrase: [redacted: password]"),
        ("la password è Muffin_5988b", "la password è [redacted: password]"),
        ("| WEBHOOK_SECRET | `mY05hIUZw` | x |", "| WEBHOOK_SECRET | `[redacted: secret]` | x |"),
        ("url,password,note\nx.org,Qz7mKx91,\n", "url,password,note\nx.org,[redacted: password],\n"),
        ("tacacs-server key Qz7mKx91Lp", "tacacs-server key [redacted: command-secret]"),
        ('mira : EAP "Willow.4492a"', 'mira : EAP "[redacted: vpn-password]"'),
        ("recovery codes:\n  bg5fyytpwy\n  3qtxmmnpzz", "recovery codes:\n  [redacted: recovery-codes]"),
        ("Output:\nUnseal Key 1: " + "Qz7mKx91" * 5, "Output:\nUnseal Key 1: [redacted: secret]"),
        ("<note>DB_PASSWORD=Umber_hazel_9222</note>", "<note>DB_PASSWORD=[redacted: password]</note>"),
        ("<note>DB_PASSWORD: |\n  Umber_hazel_9222</note>", "<note>DB_PASSWORD: |\n  [redacted: password]</note>"),
        (f"+token: >-\n+  {'Qz7mKx91' * 3}\n+  {'91LpRt5W' * 3}\n", "+token: >-\n+  [redacted: secret]\n"),
        ("<D>" + "Qz7mKx91" * 6 + "\n", "<D>[redacted: rsa-key-value]\n"),
        ('{"name": "DB_PASSWORD", "value": "Qz7mKx91"}', '{"name": "DB_PASSWORD", "value": "[redacted: password]"}'),
        ("kind: Secret\ndata:\n  colour: Ymx1ZQ==\n", "kind: Secret\ndata:\n  colour: [redacted: kubernetes-secret]\n"),
    ],
)
def test_only_the_secret_is_masked_not_what_names_it(text: str, masked: str) -> None:
    assert redact(text) == masked


@pytest.mark.parametrize("before", ["\n", "\\n", "\\\\n", "\\t", "1\\t"])
@pytest.mark.parametrize(
    "said",
    [
        "NPM_TOKEN={}", "PWD={}", "DB_PASSWORD_V2={}", "CLIENT_SECRET                  {}",
        "curl -u mira:{} https://example.org/", "echo {} | sudo -S true", "docker login -u me -p {}",
    ],
)  # fmt: skip
def test_a_name_and_a_command_are_known_behind_an_escaped_line_end_or_tabulator(before: str, said: str) -> None:
    assert "Qz7mKx91LpRt5Wn8" not in redact(f"first{before}{said.format('Qz7mKx91LpRt5Wn8')}\\nlast")


def test_a_private_key_goes_as_one_block_even_when_it_was_cut_off() -> None:
    lines = "MIIEpAIBAAKCAQEA0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL\n" * 3
    block = f"-----BEGIN PRIVATE KEY-----\n{lines}"
    assert redact(f"a\n{block}-----END PRIVATE KEY-----\nb") == "a\n[redacted: private-key]\nb"
    assert redact(f"a\n{block}\n[truncated]") == "a\n[redacted: private-key]\n\n[truncated]"
    in_code = 'if text.startswith("-----BEGIN PRIVATE KEY-----"):\n    return 1\n'
    assert redact(in_code) == in_code


# --- JSON ---


PASSWORDS = ["password", "DB_PASSWORD", "passwd"]
SECRETS = ["secret", "api_key", "apiKey", "x-api-key", "access_token", "authToken", "client_secret", "private_key"]
SECRETS += ["Authorization"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *(({"a": [{key: "grey heron"}]}, "password") for key in PASSWORDS),
        *(({"a": [{key: "grey heron"}]}, "secret") for key in SECRETS),
        ({"name": "DB_PASSWORD", "value": "grey heron"}, "password"), ({"a_sig": "Qz7mKx91LpRt5Wn8Vb2s"}, "key"),
        ({"GITHUB_TOKEN": "abcdefgh"}, "secret"), ([{TOKEN: [TOKEN, 1, None]}], "github-token"),
    ],
)  # fmt: skip
def test_a_text_under_a_secrets_name_is_masked_whole_and_says_what_the_name_says(value: Any, kind: str) -> None:
    masked = re.sub(f"grey heron|Qz7mKx91LpRt5Wn8Vb2s|abcdefgh|{TOKEN}", f"[redacted: {kind}]", json.dumps(value))
    assert redact_json(value) == json.loads(masked)


@pytest.mark.parametrize(
    "value",
    [
        *({"password": value} for value in ["", "${VAR}", "<password>", "***", "true", "null", "42", 42, None, False]),
        {"password": "[redacted: x]"}, {"name": "colour", "value": "grey heron"}, {"storage_sig": "grey heron"},
        {"max_tokens": "4096 or more", "token_count": "12345678", "tokens": ["one", "two"], "token": "if"},
    ],
)  # fmt: skip
def test_a_placeholder_under_a_secrets_name_stays_and_what_only_mentions_tokens(value: Any) -> None:
    assert redact_json(value) == value


# --- laws ---

PIECES = st.deferred(lambda: st.sampled_from(_pieces()))


@cache
def _pieces() -> list[str]:
    """Tokens of all forms, and what the corpus has of secrets and of near-misses."""
    cases = [case.text for case in (*secrets(), *near_misses())]
    return [*(_made(form.pattern)[-1] for form in FORMS), *cases]


SIGNS = ["", " ", "\n", "\\n", '"', "=", ": ", "token=", "password: '", "'", "://a:", "@b"]
GLUE = st.sampled_from(SIGNS) | st.text(max_size=3)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(PIECES | GLUE, max_size=6).map("".join))
def test_a_masked_text_stays_as_it_is(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | PIECES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["password", "token", "a"]), inner),
    max_leaves=8,
)


@settings(max_examples=examples(100), deadline=None)
@given(JSON)
def test_a_masked_json_value_stays_as_it_is(value: Any) -> None:
    once = redact_json(value)
    assert redact_json(once) == once


CHANGES: list[Callable[[str], str]] = [
    str, json.dumps, str.upper, lambda text: text.replace(" ", "  "), lambda text: text.replace("=", ": "),
]  # fmt: skip


def _texts() -> list[str]:
    """What the corpus holds, each text written a little differently."""
    plain = [case.text for case in (*secrets(), *near_misses())]
    return [CHANGES[number % len(CHANGES)](text) for number, text in enumerate(plain)]


def _found_by_rule(rule: Carrier, starts: Iterable[int], text: str) -> Iterator[str]:
    """What a rule finds where it begins, without a first look."""
    matches = (_compiled(rule.pattern).match(text, start) for start in starts)
    spans = (span for found in matches if found for span in secret_of(rule, found) if span.tier > Tier.POSSIBLE)
    return (text[span.start : span.end] for span in spans)


def _begins(carrier: Carrier, text: str) -> Iterator[int]:
    """Where the first look of a carrier, read by Python, begins."""
    pattern = _compiled(carrier.begins or carrier.look.pattern, re.IGNORECASE if carrier.look.any_case else 0)
    return (begin.start() for begin in pattern.finditer(text))


def test_what_a_form_or_a_carrier_finds_anywhere_is_masked() -> None:
    missed = []
    for text in part(_texts(), 0, 3):
        masked = MASK.sub("", redact(text))
        found = [
            (form.kind, secret)
            for form in FORMS
            for begin in _compiled(form.bounded).finditer(text)
            for secret in _found_by_rule(form.rule, [begin.start()], text)
        ]
        found += [
            (carrier.kind, secret)
            for carrier in CARRIERS
            for secret in _found_by_rule(carrier, _begins(carrier, text), text)
        ]
        missed += [(kind, secret, text) for kind, secret in found if masked.count(secret) == text.count(secret)]
    assert missed == []


@settings(max_examples=examples(100), deadline=None)
@given(secret=PIECES, before=st.text(max_size=20) | PIECES, after=st.text(max_size=20) | PIECES)
def test_a_text_that_is_looked_at_closely_is_so_whatever_stands_around_it(secret: str, before: str, after: str) -> None:
    assert suspicious(before + secret + after) >= (redact(secret) != secret)


CALLS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([2**64, -(2**63) - 1, "a\0b", "\ud800", "data:image/png;base64," + "A" * 80, "base64,"])
    | st.text(max_size=8)
    | PIECES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["password", "max_tokens", "api-token", "a", "b" * 100]) | PIECES, inner)
    ),
    max_leaves=8,
)


@pytest.mark.thorough
@settings(max_examples=examples(250), deadline=None)
@given(name=st.sampled_from(["Bash", "token", "a\0"]), arguments=CALLS)
def test_one_look_at_a_whole_call_finds_what_looking_at_every_value_finds(name: str, arguments: Any) -> None:
    kept = redact_json(clean_json(arguments))
    expected = call_text(name, kept), {"arguments": kept} if kept is not None else {}
    call = ToolCall(None, name, arguments)
    assert repr(stored(call, unmasked(call))) == repr(expected)


ADVERSARIES = [
    "eyJ", "eyJaaaaaaaa.", "token=", 'token="', "password: ", "secret=aaaaaaaa(", "://a:", "://a:b@",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
    "SG.aaaaaaaaaaaaaaaaaaaa", "\\u0041", "%41", "Z2hw", "password ", "token to ", "eyJhbGciOi", "://",
    "kind: Secret\n", "AKIA0123456789ABCDEF ", "Authorization: Bearer ", "1234567890:A", "MTIzaaaaaaaaaaaaaaaaaaaa.",
    "TOKEN=a/", "api_key=a-", "A", "\\", "**a", '""a', "password for a ", '"token": {"type": "a", ',
    '"name": "token", "type": "a", ', "+a%41", "\\ aaaaaa", "token: |\n", "X_KEY=a", "1→ ", "<D>", "a,password,b\n",
    "a,password,b\nc,d,e\n", "a,pw\n", "a\tpassword\n", "|a|token|\n|-|-|\n", "| password | a1 |\n",
    "insert into a (password) values ('a", '{"name": "a", "value": "', "docker login -p ", "curl -u a:",
    "mysql -h a -p", "echo a1 | ", "Cookie: a=b; ", "machine a login b password ", "mot de passe ", "пароль: ",
    "Private-Lines: 1\nAAAA", "otpauth://a?", "define('A_TOKEN', '", "password = a1 -> ", "\u200b", "é", "=>dsn",
    "salt=>", "%3Dconnection_stringghp_Authorization",
]  # fmt: skip
"""What makes a rule begin to look, to be repeated."""


EVERY_LAYER = " \\u0041 %41 &amp; \u200b " + base64.b64encode(f"password: {TOKEN}".encode()).decode()
"""What makes everything be looked into that may be encoded."""


@pytest.mark.parametrize("name", ["password: ", "password = '", "API_KEY=", "token ", "curl -u a:", "<secret>"])
def test_no_value_makes_the_search_slow(name: str) -> None:
    """What is repeated in a value must not be tried in every way in which it can be split."""
    units = ["".join(unit) for length in (1, 2, 3) for unit in product("aA0_.", repeat=length)]
    start = time.process_time()
    for unit in units:
        redact(f"{name}{unit * 100}!\n{name}{unit * 100}\n")
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("seed", [*part(ADVERSARIES, 0, 3), pytest.param(DENSEST, marks=pytest.mark.thorough)])
def test_no_text_makes_the_search_slow(seed: str) -> None:
    length = max(LENGTH, 25_000) if seed == DENSEST else LENGTH
    text = seed * (length // len(seed)) + EVERY_LAYER
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < SECONDS * length / 10_000


# --- the real logs ---


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)


def test_almost_nothing_is_masked_in_published_logs(logs: Path) -> None:
    """Their owners cleaned them: what is masked here are test values in source code, four of them by name."""
    masked = 0
    for path in (p for p in logs.rglob("*.jsonl") if p.is_file() and p.stat().st_size < LARGEST):
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                texts = list(leaves(json.loads(line)))
            except ValueError:
                texts = [line]
            masked += sum(redact(text) != text for text in texts)
    assert masked <= 10


@pytest.mark.parametrize(
    "table",
    [
        "id|password|email\n1|{}|a@b.de\n2|{}|c@d.de\n", "id,name,password\n,bob,{}\n7,al,{}\n",
        "id\tpassword\tname\n1\t{}\t\n2\t{}\tbo\n", "| id | password |\n|---|---|\n| 1 | {} |\n|2|{}|\n",
        'id,password,name\n1,"{}",al\n2,{},bo\n',
    ],
)  # fmt: skip
def test_a_column_of_secrets_is_masked_in_every_row(table: str) -> None:
    """As sqlite3, CSV with an empty first cell, TSV with an empty last one, Markdown and quoted CSV have it."""
    assert redact(table.format("hunter2Xk9!qzP", "Zk8#kfjW3pq")) == table.format(*["[redacted: password]"] * 2)


@pytest.mark.parametrize(
    "name", ["Cookie: a=", "password=", "-----BEGIN RSA PRIVATE KEY-----\n", "Authorization: Bearer "]
)
def test_a_value_longer_than_what_it_is_judged_by_is_masked_to_its_end(name: str) -> None:
    value = "".join(f"k{number * 7919 % 100_003}Qz" for number in range(4_000))
    masked = redact(f"before {name}{value} behind")
    assert value[-200:] not in masked and value[:200] not in masked and len(masked) < 200
    crowded = redact(f"{name}k3Vz8QpL5w\n" * 1_000 + f"before {name}{value} behind")
    assert value[-200:] not in crowded and value[:200] not in crowded


@pytest.mark.parametrize("length", [300, 3_000, 30_000])
def test_a_token_that_is_told_by_its_end_is_masked_however_long_it_is(length: int) -> None:
    claims = base64.urlsafe_b64encode(("{" + '"sub":"4f9a17c2","roles":["admin"],' * (length // 34) + "}").encode())
    header, signature = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "q8Zt3vLw0XkR7yPd2NcB5mHs9uJf4aGe1TiOo6KxVbY"
    token = f"{header}.{claims.decode().rstrip('=')}.{signature}"
    assert redact(f"got {token} back") == "got [redacted: jwt] back"


def test_rows_of_weak_passwords_dont_end_the_masking_of_the_rows_below() -> None:
    weak = [f"user{number},mypony{number}\n" for number in range(8)]
    strong = [f"other{number},Xk{number}v9Qz3LpW\n" for number in range(8)]
    masked = redact("user,password\n" + "".join(weak + strong))
    assert "v9Qz3LpW" not in masked and "mypony" not in masked
