"""Search in statutes by article. The statute is invented."""

from __future__ import annotations

import pickle
import re

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.statutes import (
    PASSAGE,
    articles_of,
    asked_matters,
    is_statute,
    statute_words,
)
from retrieval.types import Document, DocumentPage

ARTICLES = [
    "为了规范云岭市出租房屋的使用，保护当事人的合法权益，制定本条例。",
    "本条例适用于云岭市行政区域内的房屋租赁活动。",
    "出租人应当履行租赁物的维修义务，租赁合同另有约定的除外。",
    "承租人经出租人同意，可以将租赁物转租给第三人。",
    "机动车驾驶人饮酒后驾驶的，暂扣驾驶证六个月，并处一千元罚款。",
    "职工因工致残被鉴定为一级至四级伤残的，保留劳动关系，退出工作岗位，享受伤残津贴。",
    "职工因工致残被鉴定为五级、六级伤残的，由用人单位安排适当工作。",
    "职工因工致残被鉴定为七级至十级伤残的，一次性伤残补助金为十三个月的本人工资。",
    "拾得人应当将遗失物返还失主，失主应当支付保管的必要费用。",
    "饲养的动物造成他人损害的，动物饲养人应当承担侵权责任。",
    "用人单位拖欠工资的，由劳动行政部门责令限期支付。",
    "自然人享有肖像权，有权依法制作、使用、公开或者许可他人使用自己的肖像。",
    "违反本条例规定的，由市人民政府主管部门责令改正。",
    "本条例自2024年7月1日起施行。",
]
NUMERALS = "一二三四五六七八九十"


def numeral(value: int) -> str:
    return NUMERALS[value - 1] if value <= 10 else "十" + NUMERALS[value - 11]


def text_of(title: str = "云岭市综合管理条例", padding: str = "") -> str:
    lines = [f"第{numeral(n)}条 {body}{padding}" for n, body in enumerate(ARTICLES, start=1)]
    return title + "\n\n2024年5月1日 市人民代表大会通过\n\n" + "\n\n".join(lines) + "\n"


def index_of(text: str) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "x", "text/plain", "zh")
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    # Padded so that an article is a passage of its own.
    return index_of(text_of(padding="有关部门应当加强宣传，做好服务工作，及时公布相关信息。" * 9))


@pytest.mark.parametrize(
    ("question", "article"),
    [
        ("房东不管修东西怎么办？", "第三条"),
        ("二房东能把房子再租给别人吗？", "第四条"),
        ("酒驾会怎么处罚？", "第五条"),
        ("评了8级伤残能赔多少钱？", "第八条"),
        ("6级伤残单位怎么安排？", "第七条"),
        ("捡到手机要还给人家吗？", "第九条"),
        ("被狗咬了找谁赔？", "第十条"),
        ("老板不发工资找谁？", "第十一条"),
        ("别人用我的照片打广告可以吗？", "第十二条"),
        ("被狗咬了找谁賠？", "第十条"),
    ],
)
def test_lay_questions_find_their_article(index: SearchIndex, question: str, article: str) -> None:
    evidence = find_evidence(index, question)
    best = evidence.sentences[0]
    assert index.text[best.start : best.end].startswith(article)
    assert evidence.hits[0].chunk.start <= best.start < evidence.hits[0].chunk.end


def test_short_articles_are_quoted_with_neighbours_that_come_near() -> None:
    small = index_of(text_of())
    quotes = find_evidence(small, "工伤致残有什么待遇？").sentences
    bodies = [small.text[one.start : one.end] for one in quotes]
    assert "伤残津贴" in bodies[0]
    assert all(len(body) <= PASSAGE for body in bodies)
    assert len(re.findall("第.{1,3}条 ", bodies[0])) > 1
    # Every quote lies in its chunk, and no two of them overlap.
    for one in quotes:
        assert one.chunk.start <= one.start < one.end <= one.chunk.end
    ordered = sorted(quotes, key=lambda one: one.start)
    assert all(a.end <= b.start for a, b in zip(ordered, ordered[1:], strict=False))


def test_an_article_that_stands_out_is_quoted_alone() -> None:
    small = index_of(text_of())
    best = find_evidence(small, "遗失物是否应当返还权利人？").sentences[0]
    assert re.findall("第.{1,3}条 ", small.text[best.start : best.end]) == ["第九条 "]


def test_named_article_is_found_by_its_number(index: SearchIndex) -> None:
    evidence = find_evidence(index, "第九条的内容是什么？")
    best = evidence.sentences[0]
    assert "遗失物" in index.text[best.start : best.end]


def test_only_statutes_are_searched_by_article(index: SearchIndex) -> None:
    assert index.articles is not None
    lease = text_of("房屋租赁合同")
    assert not is_statute(lease, articles_of(outline(lease)))
    with_parties = text_of().replace("2024年5月1日", "甲方：云岭公司", 1)
    assert not is_statute(with_parties, articles_of(outline(with_parties)))
    assert index_of(lease).articles is None
    short = text_of().split("第八条")[0]
    assert not is_statute(short, articles_of(outline(short)))


def test_index_of_a_statute_can_be_pickled(index: SearchIndex) -> None:
    again = pickle.loads(pickle.dumps(index))
    question = "酒驾会怎么处罚？"
    assert find_evidence(again, question) == find_evidence(index, question)


@pytest.mark.parametrize(
    ("question", "matter"),
    [
        ("转正之前能随便被辞退吗？", "probation"),
        ("公司不签合同能要双倍工资吗？", "missing_written_contract"),
        ("网购的衣服七天无理由能退吗？", "no_reason_return"),
        ("外卖里吃出虫子怎么办？", "food_safety"),
        ("打架会拘留几天？", "public_order"),
        ("把银行卡借给别人跑分会怎样？", "financial_crime"),
        ("学校里有人霸凌同学，校园霸凌谁管？", "minors_protection"),
        ("缴满十五年能拿多少钱？", "pension_benefits"),
        ("空头支票违法吗？", "negotiable_instruments"),
    ],
)
def test_lay_words_name_matters_of_other_statutes(question: str, matter: str) -> None:
    assert matter in {found.name for found in asked_matters(question)}


def test_every_word_of_the_list_is_chinese_or_latin_and_told_once() -> None:
    for concept in statute_words().concepts:
        assert concept.phrases, concept.name
        for phrases in (concept.phrases, concept.cues):
            assert len(set(phrases)) == len(phrases), concept.name
            assert all(re.search("[a-z\u4e00-\u9fff]", phrase) for phrase in phrases)
