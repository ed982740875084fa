r"""Carriers of secrets that have no form of their own: a header, a command, a statement, a URL.

A carrier has a first look, a Hyperscan pattern that shows where to begin, and a Python pattern that is matched there.
Its group `secret` is masked, unless the check named by `unless` says that it is not a secret, or `names.strength` says
that the name in its group `name` is not a secret's. Assignments are read in `assignments.py`.

Texts in logs are nested in quotes: a quotation mark may follow backslashes, a newline may be written `\n`.
"""

from __future__ import annotations

from msgspec import Struct

from agtrace_indexer.redact.scanner import Look


class Carrier(Struct, frozen=True):
    """One way of carrying a secret."""

    kind: str
    """The kind in the mask."""
    looks: tuple[Look, ...]
    pattern: str
    unless: str = ""
    """The check (`checks.fails`) that recognizes values that aren't secrets; empty if there is none."""
    begins: str = ""
    """The pattern of its beginning, if that isn't its first look."""


def _look(*patterns: str) -> tuple[Look, ...]:
    return tuple(Look(pattern, any_case=True) for pattern in patterns)


# --- pieces

QUOTE = r"\\{0,15}[\"'`]"
CLOSED = rf"(?:{QUOTE}){{0,2}}[\])]{{0,2}}(?:{QUOTE})?"
"""What may come between a name and the sign: closing quotes and brackets."""
ARGUMENT = rf"(?:\*{{2,3}})?(?P<quote>{QUOTE})?(?P<secret>(?(quote)(?:(?!(?P=quote))[^\n]){{3,500}}|[^\s\"'`\\|;&<>()\[\]{{}}]{{4,}}))"
"""An argument of a command."""
ON = r"(?:[^\n|;&]|\\\r?\n){0,400}?(?:[ \t]|\\\r?\n[ \t]{0,20})"
"""From a command to one of its arguments, even across continued lines."""
_WORDS = r"(?:[^\n|;&]|\\\r?\n)*"
NOT_A_PATH = r"(?![A-Za-z0-9_./-])"
TOKEN = r"[A-Za-z0-9._~+/=:|-]"


def _command(tool: str, rest: str, unless: str = "no_option", look: str = "", begins: str = "") -> Carrier:
    """Return a carrier that begins with a word, or with a blank, and contains a secret."""
    return Carrier("command-secret", (Look(look or tool, any_case=True),), rf"(?i:{tool})(?:{rest})", unless, begins)


def _tool(names: str, look: str, option: str, unless: str = "no_option") -> Carrier:
    """Return a carrier for a tool, given its first look (empty: the tool) and the option or subcommand for a secret."""
    begins = names + r"[ \t\\]"
    return Carrier(
        "command-secret",
        (Look(look or begins, any_case=True),),
        rf"(?i:{names}){NOT_A_PATH}{ON}{option}{ARGUMENT}",
        unless,
        begins,
    )


def _subcommand(names: str, look: str, option: str, unless: str = "no_option") -> Carrier:
    """Return a carrier for a tool's subcommand or option with an everyday name, only looked for after the tool."""
    return _tool(names, rf"{names}[ \t\\]{_WORDS}{look}", option, unless)


COMMANDS = (
    _tool("(?:sshpass|mongo(?:sh|dump|restore|export|import)?)", "", r"-p[ \t]{0,4}"),
    _subcommand("(?:docker|podman|nerdctl|helm|oc|az|kaggle|crane|skopeo|buildah)", r"login[ \t]", r"login[ \t](?:[^\n|;&]|\\\r?\n){0,200}?(?:-p|--password)[ \t=]{1,4}"),
    _tool("(?:unzip|zip|sqlcmd|bcp|osql)", "", r"-P[ \t]{0,4}"),
    _tool("(?:mysql(?:dump|admin|import|show|check|sh)?|mariadb(?:-dump|-admin)?|7z[ar]?|rar|unrar)", "", r"-p"),
    _command(r"[ \t]--?u(?:ser(?:name)?)?[ \t=]", rf"[^\s\"'`|;&]{{1,80}}(?:[ \t][^\s|;&]{{1,80}}){{0,3}}[ \t]--?(?:p|P|pass|passwd|pw)[ \t=]{{1,4}}{ARGUMENT}", "no_login_option", look=r"[ \t]--?u(?:ser(?:name)?)?[ \t=]"),
    _tool("redis-cli", "", r"(?:-a|--pass|auth|AUTH)[ \t]{1,4}"),
    _tool("(?:https?|xh)", r"[ \t]-a[ \t]", r"-a[ \t]{1,4}", "no_mixture"),
    _subcommand("(?:cargo|vault|bw|bao|npm|tea|fly)", r"(?:login|unlock)[ \t]", r"(?:login|unlock)[ \t]{1,4}(?:[^\s@]{1,60}@[^\s]{1,60}[ \t])?(?!-)", "no_told"),
    _tool("(?:vault|bao)", r"unseal[ \t]", r"operator[ \t]unseal[ \t]{1,4}(?!-)", "no_mixture"),
    _subcommand("(?:codecov(?:\\.io/bash\\))?|uploader|dotnet|nuget|gem|netlify|cloudflared)", r"(?:-t|-k|--key|--auth|setapikey|service[ \t]+install)[ \t]", r"(?:-t|-k|--key|--auth|set[aA]pi[kK]ey|service[ \t]install)[ \t]{1,4}", "no_pushed"),
    _tool("(?:npm|pnpm|yarn|poetry|composer|bundle|pulumi)[ \t]+config", "", r"(?:[^\s]{1,120}[ \t]{1,4}){1,5}(?:[^\s:/\"']{1,60}:)?(?=[^\s\"']{1,300}(?:[\s\"']|\Z))", "no_pushed"),
    _tool("mc", r"(?:alias[ \t]set|host[ \t]add)", r"(?:alias[ \t]set|config[ \t]host[ \t]add)[ \t](?:[^\s]{1,120}[ \t]{1,4}){3}", "no_pushed"),
    _tool("aws", r"put-parameter", r"ssm[ \t]put-parameter[ \t](?=[^\n]{0,300}SecureString)[^\n]{0,300}?--value[ \t=]{1,4}", "no_value"),
    _tool("(?:eas|doppler|wrangler|gcloud|pulumi)", r"secrets?[: \t]+(?:create|put|set|versions)", r"secrets?(?:[: \t]{1,2}(?:create|put|set|versions add))[^\n|;&]{0,200}?(?:--value[ \t=]{1,4}|<<<[ \t]{0,4})", "no_value"),
    _tool("dotnet", "user-secrets", rf"user-secrets[ \t]{{1,4}}set[ \t]{{1,4}}(?:{QUOTE})?[A-Za-z0-9:_.-]{{1,80}}(?:{QUOTE})?[ \t]{{1,4}}", "no_value"),
    _tool("influx", "", r"(?:-t|--token)[ \t=]{1,4}"),
    _tool("signtool", "", r"/p[ \t]{1,4}"),
    _tool("security", "add-(?:generic|internet)-password", r"-w[ \t]{1,4}"),
    _command(r"> AUTH ", r"(?P<secret>[^\s\"'\\]{6,200})"),
    _command("(?:expdp|impdp|sqlplus|rman)[ \t]", r"[ \t]{0,4}[A-Za-z0-9_]{1,30}/(?P<secret>[^\s@\"'/]{4,100})(?=[@\s\"'\\])", "no_value"),
    _command(r"sonar\.login=", r"(?P<secret>[0-9a-f]{40})", look=r"sonar\.login="),
    _tool("cryptsetup", "", r"<<<[ \t]{0,4}", "no_value"),
    _tool("(?:rabbitmqctl|grafana-cli|wpa_passphrase|nmcli|plink|psexec|runas|xfreerdp|schtasks|netsh)", "", r"(?:(?:add_user|change_password|reset-admin-password|HomeNet|password|-pw|/p:|/rp)[ \t:]{0,4})(?:[a-z]{1,20}[ \t]{1,4}(?=[^\s-]))?"),
    _command(r"user[ \t]+[^\s]+[ \t]+on[ \t]+>", r"(?P<secret>[^\s\"'`]{4,200})"),
    _tool("etcdctl", "", r"--user[ \t=]{1,4}[^\s:]{1,60}:"),
    _tool("lftp", "", r"-u[ \t]{1,4}[^\s,]{1,60},"),
    _tool("mosquitto_(?:pub|sub)", "", r"-P[ \t]{1,4}"),
    _tool("(?:glab|gitlab|gh)", r"variable[ \t]+set", r"variable[ \t]{1,4}set[ \t]{1,4}[A-Z0-9_]{1,60}[ \t]{1,4}(?!-)"),
    _tool("wpa_passphrase", "", r"[^\s]{1,40}[ \t]{1,4}"),
    _tool("net", r"/user:", r"use[ \t][^\n]{0,120}?/user:[^\s]{1,60}[ \t]{1,4}"),
    _tool("ldap(?:search|modify|add|whoami|passwd|delete)", "", r"-w[ \t]{1,4}"),
    _tool("ssh-keygen", "", r"-[NP][ \t]{1,4}"),
    _command(
        "(?:curl|wget|lftp|https?|xh)",
        rf"{NOT_A_PATH}{ON}(?:-u|--user|--proxy-user|-U|-a|--auth|-E|--cert)(?:[ \t]{{0,4}}|=)(?P<quote>{QUOTE})?[^\s:\"'`\\|;&<>$]{{1,100}}:(?!//)"
        r"(?P<secret>(?(quote)(?:(?!(?P=quote))[^\n]){2,500}|[^\s\"'`\\|;&<>()\[\]{}]{4,}))",
        "no_login",
        look=rf"(?:curl|wget|lftp|https?|xh)[ \t\\](?:{_WORDS}[ \t\n])?(?:-u|--user|--proxy-user|-a|--auth|-e|--cert)",
        begins=r"(?:curl|wget|lftp|https?|xh)[ \t\\]",
    ),
    _command("curl[ \t\\\\]", rf"{ON}(?:-u|--user)(?:[ \t]{{0,4}}|=)(?:{QUOTE})?(?P<secret>[A-Za-z0-9_]{{16,200}}):(?=[\"'\s\\])", "no_mixture"),
    _tool("(?:smbclient|rpcclient|crackmapexec|net use|smbmap)", "", r"-U[ \t]{0,4}(?:[\"'])?[^\s%\"']{1,60}%", "no_value"),
    _subcommand("(?:wandb|railway|supabase|huggingface-cli|hf|expo|eas|circleci|sentry-cli)", r"login[ \t]", r"login[ \t]{1,4}(?:--[a-z-]{2,30}[ \t=]{1,4}|-[a-z][ \t]{1,4})?", "no_mixture"),
    _subcommand("(?:snyk|ngrok|doctl|cloudflared)", r"auth(?:token)?[ \t]", r"(?:auth(?:[ \t]init)?|authtoken|config[ \t]add-authtoken)[ \t]{1,4}(?:-t[ \t]|--access-token[ \t=])?", "no_mixture"),
    _tool("aws", r"--(?:secret-string|secret-binary|master-user-password)", r"--(?:secret-string|secret-binary|master-user-password)[ \t=]{1,4}", "no_value"),
    _tool("aws", r"aws_(?:secret_access_key|session_token)", r"configure[ \t]{1,4}set[ \t]{1,4}(?:aws_secret_access_key|aws_session_token)[ \t]{1,4}"),
    _tool("az", r"keyvault[ \t]+secret", r"keyvault[ \t]{1,4}secret[ \t]{1,4}set[ \t](?:[^\n|;&]|\\\r?\n){0,300}?--value[ \t=]{1,4}", "no_value"),
    _tool("gh", r"secret[ \t]+set", r"secret[ \t]{1,4}set[ \t](?:[^\n|;&]|\\\r?\n){0,200}?(?:--body|-b)[ \t=]{1,4}", "no_value"),
    _tool("(?:vault|bao)", r"(?:kv[ \t]+(?:put|patch)|vault[ \t]+write)", r"(?:kv[ \t]{1,4}(?:put|patch)|write)[ \t](?:[^\n|;&]|\\\r?\n){0,200}?[A-Za-z0-9_.-]{1,60}=", "no_named_option"),
    _tool("(?:fly|flyctl|wrangler|heroku|supabase|gitlab|glab|doppler|infisical|eas)", r"(?:secrets?[ \t:]+(?:set|import|create|put)|config:set|variable[ \t]set)", r"(?:secrets?(?:[ \t:]{1,4}(?:set|import|create|put))|config:set|variable[ \t]set)[ \t](?:[^\n|;&]|\\\r?\n){0,200}?[A-Z][A-Z0-9_]{1,60}=", "no_named_option"),
    _tool("(?:vercel|firebase|wrangler|gcloud|supabase)", r"--(?:value|data|secret-data)[ \t=]", r"--(?:value|data|secret-data)[ \t=]{1,4}", "no_mixture"),
    _command(r"(?:psk|key|secret)[ \t]+ascii-text[ \t]", rf"[ \t]{{0,4}}{ARGUMENT}"),
    _command(r"(?:tacacs|radius)-server[ \t]", r"[^\n]{0,80}?(?<![A-Za-z])key[ \t]{1,4}(?:[0-9][ \t]{1,4})?(?P<secret>[^\s\"']{6,100})", "no_mixture", look=r"(?:tacacs|radius)-server[ \t][^\n]*key[ \t]"),
    _command(r"user(?:name)?[ ]?/[ ]?pass(?:word)?[ ]?[:=]", r"[ \t]{1,4}[A-Za-z0-9._@-]{1,60}[ ]?/[ ]?(?P<secret>[^\s\"'`\\/,;|<>()]{8,100})", "no_login", look=r"user(?:name)?[ ]?/[ ]?pass(?:word)?[ ]?[:=][ \t]+[^\s/]+[ ]?/[ ]?[a-z0-9]"),
    _tool("rclone", "", r"obscure[ \t]{1,4}"),
    _tool("oathtool", "", r"(?:-b|--base32)[ \t]{1,4}", "no_value"),
    _tool("snmp(?:get|set|walk|bulkwalk|trap)", "", r"-[AX][ \t]{1,4}", "no_value"),
    _tool("security", "unlock-keychain", r"-p[ \t]{1,4}", "no_value"),
    _tool("wg", r"(?:private|preshared)-key[ \t]+<\(echo", r"(?:private|preshared)-key[ \t]{1,4}<\(echo[ \t]{1,4}", "no_value"),
    _tool("(?:vercel|pass|docker|podman)", r"(?:env[ \t]+add|insert|secret[ \t]+create)[ \t][^\n]*<<<", r"(?:env[ \t]{1,4}add|insert|secret[ \t]{1,4}create)[ \t][^\n]{0,200}?<<<[ \t]{0,4}", "no_value"),
    _tool("reg", r"/v[ \t]+[A-Za-z]*password", r"add[ \t][^\n]{0,300}?/d[ \t]{1,4}", "no_value"),
    _tool("rootpw", "", r"--plaintext[ \t]{1,4}", "no_value"),
    _command(r"net[ \t]+use[ \t]", r"[ \t]{0,4}[A-Z*]:?[ \t]{1,4}\\\\[^\s]{1,200}[ \t]{1,4}(?P<secret>[^\s/*\"'][^\s\"']{3,100})(?=[ \t]{1,4}/user:)", "no_value"),
    _command(r"connect[ \t]+[A-Za-z0-9_]+/", r"(?P<secret>[^\s@\"'/\\;]{5,100})(?=[@\s\"'\\;]|\Z)", "no_mixture"),
    _command(r"(?:^|\n|\\n)user[ \t]+[A-Za-z0-9._@-]+[ \t]", r"[ \t]{0,4}(?P<secret>[^\s\"'\\]{6,100})(?=[ \t]*(?:\r?\n|\\n|\Z))", "no_mixed", look=r"(?:^|\n|\\n)user[ \t]+[A-Za-z0-9._@-]+[ \t]+[^\s]*[0-9]"),
    _tool("openssl", "", r"-(?:passin|passout|pass|k|K)[ \t]{1,4}(?:pass:)?(?!(?:env|file|fd|stdin):?)"),
    _tool("gpg2?", r"--passphrase", r"--passphrase[ \t=]{1,4}"),
    _tool("(?:kubectl|oc)", r"--from-literal", rf"--from-literal[= ](?:{QUOTE})?[A-Za-z0-9._-]{{1,100}}=", "no_value"),
    _command("--from-literal[= ]", rf"(?:{QUOTE})?[A-Za-z0-9._-]{{1,100}}={ARGUMENT}", "no_value"),
    _command("net[ \t]+user[ \t]", rf"[ \t]{{0,4}}[^\s/]{{1,60}}[ \t]{{1,4}}{ARGUMENT}"),
    _command("(?<![A-Za-z])setx?[ \t]", rf"[ \t]{{0,4}}(?:/[a-z][ \t]{{1,4}})?(?P<name>[A-Za-z_][\w]{{1,60}})(?P<sign>[ \t]{{1,4}}){ARGUMENT}", look=r"setx?[ \t]+(?:/[a-z][ \t]+|-[A-Za-z]+[ \t]+)?[A-Za-z0-9_]*(?:pass|secret|token|key|pwd|cred)[A-Za-z0-9_]*[ \t]"),
    _command("(?<![A-Za-z])set[ \t]+-[a-zA-Z]+[ \t]", rf"[ \t]{{0,4}}(?P<name>[A-Za-z_]\w{{1,60}})(?P<sign>[ \t]{{1,4}}){ARGUMENT}", look=r"set[ \t]+-[a-zA-Z]+[ \t]"),
    _command("htpasswd[ \t]", rf"[^\n|;&]{{0,40}}?-[a-z]{{0,6}}b[a-z]{{0,6}}[ \t]{{1,4}}(?:-[a-zA-Z]{{1,6}}[ \t]{{1,4}}){{0,3}}(?:[^\s-][^\s]{{0,100}}[ \t]{{1,4}}){{1,2}}{ARGUMENT}"),
    _command("(?:requirepass|masterauth|snmp-server[ \t]+community)[ \t]", rf"[ \t]{{0,4}}{ARGUMENT}"),
    _command("sqlplus[ \t]|jdbc:oracle:", r"(?:[a-z]{2,4}:|[ \t]{0,4}(?:-[A-Za-z][ \t]{1,4}){0,3})[^\s/@\"'-][^\s/@\"']{0,60}/(?P<secret>[^\s@\"'/]{3,})@", "no_value"),
    _command(
        "(?:echo|printf|<<<)[ \t]",
        rf"[ \t]{{0,4}}(?:-[ne]{{1,2}}[ \t]{{1,4}}|{QUOTE}%s(?:\\n)?{QUOTE}[ \t]{{1,4}})?(?P<quote>{QUOTE})?(?:[A-Za-z0-9_.-]{{1,60}}:)?(?P<secret>[^\s\"'`\\|]{{4,400}})"
        rf"(?:\\{{0,7}}[\"'`])?[ \t]{{0,4}}\|[ \t]{{0,4}}(?:sudo[ \t]{{1,4}}-S|sudo[ \t]{{1,4}}chpasswd|chpasswd|cryptsetup[ \t]|passwd[ \t]|docker[ \t]{{1,4}}login|"
        r"gh[ \t]{1,4}(?:auth|secret)|podman[ \t]{1,4}login|(?:gcloud|vercel|wrangler|firebase|fly|flyctl|gh|aws|az|kubeseal|vault|docker|podman|npx[ \t]wrangler)[ \t][^\n|;]{0,200}?(?:secrets?|env[ \t]add)(?![A-Za-z]))",
        "no_value",
        look=r"(?:echo|printf|<<<)[ \t]+[^\n|]+\|[ \t]*(?:sudo|chpasswd|passwd|docker|gh|podman|gcloud|vercel|npx|wrangler|firebase|fly|aws|az|kubeseal|vault|cryptsetup)",
    ),
)  # fmt: skip
"""Commands with an argument that is a secret although no name says so."""

OTHERS = (
    Carrier("sentry-dsn", _look(r"https?://[0-9a-f]{32}[:@]"), r"(?i:https?)://(?P<secret>[0-9a-f]{32}(?::[0-9a-f]{32})?)@[A-Za-z0-9.-]{1,100}/[0-9]"),
    Carrier("url-token", _look(r"(?:vless|trojan|ss|vmess|tuic|hysteria2?)://[^\s@]+@"), r"[a-z0-9]+://(?P<secret>[^\s@/?#\"']{8,300})@[A-Za-z0-9\[]"),
    Carrier("masked-value", _look(r"::add-mask::"), r"::add-mask::(?P<secret>[^\s\"'`$]{4,500})"),
    Carrier(
        "call-secret",
        _look(r"(?:jwt\.(?:sign|encode|verify|decode)|hmac\.new|createhmac|getconnection|new pdo|mysqli_connect|new mysqli|dbi->connect)\("),
        rf"(?i:jwt\.(?:sign|encode|verify|decode)\([^\n,]{{1,200}},|hmac\.new\(|createhmac\([^\n,]{{1,40}},|(?:getconnection|new pdo|mysqli_connect|new mysqli|dbi->connect)\([^\n,]{{1,200}},[^\n,]{{1,80}},)"
        rf"[ \t]{{0,4}}b?(?P<quote>{QUOTE})(?P<secret>(?:(?!(?P=quote))[^\n]){{8,500}})(?P=quote)",
        "no_quoted_secret",
    ),
    Carrier("database-password", _look(r":[^\s:@/]{3,40}@(?:tcp|unix)\("), r":(?P<secret>[^\s:@/\"']{3,40})@(?:tcp|unix)\(", "no_url_password"),
    Carrier(
        "authorization-header",
        _look(r"authorization[\\\"'`\]]*[ \t]*(?:[:=]|,)"),
        rf"(?i:authorization){CLOSED}[ \t]{{0,4}}(?:[:=]>?|,)[ \t]{{0,20}}(?:f?{QUOTE})?(?i:(?:bearer|basic|bot|token|apikey|api-key|digest|negotiate|key"
        rf"|oauth|genie[_-]?key|ssws|aws|hmac|klaviyo-api-key|discordbot|splunk|pve[a-z]+)[ \t=]{{1,4}}(?:token=|key=)?(?:{QUOTE})?)?(?P<secret>{TOKEN}{{8,}})",
        "no_header_secret",
    ),
    Carrier("bearer-token", _look(r"bearer(?:[ \t]|%20|\+)"),
            r"(?i:bearer)(?:[ \t]|%20|\+){1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,})", "no_digit"),
    Carrier("basic-auth", _look(r"basic[ \t]+[A-Za-z0-9+/]{8}"),
            r"(?i:basic)[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=])", "no_basic"),
    Carrier(
        "cookie",
        _look(r"cookie2?[\\\"'`\]]*[ \t]*[:=,][ \t]*[\\\"'`]*[^=;\s]+="),
        rf"(?i:cookie2?){CLOSED}[ \t]{{0,4}}[:=,][ \t]{{0,20}}(?:{QUOTE})?(?:[^=;\s\"'\\,]{{1,60}}=[^;\s\"'\\,]{{0,15}};[ \t]{{0,4}}){{0,20}}"
        r"[^=;\s\"'\\,]{1,60}=(?P<secret>[^;\s\"'\\,]{16,}+(?:;[ \t]{0,4}[^=;\s\"'\\,]{1,60}+=[^;\s\"'\\,]*+)*+)",
        "no_cookie",
    ),
    Carrier(
        "session-cookie",
        _look(r"(?:sess(?:ion)?_?id|connect\.sid|laravel_session|remember_token|csrftoken|xsrf-token|auth_session|_session|[^a-z]sid|[^a-z]session|__secure-[a-z0-9.-]+|__host-[a-z0-9.-]+)="),
        r"[^A-Za-z]?[A-Za-z0-9_.-]{2,60}=(?P<secret>[A-Za-z0-9%._~+/:-]{20,})", "no_session"),
    Carrier("url-password", _look(r"://[^\s/@\"'<>`\\]*:[^\s/@\"'<>`\\]+@"),
            r"://[^\s/:@\"'<>`\\]{0,100}:(?P<secret>[^\s/?#\"'<>`\\]+)@(?=[A-Za-z0-9\[_$])", "no_url_password"),
    Carrier(
        "url-password",
        _look(r"(?:postgres(?:ql)?|mysql2?|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|clickhouse|cockroachdb|nats|smtps?|ldaps?|ftps?|sftp|ssh|kafka|oracle|snowflake)"
              r"(?:\+[a-z0-9]+)?://[^\s/:@]*:"),
        r"[A-Za-z0-9+]{3,30}://[^\s/:@\"'<>`\\]{0,100}:(?P<secret>[^\s\"'<>`\\@]{1,200}(?:@[^\s\"'<>`\\@/:]{1,60}(?=@))?)@(?=[A-Za-z0-9\[_$])",
        "no_url_password"),
    Carrier("url-token", _look(r"https?://[A-Za-z0-9_.~%-]{20,}(?::x-oauth-basic|:)?@"),
            r"(?i:https?)://(?P<secret>[A-Za-z0-9_.~%-]{20,200})(?::x-oauth-basic|:)?@(?=[A-Za-z0-9\[])", "no_mixture"),
    Carrier("url-signature",
            _look(r"[?&;](?:amp;)?(?:x-(?:amz|goog|oss)-signature|signature|sig|hmac|hdnts|auth_?code|code|key|apikey|appid|access_key)=[A-Za-z0-9%+/=_~.-]{16}"),
            r"[?&;](?:amp;)?[A-Za-z_-]{2,40}=(?P<secret>[A-Za-z0-9%+/=_~.-]{16,})", "no_signature"),
    Carrier("aws-secret-key", _look(r"secret_?access_?key[\\\"'`\]]*[ \t]*(?:[:=]+>?|,)[ \t]*[\\\"'`]*[A-Za-z0-9/+]{40}", r"aws_?secret(?:_?key)?[\\\"'`\]]*[ \t]*[:=]+>?[ \t]*[\\\"'`]*[A-Za-z0-9/+]{40}"),
            rf"(?i:secret_?access_?key|aws_?secret(?:_?key)?){CLOSED}[ \t]{{0,40}}(?:[:=]+>?|,)[ \t]{{0,40}}(?:{QUOTE})?(?P<secret>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+])"),
    Carrier("azure-account-key", _look(r"(?:AccountKey|SharedAccessKey|SharedSecret|PrimaryKey|AccessKey|Secret)=[A-Za-z0-9+/]{40}"),
            r"[A-Za-z]{6,20}=(?P<secret>[A-Za-z0-9+/]{40,88}={0,2})"),
    Carrier("approle-secret-id", _look(r"secret[_-]?id[\\\"'`\]]*[ \t]*[:= ]"),
            rf"(?i:secret[_-]?id){CLOSED}(?:[ \t]{{0,4}}[:=][ \t]{{0,4}}|[ \t]{{1,40}})(?:{QUOTE})?(?P<secret>[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}})"),
    Carrier("npmrc-token", (Look(r"(?:^|[^A-Za-z0-9])_(?:authToken|auth|password)[ \t]*="),),
            rf"[^A-Za-z0-9]?_(?:authToken|auth|password)[ \t]{{0,4}}=[ \t]{{0,4}}(?:{QUOTE})?(?P<secret>[^\s\"'`\\]{{8,}})", "no_unquoted_secret"),
    Carrier("docker-auth", _look(r"[\"'](?:auth|identitytoken|registrytoken)\\*[\"']"),
            r"(?P<quote>[\"'])(?:auth|identitytoken|registrytoken)\\{0,15}(?P=quote)[ \t]{0,4}:[ \t]{0,4}\\{0,15}(?P=quote)(?P<secret>[A-Za-z0-9+/=_.-]{8,})\\{0,15}(?P=quote)", "no_basic"),
    Carrier("netrc-password", _look(r"(?:login|machine)[ \t\r\n\\][^~]{1,80}password"),
            r"(?:login|machine)(?:[ \t\r\n]|\\{1,7}[nrt]){1,8}[^\s\"'\\]{1,100}(?:[ \t\r\n]|\\{1,7}[nrt]){1,8}(?:(?:login|account)(?:[ \t\r\n]|\\{1,7}[nrt]){1,8}[^\s\"'\\]{1,100}"
            r"(?:[ \t\r\n]|\\{1,7}[nrt]){1,8}){0,2}password(?:[ \t\r\n]|\\{1,7}[nrt]){1,8}(?P<secret>[^\s\"'\\]{3,})", "no_value"),
    Carrier("pgpass-password", _look(r":(?:543[0-9]|6432):[^:\s]+:[^:\s]+:[^:\s]"),
            r":(?:543[0-9]|6432):[^:\s\"']{1,60}:[^:\s\"']{1,60}:(?P<secret>[^\s\"'\\:]{3,})", "no_entry"),
    Carrier(
        "sql-password",
        _look(r"identified[ \t]+(?:with|by)[ \t]", r"password[ \t]+(?:(?:to|for)[ \t]|[(=]?[ \t]*N?\\*')", r"password\(\\*'"),
        r"(?i:identified[ \t]{1,4}(?:with[ \t]{1,4}[A-Za-z0-9_'\"]{1,60}[ \t]{1,4})?by[ \t]{1,4}(?:password[ \t]{1,4})?"
        r"|password[ \t]{0,4}(?:=|to|for[^\n=]{1,60}=)?[ \t]{0,4}(?:password[ \t]{0,4})?\(?)"
        r"N?(?P<quote>\\{0,7}['\"])(?P<secret>(?:(?!(?P=quote))[^\n]){3,500})(?P=quote)",
        "no_sql"),
    Carrier("sql-password", _look(r"identified[ \t]+by[ \t]+[a-z0-9_]"), r"(?i:identified[ \t]{1,4}by)[ \t]{1,4}(?P<secret>[A-Za-z0-9_#$.]{6,60})(?=[\s;\"'\\])", "no_unquoted_sql"),
    Carrier("secure-string", _look(r"convertto-securestring[ \t]+"),
            rf"(?i:convertto-securestring)[ \t]{{1,4}}(?:-(?:String|AsPlainText)[ \t]{{1,4}}){{0,2}}(?P<quote>{QUOTE})(?P<secret>(?:(?!(?P=quote))[^\n]){{3,500}})(?P=quote)", "no_value"),
    Carrier("auth-pair", _look(r"(?:auth|login|credentials?)[ \t]*[=(]+[ \t]*[(\[]?[ \t]*\\*[\"'`]"),
            rf"(?i:auth|login|credentials?)[ \t]{{0,2}}(?:=[ \t]{{0,2}}\(|\(|=[ \t]{{0,2}}\[)[ \t]{{0,2}}(?P<quote>{QUOTE})[^\n\"'\\]{{1,60}}(?P=quote)[ \t]{{0,2}},[ \t]{{0,2}}(?:Some\()?"
            r"(?P=quote)(?P<secret>(?:(?!(?P=quote))[^\n]){3,200})(?P=quote)", "no_quoted_password"),
    Carrier("mnemonic", _look(r"(?:mnemonic|(?:seed|recovery)[_ -]?phrase|seed[_ ]?words)[\\\"'`\]]*[ \t]*[:=]"),
            rf"(?i:mnemonic|seed[_ -]?phrase|recovery[_ -]?phrase|seed[_ ]?words){CLOSED}[ \t]{{0,4}}[:=]{{1,2}}[ \t]{{0,20}}(?:{QUOTE})?(?P<secret>[a-z]{{3,8}}(?:[ ,]{{1,2}}[a-z]{{3,8}}){{11,23}})"),
    Carrier("cookie-jar", (Look(r"(?:TRUE|FALSE)(?:\t|\\+t)[0-9]"),),
            r"(?<=[t\t])(?:TRUE|FALSE)(?:\t|\\{1,7}t)[0-9]{1,14}(?:\t|\\{1,7}t)[^\s\\]{1,80}(?:\t|\\{1,7}t)(?P<secret>[^\s\\\"']{8,})", "no_cookie"),
    Carrier("vpn-password", (Look(r"(?:EAP|XAUTH|PSK|NTLM)[ ]\\{0,3}\""),), r"(?<=:[ ])(?:EAP|XAUTH|PSK|NTLM)[ ](?P<quote>\\{0,7}\")(?P<secret>[^\"\n\\]{4,200})(?P=quote)", "no_value"),
    Carrier("vault-token", (Look(r"[\s\"'=:>]s\.[A-Za-z0-9]{24}(?:[^A-Za-z0-9_(.]|$)"),), r"[\s\"'=:>](?P<secret>s\.(?=[A-Za-z]*[0-9][A-Za-z]*[0-9])(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{24})(?![A-Za-z0-9_(])"),
    Carrier("laravel-key", _look(r"key[\"'][ \t]*=>[ \t]*[\"']base64:"), r"(?i:key)[\"'][ \t]{0,8}=>[ \t]{0,8}[\"']base64:(?P<secret>[A-Za-z0-9+/]{40,100}={0,2})[\"']"),
    Carrier("recovery-codes", _look(r"(?:recovery|backup)[ _-]?codes:[ \t]*(?:\r?\n|\\n)[ \t*-]*[a-z0-9-]{8}"),
            r"(?i:(?:recovery|backup)[ _-]?codes):[ \t]{0,4}(?:\r?\n|\\n)[ \t*-]{0,8}(?P<secret>(?:(?=[a-z-]{0,32}[0-9])[A-Za-z0-9-]{8,32}[ \t]{0,4}(?:\r?\n|\\n)[ \t*-]{0,8}){0,19}(?=[a-z-]{0,32}[0-9])[A-Za-z0-9-]{8,32})(?![A-Za-z0-9-])"),
    Carrier("request-signature", _look(r"Signature=[0-9a-f]{64}"), r"(?i:Signature)=(?P<secret>[0-9a-f]{64})(?![0-9a-f])"),
    Carrier("aws-secret-key", _look(r"secret[ _]access[ _]key[^\n]{0,20}[ :=][A-Za-z0-9/+]{40}"),
            r"(?i:secret[ _]access[ _]key)(?:[ \t]\[[^\]\n]{0,40}\])?[:= \t]{1,6}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])"),
    Carrier("otp-seed", _look(r"(?:totp|hotp)\([ \t]*\\*[\"'][A-Z2-7]{16}"), r"(?i:totp|hotp)\([ \t]{0,4}\\{0,7}[\"'](?P<secret>[A-Za-z2-7]{16,128}={0,6})\\{0,7}[\"']"),
    Carrier("otp-seed", _look(r"(?:setup|2fa|mfa|totp)[ _-]key"), r"(?i:setup|2fa|mfa|totp)[ _-](?i:key)(?:[ \t]{1,4}is|[ \t]{0,4}[:=])[ \t]{1,4}(?P<secret>(?:[A-Z2-7]{4}[ -]?){4,16})(?![A-Za-z0-9])"),
    Carrier("wifi-password", _look(r"WIFI:[A-Z]:"), r"(?i:WIFI):(?:[A-Z]:[^;\n]{0,64};){0,4}P:(?P<secret>[^;\n]{8,63});"),
    Carrier("wifi-password", _look(r"wifi\.begin\([ \t]*\\*\""), r"(?i:wifi\.begin)\([ \t]{0,4}(?P<quote>\\{0,7}\")[^\"\n]{1,64}(?P=quote)[ \t]{0,4},[ \t]{0,4}(?P=quote)(?P<secret>[^\"\n\\]{8,63})(?P=quote)", "no_value"),
    Carrier("wifi-password", _look(r"wpa[_-](?:passphrase|psk)="), rf"(?i:wpa[_-](?:passphrase|psk))=(?:{QUOTE})?(?P<secret>[^\s\"'\\]{{8,63}})", "no_value"),
    Carrier("vpn-password", _look(r"<auth-user-pass>(?:\r?\n|\\n)"), r"(?i:<auth-user-pass>)(?:\s|\\n){1,4}[^\s<\\]{1,100}(?:\s|\\n){1,4}(?P<secret>[^\s<\\]{4,100})(?=(?:\s|\\n){1,4}</)"),
    Carrier("passphrase", _look(r"passphrase(?:>|[ \t](?:for|of|to)[ \t][^\n]{3,60}(?:[ ]is|:)|[\\\"']*[ \t]*[:=]|[ \t]is)[ \t]*[\\\"']*[a-z]+[ ][a-z]+[ ][a-z]+[ ][a-z]"),
            rf"(?i:passphrase)(?:>|[ \t](?:for|of|to)[ \t][^\n]{{3,60}}?(?:[ ]is|:)|{CLOSED}[ \t]{{0,4}}[:=]|[ \t]is)[ \t]{{0,4}}(?:{QUOTE})?(?P<secret>[a-z]{{3,10}}(?:[ ][a-z]{{3,10}}){{3,11}})(?=[\"'\\<.]|\s*\Z|\r?\n)", "no_prose"),
    Carrier("mnemonic", _look(r"(?:(?:recovery|seed)[ _]?(?:phrase|words)|mnemonic|wallet[ _]seed)[^\n]{0,12}[: \n]+[a-z]+[ ][a-z]+[ ][a-z]+[ ][a-z]+[ ][a-z]+[ ][a-z]+[ ]"),
            r"(?i:(?:recovery|seed)[ _]?(?:phrase|words)|mnemonic|wallet[ _]seed)(?:[ \t]is)?[:\s]{1,8}(?P<secret>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})(?![ ]?[a-z])"),
    Carrier("call-secret", _look(r"(?:passwordauthentication|plainauth|credentials)\([ \t]*\\*\"", r"basic_auth[ \t(]+\\*[\"']"),
            r"(?i:(?:passwordauthentication|plainauth|credentials)\(|basic_auth[ \t(]{1,4})[ \t]{0,4}(?:(?P<quote>\\{0,7}[\"'])[^\"'\n\\]{0,100}(?P=quote)[ \t]{0,4},[ \t]{0,4}){1,3}?"
            r"(?<=[, ])(?P=quote)(?P<secret>(?=[^\"'\n]{0,60}[0-9])[^\"'\n\\.]{6,100})(?P=quote)[ \t]{0,4}[,)\n]?", "no_quoted_password"),
    Carrier("login-password", _look(r"(?:login|auth|credentials)[ \t:(]+[A-Za-z0-9._@-]+:[^\s:/)]*[0-9]"),
            r"(?i:login|auth|credentials)[ \t:(]{1,3}(?!(?i:https?|bearer|basic|token|user(?:name)?):)[A-Za-z][A-Za-z0-9._@-]{1,40}:(?P<secret>(?=[^\s]{0,60}[A-Za-z])[^\s:/()\[\]{}\"'`,;<>=]{8,100})(?=[\s).,]|\Z)", "no_bare_password"),
    Carrier("login-password", _look(r"credentials[ \t](?:are|is)[ \t][^\s]+[ \t]*/[ \t]"),
            r"(?i:credentials)[ \t](?:are|is)[ \t][A-Za-z0-9._@-]{1,60}[ \t]{0,2}/[ \t]{1,2}(?P<secret>[^\s\"'`,;]{6,100})", "no_bare_password"),
    Carrier("chpasswd-list", _look(r"chpasswd:\s*list:"), r"(?i:chpasswd):\s{1,40}list:[ \t]{0,4}\|?\s{1,40}[a-z_][a-z0-9_-]{0,31}:(?P<secret>(?!R(?:ANDOM)?\b|\$)[^\s\"']{4,200})"),
    Carrier("parameter-value", _look(r"parameterkey[\\\"']*[ \t]*:[ \t]*[\\\"']*[a-z0-9]*(?:password|secret|token|apikey)[\\\"']*[ \t]*,"),
            rf"(?i:parameterkey){CLOSED}[ \t]{{0,4}}:[ \t]{{0,4}}(?:{QUOTE})[A-Za-z0-9_]{{1,100}}(?:{QUOTE}),[ \t]{{0,4}}(?:{QUOTE})(?i:parametervalue){CLOSED}[ \t]{{0,4}}:[ \t]{{0,4}}(?P<quote>{QUOTE})(?P<secret>(?:(?!(?P=quote))[^\n]){{4,500}})(?P=quote)", "no_value"),
    Carrier("npmrc-token", _look(r"npmAuthIdent"), rf"(?i:npmAuthIdent){CLOSED}[ \t]{{0,4}}:[ \t]{{0,4}}(?:{QUOTE})?[^\s:\"']{{1,100}}:(?P<secret>[^\s\"'\\]{{4,200}})", "no_value"),
    Carrier("encryption-key", _look(r"(?:aes|hmac|encryption|signing|secret)[ _-]?(?:256)?[ _-]?key(?:[ \t]is|[ \t]?:|[ \t]should[ \t]be)[ \t]+[0-9a-f]{32}"),
            r"(?i:aes|hmac|encryption|signing|secret)[ _-]?(?:256)?[ _-]?(?i:key)(?:[ \t]is|[ \t]?:|[ \t]should[ \t]be)[ \t]{1,4}(?P<secret>(?:[0-9a-f]{32}){1,4})(?![0-9A-Za-z])"),
    Carrier("otp-seed", _look(r"otpauth://"), r"(?i:otpauth)://[^\s\"']{1,300}?[?&]secret=(?P<secret>[A-Za-z2-7%=]{8,})"),
    Carrier("wireguard-key", _look(r"(?:Private|Preshared)Key[ \t]*=[ \t]*[A-Za-z0-9+/]{43}="), r"(?i:(?:Private|Preshared)Key)[ \t]{0,20}=[ \t]{0,20}(?P<secret>[A-Za-z0-9+/]{43}=)"),
)  # fmt: skip
"""Headers, URLs, files and statements with forms of their own."""

_GAP = r"(?:[\s>|+#*,;→\"'`-]|[0-9]{1,5}(?=[→:|\t ])|(?<=\n)[^\s:]{1,200}:[0-9]{1,6}:|\\{1,15}[nrt\"])"
"""What listings, diffs and quotations put between the lines of a key."""
_SEGMENT = r"[A-Za-z0-9_-]{8,}+(?:(?:\r?\n|\\{1,7}n)[ \t]{1,20}[A-Za-z0-9_-]{16,}+){0,8}"

BLOCKS = (
    Carrier(
        "private-key",
        (Look(r"----[- ]BEGIN [A-Z0-9 ]*PRIVATE KEY"), Look("----BEGIN OpenVPN Static key")),
        r"----[- ]?BEGIN (?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V[0-9])[ -]?----(?:(?:[A-Za-z0-9+/=\s\\:,>|#*;→\"'.%@<()]|-(?!---))*+-{4,6} ?END [A-Za-z0-9 ]{0,40}(?:PRIVATE KEY|Static key V[0-9])(?: BLOCK)?[ -]?----"
        rf"|(?:{_GAP}*+(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): ?[^\n\\]{{0,200}}+|[A-Za-z0-9+/=]{{32,}}+))+(?:{_GAP}*+[A-Za-z0-9+/=]{{1,63}}(?![A-Za-z0-9]))?)"),
    Carrier("putty-key", (Look(r"Private-Lines:"),),
            rf"Private-Lines: ?[0-9]{{1,4}}(?P<secret>(?:{_GAP}*+[A-Za-z0-9+/=]{{20,}}+)+(?:{_GAP}++Private-MAC: ?[0-9a-f]++)?)"),
    Carrier("rsa-key-value", (Look(r"<(?:D|P|Q|DP|DQ|InverseQ)>[A-Za-z0-9+/]{40}"),), r"<[A-Za-z]{1,8}>(?P<secret>[A-Za-z0-9+/]{40,}={0,2})(?:</|[\s\"'\\]|\Z)"),
    Carrier(
        "jwt",
        (Look(r"eyJ[A-Za-z0-9_-]{4}"),),
        rf"(?:(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf]))eyJ|eyJ(?:hbGciOi|0eXAiOi|raWQiOi|lbmMiOi))[A-Za-z0-9_-]{{4,1500}}\.(?:eyJ{_SEGMENT}(?:\.(?:{_SEGMENT})?)?"
        rf"|{_SEGMENT}\.{_SEGMENT}(?:\.{_SEGMENT}){{0,2}}|(?=\.)(?:\.{_SEGMENT}){{2,3}})"),
    Carrier("json-web-key", (Look(r"\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"[ \t]{0,2}:[ \t]{0,2}\\{0,3}\"[A-Za-z0-9_-]{20}"),),
            r"(?P<quote>\")(?:d|p|q|dp|dq|qi|k)\\{0,15}(?P=quote)[ \t]{0,4}:[ \t]{0,4}\\{0,15}(?P=quote)(?P<secret>[A-Za-z0-9_-]{20,}+)(?:\\{0,15}(?P=quote)|(?=[\r\n])|\Z)"),
    Carrier("kubeconfig-key", (Look(r"client-key-data"),), rf"client-key-data{CLOSED}[ \t]{{0,4}}[:=][ \t]{{0,20}}(?:{QUOTE})?(?P<secret>[A-Za-z0-9+/=]{{16,}})"),
    Carrier("aws-secret-beside-id", (Look(r"A[KS]IA[A-Z0-9]{16}[^A-Za-z0-9/+=]"),),
            r"A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])[^A-Za-z0-9/+=](?:(?:[^\n]|\n(?!\n)){0,60}?[^A-Za-z0-9/+=])??(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", "no_mixture"),
    Carrier("aws-session-token", (Look(r"(?:FwoGZXIvYXdz|IQoJb3JpZ2lu|FQoGZXIvYXdz)[A-Za-z0-9+/=%]{60}"),), r"[A-Za-z0-9+/=%]{72,}"),
    Carrier("aws-key-id", (Look("A[KS]IA[A-Z0-9]{16}"),), "(?<![A-Z+/])A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9+/])"),
    Carrier("twilio-auth-token", (Look(r"AC[0-9a-f]{32}[^A-Za-z0-9]"),), r"AC[0-9a-f]{32}[^A-Za-z0-9\n]{1,12}(?P<secret>[0-9a-f]{32})(?![0-9a-f])"),
)  # fmt: skip
"""Keys of several lines, and tokens recognized by something next to them."""

ALL = (*BLOCKS, *OTHERS, *COMMANDS)
"""All carriers, in order of precedence for naming what several find."""
