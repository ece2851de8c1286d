"""Schemas and values that are made up at random."""

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "A", "b-c", "properties", "type"])
WORDS = st.sampled_from(["", "a", "yes", "5", "b c", "null"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, 1.0, 2.5, 5.0, -1.5]),
    WORDS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def keywords(inner):
    small = st.integers(0, 3)
    return {
        "type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "const": SCALARS,
        "minimum": st.integers(-2, 6),
        "maximum": st.integers(-2, 6),
        "exclusiveMinimum": st.integers(-2, 6),
        "exclusiveMaximum": st.integers(-2, 6),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        "minLength": small,
        "maxLength": small,
        "pattern": st.sampled_from(["^a", "s$", "^[0-9]+$", "."]),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": small,
        "maxItems": small,
        "uniqueItems": st.booleans(),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": st.one_of(st.booleans(), inner),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "c$"]), inner, max_size=2),
        "minProperties": small,
        "maxProperties": small,
        "anyOf": st.lists(inner, min_size=1, max_size=3),
        "oneOf": st.lists(inner, min_size=1, max_size=3),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
    }


def schemas():
    leaf = st.one_of(
        st.booleans(),
        st.fixed_dictionaries({"type": TYPES}),
        st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=3)}),
    )
    return st.recursive(
        leaf,
        lambda inner: st.integers(1, 4).flatmap(
            lambda n: st.lists(
                st.sampled_from(sorted(keywords(inner))), min_size=1, max_size=n, unique=True
            ).flatmap(
                lambda names: st.fixed_dictionaries({one: keywords(inner)[one] for one in names})
            )
        ),
        max_leaves=6,
    )


def with_definitions(schema, one, two):
    schema = dict(schema) if isinstance(schema, dict) else {"allOf": [schema]}
    return {**schema, "$defs": {"one": one, "two": two}}


# -- schemas of which a form can say all, with values that are nearly right -------------------------

FIELDS = ["a", "b c", "<d>", "e.f", 'g"h', "über"]
OPTIONS = ["red", "dark-red", "a, b", "", "<x>", "null", "5", 1, 2, -0.5, None, True]
ABOUT = st.fixed_dictionaries(
    {},
    optional={
        "description": st.sampled_from(["The day: 1 to 5", 'x > y, ["z"]; <tools>', "a\n\nb"]),
        "default": st.sampled_from([None, 0, "x", [1]]),
        "title": st.just("Title"),
    },
)


def some(**keywords):
    """Some of these keywords, beside what may be said about every schema."""
    bound = st.fixed_dictionaries({}, optional=keywords)
    return st.builds(lambda about, bounds: about | bounds, ABOUT, bound)


def of_type(name, **keywords):
    return some(**keywords).map(lambda schema: {**schema, "type": name})


def an_object(fields, required, about):
    names = [name for name, needed in zip(fields, required, strict=False) if needed]
    return {**about, "type": "object", "properties": fields, "required": names}


def objects(inner, least=0):
    fields = st.dictionaries(st.sampled_from(FIELDS), inner, min_size=least, max_size=3)
    return st.builds(an_object, fields, st.lists(st.booleans(), min_size=3, max_size=3), ABOUT)


def form_schemas():
    """Schemas of one type each, unions and references, with every keyword that forms say."""
    small, limit = st.integers(0, 3), st.integers(-2, 6)
    bounds = {
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), limit),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
    }
    leaf = st.one_of(
        of_type("string", minLength=small, maxLength=small, format=st.just("date")),
        of_type("integer", **bounds),
        of_type("number", **bounds),
        of_type(["integer", "null"], **bounds),
        of_type("boolean"),
        some(enum=st.lists(st.sampled_from(OPTIONS), min_size=1, max_size=4)),
        some(const=st.sampled_from(OPTIONS)),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            objects(inner),
            of_type("array", items=inner, minItems=small, maxItems=st.integers(1, 3)),
            of_type("object", additionalProperties=inner),
            st.lists(inner, min_size=1, max_size=3).map(lambda members: {"anyOf": members}),
            inner.map(lambda member: {"allOf": [member]}),
            st.just({"$ref": "#/$defs/shared"}),
        ),
        max_leaves=5,
    )


def form_roots():
    """The same, for a whole answer: an object with a field at least."""
    shared = form_schemas().filter(lambda schema: "$ref" not in str(schema))
    return st.builds(
        lambda schema, one: {**schema, "title": "Made", "$defs": {"shared": one}},
        objects(form_schemas(), least=1),
        shared,
    )


def near(schema, root):
    """Values of the kind that a schema asks for, which may break its bounds."""
    if "$ref" in schema:
        return near(root["$defs"]["shared"], root)
    for word in ("anyOf", "allOf"):
        if word in schema:
            return st.one_of([near(member, root) for member in schema[word]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from([*schema.get("enum", [schema.get("const")]), "zz", 7])
    numbers = st.one_of(st.integers(-3, 8), st.sampled_from([0.5, 1.0, 2.25]))
    match schema.get("type"):
        case "object" if "properties" in schema:
            fields = {name: near(part, root) for name, part in schema["properties"].items()}
            whole = st.fixed_dictionaries(fields)
            return st.one_of(whole, st.fixed_dictionaries({}, optional=fields))
        case "object":
            others = schema.get("additionalProperties")
            return st.dictionaries(
                st.sampled_from(["k", "l"]),
                SCALARS if others is None else near(others, root),
                max_size=2,
            )
        case "array":
            items = schema.get("items")
            return st.lists(SCALARS if items is None else near(items, root), max_size=4)
        case "string":
            return st.text("ab", max_size=4)
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return numbers
        case ["integer", "null"]:
            return st.one_of(numbers, st.none())
    return SCALARS
