"""Substitutes for Mr. TyDi: questions in a language over passages of the same language, in pools of thousands.

Protocols and counts: the cards (`suites/cards/mrtydi-goldp.md`, `suites/cards/wikiqa-native.md`). The files lie in
BEIR's layout in a folder a language, e.g. `mrtydi-goldp/sw/corpus.jsonl`.
"""

from suites.common import Rules, brings
from suites.readouts import CCP
from suites.substitutes.common import Substitute, own_pool, table

RULES = Rules(("RR@100", "R@100"), official=("mrtydi-ccp",), readout=CCP)

# Task, documents, then judged queries / judgements of test, dev and train; counted in the files.
_GOLDP = """
ar  1981 894/894 -         -
bn  1198   94/94 -         -
en 11787 437/437 727/727   2949/2949
fi  1400 780/780 -         -
id  4653 565/565 1132/1132 4480/4482
ko  1488 236/239 237/241   1063/1086
ru  1400 726/726 -         -
sw  1981 456/456 490/572   1919/2210
te  1400 605/605 -         -
"""
_NATIVE = """
ja 11144 3939/3939 -       31746/31746
th  2142   739/739 736/736   5679/5679
"""

GOLDP = Substitute(
    name="mrtydi-goldp",
    stands_for="mrtydi",
    title="Mr. TyDi GoldP",
    summary="Mr. TyDi's own questions in 9 languages, over small pools of gold passages, Wikipedia and filler.",
    citation=(
        "Questions: Xinyu Zhang, Xueguang Ma, Peng Shi, Jimmy Lin. Mr. TyDi: A Multi-lingual Benchmark for Dense "
        "Retrieval. MRL, 2021. Passages: Jonathan H. Clark et al. TyDi QA: A Benchmark for Information-Seeking "
        "Question Answering in Typologically Diverse Languages. TACL 8, 2020."
    ),
    licence="Apache-2.0 (Mr. TyDi, TyDi QA), MIT (ARCD), CC BY-SA (Wikipedia and the other passages)",
    parts=table(_GOLDP, folders=True),
    rules=RULES,
    leg=own_pool,
    average=("Avg. (9)", "unweighted mean over the 9 languages that there are; Mr. TyDi's has Japanese and Thai too"),
)

NATIVE = Substitute(
    name="wikiqa-native",
    stands_for="mrtydi",
    title="Wikipedia QA in Japanese and Thai",
    summary="Questions of JaQuAD and iapp-wiki-qa, written with the paragraph in view, over their own paragraphs.",
    citation=(
        "ByungHoon So, Kyuhong Byun, Kyungwon Kang, Seongjin Cho. JaQuAD: Japanese Question Answering Dataset for "
        "Machine Reading Comprehension. 2022. Kobkrit Viriyayudhakorn, Charin Polpanumas. iapp_wiki_qa_squad. 2021."
    ),
    licence="CC BY-SA 3.0 (Japanese); MIT, passages CC BY-SA (Thai)",
    parts=table(_NATIVE, folders=True),
    rules=RULES,
    leg=own_pool,
    average=("Avg. (2)", "unweighted mean of Japanese and Thai, the languages that mrtydi-goldp lacks"),
)
bench_suites = brings(GOLDP.suite(), NATIVE.suite())
