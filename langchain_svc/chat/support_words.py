"""The words that decide whether a source supports a statement: English, German, French, Spanish."""

from __future__ import annotations

# What every text has, whatever it is about.
STOP_WORDS = frozenset(
    """
    a about also an and are as at be been being but by can could did do does for from had has
    have he her his how however i if in into is it its may might of on or our she should so such
    than that the their them then there these they this those to us was we were what when where
    which while who will with would you your
    aber als am auch auf aus bei bis das dass dem den der des die dies diese dieser dieses ein
    eine einem einen einer es für hat haben ich im ist man mit nach oder sein sich sie sind so
    über um und uns unter vom von war waren wie wird zu zum zur
    au aux avec ce ces cette comme dans de des du elle en est et il ils la le les leur mais ou
    par pour qu que qui sa se ses son sont sur un une
    al como con del el ella ellos en entre era es esta este fue las los más para pero por se ser
    su sus una y
    """.split()  # noqa: SIM905  # a list of so many quoted words reads worse
)
NEGATORS = frozenset(
    """
    cannot fail failed fails hardly lack lacked lacking lacks neither never no nobody none not
    nothing nowhere rarely unable without
    kein keine keinem keinen keiner nicht nichts nie niemals ohne weder
    aucun aucune jamais ne ni pas sans
    jamás nadie ningún ninguna ninguno nunca sin
    без не нет ни
    """.split()  # noqa: SIM905  # the same
)
NOT_ONLY = frozenset(
    {"just", "nur", "only", "seulement", "solo"}
)  # "not only" denies nothing
OPPOSITES = """
    above/below absent/present after/before always/never avoid/use best/worst better/worse
    decline/rise decrease/increase decreased/increased down/up earlier/later early/late
    exclude/include fall/rise fewer/more first/last greater/less greater/lower greater/smaller
    high/low higher/lower highest/lowest improve/worsen improved/worsened larger/smaller
    least/most less/more long/short longer/shorter lower/raise many/few maximum/minimum
    men/women negative/positive postoperative/preoperative reduce/increase reduced/increased
    safe/unsafe start/stop strong/weak stronger/weaker
    höher/niedriger mehr/weniger nach/vor oberhalb/unterhalb besser/schlechter länger/kürzer
    größer/kleiner steigt/sinkt
    plus/moins avant/après
    más/menos antes/después mayor/menor
    """
_COMPARATORS = {
    "<": (
        "below|under|less than|fewer than|lower than|shorter than|younger than|"
        "weniger als|unter|moins de|menos de"
    ),
    ">": (
        "above|over|more than|greater than|higher than|exceeding|longer than|"
        "older than|mehr als|über|plus de|más de"
    ),
    "≤": (
        "at most|up to|no more than|not more than|höchstens|bis zu|au plus|"
        "como máximo|hasta"
    ),
    "≥": ("at least|no less than|not less than|mindestens|au moins|al menos"),
    "~": (
        "about|approximately|around|nearly|roughly|circa|ca|etwa|rund|"
        "ungefähr|environ|aproximadamente|unos"
    ),
}
COMPARATORS = {
    tuple(phrase.split()): sign
    for sign, phrases in _COMPARATORS.items()
    for phrase in phrases.split("|")
}
_UNITS = (
    "% percent pct prozent",
    "‰ permille",
    "mg milligram milligrams",
    "g gram grams gramm",
    "kg kilogram kilograms",
    "μg mcg microgram micrograms",
    "ng",
    "ml milliliter milliliters",
    "l liter liters litre litres",
    "dl",
    "mm",
    "cm",
    "m meter meters metre metres",
    "km",
    "nm",
    "mmol",
    "mol",
    "iu",
    "kcal",
    "kj",
    "mmhg",
    "hz",
    "°c",
    "°f",
    "h hr hrs hour hours stunde stunden",
    "min minute minutes minuten",
    "s sec second seconds sekunde sekunden",
    "d day days dayold tag tage tagen jours días",
    "week weeks woche wochen",
    "month months monthold monat monate monaten mois meses",
    "year years yearold yr yrs jahr jahre jahren ans años",
)
# Each way to write a unit, with the one in which it is compared.
UNITS = {name: names.split()[0] for names in _UNITS for name in names.split()}
NUMBER_WORDS = {
    word: str(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split(), 2)
}
