"""What Schemathesis cannot know from the document: for which reasons the contract has valid-looking input refused."""

import re

import schemathesis


def _by_contract(status: int, error: dict) -> bool:
    code, param = error["code"], error.get("param") or ""
    if status == 422:
        # What a preview of this very body would refuse: which models fit which host classes depends on the installation.
        return error["type"] == "refused_error"
    if code == "invalid_cursor":
        # A cursor is opaque and authenticated: none that was made up is taken.
        return param == "cursor"
    if code == "invalid_parameter":
        # `to` has to be later than `from`. Which host classes, runtimes and cache types there are depends on the installation.
        return param == "to" or re.fullmatch(r"serving\.(host_class|runtime|kv_cache_dtype)", param) is not None
    # So does which flags an engine takes. What no trial could be held in, or no model was ever extended by, is refused by its value.
    return code == "invalid_body" and (param.startswith("serving.engine_flags.") or param in ("serving.max_context", "serving.yarn.factor"))


@schemathesis.check
def valid_data_refused_by_contract_only(ctx, response, case) -> None:
    """Stands in for 400 and 422 in `positive_data_acceptance`: valid input is refused for these reasons and no others."""
    if response.status_code not in (400, 422) or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    error = response.json()["error"]
    if not _by_contract(response.status_code, error):
        raise AssertionError(f"Valid input was refused: {error['code']} of {error.get('param')}: {error['message']}")
