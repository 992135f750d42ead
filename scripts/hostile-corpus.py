#!/usr/bin/env python3
"""Writes tests/corpus/*.jsonl: hostile inputs with the answer each must get. Standard library only.

What is expected follows from the rules as they are written down (docs/identity.md, the API's document, DOMAIN's names),
re-stated here on purpose: the corpus shares no code with what it tries. Run from the project's root; the files are committed.
"""

import base64
import json
import re
import urllib.parse
from pathlib import Path

OUT = Path("tests/corpus")


def write(name, cases):
    seen = set()
    with open(OUT / f"{name}.jsonl", "w", encoding="ascii") as file:
        for case in cases:
            assert case["name"] not in seen, case["name"]
            seen.add(case["name"])
            file.write(json.dumps(case, sort_keys=True) + "\n")
    print(f"{name}: {len(seen)}")


# ---------------------------------------------------------------- texts that keep coming back

NASTY = {
    "empty": "",
    "space": " ",
    "spaces": "   ",
    "nul": "a\0b",
    "newline": "a\nb",
    "crlf": "a\r\nb: c",
    "tab": "a\tb",
    "escape": "a\x1b[31mb",
    "bell": "a\x07",
    "delete": "a\x7f",
    "c1": "a\x85b",
    "rtl-override": "a\u202eb",
    "rtl-isolate": "a\u2067b\u2069",
    "arabic-letter-mark": "a\u061cb",
    "zero-width-space": "a\u200bb",
    "zero-width-joiner": "a\u200db",
    "bom": "\ufeffa",
    "line-separator": "a\u2028b",
    "soft-hyphen": "a\u00adb",
    "tag-characters": "a\U000e0041b",
    "interlinear": "a\ufff9b",
    "replacement": "a\ufffdb",
    "noncharacter": "a\uffffb",
    "private-use": "a\ue000b",
    "nfc": "\u00e4",
    "nfd": "a\u0308",
    "zalgo": "a" + "\u0301" * 40,
    "emoji-zwj": "\U0001f468\u200d\U0001f469",
    "fullwidth": "\uff41\uff43\uff4d\uff45",
    "cyrillic-a": "\u0430cme",
    "arabic-digits": "\u0661\u0662\u0663",
    "dot": ".",
    "dotdot": "..",
    "traversal": "../../etc/passwd",
    "backslash": "..\\..\\windows",
    "slash": "a/b",
    "absolute": "/etc/passwd",
    "percent": "%2e%2e%2f",
    "percent-double": "%252F",
    "percent-nul": "%00",
    "semicolon": "a;x=1",
    "question": "a?x=1",
    "hash": "a#b",
    "colon": "a:b",
    "star": "*",
    "comma": "a,b",
    "quote": "a'b",
    "double-quote": 'a"b',
    "sql": "' OR 1=1--",
    "sql-drop": "a'); DROP TABLE cqs_row;--",
    "shell": "|sleep 5",
    "backticks": "`id`",
    "dollar": "$(id)",
    "jndi": "${jndi:ldap://127.0.0.1/a}",
    "template": "{{7*7}}",
    "format": "%s%n%x",
    "csv-equals": "=1+1",
    "csv-plus": "+1",
    "csv-minus": "-1",
    "csv-at": "@SUM(A1)",
    "html": "<script>alert(1)</script>",
    "entity": "&xxe;",
    "cdata": "]]>",
    "urn": "urn:uuid:0",
    "nil-uuid": "00000000-0000-0000-0000-000000000000",
    "braces": "{00000000-0000-0000-0000-000000000000}",
    "upper": "ACME",
    "trailing-dot": "acme.",
    "trailing-space": "acme ",
    "leading-space": " acme",
    "con": "CON",
    "dash": "-",
    "underscore": "_",
    "null-text": "null",
    "true-text": "true",
    "nan": "NaN",
    "infinity": "Infinity",
    "number": "1e400",
    "negative-zero": "-0",
    "64": "x" * 64,
    "65": "x" * 65,
    "128": "x" * 128,
    "129": "x" * 129,
    "255": "x" * 255,
    "256": "x" * 256,
    "500": "x" * 500,
    "501": "x" * 501,
    "10000": "x" * 10_000,
}

UNCLEAN = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def is_id(text, most=64, extra=""):
    return bool(re.fullmatch(f"[A-Za-z0-9._{extra}-]{{1,{most}}}", text)) and text not in (".", "..")


def is_reason(text):
    text = text.strip(" ")
    return 1 <= len(text) <= 500 and not UNCLEAN.search(text)


def is_subject(text):
    clean = text.strip() != "" and len(text.encode()) <= 255 and not UNCLEAN.search(text)
    return clean and not text.lower().startswith("svc:")


STORE = ["items", "accesspoints", "esls", "eccmodels", "ecclinks", "studiolinks", "ecceslimages", "studioeslimages",
         "eslimages", "eslstatuses"]
TENANT = ["esltypes", "designs"]


def is_urn(text):
    parts = text.split("/")
    if parts[0] != "t" or len(parts) not in (2, 4, 6) or not is_id(parts[1]):
        return False
    if len(parts) == 2:
        return True
    if len(parts) == 4:
        return is_id(parts[3]) and (parts[2] == "s" or parts[2] in STORE + TENANT)
    return parts[2] == "s" and is_id(parts[3]) and parts[4] in STORE + TENANT and is_id(parts[5])


def names():
    rules = {
        "tenant_id": is_id,
        "record_id": is_id,
        "tracking_id": lambda text: is_id(text, 128, ":"),
        "queue_name": lambda text: bool(re.fullmatch("[a-z0-9-]{1,64}", text)),
        "reason": is_reason,
        "subject": is_subject,
    }
    for kind, rule in rules.items():
        for name, text in NASTY.items():
            yield {"name": f"{kind} {name}", "kind": kind, "text": text, "valid": rule(text)}
    for name, text in {"svc": "svc:operator-gateway", "svc-upper": "SVC:x", "svc-inside": "asvc:x"}.items():
        yield {"name": f"subject {name}", "kind": "subject", "text": text, "valid": is_subject(text)}
    urns = [
        "t/T", "t/T/s/S", "t/T/designs/D", "t/T/s/S/ecclinks/E", "t/T/s/S/designs/D", "T/T", "t", "t/", "t//", "/t/T", "t/T/",
        "t/T/s", "t/T/s/", "t/T/s/S/", "t/T/s/S/ecclinks", "t/T/s/S/ecclinks/", "t/T/s/S/ecclinks/E/", "t/T/s/S/ecclinks/E/x",
        "t/T/S/S", "t/T/s/S/ECCLINKS/E", "t/T/s/S/nothing/E", "t/T/nothing/E", "t/T/s/S/s/S", "t/T/t/T", "t/T/../U", "t/./s/S",
        "t/T/s/../ecclinks/E", "t/T/s/S/ecclinks/..", "t/T/s/S/ecclinks/.", "t/T%2Fs/S", "t\\T", "t/T/s/S\n", "t/T\0", " t/T",
        "t/T ", "urn:t/T", "t:T", "T", "", "t/T/s/S/ecclinks/E?x", "t/T/s/S/ecclinks/E#x", "t/T;x/s/S", "t/T/s/S/ecclinks/\u00e4",
        "t/T/s/S/ecclinks/" + "x" * 64, "t/T/s/S/ecclinks/" + "x" * 65, "t/" + "x" * 64, "t/" + "x" * 65, "t/" * 10_000,
        "t/*", "t/*/s/*", "t/T/s/S/*/E", "t/T/s/S/ecclinks/*",
    ]
    urns += [f"t/T/{collection}/X" for collection in STORE + TENANT]
    urns += [f"t/T/s/S/{collection}/X" for collection in STORE + TENANT]
    urns += [f"t/{text}/s/S/ecclinks/E" for text in NASTY.values()]
    for number, text in enumerate(dict.fromkeys(urns)):
        yield {"name": f"urn {number}", "kind": "urn", "text": text, "valid": is_urn(text)}


# ---------------------------------------------------------------- tokens

HEADER = {"alg": "EdDSA", "typ": "at+jwt", "kid": "k1"}
# NOW, NOW+600 and the like stand for seconds; the replay fills them in.
CLAIMS = {"iss": "https://id.example", "aud": "operators", "sub": "ada", "iat": "@0", "nbf": "@0", "exp": "@600",
          "jti": "j", "client_id": "c", "scope": "labels:read", "tenants": ["acme"]}


def text_of(value):
    """JSON with "@N" as the number NOW+N."""
    return re.sub(r'"@(-?\d+)"', r"@\1@", json.dumps(value))


def jwt():
    def case(name, header=None, claims=None, sign="good", form="plain", accepted=False, header_text=None, claims_text=None):
        return {"name": name, "header": header_text or text_of(HEADER if header is None else header),
                "claims": claims_text or text_of(CLAIMS if claims is None else claims), "sign": sign, "form": form,
                "accepted": accepted}

    def header(**changes):
        return {**HEADER, **changes}

    def claims(**changes):
        return {**CLAIMS, **changes}

    def without(base, name):
        return {key: value for key, value in base.items() if key != name}

    yield case("good", accepted=True)
    algorithms = ["none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384",
                  "PS512", "ES256", "ES384", "ES512", "ES256K", "eddsa", "EDDSA", "EdDSA ", " EdDSA", "EdDSA\0", "Ed25519",
                  "Ed448", "RSA1_5", "dir", "A256GCM", 1, 0, None, True, [], ["EdDSA"], {}, {"EdDSA": 1}]
    for number, algorithm in enumerate(algorithms):
        for sign in ("good", "hmac-public", "empty", "stranger"):
            yield case(f"alg {number} {algorithm!r} {sign}", header(alg=algorithm), sign=sign)
    yield case("alg missing", without(HEADER, "alg"))
    for sign in ("empty", "short", "long", "zeros", "stranger", "hmac-public", "other-part", "flipped"):
        yield case(f"signature {sign}", sign=sign)
    for name, kid in {"missing": None, "long": "x" * 4_000, "path": "../../dev/null", "sql": "' OR 1=1--", "pipe": "|sleep 5",
                      "nul": "k1\0", "upper": "K1", "space": "k1 ", "array": ["k1"], "number": 1, "empty": "", "object": {}}.items():
        changed = without(HEADER, "kid") if name == "missing" else header(kid=kid)
        # Without a kid every key of the issuer is tried: the signature decides.
        yield case(f"kid {name}", changed, accepted=name == "missing")
    for name in ("jku", "x5u"):
        for number, value in enumerate(["http://127.0.0.1:9/", "https://id.example/keys", "file:///etc/passwd", "http://169.254.169.254/", 1, []]):
            # Ignored, whatever it says: the good signature is what counts, and a stranger's stays refused.
            yield case(f"{name} {number}", header(**{name: value}), accepted=True)
            yield case(f"{name} {number} stranger", header(**{name: value}), sign="stranger")
    for name in ("jwk", "x5c", "x5t", "x5t#S256"):
        yield case(f"{name} stranger", header(**{name: "@stranger"}), sign="stranger")
        yield case(f"{name} good", header(**{name: "x"}), accepted=True)
    for name, value in [("crit", ["exp"]), ("crit", ["b64"]), ("crit", []), ("crit", "exp"), ("b64", False), ("b64", True),
                        ("zip", "DEF"), ("cty", "JWT"), ("enc", "A256GCM")]:
        yield case(f"header {name} {value!r}", header(**{name: value}))
    for typ in ["JWT", "jwt", "dpop+jwt", "logout+jwt", "id+jwt", "svc+jwt", "application/jwt", "", " at+jwt", "at+jwt ", "at", 1,
                None, [], ["at+jwt"]]:
        yield case(f"typ {typ!r}", header(typ=typ))
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt", "Application/AT+JWT"]:
        yield case(f"typ {typ!r}", header(typ=typ), accepted=True)
    yield case("typ missing", without(HEADER, "typ"))
    plain, twice = text_of(HEADER), text_of(CLAIMS)
    for name in HEADER:
        yield case(f"header {name} twice", header_text=plain[:-1] + f', "{name}": {json.dumps(HEADER[name])}}}')
    for name, text in {"array": "[]", "null": "null", "text": '"x"', "number": "1", "empty": " ", "html": "<html>", "bom": "\ufeff" + plain,
                       "trailing": plain + "x", "two": plain + plain, "deep": "[" * 2_000 + "]" * 2_000,
                       "deep object": '{"a":' * 2_000 + "1" + "}" * 2_000, "comment": "/*x*/" + plain, "unclosed": plain[:-1]}.items():
        yield case(f"header is {name}", header_text=text)
        claims_of = text if name in ("array", "null", "text", "number", "empty", "html", "deep", "deep object") else text.replace(plain, twice)
        if name == "unclosed":
            claims_of = twice[:-1]
        yield case(f"claims are {name}", claims_text=claims_of)
    for name in ("iss", "aud", "sub", "exp", "nbf"):
        yield case(f"without {name}", claims=without(CLAIMS, name))
        yield case(f"{name} twice", claims_text=twice[:-1] + f', "{name}": {text_of(CLAIMS[name])}}}')
        yield case(f"{name} twice, the first wrong", claims_text=f'{{"{name}": "x", ' + twice[1:])
        for number, value in enumerate([None, True, False, "", "never", [], {}, [1], 1e308, -1, 0, 2**63, 2**64, 1.5, "1e9", "@0.5"]):
            # An empty aud or sub names nobody, numbers in texts are texts, a time is a whole number of seconds.
            # (An nbf of 0 makes the lifetime longer than the issuer's bound.)
            if name == "sub" and isinstance(value, str) and value != "":
                yield case(f"{name} {number}", claims=claims(**{name: value}), accepted=True)
            else:
                yield case(f"{name} {number}", claims=claims(**{name: value}))
    for number, value in enumerate([True, "", "never", [], {}, 1e308, 1.5, "1e9"]):
        yield case(f"iat {number}", claims=claims(iat=value))
    for name in ("ISS", "Aud", "SUB", "EXP", "Nbf"):
        yield case(f"{name} instead", claims={**without(CLAIMS, name.lower()), name: CLAIMS[name.lower()]})
    for name, iss in {"slash": "https://id.example/", "case": "https://ID.example", "homoglyph": "https://\u0456d.example", "http": "http://id.example",
                      "port": "https://id.example:443", "path": "https://id.example/x", "space": "https://id.example ", "nul": "https://id.example\0",
                      "other": "https://other.example", "local": "reshelf-dev", "array": ["https://id.example"]}.items():
        yield case(f"iss {name}", claims=claims(iss=iss))
    for name, aud, accepted in [("list", ["operators"], True), ("among", ["a", "operators", "b"], True), ("upper", "OPERATORS", False),
                                ("prefix", "operators2", False), ("suffix", "xoperators", False), ("space", "operators ", False),
                                ("list without", ["a", "b"], False), ("list of numbers", ["operators", 1], False), ("empty list", [], False),
                                ("many", [f"a{n}" for n in range(500)] + ["operators"], True), ("service", "reshelf-services", False)]:
        yield case(f"aud {name}", claims=claims(aud=aud), accepted=accepted)
    for seconds, accepted in [(-6, False), (-5, False), (-4, True), (0, True), (1, True), (86_400, True), (86_401, False)]:
        yield case(f"exp now{seconds:+}", claims=claims(exp=f"@{seconds}", **({"nbf": "@0"} if seconds > 0 else {"nbf": "@-600", "iat": "@-600"})),
                   accepted=accepted)
    for seconds, accepted in [(-600, True), (0, True), (4, True), (5, True), (6, False), (600, False)]:
        yield case(f"nbf now{seconds:+}", claims=claims(nbf=f"@{seconds}"), accepted=accepted)
        yield case(f"iat now{seconds:+}", claims=claims(iat=f"@{seconds}"), accepted=accepted)
    for name, text in NASTY.items():
        yield case(f"sub {name}", claims=claims(sub=text), accepted=is_subject(text) and len(text) < 5_000)
    yield case("sub svc", claims=claims(sub="svc:operator-gateway"))
    for name, tenants, accepted in [("star", ["*"], False), ("text", "acme", False), ("number", [1], False), ("null", None, False),
                                    ("look-alike", ["\u0430cme"], False), ("empty", [""], False), ("none", [], True), ("path", ["acme/../rival"], False),
                                    ("many", [f"t{n}" for n in range(700)], True)]:
        yield case(f"tenants {name}", claims=claims(tenants=tenants), accepted=accepted)
    for name, stores, accepted in [("of a tenant not named", ["rival/s1"], False), ("without a store", ["acme"], False), ("path", ["acme/s1/x"], False),
                                   ("star", ["acme/*"], False), ("text", "acme/s1", False), ("good", ["acme/s1"], True), ("empty", [], True)]:
        yield case(f"stores {name}", claims=claims(stores=stores), accepted=accepted)
    for name, scope, accepted in [("array", ["labels:read"], True), ("number", 1, False), ("null", None, False), ("numbers", [1], False),
                                  ("unknown", "everything *", True), ("newline", "labels:read\naudit:read", True), ("empty", "", True)]:
        yield case(f"scope {name}", claims=claims(scope=scope), accepted=accepted)
    yield case("cnf", claims=claims(cnf={"x5t#S256": "x"}))
    yield case("deep claim", claims_text=twice[:-1] + ', "x": ' + "[" * 2_000 + "]" * 2_000 + "}")
    yield case("other claims", claims=claims(amr=["pwd"], x={"y": [1, 2]}), accepted=True)
    for form in ["two-parts", "four-parts", "five-parts", "six-parts", "json", "padded", "standard-alphabet", "trailing-bits", "space-inside",
                 "newline-inside", "leading-dot", "trailing-dot", "empty", "dots", "quoted", "upper", "long", "non-ascii"]:
        yield case(f"form {form}", form=form)


# ---------------------------------------------------------------- requests

def requests():
    def case(name, method, target, expect, headers=None, body=None):
        return {"name": name, "method": method, "target": target, "headers": headers or [], "body": body, "expect": expect}

    quoted = {name: urllib.parse.quote(text, safe="") for name, text in NASTY.items() if text not in ("", ".", "..")}
    # Ids within paths: what is no id is 400 naming it, what is one is 404 here (nobody has it).
    templates = {
        "operation": ("/v1/tenants/acme/operations/{}", lambda text: is_id(text, 128, ":")),
        "tenant": ("/v1/tenants/{}/stores", is_id),
        "store": ("/v1/tenants/acme/stores/{}/labels", is_id),
        "label": ("/v1/tenants/acme/stores/s1/labels/{}", is_id),
    }
    for kind, (template, rule) in templates.items():
        for name, segment in quoted.items():
            text = NASTY[name]
            yield case(f"path {kind} {name}", "GET", template.format(segment), [404] if rule(text) else [400])
    for number, target in enumerate([
        "/v1/tenants/acme/stores/s1/labels/%ff", "/v1/tenants/acme/stores/s1/labels/%c0%ae", "/v1/tenants/acme/stores/s1/labels/%ed%a0%80",
        "/v1/tenants/acme/operations/%80", "/v1/tenants/%f8%88%80%80%80/stores",
    ]):
        yield case(f"not UTF-8 {number}", "GET", target, [400])
    for number, target in enumerate([
        "/", "/v1", "/v1/", "/v2/me", "/V1/me", "/v1/me/", "//v1/me", "/v1//me", "/v1/me/x", "/v1/./me", "/v1/../v1/me", "/v1/me;x=1", "/v1/me%00",
        "/v1/%6de%20", "/v1/tenants//stores", "/v1/tenants/acme/stores/", "/v1/tenants/acme/stores/s1/labels/", "/.env", "/.git/config", "/actuator/env",
        "/debug/pprof", "/admin", "/server-status", "/v1/triggers/", "/v1/triggers/nothing", "/openapi.yaml", "/metrics/", "/healthz/x", "/docs/../v1/me",
    ]):
        yield case(f"no route {number}", "GET", target, [400, 404])
    for number, method in enumerate(["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "FOO", "get", "POST"]):
        yield case(f"method on me {method}", method, "/v1/me", [405])
        yield case(f"method on a label {method}", method, "/v1/tenants/acme/stores/s1/labels/E1", [405])
    for method in ["GET", "PUT", "DELETE", "PATCH", "TRACE"]:
        yield case(f"method on a trigger {method}", method, "/v1/triggers/model-refresh", [405])
    yield case("head", "HEAD", "/v1/me", [200])
    for name in ["x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url", "x-forwarded-for", "forwarded", "x-forwarded-user",
                 "x-remote-user", "x-operator", "x-tenant", "x-scopes", "x-forwarded-client-cert", "x-spiffe-id", "x-service-id", "cookie", "origin",
                 "range", "expect", "upgrade", "http2-settings", "te", "if-match", "if-none-match", "x-request-id", "content-type", "accept",
                 "accept-encoding", "referer", "user-agent", "via"]:
        for number, value in enumerate(["DELETE", "null", "*", "127.0.0.1, 10.0.0.1", "../../etc/passwd", "a" * 8_000, "\t", "bytes=0-0," * 500]):
            # No header but the documented ones changes an answer.
            yield case(f"header {name} {number}", "GET", "/v1/me", [200], [[name, value]])
    for name, value in [("page_size", "0"), ("page_size", "-1"), ("page_size", "201"), ("page_size", "9223372036854775808"), ("page_size", "1.5"),
                        ("page_size", "ten"), ("page_size", ""), ("page_size", " 1"), ("page_size", "0x10"), ("page_size", "\u0661"),
                        ("page_token", "!"), ("page_token", "a=="), ("page_token", "_" * 2_000), ("page_token", "/w"), ("page_token", "gA"),
                        ("sort", "tenant"), ("filter", "1=1"), ("PAGE_SIZE", "1"), ("page_size[]", "1"), ("", "1"), ("page_size\0", "1")]:
        for path in ["/v1/tenants", "/v1/tenants/acme/stores/s1/labels", "/v1/tenants/acme/operations"]:
            yield case(f"query {name!r}={value[:20]!r} {len(value)} at {path}", "GET", path + "?" + urllib.parse.urlencode({name: value}), [400])
    # "a==" and "gA" above are refused as text; this one decodes to a place of no list.
    for text in ["t/rival", "\u00e4", "../..", "x" * 200]:
        token = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        yield case(f"forged page token {text[:10]!r}", "GET", f"/v1/tenants?page_token={token}", [200, 400])
    yield case("page size twice", "GET", "/v1/tenants?page_size=1&page_size=2", [400])
    for tenant in ["rival", "nobody", "ACME", "acme.", "demo"]:
        for path in ["stores", "designs", "operations", "operations/op-1", "stores/s1/models", "stores/s1/labels", "stores/s1/labels/E1",
                     "stores/s1/labels/E1/image.png"]:
            yield case(f"foreign {tenant} {path}", "GET", f"/v1/tenants/{tenant}/{path}", [404])


GOOD = {"tenant_id": "acme", "store_id": "s1", "model_id": "M", "reason": "r", "tracking_id": "t-1", "dry_run": True}


def bodies():
    def case(name, text, expect, field=None, content_type="application/json", path="/v1/triggers/model-refresh"):
        return {"name": name, "body": base64.b64encode(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")).decode(),
                "content_type": content_type, "path": path, "expect": expect, "field": field}

    good = json.dumps(GOOD)
    yield case("good", good, 200)
    rules = {"tenant_id": is_id, "store_id": is_id, "model_id": is_id, "tracking_id": lambda text: is_id(text, 128, ":"), "reason": is_reason}
    for field, rule in rules.items():
        for name, text in NASTY.items():
            known = {"tenant_id": text == "acme", "store_id": text in ("s1", "s2"), "model_id": text in ("M", "N")}
            expect = 400 if not rule(text) else 200 if known.get(field, True) else 404
            if len(text) > 5_000 and expect == 200:
                continue
            yield case(f"{field} {name}", json.dumps({**GOOD, field: text}), expect, field if expect == 400 else None)
        for number, value in enumerate([None, 1, True, [], {}, ["a"], {"a": 1}, 1.5]):
            yield case(f"{field} kind {number}", json.dumps({**GOOD, field: value}), 400, field)
        yield case(f"{field} missing", json.dumps({key: value for key, value in GOOD.items() if key != field}), 400, field)
        yield case(f"{field} twice", good[:-1] + f', "{field}": "x"}}', 400, field)
    for number, value in enumerate([None, 0, 1, "true", "false", "", [], {}]):
        yield case(f"dry_run kind {number}", json.dumps({**GOOD, "dry_run": value}), 400, "dry_run")
    for name in ["tenant", "id", "state", "lease_gen", "attempts", "created_by", "version", "operator", "operator_subject", "queue_name", "items", "scope",
                 "service", "sub", "Tenant_id", "tenantId", "__proto__", "constructor", "$where", ""]:
        yield case(f"unknown field {name!r}", json.dumps({**GOOD, name: "x"}), 400)
    times = {"empty": "", "now": "now", "date": "2026-06-01", "no zone": "2026-06-01T00:00:00", "hour 24": "2026-06-01T24:00:00Z", "minute 60": "2026-06-01T00:60:00Z",
             "leap second": "2026-06-30T23:59:61Z", "zone 60": "2026-06-01T00:00:00+00:60", "month 13": "2026-13-01T00:00:00Z", "feb 30": "2026-02-30T00:00:00Z",
             "rfc 2822": "Mon, 01 Jun 2026 00:00:00 +0000", "seconds": "1780272000", "year 10000": "10000-01-01T00:00:00Z", "comma": "2026-06-01T00:00:00,5Z",
             "long": "2026-06-01T00:00:00." + "0" * 100 + "Z", "nul": "2026-06-01T00:00:00Z\0", "parentheses": "(" * 5_000, "arabic": "\u0662026-06-01T00:00:00Z"}
    for name, text in times.items():
        yield case(f"sla_timestamp {name}", json.dumps({**GOOD, "sla_timestamp": text}), 400, "sla_timestamp")
    for number, value in enumerate([1, True, [], {}]):
        yield case(f"sla_timestamp kind {number}", json.dumps({**GOOD, "sla_timestamp": value}), 400, "sla_timestamp")
    broken = {"empty": "", "space": " ", "null": "null", "true": "true", "number": "1", "text": '"x"', "array": f"[{good}]", "array of values": json.dumps(list(GOOD.values())),
              "bom": b"\xef\xbb\xbf" + good.encode(), "utf-16": good.encode("utf-16"), "utf-32": good.encode("utf-32"), "latin-1": '{"reason":"\u00e4"}'.encode("latin-1"),
              "overlong": b'{"reason":"\xc0\xae"}', "surrogate": b'{"reason":"\xed\xa0\x80"}', "lone escape": '{"reason":"\\ud800"}', "nul": good + "\0",
              "trailing comma": good[:-1] + ",}", "comment": "// x\n" + good, "block comment": good + "/* x */", "two": good + good, "single quotes": good.replace('"', "'"),
              "unquoted": good.replace('"reason"', "reason"), "nan": good[:-1] + ', "x": NaN}', "infinity": good[:-1] + ', "x": Infinity}',
              "huge number": good[:-1] + ', "x": 1e400}', "deep arrays": "[" * 10_000, "deep objects": '{"a":' * 10_000, "unclosed": good[:-1], "closed twice": good + "}",
              "control in text": good.replace('"r"', '"\n"'), "bad escape": good.replace('"r"', '"\\x"'), "gzip": b"\x1f\x8b\x08\x00" + b"\x00" * 20,
              "form": b"tenant_id=acme&dry_run=true", "xml": "<tenant_id>acme</tenant_id>", "yaml": "tenant_id: acme", "msgpack": b"\x81\xa1a\x01"}
    for name, text in broken.items():
        yield case(f"body {name}", text, 400)
    yield case("body 65536", good[:-1] + " " * (65_536 - len(good)) + "}", 200)
    yield case("body 65537", good[:-1] + " " * (65_537 - len(good)) + "}", 413)
    yield case("many fields", json.dumps({**GOOD, **{f"f{n}": 1 for n in range(4_000)}}), 400)
    for number, media in enumerate(["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "application/jsonp",
                                    "application/json; charset=utf-16", "application/json; charset=latin1", "application/json;boundary=x", "json", "application/*", "*/*",
                                    "application/problem+json", "application/json, text/plain"]):
        yield case(f"media type {number}", good, 415, "content-type", media)
    for number, media in enumerate(["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"', " application/json "]):
        yield case(f"media type accepted {number}", good, 200, None, media)
    touch = {"records": [{"dto_type": "eccmodel.v1", "dto_id": "t/acme/s/s1/eccmodels/M"}], "reason": "r", "tracking_id": "t", "dry_run": True}
    for number, (record, expect) in enumerate([
        ({"dto_type": "eccmodel.v1", "dto_id": "t/acme/s/s1/eccmodels/M"}, 200), ({"dto_type": "ecclink.v1", "dto_id": "t/acme/s/s1/eccmodels/M"}, 400),
        ({"dto_type": "nothing.v1", "dto_id": "t/acme/s/s1/eccmodels/M"}, 400), ({"dto_type": "eccmodel.v1", "dto_id": "t/acme/s/s1"}, 400),
        ({"dto_type": "eccmodel.v1", "dto_id": "t/rival/s/s1/eccmodels/M"}, 404), ({"dto_type": "eccmodel.v1", "dto_id": "t/nobody/s/s1/eccmodels/M"}, 404),
        ({"dto_type": "eccmodel.v1"}, 400), ({}, 400), ([], 400), (["eccmodel.v1", "t/acme/s/s1/eccmodels/M"], 400), ("t/acme/s/s1/eccmodels/M", 400), (None, 400),
        ({"dto_type": "eccmodel.v1", "dto_id": "t/acme/s/s1/eccmodels/M", "version": 1}, 400), ({"dto_type": "eccmodel.v1", "dto_id": "t/acme/s/s1/eccmodels/../M"}, 400),
    ]):
        yield case(f"touch {number}", json.dumps({**touch, "records": [record]}), expect, None, "application/json", "/v1/triggers/touch")
    for number, records in enumerate([[], None, {}, "x", [touch["records"][0]] * 2, touch["records"] * 1_001, touch["records"] * 6_000]):
        expect = 413 if len(json.dumps({**touch, "records": records})) > 384 * 1_024 else 400
        yield case(f"touch list {number}", json.dumps({**touch, "records": records}), expect, None, "application/json", "/v1/triggers/touch")


# ---------------------------------------------------------------- raw HTTP: bytes on a socket

def raw_http():
    def case(name, head, expect):
        return {"name": name, "bytes": base64.b64encode(head if isinstance(head, bytes) else head.encode("latin-1")).decode(), "expect": expect}

    get = "GET /healthz HTTP/1.1\r\n"
    ok = get + "host: x\r\nconnection: close\r\n\r\n"
    yield case("good", ok, [200])
    post = "POST /v1/triggers/model-refresh HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    for name, fields in {
        "two content-lengths": "content-length: 1\r\ncontent-length: 2\r\n", "content-length list": "content-length: 1, 2\r\n", "content-length plus": "content-length: +5\r\n",
        "content-length minus": "content-length: -5\r\n", "content-length hex": "content-length: 0x5\r\n", "content-length huge": "content-length: 18446744073709551616\r\n",
        "content-length empty": "content-length: \r\n", "content-length text": "content-length: five\r\n", "chunked twice": "transfer-encoding: chunked, chunked\r\n",
        "unknown coding": "transfer-encoding: gzip\r\n", "chunked not last": "transfer-encoding: chunked, gzip\r\n", "coding with nul": "transfer-encoding: chunked\0\r\n",
        "both": "transfer-encoding: chunked\r\ncontent-length: 3\r\n", "space before colon": "content-length : 3\r\n", "obs-fold": "x: a\r\n b\r\n", "bare cr": "x: a\rb\r\n",
        "nul in value": "x: a\0b\r\n", "no colon": "nonsense\r\n", "empty name": ": x\r\n", "space in name": "a b: c\r\n", "non-ascii name": "\xe4: x\r\n",
        "control in value": "x: a\x01b\r\n", "delete in value": "x: a\x7fb\r\n",
    }.items():
        # Refused as a whole, or as an unauthenticated request; never taken for something else.
        yield case(f"field {name}", post + fields + "\r\nabc", [400, 401])
    for name, body in {"size text": "xyz\r\nabc\r\n0\r\n\r\n", "size huge": "ffffffffffffffff1\r\nabc\r\n0\r\n\r\n", "size negative": "-3\r\nabc\r\n0\r\n\r\n", "size space": " 3\r\nabc\r\n0\r\n\r\n",
                       "no crlf": "3\r\nabcd\r\n0\r\n\r\n", "extension": "3;x=" + "y" * 20_000 + "\r\nabc\r\n0\r\n\r\n", "lf only": "3\nabc\n0\n\n", "trailers": "0\r\nx: y\r\nhost: z\r\n\r\n"}.items():
        yield case(f"chunk {name}", post + "transfer-encoding: chunked\r\n\r\n" + body, [400, 401])
    for name, line in {
        "no version": "GET /healthz\r\n", "version 0.9": "GET /healthz HTTP/0.9\r\n", "version 2": "GET /healthz HTTP/2.0\r\n", "version 3": "GET /healthz HTTP/3\r\n", "version text": "GET /healthz HTTP/x\r\n",
        "lower-case version": "GET /healthz http/1.1\r\n", "two spaces": "GET  /healthz HTTP/1.1\r\n", "tab": "GET\t/healthz\tHTTP/1.1\r\n", "space in target": "GET /health z HTTP/1.1\r\n",
        "no slash": "GET healthz HTTP/1.1\r\n", "empty": "\r\n\r\n\r\n", "control in method": "G\x01T /healthz HTTP/1.1\r\n", "nul in target": "GET /health\0z HTTP/1.1\r\n", "long method": "A" * 10_000 + " / HTTP/1.1\r\n",
        "long target": "GET /" + "a" * 40_000 + " HTTP/1.1\r\n", "tls hello": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 100 + "\r\n", "h2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "smtp": "EHLO x\r\n", "ssh": "SSH-2.0-x\r\n", "redis": "*1\r\n$4\r\nPING\r\n", "garbage": "\xff\xfe\xfd\xfc\r\n", "non-ascii target": "GET /\xe4 HTTP/1.1\r\n", "fragment": "GET /healthz#x HTTP/1.1\r\n",
    }.items():
        yield case(f"line {name}", line + "host: x\r\nconnection: close\r\n\r\n", [0, 200, 400, 404, 414, 431, 505])
    for name, target in {"absolute": "http://x/healthz", "absolute other host": "http://evil.example/healthz", "authority": "evil.example:80", "star": "*", "scheme-relative": "//evil.example/healthz",
                         "file": "file:///etc/passwd", "userinfo": "http://a:b@x/healthz"}.items():
        yield case(f"target {name}", f"GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", [0, 200, 400, 404])
    yield case("no host", get + "connection: close\r\n\r\n", [200, 400])
    yield case("two hosts", get + "host: x\r\nhost: y\r\nconnection: close\r\n\r\n", [200, 400])
    yield case("many headers", get + "host: x\r\nconnection: close\r\n" + "a: b\r\n" * 100 + "\r\n", [431])
    yield case("long header", get + "host: x\r\nconnection: close\r\na: " + "b" * 65_536 + "\r\n\r\n", [0, 431])
    yield case("h2c upgrade", get + "host: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n", [200])
    yield case("websocket upgrade", get + "host: x\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-key: x\r\nsec-websocket-version: 13\r\n\r\n", [200])
    yield case("pipelined", get + "host: x\r\n\r\n" + ok, [200])
    yield case("lf line ends", ok.replace("\r\n", "\n"), [200, 400])
    yield case("leading empty lines", "\r\n\r\n" + ok, [200, 400])


# ---------------------------------------------------------------- messages: bytes of an RPC's request

def field(number, wire, payload=b""):
    def varint(value):
        out = b""
        while True:
            low, value = value & 0x7F, value >> 7
            out += bytes([low | (0x80 if value else 0)])
            if not value:
                return out

    key = varint(number << 3 | wire)
    if wire == 2:
        return key + varint(len(payload)) + payload
    return key + payload


def messages():
    def case(name, rpc, body):
        return {"name": name, "rpc": rpc, "bytes": body.hex()}

    rpcs = ["cqs.v1.ChangeQueueService/" + name for name in ("CreateOrConfigureQueue", "Dequeue", "Complete", "ExtendLease", "ReEnqueue", "SelfEnqueue", "GetOperation", "AppendAudit")]
    rpcs += ["dtoflow.v1.DtoFlowService/" + name for name in ("PutMany", "DeleteMany", "GetMany", "ListByAlias", "CountByAlias", "ListStoresByAlias")]
    shapes = {
        "nothing": b"", "truncated key": b"\x80", "key 0": b"\x00", "field 0": b"\x02\x00", "wire 6": b"\x0e", "wire 7": b"\x0f", "group never ended": b"\x0b", "end of no group": b"\x0c",
        "length beyond": b"\x0a\x7fabc", "length 2^31": b"\x0a\x80\x80\x80\x80\x08", "length 2^63": b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "varint of 11 bytes": b"\x08" + b"\xff" * 11,
        "not UTF-8": field(1, 2, b"\xff\xfe"), "overlong UTF-8": field(1, 2, b"\xc0\xae"), "surrogate": field(1, 2, b"\xed\xa0\x80"), "nul": field(1, 2, b"a\0b"), "wrong wire type": field(1, 1, b"\0" * 8),
        "unknown field": field(9_999, 2, b"x" * 1_000), "unknown field 2^29-1": field(2**29 - 1, 2, b"x"), "field 1 twice": field(1, 2, b"a") + field(1, 2, b"b"), "deep groups": b"\x0b" * 200,
        "deep messages": b"".join(b"\x12\x7f" for _ in range(60)), "negative number": field(2, 0, b"\xff" * 9 + b"\x01"), "largest number": field(2, 0, b"\xff" * 8 + b"\x7f"),
        "fields 1 to 40 as texts": b"".join(field(number, 2, b"x") for number in range(1, 41)), "fields 1 to 40 as numbers": b"".join(field(number, 0, b"\x01") for number in range(1, 41)),
        "fields 1 to 40 empty": b"".join(field(number, 2, b"") for number in range(1, 41)), "many empty messages": field(2, 2, b"") * 5_000,
    }
    for rpc in rpcs:
        for name, body in shapes.items():
            yield case(f"{rpc.rsplit('/')[-1]} {name}", rpc, body)
    texts = [name for name in ("nul", "newline", "rtl-override", "traversal", "sql", "jndi", "10000", "empty", "slash", "star")]
    for rpc, number in [("cqs.v1.ChangeQueueService/SelfEnqueue", 1), ("cqs.v1.ChangeQueueService/SelfEnqueue", 3), ("cqs.v1.ChangeQueueService/SelfEnqueue", 4),
                        ("cqs.v1.ChangeQueueService/GetOperation", 1), ("cqs.v1.ChangeQueueService/GetOperation", 2), ("cqs.v1.ChangeQueueService/Dequeue", 1),
                        ("dtoflow.v1.DtoFlowService/ListByAlias", 1), ("dtoflow.v1.DtoFlowService/ListByAlias", 2)]:
        for name in texts:
            yield case(f"{rpc.rsplit('/')[-1]} field {number} {name}", rpc, field(number, 2, NASTY[name].encode()))
    stamps = {"nanos -1": field(1, 0, b"\x01") + field(2, 0, b"\xff" * 9 + b"\x01"), "nanos 1e9": field(1, 0, b"\x01") + field(2, 0, b"\x80\x94\xeb\xdc\x03"),
              "seconds max": field(1, 0, b"\xff" * 8 + b"\x7f"), "seconds min": field(1, 0, b"\x80" * 9 + b"\x01")}
    base = field(1, 2, b"ecc-image-render-service") + field(3, 2, b"r") + field(4, 2, b"t")
    item = field(1, 2, b"ecclink.v1") + field(3, 2, b"t/T/s/S/eccmodels/M") + field(4, 2, b"by_eccmodel")
    for name, stamp in stamps.items():
        yield case(f"SelfEnqueue sla {name}", "cqs.v1.ChangeQueueService/SelfEnqueue", base + field(2, 2, item) + field(5, 2, stamp))
    for number, wrong in enumerate([b"t/T/s/S", b"t/T", b"t/T/s/S/items/I", b"t/T/s/S/esls/E", b"t/T/designs/D", b"t/T/s/S/eccmodels/..", b"eccmodels/M", b""]):
        shape = field(1, 2, b"ecclink.v1") + field(3, 2, wrong) + field(4, 2, b"by_eccmodel")
        yield case(f"SelfEnqueue by_eccmodel under {number}", "cqs.v1.ChangeQueueService/SelfEnqueue", base + field(2, 2, shape))
    both = field(1, 2, b"ecclink.v1") + field(2, 2, b"t/T/s/S/ecclinks/E") + field(3, 2, b"t/T/s/S/eccmodels/M")
    yield case("SelfEnqueue both of a oneof", "cqs.v1.ChangeQueueService/SelfEnqueue", base + field(2, 2, both))
    yield case("SelfEnqueue 10,000 items", "cqs.v1.ChangeQueueService/SelfEnqueue", base + field(2, 2, b"") * 10_000)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    write("names", names())
    write("jwt", jwt())
    write("requests", requests())
    write("bodies", bodies())
    write("raw-http", raw_http())
    write("messages", messages())
