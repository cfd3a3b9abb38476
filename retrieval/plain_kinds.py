"""Kinds of plain questions, and the wordings of contracts that answer them and nothing else.

A kind knows its questions whole: a further word ("the hourly rate *for the supervisor*") makes it
another question. The thing and the party asked for must be the subject or the object of the verb
that answers, with nothing that qualifies them. Patterns for English and Chinese; judged by
`plain_facts`. They know wordings, no meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.asked import AskedKind, holds
from retrieval.party_roles import names_of

_BLANK = re.compile(r"_{2}")
_EVERY_PARTY = r"(?:either|each|neither|any|no)\s+party"
_EVERY_PARTY_ZH = r"(?:双方|各方|任何?一方)"


@dataclass(frozen=True, slots=True)
class Kind:
    """Questions that `asked` matches whole, answered by a sentence that matches `said`, holds one
    of `facts` (any, when empty) and does not match `other`, which is said of something else.

    What the group `thing` matched in the question stands for THING in `said`, by the names that
    `things` gives it; the group `party` stands for PARTY, by any name of that role or by "either
    party"; where the question names none, PARTY is anybody.
    """

    asked: re.Pattern[str]
    said: str
    facts: tuple[AskedKind, ...] = ()
    other: re.Pattern[str] | None = None
    things: tuple[str, ...] = ()

    def answers(self, asked: str, body: str) -> bool:
        """Whether a sentence answers a question, both with their width folded."""
        match = self.asked.fullmatch(asked)
        if match is None or _BLANK.search(body):
            return False
        found = match.groupdict()
        said = self.said.replace("THING", self._named(found.get("thing") or ""))
        said = said.replace("PARTY", _anyone(found.get("party") or ""))
        if not re.search(said, body, re.IGNORECASE):
            return False
        if self.facts and holds(body, self.facts) < 1.0:
            return False
        return self.other is None or not self.other.search(body)

    def _named(self, thing: str) -> str:
        for names in self.things:
            if re.fullmatch(names, thing, re.IGNORECASE):
                return rf"(?:{names})"
        return re.escape(thing)


def _anyone(party: str) -> str:
    """A pattern for the party that a question names, or for any."""
    chinese = bool(re.search("[\u4e00-\u9fff]", party))
    if not party:
        named = r"(?:the\s+)?(?-i:[A-Z])[\w-]*(?:\s+(?-i:[A-Z])[\w-]*)?"
        return rf"(?:{named}|{_EVERY_PARTY})"
    names = "|".join(re.escape(name) for name in names_of(party.lower()))
    if chinese:
        return rf"(?:{names}|{_EVERY_PARTY_ZH})"
    return rf"(?:(?:the\s+)?(?:{names})|{_EVERY_PARTY})"


def _wording(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


def _question(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{'|'.join(patterns)})\W*", re.IGNORECASE)


# Where a sentence, or one of those that stand together under a number, begins.
_START = r"(?:^|[.;:)\d]\s+)"
_START_ZH = r"(?:^|[\s,，.;；。、:：条])"
_CLAUSE_ZH = r"(?:^|[\s.;；。、:：条])"
_CONTRACT = r"(?:agreement|contract|lease)"
_THIS = (
    r"(?:this\s+(?:[\w-]+\s+){0,2}?(?:agreement|contract|lease)"
    r"|the\s+(?:agreement|contract))\b"
    r"(?!\s+(?:(?:of|between)\b|for\s+(?!convenience|any)|with\s+(?!(?:[\w'()-]+\s+){1,5}notice)))"
)
_NAMED_CONTRACT = rf"(?:the|this|our)\s+{_CONTRACT}"
_ASKED_PARTY = r"(?:the\s+)?(?P<party>party\s+[a-c]|(?!party\b)[a-z-]+)"
_AUX = r"(?:(?:may|can|shall|will|is|are|be|not|only|also|hereby|annually|yearly)\s+)"
_RISE = r"(?:increas|rais|ris|goes\s+up|go\s+up|adjust|index|revis)\w*"
_CONDITION = (
    r"\b(?:if|where|who|third|death|unless|late|overdue|interest)\b|\bin\s+the\s+event\b|\bdelay"
)
_OWN = (
    r"(?:(?:shall|will|is|are|be|exclusively|solely|always)\s+){0,4}"
    r"(?:belongs?\s+to|vests?\s+in|vested\s+in|owned\s+by"
    r"|(?:(?:remains?|stays?|becomes?)\s+)?the\s+(?:sole\s+|exclusive\s+){0,2}property\s+of)\b"
)
_OWNED_THING = (
    r"intellectual\s+property(?:\s+rights)?|ip(?:\s+rights)?|inventions?|patents?|copyrights?"
    r"|work\s+product|know-?how|designs?|source\s+code|software|deliverables"
    r"|drawings?|reports?|data|records?|tooling|tools|mou?lds?"
)
_COST = r"(?:tax(?:es)?|duties|freight|shipping|transport|carriage|insurance|packing)"
_PLACE_ZH = r"(?P<thing>房子|房屋|商铺|店铺|场地|厂房|仓库)"
_PLACES_ZH = ("房子|房屋",)
_SUM_ZH = r"(?:合同)?(?:总价款?|总金额|价款总额|总额|价款|金额)"
_CONDITION_ZH = r"的[,，]|[如若]|逾期|违约|延误|迟延|保险|罚"
KINDS = (
    # How much the rent or the price may rise.
    Kind(
        _question(
            r"(?:by\s+)?how\s+much\s+(?:can|may|could|will|does|do)\s+the\s+"
            r"(?P<thing>rents?|prices?|fees?)\s+(?:go\s+up|increase|rise|be\s+(?:raised|increased))"
            r"(?:\s+(?:each|every|per|a)\s+year)?"
        ),
        rf"(?:{_START}|\byear,?\s+|\bthen\s+on,?\s+)the\s+THING\s+{_AUX}{{0,5}}{_RISE}"
        rf"|\b(?:raise|increase|adjust)\s+the\s+THING(?!\s+(?:of|for|in|on)\b)",
        ("percent",),
        _wording(rf"{_CONDITION}|\bVAT\b|\btax|\bcosts?\b|\bdiscount"),
        ("rents?", "prices?", "fees?"),
    ),
    Kind(
        _question(
            r"(?P<thing>租金|房租|单价|价格)(?:每年)?(?:会|能|可以)?(?:涨|上涨|上调|递增|增加)"
            r"(?:多少|吗|几个点)"
        ),
        rf"(?:{_CLAUSE_ZH}|起[,，]?|后)THING(?:标准)?(?:每年|逐年|按年|每[两三]年|可以?|将)?"
        r"(?:递增|上调|上浮|上涨|增加|提高|调高)",
        ("percent", "amount"),
        _wording(_CONDITION_ZH),
        ("租金|房租",),
    ),
    # Who owns what was made.
    Kind(
        _question(
            r"who\s+(?:(?:will\s+)?owns?|has|keeps|gets)\s+(?:all\s+)?(?:the\s+)?"
            rf"(?P<thing>{_OWNED_THING})"
        ),
        rf"{_START}(?:(?:all|any|the|other|such|and|[\w-]+,)\s+){{0,3}}(?:(?:[\w-]+,\s+)*[\w-]+\s+and\s+other\s+)?"
        rf"THING(?:\s+(?:made|created|developed|produced|prepared)\s+[^.;,]{{3,60}}?)?\s+{_OWN}"
        rf"|\bowns?\s+(?:(?:all|any|the)\s+){{0,2}}THING\s*[.;]",
        (),
        _wording(
            rf"{_CONDITION}|\bwarrant|\brepresents\b|\bconfidential\b|\bnothing\b|\bnot\b|\bbefore\b|\bprior\b|\bexisting\b"
        ),
        (
            r"intellectual\s+property(?:\s+rights)?|ip(?:\s+rights)?",
            r"inventions?",
            r"patents?",
            r"copyrights?",
            r"designs?",
            r"drawings?",
            r"reports?",
            r"records?",
            r"tooling|tools|mou?lds?",
        ),
    ),
    # How long the contract runs, and whether it goes on by itself.
    Kind(
        _question(
            r"how\s+long\s+(?:does|is|will)\s+(?:the|this|our)\s+(?P<thing>agreement|contract|lease)"
            r"(?:\s+(?:last|run|in\s+force|valid|for))?",
            r"when\s+does\s+(?:the|this|our)\s+(?:agreement|contract|lease)\s+(?:end|expire)",
        ),
        rf"{_START}{_THIS}(?:\s+(?:starts?|begins?|commences?)\s+on\s+[^.;]{{3,30}}?\s+and)?"
        r"\s+(?:(?:shall|will)\s+)?(?:lasts?|runs?|continues?|(?:remains?|is)\s+in\s+force|expires?|ends?)\b"
        r"\s+(?:(?!with|by|as|without)[\w(),-]+\s+){0,6}?(?:years?|months?|[12]\d{3})\b"
        r"(?!\s+(?:after|from|before)\s+(?!(?:the\s+)?(?:date|day|its|signature|signing|start|effective|commence)))"
        r"|^\W*(?:[\d.]+\s+)?\"(?:(?:initial|lease|contract|subscription)\s+)?term\"\s+means\b",
        ("duration", "date"),
        _wording(
            rf"{_CONDITION}|\bconfiden|\bsecre|\bsurviv|\b(?:months?|weeks?|days?)['’]?\s+notice\b"
        ),
    ),
    # When something is, where the contract defines its day: "Completion Date" means ….
    Kind(
        _question(r"when\s+(?:is|was)\s+(?:the\s+)?(?P<thing>[a-z]+(?:\s[a-z]+)?)"),
        r"\"THING(?:\s+(?:date|day))?\"\s+means\b",
        ("date",),
    ),
    Kind(
        _question(
            rf"(?:does|will|is)\s+{_NAMED_CONTRACT}\s+(?:be\s+)?(?:automatically\s+)?"
            r"(?:renew|renewed|extend|extended)(?:\s+itself)?(?:\s+automatically)?"
        ),
        rf"(?:{_START}|,\s+)(?:{_THIS}|the\s+term(?:\s+of\s+{_THIS})?)\s+{_AUX}{{0,3}}"
        r"(?:automatically\s+(?:renew|exten)\w*|(?:renew|exten)\w*\s+automatically)",
    ),
    # Which law governs.
    Kind(
        _question(
            rf"(?:what|which|whose)(?:\s+country's)?\s+laws?\s+(?:governs?|appl(?:y|ies))(?:\s+to)?(?:\s+{_NAMED_CONTRACT})?",
            rf"what\s+is\s+the\s+governing\s+law(?:\s+of\s+{_NAMED_CONTRACT})?",
        ),
        rf"{_START}{_THIS}\s+(?:(?:shall|will|is|be|to|and)\s+){{0,4}}(?:governed|construed|interpreted)[\s,]+"
        r"(?:(?:by|in|with|under|to|and|according|accordance|construed|interpreted|exclusively|the)[\s,]+){1,10}"
        r"(?:(?:substantive|internal|domestic|(?-i:[A-Z]\w+))\s+){0,3}laws?\b"
        rf"|{_START}the\s+laws?\s+of\s+[^.;]{{2,50}}?\s+(?:govern|appl(?:y|ies)\s+to)\s+{_THIS}"
        rf"|{_START}(?-i:[A-Z][a-z]+)\s+law\s+(?:(?:governs|applies\s+to)\s+{_THIS}|applies\s*\.)",
    ),
    # How much a party is liable for at most.
    Kind(
        _question(
            rf"what\s+is\s+the\s+(?:cap|limit|maximum)\s+(?:on|of|for)\s+(?:{_ASKED_PARTY}'s\s+)?"
            r"liability",
            r"what\s+is\s+the\s+liability\s+(?:cap|limit)",
        ),
        rf"{_START}(?:the\s+)?(?:(?:total|aggregate|maximum|entire|overall)\s+)*"
        r"(?:liability\s+of\s+PARTY|PARTY's\s+(?:(?:total|aggregate|maximum)\s+)*liability)"
        r"(?:\s+for\s+(?:all\s+)?claims\s+(?:under|arising\s+(?:under|from|out\s+of))\s+"
        r"(?:the|this)\s+[\w-]+"
        rf"|\s+(?:under|arising\s+(?:from|out\s+of)|in\s+connection\s+with)\s+{_THIS})?"
        r"\s+(?:(?:shall|is|will|in\s+any\s+event|be)\s+)*(?:limited\s+to|capped\s+at|not\s+exceed)\b",
        ("amount", "percent"),
        _wording(
            rf"{_CONDITION}|\binsur|\bdeductible\b|\bfor\s+(?:any|loss|damage|each\s+(?!year))"
        ),
    ),
    Kind(
        _question(
            r"(?P<party>[\u4e00-\u9fff]{2,5}?)(?:的?(?:赔偿|违约)?责任的?(?:上限|限额)是?多少"
            r"|最多(?:要)?(?:赔偿?|承担)多少)",
        ),
        rf"{_START_ZH}PARTY的?(?:全部|累计|最高)?(?:赔偿|违约)?责任(?:总额)?[^;；。,，]{{0,6}}"
        r"(?:不超过|不得超过|以|上限[为是])",
        (),
        _wording(_CONDITION_ZH),
    ),
    # Getting out without a reason.
    Kind(
        _question(
            rf"can\s+{_ASKED_PARTY}\s+(?:terminate|end|cancel|leave)(?:\s+{_NAMED_CONTRACT})?"
            r"\s+(?:early|for\s+convenience|at\s+any\s+time|without\s+(?:a\s+|any\s+)?(?:cause|reason))"
        ),
        rf"(?:{_START}|,\s+)PARTY\s+(?:may|can|is\s+entitled\s+to|has\s+the\s+right\s+to)\s+(?:at\s+any\s+time\s+)?"
        rf"(?:terminate|end|cancel)\s+{_THIS}[^;.]{{0,160}}\bnotice\b",
        ("duration",),
        _wording(
            rf"{_CONDITION}|\b(?:breach|default|fail|insolv|bankrupt|receiver|control|force\s+majeure"
            r"|cure|remed|renew|violat|cause)"
        ),
    ),
    # Whether trade is tied to one party: "on a non-exclusive basis" says that it is not.
    Kind(
        _question(r"is\s+there\s+(?:an?\s+)?exclusivity(?:\s+clause)?"),
        rf"{_START}PARTY\s+(?:shall\s+|is\s+|hereby\s+)?(?:appoint|suppl|purchas|buy|sell|distribut)"
        r"\w*[^.;,]{0,60}\bon\s+an?\s+(?:non-)?exclusive\s+basis\s*\.",
        (),
        _wording(r"\blicen[cs]e|\breview\b"),
    ),
    # What a breach leads to.
    Kind(
        _question(
            r"what\s+(?:happens\s+)?if\s+(?:either|one|a)\s+(?:party|side)\s+"
            rf"(?:breaches|breaks|defaults)(?:\s+{_NAMED_CONTRACT})?"
        ),
        rf"(?:either|each|any|a)\s+party\s+may\s+(?:terminate|end)\s+{_THIS}[^;.]{{0,60}}"
        r"\b(?:if|where|when)\s+the\s+other(?:\s+party)?\s+[^;.]{0,40}\b(?:breach|default)",
    ),
    # How the contract itself is changed.
    Kind(
        _question(
            rf"(?:how\s+)?(?:can|is)\s+{_NAMED_CONTRACT}\s+(?:be\s+)?"
            r"(?:changed|amended|modified|varied)(?:\s+by\s+email|\s+orally)?"
        ),
        r"\b(?:amendment|modification|change|alteration|variation)s?\s+(?:of|to|in)\s+"
        rf"{_THIS}\s+(?:binds|must|only|requires?|takes?|has|is|are|shall|will|may|can)\b"
        r"[^;.]{0,120}\b(?:in\s+writing|written|signed)\b"
        rf"|{_START}{_THIS}\s+{_AUX}{{1,4}}(?:amended|modified|changed|altered|varied)\b"
        r"[^;.]{0,120}\b(?:in\s+writing|written|signed)\b",
    ),
    # For how long something is kept secret.
    Kind(
        _question(
            r"how\s+long\s+(?:does|do)\s+(?:the\s+)?(?:confidentiality|secrecy)"
            r"(?:\s+(?:obligations?|duty|duties))?\s+last",
        ),
        r"\b(?:confidential\w*|secre\w+|confidence)(?:\s+(?:information|obligations?|duties|lasts?"
        r"|shall|will|survives?|remains?|continues?)){0,4},?(?:\s+and)?\s+(?:for\s+)?"
        r"(?:a\s+(?:period|term)\s+of\s+)?[\w()-]+\s+(?:\(\d+\)\s+)?(?:years?|months?)\s+"
        r"(?:after|from|following)\b",
        ("duration",),
    ),
    # Who bears a cost.
    Kind(
        _question(
            r"who\s+(?:pays|bears|covers)\s+(?:for\s+)?(?:the\s+)?(?:costs?\s+of\s+)?"
            r"(?P<thing>tax(?:es)?|freight|shipping|transport|carriage|insurance)"
        ),
        rf"{_START}PARTY\s+(?:(?:shall|will)\s+)?(?:pays?|bears?)\s+(?:all\s+)?(?:the\s+)?(?:costs?\s+of\s+)?"
        rf"(?:(?:the\s+)?{_COST}(?:,|\s+and)\s+){{0,2}}(?:the\s+)?THING"
        rf"(?:(?:,|\s+and)\s+(?:the\s+)?{_COST})*\s*[.;]",
        (),
        _wording(_CONDITION),
        (r"tax(?:es)?", r"freight|shipping|transport|carriage"),
    ),
    # Where a building lies and what it is for.
    Kind(
        _question(rf"{_PLACE_ZH}(?:位于|坐落)?在?(?:哪里?|什么地方)"),
        rf"{_START_ZH}THING(?:位于|坐落于?)[^,，。;；的]{{2,40}}(?:[,，。;；]|$)",
        (),
        None,
        _PLACES_ZH,
    ),
    Kind(
        _question(rf"{_PLACE_ZH}(?:是)?(?:用来(?:做|干)什么|(?:的)?用途是什么|做什么用)"),
        rf"{_START_ZH}THING(?:(?:位于|坐落于?)[^,，。;；]{{1,30}}[,，])?(?:仅|只|应当?)?用于",
        (),
        _wording(r"不得|抵押|的[,，]"),
        _PLACES_ZH,
    ),
    # The whole price, where goods are delivered, and who decides disputes.
    Kind(
        _question(
            rf"{_SUM_ZH}(?:是|为)?多少(?:钱|元)?",
            r"[一总]共(?:要)?(?:付|花|是)?多少(?:钱|元)",
        ),
        rf"(?:{_START_ZH}合同(?:总?价款?|总?金额|总额)|{_CLAUSE_ZH}(?:总价款?|价款总额))"
        r"(?:[为是:]|共?计)?(?:人民币|美元)?"
        r"[\d零一二三四五六七八九十百千万壹贰叁肆伍陆柒捌玖拾佰仟,.]+\s?(?:美?元|圆)",
        ("amount",),
        _wording(r"违约|罚|不超过|赔偿|保证金"),
    ),
    Kind(
        _question(
            r"货?(?:物)?[运送交](?:货)?(?:到|至|去)(?:哪里?|什么地方)",
            r"在哪里?交货",
            r"交货地点(?:是|在)?(?:哪里?|什么地方)",
        ),
        r"(?:货物?[运送交]|[送交运]货)[至到抵](?![后时前达])[\u4e00-\u9fff]|交货地点(?:为|是|:)\s?[\u4e00-\u9fff]",
        (),
        _wording(rf"{_CONDITION_ZH}|错发|[退返换]"),
    ),
    Kind(
        _question(
            r"(?:发生|有)?(?:争议|纠纷)(?:了)?(?:怎么|如何)(?:解决|处理|办)?",
            r"(?:在|去|到)?哪里?打官司",
        ),
        rf"(?:{_START_ZH}|发生的?|产生的?|引起的?|有关的?|一切|任何)(?:争议|纠纷)"
        r"[^。]{0,60}(?:仲裁|法院|起诉|诉讼)",
        (),
        _wording(r"质量(?:争议|纠纷)|鉴定|检验|第三[方人]|保险"),
    ),
)
