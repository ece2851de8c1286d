"""Short lists of the world: enough to tell a language from a colour, no more."""

from __future__ import annotations

from langchain_svc.sandbox.engine._words import phrases, terms

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

NUMBER_WORDS = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
}

LANGUAGE_CODES = {
    entry[:-3]: entry[-2:]
    for entry in phrases(
        """
        english en, french fr, german de, spanish es, italian it, portuguese pt, dutch nl,
        swedish sv, norwegian no, danish da, finnish fi, polish pl, czech cs, greek el, turkish tr,
        russian ru, ukrainian uk, arabic ar, hebrew he, hindi hi, bengali bn, urdu ur, chinese zh,
        mandarin zh, japanese ja, korean ko, vietnamese vi, thai th, indonesian id, malay ms,
        swahili sw, latin la, hungarian hu, romanian ro, bulgarian bg, catalan ca
        """
    )
}
LANGUAGES = {name: name.capitalize() for name in LANGUAGE_CODES}

COLOUR_WORDS = {
    name: name
    for name in terms(
        """
        red orange yellow green blue purple violet pink brown black white grey gray silver gold
        turquoise cyan magenta beige maroon navy teal crimson indigo
        """
    )
}

CURRENCIES = {
    entry[:-4]: entry[-3:]
    for entry in phrases(
        """
        usd USD, us dollar USD, us dollars USD, dollar USD, dollars USD, eur EUR, euro EUR,
        euros EUR, gbp GBP, british pound GBP, british pounds GBP, pound sterling GBP, jpy JPY,
        japanese yen JPY, yen JPY, chf CHF, swiss franc CHF, swiss francs CHF, cad CAD,
        canadian dollar CAD, canadian dollars CAD, aud AUD, australian dollar AUD,
        australian dollars AUD, inr INR, rupee INR, rupees INR, cny CNY, yuan CNY
        """
    )
}

UNITS = {
    name: name
    for name in terms(
        """
        celsius fahrenheit kelvin metric imperial meters metres meter metre kilometers kilometres
        kilometer kilometre km miles mile feet foot inches inch cm mm kg kilograms kilogram grams
        gram pounds pound lbs ounces ounce liters litres liter litre gallons gallon seconds minutes
        hours days weeks months years
        """
    )
}

# Countries and states that may follow a town behind a comma.
REGIONS = frozenset(
    phrases(
        """
        france, germany, italy, spain, portugal, england, scotland, wales, ireland, uk, united
        kingdom, usa, us, united states, canada, mexico, brazil, argentina, chile, peru, japan,
        china, india, korea, south korea, australia, new zealand, egypt, morocco, kenya, nigeria,
        south africa, russia, ukraine, poland, austria, switzerland, belgium, netherlands, denmark,
        norway, sweden, finland, iceland, greece, turkey, israel, thailand, vietnam, indonesia,
        singapore, hungary, romania, california, texas, florida, washington, oregon, nevada,
        arizona, colorado, illinois, michigan, ohio, georgia, virginia, massachusetts, new york, new
        jersey, pennsylvania, north carolina, ontario, quebec, bavaria, tasmania, victoria
        """
    )
)

# Words that open sentences in capitals without being names.
STARTERS = frozenset(
    terms(
        """
        a about add after all also an and answer any are as ask assume at be before book both but by
        calculate call can change check choose classify click come compare compose compute consider
        convert cook could count create define delete describe determine did do does draw each
        estimate evaluate every execute explain extract fetch fill final finally find first fix
        following for from generate get give given go grab has have he hello help her hey hi his how
        however i identify if imagine in input is it its just lastly let list locate lookup look
        make may me measure multiply my name need next no not note now obtain of ok on one open or
        order our output plan please predict provide put query read recommend remind remove rename
        repeat reply report reserve respond retrieve return run say search second secondly see
        select send set she should show simulate since so solve some sort start subtract such
        suggest sum summarise summarize suppose take tell test text thank thanks that the their then
        there these they third this those thus to today tomorrow track translate try turn update us
        use using verify want was we were what what's whats when where where's whether which while
        who who's whom whose why will with without would write yes yesterday you your i'm i'd i've
        i'll let's don't can't additionally moreover furthermore finally afterwards meanwhile later
        once during based according question context user system assistant human january february
        march april may june july august september october november december monday tuesday
        wednesday thursday friday saturday sunday rate grade review pick judge score
        i bought only
        register enroll sign pay fly go wait grow cool sort buy paint measured meet limit weather
        stay email message move cancel schedule transfer assign invite notify publish upload
        download install deploy restart monitor inspect investigate visit drive walk travel ship
        deliver lock unlock close log submit approve reject edit modify rotate resize crop filter
        group merge split join copy paste print scan record capture listen watch learn teach study
        temperature price distance population flights hotels restaurants directions somebody
        nobody everybody someone anyone everyone something nothing everything many several
        store keep mark switch turn play pause skip stop raise lower increase decrease round
        rate share post reply forward summary translation weather's play id api uuid url ip
        """
    )
)
