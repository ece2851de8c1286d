"""What a new public class still lacks, in one list: its kind, and its rows in the tests' tables.

`SERVICES` are found by what they are: a class on `ServiceSettings` asks the service, and each method
by which it does is a door. Every other class that is no error and no function has a row in `VALUES`,
which makes one that holds a secret.
"""

import inspect
import pickle

import pytest
import test_endpoints
import test_hostile
import test_langchain_tools
from faults import fault_columns
from langchain_core.tools import BaseTool
from peers import tool_call
from service import test_urls

import langchain_svc as svc
from langchain_svc._settings import ServiceSettings
from langchain_svc.sandbox import Sandbox
from langchain_svc.sandbox.endpoints import ROUTES
from privacy import test_leaks

KEY = "sk-KEY-OF-THE-REGISTRY"
NAME = "Rosalind-Marked"
RECORD = {
    "resourceType": "Bundle",
    "entry": [
        {"resource": {"resourceType": "Patient", "gender": "female", "name": [{"family": NAME}]}},
        {"resource": {"resourceType": "Condition", "code": {"text": NAME}}},
    ],
}
PUBLIC = {
    name: kind
    for name, kind in ((name, getattr(svc, name)) for name in svc.__all__)
    if isinstance(kind, type)
}
SERVICES = {name: kind for name, kind in PUBLIC.items() if issubclass(kind, ServiceSettings)}
TOOLS = {
    name: kind.model_fields["name"].default
    for name, kind in SERVICES.items()
    if issubclass(kind, BaseTool)
}
TOOLKITS = {name for name in SERVICES if name.endswith("Toolkit")}
MODELS = SERVICES.keys() - TOOLS.keys() - TOOLKITS
ERRORS = {name for name, kind in PUBLIC.items() if issubclass(kind, Exception)}


def classes(names):
    """The classes in names such as `SvcTranslate.invoke` and `SvcGenerateImage, v1`."""
    return {name.partition(",")[0].partition(".")[0] for name in names}


# Methods that LangChain knows nothing of, and that ask the service nothing.
SEND_NOTHING = {"with_citations", "interrupt_on", "deliver_again", "adeliver_again"}


def methods(kind):
    """The public methods of a class that are neither LangChain's nor of every class here."""
    shared = {*dir(ServiceSettings)}
    for base in kind.__mro__:
        if not base.__module__.startswith(svc.__name__):
            shared |= {*vars(base)}
    names = {name for name in dir(kind) if not name.startswith("_")} - shared
    return {name for name in names if inspect.isroutine(getattr(kind, name))}


def doors(name, kind):
    """The methods by which a class sends; LangChain's others begin a run as these do."""
    of_langchain = {"invoke", "ainvoke", "get_tools"} & {*dir(kind)}
    return {f"{name}.{method}" for method in (methods(kind) - SEND_NOTHING) | of_langchain}


TABLES = {  # table: the classes that need a row there, and those that have one
    "_TOOLS in langchain_svc/tools/general.py or langchain_svc/medical/tools.py": (
        TOOLS.keys(),
        {
            type(tool).__name__
            for toolkit in (svc.SvcToolkit, svc.SvcMedicalToolkit)
            for tool in toolkit().get_tools()
        },
    ),
    "ROWS in tests/test_endpoints.py": (
        SERVICES.keys() - TOOLKITS,
        {row.kind.__name__ for row in test_endpoints.ROWS.values()},
    ),
    "CASES in tests/test_langchain_tools.py": (
        TOOLS.keys(),
        {case.kind.__name__ for case in test_langchain_tools.CASES.values()},
    ),
    "GOOD in tests/test_hostile.py": (
        TOOLS.keys(),
        {kind for kind, name in TOOLS.items() if name in test_hostile.GOOD},
    ),
    "DOORS in tests/privacy/test_leaks.py": (
        set().union(*(doors(name, kind) for name, kind in SERVICES.items())),
        {door.partition(",")[0] for door in test_leaks.DOORS},
    ),
    "CLASSES in tests/service/test_urls.py": (SERVICES.keys(), classes(test_urls.CLASSES)),
    "COLUMNS in tests/faults/fault_columns.py": (
        SERVICES.keys() - TOOLKITS,
        classes(column.name for column in fault_columns.COLUMNS),
    ),
}


# -- classes that ask nobody -----------------------------------------------------------------------


def result(sandbox):
    tool = svc.SvcMedicalConsult(**sandbox.medical)
    return tool.invoke(tool_call(tool, {"message": f"Seen by {NAME}"})).artifact


def storage_with_a_password(_):
    return f"redis://:{KEY}@127.0.0.1:1/0"


def dicom_image(_):
    pytest.importorskip("pydicom")
    return svc.DicomImage(b"\0" * 128 + b"DICM" + NAME.encode())


VALUES = {
    "BudgetUse": lambda _: svc.BudgetUse(requests=1),
    "ClinicalReceipt": lambda sandbox: result(sandbox).receipt,
    "ClinicalResult": result,
    "DicomImage": dicom_image,
    "FhirReport": lambda _: svc.PatientContext.from_fhir(RECORD).fhir_report,
    "ImageStore": lambda _: svc.ImageStore(),
    "ListedModel": lambda sandbox: svc.ChatSvc(**sandbox.v1).list_models()[0],
    "ModelUsage": lambda _: svc.ModelUsage(calls=1),
    "PatientContext": lambda _: svc.PatientContext(medicalHistory=[NAME]),
    "Plan": lambda _: svc.Plan(requests_per_minute=5),
    "PrivateCallbacks": lambda _: svc.PrivateCallbacks([]),
    "PseudonymRestorer": lambda _: svc.Pseudonyms(names=[NAME]).restorer(),
    "Pseudonyms": lambda _: svc.Pseudonyms(names=[NAME]),
    "QuotaLimit": lambda _: svc.SvcQuota("v1:free").snapshot().limits[0],
    "QuotaSnapshot": lambda _: svc.SvcQuota("v1:free").snapshot(),
    "SvcBudget": lambda s: svc.SvcBudget(
        max_requests=5, storage=storage_with_a_password(s), key="job"
    ),
    "SvcBudgetMiddleware": lambda _: svc.SvcBudgetMiddleware(svc.SvcBudget(max_requests=5)),
    "SvcCitations": lambda _: svc.SvcCitations(),
    "SvcOpenTelemetryCallbackHandler": lambda _: svc.SvcOpenTelemetryCallbackHandler(),
    "SvcQuota": lambda s: svc.SvcQuota("v1:free", storage=storage_with_a_password(s)),
    "SvcUsageCallbackHandler": lambda _: svc.SvcUsageCallbackHandler(),
}

IN_MEMORY_ONLY = {"PseudonymRestorer", "Pseudonyms"}


def test_every_class_has_its_kind_and_its_rows():
    problems = [
        f"{name} has no row of {table}"
        for table, (needed, present) in TABLES.items()
        for name in sorted(needed - present)
    ]
    others = PUBLIC.keys() - SERVICES.keys() - ERRORS
    problems += [
        f"{name} asks nobody: it needs a row of VALUES in tests/test_every_class.py"
        for name in sorted(others - VALUES.keys())
    ]
    assert not problems, "\n".join(problems)
    assert others == VALUES.keys(), "a row of VALUES has no public class any more"


@pytest.mark.parametrize("name", VALUES)
def test_no_value_shows_a_key_or_a_patient(name):
    with Sandbox() as sandbox:
        value = VALUES[name](sandbox)
    shown = f"{value!r} {value}"
    assert KEY not in shown
    assert NAME not in shown


@pytest.mark.parametrize("name", sorted(IN_MEMORY_ONLY))
def test_what_stays_in_memory_refuses_a_pickle(name):
    with pytest.raises(TypeError, match="make them again"):
        pickle.dumps(VALUES[name](None))


@pytest.mark.parametrize("name", sorted(VALUES.keys() - IN_MEMORY_ONLY))
def test_every_value_survives_a_pickle(name):
    with Sandbox() as sandbox:
        value = VALUES[name](sandbox)
    data = pickle.dumps(value)
    assert KEY not in str(data)
    assert type(pickle.loads(data)) is type(value)


@pytest.mark.parametrize("door", [*filter(test_leaks.is_run, test_leaks.DOORS)])
def test_every_call_is_counted(door, monkeypatch):
    make, use = test_leaks.DOORS[door]
    usage = svc.SvcUsageCallbackHandler()
    with Sandbox() as sandbox:
        for name, value in sandbox.env.items():
            monkeypatch.setenv(name, value)
        use(make({}), {"callbacks": [usage]})
    assert [entry.calls for entry in (*usage.models.values(), *usage.tools.values())] == [1]


def test_the_endpoints_of_the_sandbox_have_their_rows():
    served = {f"{method} {path}" for path, methods in ROUTES.items() for method in methods}
    rows = {row.endpoint for row in test_endpoints.ROWS.values()}
    assert served - rows == set(), "add a row to ROWS in tests/test_endpoints.py"
    assert rows - served == set(), "add it to ROUTES in langchain_svc/sandbox/endpoints.py"
