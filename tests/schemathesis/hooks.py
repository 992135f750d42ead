"""How requests are made from the document: who asks, and what no schema can say.

Every operator has its own rates, so the run asks as several in turn. The rest is about values that are valid only by what
the gateway answered before, or by the time of day: a schema cannot say that, so those of valid requests are put right
here, just before they are sent. Requests that are meant to be wrong go as they are.
"""

import datetime
import itertools
import os
import time
import zlib

import requests
import schemathesis
from hypothesis import strategies as st

API = os.environ["RESHELF_API"]
TOKENS = os.environ["RESHELF_TOKENS"].split()
TURN = itertools.cycle(TOKENS)
OVER = "an-operation-that-is-over"
# Opaque: only an answer has one that means something. The document's links lead to next pages; empty is the first one.
schemathesis.openapi.format("page-token", st.just(""))
# Opaque, and of one request only. A run with a plan is a scenario of its own: tests/tests/it/plans.rs.
schemathesis.openapi.format("plan-id", st.just(""))


@schemathesis.auth(refresh_interval=None)
class Operators:
    """The next operator's token."""

    def get(self, case, context):
        return next(TURN)

    def set(self, case, data, context):
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}


def run_an_operation():
    """Streams of events end with their operation. This one is over before the first request."""
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {TOKENS[0]}"
    body = {"tenant_id": "demo", "store_id": "berlin", "label_id": "L0001", "reason": "one label", "dry_run": False}
    session.post(f"{API}/v1/triggers/label-reexport", json={**body, "tracking_id": OVER}).raise_for_status()
    for _ in range(600):
        operation = session.get(f"{API}/v1/tenants/demo/operations/{OVER}").json()
        if operation.get("finished_at"):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{OVER} does not end: {operation}")


run_an_operation()


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.definition.raw["operationId"] == "get_operation_events":
        # Of one that goes on there is no end to wait for: tests/tests/it/follow.rs reads those.
        if isinstance(case.path_parameters.get("tracking_id"), str):
            case.path_parameters["tracking_id"] = OVER
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.meta.phase.name.value != "stateful" and isinstance(case.query, dict):
        case.query.pop("page_token", None)
    if isinstance(case.body, dict):
        put_right(case, case.body)


def put_right(case, body):
    # "A plan of this gateway", and what belongs to one.
    body.pop("plan_id", None)
    body.pop("max_drift", None)
    # "A next_page_token of this list."
    body.pop("page_token", None)
    # A preview renders now: a few labels are enough, beside all that the run's operations render meanwhile.
    if case.path.endswith("/preview"):
        body["sample"] = min(body.get("sample") or 24, 3)
    # "At most 30 days ahead" of now.
    if isinstance(body.get("until"), str):
        ahead = datetime.timedelta(seconds=60 + zlib.crc32(body["until"].encode()) % (29 * 86_400))
        body["until"] = (datetime.datetime.now(datetime.timezone.utc) + ahead).isoformat()
