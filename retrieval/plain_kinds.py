"""Kinds of plain questions, and the wordings of contracts that answer them and little else.

Patterns for English and Chinese; judged by `plain_facts`. They know wordings, no meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.asked import AskedKind, holds


@dataclass(frozen=True, slots=True)
class Kind:
    """Questions that match `asked`, answered by a sentence that matches `said`, holds one of
    `facts` (any, when empty) and does not match `other`, which is said of something else. What
    matches one of `things` in the question must do so in the sentence."""

    asked: re.Pattern[str]
    said: re.Pattern[str]
    facts: tuple[AskedKind, ...] = ()
    other: re.Pattern[str] | None = None
    things: tuple[re.Pattern[str], ...] = ()

    def answers(self, asked: str, body: str) -> bool:
        if any(thing.search(asked) and not thing.search(body) for thing in self.things):
            return False
        if not self.said.search(body) or (self.facts and holds(body, self.facts) < 1.0):
            return False
        return self.other is None or not self.other.search(body)


def _wording(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


_SUM = r"\b(?:price|fee|rent|charge|tariff)s?\b"
_RISE = r"\b(?:increas|rais|escalat|adjust|index|uplift|revis|goes?\s+up|going\s+up|rises?\b|risen)"
_OWNED = (
    r"\b(?:owns?|owned|ownership|belongs?|vests?|vested|sole\s+(?:and\s+exclusive\s+)?property"
    r"|exclusive\s+property|property\s+of|(?:remains?|stays?)\s+the\s+property|works?\s+made\s+for\s+hire|keeps?|retains?"
    r"|right,?\s+title)\b"
)
_MIND = (
    r"\b(?:intellectual\s+property|inventions?|patents?|copyrights?|work\s+product|know-?how|designs?"
    r"|source\s+code|software|deliverables)\b"
)
_MADE = r"\b(?:drawings?|reports?|data|records?|tooling|tools|mou?lds?)\b"
_CONTRACT = r"(?:agreement|contract|lease)"
# Joint rights and what a contract has still to create are other matters, and so is what a cap
# leaves out.
_NOT_JOINT = r"^(?!.*\b(?:joint|shared|both|created|developed)).*"
_CAPPED = r"^(?!.*\b(?:exclud|except|unlimited|uncapped|carve)).*"
KINDS = (
    # How much the price may rise.
    Kind(
        _wording(
            rf"{_SUM}[^?]{{0,40}}\b(?:go(?:es)?\s+up|increased?|increases|rises?|raised?|reviewed)\b",
            r"\b(?:raise|increase|put\s+up)\b[^?]{0,30}\b(?:price|fee|rent|charge)s?\b",
            r"\b(?:price|rent|fee)\s+(?:increase|rise|review|adjustment)s?\b",
        ),
        _wording(
            rf"{_SUM}[^;.]{{0,100}}(?:\.\s[^;.]{{0,40}})?{_RISE}", rf"{_RISE}\w*[^;.]{{0,60}}{_SUM}"
        ),
        ("percent",),
        _wording(r"\binterest\b|\boverdue\b|\blate\b|\bdelay"),
        (_wording(r"\brents?\b"), _wording(r"\b(?:price|fee|charge|tariff)s?\b")),
    ),
    Kind(
        _wording(
            r"(?:租金|房租|价格|单价|费用?|物价)[^?]{0,6}(?:涨|上调|提高|增加|递增|调整)|每年涨|涨(?:多少|价|幅)"
        ),
        _wording(
            r"(?:租金|价格|价款|单价|费用?|标准)[^;；。]{0,40}(?:上调|上涨|递增|上浮|增加|提高|调整)"
            r"|(?:上调|提高|调整)[^;；。]{0,12}(?:租金|价格|单价|费)"
        ),
        ("percent", "amount"),
        _wording(r"逾期|违约金|利率"),
        (_wording(r"租"), _wording(r"价")),
    ),
    Kind(
        _wording(
            rf"\bhow\s+(?:much|far)\b[^?]{{0,30}}{_SUM}[^?]{{0,30}}\b(?:go\s+up|increase|rise|be\s+raised)\b"
        ),
        _wording(
            rf"\b(?:may|right\s+to|entitled\s+to)\b[^.;]{{0,40}}{_RISE}\w*[^.;]{{0,30}}{_SUM}",
            rf"{_SUM}[^.;]{{0,30}}\b(?:may|can)\b[^.;]{{0,30}}{_RISE}",
        ),
        (),
        _wording(r"\binterest\b|\boverdue\b|\blate\b|\bdelay"),
        (_wording(r"\brents?\b"), _wording(r"\b(?:price|fee|charge|tariff)s?\b")),
    ),
    # Who owns what comes of the mind.
    Kind(
        _wording(
            rf"{_NOT_JOINT}\bwho\s+(?:will\s+)?(?:owns?|has|holds|keeps|gets)\b[^?]{{0,40}}(?:{_MIND}|\bip\b)",
            rf"{_NOT_JOINT}\bwhose\b[^?]{{0,30}}(?:{_MIND}|\bip\b)",
            rf"{_NOT_JOINT}(?:{_MIND}|\bip\b)[^?]{{0,30}}\b(?:belong|owned|ownership)\b",
        ),
        _wording(rf"{_OWNED}[^;.]{{0,200}}{_MIND}", rf"{_MIND}[^;.]{{0,200}}{_OWNED}"),
        (),
        _wording(
            r"\binfring|\bwarrant|\brepresents\b|\bindemnif|\bconfidential\b|\bmeans\b|\bif\b|\bnothing\b"
        ),
        (
            _wording(r"\bpatents?\b"),
            _wording(r"\bcopyrights?\b"),
            _wording(r"\bdesigns?\b"),
            _wording(r"\b(?:software|code)\b"),
            _wording(r"\binventions?\b"),
        ),
    ),
    Kind(
        _wording(rf"\bwho\s+(?:will\s+)?(?:owns?|has|keeps|gets)\b[^?]{{0,30}}{_MADE}"),
        _wording(rf"{_OWNED}[^;.]{{0,160}}{_MADE}", rf"{_MADE}[^;.]{{0,160}}{_OWNED}"),
        (),
        _wording(r"\binfring|\bwarrant|\brepresents\b|\bindemnif|\bmeans\b|\bif\b|\bnothing\b"),
        (
            _wording(r"\bdrawings?\b"),
            _wording(r"\breports?\b"),
            _wording(r"\bdata\b"),
            _wording(r"\brecords?\b"),
            _wording(r"\b(?:tooling|tools|mou?lds?)\b"),
        ),
    ),
    # How long the contract runs, and whether it goes on by itself.
    Kind(
        _wording(
            rf"\bhow\s+long\b[^?]{{0,20}}\b{_CONTRACT}\b(?:[^?]{{0,12}}\b(?:last|run|in\s+force|valid)\b|\W*$)",
            rf"\bwhen\s+does\b[^?]{{0,12}}\b{_CONTRACT}\s+(?:end|expire)",
        ),
        _wording(
            rf"\b(?:{_CONTRACT}|term)\b[^;.]{{0,100}}"
            r"\b(?:lasts?|runs?|continues?|remains?|in\s+force|expires?|ends?)\b[^;.]{0,80}"
            r"\b(?:years?|months?|[12]\d{3})\b"
        ),
        ("duration", "date"),
        _wording(r"\bconfiden|\bsurviv|\bafter\s+(?:the\s+)?(?:end|expir|terminat)|\binsurance\b"),
    ),
    Kind(
        _wording(
            rf"\b{_CONTRACT}\b[^?]{{0,16}}\b(?:renew|extend)", r"\bautomatic\w*\s+(?:renew|exten)"
        ),
        _wording(
            r"\bautomatic\w*\s+(?:renew|exten|continu)",
            r"\b(?:renew|exten|continu)\w*\s+automatic",
            r"\bunless\b[^;.]{0,80}\bnotice\b[^;.]{0,80}\b(?:goes\s+on|continu|renew|extend|prolong)",
        ),
        (),
        _wording(r"\binsurance\b|\blicen[cs]es?\b|\bletter\s+of\s+credit\b"),
    ),
    # Which law governs.
    Kind(
        _wording(
            r"\b(?:what|which|whose)\s+(?:\w+(?:'s)?\s+)?laws?\s+(?:governs?|appl(?:y|ies))"
            r"|\bgoverning\s+law\b|\blaw\s+(?:governs|applies)"
        ),
        _wording(
            r"\b(?:governed|construed|interpreted)\s+(?:\w+\s+){0,6}(?:by|with|under|to)\b[^.;]{0,80}\blaws?\b"
            r"|\blaws?\s+of\s+[^.;]{2,60}?\b(?:govern|appl(?:y|ies))"
            r"|\b[A-Z][a-z]+\s+law\s+(?:governs|applies|shall)"
        ),
        (),
        _wording(r"\bsales?\s+tax|\btaxes\b|\blicen[cs]ed\b|\bcompl(?:y|iance)\b"),
    ),
    # How much a party is liable for at most.
    Kind(
        _wording(
            rf"{_CAPPED}\b(?:cap|limit|limited|maximum|ceiling|most)\b[^?]{{0,40}}\b(?:liab|damages)",
            rf"{_CAPPED}\bliab\w+[^?]{{0,25}}\b(?:cap|capped|limit|limited|most|maximum|up\s+to)\b",
        ),
        _wording(
            r"\bliab\w+[^;]{0,220}(?:(?<!not\s)\blimited\s+(?:\w+\s+){0,5}to\b|\bnot\s+exceed|\bexceed|\bcapped"
            r"|\bno\s+more\s+than|\bgreater\s+of|\blesser\s+of)",
            r"\bliable\b[^;.]{0,120}\bup\s+to\b",
        ),
        ("amount", "percent"),
        _wording(r"\binsurance\b|\bdeductible\b|\bwithout\s+limit"),
    ),
    Kind(
        _wording(r"责任(?:的?上限|限额|封顶)|最多(?:要)?(?:赔|承担)|赔偿(?:的)?(?:上限|限额)"),
        _wording(
            r"(?:赔偿|责任)[^;；。]{0,40}(?:不超过|不得超过|为限|上限)",
        ),
        (),
        _wording(r"逾期|迟延|延误|保险"),
    ),
    # Getting out without a reason.
    Kind(
        _wording(
            r"\b(?:terminate|end|cancel|leave)\b[^?]{0,40}"
            r"\b(?:for\s+convenience|without\s+(?:a\s+|any\s+)?(?:cause|reason)|at\s+any\s+time|early)\b",
            r"\bget\s+out\s+of\b[^?]{0,20}\b(?:agreement|contract|deal)\b",
            r"\bnotice\b[^?]{0,50}\b(?:terminate|terminating|termination|end|cancel)\b",
        ),
        _wording(
            r"\b(?:may|can|is\s+entitled\s+to|has\s+the\s+right\s+to)\s+(?:\w+\s+){0,4}?(?:terminate|end|cancel)\b"
            r"(?:[^;]{0,160}\bnotice\b|[^;]{0,20}\bnotice)"
        ),
        ("duration",),
        _wording(
            r"\b(?:breach|default|fail|insolv|bankrupt|receiver|control|force\s+majeure|cure|remed|if\b|unless\b"
            r"|in\s+the\s+event|renew|violat|cause\b(?<!without\scause))"
        ),
    ),
    # Whether trade is tied to one party: "on a non-exclusive basis" says that it is not.
    Kind(
        _wording(
            r"\bis\s+there\b[^?]{0,12}\bexclusivity\b", r"\bis\s+(?:it|the\s+\w+)\s+exclusive\b"
        ),
        _wording(
            r"\b(?:appoint|suppl|purchas|buy|sell|distribut|engag)\w*[^.;]{0,80}"
            r"\bon\s+an?\s+(?:non-?)?exclusive\s+basis\b"
        ),
        (),
        _wording(r"\blicen[cs]e"),
    ),
    # What a breach leads to.
    Kind(
        _wording(
            r"\bwhat\b[^?]{0,12}\bif\b[^?]{0,40}\b(?:breach(?:es)?|breaks?|defaults?)\b"
            r"(?![^?]{0,20}\bconfiden)"
        ),
        _wording(
            r"\bterminat\w*[^;]{0,240}\b(?:breach|default)",
            r"\b(?:breach|default)\w*[^;]{0,240}\bterminat",
        ),
    ),
    # How the contract itself is changed.
    Kind(
        _wording(
            r"\b(?:agreement|contract|terms)\b[^?]{0,24}\b(?:changed|amended|modified|varied)\b",
            r"\b(?:change|amend|modify|vary)\s+(?:the|this|our)\s+(?:agreement|contract|terms)\b",
        ),
        _wording(
            r"\b(?:amend|modif|chang|alter|vari)\w*[^;.]{0,60}\b(?:this|the)\s+(?:[A-Z]\w+\s+){0,3}"
            r"(?:agreement|contract)\b[^;.]{0,160}\b(?:in\s+(?:a\s+)?writing|written|signed)\b",
            r"\b(?:agreement|contract)\b[^;.]{0,60}\b(?:amend|modif|chang|alter|vari)\w*[^;.]{0,160}"
            r"\b(?:in\s+(?:a\s+)?writing|written|signed)\b",
        ),
        (),
        _wording(
            r"\bchange\s+(?:of|in)\s+(?:\w+\s+){0,3}(?:control|address|ownership|management)\b"
            r"|\bterminat"
        ),
    ),
    # What must be kept secret, and for how long.
    Kind(
        _wording(
            r"\bwhat\b[^?]{0,30}\b(?:keep|kept|treated?\s+as)\b[^?]{0,12}\b(?:confidential|secret)\b"
        ),
        _wording(
            r"\b(?:keep|hold|maintain|treat)\b[^.;]{0,60}\b(?:confiden|secre)",
            r"\bconfidential\s+information\b[^.;]{0,40}\bmeans\b",
        ),
    ),
    Kind(
        _wording(
            r"\bhow\s+long\b[^?]{0,50}\b(?:confiden|secre)",
            r"\b(?:confiden|secre)\w*[^?]{0,20}\b(?:last|period)\b",
        ),
        _wording(
            r"\b(?:confiden|secre|proprietary)\w*[^;]{0,400}\b(?:years?|months?)\b[^;]{0,60}"
            r"\b(?:after|from|following|thereafter|beyond)\b",
            r"\b(?:years?|months?)\b[^;]{0,60}\b(?:after|from|following|thereafter)\b[^;]{0,200}"
            r"\b(?:confiden|secre|proprietary)",
        ),
        ("duration",),
    ),
    # Who bears a cost.
    Kind(
        _wording(
            r"\bwho\b[^?]{0,20}\b(?:pays?|bears?|covers?|responsible)\b[^?]{0,20}"
            r"\b(?:tax(?:es)?|freight|shipping|transport|carriage|insurance)\b"
        ),
        _wording(
            r"\b(?:pay|pays|paid|payable|bear|bears|borne|responsible|liable|expense|cost|harmless)\b"
        ),
        (),
        _wording(r"\bincome\s+tax"),
        (
            _wording(r"\btax(?:es)?\b"),
            _wording(r"\binsur"),
            _wording(r"\b(?:freight|ship(?:ping|ment|ped)|transport\w*|carriage)\b"),
        ),
    ),
    # What a loan or a thing is for, where it lies, how much was lent.
    Kind(
        _wording(
            r"借(?:了|款|的)?(?:金额|总额|本金)?(?:是|为)?多少(?!天|个?月|年|利)|借款(?:金|数)额"
        ),
        _wording(r"(?:借款|贷款|出借)[^;；。]{0,24}(?:人民币|美元|元)"),
        ("amount",),
        _wording(r"逾期|罚息|违约金|利息"),
    ),
    Kind(
        _wording(r"用来(?:做|干)什么|用途是?什么|什么用途|做什么用"),
        _wording(r"(?<!使)用于|用途(?:为|是|:)|作为?[^;；。]{1,10}使用"),
        (),
        _wording(r"不得|保密"),
    ),
    Kind(
        _wording(r"(?:房子|房屋|商铺|店铺|场地|厂房|仓库|租赁物)[^?]{0,3}在(?:哪|什么地方)"),
        _wording(r"位于|坐落"),
    ),
    # The whole price, where it is delivered, and who decides disputes.
    Kind(
        _wording(
            r"[一总]共(?:要)?(?:付|花|是)?多少(?:钱|元)?(?!天|人|台)|总价(?:款)?(?:是|为)?多少"
            r"|合同(?:总)?(?:金额|价款|总?价)(?:是|为)?多少"
        ),
        _wording(
            r"(?:[共合总]计|总价款?|总金?额|总值|合同价款)[^;；。]{0,16}?(?:[\d零一二三四五六七八九十百千万壹贰叁肆伍陆柒捌玖拾佰仟,.]+\s?(?:美?元|圆))"
        ),
        ("amount",),
        _wording(r"违约金|罚款|不超过|赔偿|保证金"),
    ),
    Kind(
        _wording(r"(?:运|送|交)(?:货)?(?:到|至|去)(?:哪|什么地方)|在哪里?交货|交货地点"),
        _wording(r"[运送](?:货)?(?:至|到|抵)[\u4e00-\u9fff]|交货地点(?:为|是|:)\s?[\u4e00-\u9fff]"),
        (),
        _wording(r"违约金|逾期|错发"),
    ),
    Kind(
        _wording(r"(?:争议|纠纷)(?:怎么|如何|由谁|在哪)|打官司"),
        _wording(r"(?:争议|纠纷|争执)[^。]{0,80}(?:仲裁|法院|起诉|诉讼)"),
    ),
    # Pay by the hour.
    Kind(
        _wording(r"\bhourly\b|\bper\s+hour\b|\ban\s+hour\b"),
        _wording(r"\bper\s+hour\b|\ban\s+hour\b|\bhourly\b"),
        ("amount",),
    ),
)
