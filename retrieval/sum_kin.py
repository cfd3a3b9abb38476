"""Which sum a question asks for, and the words by which a contract speaks of it.

"What is the late payment fee?" is answered by "interest on overdue sums", and not by "a service fee
of EUR 450". Each kind of sum has the words that contracts use for it, rather too many of them: what
they miss is refused. A sum of no known kind is told by its own words ("the corkage fee"). It knows
words, no meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from retrieval.folding import fold
from retrieval.party_roles import ROLES
from retrieval.stems import stem
from retrieval.sum_names import asked_sum
from retrieval.wordlists import word_list

_ASKED_CHARS = 90
_FOR = re.compile(
    r"\W*(?:(?:what|how\s+(?:much|high))(?:\s+(?:is|are)|'s)\s+the|is\s+there\s+an?)\s+"
    r"(?:fees?|charges?|costs?|penalty|price|interest)\s+(?:for|of|on)\s+"
    r"(?:the\s+|an?\s+)?(?P<of>[a-z][a-z -]{3,40}?)\W*"
    r"|\W*is\s+there\s+an?\s+(?P<there>[a-z][a-z' -]{2,40}?\s+(?:fee|charge))\W*"
)
_CHARGE = re.compile(r"\b(?:fees?|(?:sur)?charges?|costs?|prices?|rate)$")
"""Of an unknown kind, a sum must be told to be one that is charged: "the principal amount" has
many other names."""
_SUFFIX_ZH = re.compile(r"(?:费用?|补贴?|津贴)$")
_TOLD_ZH = re.compile(r"^(?:每[月年]|[月年]|应付|应交|本合同|合同)")
_ANY_SUM = frozenset(
    (
        "service", "services", "net", "gross", "applicable", "relevant", "standard", "normal",
        "usual", "main", "ongoing", "recurring", "contractual", "outstanding", "flat", "lump",
        "one", "off", "fixed", "variable", "agreed", "due", "upfront", "front", "pay",
    )
)  # fmt: skip
"""Words before "fee" that the sum of the contract's own matter has as well as not."""


@dataclass(frozen=True, slots=True)
class Kin:
    """Sums of which a name has `asked`, and the words `said` by which contracts speak of them, of
    folded texts. `other` are such words said of something else. `close`: the words must stand by
    the figure. `known`: a sentence that charges something in such words answers, however little
    else it shares with the question."""

    asked: re.Pattern[str]
    said: re.Pattern[str]
    other: re.Pattern[str]
    close: bool = False
    known: bool = False


def _kin(
    asked: str, said: str, other: str = r"(?!)", *, close: bool = False, known: bool = False
) -> Kin:
    return Kin(re.compile(asked), re.compile(said), re.compile(other), close, known)


_LATE = (
    r"\b(?:late|overdue|delay\w*|arrears|dunning|unpaid|non-?payment|outstanding"
    r"|(?:in|on)\s+time|when\s+due|past\s+due)\b"
    r"|\bdefault(?:ed|ing)?\s+(?:in|on|interest|rate)\b|\bin\s+default\s+(?:of|with)\b"
    r"|\bnot\s+(?:been\s+)?(?:pay|paid)|\bfail(?:s|ure)?\b[^.;]{0,40}\bto\s+(?:make\s+)?pay"
    r"|\bafter\s+(?:the|its|their)\s+(?:due|payment)\s+da"
)
_OWED = (
    r"(?:pay\w*|paid|rents?|invoices?|sums?|amounts?|price|instal?lments?|fees?|charges?|dues|debts?|money|bills?"
    r"|balances?|interest|settl\w*)"
)
_UNPAID = (
    rf"\b(?:late|overdue|unpaid|delayed|outstanding|past[\s-]due)\s+(?:(?:with|in)\s+)?(?:\w+\s+)?{_OWED}\b|\barrears\b|\bdunning"
    rf"|\bnon-?payment|\b{_OWED}\b(?!\s+(?:shall|must|is|are)\s+(?:be\s+)?(?:paid|due))[^.;,]{{0,60}}?"
    # Late by itself, not a late something.
    r"(?:\b(?:late|delayed)\b(?!\s+(?!payment|by|than|shall|will|is|are|bears?|for|after|in\b|with|and"
    r"|or|the|a\b|fee|charge|interest)[a-z])|\b(?:overdue|(?:not|un)\s?paid|past\s+due)\b)"
    r"|\blate\s+(?:fee|charge)"
    r"|\b(?:do(?:es)?|did|ha(?:s|ve))\s+not\s+(?:(?:make\s+)?pay|paid\b"
    rf"|received\s+(?:\w+\s+)?{_OWED})"
    r"|\bfail\w*\b[^.;]{0,40}\bto\s+(?:make\s+)?pay"
    r"|\bnot\s+(?:be(?:en)?\s+|make\s+)?(?:pay(?!able)\w*|paid|received)"
    r"\b[^.;]{0,60}\b(?:due|time|date|deadline|days?)\b"
    rf"|\bafter\s+(?:the|its|their)\s+(?:due|payment)\s+da|\bdefault\w*\s+(?:interest|rate|(?:on|in|with|of)\s+(?:\w+\s+)?{_OWED})"
    rf"|\b(?:default|delay)\b[^.;,]{{0,30}}\b(?:in|with|of)\s+(?:\w+\s+)?{_OWED}|\bmiss\w*\s+(?:\w+\s+)?{_OWED}"
)
_INSTALLED = (
    r"set(?:ting|s)?[\s-]?up|instal(?!l?ments?\b)|activat|\bconnect|commissioning|configur|assembl"
    r"|mount|fitting"
)
_JOINED = (
    r"\bjoin|regist|enrol|sign(?:ing)?[\s-]up|\binitia|\bentry|admission|admit|introduc|\bopening"
)
_ENGLISH = (
    _kin(
        r"\b(?:late|overdue|delayed)\s+(?:pay|rent|invoice)|^late\s+(?:fee|charge|interest)|\boverdue\b|\barrears\b"
        r"|^default|\bnon-?payment",
        _UNPAID,
        r"\b(?:late|delay\w*)\s+(?:(?:in|of)\s+)?(?:the\s+)?(?:deliver|complet|perform|return|handing"
        r"|arrival|goods|items|products|works?\b|parts?\b|equipment|shipment)\w*"
        r"|\b(?:return|deliver|complet|hand)\w*\s+(?:\w+\s+)?late\b|\b(?:day|week)s?\s+of\s+delay(?!\s+(?:in|of|with)\s+(?:\w+\s+)?pay)",
        close=True,
        known=True,
    ),
    _kin(
        r"\b(?:late|delay|delayed|default)\b",
        rf"{_LATE}|\b(?:after|later|within|beyond|exceed\w*)\b",
        close=True,
    ),
    _kin(
        r"\b(?:cancel\w*|terminat\w*|early|break|exit|withdraw\w*|kill|no[\s-]show)\b(?!\s+(?:(?:payment|settlement|bird)\s+)?discount)",
        r"cancel|withdr[ae]w|terminat|rescind|rescission|revok|\bbreak\b|\bkill\b|no[\s-]?show"
        r"|\bearl(?:y|ier)\b|\bleav(?:es?|ing)\b|\bquit|\bcall(?:s|ed)?\s+off|\bstops?\b|\bexit"
        r"|\bpull(?:s|ed)?\s+out|\bends?\s+(?:this|the|it)\b|\bprepay|\brepay|\bgives?\s+up"
        r"|\bbefore\s+(?:the\s+)?(?:end|expiry)|\bdoes\s+not\s+(?:come|show|appear|attend)",
        close=True,
    ),
    _kin(r"\binstal(?!l?ments?\b)|\bconnection\b|\bassembly\b", _INSTALLED, close=True),
    _kin(r"\b(?:joining|regist\w*|enrol\w*|sign[\s-]?up|entry|initiation)\b", _JOINED, close=True),
    _kin(
        r"\bset[\s-]?up\b|\bonboarding\b|\bactivation\b|\bimplementation\b|\bstart-?up\b|\binitial\s+(?:fee|charge|cost)",
        rf"{_INSTALLED}|{_JOINED}|onboard|implement|\bstart(?:ing|-?up)\b|\bone[\s-]?(?:time|off)\b"
        r"|\bonce\b",
        close=True,
    ),
    _kin(
        r"\b(?:deposit|bond|surety|security|down\s?payment)\b",
        r"deposit|secur|\bbond|surety|guarant|retainer|earnest|down\s?payment"
        r"|(?<!in )advance|up-?front"
        r"|\bon\s+(?:signing|signature|booking|order\w*)\b|caution|\bblock|escrow",
        close=True,
    ),
    _kin(
        r"\b(?:deliver\w*|ship(?:ping|ment)|freight|carriage|transport\w*|postage|courier)\b",
        r"\bdeliver(?:y|ies)\b|\bship|freight|carriage|transport|\bpost(?:age|al|ing)?\b|courier|\bhaul"
        r"|d[ei]spatch|carrier|forward(?:ing|er)|logistic",
        r"\b(?:late|delay\w*)\s+(?:in\s+)?(?:deliver|ship)\w*|\b(?:day|week)s?\s+of\s+delay"
        r"|\b(?:on|upon|after|before|from|until|at|by|following"
        r"|(?<!costs )(?<!cost )(?<!price )(?<!charge )(?<!charges )of)"
        r"\s+(?:\w+\s+)?(?:deliver|ship)\w*",
        close=True,
    ),
    _kin(
        r"\brenew\w*",
        r"renew|exten[ds]|prolong|\broll|\b(?:subsequent|further)\s+(?:year|term|period)",
        close=True,
    ),
    _kin(r"\bremind\w*", r"remind|dunning"),
    _kin(
        r"\bpurchase\b|\bsales?\s+price|\bselling\b",
        r"\bpric|purchas|\bbuy(?:s|ing)?\b|bought|\bsells?\b|\bsold\b|\bsale|consideration"
        r"|contract\s+sum|acqui",
    ),
    _kin(
        r"\b(?:salary|wages?|remuneration|compensation)\b",
        r"salar|\bwage|remunerat|compensat|\bpay\b|stipend|\bearn|\bgross\b|employe",
    ),
    _kin(r"\binterest\b", r"interest|per\s+annum|\bp\.\s?a\.|%|per\s+cent|[ie]bor\b|base\s+rate"),
    _kin(
        r"\bcommission\b",
        r"commission|broker|reward|finder|referral|\bearn|introduc|intermedia|success\s+fee",
    ),
    _kin(r"\bagen(?:t|cy)\b|\bbroker\w*", r"\bagen(?:t|c)|broker|finder|commission|intermedia"),
    _kin(r"\broyalt\w*", r"royalt|licen[cs]e\s+fee|turnover|\bsales\b|revenue"),
    _kin(
        r"\b(?:penalt\w*|fine|liquidated)\b",
        r"penalt|liquidated|\bfines?\b|forfeit|damages|\bper\s+day\b|\bfor\s+(?:each|every)"
        rf"|breach|lump|{_LATE}",
    ),
    _kin(r"\blicen[cs]\w*", r"licen[cs]|subscri|\buser|\buse\s+of|\bright\s+to\s+use"),
    _kin(r"\b(?:insurance|premium)\b", r"insur|premium|\bcover|policy"),
    _kin(r"\bclean\w*", r"\bclean|\bdirt|\btid[iy]|\bwash"),
    _kin(r"\bparking\b|\bgarage\b", r"\bpark|garage|\bbays?\b|\bspace|vehicle|\bcars?\b"),
    _kin(r"\bsupport\b", r"support|assist|\bhelp|maint|hotline"),
    _kin(r"\b(?:training|course|tuition)\b", r"train|course|instruct|lesson|tuition|teach"),
    _kin(r"\badmin\w*|\bhandling\b|\bprocessing\b", r"admin|handling|process|paperwork|manag"),
    _kin(r"\barrangement\b|\borigination\b", r"arrang|originat|process|establish|drawdown"),
    _kin(r"\bmembership\b|\bsubscription\b", r"member|\bjoin|\bdues\b|subscri|access"),
    _kin(r"\b(?:attorney\w*|legal|lawyer\w*)\b", r"attorney|lawyer|counsel|legal|solicitor|court"),
    _kin(r"\bcall[\s-]?outs?\b", r"call[\s-]?out|\bvisit|\battend|emergenc|on-?site", close=True),
    _kin(r"\bbonus\b", r"bonus|gratuit|incentive|premium|reward|thirteenth|13th|profit"),
    _kin(r"\btravel\w*", r"travel|\btrip|\bmile|journey|transport|\bkm\b|hotel|expens"),
    _kin(r"\bretention\b|\bholdback\b", r"reten|retain|holdback|(?:hold|keep)s?\s+back|withh"),
    _kin(r"\brent(?:al)?\b|\bhire\b", r"\brent|\bhire|\bleas|tenan|\blet\b"),
    _kin(r"\btax(?:es)?\b|\bvat\b", r"\btax|\bvat\b|\blev(?:y|ies)|\bdut(?:y|ies)"),
    _kin(r"\bdiscount\b", r"discount|rebate|reduc|\bless\b|allowance|%"),
    _kin(r"\binstal\w*", r"instal|\bmonth|equal|payments"),
)  # fmt: skip
_LATE_ZH = r"滞纳|延期|误期|逾期|迟延|延迟|延误|罚息|违约|未按[期时约]|利息"
_CHINESE = (
    _kin(r"滞纳金|逾期", _LATE_ZH, close=True),
    _kin(r"违约金|罚款|罚金", rf"{_LATE_ZH}|罚|赔|解除|每日|退租", close=True),
    _kin(
        r"保证金|担保金",
        r"保证[金书]|担保|押金|抵押|质保[金款]|保函|扣留|预留|保留金|尾款",
        close=True,
    ),
    _kin(r"押金", r"押|保证金|担保", close=True),
    _kin(r"定金|订金", r"定金|订金|首[付期]|预[付订]|先付", close=True),
    _kin(r"首付|首期", r"首|定金|订金|预付|先付|签约", close=True),
    _kin(r"预付", r"预|首|定金|订金|先付|签约|提前", close=True),
    _kin(r"安装|调试", r"安装|调试|装配", close=True),
    _kin(r"运费|运输|配送|快递|物流|交通", r"运|物流|快递|配送|送货|交通|车费", close=True),
    _kin(r"中介|居间|佣金", r"中介|居间|佣|经纪|手续费|报酬|提成|提取", close=True),
    _kin(r"取消|退订|退租|解约", r"取消|退|解除|解约|终止|提前", close=True),
    _kin(r"续约|续期|续租|续签", r"续|延长", close=True),
    _kin(r"工资|薪|报酬", r"工资|薪|酬|劳务|收入"),
    _kin(r"奖金", r"奖|绩效|分红|提成"),
    _kin(r"服务费", r"服务|劳务|报酬|费用"),
    _kin(r"管理费|物业", r"管理|物业"),
    _kin(r"许可|授权|使用费", r"许可|授权|使用"),
    _kin(r"清洁|保洁|清理|清运", r"清|保洁|打扫|洗|卫生"),
    _kin(r"培训|学费|课", r"培训|学|课|教"),
    _kin(r"差旅|出差", r"差|旅|交通"),
    _kin(r"保险|保费", r"保险|保费|投保"),
    _kin(r"停车|车位", r"停车|车位|泊"),
    _kin(r"餐", r"餐|伙食|饭"),
    _kin(r"租", r"租"),
    _kin(r"税", r"税"),
    _kin(r"利息|罚息", r"息|利率|%|分之"),
)


@dataclass(frozen=True, slots=True)
class AskedSum:
    """The sum asked for by its `name`; its `kin` when it is of a known kind, else the `telling`
    words of its name, as stems or a Chinese stem of the name."""

    name: str
    kin: Kin | None
    telling: tuple[str, ...]
    chinese: bool


@lru_cache(maxsize=256)
def sum_asked(question: str) -> AskedSum | None:
    """The sum that a question asks for by a name that tells it from others; None for any other
    question."""
    if len(question) > _ASKED_CHARS:
        return None
    of = _FOR.fullmatch(fold(question).strip())
    if of is not None:
        name = of["of"] or of["there"]
        kin = next((one for one in _ENGLISH if one.asked.search(name)), None)
        return None if kin is None or not kin.close else AskedSum(name, kin, (), chinese=False)
    asked = asked_sum(question)
    if asked is None:
        return None
    name = asked.names[0]
    return _chinese(name) if asked.chinese else _english(name)


def _english(name: str) -> AskedSum | None:
    plain = word_list("sums_english") | word_list("periods_english") | _ANY_SUM
    plain |= word_list("english_stop") | word_list("asking_english")
    telling = [word for word in re.findall(r"[a-z]+", name.replace("'s", "")) if word not in plain]
    kin = next((one for one in _ENGLISH if one.asked.search(name)), None)
    if kin is not None:
        return AskedSum(name, kin, tuple(map(stem, telling)), chinese=False)
    telling = [word for word in telling if word not in word_list("light_english")]
    if (
        not _CHARGE.search(name)
        or not telling
        or any(word in ROLES or word.rstrip("s") in ROLES for word in telling)
    ):
        return None
    return AskedSum(name, None, tuple(map(stem, telling)), chinese=False)


def _chinese(name: str) -> AskedSum | None:
    kin = next((one for one in _CHINESE if one.asked.search(name)), None)
    core = _SUFFIX_ZH.sub("", _TOLD_ZH.sub("", name))
    if kin is None and (core == name or not core):
        return None
    return AskedSum(name, kin, (core,), chinese=True)
