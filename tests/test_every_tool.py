"""What a new tool still lacks, in one list: its place in a toolkit, and its rows in the tests."""

import test_endpoints
import test_hostile
import test_langchain_tools
from faults import fault_columns
from langchain_core.tools import BaseTool
from service import test_urls

import langchain_svc as svc
from langchain_svc.sandbox.endpoints import ROUTES
from privacy import test_leaks

KITS = (svc.SvcToolkit, svc.SvcMedicalToolkit)
TOOLS = {
    kind.__name__: kind.model_fields["name"].default
    for kind in (getattr(svc, name) for name in svc.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseTool)
}


def classes(names):
    """The classes in names such as `SvcTranslate.invoke` and `SvcGenerateImage, v1`."""
    return {name.partition(",")[0].partition(".")[0] for name in names}


TABLES = {
    "_TOOLS in langchain_svc/tools/toolkit.py or langchain_svc/medical/tools.py": {type(tool).__name__ for kit in KITS for tool in kit().get_tools()},
    "ROWS in tests/test_endpoints.py": {row.kind.__name__ for row in test_endpoints.ROWS.values()},
    "CASES in tests/test_langchain_tools.py": {case.kind.__name__ for case in test_langchain_tools.CASES.values()},
    "GOOD in tests/test_hostile.py": {kind for kind, name in TOOLS.items() if name in test_hostile.GOOD},
    "DOORS in tests/privacy/test_leaks.py": classes(test_leaks.DOORS),
    "CLASSES in tests/service/test_urls.py": classes(test_urls.CLASSES),
    "COLUMNS in tests/faults/fault_columns.py": classes(column.name for column in fault_columns.COLUMNS),
}  # fmt: skip


def test_every_tool_has_its_place_and_its_rows():
    pairs = [
        (kind, table) for kind in TOOLS for table, kinds in TABLES.items() if kind not in kinds
    ]
    assert not pairs, "\n".join(f"{kind} has no row of {table}" for kind, table in pairs)


def test_the_endpoints_of_the_sandbox_have_their_rows():
    served = {f"{method} {path}" for path, methods in ROUTES.items() for method in methods}
    rows = {row.endpoint for row in test_endpoints.ROWS.values()}
    assert served - rows == set(), "add a row to ROWS in tests/test_endpoints.py"
    assert rows - served == set(), "add it to ROUTES in langchain_svc/sandbox/endpoints.py"
