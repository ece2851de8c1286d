"""The words around a number or a text that make it a quotation of a patient's record, or not.

Each pattern is searched in the characters just before (it ends with `$`) or matched in those just
after. Repetition in them is bounded and unambiguous, so that no text takes long.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_FILLERS = (
    r"(?:[\s,=:]+(?:of|for|a|an|the|or|equal|to|is|are|about|approximately|around|rate|pressure|systolic"
    r"|diastolic|blood|heart|respiratory|oxygen|saturation|pulse|temperature|spo2|bp|sbp|dbp|hr"
    r"|value|level|mean|arterial|resting|age|ages|aged)){0,5}[\s=:]*$"
)
LIMIT_BEFORE = _any(
    r"[<>≤≥]\s?=?\s?$",
    r"\b(?:under|over|below|above|than|least|most|exceed(?:s|ed|ing)?|until|reach(?:es|ing)?"
    r"|targets?|targeting|goals?|aim|aiming|keep|maintain(?:ed|ing)?|thresholds?|limits?|cut-?off"
    r"|maximum|max|minimum|min|between|from|within|every|normal|normally|falls?|drops?|rises?"
    r"|up|mean|map|cvp|peep|children|infants|adults|per|each|after|before|by)\b" + _FILLERS,
    r"\b(?:at|or)\s+(?:an?\s+)?(?:(?:systolic|diastolic|blood|heart|pressure|rate|temperature|sbp|dbp|bp|hr"
    r"|spo2|saturation|of)[\s()]+)+$",
    r"\b(?:above|below|over|under|exceed\w*|than|at)\s+(?:an?\s+|the\s+)?[\w-]+\s+(?:level\s+)?of\s*$",
    r"\d\s?(?:mmhg|bpm|%|°c|/min|years?)?\s?(?:-|–|—|\bto\b|\bbis\b|\band\b)\s?$",
)
LIMIT_AFTER = _any(
    r"\+",
    r"\s?(?:[^\W\d_%°]+(?:/[^\W\d_]+)?|%|°\s?[cf]|/\s?min)?(?:\s+(?:of age|old))?\s*"
    r"(?:\bor\b|\band\b)\s+(?:more|less|above|below|over|under|higher|lower|greater|older|younger|up)\b",
    r"\s?(?:[^\W\d_%°]+|%|°\s?[cf]|/\s?min)?\s?(?:-|–|—|\bto\b|\bbis\b)\s?\d",
    r"(?:\s?,|\s+and|\s+or)\s?\d",  # one of several
)
AGED = _any(
    r"\b(?:aged|age[sd]?|alter|edad|âge|età|idade|leeftijd|wiek|возраст)\s*(?:of|is|was|:|=|\()?\s*$",
    r"(?:年龄|年齢|나이)[:：]?\s*$",
)
WHO_IS = _any(r"\b(?:you(?:['’]re| are)|(?:s?he|patient) is)\s*$")
NO_UNIT = _any(r"\s*(?:[,.;:)]|$)|\s+(?:and|with|now)\b")
AGE_LIMIT = _any(
    r"\b(?:from|after|before|by|until|at|over|under|above|below|since|to|than|children|patients"
    r"|adults|people|women|men|infants|those|persons|individuals|population|anyone|every)\s+(?:the\s+)?"
    r"age[sd]?\s*(?:of)?\s*$"
)
YEARS_OLD = _any(
    r"[\s-]*(?:years?|yrs?)[\s-]*old\b",
    r"[\s-]*years?\s+of\s+age\b",
    r"\s?y/?o\b",
    r"-?j(?:ä|ae)hrig|\s*jahre\s+alt\b|-?årig|-?jarige?\b|-?letni",
    r"\s?(?:岁|歳|세|살)",
    r"\s*(?:ans|años|anni|anos|лет|года?|yaşında)\b",
    r"\s?y?/?[MFWmfw]\b(?!\s*\.)(?=[\s,;)]|$)",
)
SOMEBODY = _any(r"\b(?:female|male|woman|man|lady|gentleman|patient|you|your|boy|girl)\b")
MONTHS_OLD = _any(r"[\s-]*months?[\s-]*old\b", r"[\s-]*months?\s+of\s+age\b")
YEARS = _any(r"\s*(?:years?|yrs?|jahre|y)\b(?!\s+(?:ago|later|earlier|history|of))")
DURATION = _any(
    r"\b(?:for|over|every|last|past|within|in|than|after|before|during|since|least|under|up to)"
    r"(?:\s+(?:the|at|about|next|last))*\s*$",
    r"\d\s?(?:-|–|to)\s?$",
)
PERSON = _any(r"\b(?:female|male|woman|man|lady|gentleman|patient|sex|boy|girl)\b")
SEX_LABEL = _any(r"\b(?:sex|gender)\W{1,3}(?:(?:is|was)\s+)?$")
IF = _any(r"\b(?:if|when|unless|once|whenever|should the)\b")
OF_PATIENT = _any(
    r"\b(?:your|his|her|(?:this|the) patient(?:'s|’s)?|patient'?s|measured|recorded|reported"
    r"|observed|presenting|current(?:ly)?|today|admission|given (?:the|a|your))\b"
)

_GAP = r"(?:[\s,:(\"“]+[\w.'’-]+){0,%d}?[\s,:(\"“]*$"  # no character is in both classes
_TIED_CLOSELY = _any(
    r"(?:\b(?:your|his|her)\b(?!\s+(?:doctor|pharmacist|gp|nurse|physician|team|clinic|care))"
    r"|patient['’]s\b)" + _GAP % 2,
    r"\b(?:this|the) patient (?:has|had|is on|is taking|takes|with|suffers from|on)\b" + _GAP % 4,
    r"\byou (?:have|had|take|are on|are taking|suffer from)\b" + _GAP % 4,
)
_TIED = _any(
    r"\b(?:history|hx|pmhx?|h/o|known|diagnosed|diagnosis of|record of|background|comorbid\w*"
    r"|co-morbid\w*|underlying|pre-?existing|existing|documented|recorded|reported|noted"
    r"|(?:medications?|medicines|medicamentos|drugs|conditions|problems?|factors?)"
    r"(?:\s+(?:list|present|include|are|is))?\s*(?=[:(])"
    r"|(?:active|existing|past|secondary) diagnoses|not(?:e|ing) (?:the|that)"
    r"|(?:current|regular|home|existing)\s+med\w+|current(?:ly)?|already|taking|takes"
    r"|prescribed|maintained on|uses|using|patient (?:has|had|with|on)|given (?:the|this|that)"
    r"|considering|in view of|because of|in light of|lives with|living with|suffer(?:s|ing) from"
    r"|established|long-?standing|regular|home|vorerkrankung\w*|nimmt|bekannte[rsmn]?"
    r"|antécédents?|antecedentes?|anamnese|toma|prend)\b" + _GAP % 6,
    r"\b(?:is|was|are) on\b" + _GAP % 3,
    r"\bas (?:a|an) (?:person|patient|woman|man) (?:with|on|taking)\b" + _GAP % 3,
    r"^\s*(?:[-*•]\s*)?(?:given|with|on|despite)\b" + _GAP % 4,
    r"year-old\b.*$",
)
_OF_ONE_PATIENT = _any(  # what is said of one patient, and not what is to be done
    r"\b(?:you|your|the person|(?:this|the|our) patient(?:['’]s)?|he|she|his|her"
    r"|the (?:chart|file|record))\b"
    r"(?!.*\b(?:should|must|may|can|could|doctor|pharmacist|explain|reassure)\b)"
)
_SAID_AFTER = _any(
    r"^(?!\s*(?:,(?!\s*which)|and\b|or\b))(?!.*\b(?:should|must|may|can|could|doctor|pharmacist)\b)"
    r".*\b(?:you|your|(?:this|the) patient(?:['’]s)?|his|her|the current|into account)\b",
    r"^\s*(?:was|were|has been|have been) considered\b",
)
_TIED_AFTER = _any(
    r"[\s,:()\]\"']*(?:is|was|are|were|has|have)?\s*(?:also\s+|already\s+|currently\s+)?"
    r"(?:been\s+|being\s+)?(?:started|noted|documented|recorded|mentioned|stated|listed|on record"
    r"|on file|taken\b|on (?:the|your|a) list|diagnosed|prescribed|\(?known\b(?!\s+(?:to|as|for)))",
    r"(?:\s+[\w-]+){0,3}\s+(?:in|of) (?:this|the|your|his|her)"
    r" (?:patient|record|history|case|chart)\b",
)
GENERAL = _any(
    r"\b(?:patients|people|persons|adults|children|infants|individuals|those|women|men|anyone"
    r"|everyone|such as|including|e\.g|like|if|unless|whether|when|any|ask|asking|exclude|rule out"
    r"|risk of|suspected|suspect|explain|reassure|tell|inform|advise|contraindicat\w+"
    r"|cases of|every|each|all)\b"
)
_PRESCRIBED = _any(
    r"\b(?:give|start|use|add|prescribe|administer|offer|consider|load with|switch to|then|or|plus"
    r"|initiate|begin|try|recommend(?:ed)?)\s+(?:a |an |oral |iv )?$"
)
ADVISED = _any(_PRESCRIBED.pattern, r"\b(?:with|in|for|against)\s+(?:a |an )?$")

_ENDS = _any(r"\s*(?:[.;)\]!?\"'”]|$)")
_LED_IN = _any(r"(?:^|[,:]|\b(?:and|or|of|by|from|to|after|before|as|without|not|no))\s*$")
_DOSE = _any(r"\d\s?(?:mg|mcg|µg|g|ml|units|iu|mmol)\b")


def is_remark(before: str, after: str) -> bool:
    """Whether a sentence ends with a text, and is not advice: "The chart lists heart failure."."""
    if not _ENDS.match(after) or _LED_IN.search(before) or _DOSE.search(before):
        return False
    return not GENERAL.search(before) and not ADVISED.search(before)


def is_tied(before: str, after: str) -> bool:
    """Whether the words around a text say that it is the patient's."""
    if _TIED_CLOSELY.search(before):
        return not IF.search(before)
    if _TIED_AFTER.match(after):
        return not GENERAL.search(before)
    if GENERAL.search(before):
        return False
    said = _OF_ONE_PATIENT.search(before) or (_SAID_AFTER.search(after) and not _DOSE.search(after))
    said = said and not _PRESCRIBED.search(before)
    return bool(said or _TIED.search(before))
