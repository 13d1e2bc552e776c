"""Call the service with valid and invalid requests, and compare each response with its OpenAPI document.

    python -m lab.checks.calls --count 10000 RUN

Schemathesis makes the calls.  It reports a status of 500, a status that is not in the document, and a media type,
header or body that differs from the document.  Half of the calls that name a run name an existing one, so that there
are also answers; existing runs are not deleted.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from lab.served import serving

CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def call(run: Path, count: int, number: int = 23) -> tuple[Counter[int], list[str]]:
    """Call a service over a copy of a run about `count` times; the statuses, and the errors."""
    statuses: Counter[int] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        (home / "runs").mkdir(parents=True)
        shutil.copy(run, home / "runs" / "there.duckdb")
        with serving(home, (), "--limit", "sql_s=2", "--limit", "job_s=20", "--limit", "waiting_jobs=4") as served:
            schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{served.port}/openapi.json")
            operations = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
            each_s: dict[str, float] = {}
            for position, operation in enumerate(operations):
                share = count * (position + 1) // len(operations) - count * position // len(operations)
                for mode, part in (
                    (GenerationMode.POSITIVE, share - share // 2),
                    (GenerationMode.NEGATIVE, share // 2),
                ):
                    begin = time.monotonic()
                    _call(operation, mode, part, number, statuses, wrong)
                    each_s[operation.label] = each_s.get(operation.label, 0.0) + time.monotonic() - begin
                print(f"{operation.label}: {share} calls in {each_s[operation.label]:.0f} s", flush=True)
    return statuses, wrong


def _call(
    operation: Any, mode: GenerationMode, count: int, number: int, statuses: Counter[int], wrong: list[str]
) -> None:
    rng = random.Random(number)

    @seed(number)
    @settings(
        max_examples=max(count, 1),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def once(case: Any) -> None:
        if operation.method.upper() != "DELETE" and "run" in (case.path_parameters or {}) and rng.random() < 0.5:
            case.path_parameters["run"] = "there"
        answer = case.call(timeout=200)
        statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=CHECKS)
        except BaseExceptionGroup as error:
            wrong.append(f"{operation.label} {answer.status_code}: {str(error.exceptions[0])[:600]}")
        except AssertionError as error:
            wrong.append(f"{operation.label} {answer.status_code}: {str(error)[:600]}")

    try:
        once()
    except Exception as error:
        if "Unsatisfiable" not in type(error).__name__:  # an operation without parameters has no wrong ones
            raise


def main() -> None:
    """Call, and print the errors."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run file to serve")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=23)
    reported = parser.parse_args()
    statuses, wrong = call(reported.run, reported.count, reported.seed)
    print(f"{sum(statuses.values())} calls, wrong: {len(wrong)}")
    print("by status: " + ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items())))
    for each in wrong[:20]:
        print(f"  {each}")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
