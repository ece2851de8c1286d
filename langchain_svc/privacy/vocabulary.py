"""Words: their forms as people write them, those that are names and more, and the identifiers'."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from .._text import normalized
from .masks import word_set

LANGUAGES = ("de", "en", "es", "fr", "nl", "pl", "tr")

# Letters of any script, with combining accents and the invisible characters that layout puts
# inside words; or digits. The blocks between are punctuation and symbols.
_LETTER = (
    "A-Za-z\u00aa\u00ad\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0300-\u1fff"
    "\u200b-\u200d\u2c00-\u2dff\u3005-\u3007\u3040-\ud7ff\uf900-\ufdff\U00020000-\U0003ffff"
)
TOKEN = re.compile(f"[0-9]+|[{_LETTER}]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_PLAIN = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "ı": "i",
        "\u00ad": None,
        "\u200b": None,
        "\u200c": None,
        "\u200d": None,
    }
)
_TRANSCRIBED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
# "ue" after another vowel is no ü: Bauer, Sauer.
_UMLAUT = re.compile("(?<![aeioq])([aou])e|a(?=a)")


def fold(word: str) -> str:
    """The base form of a word: small letters without accents. It may be longer or shorter."""
    if word.isascii():
        return word.lower()
    plain = word.lower().translate(_PLAIN)
    return _ACCENTS.sub("", normalized("NFKD", plain))


def tokens(text: str) -> list[str]:
    """The words and numbers of a text, in their base form."""
    return [fold(token) for token in TOKEN.findall(text)]


def spellings(word: str) -> set[str]:
    """The base forms of a word and of its transcriptions: muller and mueller for both."""
    base = fold(word)
    composed = normalized("NFC", word).lower()
    transcribed = fold(composed.translate(_TRANSCRIBED))
    forms = {base, transcribed}
    forms |= {_UMLAUT.sub(r"\1", form) for form in (base, transcribed)}
    return forms


# -- endings ---------------------------------------------------------------------------------------

_GENITIVES = {
    "de": ("s", "es", "ens", "sche", "schen", "scher", "sches"),
    "en": ("s", "es"),
    "es": ("s", "es"),
    "fr": ("s",),
    "nl": ("s", "tje", "je"),
}
# Written with an apostrophe, Turkish endings are words of their own; many people leave it out.
_TURKISH = [
    "i",
    "u",
    "a",
    "e",
    "yi",
    "yu",
    "ya",
    "ye",
    "in",
    "un",
    "nin",
    "nun",
    "yin",
    "da",
    "de",
    "ta",
    "te",
    "dan",
    "den",
    "tan",
    "ten",
    "la",
    "le",
    "yla",
    "yle",
    "lar",
    "ler",
    "larin",
    "lerin",
    "lara",
    "lere",
    "lari",
    "leri",
    "daki",
    "deki",
]
_POLISH_ADJECTIVE = ["i", "a", "ie", "iego", "iemu", "im", "iej", "ich", "imi"]
_POLISH_ADJECTIVE_HARD = ["y", "a", "e", "ego", "emu", "ym", "ej", "ych", "ymi"]
_POLISH_MASCULINE = [
    "a",
    "owi",
    "em",
    "iem",
    "u",
    "e",
    "ie",
    "owie",
    "ow",
    "om",
    "ami",
    "ach",
    "y",
    "i",
]
_POLISH_FEMININE = ["a", "y", "i", "e", "ie", "o", "om", "ami", "ach"]
# Before the ending -e, Polish softens the stem's last letter: Monika, Monice; Piotr, Piotrze.
_POLISH_SOFTENED = (
    ("ch", "sze"),
    ("st", "scie"),
    ("k", "ce"),
    ("g", "dze"),
    ("r", "rze"),
    ("t", "cie"),
    ("d", "dzie"),
    ("l", "le"),
)
_SHORTEST_STEM = 3
_SHORTEST_TURKISH = 4


def inflections(base: str, languages: Iterable[str]) -> set[str]:
    """The base form with the endings that names take in these languages."""
    if len(base) < _SHORTEST_STEM or not base.isalpha():
        return set()
    forms: set[str] = set()
    for language in languages:
        if language == "pl":
            forms.update(_polish(base))
        elif language == "tr":
            if len(base) >= _SHORTEST_TURKISH:
                forms.update(base + ending for ending in _TURKISH)
        else:
            forms.update(base + ending for ending in _GENITIVES[language])
    return forms


def _polish(base: str) -> Iterator[str]:
    if base.endswith(("ski", "cki", "dzki", "ska", "cka", "dzka")):
        yield from _with_endings(base[:-1], _POLISH_ADJECTIVE)
        return
    if base.endswith("y"):
        yield from _with_endings(base[:-1], _POLISH_ADJECTIVE_HARD)
        return
    if base.endswith("a"):
        stem = base[:-1]
        yield from _with_endings(stem, _POLISH_FEMININE)
        yield from _softened(stem)
        return
    if base.endswith("o"):
        yield from _with_endings(base[:-1], _POLISH_MASCULINE)
        return
    yield from _with_endings(base, _POLISH_MASCULINE)
    yield from _softened(base)
    # The e of Marek, Paweł and Kupiec is gone in Marka, Pawła, Kupca.
    if base[-2] == "e":
        stem = base[:-2] + base[-1]
        yield from _with_endings(stem, _POLISH_MASCULINE)
        yield from _softened(stem)


def _with_endings(stem: str, endings: Iterable[str]) -> Iterator[str]:
    for ending in endings:
        yield stem + ending


def _softened(stem: str) -> Iterator[str]:
    for last_letters, softened in _POLISH_SOFTENED:
        if stem.endswith(last_letters):
            yield stem.removesuffix(last_letters) + softened
            return


# -- common words ----------------------------------------------------------------------------------
# Words that are names and something else as well, in the seven languages, in their base form.
#
# Each set says what the words are besides names. `names` decides by that where a name
# stands.

# Those that tell the turns of a conversation apart, where it goes as one text.
_OF_TURNS = word_set("assistant role system turn user")

# Words of everyday language and of findings, too.
COMMON = _OF_TURNS | word_set(
    """
    able grace zajac ada ader ager agua ahorn aine alba alegria alma alt altin amable amado
    amber amor amour ange angel angeles anger angst appel apple april arm arme art arzu ash
    asker aster asuncion ata atem ates aube auge august aurora aurore autumn ay baas baby bad
    bahar bahce bak baker bal balik ball bank bar barba bare baris barn barrio bas bass bauch
    bauer baum bay bayrak beam bean bear beau bebek beck bee beek been beer bein bell bella
    belle bello berg berger berry best beyaz biala bialek bialy bilge bilgi bilinmiyor bill
    birch bird bischof bishop black blanc blanca blanche blanco blank blass blast blau bloed
    bloem bloemen blood bloom blue blut bocian boden bogacz bois boisson bolt bon bond bone
    bonne bonnet book boom bora born bos bot bouche boucher bow bowl boy boz brand braun bravo
    breed breit bremse bridge bright brook brooks brown bruin brun brust brzoza buck buena bueno
    buik buk bulut bund burak burg burn burns bush butcher butter byk cabello cabeza calle cam
    camino campo campos can candan candy cane cansu cap carbon card care caridad carpentier casa
    case cash castillo castle cebula cerise cesur cevik chance chapelle chase chat chleb chory
    christ christian church cicek cichy cielo ciemny cinar claire clavel clay clear clemente
    cliff close cloud coal coban coffin cold collar colombe concepcion constant consuelo cook
    coq corn corona corps cortes corto cotton couch court couture cox crane crisp cross crown
    cruz cuerpo cuesta cure curry czarna czarny czerwony dab dag daily dal dale dam damla darm
    dash date dawn day days dean dear deep dekker delgada demir deniz dent derin desconocido
    desire deszcz deva diamant dick diez dik dilek dill dlugi dobra dobry dock doga dokter dolor
    dolores dolu don donker dood dove down drew droit droog dry duin duke dulce duman dumm dunn
    duran duru duygu dwarf dym dzieciol dziecko dzik eagle early east ece edge ekin ekmek elder
    elmas emek emin england english ernst es esen esperanza estrella eve even ever expuesto ezgi
    fair faith falk fall fast fatih faure faust fe fear fein feld feliz female fest fett feuer
    fidan fieber field fink fish fleck fleisch fleur flood floor flor flores flower fontaine
    foot ford forest fort fox franco frau free french friend frisch frost fuchs fuente fuerte
    fuller fuss gabel gaj gale galle gallo game garden gast gauche gay gece geel geest gelb
    gelenk genc gene gentil gentle gesund gift gil girl gizem glass glatt glick gloria glowa
    glowacz goed goede gok golab gold golden good gora gordo gorny gott graaf grace grad grand
    grande grant gras grau grave graves gray green grey gris grob groch groen groot groote gros
    gross grosser grove grund gruszka grzyb guard guerra guerre guest gul gulec gumus gun gunes
    gur gut guven guy guz guzel haan haar haarig haas hagel hahn hail hak hall hals hammer han
    hand hands hap hard hart hase hasret haus haut hava hay hayat hazan head heal heard heart
    heath heer heil heim heiss hell helm herbst herd herr herz heuvel hierro hill hirn hirsch
    hiver hoch hoden hoek hof hole holiday holland holz homme hond honey hood hoofd hook hope
    horn horner hose house hoyo hue huhn huis hund hunger hunt hunter hurt husten hut huzur ice
    igel iglesia ilik ilker ill inan inci inconnu inmaculada ipek iris iron isik ivory ivy iyi
    izquierda izquierdo jablko jack jade jagoda jan january jardin jaskolka jawor jay jelen
    jewel jez joli jolie jolly jong jonge joy judge juli july june juni jurado just justice kaas
    kaczka kale kalf kalt kamm kamp kan kanat kania kara karaca karp kartal kat kater katz kavak
    kawa kay kaya keel keen kegel kehle keizer kern keskin key kiefer kielbasa kilic kim kind
    king kip kirmizi kirsch kisa kiss kit klar klein klok klos knie knight knoll knop koc koch
    kogut kohl kok kolano konig koning kool kop kopf kor korn korner kort kos kosc kot koyun
    koza kozak kraft krank kraus krebs kreis kreuz krol kroon kropf kropka krotki kruk kuhl kula
    kummer kunst kura kurt kurz kus kuzu kwiat laan lago lake lale lam lamb lance land lang
    lange large lark las last laster lato laurier law lawn leader leaf leal lean lebe leber
    leder leer leeuw leicht leid lemon lende lens leon les lew libertad licht lider lieb liebe
    lief light lijn lily link links lion lipa lippe lis little lobo lock locke lohn long lord
    loud loup love low luck luna lung lunge lust luz lysy maas mace madera magen maire maitre
    maj major mak mala male maly man mandel mann mar maravilla march marchand marin marine
    marino mark marks mars marsh marshall mart marzec mason masse matte matter maus mavi max may
    mayor mazur mead meadow mech meer meester mehl mel melek melody mercado merced mercy merry
    messer metin milagros milan mild miles mill milz mine minor miska mlody mlot moeder mohr mol
    molen moll mond monje mooi moon moor moore mora morgen moss motyl mount mouton mroz mucha
    muis mund must mutig mutlu mutter mysz nabel nagel nail nase neck neige nek nerv neu nice
    niere nieto nieve nieves nieznany night nino niski noble noel noga noir noll nood nord north
    nos nova nowa nowy nur nurse nuss oak ober ohm ohr okan oko olgun olive olivia olvido omur
    on onbekend onur oog oor oosten opal oral orange orman oro orzech orzel osa ostry otter oud
    ouden oz paard paciente page pain paine pajak palka palm pamuk pardo parent paris park
    partridge pasek pass pat patch patience patient patientin paw paz peace peach pearl peer peg
    pena pence penny people pepper pera perl perle petit petite pfeffer pflug piasek piece pien
    pierre pies pietruszka pijn pike pila pilar pilat pilgrim pill pin pinar pine pink pino piwo
    place plata plaza plucik plum pogoda poirier poisson poker pole polo pomme pool poor poot
    pope porte porter post potok pott pound power pozo price prince prins prior prosty proud
    prudence prune ptak puente pulse punt purple quick quill raad raaf rabe rachen rain rak ram
    rasch rat rau rauch raven ray read reading real recht reed reich reif rein reine reis reiter
    reka remedios reposo rest rey rice rich riche rico ridder ring ringer rio rios rip rippe
    rippen ritter river riviere rivière robe robin roca roche rock rod rog rogal roi roja rojo
    roller roman rome rood roos root rosa rose rosen rot roth row rozga ruby rucken ruda rudy
    rue rug ruhe ruiter rush rust ruth ryba sabah sabir sadik sage sahin sailor salt salud
    salvador salz sand sands sang sanger sano santa santo santos sari sarna sarp satt sauer
    sauvage savage savas saw saz scar schaap schaf schatten schatz schild schilder schlaf
    schlank schlecht schmerz schnee schnell schoen schon schulter schutz schwan schwarz
    schweiger seco see sehne seide sen senf senior serene sereno sert ses sevda sevgi shade
    shaft sharp shaw shell shepherd sherry shin shine ship short showers sicak siegel sierra
    silber silver simple simsek singer skin skora sky slaby slack slager slonina smal small
    smart smutny snel snow socorro sokol sol solano soledad sommer song sonmez sonne sorge soto
    south sowa soylu spade spar spat specht speck speer spiegel spinner spitz spoor sport spring
    staal stab stahl stamm star stark starr stary stat steel steen stein ster sterk stern stich
    still stirn stock stone storm strand strange strauch street strong stumpf sturm su suchy sue
    suero summer sun sunday swan sweet swieca swift szary szyszka tab tad tag tailor tand tas
    taub tee teen temel temple tender test teufel thorn thumb tiger till tisch tkacz toll toprak
    toro torre tot tower town tree trip trost truth tuin tuna turk tutku twist ty ucar ufer ufuk
    ugur ulker umut unbekannt unknown uslu usta uzman uzun vaca vale valle van veen vela veld
    vene verdad verde vert vet vicario victoire vida viejo viento villa vink viola violet
    violette vivo vlees vloed vogel voisin voll vos vrede waal wache wade waga wal wald walker
    wall wand wange ward warm warner water waters watt way wazny weed weg wegiel weich wein
    weiss welle wesoly west wheat wheeler white wiatr wiecek wiel wijn wild wilde wilk will wilt
    wind winkel winkler winter wiosna wirbel wirt wise wisnia wit witte wolf wolke wood woods
    wool worth wright wrona wunde wunder wurm wydra wysoki yagmur yaprak yasar yavas yazar
    yazici yel yesil yigit yildirim yildiz yolcu young younger yuksel yurt zab zafer zahn zajac
    zak zand zange zapata zdrowy zee zeki zengin ziarno ziek ziel zielony ziemia zilver zima
    zimmer zloty znak zomer zon zor zorn zucker zuid zwaan zwaar zwart zyla zyto
    """
)

# Names of months and days have capital letters in English and German text wherever they stand.
ALWAYS_CAPITAL = word_set(
    """
    january february march april may june july august september october november december januar
    februar marz mai juni juli oktober dezember monday tuesday wednesday thursday friday
    saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag ocak subat mart
    nisan mayis haziran temmuz agustos eylul ekim kasim aralik
    """
)

# Diseases, signs, scores and devices are named after these people.
EPONYMS = word_set(
    """
    addison adams albright alport alzheimer apgar arnold asperger babinski baker bard barrett
    bartholin bartter basedow bechterew behcet bell bence berger biot bishop bouchard boas bowen
    brown brudzinski brugada budd buerger burkitt byrne castleman chagas charcot cheyne child
    chiari chvostek conn cooley cori coombs crohn cullen cushing dandy dercum down dressler
    duchenne dupuytren ebstein eddy edwards ehlers eisenmenger epley epstein erb ewing fabry
    fallot fanconi felty foley fournier friedreich frank galen gaucher gehrig gerstmann gilbert
    gilles gleason glasgow goodpasture gottron graves grawitz guillain hansen hallux hartmann
    hartnup hashimoto heberden heimlich henoch hirschsprung hodgkin holter homan horner
    huntington hurler hutchinson jacobson janeway jones kaposi kartagener kawasaki kernig
    killian kimmelstiel klinefelter koch kocher korsakoff krukenberg kussmaul kupffer lachman
    langerhans laennec lambert lasegue lennox lesch lewy lisfranc loffler lyme lynch mallory
    marfan mcburney meckel meniere menetrier merkel meyer mobitz morton munchausen murphy nelson
    niemann nissen noonan osgood osler paget pancoast parkinson patau perthes peutz peyronie
    pick plummer pompe pott prader prinzmetal quincke ramsay raynaud reiter rett reye riedel
    rinne romberg roux rovsing scheuermann schilling schonlein schwann sezary sheehan simmonds
    sims sjogren spence stein stevens still stokes sturge sudeck sydenham takayasu tay thomas
    thompson tietze tinel todd tourette trendelenburg trousseau turner virchow vincent
    waldenstrom wallenberg warthin weber wegener weil wernicke west whipple widal willebrand
    williams wilms wilson wolff wood zenker zollinger
    """
)

# Parts of family names that are no names alone.
PARTICLES = word_set(
    """
    a af al an and av ap bin ben bint da dal das de degli dei del della den der des di do dos du
    e el ibn im in la las le les lo los ni of op san sankt st sainte saint santa t te ten ter
    the van vande vander vom von und y zu zum zur
    """
)

# Written before or after a name, and no part of it.
TITLES = word_set(
    """
    dr doctor doktor dra med dent rer nat phil prof professor profesor profesora priv doz mr mrs
    ms miss mister sir lady lord dame herr frau hr fr fraulein monsieur madame mademoiselle m mm
    mme mlle senor senora senorita sr sra srta don dona mijnheer meneer mevrouw mevr dhr mw drs
    ir pan pani panna bay bayan bey hanim sayin uzm op doc jr ii iii iv md do phd msc bsc rn np
    pa facs frcp esq dipl ing mag lek hab nurse schwester pfleger
    """
)

# What records write where a relative's name is not known.
KINSHIP = word_set(
    """
    mother father brother sister son daughter grandmother grandfather aunt uncle cousin wife
    husband spouse maternal paternal mutter vater bruder schwester sohn tochter grossmutter
    grossvater oma opa tante onkel ehefrau ehemann mere pere frere soeur fils fille grand oncle
    mari femme conjoint madre padre hermano hermana hijo hija abuela abuelo tia tio esposa
    esposo moeder vader broer zus zoon dochter grootmoeder grootvader oom echtgenoot echtgenote
    matka ojciec brat siostra syn corka babcia dziadek ciotka wujek zona maz anne baba kardes
    abla agabey ogul kiz nine dede teyze amca
    """
)

# German writes every noun with a capital letter, so that there a capital says nothing.
GERMAN_WORDS = word_set(
    """
    der die das und ist nicht mit bei ein eine einen einer wurde war im am zum zur von auf seit
    nach ohne keine kein sich sind wird hat
    """
)

# What organizations are; a name of nothing else names none.
GENERIC_PLACES = word_set(
    """
    hospital hospitals clinic clinics practice surgery ward unit department pharmacy laboratory lab
    health centre center medical medicine care general emergency room klinik klinikum krankenhaus
    praxis ambulanz abteilung apotheke labor zentrum station innere medizin chirurgie radiologie
    kardiologie hopital clinique cabinet pharmacie laboratoire centre service hospital clinica
    centro salud farmacia ziekenhuis kliniek praktijk apotheek afdeling szpital klinika przychodnia
    apteka oddzial hastane hastanesi klinik klinigi eczane merkezi saglik cardiology radiology
    surgery oncology neurology and und et y of the de der
    """
)


# -- vocabulary ------------------------------------------------------------------------------------
# The words of all identifiers, and where forms of them stand in a text.

# So many are looked for one by one, which is faster than all words of a text.
_FEW_WORDS = 24


@dataclass(frozen=True, repr=False)
class Hit:
    """A word of a text that is a form of some word of an identifier.

    Attributes:
        start: Where the word starts in the text.
        end: Where it ends.
        spelling: The word as the text has it.
        form: The word in its base form.
        bases: The words of identifiers that it may be a form of.
        is_inflected: Whether it has an ending that those words do not have.
    """

    start: int
    end: int
    spelling: str
    form: str
    bases: frozenset[str]
    is_inflected: bool

    @property
    def is_capital(self) -> bool:
        """Whether the word is written with a capital letter."""
        return self.spelling[0].isupper()


@dataclass(frozen=True, repr=False)
class Scan:
    """A text, its different words, and the hits among them in the order of the text."""

    text: str
    words: Collection[str]
    hits: list[Hit]


class Vocabulary:
    """All forms of the words of all identifiers, with the words that they are forms of."""

    def __init__(self, languages: Collection[str]) -> None:
        self._languages = languages
        self._bases: set[str] = set()
        self._forms: dict[str, set[str]] = {}
        self._inflected: dict[str, set[str]] = {}

    def add(self, word: str) -> str:
        """Adds a word with its transcriptions and endings; returns its base form."""
        base = fold(word)
        if base in self._bases:
            return base
        self._bases.add(base)
        for spelling in spellings(word):
            self.add_form(spelling, base)
            for form in inflections(spelling, self._languages):
                self._inflected.setdefault(form, set()).add(base)
        return base

    def add_form(self, form: str, base: str) -> None:
        """Adds a form in which a word is written, such as its abbreviation."""
        self._forms.setdefault(form, set()).add(base)

    def scan(self, text: str) -> Scan:
        """The places of a text that have a form of any word."""
        words = set(TOKEN.findall(text))
        entries: dict[str, tuple[str, frozenset[str], bool]] = {}
        for word in words:
            form = fold(word)
            if form in self._forms:
                bases = self._forms[form]
                entries[word] = (form, frozenset(bases), False)
            elif form in self._inflected:
                bases = self._inflected[form]
                entries[word] = (form, frozenset(bases), True)
        if not entries:
            return Scan(text, words, [])
        hits = [
            Hit(start, start + len(word), word, *entries[word])
            for start, word in _places(text, entries)
        ]
        return Scan(text, words, hits)


def _places(text: str, words: Collection[str]) -> list[tuple[int, str]]:
    """Where these words stand in a text, in its order."""
    if len(words) > _FEW_WORDS:
        tokens = TOKEN.finditer(text)
        return [(token.start(), token[0]) for token in tokens if token[0] in words]
    places: list[tuple[int, str]] = []
    for word in words:
        start = text.find(word)
        while start >= 0:
            end = start + len(word)
            token = TOKEN.match(text, start, end + 1)  # it may be very long
            ends_here = token is not None and token.end() == end
            goes_back = start > 0 and TOKEN.fullmatch(text, start - 1, start + 1)
            if ends_here and not goes_back:
                places.append((start, word))
            start = text.find(word, end)
    places.sort()
    return places
