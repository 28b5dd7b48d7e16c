"""The reasons for which the contract refuses input that is valid by the OpenAPI document."""

import re

import schemathesis


def _by_contract(status: int, error: dict) -> bool:
    code, param = error["code"], error.get("param") or ""
    if status == 422:
        # A preview of this body would be refused. Which models fit which host classes depends on the installation.
        return error["type"] == "refused_error"
    if code == "invalid_cursor":
        # A cursor is opaque and authenticated, so generated cursors are refused.
        return param == "cursor"
    if code == "invalid_parameter":
        # `to` must be later than `from`. The available host classes, runtimes and cache types depend on the installation.
        return param == "to" or re.fullmatch(r"serving\.(host_class|runtime|kv_cache_dtype)", param) is not None
    # The accepted engine flags depend on the installation. Values of these settings that are too small or too large are refused. `min_replicas` must be below
    # `max_replicas`.
    return code == "invalid_body" and (param.startswith("serving.engine_flags.") or param in ("serving.max_context", "serving.yarn.factor", "min_replicas"))


@schemathesis.check
def valid_data_refused_by_contract_only(ctx, response, case) -> None:
    """Replaces `positive_data_acceptance` for 400 and 422: valid input may be refused only for these reasons."""
    if response.status_code not in (400, 422) or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    error = response.json()["error"]
    if not _by_contract(response.status_code, error):
        raise AssertionError(f"Valid input was refused: {error['code']} of {error.get('param')}: {error['message']}")
